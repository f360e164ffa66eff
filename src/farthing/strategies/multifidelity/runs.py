"""Runs: the trials of one configuration that carried each other on, read as one learning curve."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from farthing.errors import StorageError
from farthing.trials import History, Params, Problem, State, Trial
from farthing.trials.memos import places_changed
from farthing.trials.problem import ended_early, fidelity_known
from farthing.validation import shown

if TYPE_CHECKING:
    from farthing.models.linalg import Array  # brings SciPy, which the first suggestions do without


@dataclass(frozen=True)
class Point:
    """A point of a curve: the fidelity reached, the loss there, and its derivatives along params where reported."""

    fidelity: Mapping[str, float]
    loss: float
    gradient: Mapping[str, float] | None = None


class TrialResult(NamedTuple):
    """The result of a run's trial: how much of the full fidelity it had, all fidelities multiplied, and its loss."""

    reach: float
    loss: float


class PaidAgain(NamedTuple):
    """Of a trial that continued another: 0 where it paid for its new part only, 1 where for everything again."""

    trial: Trial
    share: float


@dataclass(frozen=True)
class Run:
    """One configuration and every trial that trained it further, the oldest first.

    With `is_end_only` its curve enters a model by its end alone. It knows no history, so that it outlasts one: as long
    as its trials are the same, it is the same object in all histories that grow from one, and so is what it keeps.
    """

    problem: Problem
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
    def reached(self) -> "Array":
        """The fidelity that the run has reached: s of its last trial that is done, (m,); all where it ended early."""
        assert self.last is not None, "only runs with a result have come anywhere"
        known = fidelity_known(self.problem, self.last)
        return np.asarray(self.problem.space.encoder.encode_fidelity([known])[0])

    @property
    def rate(self) -> float:
        """The cost of a full training at the cost per fidelity so far."""
        return self.cost / float(np.prod(self.reached))

    @cached_property
    def results(self) -> tuple[TrialResult, ...]:
        """Counts only trials that are done."""
        return tuple(
            TrialResult(_reach(self.problem, trial), self.problem.sign * trial.value)
            for trial in self.done
            if trial.value is not None
        )

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
            for point in _points(self.problem, trial):
                latest[tuple(point.fidelity.values())] = point
        measured = tuple(latest.values())
        return _best_so_far(self, measured) if measured and self.problem.best_so_far else measured

    @cached_property
    def path(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The shares of the full fidelity at which it was measured, ascending, and the losses there."""
        points = sorted((self.problem.reach(point.fidelity), point.loss) for point in self.curve)
        return tuple(share for share, _ in points), tuple(loss for _, loss in points)

    @property
    def cost(self) -> float:
        """The cost of all its trials: an estimate of one run from the start to here."""
        return sum(trial.cost for trial in self.trials)

    @cached_property
    def paid_again(self) -> tuple[PaidAgain, ...]:
        """Of each trial that continued another, as far as it can be told."""
        by_number = {trial.number: trial for trial in self.trials}
        shares = ((trial, _share_paid_again(self.problem, trial, by_number)) for trial in self.trials)
        return tuple(PaidAgain(trial, share) for trial, share in shares if share is not None)

    @cached_property
    def at_its_end(self) -> "Run":
        """The same run, whose curve enters a model by its end alone."""
        return replace(self, is_end_only=True)


def runs_of(history: History) -> list[Run]:
    """The runs of a history, in the order in which they began."""
    return history.memo(_Runs)


class _Runs:
    """The runs of the history that was asked about last: of the next one only those are made whose trials changed."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._begin()

    def _begin(self) -> None:
        self._trials: Sequence[Trial] = ()
        self._roots: dict[int, int] = {}
        self._members: dict[int, dict[int, Trial]] = {}
        self._runs: dict[int, Run] = {}

    def of(self, history: History) -> list[Run]:
        changed = places_changed(self._trials, history)
        if not self._grew_into(history, changed):
            self._begin()
            changed = list(range(len(history)))
        for root in dict.fromkeys(self._entered(history[place]) for place in changed):
            self._runs[root] = Run(history.problem, tuple(self._members[root].values()))
        self._problem, self._trials = history.problem, history
        return list(self._runs.values())

    def _grew_into(self, history: History, changed: Sequence[int]) -> bool:
        """Whether its trials are those of the last time, changed and more: each continues what it continued then."""
        if history.problem is not self._problem or len(history) < len(self._trials):
            return False
        before = (place for place in changed if place < len(self._trials))
        return all(history[place].resume_from == self._trials[place].resume_from for place in before)

    def _entered(self, trial: Trial) -> int:
        """The number of the first trial of its run, where it is entered now."""
        root = trial.number if trial.resume_from is None else self._roots[trial.resume_from]
        self._roots[trial.number] = root
        self._members.setdefault(root, {})[trial.number] = trial
        return root


def loss_up_to(run: Run, level: float) -> float:
    """The last loss of a run up to a share of the full fidelity; infinite where it has none."""
    shares, losses = run.path
    passed = bisect_right(shares, level + 1e-9)
    return losses[passed - 1] if passed else inf


def recommendable(runs: Sequence[Run]) -> list[Run]:
    """The runs with a result that can be trained further as far as is known; if there are none, all with a result.

    Equal params are one configuration: if one run of it diverged, the others count only if they came as far as that one
    was to come. Where a parameter was retired, runs with another value of it count only while there is no other run.
    """
    every = [run for run in runs if run.last is not None]
    seen = [run for run in every if run.problem.space.has(run.params)] or every
    diverged = [run for run in runs if run.has_diverged]
    return [run for run in seen if not any(_speaks_against(other, run) for other in diverged)] or seen


def _speaks_against(diverged: Run, run: Run) -> bool:
    """Whether a run that diverged is this one, or has its params and was to come further than this one did."""
    if diverged.params != run.params or run.last is None:
        return False
    return diverged is run or _reach(run.problem, run.last) < _reach(run.problem, diverged.trials[-1])


def _best_so_far(run: Run, measured: Sequence[Point]) -> tuple[Point, ...]:
    """The best of each point and those before it; a run that stopped by itself stays there to its end."""
    best = list(accumulate(measured, _better))
    curve = [replace(so_far, fidelity=point.fidelity) for so_far, point in zip(best, measured, strict=True)]
    if run.last is not None and ended_early(run.problem, run.last):
        curve.append(replace(curve[-1], fidelity=fidelity_known(run.problem, run.last)))
    return tuple(curve)


def _better(one: Point, other: Point) -> Point:
    return other if other.loss < one.loss else one


def _points(problem: Problem, trial: Trial) -> Sequence[Point]:
    """The points that a trial measured. Points that name no fidelity are on no curve, unless they are the result."""
    if trial.state in (State.FAILED, State.LOST):
        return ()
    names, sign = tuple(problem.space.fidelities), problem.sign
    named = [
        Point(_complete(measured.fidelity, names, trial), sign * value, measured.gradient)
        for measured in trial.points
        if measured.fidelity and (value := measured.value) is not None
    ]
    if trial.value is None or (trial.state is State.PRUNED and named):
        return named
    result = Point(_complete(trial.fidelity, names, trial), sign * trial.value)
    is_named = any(point.fidelity == result.fidelity for point in named)
    return named if is_named or ended_early(problem, trial) else [*named, result]


def _complete(fidelity: Mapping[str, float], names: tuple[str, ...], trial: Trial) -> Mapping[str, float]:
    """All fidelities in their order: those that a point does not name are the trial's."""
    if tuple(fidelity) == names:
        return fidelity
    known = {**trial.fidelity, **fidelity}
    if missing := [name for name in names if name not in known]:
        raise StorageError(
            f"Trial {trial.number} must have a fidelity {missing[0]!r}, got {shown(dict(trial.fidelity))}. Restore the "
            "database from a copy. `farthing check` says more."
        )
    return {name: known[name] for name in names}


def _reach(problem: Problem, trial: Trial) -> float:
    return problem.reach(fidelity_known(problem, trial))


def _share_paid_again(problem: Problem, trial: Trial, run: Mapping[int, Trial]) -> float | None:
    """0 where a continuation paid for its new part only, 1 where it paid for everything again."""
    if trial.state is not State.DONE or trial.resume_from is None or trial.cost <= 0:
        return None
    source = run[trial.resume_from]
    before = sum(earlier.cost for earlier in _lineage(source, run))
    work, done = _reach(problem, trial), _reach(problem, source)
    if before <= 0 or work <= done:
        return None
    rate = before / done
    return float((trial.cost - rate * (work - done)) / (rate * done))


def _lineage(trial: Trial, run: Mapping[int, Trial]) -> list[Trial]:
    """The trials of a run that this one carries on, the oldest first, itself last."""
    chain = [trial]
    while (parent := chain[-1].resume_from) is not None:
        chain.append(run[parent])
    return chain[::-1]


# ------------------------------------------------------------
# Chooses the runs, and the points of their curves, that a model is conditioned on if all would take too long.
#
# The most promising runs keep their curves, because they are continued or recommended. Of the others some keep their
# ends alone, which say where not to search. The number kept does not depend on the number of runs, so the time of a
# suggestion stays bounded.


MOST_POINTS = 400
"""Points of curves that a process is conditioned on, at least half of them of whole curves. A limit on time, not tuned:
a hundred runs with the default of `TraceKG`, so that shorter studies are as they would be without it."""
NEIGHBOURS = 64
"""Results at the next lower and the next higher fidelities that a run is compared with. A guess, not tuned."""


def active_runs(history: History, runs: Sequence[Run], *, retain: int, most: int = MOST_POINTS) -> list[Run]:
    """The runs to model, in their order: all if they have at most `most` points. Those in flight are among them."""
    each = retain if any(fidelity.trace for fidelity in history.problem.space.fidelities.values()) else 1
    if each * len(runs) <= most:
        return list(runs)
    order = np.argsort(shares_better(runs), kind="stable")
    whole = max(most // 2 // each, (most - len(runs)) // max(each - 1, 1))
    rest = order[whole:]
    spread = rest[np.linspace(0, rest.size - 1, min(rest.size, most - each * whole)).astype(int)]
    best, ends = set(order[:whole].tolist()), set(spread.tolist())
    return [
        run if i in best else run.at_its_end for i, run in enumerate(runs) if i in best or i in ends or run.is_running
    ]


def shares_better(runs: Sequence[Run]) -> "Array":
    """The share of the results at similar fidelities that are better than the last one of each run; 1 without any.

    Losses at different fidelities are not comparable, so a short run competes with short runs, and with the results
    that longer ones had on their way.
    """
    done = [(i, result) for i, run in enumerate(runs) for result in run.results]
    level = np.array([result.reach for _, result in done])
    loss = np.array([result.loss for _, result in done])
    order = np.argsort(level, kind="stable")
    first = np.clip(np.arange(order.size) - NEIGHBOURS, 0, max(0, order.size - 2 * NEIGHBOURS - 1))
    window = first[:, None] + np.arange(min(order.size, 2 * NEIGHBOURS + 1))
    shares = np.ones(order.size)
    shares[order] = np.mean(loss[order][window] < loss[order][:, None], axis=1)
    found = np.ones(len(runs))
    for (i, _), share in zip(done, shares.tolist(), strict=True):
        found[i] = share  # the last one of a run stays
    return found
