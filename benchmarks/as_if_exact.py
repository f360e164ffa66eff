"""`LogEI` without its rules for noise, to see what they are worth."""

from dataclasses import dataclass
from typing import Any

from farthing.acquisition.expected_improvement import LogExpectedImprovement
from farthing.models.gp import GP
from farthing.strategies.plain.bayesian import LogEI
from farthing.strategies.shared.strategy import Recommendation, best_by_value
from farthing.trials import History


@dataclass(frozen=True)
class LogEIAsIfExact(LogEI):
    """Expected improvement over the least mean at any noise, and the best value is recommended."""

    def _acquisition(self, gp: GP, *_: Any) -> LogExpectedImprovement:
        return LogExpectedImprovement(gp, best=float(gp.mean(gp.X).min()))

    def recommend(self, history: History) -> Recommendation | None:
        return best_by_value(history)
