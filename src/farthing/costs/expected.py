"""What trials are taken to cost, where it is decided whether a budget pays for them."""

import math
from collections.abc import Iterable
from itertools import islice

from farthing.costs.paid import rate_of, share_at, work_of
from farthing.trials import History, Prediction, State, Suggestion, Trial

LATEST = 100
"""Trials that say what one costs where nothing predicts it: the last that are done. A limit on time."""


def expected_cost(history: History, suggestion: Suggestion) -> Prediction | None:
    """As predicted or, where nothing is, in proportion to the share of a training: as trials cost that are done.

    None as long as there is none.
    """
    return suggestion.predicted_cost or _by_share(history, suggestion, _cost_of_a_training(history))


def cost_to_come(history: History, trials: Iterable[Trial]) -> float:
    """What these trials in flight are taken to cost still: of what is expected the rest.

    More, if a trial's own pace says so: stragglers cost more than was predicted.
    """
    in_flight, paces = list(trials), history.memo(OwnPaces)
    is_asked = any(trial.suggestion.predicted_cost is None for trial in in_flight)
    whole = _cost_of_a_training(history) if is_asked else None
    return math.fsum(max(_rest(history, trial, whole), paces.rest(history, trial)) for trial in in_flight)


def _rest(history: History, trial: Trial, whole: float | None) -> float:
    expected = trial.suggestion.predicted_cost or _by_share(history, trial.suggestion, whole)
    paid = trial.cost - trial.costs.get("failed", 0.0)  # an attempt that failed is to be paid for again
    return 0.0 if expected is None else max(0.0, expected.mean - paid)


def _by_share(history: History, suggestion: Suggestion, whole: float | None) -> Prediction | None:
    if whole is None:
        return None
    source = None if suggestion.resume_from is None else history[suggestion.resume_from]
    begun = history.reach(source) if source is not None and source.checkpoint is not None else 0.0
    return Prediction(whole * max(0.0, history.problem.reach(suggestion.fidelity) - begun))


class OwnPaces:
    """What running trials cost still at their own pace, worked out again for those that have reported: a memo."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Trial, float]] = {}

    def of(self, history: History) -> "OwnPaces":
        return self

    def rest(self, history: History, trial: Trial) -> float:
        known = self._kept.get(trial.number)
        if known is None or known[0] is not trial:
            known = self._kept[trial.number] = (trial, _rest_at_own_pace(history, trial))
        return known[1]


def _rest_at_own_pace(history: History, trial: Trial) -> float:
    """The cost of what it has not reported yet, at the rate between its reports; 0 where they tell none."""
    rate = rate_of(history, trial)
    if math.isnan(rate):
        return 0.0
    reported = max(share_at(history, trial, point) for point in trial.points if point.fidelity)
    return rate * max(0.0, history.problem.reach(trial.fidelity) - reported)


def _cost_of_a_training(history: History) -> float | None:
    """The mean cost of a full training among the latest trials that are done, those of shorter ones in proportion."""
    done = (trial for trial in reversed(history) if trial.state is State.DONE and trial.cost > 0.0)
    paid = list(islice(done, LATEST))
    trained = math.fsum(max(0.0, work_of(history, trial)) for trial in paid)
    return math.fsum(trial.cost for trial in paid) / trained if trained > 0.0 else None
