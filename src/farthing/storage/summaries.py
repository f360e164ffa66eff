"""The summary of a study: its trials, its best value and its cost."""

import math
from collections import Counter
from collections.abc import Sequence

from farthing.storage.storage import StudyRecord, StudySummary
from farthing.trials import Problem, State, Trial


def summary(record: StudyRecord, trials: Sequence[Trial]) -> StudySummary:
    values = [trial.value for trial in trials if trial.state is State.DONE and trial.value is not None]
    return StudySummary(
        record=record,
        trials=Counter(trial.state for trial in trials),
        best_value=best(record.problem, values),
        cost=math.fsum(trial.cost for trial in trials),
    )


def best(problem: Problem, values: Sequence[float]) -> float | None:
    if not values or not problem.is_simple:  # of several values none is the best, and a limit may exclude it
        return None
    return min(values) if problem.minimize else max(values)
