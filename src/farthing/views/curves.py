"""Learning curves: what was measured along a run, over the trials that carried it on."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from farthing.space import Space
from farthing.study.runs import last_of_runs
from farthing.trials import History, Measurement, Trial


@dataclass(frozen=True)
class Curve:
    """The values of one run by the amount of work behind them. `trials` are those that carried it on, in order."""

    trials: tuple[Trial, ...]
    axis: str
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> Trial:
        return self.trials[-1]

    @property
    def pauses(self) -> tuple[tuple[float, float], ...]:
        """The points at which another trial continued the run."""
        ends = {_place(trial.points[-1], self.axis) for trial in self.trials[:-1] if trial.points}
        return tuple(point for point in self.points if point[0] in ends)

    def includes(self, trial: Trial) -> bool:
        return any(part.number == trial.number for part in self.trials)


def curve_axis(space: Space) -> str:
    """The axis of the curves: the fidelity that has a trace, else the first one, else the step."""
    traces = [name for name, fidelity in space.fidelities.items() if fidelity.trace]
    return next(iter([*traces, *space.fidelities]), "step")


def breadth(history: History, trial: Trial) -> float:
    """How much of the full amount a trial has of the fidelities that curves do not run along, from 0 to 1."""
    space = history.problem.space
    others = {name: top for name, top in space.full_fidelity.items() if name != curve_axis(space)}
    return math.prod(trial.fidelity.get(name, 0.0) / top for name, top in others.items())


def learning_curves(history: History) -> list[Curve]:
    """The curve of each run that measured anything, by the number of its last trial."""
    axis = curve_axis(history.problem.space)
    runs = [tuple(history.lineage(trial.number)) for trial in last_of_runs(history)]
    curves = [Curve(trials, axis, _points(trials, axis=axis)) for trials in runs]
    return [curve for curve in curves if curve.points]


def _points(lineage: Iterable[Trial], *, axis: str) -> tuple[tuple[float, float], ...]:
    latest = {_place(point, axis): point.value for trial in lineage for point in trial.points}
    return tuple(sorted((place, value) for place, value in latest.items() if value is not None))


def _place(point: Measurement, axis: str) -> float:
    return point.fidelity.get(axis, point.step or 0)
