"""How far runs will be beyond their limits when they are trained in full, by what longer runs did from there on.

The seconds of a training grow with every epoch, and a cross entropy falls at first: a limit that holds on a rung may
not hold in the end, and one that does not may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.trials import State, Trial
from farthing.trials.objectives import bounds_of, values_of

if TYPE_CHECKING:
    from farthing.models.linalg import Array
    from farthing.strategies.multifidelity.halving import Rungs

PROOFS = 3
"""Runs that went on from a rung before a median of them says what becomes of a quantity there."""


@dataclass(frozen=True, eq=False)
class InTheEnd:
    """The excess of each limit (c,) that is expected at full fidelity, and how far such forecasts were off at most.

    Where too few runs came that far it is a guess.
    """

    excess: Array
    error: Array
    is_guess: bool

    @property
    def is_beyond(self) -> bool:
        """Whether it is beyond a limit even if the forecast is as wrong as the worst one was."""
        return not self.is_guess and bool(np.any(self.excess > self.error))


@dataclass(frozen=True, eq=False)
class _Step:
    """What becomes of each limited quantity q (c,) from one rung to the next: ratio·q + shift, at most `error` off."""

    ratio: Array
    shift: Array
    error: Array
    is_guess: bool = False

    @classmethod
    def through(cls, before: Array, after: Array) -> _Step:
        """The median ratio of these runs (n, c), or their median difference: what fits better in the median."""
        ones, zeros = np.ones(before.shape[1]), np.zeros(before.shape[1])
        kept = np.where(before != 0.0, before, np.inf)
        candidates = [(ones, np.median(after - before, axis=0)), (np.median(after / kept, axis=0), zeros)]
        errors = np.array([np.abs(after - (ratio * before + shift)) for ratio, shift in candidates])
        best = np.argmin(np.median(errors, axis=1), axis=0), np.arange(before.shape[1])
        ratios, shifts = (np.array(side) for side in zip(*candidates, strict=True))
        return cls(ratios[best], shifts[best], errors.max(axis=1)[best])


def forecasts(rungs: Rungs) -> Mapping[int, InTheEnd]:
    """Of every trial with a result, by number."""
    history, limits = rungs.history, bounds_of(rungs.history.problem).values()
    measured = {trial.number: np.array(found) for trial in history if (found := _limited(rungs, trial)) is not None}
    steps = _steps(rungs, measured)
    expected = {}
    for number, quantities in measured.items():
        value, error, ahead = quantities, np.zeros(quantities.size), steps[rungs.rung_of(history[number]) :]
        for step in ahead:
            value, error = step.ratio * value + step.shift, np.abs(step.ratio) * error + step.error
        excess = np.array([limit.excess(float(one)) for limit, one in zip(limits, value, strict=True)])
        expected[number] = InTheEnd(excess, error, any(step.is_guess for step in ahead))
    return expected


def _limited(rungs: Rungs, trial: Trial) -> list[float] | None:
    """The quantities under a limit as a trial measured them last; None without a result on a rung."""
    has_ended = trial.state in (State.DONE, State.PRUNED) and rungs.rung_of(trial) is not None
    values = values_of(rungs.history.problem, trial) if has_ended else None
    return None if values is None else [values[name] for name in bounds_of(rungs.history.problem)]


def _steps(rungs: Rungs, measured: Mapping[int, Array]) -> Sequence[_Step]:
    """From each rung to the next. One that too few runs took is as the one before; the first changes nothing."""
    pairs: list[list[tuple[Array, Array]]] = [[] for _ in rungs.levels[1:]]
    for number, after in measured.items():
        trial = rungs.history[number]
        if trial.resume_from is None or trial.resume_from not in measured:
            continue
        here = rungs.rung_of(rungs.history[trial.resume_from])
        if here is not None and rungs.rung_of(trial) == here + 1:
            pairs[here].append((measured[trial.resume_from], after))
    nothing = np.zeros(len(bounds_of(rungs.history.problem)))
    latest, steps = _Step(nothing + 1.0, nothing, nothing), []
    for some in pairs:
        if len(some) >= PROOFS:
            latest = _Step.through(*(np.array(side) for side in zip(*some, strict=True)))
            steps.append(latest)
        else:
            steps.append(replace(latest, is_guess=True))
    return steps
