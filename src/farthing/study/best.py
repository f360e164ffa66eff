"""The best configuration of a study."""

from dataclasses import dataclass

from farthing.errors import NoResult
from farthing.strategies import Strategy, best_by_value
from farthing.study.records import Records
from farthing.study.schedule import Schedule, schedule_along, schedule_of
from farthing.trials import History, Json, Params, Prediction, Trial


@dataclass(frozen=True)
class Best:
    """The strategy's recommendation.

    `value` is the value measured for the recommended trial; `predicted` is the model's prediction at full fidelity, if
    the strategy has a model; `measured` is the trial with the best value measured at full fidelity, which
    need not be the recommended one. `params` are those of `trial`, unless a strategy recommends params that were not
    tried yet: then `trial` is the best that was. `schedule` has the params in force from each step on, if there are
    steps; `ever` is the best trial of a population at any interval, while `trial` is the best at the last.
    `is_fallback` says that the strategy was not asked, because only the database names its module: then it is the best
    value measured.
    """

    params: Params
    value: float
    trial: Trial
    predicted: Prediction | None = None
    measured: Trial | None = None
    schedule: Schedule | None = None
    ever: Trial | None = None
    is_fallback: bool = False

    def to_json(self) -> dict[str, Json]:
        return {
            "params": dict(self.params),
            "value": self.value,
            "trial": self.trial.number,
            "fidelity": dict(self.trial.fidelity),
            "predicted": None if self.predicted is None else [self.predicted.mean, self.predicted.deviation],
            "measured": None if self.measured is None else self.measured.number,
            "measured_value": None if self.measured is None else self.measured.value,
            "schedule": None if self.schedule is None else self.schedule.to_json(),
            "ever": None if self.ever is None else self.ever.number,
            "is_fallback": self.is_fallback,
        }


def best_measured(history: History) -> Trial | None:
    """The best of the trials that are done at full fidelity."""
    full = [trial for trial in history.done if trial.value is not None and history.is_full(trial)]
    return min(full, key=lambda trial: history.loss(trial.value or 0.0), default=None)


def find_best(records: Records, strategy: Strategy | None) -> Best:
    """The recommendation; without a strategy, because only the database names it, the best measured.

    Raises `NoResult` before any trial is done.
    """
    return _by_search(records, strategy) or _by_history(records.refresh(), strategy)


def _by_search(records: Records, strategy: Strategy | None) -> Best | None:
    """The recommendation by measured value, found by the database if the history is not read anyway."""
    is_by_value = strategy is None or type(strategy).recommend is Strategy.recommend
    found = records.leaders() if is_by_value else None
    if found is None:
        return None
    best, schedule = found.lineage[-1], schedule_along(records.problem, found.lineage)
    assert best.value is not None, "only trials with a value are looked for"
    return Best(best.params, best.value, best, measured=found.full, schedule=schedule, is_fallback=strategy is None)


def _by_history(history: History, strategy: Strategy | None) -> Best:
    found = best_by_value(history) if strategy is None else strategy.recommend(history)
    if found is None or found.trial.value is None:
        raise NoResult(f"The best trial is one that is done, got none among {len(history)} trials. Run some first.")
    return Best(
        found.params,
        found.trial.value,
        found.trial,
        found.predicted,
        best_measured(history),
        schedule_of(history, found.trial),
        found.best_ever,
        is_fallback=strategy is None,
    )
