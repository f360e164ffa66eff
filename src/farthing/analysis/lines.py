"""A line for each trial, in columns: enough for charts, sorting and sums, without an object for each trial."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from farthing.analysis.sampling import Array, IntArray, chosen_places, plain_list
from farthing.trials import History, Json, Problem, State, Trial

Line = tuple[int, str, float | None, float, float | None, float, float | None, int | None, str | None, str | None]
"""Number, state, value, cost, when it was taken by a worker, opened and finished, the trial it continues, owner,
fidelity as JSON."""

CODES = {state.value: code for code, state in enumerate(State)}
FAILED_CODES = [CODES[State.FAILED.value], CODES[State.LOST.value]]


@dataclass(frozen=True, eq=False)
class Lines:
    """Columns by number. A time or value that there is not is NaN."""

    number: IntArray
    states: list[str]
    value: Array
    cost: Array
    started_at: Array
    opened_at: Array
    finished_at: Array
    resume_from: list[int | None]
    owners: list[str]
    fidelities: list[str | None]

    @classmethod
    def of(cls, history: History) -> "Lines":
        return cls.from_rows(
            (
                trial.number,
                trial.state.value,
                trial.value,
                trial.cost,
                trial.started_at,
                trial.opened_at,
                trial.finished_at,
                trial.resume_from,
                trial.owner,
                json.dumps(dict(trial.fidelity)) if trial.fidelity else None,
            )
            for trial in history
        )

    @classmethod
    def from_rows(cls, rows: Iterable[Line]) -> "Lines":
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [[]] * 10
        number, states, value, cost, started, opened, finished, resume_from, owners, fidelities = columns
        return cls(
            np.array(number, dtype=int),
            list(states),
            np.array(value, dtype=float),
            np.array(cost, dtype=float),
            np.array(started, dtype=float),
            np.array(opened, dtype=float),
            np.array(finished, dtype=float),
            list(resume_from),
            [owner or "" for owner in owners],
            list(fidelities),
        )

    def updated(self, rows: Sequence[Line]) -> "Lines":
        """With these lines instead of those of the same numbers, and new ones at the end.

        Columns are copied whole, which is fast; only what changed is gone through line by line.
        """
        changed, size = Lines.from_rows(rows), len(self)
        new = int(np.searchsorted(changed.number, size))
        places = changed.number[:new].tolist()

        def numbers(own: Array, others: Array) -> Array:
            joined = np.concatenate([own, others[new:]])
            joined[places] = others[:new]
            return joined

        def texts(own: list[Any], others: list[Any]) -> list[Any]:
            joined = own + others[new:]
            for place, text in zip(places, others, strict=False):
                joined[place] = text
            return joined

        return Lines(
            np.concatenate([self.number, changed.number[new:]]),
            texts(self.states, changed.states),
            numbers(self.value, changed.value),
            numbers(self.cost, changed.cost),
            numbers(self.started_at, changed.started_at),
            numbers(self.opened_at, changed.opened_at),
            numbers(self.finished_at, changed.finished_at),
            texts(self.resume_from, changed.resume_from),
            texts(self.owners, changed.owners),
            texts(self.fidelities, changed.fidelities),
        )

    def __len__(self) -> int:
        return int(self.number.size)

    @cached_property
    def codes(self) -> IntArray:
        """The states as numbers, by `CODES`."""
        return np.array([CODES[state] for state in self.states], dtype=int)

    @property
    def total(self) -> float:
        return float(self.cost.sum())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Trials by state, where there are any."""
        found = np.bincount(self.codes, minlength=len(CODES)).tolist()
        return {state: found[code] for state, code in CODES.items() if found[code]}

    @cached_property
    def failed_cost(self) -> float:
        """Of trials that ended without a result."""
        return float(self.cost[np.isin(self.codes, FAILED_CODES)].sum())

    @cached_property
    def order(self) -> IntArray:
        """The places of the finished trials, by when they ended."""
        finished = np.flatnonzero(np.isfinite(self.finished_at))
        return finished[np.argsort(self.finished_at[finished], kind="stable")]

    @cached_property
    def spent(self) -> Array:
        """The cost of all trials when each of those in `order` ended."""
        return np.asarray(np.cumsum(self.cost[self.order]))

    @cached_property
    def elapsed(self) -> Array:
        """The seconds from when the first trial was opened to when each of those in `order` ended."""
        return np.asarray(self.finished_at[self.order] - (self.opened_at.min() if len(self) else 0.0))

    @property
    def results(self) -> list[float]:
        """The values of the trials that are done, in the order in which they ended."""
        values = self.value[self.order]
        is_result = (self.codes[self.order] == CODES[State.DONE.value]) & np.isfinite(values)
        return [float(value) for value in values[is_result]]

    def in_flight(self) -> IntArray:
        return np.flatnonzero(~np.isfinite(self.finished_at))

    def reach(self, problem: Problem, places: IntArray) -> Array:
        """How much of the full fidelity the trials at these places have, from 0 to 1."""
        texts = [self.fidelities[place] for place in places.tolist()]
        known = {text: problem.reach(json.loads(text) if text else {}) for text in set(texts)}
        return np.array([known[text] for text in texts], dtype=float)

    def best(self, problem: Problem) -> int | None:
        """The number of the best of those that are done and went furthest; None before the first."""
        places = np.flatnonzero((self.codes == CODES[State.DONE.value]) & np.isfinite(self.value))
        if not places.size:
            return None
        reach = self.reach(problem, places)
        furthest = places[reach == reach.max()]
        return int(self.number[furthest[np.argmin(problem.sign * self.value[furthest])]])


# ------------------------------------------------------------
# The best value against what was spent.


@dataclass(frozen=True)
class ProgressStep:
    """A finished trial, what all trials up to it had cost, and the best value by then."""

    trial: Trial
    spent: float
    best: float | None


def progress_of(history: History) -> list[ProgressStep]:
    """In the order in which the trials ended."""
    ended = sorted((trial for trial in history if trial.is_finished), key=lambda trial: trial.finished_at or 0.0)
    steps: list[ProgressStep] = []
    spent, best = 0.0, None
    for trial in ended:
        spent += trial.cost
        if trial.value is not None and (best is None or history.problem.better(trial.value, best)):
            best = trial.value
        steps.append(ProgressStep(trial, spent, best))
    return steps


def progress(lines: Lines, problem: Problem, *, most: int) -> Mapping[str, Json]:
    """The finished trials in the order in which they ended, at most that many: all that improved on the best stay."""
    order, spent = lines.order, lines.spent
    value = np.where(np.isin(lines.codes[order], FAILED_CODES), np.nan, lines.value[order])
    best = running_best(value, problem)
    improves = np.concatenate([[True], best[1:] != best[:-1]]) if best.size else np.zeros(0, bool)
    shown = chosen_places(order.size, most, keep=improves & np.isfinite(best))
    return {
        "number": lines.number[order][shown].tolist(),
        "spent": plain_list(spent[shown]),
        "elapsed": plain_list(lines.elapsed[shown]),
        "count": (shown + 1).tolist(),
        "value": plain_list(value[shown]),
        "best": plain_list(best[shown]),
        "of": int(order.size),
    }


def worth(lines: Lines, problem: Problem, *, parts: int = 4) -> list[dict[str, Json]]:
    """The result of each part of the spend: the best value at its end, and the gain over the part before."""
    order, spent, best = lines.order, lines.spent, running_best(lines.value[lines.order], problem)
    if not order.size or spent[-1] <= 0 or not np.isfinite(best[-1]):
        return []
    found: list[dict[str, Json]] = []
    before: float | None = None
    for part in range(1, parts + 1):
        at = int(np.searchsorted(spent, spent[-1] * part / parts * (1 - 1e-12)))
        here = float(best[min(at, order.size - 1)])
        now = here if np.isfinite(here) else None
        gain = None if now is None or before is None else abs(now - before)
        found.append({"share": part / parts, "spent": float(spent[-1]) / parts, "best": now, "gain": gain})
        before = now
    return found


def running_best(values: Array, problem: Problem) -> Array:
    """The best of the values so far, NaN before the first."""
    losses = np.where(np.isfinite(values), problem.sign * values, np.inf)
    best = np.minimum.accumulate(losses) if losses.size else losses
    return np.asarray(np.where(np.isfinite(best), problem.sign * best, np.nan))


def trend(values: list[float], problem: Problem, *, most: int = 40) -> list[float]:
    """The best value after each result, thinned to a small picture."""
    best = running_best(np.array(values, dtype=float), problem)
    if best.size <= most:
        return [float(number) for number in best]
    return [float(best[place]) for place in np.linspace(0, best.size - 1, most).astype(int)]
