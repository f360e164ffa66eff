"""An Optuna study as ours: its distributions as a space, and its trials as a history, from which models decide."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from farthing.errors import InvalidArgument, InvalidParams
from farthing.space import Choice, Fidelity, Float, Int, Parameter, Space
from farthing.space.space_validation import RESERVED
from farthing.trials import Failure, History, Json, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.objectives import AtMost, Limit, Objective
from farthing.validation import shown


@dataclass(frozen=True)
class Translation:
    """A space, Optuna's name for each of its parameters, and the distribution that each stands for.

    Options of a categorical distribution are their indices in the space if `by_index`: Optuna takes any object.
    """

    space: Space
    names: Mapping[str, str]
    distributions: Mapping[str, BaseDistribution]
    by_index: bool

    @classmethod
    def of_distributions(cls, distributions: Mapping[str, BaseDistribution]) -> "Translation":
        names = {f"p{place}": name for place, name in enumerate(distributions)}
        space = Space({own: parameter_of(distributions[name], by_index=True) for own, name in names.items()})
        return cls(space, names, dict(distributions), by_index=True)

    @classmethod
    def of_space(cls, space: Space) -> "Translation":
        if space.fidelities or space.stages:
            raise InvalidArgument(
                f"The space of a sampler must have parameters only, got {space!r}. Leave fidelities to "
                "FarthingPruner, which reads what trials report."
            )
        distributions = {name: distribution_of(parameter) for name, parameter in space.parameters.items()}
        return cls(space, {name: name for name in distributions}, distributions, by_index=False)

    def params_of(self, external: Mapping[str, Any]) -> dict[str, Any] | None:
        """Optuna's params in the space; None where it has no such configuration."""
        try:
            return dict(self.space.check({own: self._inner(own, external[name]) for own, name in self._in(external)}))
        except (InvalidParams, ValueError):
            return None

    def external(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {self.names[own]: self._outer(own, value) for own, value in params.items()}

    def _in(self, external: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(own, name) for own, name in self.names.items() if name in external]

    def _inner(self, own: str, value: Any) -> Any:
        distribution = self.distributions[self.names[own]]
        is_index = self.by_index and isinstance(distribution, CategoricalDistribution)
        return int(distribution.to_internal_repr(value)) if is_index else value

    def _outer(self, own: str, value: Any) -> Any:
        distribution = self.distributions[self.names[own]]
        if self.by_index and isinstance(distribution, CategoricalDistribution):
            return distribution.choices[value]
        return value


def parameter_of(distribution: BaseDistribution, *, by_index: bool = False) -> Parameter:
    match distribution:
        case FloatDistribution(low=low, high=high, log=log, step=step):
            return Float(low, high, log=log, step=step)
        case IntDistribution(low=low, high=high, log=log, step=step):
            return Int(low, high, log=log, step=1 if log else step)
        case CategoricalDistribution(choices=choices):
            return Choice(*range(len(choices))) if by_index else Choice(*choices)
        case _:
            raise InvalidArgument(
                f"A distribution must be float, int or categorical, got {shown(distribution)}. Use trial.suggest_…."
            )


def distribution_of(parameter: Parameter) -> BaseDistribution:
    match parameter:
        case Float(low=low, high=high, log=log, step=step):
            return FloatDistribution(low, high, log=log, step=step)
        case Int(low=low, high=high, log=log, step=step):
            return IntDistribution(low, high, log=log, step=step or 1)
        case Choice(options=options):
            return CategoricalDistribution(options)


def usable_names(names: list[str]) -> dict[str, str]:
    """For each name of Optuna's one that a space takes, which is mostly the same."""
    found: dict[str, str] = {}
    for name in names:
        own = re.sub(r"[^\w.-]|^(?=[\d.-])", "_", name)
        while own in found.values() or own in RESERVED:
            own += "_"
        found[name] = own
    return found


# ------------------------------------------------------------
# The trials of a study as a history.

CHOSEN, NOTE = "farthing:params", "farthing:note"
"""System attributes of a trial: what was suggested, by Optuna's names, and what the strategy notes about it."""

LIMITS = "constraints"
"""The system attribute in which Optuna has what a trial's sampler, or with a name the trial itself, says of limits."""

STEP = "steps"
"""The trace fidelity of trials that report intermediate values."""


@dataclass(frozen=True)
class Read:
    """The history of an Optuna study, and the number in it of each trial that it holds, by Optuna's number."""

    history: History
    numbers: Mapping[int, int]


def read_trials(
    trials: Iterable[FrozenTrial],
    translation: Translation,
    study: OptunaStudy,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    note: Json = None,
    is_limited: bool = False,
) -> Read:
    """The trials that the space can hold; with `max_steps` their intermediate values are curves.

    The note of each is the one that the sampler left, unless `note` takes its place. With `is_limited` the problem has
    the constraints of the trials.
    """
    space = translation.space
    if max_steps is not None:
        trace = {STEP: Fidelity(1, max_steps, integer=True, trace=True)}
        space = Space(dict(space.parameters), fidelities=trace)
    first, *further = objectives_of(study)
    trials = sorted(trials, key=lambda trial: trial.number)
    problem = Problem(
        space,
        value=first.name,
        minimize=first.minimize,
        seed=seed,
        further=tuple(further),
        constraints=constraints_of(trials) if is_limited else {},
    )
    found: list[Trial] = []
    numbers: dict[int, int] = {}
    for trial in trials:
        params = translation.params_of(_params(trial, translation))
        if params is not None:
            numbers[trial.number] = len(found)
            noted = trial.system_attrs.get(NOTE) if note is None else note
            found.append(_trial(trial, len(found), params, problem, max_steps=max_steps, note=noted))
    return Read(History(problem, found), numbers)


def objectives_of(study: OptunaStudy, names: Sequence[str] = ()) -> tuple[Objective, ...]:
    """The objectives of an Optuna study, which have no names: `value`, `value_1`, …, or those that are given."""
    directions = study.directions
    named = names or ["value", *(f"value_{place}" for place in range(1, len(directions)))]
    return tuple(
        Objective(name, minimize=direction is not StudyDirection.MAXIMIZE)
        for name, direction in zip(named, directions, strict=True)
    )


def limited_of(trial: FrozenTrial) -> dict[str, float]:
    """The values of a trial's constraints, by names of ours: each is kept at 0 or below."""
    listed = enumerate(trial.system_attrs.get(LIMITS) or ())
    named = (
        (key.partition(":")[2], value) for key, value in trial.system_attrs.items() if key.startswith(f"{LIMITS}:")
    )
    return {f"constraint_{key}": float(value) for key, value in chain(listed, named)}


def constraints_of(trials: Iterable[FrozenTrial]) -> dict[str, Limit]:
    return {name: AtMost(0.0) for name in sorted({name for trial in trials for name in limited_of(trial)})}


def _params(trial: FrozenTrial, translation: Translation) -> Mapping[str, Any]:
    """The params of a trial; for one that runs also those that it was given and has not asked for yet."""
    chosen = trial.system_attrs.get(CHOSEN) or {}
    known = {name: translation.distributions[name] for name in chosen if name in translation.distributions}
    given = {name: distribution.to_external_repr(chosen[name]) for name, distribution in known.items()}
    return {**given, **trial.params}


def _trial(
    trial: FrozenTrial, number: int, params: dict[str, Any], problem: Problem, *, max_steps: int | None, note: Json
) -> Trial:
    state, value, metrics = _ending(trial, problem)
    points = [] if max_steps is None else _curve(trial, max_steps)
    full = {} if max_steps is None else {STEP: float(max_steps)}
    reached = points[-1].fidelity if points and state is State.PRUNED else full
    if state in (State.DONE, State.PRUNED):
        cost = {"training": seconds_of(trial)}
        points.append(Measurement(value, cost, fidelity=reached, metrics=metrics, sequence=len(points)))
    return Trial(
        number,
        Suggestion(params, full, note=note),
        state,
        measurements=tuple(points),
        value=value,
        failure=Failure("failed in Optuna") if state is State.FAILED else None,
    )


Ending = tuple[State, float | None, dict[str, float | None]]


def _ending(trial: FrozenTrial, problem: Problem) -> Ending:
    """How a trial ended, with its first value and the others by name."""
    if not trial.state.is_finished():
        return State.RUNNING, None, {}
    if trial.state is TrialState.PRUNED:  # only studies of one value have trials that are
        last = trial.intermediate_values.get(trial.last_step) if trial.last_step is not None else None
        return (State.PRUNED, last, {}) if last is not None and math.isfinite(last) else (State.FAILED, None, {})
    values = trial.values if trial.state is TrialState.COMPLETE else None
    if values is None or not all(map(math.isfinite, values)):
        return State.FAILED, None, {}
    others = zip((one.name for one in problem.further), values[1:], strict=True)
    return State.DONE, values[0], {**dict(others), **limited_of(trial)}


def _curve(trial: FrozenTrial, max_steps: int) -> list[Measurement]:
    """Steps may begin at 0 or at 1: the first one counts as one step of work."""
    return [
        Measurement(value, fidelity={STEP: float(amount_at(step, max_steps))}, sequence=place)
        for place, (step, value) in enumerate(sorted(trial.intermediate_values.items()))
        if math.isfinite(value)
    ]


def amount_at(step: int, max_steps: int) -> int:
    return min(max(step + 1, 1), max_steps)


def seconds_of(trial: FrozenTrial) -> float:
    return 0.0 if trial.duration is None else max(0.0, trial.duration.total_seconds())
