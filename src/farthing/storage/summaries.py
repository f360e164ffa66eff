"""What a study amounts to: its trials, its best value, its cost and the seconds it was worked on."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

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
    if not values:
        return None
    return min(values) if problem.minimize else max(values)


def covered_seconds(runs: Iterable[tuple[float, float]]) -> float:
    """Length of the union of (start, last sign of life) intervals: two runs at once count once."""
    covered = 0.0
    reached = float("-inf")
    for start, end in sorted(runs):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered
