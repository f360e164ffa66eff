"""The basket: paused runs that can be continued, and the savings (section 2.6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.strategies.multifidelity.takg import DROPPED
from farthing.trials import History, noted

if TYPE_CHECKING:
    from farthing.models.linalg import Array  # brings SciPy, which the first suggestions do without


@dataclass(frozen=True)
class Basket:
    """Paused runs, by their places in the list of runs. `saves` says that one without a checkpoint saves as well."""

    runs: Sequence[Run]
    places: tuple[int, ...]
    saves: bool

    @classmethod
    def of(
        cls, history: History, runs: Sequence[Run], fidelities: Fidelities, *, taken: Collection[int] = ()
    ) -> Basket:
        """Runs with a result that are not complete, not running, not diverged, and not among those that are `taken`."""
        places = [
            i
            for i, run in enumerate(runs)
            if i not in taken and run.is_paused and not fidelities.is_complete(run.reached)
        ]
        return cls(runs, tuple(places), continuing_saves(history))

    @property
    def last_trials(self) -> set[int]:
        """The numbers of the trials that its runs go on from."""
        return {last.number for place in self.places if (last := self.runs[place].last) is not None}

    def kept(self, history: History) -> Basket:
        """Those that no suggestion has dropped from a full basket (`published`)."""
        dropped = {number for trial in history for number in noted(trial.note).get(DROPPED, ())}
        return replace(self, places=tuple(i for i in self.places if self.runs[i].trials[0].number not in dropped))

    def best(self, promise: Array, most: int) -> Basket:
        """The `most` runs of highest promise, which is one number for each place."""
        kept = np.sort(np.argsort(-promise, kind="stable")[:most])
        return replace(self, places=tuple(self.places[i] for i in kept))

    def begun(self, place: int) -> Array:
        """The fidelity that the run has reached, or 0 if it would have to start over."""
        return starts_at(self.runs[place], is_saving=self.saves)


def starts_at(run: Run, *, is_saving: bool) -> Array:
    """From where a continuation of a run pays; `is_saving` says that it saves without a checkpoint as well."""
    assert run.last is not None, "only runs with a result can be continued"
    return run.reached * (is_saving or run.last.checkpoint is not None)


def continuing_saves(history: History) -> bool:
    """Whether a run without a checkpoint of ours can still be continued, by a program that keeps its own state.

    With a declared cost, or if any trial left a checkpoint, it cannot. Otherwise it is assumed until continuations
    are seen to cost as much as runs from the start.
    """
    if history.problem.declared_cost is not None or history.left_checkpoints:
        return False
    paid = (one for run in runs_of(history) for one in run.paid_again)
    shares = [one.share for one in paid if not history.is_outdated(one.trial)]
    return not shares or float(np.median(shares)) < 0.5
