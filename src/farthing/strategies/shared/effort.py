"""How much a suggestion may think, so that suggesting takes a tenth of the time of the trials.

No clock decides. What a trial takes is a power of ten that the study decided and stored (`trials/durations.py`), what
a suggestion takes is a figure of its strategy (`Strategy.thinking`), and the rest are counts: the same seed gives the
same study on a busy machine, and after a kill.
"""

from collections.abc import Callable
from itertools import islice
from math import ceil, inf
from statistics import fmean

from farthing.costs import EFFORT_LEVELS, Budget, EffortLevel, Remaining
from farthing.strategies.shared.strategy import Strategy
from farthing.trials import History, State, Trial
from farthing.trials.durations import decade_of, share_trained

FREE = 2.0
"""Seconds of suggesting in all that any study may take, however short its trials: the first suggestions cost least
and matter most. With less effort from the start, Branin with eight workers and trials of 50 ms was left at a
median regret of .017 after 30 trials instead of .009 (worse in 5 of 7 pairs); staleness came on top. Several workers
would wait for all of it, so that a budget that does not last long has less."""
SHARE = 0.1
"""Suggesting for all workers may take this share of a trial's seconds."""
RELATIVE: dict[EffortLevel, float] = {"ordinary": 1.0, "frugal": 0.55, "screen": 0.45, "several": 0.45}
"""Seconds of a suggestion at each level, beside those with all effort: LogEI took 16, 9, 7.5 and 7.5 ms of CPU in
studies of 300 trials, TraceKG 53, 37, 33 and 31 in studies of 100 (n = 1)."""
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
    if seconds is None or len(history) * strategy.thinking <= _free(history, seconds, workers=workers):
        return EFFORT_LEVELS[0]
    ordinary, most = seconds_of_thinking(strategy, history), SHARE * seconds / workers
    for level in EFFORT_LEVELS:
        if RELATIVE[level] * ordinary <= most:
            return level
    return EFFORT_LEVELS[-1]


def seconds_of_thinking(strategy: Strategy, history: History) -> float:
    """The seconds that a suggestion with all effort takes."""
    return strategy.thinking * (1.0 + len(history) / GROWTH)


def can_pay_for_model(strategy: Strategy, history: History, is_of_model: Callable[[Trial], bool]) -> bool:
    """Whether so many trials were suggested since the last one of the model that another keeps to half of the share.

    All workers may have to wait for it, and those in flight stand for them.
    """
    last, seconds = next(filter(is_of_model, reversed(history)), None), seconds_of_a_trial(history)
    if last is None or seconds is None:
        return True
    taken = RELATIVE[EFFORT_LEVELS[-1]] * seconds_of_thinking(strategy, history)
    workers = len(history.in_flight) + 1
    return len(history) - last.number >= ceil(taken * workers / (0.5 * SHARE * seconds))


def seconds_of_a_trial(history: History) -> float | None:
    """About the seconds that a trial takes, from the stored power of ten; None while nothing is decided."""
    decade = decade_of(history.events)
    if decade is None:
        return None
    done = (trial for trial in reversed(history) if trial.state is State.DONE)
    shares = [share_trained(history, trial) for trial in islice(done, RECENT)]
    return 10.0**decade * (fmean(shares) if shares else 1.0)


def _free(history: History, seconds: float, *, workers: int) -> float:
    """The seconds of suggesting that nobody has to save: a tenth of what the budget lasts, where several wait."""
    budget = Budget.in_force(history)
    if workers == 1 or budget is None:
        return FREE
    by_trials = inf if budget.trials is None else budget.trials * seconds / workers
    by_cost = budget.cost / workers if budget.cost is not None and history.problem.cost_is_time else inf
    by_clock = inf if budget.seconds is None else budget.seconds
    return min(FREE, SHARE * min(by_trials, by_cost, by_clock))
