"""What trials are taken to cost, where it is decided whether a budget pays for them."""

import math
from collections.abc import Iterable

from farthing.trials import History, Prediction, Suggestion, Trial
from farthing.trials.measurement import Measurement


def expected_cost(history: History, suggestion: Suggestion) -> Prediction | None:
    """As predicted or, where nothing is, in proportion to the share of a training: as trials cost that are done.

    None as long as there is none.
    """
    return suggestion.predicted_cost or _by_share(history, suggestion, _cost_of_a_training(history))


def cost_to_come(history: History, trials: Iterable[Trial]) -> float:
    """What these trials in flight are taken to cost still."""
    whole = _cost_of_a_training(history)
    return math.fsum(_rest(history, trial, whole) for trial in trials)


def _rest(history: History, trial: Trial, whole: float | None) -> float:
    """What is left of the expected cost; more, if the trial's own pace says so: stragglers cost more than predicted."""
    expected = trial.suggestion.predicted_cost or _by_share(history, trial.suggestion, whole)
    paid = trial.cost - trial.costs.get("failed", 0.0)  # an attempt that failed is to be paid for again
    return max(0.0, 0.0 if expected is None else expected.mean - paid, _rest_at_own_pace(history, trial))


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


def _by_share(history: History, suggestion: Suggestion, whole: float | None) -> Prediction | None:
    if whole is None:
        return None
    source = None if suggestion.resume_from is None else history[suggestion.resume_from]
    begun = history.reach(source) if source is not None and source.checkpoint is not None else 0.0
    return Prediction(whole * max(0.0, history.problem.reach(suggestion.fidelity) - begun))


def _share_paid(history: History, trial: Trial) -> float:
    """The share of a training that it paid for: what was in the checkpoint it began with, it did not."""
    begun = (
        history.reach(history[trial.resume_from]) if trial.resume_checkpoint and trial.resume_from is not None else 0.0
    )
    return max(0.0, history.reach(trial) - begun)


def _cost_of_a_training(history: History) -> float | None:
    """The mean cost of a full training among the trials that are done, those of shorter ones in proportion."""
    paid = [trial for trial in history.done if trial.cost > 0.0]
    trained = math.fsum(_share_paid(history, trial) for trial in paid)
    return math.fsum(trial.cost for trial in paid) / trained if trained > 0.0 else None
