"""How much a suggestion may think, so that suggesting takes a tenth of the time of the trials.

No clock decides. What a trial takes is a power of ten that the study decided and stored (`trials/events.py`), what
a suggestion takes is a figure of its strategy (`Strategy.thinking`), and the rest are counts: the same seed gives the
same study on a busy machine, and after a kill.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from math import fsum, inf

from farthing.costs import EFFORT_LEVELS, Budget, EffortLevel, Remaining
from farthing.strategies.shared.strategy import Strategy
from farthing.trials import History, Problem, State, Trial
from farthing.trials.events import share_trained
from farthing.trials.memos import places_changed

FREE = 2.0
"""Seconds of suggesting in all that any study may take, however short its trials: the first suggestions cost least
and matter most. With less effort from the start, Branin with eight workers and trials of 50 ms was left at a
median regret of .017 after 30 trials instead of .009 (worse in 5 of 7 pairs); staleness came on top. Several workers
would wait for all of it, so that a budget that does not last long has less. So it has where haste saves most of it."""
SHARE = 0.1
"""Suggesting for all workers may take this share of a trial's seconds."""
OF_BUDGET = 0.02
"""A model of learning curves may take this share of what a budget lasts: with the halving in between, all of suggesting
stays below a twentieth (`benchmarks.first_hour` and its record `first-hour`). A trial's length is known to a power of
ten only, and a budget exactly."""
RELATIVE: dict[EffortLevel, float] = {"ordinary": 1.0, "frugal": 0.55, "screen": 0.45}
"""Seconds of a suggestion beside those with all effort; with the least it is `Strategy.haste`. LogEI took 16, 9, 7.5
and 7.5 ms of CPU in studies of 300 trials, TraceKG 53, 37, 33 and 31 in studies of 100 (n = 1)."""
GROWTH = 250
"""Trials that make a suggestion take twice as long. A guess from the same studies."""
RECENT = 50
"""Trials whose mean share of a full trial stands for the next one; a guess, not tuned."""


def effort_level(strategy: Strategy, history: History, budget: Remaining) -> EffortLevel:
    """The effort that the run allows; without a run that decides, what one with one worker would."""
    return budget.effort or allowed_effort(strategy, history, workers=1)


def allowed_effort(strategy: Strategy, history: History, *, workers: int) -> EffortLevel:
    """The most effort with which suggesting for that many workers takes a tenth of the time of their trials."""
    seconds = seconds_of_a_trial(history)
    if seconds is None or len(history) * strategy.thinking <= _free(strategy, history, seconds, workers=workers):
        return EFFORT_LEVELS[0]
    ordinary, most = seconds_of_thinking(strategy, history), SHARE * seconds / workers
    for level in EFFORT_LEVELS:
        if relative(strategy, level) * ordinary <= most:
            return level
    return EFFORT_LEVELS[-1]


def relative(strategy: Strategy, level: EffortLevel) -> float:
    """The seconds of a suggestion at that level, beside those with all effort."""
    return RELATIVE.get(level, strategy.haste)


def seconds_of_thinking(strategy: Strategy, history: History) -> float:
    """The seconds that a suggestion with all effort takes."""
    return strategy.thinking * (1.0 + len(history) / GROWTH)


def can_pay_for_model(
    strategy: Strategy, history: History, is_of_model: Callable[[Trial], bool], *, effort: EffortLevel
) -> bool:
    """Whether the model can afford another suggestion of that effort.

    Its thinking may take half of `SHARE` of the training so far and one full trial more, and `OF_BUDGET` of what the
    budget lasts. Up to `FREE` the latter alone counts.

    It goes by the whole study and not by the last trials: halving buys short ones, whose length would then say that the
    model is too expensive. All workers may have to wait for it, and those in flight stand for them.
    """
    if history.decade is None:
        return True
    full, workers = 10.0**history.decade, len(history) - history.finished + 1
    trained, thought = history.memo(_Whole, is_of_model)
    next_one = relative(strategy, effort) * (1.0 + len(history) / GROWTH)
    taken = strategy.thinking * (strategy.haste * thought + next_one)
    earned = 0.5 * SHARE * full * (trained + 1.0) / workers
    return taken <= min(max(earned, FREE), OF_BUDGET * _lasting(history, full, workers=workers))


class _Whole:
    """How many full trials all trials have trained together, and how often the model thought, as `GROWTH` counts it."""

    def __init__(self, is_of_model: Callable[[Trial], bool]) -> None:
        self._is_of_model = is_of_model
        self._trials: Sequence[Trial] = ()
        self._problem: Problem | None = None
        self._shares: dict[int, float] = {}
        self._trained, self._thought = 0.0, 0.0

    def of(self, history: History) -> tuple[float, float]:
        if history.problem is not self._problem or len(history) < len(self._trials):
            self._trials, self._problem, self._shares = (), history.problem, {}
            self._trained = self._thought = 0.0
        for place in places_changed(self._trials, history):
            trial, before = history[place], self._shares.get(place)
            if before is None:
                self._thought += (1.0 + place / GROWTH) * self._is_of_model(trial)
            self._shares[place] = 0.0 if trial.state in (State.FAILED, State.LOST) else share_trained(history, trial)
            self._trained += self._shares[place] - (before or 0.0)
        self._trials = history
        return self._trained, self._thought


def seconds_of_a_trial(history: History) -> float | None:
    """About the seconds that a trial takes, from the stored power of ten; None while nothing is decided."""
    return None if history.decade is None else 10.0**history.decade * history.memo(_RecentShare)


class _RecentShare:
    """The mean share of a full trial that the latest results had; kept, because before them there may be a thousand
    trials that run.
    """

    def __init__(self) -> None:
        self._trials: Sequence[Trial] = ()
        self._problem: Problem | None = None
        self._shares: list[tuple[int, float]] = []
        self._mean = 1.0

    def of(self, history: History) -> float:
        if history.problem is not self._problem or len(history) < len(self._trials):
            self._trials, self._problem, self._shares, self._mean = (), history.problem, [], 1.0
        changed = places_changed(self._trials, history)
        for place in changed:
            before = self._trials[place] if place < len(self._trials) else None
            if before is not None and before.state is State.DONE:
                del self._shares[bisect_left(self._shares, (place, -inf))]
            if history[place].state is State.DONE:
                insort(self._shares, (place, share_trained(history, history[place])))
        self._trials = history
        if changed:
            shares = [share for _, share in self._shares[-RECENT:]]
            self._mean = fsum(shares) / len(shares) if shares else 1.0
        return self._mean


def _free(strategy: Strategy, history: History, seconds: float, *, workers: int) -> float:
    """The seconds of suggesting that nobody has to save: a tenth of what the budget lasts, where several wait or haste
    saves most of them.
    """
    saves = workers > 1 or strategy.haste < RELATIVE["screen"]
    return min(FREE, SHARE * _lasting(history, seconds, workers=workers)) if saves else FREE


def _lasting(history: History, seconds: float, *, workers: int) -> float:
    """How long the budget lasts, if each trial takes that many seconds; for ever without one."""
    budget = Budget.in_force(history)
    if budget is None:
        return inf
    by_trials = inf if budget.trials is None else budget.trials * seconds / workers
    by_cost = budget.cost / workers if budget.cost is not None and history.problem.cost_is_time else inf
    by_clock = inf if budget.seconds is None else budget.seconds
    return min(by_trials, by_cost, by_clock)


# ------------------------------------------------------------
# The share of the budget that is left, for strategies that cool the weight of cost.


def share_left(history: History, budget: Remaining) -> float:
    """The share of the budget that is left, by the limit nearest to its end; all of it if there is none.

    It is γ of CArBO (Lee et al.): cheap points first, the best ones last.
    """
    spent = {"cost": history.cost, "seconds": history.memo(_Elapsed), "trials": float(history.configurations)}
    left = {"cost": budget.cost, "seconds": budget.seconds, "trials": budget.trials}
    shares = [_share(amount, amount + spent[name]) for name, amount in left.items() if amount < inf]
    return min(shares, default=1.0)


def _share(left: float, total: float) -> float:
    return min(1.0, max(0.0, left / total)) if total > 0.0 else 0.0


class _Elapsed:
    """Seconds from the first trial to the last thing that happened to one: a memo, which looks at what has changed.

    Pauses between runs count too.
    """

    def __init__(self) -> None:
        self._trials: Sequence[Trial] = ()
        self._first, self._last = inf, -inf

    def of(self, history: History) -> float:
        changed = places_changed(self._trials, history)
        known = [(self._trials[place], history[place]) for place in changed if place < len(self._trials)]
        if len(history) < len(self._trials) or any(_is_shorter(*times) for times in known):
            changed, self._first, self._last = list(range(len(history))), inf, -inf
        self._first = min([self._first, *(history[place].opened_at for place in changed)])
        self._last = max([self._last, *(_last_time(history[place]) for place in changed)])
        self._trials = history
        return self._last - self._first if self._trials else 0.0


def _is_shorter(before: Trial, after: Trial) -> bool:
    """Whether a trial began later or ended earlier than was known: one that failed may be waiting again."""
    return after.opened_at > before.opened_at or _last_time(after) < _last_time(before)


def _last_time(trial: Trial) -> float:
    return trial.finished_at or trial.opened_at
