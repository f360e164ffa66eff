"""The cost of a trial's work: measured seconds, amounts the work charged, or a function the user declared."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from farthing.costs import Remaining
from farthing.trials import (
    Attempt,
    History,
    Measurement,
    Outcome,
    Params,
    Prediction,
    Problem,
    Rate,
    State,
    Suggestion,
    Trial,
    rate_of,
)
from farthing.trials.events import Learned
from farthing.trials.objectives import COST

if TYPE_CHECKING:
    from farthing.costs.learned import LearnedCost

LATEST, NEAR = 100, 20.0
"""Costs are predicted for strategies that do not once what is left is less than so many times the dearest of the
latest trials: before, nothing is decided by it, and predicting takes milliseconds. A limit on time, not tuned."""
LEAST_DECADE = -1
"""The least power of ten of a trial's seconds at which its cost is predicted for strategies that do not: predicting
takes some milliseconds. A limit on time."""


class Prices:
    """Puts the right cost on suggestions, reports and outcomes."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._is_declared = problem.declared_cost is not None
        self._paid: dict[Attempt, float] = {}
        self._first: FirstCosts | None = None
        self.rate: Rate | None = None
        """The price of a measured second, in a study with prices."""

    def suggestion(self, suggestion: Suggestion, history: History, remaining: Remaining) -> Suggestion:
        """With its predicted cost, where one is declared or learnt and the strategy gave none."""
        if suggestion.predicted_cost is not None:
            return suggestion
        if not self._is_declared:
            return self._by_costs_so_far(self._by_earlier_costs(suggestion, history, remaining), history, remaining)
        source = None if suggestion.resume_from is None else history[suggestion.resume_from]
        head_start = self._problem.cost_of(suggestion.params, source.fidelity) if source and source.checkpoint else 0.0
        cost = max(0.0, self._problem.cost_of(suggestion.params, suggestion.fidelity) - head_start)
        return replace(suggestion, predicted_cost=Prediction(cost))

    def _by_costs_so_far(self, suggestion: Suggestion, history: History, remaining: Remaining) -> Suggestion:
        """The cost to expect from trials so far, where a budget asks and a trial takes longer than predicting."""
        left = remaining.most_to_pay(in_seconds=self._problem.cost_unit == "seconds")
        if suggestion.predicted_cost is not None or left == math.inf:
            return suggestion
        decade, dearest = history.decade, max((trial.cost for trial in history[-LATEST:]), default=0.0)
        if left > NEAR * dearest or (decade is not None and decade < LEAST_DECADE):
            return suggestion
        from farthing.models.linalg import one_thread
        from farthing.strategies.shared.cost_model import predicted_cost

        with one_thread():
            return replace(suggestion, predicted_cost=predicted_cost(history, suggestion))

    def _by_earlier_costs(self, suggestion: Suggestion, history: History, remaining: Remaining) -> Suggestion:
        """The cost of a new run by those of earlier studies, as long as no model chooses it.

        Another machine or more data may change all costs by a factor. As long as nothing was paid here, it is not
        known, so that a prediction refuses no trial: it is at most what is left of the budget.
        """
        is_first = suggestion.resume_from is None and suggestion.predicted_value is None
        if history.learned is None or not is_first:
            return suggestion
        if self._first is None or self._first.space != history.problem.space:
            self._first = first_costs(history)
        if self._first is None:
            return suggestion
        reach = self._problem.reach(suggestion.fidelity)
        predicted = self._first.predicted(suggestion.params, history, reach=reach)
        if not history.cost:
            seconds = remaining.seconds if self._problem.cost_unit == "seconds" else math.inf
            predicted = Prediction(min(predicted.mean, remaining.cost, seconds))
        return replace(suggestion, predicted_cost=predicted)

    def begin(self, trial: Trial, *, resumed_at: Mapping[str, float] | None) -> None:
        """Notes what an attempt need not pay, because it starts from a checkpoint at that fidelity."""
        if self._is_declared:
            paid = self._problem.cost_of(trial.params, resumed_at) if resumed_at is not None else 0.0
            self._paid[Attempt(trial.number, trial.attempt)] = paid

    def measurement(self, trial: Trial, measurement: Measurement) -> Measurement:
        if measurement.charged:
            return measurement
        if self._problem.measures_cost and not self._is_declared:
            rate = rate_of(self.rate, trial.params)
            return measurement if rate is None else _priced(measurement, rate)
        if not self._is_declared:
            return replace(measurement, cost={})
        attempt = Attempt(trial.number, trial.attempt)
        reached = self._problem.cost_of(trial.params, {**trial.fidelity, **measurement.fidelity})
        due = max(0.0, reached - self._paid.get(attempt, 0.0))
        self._paid[attempt] = max(reached, self._paid.get(attempt, 0.0))
        return replace(measurement, cost={"training": due}, charged=True)

    def outcome(self, trial: Trial, outcome: Outcome) -> Outcome:
        """Work that failed pays what it had reported and, where cost is measured, the seconds since."""
        if not self._is_declared or outcome.state is State.DONE:
            priced = [self.measurement(trial, point) for point in outcome.measurements]
        else:
            priced = [point if point.charged else replace(point, cost={}) for point in outcome.measurements]
        return outcome if priced == list(outcome.measurements) else replace(outcome, measurements=priced)

    def end(self, attempt: Attempt) -> None:
        self._paid.pop(attempt, None)

    def of_full_run(self, history: History, trial: Trial, new: Sequence[Measurement]) -> list[Measurement]:
        """The new measurements of a trial, each value with the price of a full run, unless the work reported one."""
        last = next((point for point in reversed(new) if point.value is not None and COST not in point.metrics), None)
        if last is None:
            return list(new)
        from farthing.models.linalg import one_thread
        from farthing.strategies.shared.cost_model import full_price

        with one_thread():
            price = full_price(history, _so_far(trial, new, {**trial.fidelity, **last.fidelity}))
        return [
            point if point.value is None else replace(point, metrics={COST: price, **point.metrics}) for point in new
        ]


def _so_far(trial: Trial, new: Sequence[Measurement], fidelity: Mapping[str, float]) -> Trial:
    """The trial with new measurements, as if no more than this fidelity had been asked of it.

    An attempt that goes on from a checkpoint of an earlier one uses what that one paid.
    """
    measurements = [*trial.measurements, *(replace(point, attempt=trial.attempt) for point in new)]
    if trial.checkpoint is not None:
        measurements = [replace(point, attempt=trial.attempt) for point in measurements]
    suggestion = replace(trial.suggestion, fidelity=fidelity)
    return replace(trial, suggestion=suggestion, state=State.DONE, measurements=measurements)


def _priced(measurement: Measurement, rate: float) -> Measurement:
    """Its seconds as money. The rate stays with it: a later change of prices changes no bill."""
    cost = {kind: seconds * rate for kind, seconds in measurement.cost.items()}
    saved = {reason: seconds * rate for reason, seconds in measurement.saved.items()}
    return replace(measurement, cost=cost, saved=saved, rate=rate)


# ------------------------------------------------------------
# The cost of first trials, from what earlier studies paid, as long as nothing better is known.

FEWEST_COSTS = 3
"""Costs below which nothing is predicted, as in `strategies/shared/cost_model.py`."""


class FirstCosts:
    """A model of earlier costs. Another machine, or more data, makes all trials slower or faster by one factor."""

    def __init__(self, learned: Learned, problem: Problem) -> None:
        import numpy as np

        from farthing.costs.learned import Paid, learn_cost  # brings SciPy
        from farthing.models.linalg import one_thread
        from farthing.strategies.shared.modelling import kernel_over

        self.space = problem.space
        encoder, costs = problem.space.encoder, learned.costs
        with one_thread():
            self._model: LearnedCost = learn_cost(
                encoder.encode([one.params for one in costs]),
                Paid.whole(np.array([one.cost for one in costs]), np.array([one.reach for one in costs])),
                kernel_over(encoder),
            )

    def predicted(self, params: Params, history: History, *, reach: float) -> Prediction:
        """The cost of a run from nothing, corrected by the factor that the trials so far show."""
        ratios = [
            trial.cost / self._cost(trial.params, history.reach(trial))
            for trial in history.done
            if trial.state is State.DONE and trial.resume_from is None and trial.cost > 0.0
        ]
        return Prediction(self._cost(params, reach) * (median(ratios) if ratios else 1.0))

    def _cost(self, params: Params, reach: float) -> float:
        return float(self._model.cost(self.space.encoder.encode([params]), reach)[0])


def first_costs(history: History) -> FirstCosts | None:
    """None if the study learnt no costs, or too few."""
    learned = history.learned
    if learned is None or len(learned.costs) < FEWEST_COSTS:
        return None
    return FirstCosts(learned, history.problem)
