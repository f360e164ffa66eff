"""A line for each trial, in columns: enough for charts, sorting and sums, without an object for each trial."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from farthing.trials import History, Problem, State
from farthing.views.sampling import Array, IntArray

Line = tuple[int, str, float | None, float, float, float | None, int | None, str | None, str | None]
"""Number, state, value, cost, when it was opened and finished, the trial it continues, owner, fidelity as JSON."""

FAILED_STATES = (State.FAILED.value, State.LOST.value)


@dataclass(frozen=True, eq=False)
class Lines:
    """Columns by number. A time or value that there is not is NaN."""

    number: IntArray
    states: list[str]
    value: Array
    cost: Array
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
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [[]] * 9
        number, states, value, cost, opened, finished, resume_from, owners, fidelities = columns
        return cls(
            np.array(number, dtype=int),
            list(states),
            np.array(value, dtype=float),
            np.array(cost, dtype=float),
            np.array(opened, dtype=float),
            np.array(finished, dtype=float),
            list(resume_from),
            [owner or "" for owner in owners],
            list(fidelities),
        )

    def __len__(self) -> int:
        return int(self.number.size)

    @property
    def total(self) -> float:
        return float(self.cost.sum())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Trials by state, where there are any."""
        return {state.value: count for state in State if (count := self.states.count(state.value))}

    @cached_property
    def failed_cost(self) -> float:
        """Of trials that ended without a result."""
        return float(sum(self.cost[place] for place, state in enumerate(self.states) if state in FAILED_STATES))

    def in_order_of_ending(self) -> IntArray:
        """The places of the finished trials, by when they ended."""
        finished = np.flatnonzero(np.isfinite(self.finished_at))
        return finished[np.argsort(self.finished_at[finished], kind="stable")]

    def in_flight(self) -> IntArray:
        return np.flatnonzero(~np.isfinite(self.finished_at))

    def reach(self, problem: Problem) -> Array:
        """How much of the full fidelity each has, from 0 to 1."""
        known = {text: problem.reach(json.loads(text) if text else {}) for text in set(self.fidelities)}
        return np.array([known[text] for text in self.fidelities], dtype=float)

    def best(self, problem: Problem) -> int | None:
        """The number of the best of those that are done and went furthest; None before the first."""
        is_done = np.array([state == State.DONE.value for state in self.states], dtype=bool)
        places = np.flatnonzero(is_done & np.isfinite(self.value))
        if not places.size:
            return None
        reach = self.reach(problem)[places]
        furthest = places[reach == reach.max()]
        return int(self.number[furthest[np.argmin(problem.sign * self.value[furthest])]])
