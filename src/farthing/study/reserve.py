"""What a run that ends with a verification sets aside for it from the start."""

from dataclasses import replace

from farthing.analysis.best import best_of
from farthing.costs import Remaining
from farthing.costs.expected import expected_cost
from farthing.errors import NoResult
from farthing.session.records import Records
from farthing.strategies import Strategy
from farthing.study.verifying import verification, verified
from farthing.trials import History, Suggestion

NEAR = 4.0
"""The recommendation is asked for once less than so many full trainings are left; before, one is set aside. A guess."""


class Reserve:
    """Judges again when another trial has ended."""

    def __init__(self, records: Records, strategy: Strategy) -> None:
        self._records = records
        self._strategy = strategy
        self._judged = -1
        self._cost = 0.0

    def kept_back(self, left: Remaining, history: History) -> Remaining:
        """What is left for other trials."""
        in_seconds = history.problem.cost_unit == "seconds"
        cost = self._needed(left.most_to_pay(in_seconds=in_seconds), history)
        return replace(left, cost=left.cost - cost, seconds=left.seconds - (cost if in_seconds else 0.0))

    def _needed(self, left: float, history: History) -> float:
        """The cost of training the recommendation to the end; of any training, while there is much left."""
        if not history.results:
            return 0.0
        full = expected_cost(history, Suggestion(history.done[0].params, history.problem.space.full_fidelity))
        if full is None or left >= NEAR * full.mean:
            return 0.0 if full is None else full.mean
        if history.finished != self._judged:
            self._judged, self._cost = history.finished, self._of_the_recommendation(history)
        return self._cost

    def _of_the_recommendation(self, history: History) -> float:
        try:
            best = best_of(self._records, self._strategy)
        except NoResult:
            return 0.0
        if verified(history, best.params) is not None:
            return 0.0
        predicted = verification(history, best.params).predicted_cost
        return 0.0 if predicted is None else predicted.mean
