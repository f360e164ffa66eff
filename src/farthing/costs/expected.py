"""The expected costs of trials, by which it is decided whether a budget pays for them."""

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from statistics import median
from typing import NamedTuple

from farthing.trials import History, Measurement, Prediction, Problem, State, Suggestion, Trial
from farthing.trials.memos import places_changed
from farthing.trials.trial import IN_FLIGHT

# ------------------------------------------------------------
# What trials paid, apart by what it was for: setting up, and the work itself.
#
# A trial that reports as it trains shows both. The cost between two reports is work alone, so it gives the rate at
# which this configuration pays for work; what the trial paid beyond that rate is its set-up: libraries, data, a
# device, a checkpoint to read and to write.


def has_paid(history: History, trial: Trial, *, saves: bool = False) -> bool:
    """Whether the cost of a trial tells what its work costs."""
    return trial.state is State.DONE and trial.cost > 0.0 and work_of(history, trial, saves=saves) > 0.0


def work_of(history: History, trial: Trial, *, saves: bool = False) -> float:
    """The share of the full work that a trial did, without what it began with."""
    return history.reach(trial) - begun_at(history, trial, saves=saves)


def begun_at(history: History, trial: Trial, *, saves: bool = False) -> float:
    """The share of the full work that a trial began with: none without a checkpoint, unless programs keep their own."""
    if trial.resume_from is None or not (saves or trial.resume_checkpoint is not None):
        return 0.0
    return history.reach(history[trial.resume_from])


class WorkRates:
    """The rates of all trials of a history, by number: a memo, which looks at new reports only."""

    def __init__(self) -> None:
        self._trials: list[Trial] = []
        self._rates: dict[int, float] = {}

    def of(self, history: History) -> Mapping[int, float]:
        trials = list(history)
        changed = places_changed(self._trials[: len(trials)], trials)
        self._rates = self._rates | {trials[place].number: rate_of(history, trials[place]) for place in changed}
        self._trials = trials
        return self._rates


def rate_of(history: History, trial: Trial) -> float:
    """The cost of the full work at the median rate between the reports of a trial; NaN with fewer than two of them.

    The median, because one increment in a few is long for reasons of the machine. Where some cost nothing, the work
    charges its amounts at other times than it reports, and its sum alone tells something.
    """
    rates = [cost / work for cost, work in increments(history, trial) if work > 0.0]
    return median(rates) if rates and min(rates) > 0.0 else math.nan


def increments(history: History, trial: Trial) -> list[tuple[float, float]]:
    """The amount paid between two reports, and the share of the full work that was done meanwhile.

    None where the first report cost nothing: then costs are charged at other times than values are reported.
    """
    if not any(fidelity.trace for fidelity in history.problem.space.fidelities.values()):
        return []
    reached = list[tuple[float, float]]()
    paid = 0.0
    for point in trial.measurements:
        if point.attempt != trial.attempt:
            continue
        paid += math.fsum(point.cost.values())
        if point.value is not None and point.fidelity:
            reached.append((paid, share_at(history, trial, point)))
    if not reached or reached[0][0] <= 0.0:
        return []
    return [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairwise(reached)]


def share_at(history: History, trial: Trial, point: Measurement) -> float:
    """The share of the full work that was done when a point was reported."""
    return history.problem.reach({**trial.fidelity, **point.fidelity})


LATEST = 100
"""Trials that say what one costs where nothing predicts it: the last that are done. A limit on time."""


def expected_cost(history: History, suggestion: Suggestion) -> Prediction | None:
    """As predicted or, where nothing is, in proportion to the share of a training: as trials cost that are done.

    None as long as there is none.
    """
    return suggestion.predicted_cost or _by_share(history, suggestion, _cost_of_a_training(history))


def cost_to_come(history: History, *, counts_waiting: bool = True) -> float:
    """The rest of the expected cost of the trials in flight, or only of those that run.

    More, if a trial's own pace says so: stragglers cost more than was predicted.
    """
    running, in_flight = history.memo(_RestInFlight)
    return in_flight if counts_waiting else running


def _by_share(history: History, suggestion: Suggestion, whole: float | None) -> Prediction | None:
    return None if whole is None else Prediction(whole * _share_to_train(history, suggestion))


def _share_to_train(history: History, suggestion: Suggestion) -> float:
    source = None if suggestion.resume_from is None else history[suggestion.resume_from]
    begun = history.reach(source) if source is not None and source.checkpoint is not None else 0.0
    return max(0.0, history.problem.reach(suggestion.fidelity) - begun)


class _Rest(NamedTuple):
    """What the rest of a trial's cost follows from: it is `whole · share − paid`, and no less than `least`."""

    share: float
    paid: float
    least: float

    @classmethod
    def of(cls, history: History, trial: Trial) -> "_Rest":
        paid = trial.cost - trial.costs.get("failed", 0.0)  # an attempt that failed is to be paid for again
        least = _rest_at_own_pace(history, trial)
        if (predicted := trial.suggestion.predicted_cost) is not None:
            return cls(0.0, 0.0, max(predicted.mean - paid, least))
        return cls(_share_to_train(history, trial.suggestion), paid, least)


class _RestInFlight:
    """The rest of the cost of the trials that run, and of those in flight: a memo, which looks at what has changed.

    Most trials of a thousand workers agree in what their rest follows from, so that it is worked out once for all of
    them. The sums are exact to the last bit of `math.fsum` over the trials: a multiple is added as the powers of two
    that it consists of.
    """

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._forget()

    def _forget(self) -> None:
        self._whole: float | None = None
        self._sums = 0.0, 0.0
        self._before: Sequence[Trial] = ()
        self._kept: dict[int, tuple[Trial, _Rest]] = {}
        self._counts: dict[State, Counter[_Rest]] = {state: Counter() for state in IN_FLIGHT}
        self._continued: dict[int, set[int]] = {}

    def of(self, history: History) -> tuple[float, float]:
        if history.problem is not self._problem or len(history) < len(self._before):
            self._forget()
            self._problem = history.problem
        changed = places_changed(self._before, history)
        for number in {*changed, *chain.from_iterable(self._continued.get(place, ()) for place in changed)}:
            self._remove(number)
            if (trial := history.in_flight_as(number)) is not None:
                self._add(history, trial)
        self._before = history
        whole = _cost_of_a_training(history)
        if changed or whole != self._whole:
            self._whole = whole
            running = self._terms(State.RUNNING)
            self._sums = math.fsum(running), math.fsum(running + self._terms(State.PENDING))
        return self._sums

    def _remove(self, number: int) -> None:
        if (known := self._kept.pop(number, None)) is None:
            return
        trial, rest = known
        counts = self._counts[trial.state]
        counts[rest] -= 1
        if not counts[rest]:
            del counts[rest]
        if trial.resume_from is not None:
            self._continued[trial.resume_from].discard(number)

    def _add(self, history: History, trial: Trial) -> None:
        rest = _Rest.of(history, trial)
        self._kept[trial.number] = trial, rest
        self._counts[trial.state][rest] += 1
        if trial.resume_from is not None:
            self._continued.setdefault(trial.resume_from, set()).add(trial.number)

    def _terms(self, state: State) -> list[float]:
        whole = self._whole or 0.0
        found = [
            (count, rest if (rest := whole * share - paid) > least else least)
            for (share, paid, least), count in self._counts[state].items()
        ]
        return [rest for count, rest in found if count == 1] + [
            math.ldexp(rest, power)
            for count, rest in found
            if count > 1
            for power in range(count.bit_length())
            if count >> power & 1
        ]


def _rest_at_own_pace(history: History, trial: Trial) -> float:
    """The cost of what it has not reported yet, at the rate between its reports; 0 where they tell none."""
    rate = rate_of(history, trial)
    if math.isnan(rate):
        return 0.0
    reported = max(share_at(history, trial, point) for point in trial.points if point.fidelity)
    return rate * max(0.0, history.problem.reach(trial.fidelity) - reported)


def _cost_of_a_training(history: History) -> float | None:
    """The mean cost of a full training among the latest trials that are done, those of shorter ones in proportion."""
    return history.memo(_LatestPaid)


class _LatestPaid:
    """The costs and the work of the trials that are done, by number: a memo, which looks at what has changed."""

    def __init__(self) -> None:
        self._trials: Sequence[Trial] = ()
        self._problem: Problem | None = None
        self._paid: list[tuple[int, float, float]] = []

    def of(self, history: History) -> float | None:
        if history.problem is not self._problem or len(history) < len(self._trials):
            self._trials, self._problem, self._paid = (), history.problem, []
        for place in places_changed(self._trials, history):
            if place < len(self._trials):
                del self._paid[bisect_left(self._paid, (place,)) : bisect_left(self._paid, (place + 1,))]
            trial = history[place]
            if trial.state is State.DONE and trial.cost > 0.0:
                insort(self._paid, (place, trial.cost, max(0.0, work_of(history, trial))))
        self._trials = history
        latest = self._paid[-LATEST:]
        trained = math.fsum([work for _, _, work in latest])
        return math.fsum([cost for _, cost, _ in latest]) / trained if trained > 0.0 else None
