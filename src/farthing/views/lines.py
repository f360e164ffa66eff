"""A line for each trial, in columns: enough for charts, sorting and sums, without an object for each trial."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from farthing.trials import History, Problem, State
from farthing.views.sampling import Array, IntArray

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
        """What all trials had cost when each of those in `order` ended."""
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
