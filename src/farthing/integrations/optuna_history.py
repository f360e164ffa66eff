"""The trials of an Optuna study as a history, from which strategies and models decide."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from optuna.study import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from farthing.integrations.optuna_space import Translation
from farthing.space import Fidelity, Space
from farthing.trials import Failure, History, Json, Measurement, Problem, State, Suggestion, Trial

CHOSEN, NOTE = "farthing:params", "farthing:note"
"""System attributes of a trial: what was suggested, by Optuna's names, and what the strategy notes about it."""

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
) -> Read:
    """The trials that the space can hold; with `max_steps` their intermediate values are curves.

    The note of each is the one that the sampler left, unless `note` takes its place.
    """
    space = translation.space
    if max_steps is not None:
        trace = {STEP: Fidelity(1, max_steps, integer=True, trace=True)}
        space = Space(dict(space.parameters), fidelities=trace)
    problem = Problem(space, minimize=study.direction is not StudyDirection.MAXIMIZE, seed=seed)
    found: list[Trial] = []
    numbers: dict[int, int] = {}
    for trial in sorted(trials, key=lambda trial: trial.number):
        params = translation.params_of(_params(trial, translation))
        if params is not None:
            numbers[trial.number] = len(found)
            noted = trial.system_attrs.get(NOTE) if note is None else note
            found.append(_trial(trial, len(found), params, max_steps=max_steps, note=noted))
    return Read(History(problem, found), numbers)


def _params(trial: FrozenTrial, translation: Translation) -> Mapping[str, Any]:
    """The params of a trial; for one that runs also those that it was given and has not asked for yet."""
    chosen = trial.system_attrs.get(CHOSEN) or {}
    known = {name: translation.distributions[name] for name in chosen if name in translation.distributions}
    given = {name: distribution.to_external_repr(chosen[name]) for name, distribution in known.items()}
    return {**given, **trial.params}


def _trial(trial: FrozenTrial, number: int, params: dict[str, Any], *, max_steps: int | None, note: Json) -> Trial:
    state, value = _ending(trial)
    points = [] if max_steps is None else _curve(trial, max_steps)
    full = {} if max_steps is None else {STEP: float(max_steps)}
    reached = points[-1].fidelity if points and state is State.PRUNED else full
    if state in (State.DONE, State.PRUNED):
        points.append(Measurement(value, {"training": seconds_of(trial)}, fidelity=reached, sequence=len(points)))
    return Trial(
        number,
        Suggestion(params, full, note=note),
        state,
        measurements=tuple(points),
        value=value,
        failure=Failure("failed in Optuna") if state is State.FAILED else None,
    )


def _ending(trial: FrozenTrial) -> tuple[State, float | None]:
    if not trial.state.is_finished():
        return State.RUNNING, None
    value = trial.value if trial.state is TrialState.COMPLETE else None
    if trial.state is TrialState.PRUNED:
        last = trial.intermediate_values.get(trial.last_step) if trial.last_step is not None else None
        return (State.PRUNED, last) if last is not None and math.isfinite(last) else (State.FAILED, None)
    return (State.DONE, value) if value is not None and math.isfinite(value) else (State.FAILED, None)


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
