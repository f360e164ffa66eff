"""Charts of a whole history: what is particular to each system, values against params, trials along the clock."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from farthing.analysis.lines import Lines
from farthing.analysis.rows import stage_tree
from farthing.analysis.runs import Lineage, curve_axis, last_of_runs, learning_curves, with_value
from farthing.analysis.sampling import chosen_places, thinned
from farthing.analysis.text import where
from farthing.costs import Ledger
from farthing.trials import History, Json, Measurement, Trial
from farthing.trials.measurement import BAD, played_rounds

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


# ------------------------------------------------------------
# Value against params: for slices, and for lines across parallel axes.


def parameter_points(history: History, *, most: int) -> dict[str, Json]:
    """The last trial of each run that has a value: its params, value and reach. Of many, the best and some others."""
    runs = last_of_runs(with_value(history))
    losses = np.array([history.loss(trial.value or 0.0) for trial in runs])
    keep = np.zeros(len(runs), dtype=bool)
    keep[np.argsort(losses, kind="stable")[: most // 4]] = True
    shown = [runs[int(place)] for place in chosen_places(len(runs), most, keep=keep)]
    return {
        "number": [trial.number for trial in shown],
        "value": [trial.value for trial in shown],
        "cost": [trial.cost for trial in shown],
        "reach": [history.reach(trial) for trial in shown],
        "params": {name: [trial.params.get(name) for trial in shown] for name in history.problem.space.parameters},
        "of": len(runs),
    }


# ------------------------------------------------------------
# Trials by the worker that ran them, along the clock.


MOST_LANES = 60


def timeline(lines: Lines, *, now: float, most: int) -> dict[str, Json]:
    """A bar for each trial from when a worker took it, in lanes: a process that runs several at once has several."""
    is_taken = np.isfinite(lines.started_at)
    began = [place for place in np.flatnonzero(is_taken).tolist() if lines.states[place] != "pending"]
    shown = [began[int(place)] for place in chosen_places(len(began), most)]
    lanes: dict[tuple[str, int], float] = {}
    bars: list[dict[str, Json]] = []
    for place in sorted(shown, key=lambda place: lines.started_at[place]):
        start = float(lines.started_at[place])
        is_finished = lines.finished_at[place] == lines.finished_at[place]
        end = float(lines.finished_at[place]) if is_finished else max(now, start)
        owner = where(lines.owners[place])
        slot = next(slot for slot in range(len(lanes) + 1) if lanes.get((owner, slot), -1.0) <= start)
        lanes[owner, slot] = end
        bars.append(
            {
                "number": int(lines.number[place]),
                "state": lines.states[place],
                "start": start,
                "end": end,
                "lane": [owner, slot],
                "cost": float(lines.cost[place]),
            }
        )
    names = sorted(lanes)
    places = {name: at for at, name in enumerate(names)}
    for bar in bars:
        bar["lane"] = places[tuple(bar["lane"])]
    kept = [bar for bar in bars if bar["lane"] < MOST_LANES]
    labels = [f"{owner or 'not known'}{f' #{slot + 1}' if slot else ''}" for owner, slot in names[:MOST_LANES]]
    return {"lanes": labels, "bars": kept, "of": len(began), "all_lanes": len(names), "now": now}
