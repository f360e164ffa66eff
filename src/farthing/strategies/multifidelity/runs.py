"""Runs: the trials of one configuration that carried each other on, read as one learning curve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from farthing.models.linalg import Array
from farthing.trials import History, Params, State, Trial


@dataclass(frozen=True)
class Point:
    """A point of a curve: the fidelity reached, the loss there, and its derivatives along params where reported."""

    fidelity: Mapping[str, float]
    loss: float
    gradient: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Run:
    """One configuration and every trial that trained it further, the oldest first.

    With `is_end_only` its curve enters a model by its end alone.
    """

    history: History
    trials: tuple[Trial, ...]
    is_end_only: bool = False

    @property
    def params(self) -> Params:
        return self.trials[0].params

    @property
    def is_running(self) -> bool:
        return not all(trial.is_finished for trial in self.trials)

    @cached_property
    def done(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.state is State.DONE and trial.value is not None)

    @property
    def last(self) -> Trial | None:
        """The trial to continue from, which is the recommended one too: the last that is done."""
        return self.done[-1] if self.done else None

    @cached_property
    def reached(self) -> Array:
        """The fidelity that the run has reached: s of its last trial that is done, (m,); all where it ended early."""
        assert self.last is not None, "only runs with a result have come anywhere"
        known = self.history.fidelity_known(self.last)
        return np.asarray(self.history.problem.space.encoder.encode_fidelity([known])[0])

    @cached_property
    def has_diverged(self) -> bool:
        """Whether it was seen to fail where it was last: an exception, no memory, or a value that is no number."""
        ended = [trial for trial in self.trials if trial.is_finished and trial.state is not State.LOST]
        return bool(ended) and ended[-1].state is State.FAILED

    @property
    def is_paused(self) -> bool:
        """Whether there is a result to continue from, and nothing that says not to."""
        return self.last is not None and not self.is_running and not self.has_diverged

    @cached_property
    def failed(self) -> tuple[Trial, ...]:
        """Trials that ended without a value."""
        return tuple(trial for trial in self.trials if trial.is_finished and trial.value is None)

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """Every point measured, of those in one place the last, in the order in which they were first reached."""
        latest: dict[tuple[float, ...], Point] = {}
        for trial in self.trials:
            for point in _points(self.history, trial):
                latest[tuple(point.fidelity.values())] = point
        measured = tuple(latest.values())
        return _best_so_far(self, measured) if measured and self.history.problem.best_so_far else measured

    @property
    def cost(self) -> float:
        """The cost of all its trials: an estimate of one run from the start to here."""
        return sum(trial.cost for trial in self.trials)


def runs_of(history: History) -> list[Run]:
    """The runs of a history, in the order in which they began."""
    members: dict[int, list[Trial]] = {}
    roots: dict[int, int] = {}
    for trial in history:
        source = trial.resume_from
        roots[trial.number] = trial.number if source is None else roots[source]
        members.setdefault(roots[trial.number], []).append(trial)
    return [Run(history, tuple(trials)) for trials in members.values()]


def recommendable(runs: Sequence[Run]) -> list[Run]:
    """The runs with a result that can be trained further as far as is known; if there are none, all with a result.

    Equal params are one configuration: if one run of it diverged, the others count only if they came as far as that one
    was to come. Where a parameter was retired, runs with another value of it count only while there is no other run.
    """
    every = [run for run in runs if run.last is not None]
    seen = [run for run in every if run.history.problem.space.has(run.params)] or every
    diverged = [run for run in runs if run.has_diverged]
    return [run for run in seen if not any(_speaks_against(other, run) for other in diverged)] or seen


def _speaks_against(diverged: Run, run: Run) -> bool:
    """Whether a run that diverged is this one, or has its params and was to come further than this one did."""
    if diverged.params != run.params or run.last is None:
        return False
    return diverged is run or run.history.reach(run.last) < run.history.reach(diverged.trials[-1])


def _best_so_far(run: Run, measured: Sequence[Point]) -> tuple[Point, ...]:
    """The best of each point and those before it; a run that stopped by itself stays there to its end."""
    best = list(accumulate(measured, _better))
    curve = [replace(so_far, fidelity=point.fidelity) for so_far, point in zip(best, measured, strict=True)]
    if run.last is not None and run.history.ended_early(run.last):
        curve.append(replace(curve[-1], fidelity=run.history.fidelity_known(run.last)))
    return tuple(curve)


def _better(one: Point, other: Point) -> Point:
    return other if other.loss < one.loss else one


def _points(history: History, trial: Trial) -> Sequence[Point]:
    """The points that a trial measured. Points that name no fidelity are on no curve, unless they are the result."""
    if trial.state in (State.FAILED, State.LOST):
        return ()
    names, sign = tuple(history.problem.space.fidelities), history.problem.sign
    named = [
        Point(_complete(measured.fidelity, names, trial), sign * value, measured.gradient)
        for measured in trial.points
        if measured.fidelity and (value := measured.value) is not None
    ]
    if trial.value is None or (trial.state is State.PRUNED and named):
        return named
    result = Point({name: trial.fidelity[name] for name in names}, history.loss(trial.value))
    is_named = any(point.fidelity == result.fidelity for point in named)
    return named if is_named or history.ended_early(trial) else [*named, result]


def _complete(fidelity: Mapping[str, float], names: tuple[str, ...], trial: Trial) -> Mapping[str, float]:
    """All fidelities in their order: those that a point does not name are the trial's."""
    if tuple(fidelity) == names:
        return fidelity
    return {name: fidelity.get(name, trial.fidelity[name]) for name in names}
