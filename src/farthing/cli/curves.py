"""Learning curves: what was measured along a run, over the trials that carried it on."""

from collections.abc import Iterable
from dataclasses import dataclass

from farthing.space import Space
from farthing.study.runs import last_of_runs
from farthing.trials import History, Measurement, Trial


@dataclass(frozen=True)
class Curve:
    """The values of one run by the amount of work behind them. `trials` are those that carried it on, in order."""

    trials: tuple[Trial, ...]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> Trial:
        return self.trials[-1]

    def includes(self, trial: Trial) -> bool:
        return any(part.number == trial.number for part in self.trials)


def curve_axis(space: Space) -> str:
    """What curves run along: the fidelity that has a trace, else the first one, else the step."""
    traces = [name for name, fidelity in space.fidelities.items() if fidelity.trace]
    return next(iter([*traces, *space.fidelities]), "step")


def learning_curves(history: History) -> list[Curve]:
    """The curve of each run that measured anything, by the number of its last trial."""
    axis = curve_axis(history.problem.space)
    runs = [tuple(history.lineage(trial.number)) for trial in last_of_runs(history)]
    curves = [Curve(trials, _points(trials, axis=axis)) for trials in runs]
    return [curve for curve in curves if curve.points]


def _points(lineage: Iterable[Trial], *, axis: str) -> tuple[tuple[float, float], ...]:
    latest = {_place(point, axis): point.value for trial in lineage for point in trial.points}
    return tuple(sorted((place, value) for place, value in latest.items() if value is not None))


def _place(point: Measurement, axis: str) -> float:
    return point.fidelity.get(axis, point.step or 0)
