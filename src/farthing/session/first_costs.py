"""Predicts the cost of a study's first trials from what earlier studies paid, as long as nothing better is known."""

from statistics import median

import numpy as np

from farthing.costs.learned import LearnedCost, Paid, learn_cost
from farthing.models.linalg import one_thread
from farthing.strategies.shared.modelling import kernel_over
from farthing.trials import History, Params, Prediction, Problem, State
from farthing.trials.events import Learned

FEWEST = 3
"""Costs below which nothing is predicted, as in `strategies/shared/cost_model.py`."""


class FirstCosts:
    """A model of earlier costs. Another machine, or more data, makes all trials slower or faster by one factor."""

    def __init__(self, learned: Learned, problem: Problem) -> None:
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
    if learned is None or len(learned.costs) < FEWEST:
        return None
    return FirstCosts(learned, history.problem)
