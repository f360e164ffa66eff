"""What is particular to each system: curves bought, lanes of a population, rounds of an online run, cached prefixes."""

from collections.abc import Callable, Sequence
from typing import Any

from farthing.costs import Ledger
from farthing.study.lineage import Lineage
from farthing.study.online.stored import BAD, played_rounds
from farthing.study.runs import last_of_runs
from farthing.trials import History, Json, Measurement, Trial
from farthing.views.curves import curve_axis, learning_curves
from farthing.views.sampling import thinned
from farthing.views.trial_views import stage_tree

MOST_CURVES = 200
MOST_POINTS = 100
MOST_NODES = 400
MOST_ROUNDS = 3_000


Read = Callable[[Sequence[int]], Sequence[Trial]]
"""Reads some trials whole, by their numbers."""


def curves(history: History, read: Read | None = None) -> dict[str, Json]:
    """The learning curves that were bought, the best and the latest among them.

    With `read`, the chosen trials are read at once: the measurements of a long history may still lie in its storage.
    """
    runs = learning_curves(_few_runs(history, read))
    return {
        "axis": curve_axis(history.problem.space),
        "curves": [
            {
                "number": curve.last.number,
                "trials": [trial.number for trial in curve.trials],
                "state": curve.last.state.value,
                "points": [list(point) for point in thinned(curve.points, MOST_POINTS)],
                "pauses": [list(point) for point in curve.pauses],
                "cost": sum(trial.cost for trial in curve.trials),
            }
            for curve in runs
        ],
        "of": history.configurations,
    }


class _FewRuns:
    """Some of the runs of a history, for `learning_curves`, which asks no more than this of one."""

    def __init__(self, history: History, trials: Sequence[Trial]) -> None:
        self.problem = history.problem
        self._history = history
        self._trials = {trial.number: trial for trial in trials}

    def lineage(self, number: int) -> list[Trial]:
        return [self._trials[link.number] for link in self._history.lineage(number)]

    def __iter__(self) -> Any:
        return iter(self._trials.values())


def _few_runs(history: History, read: Read | None) -> Any:
    """The history, or of a long one the best, the latest and an even choice of runs, with all that led to them."""
    last = last_of_runs(history)
    if len(last) <= MOST_CURVES:
        return history
    valued = sorted((trial for trial in last if trial.value is not None), key=lambda t: history.loss(t.value or 0.0))
    part = MOST_CURVES // 3
    chosen = {trial.number: trial for trial in [*valued[:part], *last[-part:], *thinned(last, part)]}
    links = sorted({link.number for number in chosen for link in history.lineage(number)})
    return _FewRuns(history, read(links) if read else [history[number] for number in links])


def population(history: History) -> dict[str, Json]:
    """A lane for each member, the copies between them, and the schedule of each."""
    lineage = Lineage.of(history)
    axis = curve_axis(history.problem.space)
    return {
        "axis": axis,
        "members": [
            {"member": member, "intervals": [_interval(history, trial, axis) for trial in own]}
            for member, own in lineage.members.items()
        ],
        "copies": [
            {
                "member": copy.member,
                "donor": copy.donor,
                "trial": copy.trial.number,
                "at": _start(history, copy.trial, axis),
            }
            for copy in lineage.copies
        ],
        "winner": _winner(history, lineage),
    }


def _interval(history: History, trial: Trial, axis: str) -> dict[str, Json]:
    return {
        "number": trial.number,
        "from": _start(history, trial, axis),
        "to": float(trial.fidelity.get(axis, 0.0)),
        "state": trial.state.value,
        "value": trial.value,
        "cost": trial.cost,
        "params": dict(trial.params),
        "points": [[_place(point, axis), point.value] for point in thinned(trial.points, MOST_POINTS)],
    }


def _place(point: Measurement, axis: str) -> float:
    return float(point.fidelity.get(axis, point.step or 0))


def _start(history: History, trial: Trial, axis: str) -> float:
    return 0.0 if trial.resume_from is None else float(history[trial.resume_from].fidelity.get(axis, 0.0))


def _winner(history: History, lineage: Lineage) -> list[int]:
    """The trials on the way to the best of those that were trained furthest."""
    valued = [trial for trial in history.done if trial.value is not None]
    if not valued:
        return []
    furthest = max(history.reach(trial) for trial in valued)
    best = min(
        (trial for trial in valued if history.reach(trial) == furthest),
        key=lambda trial: history.loss(trial.value or 0.0),
    )
    return [trial.number for trial in lineage.run_of(best)]


def rounds(history: History) -> dict[str, Json]:
    """The rounds of the last online run: which were measured, which stayed silent, and the params in force."""
    runs = [trial for trial in history if len(trial.measurements)]
    if not runs:
        return {"trial": None, "rounds": [], "asked": 0, "silent": 0, "bad": 0, "runs": [], "regret": []}
    played = played_rounds(runs[-1])
    asked = [point for point in played if point.value is not None or BAD in point.metrics]
    return {
        "trial": runs[-1].number,
        "runs": [trial.number for trial in runs[-50:]],
        "asked": len(asked),
        "silent": len(played) - len(asked),
        "bad": sum(BAD in point.metrics for point in played),
        "rounds": [_round(point) for point in thinned(played, MOST_ROUNDS)],
        "regret": _regret(history, played),
    }


def _round(point: Measurement) -> dict[str, Json]:
    return {
        "round": point.step,
        "value": point.value,
        "bad": BAD in point.metrics,
        "params": dict(point.params or {}),
        "cost": sum(point.cost.values()),
    }


def _regret(history: History, played: list[Measurement]) -> list[list[float]]:
    """Summed over measured rounds, how far each was behind the best that the run ever measured.

    It bounds the regret against the best setting that was tried from above where the best did not drift.
    """
    measured = [point for point in played if point.value is not None]
    if not measured:
        return []
    best = min(history.loss(point.value or 0.0) for point in measured)
    total, found = 0.0, []
    for point in measured:
        total += history.loss(point.value or 0.0) - best
        found.append([float(point.step or 0), total])
    return thinned(found, MOST_ROUNDS)


def pipeline(history: History) -> dict[str, Json]:
    """The tree of cached prefixes, and the bill of each stage with what the cache saved."""
    ledger = Ledger.of(history)
    return {
        **stage_tree(history, most=MOST_NODES),
        "bills": {name: bill.to_json() for name, bill in ledger.stages.items()},
        "unit": ledger.unit,
    }
