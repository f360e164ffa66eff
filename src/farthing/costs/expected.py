"""What trials are taken to cost, where it is decided whether a budget pays for them."""

import math
from collections.abc import Iterable
from itertools import islice

from farthing.trials import History, Measurement, Prediction, State, Suggestion, Trial

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
    """The cost of what it has not reported yet, by what it paid between its first report and its last; else 0."""
    own = [point for point in trial.measurements if point.attempt == trial.attempt]
    reports = [point for point in own if point.value is not None and point.fidelity]
    if len(reports) < 2:
        return 0.0
    first, last = (_reach(history, trial, point) for point in (reports[0], reports[-1]))
    if last <= first:
        return 0.0
    later = (point for point in own if reports[0].sequence < point.sequence <= reports[-1].sequence)
    pace = math.fsum(amount for point in later for amount in point.cost.values()) / (last - first)
    return pace * max(0.0, history.problem.reach(trial.fidelity) - last)


def _reach(history: History, trial: Trial, point: Measurement) -> float:
    return history.problem.reach({**trial.fidelity, **point.fidelity})


def _cost_of_a_training(history: History) -> float | None:
    """The mean cost of a full training among the latest trials that are done, those of shorter ones in proportion."""
    done = (trial for trial in reversed(history) if trial.state is State.DONE and trial.cost > 0.0)
    paid = list(islice(done, LATEST))
    trained = math.fsum(_share_paid(history, trial) for trial in paid)
    return math.fsum(trial.cost for trial in paid) / trained if trained > 0.0 else None


def _share_paid(history: History, trial: Trial) -> float:
    """The share of a training that it paid for: what was in the checkpoint it began with, it did not."""
    is_warm = trial.resume_from is not None and trial.resume_checkpoint is not None
    begun = history.reach(history[trial.resume_from or 0]) if is_warm else 0.0
    return max(0.0, history.reach(trial) - begun)
