"""Recognises studies of many trials that take less time than a model takes to suggest one."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from statistics import median

from farthing.costs import Remaining
from farthing.strategies.shared.evolution import NOTE, is_evolving, latest_generation
from farthing.trials import History, State, Trial

SHORT = 0.03
"""Seconds of a trial below which evolution beats every model at equal CPU time, on continuous spaces."""
MANY = 40
"""Trials for each parameter that the budget must allow: with fewer a model is better, however long it takes.
A guess, not tuned."""
PATIENCE = 30.0
"""Seconds that models may take for all trials that are left, where the budget counts trials and not time. A guess."""
RECENT = 5
"""Trials whose median stands for the next one."""


@dataclass(frozen=True)
class ShortTrials:
    """`seconds` of a trial, and of a suggestion by a model; the number of trials that are `left`."""

    seconds: float
    model_seconds: float
    left: float

    @property
    def why(self) -> str:
        trial, model = f"{1e3 * self.seconds:.2g} ms", f"{1e3 * self.model_seconds:.2g} ms"
        return f"evolution: trials take {trial}, a model {model} for each, and the budget allows {self.left:.0f} more"


def short_trials(history: History, budget: Remaining) -> ShortTrials | None:
    """None where a model pays: trials are long, the model is quick, or only some are left."""
    done = [trial for trial in islice(reversed(history), 4 * RECENT) if trial.state is State.DONE][:RECENT]
    if len(done) < RECENT:
        return None
    seconds = median(_seconds(history, trial) for trial in done)
    model = _model_seconds(history)
    if seconds > SHORT or model is None or model <= seconds:
        return None
    left = _trials_left(budget, seconds, cost=median(trial.cost for trial in done))
    found = ShortTrials(seconds, model, left)
    is_patient = min(budget.seconds, budget.cost) == float("inf") and left * model <= PATIENCE
    if left == float("inf") or is_patient or len(history) + left < MANY * history.problem.space.encoder.dimension:
        return None
    return found


def _trials_left(budget: Remaining, seconds: float, *, cost: float) -> float:
    """The number of further trials that the budget allows; infinite if it has no limit."""
    by_time = budget.seconds / seconds if seconds > 0 else float("inf")
    by_cost = budget.cost / cost if cost > 0 else float("inf")
    return min(budget.trials, by_time, by_cost)


def _model_seconds(history: History) -> float | None:
    """The seconds that a model took for its latest suggestions; during evolution, those that it took before."""
    latest = latest_generation(history)
    if latest is not None:
        noted = history[latest.first].note[NOTE].get("model_seconds")
        return None if noted is None else float(noted)
    taken = list(islice(_overheads(reversed(history)), RECENT))
    return median(taken) if len(taken) == RECENT else None


def _overheads(trials: Iterable[Trial]) -> Iterable[float]:
    return (trial.overhead for trial in trials if _is_by_model(trial))


def _is_by_model(trial: Trial) -> bool:
    return isinstance(trial.note, dict) and "theta" in trial.note and not is_evolving(trial)


def _seconds(history: History, trial: Trial) -> float:
    if history.problem.cost_is_time and not any(point.charged for point in trial.measurements):
        return trial.cost
    return max(0.0, (trial.finished_at or trial.opened_at) - trial.opened_at)
