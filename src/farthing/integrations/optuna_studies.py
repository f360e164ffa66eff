"""Studies that change sides: an Optuna study as one of Farthing's, and the other way round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import URL, create_engine, inspect, make_url

from farthing.errors import InvalidArgument
from farthing.integrations.optuna_history import (
    LIMITS,
    STEP,
    constraints_of,
    distribution_of,
    limited_of,
    objectives_of,
    parameter_of,
    seconds_of,
    usable_names,
)
from farthing.session import session_of
from farthing.space import Fidelity, Parameter, Space
from farthing.space.parameters import with_condition
from farthing.storage import StorageLike
from farthing.study import Study
from farthing.trials import Failure, Measurement, Outcome, Problem, State, Suggestion, Trial
from farthing.trials.objectives import Objective, bounds_of, excesses, values_of
from farthing.trials.trial import ADDED

VERSIONS = "version_info"
"""A table of every storage of Optuna, and of none of Farthing's."""

NAMES = "optuna_names"
"""The setting of an imported study that has Optuna's names of parameters that a space does not take."""


def import_study(
    source: optuna.Study | str,
    *,
    study_name: str | None = None,
    space: Space | None = None,
    storage: StorageLike | None = None,
    name: str | None = None,
    value: str | Sequence[str] = "value",
) -> Study:
    """A study of Farthing's with the trials of an Optuna study: params, curves, durations as costs.

    Pruned trials are short runs, failed ones are failed; those that wait or run are left out. Ranges that changed are
    joined. A parameter that some trials lack is conditional on the categorical parameter that explains it. Constraints
    become limits: `constraint_0`, or `constraint_NAME`, at most 0.

    Args:
        source: the study, or the URL of its storage, with its name in `study_name`.
        space: the space, where trials do not tell it: parameters under their names, and a fidelity if there are curves.
        storage, name: of the new study; by default in memory, and with the same name.
        value: the name of the value; of several objectives a list with the names of all, which Optuna does not have.
    """
    given = _loaded(source, study_name) if isinstance(source, str) else source
    given_names = [value] if isinstance(value, str) else list(value)
    if len(given_names) != len(given.directions):
        raise InvalidArgument(
            f"Each objective needs a name, got value={value!r} for {len(given.directions)} in {given.study_name!r}. "
            "Write import_study(…, value=['error', 'latency'])."
        )
    aims = objectives_of(given, given_names)
    trials = [trial for trial in given.get_trials(deepcopy=False) if trial.state.is_finished()]
    names = usable_names(sorted({param for trial in trials for param in trial.params}))
    found = space or _space_of(trials, names)
    study = Study(
        found,
        storage=storage,
        name=name or given.study_name,
        minimize=[one.name for one in aims if one.minimize] or None,
        maximize=[one.name for one in aims if not one.minimize] or None,
        constraints=constraints_of(trials) or None,
    )
    if len(study.history):
        raise InvalidArgument(
            f"An imported study must be new, got {study.name!r} with {len(study.history)} trials. Give it another name."
        )
    renamed = {own: theirs for theirs, own in names.items() if own != theirs}
    if renamed:
        session_of(study).remember(**{NAMES: renamed})
    for trial in trials:
        _add(study, trial, names, aims)
    return study


def export_study(
    study: Study, storage: str | optuna.storages.BaseStorage | None = None, *, study_name: str | None = None
) -> optuna.Study:
    """An Optuna study with the finished trials of a study: params, curves, and costs as durations.

    What ended short of full fidelity is pruned there. By how much each limit is exceeded is a constraint there. The
    cost by kind, the fidelity, the trial's number here and limited quantities are user attributes.
    """
    problem, renamed = study.problem, session_of(study).settings.get(NAMES, {})
    directions = [_direction(one) for one in problem.objectives]
    target = optuna.create_study(storage=storage, study_name=study_name or study.name, directions=directions)
    parameters = problem.space.parameters
    distributions = {name: distribution_of(parameter) for name, parameter in parameters.items()}
    for trial in study.trials:
        if trial.is_finished:
            target.add_trial(_frozen(study, trial, distributions, renamed))
    return target


def _direction(objective: Objective) -> StudyDirection:
    return StudyDirection.MINIMIZE if objective.direction == "minimize" else StudyDirection.MAXIMIZE


# ------------------------------------------------------------------------------------------------------------- import


def _loaded(url: str, name: str | None) -> optuna.Study:
    """The study, once it is certain that the storage is Optuna's: it would make one where there is none."""
    try:
        _require_tables(make_url(url))
        return optuna.load_study(study_name=name, storage=url)
    except Exception as error:
        raise InvalidArgument(
            f"An Optuna storage must be there and have the study, got {url!r} and {name!r}: {_short(error)}. "
            "Check them with: optuna studies --storage URL."
        ) from error


def _require_tables(url: URL) -> None:
    file = url.database if url.get_backend_name() == "sqlite" else None
    if file and not file.startswith("file:") and not Path(file).exists():
        raise FileNotFoundError("there is no such file")
    engine = create_engine(url)
    try:
        if not inspect(engine).has_table(VERSIONS):
            raise LookupError("it holds no studies of Optuna")
    finally:
        engine.dispose()


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _space_of(trials: Sequence[FrozenTrial], names: Mapping[str, str]) -> Space:
    joined: dict[str, BaseDistribution] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            joined[name] = _joined(name, joined[name], distribution) if name in joined else distribution
    tuned = {name: distribution for name, distribution in joined.items() if not distribution.single()}
    parameters = {
        names[name]: _conditional(name, parameter_of(distribution), tuned, trials, names)
        for name, distribution in sorted(tuned.items())
    }
    if not parameters:
        raise InvalidArgument("A study to import must have trials with params, got none. Run it first.")
    steps = [step for trial in trials for step in trial.intermediate_values]
    if not steps or max(steps) - min(0, *steps) < 1:
        return Space(parameters)
    return Space(parameters, fidelities={STEP: Fidelity(1, _amount(max(steps), steps), integer=True, trace=True)})


def _amount(step: int, steps: Sequence[int]) -> int:
    """The steps of work behind a report: those that count from 0 are one more."""
    return step + 1 if min(steps) <= 0 else step


def _joined(name: str, one: BaseDistribution, other: BaseDistribution) -> BaseDistribution:
    """The distribution that has what both have."""
    match one, other:
        case (FloatDistribution(), FloatDistribution()) | (IntDistribution(), IntDistribution()):
            if (one.log, one.step) == (other.log, other.step):
                low, high = min(one.low, other.low), max(one.high, other.high)
                return type(one)(low, high, log=one.log, step=one.step)
        case (CategoricalDistribution(), CategoricalDistribution()):
            return CategoricalDistribution(tuple(dict.fromkeys([*one.choices, *other.choices])))
    raise InvalidArgument(
        f"A parameter must have one kind and one scale in all trials, got {one} and {other} for {name!r}. "
        "Give the space yourself: import_study(…, space=ft.Space(…))."
    )


def _conditional(
    name: str,
    parameter: Parameter,
    tuned: Mapping[str, BaseDistribution],
    trials: Sequence[FrozenTrial],
    names: Mapping[str, str],
) -> Parameter:
    """The parameter, with the condition under which trials have it."""
    asked = [trial for trial in trials if trial.params]
    having = [trial for trial in asked if name in trial.params]
    if len(having) == len(asked) or all(trial.state is TrialState.FAIL for trial in asked if trial not in having):
        return parameter
    for parent, distribution in tuned.items():
        if parent == name or not isinstance(distribution, CategoricalDistribution):
            continue
        with_it = {trial.params.get(parent) for trial in having}
        without = {trial.params.get(parent) for trial in asked if trial not in having}
        if with_it.isdisjoint(without) and None not in with_it:
            options = [option for option in distribution.choices if option in with_it]
            return with_condition(parameter, {names[parent]: tuple(options)})
    raise InvalidArgument(
        f"A parameter that some trials lack must depend on a categorical one, got {name!r}, which {len(having)} of "
        f"{len(asked)} trials have. Give the space yourself: import_study(…, space=ft.Space(…))."
    )


def _add(study: Study, trial: FrozenTrial, names: Mapping[str, str], aims: Sequence[Objective]) -> None:
    space = study.space
    params = {names[name]: value for name, value in trial.params.items() if names[name] in space.parameters}
    is_whole = set(space.active_names(params)) == set(params)
    if not is_whole and trial.state is TrialState.FAIL:
        return  # it failed before it had asked for all of them
    ended = _Ended.of(trial, study.problem, aims)
    suggestion = Suggestion(space.check(params), ended.fidelity, note={ADDED: True})
    session_of(study).records.add(suggestion, ended.outcome, tags=["optuna"])


@dataclass(frozen=True)
class _Ended:
    """How a trial of Optuna's ended, in a study's own words."""

    fidelity: dict[str, float]
    outcome: Outcome

    @classmethod
    def of(cls, trial: FrozenTrial, problem: Problem, aims: Sequence[Objective]) -> "_Ended":
        space = problem.space
        full, steps = dict(space.full_fidelity), sorted(trial.intermediate_values)
        trace = next((name for name, one in space.fidelities.items() if one.trace), None)
        points: list[Measurement] = []
        if trace is not None:
            top = space.fidelities[trace].high
            shift = 1 if steps and steps[0] <= 0 else 0
            points = [
                Measurement(trial.intermediate_values[step], fidelity={**full, trace: min(float(step + shift), top)})
                for step in steps
            ]
        is_short = trial.state is TrialState.PRUNED and bool(points)
        fidelity = dict(points[-1].fidelity) if is_short else full
        values = trial.values if trial.state is TrialState.COMPLETE else None
        known = {} if values is None else dict(zip((one.name for one in aims), values, strict=True)) | limited_of(trial)
        value = points[-1].value if is_short else known.pop(problem.value, None)
        cost, there = {"training": seconds_of(trial)}, fidelity if value is not None else {}
        points = [*points, Measurement(value, cost, charged=True, fidelity=there, metrics=known)]
        measured = tuple(replace(point, sequence=place) for place, point in enumerate(points))
        if value is None:
            why = "pruned without a value" if trial.state is TrialState.PRUNED else "failed"
            return cls(fidelity, Outcome(State.FAILED, measurements=measured, failure=Failure(f"It {why} in Optuna.")))
        return cls(fidelity, Outcome(State.DONE, value=value, measurements=measured))


# ------------------------------------------------------------------------------------------------------------- export


def _frozen(
    study: Study, trial: Trial, distributions: Mapping[str, BaseDistribution], renamed: Mapping[str, str]
) -> FrozenTrial:
    began = datetime.fromtimestamp(trial.began_at)
    state = _state_of(study, trial)
    problem, values = study.problem, values_of(study.problem, trial) or {}
    limited = {name: values[name] for name in bounds_of(problem)} if values else {}
    has_values = state is TrialState.COMPLETE or (state is TrialState.PRUNED and not problem.further)
    ended = optuna.trial.create_trial(
        state=state,
        values=[values[one.name] for one in problem.objectives] if has_values and values else None,
        params={renamed.get(name, name): value for name, value in trial.params.items()},
        distributions={renamed.get(name, name): distributions[name] for name in trial.params},
        intermediate_values=_intermediate(study, trial),
        user_attrs={
            "farthing_trial": trial.number,
            "cost": dict(trial.costs),
            "fidelity": dict(trial.fidelity),
            **({"limited": limited} if limited else {}),
        },
        system_attrs={LIMITS: excesses(problem, values)} if limited else None,
    )
    ended.datetime_start = began
    ended.datetime_complete = began + timedelta(seconds=_seconds(study, trial))
    return ended


def _seconds(study: Study, trial: Trial) -> float:
    """The cost, if that is seconds; else how long it ran."""
    if study.problem.cost_unit == "seconds":
        return trial.cost
    return max(0.0, (trial.finished_at or trial.began_at) - trial.began_at)


def _state_of(study: Study, trial: Trial) -> TrialState:
    if trial.state is State.DONE:
        return TrialState.COMPLETE if study.history.is_full(trial) else TrialState.PRUNED
    return TrialState.PRUNED if trial.state is State.PRUNED else TrialState.FAIL


def _intermediate(study: Study, trial: Trial) -> dict[int, float]:
    """The points of the curve, with those of the runs that it continues."""
    trace = next((name for name, one in study.space.fidelities.items() if one.trace), None)
    points = [point for one in study.history.lineage(trial.number) for point in one.points]
    amounts = [point.step if trace is None else point.fidelity.get(trace) for point in points]
    steps = zip(amounts, (point.value for point in points), strict=True)
    return {round(step): value for step, value in steps if step is not None and value is not None}
