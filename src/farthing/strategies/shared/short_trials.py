"""Recognises studies of many trials that take less time than a model takes to suggest one."""

from dataclasses import dataclass
from math import inf

from farthing.costs import Remaining
from farthing.strategies.shared.effort import seconds_of_a_trial
from farthing.strategies.shared.strategy import Strategy
from farthing.trials import History

SHORT = 0.03
"""Seconds of a trial below which evolution beats every model at equal CPU time, on continuous spaces."""
MANY = 40
"""Trials for each parameter that the budget must allow: with fewer a model is better, however long it takes.
A guess, not tuned."""
PATIENCE = 30.0
"""Seconds that models may take for all trials that are left, where the budget counts trials and not time. A guess."""


@dataclass(frozen=True)
class ShortTrials:
    """About the `seconds` of a trial, and of a suggestion by a model; the number of trials that are `left`."""

    seconds: float
    model_seconds: float
    left: float

    @property
    def why(self) -> str:
        trial, model = f"{1e3 * self.seconds:.2g} ms", f"{1e3 * self.model_seconds:.2g} ms"
        allows = f"the budget allows {self.left:.0f} more"
        return f"evolution: trials take about {trial}, a model {model} for each, and {allows}"


def short_trials(strategy: Strategy, history: History, budget: Remaining) -> ShortTrials | None:
    """None where a model pays: trials are long, the model is quick, or only some are left."""
    seconds, model = seconds_of_a_trial(history), strategy.thinking
    if seconds is None or seconds > SHORT or model <= seconds:
        return None
    in_seconds = min(budget.seconds, budget.cost if history.problem.cost_is_time else inf)
    left = min(budget.trials, in_seconds / seconds)
    is_patient = min(budget.seconds, budget.cost) == inf and left * model <= PATIENCE
    if left == inf or is_patient or len(history) + left < MANY * history.problem.space.encoder.dimension:
        return None
    return ShortTrials(seconds, model, left)
