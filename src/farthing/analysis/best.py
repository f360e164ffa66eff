"""The best configuration of a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from farthing.analysis.runs import Schedule, schedule_along, schedule_of
from farthing.analysis.text import short_number, short_params, short_prediction
from farthing.errors import FarthingError, NoResult
from farthing.storage.storage import Leaders
from farthing.strategies import Recommendation, Strategy, best_by_value
from farthing.trials import History, Json, Params, Prediction, Problem, Trial
from farthing.trials.objectives import bounds_of

if TYPE_CHECKING:
    from farthing.analysis.front import FrontChoice
    from farthing.session import Session


@dataclass(frozen=True, repr=False)
class Best:
    """The strategy's recommendation.

    `value` is the value measured for the recommended trial; `predicted` is the model's prediction at full fidelity, if
    the strategy has a model; `measured` is the trial with the best value measured at full fidelity, which
    need not be the recommended one. `params` are those of `trial`, unless a strategy recommends params that were not
    tried yet: then `trial` is the best that was. `schedule` has the params in force from each step on, if there are
    steps; `ever` is the best trial of a population at any interval, while `trial` is the best at the last.
    `is_fallback` says that the strategy was not asked, because only the database names its module: then it is the best
    value measured. `is_full` says that the trial was trained to the end; `explanation`, in one sentence, why a better
    measurement was passed over, if one was; `ranking` has the configurations seen by what a model expects of them.

    Before any result there is no `value` and no `trial`: of a study that learnt from earlier ones, `params` are then
    its first start, and `source` names the study that they come from.

    With several objectives or with limits, `choice` says how it was chosen and has the front it was chosen from;
    `values` and `predictions` have every objective and every limited quantity by name, and `feasibility` is the
    probability that it keeps the limits. `value` and `predicted` are those of the first objective.
    """

    params: Params
    value: float | None
    trial: Trial | None
    problem: Problem
    predicted: Prediction | None = None
    measured: Trial | None = None
    schedule: Schedule | None = None
    ever: Trial | None = None
    is_fallback: bool = False
    is_full: bool = True
    explanation: str | None = None
    ranking: tuple[Recommendation, ...] = ()
    source: str | None = None
    choice: "FrontChoice | None" = None

    @property
    def values(self) -> dict[str, float]:
        """The values measured of the recommended trial, by name."""
        if self.choice is not None:
            return dict(self.choice.point.values)
        return {} if self.value is None else {self.problem.value: self.value}

    @property
    def predictions(self) -> dict[str, Prediction]:
        """The values that models expect of the recommended configuration, by name; empty without a model."""
        if self.choice is not None:
            return dict(self.choice.point.predicted)
        return {} if self.predicted is None else {self.problem.value: self.predicted}

    @property
    def feasibility(self) -> float | None:
        """The probability that it keeps every limit; None before any could be broken."""
        return None if self.choice is None else self.choice.point.feasibility

    @property
    def is_tried(self) -> bool:
        """Whether a trial had these params."""
        return self.trial is not None and self.params == self.trial.params

    def lines(self) -> list[str]:
        """The recommendation in words: its value, beside a prediction the best measurement, and why it is preferred."""
        return [f"No result yet; the best of {self.source}, learnt from it, is tried first:"]

    def __repr__(self) -> str:
        width = max(map(len, self.params))
        return "\n".join(
            [*self.lines(), *(f"  {name:<{width}}  {short_number(value)}" for name, value in self.params.items())]
        )

    def _repr_html_(self) -> str:
        words = "<br>".join(escape(line) for line in self.lines())
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(short_number(value))}</td></tr>"
            for name, value in self.params.items()
        )
        return f"<p>{words}</p><table>{rows}</table>"

    def to_json(self) -> dict[str, Json]:
        return {**self._whole_json(), **self._choice_json()}

    def _choice_json(self) -> dict[str, Json]:
        if self.choice is None:
            return {}
        predictions = {name: [one.mean, one.deviation] for name, one in self.predictions.items()}
        return {
            "values": self.values,
            "predictions": predictions,
            "feasibility": self.feasibility,
            "choice": self.choice.how,
            "front": self.choice.front.to_json(),
        }

    def _whole_json(self) -> dict[str, Json]:
        return {
            "params": dict(self.params),
            "value": self.value,
            "trial": None if self.trial is None else self.trial.number,
            "fidelity": {} if self.trial is None else dict(self.trial.fidelity),
            "predicted": None if self.predicted is None else [self.predicted.mean, self.predicted.deviation],
            "measured": None if self.measured is None else self.measured.number,
            "measured_value": None if self.measured is None else self.measured.value,
            "schedule": None if self.schedule is None else self.schedule.to_json(),
            "ever": None if self.ever is None else self.ever.number,
            "is_fallback": self.is_fallback,
            "explanation": self.explanation,
            "source": self.source,
        }


@dataclass(frozen=True, repr=False)
class MeasuredBest(Best):
    """The recommendation once a trial is done."""

    value: float
    trial: Trial

    def lines(self) -> list[str]:
        return [*self._value_lines(), *([self.explanation] if self.explanation else [])]

    def _value_lines(self) -> list[str]:
        if self.choice is not None:
            return self._choice_lines(self.choice)
        name, trial = self.problem.value, self.trial
        at = f", {short_params(trial.fidelity)}" if trial.fidelity else ""
        measured = f"{self.value:.6g} (trial {trial.number}{at}"
        if self.predicted is None or not trial.fidelity:
            return [f"Best {name}: {measured})"]
        if self.is_tried and self.is_full:
            return [f"Best {name}: {measured}; predicted {short_prediction(self.predicted)})", *self._rival()]
        full = short_params(self.problem.space.full_fidelity)
        return [
            f"Best {name}: predicted {short_prediction(self.predicted)} at {full}",
            f"{'Measured so far' if self.is_tried else 'Not tried yet; the best that was'}: "
            f"{self.value:.6g} at {short_params(trial.fidelity)} (trial {trial.number})",
            *(self._rival() or ["Measured at full fidelity: none yet"]),
        ]

    def _choice_lines(self, choice: "FrontChoice") -> list[str]:
        """How it was chosen, and a line for each objective and each limited quantity."""
        problem, trial, limits = self.problem, self.trial, bounds_of(self.problem)
        at = f", {short_params(trial.fidelity)}" if trial.fidelity else ""
        width = max(map(len, problem.named))
        lines = [f"{choice.how} (trial {trial.number}{at}):"]
        for name in problem.named:
            limit = f", limit {limits[name]}" if name in limits else ""
            one = self.predictions[name]
            expected = f", expected {short_prediction(one)}" if one.deviation else ""
            lines.append(f"  {name:<{width}}  {self.values[name]:.6g}{expected}{limit}")
        if self.feasibility is not None:
            lines.append(f"  It keeps the limits with probability {self.feasibility:.2g}.")
        if problem.further:
            weights = ", ".join(f"{one.name}=…" for one in problem.objectives)
            lines.append(f"  study.pick({weights}) weighs otherwise; study.front has all.")
        return lines

    def _rival(self) -> list[str]:
        """The best that was measured at full fidelity, where that is another trial than the recommended one."""
        if self.measured is None or self.measured.number == self.trial.number:
            return []
        return [f"Best measured at full fidelity: {self.measured.value:.6g} (trial {self.measured.number})"]


def learned_best(history: History) -> Best | None:
    """The recommendation before any result: the first start learnt from earlier studies, if there is one."""
    if history.learned is None or not history.learned.starts:
        return None
    start = history.learned.starts[0]
    return Best(start.params, None, None, history.problem, is_full=False, source=start.source)


def best_measured(history: History) -> Trial | None:
    """The best of the trials that are done at full fidelity."""
    full = [trial for trial in history.eligible if trial.value is not None and history.is_full(trial)]
    return min(full, key=lambda trial: history.loss(trial.value or 0.0), default=None)


def find_best(session: "Session") -> MeasuredBest:
    """The recommendation by the study's own trials; the best measured if only the database names the strategy.

    Raises `NoResult` before any trial is done.
    """
    return best_of(session.records, session.strategy.get_if_at_hand())


# ------------------------------------------------------------
# A recommendation that is stored: a model of many trials takes seconds, and a study that has ended does not change.


MANY_RESULTS = 1000
"""A run that ends with as many results stores what its model recommends; with fewer it is found in a second."""


def keep_recommendation(session: "Session") -> None:
    """Stores the recommendation of a strategy that has more to say than which value is the lowest."""
    strategy, records = session.strategy.get_if_at_hand(), session.records
    if not records.problem.is_simple:
        return
    if records.is_in_memory or records.history.results < MANY_RESULTS or strategy is None or _is_by_value(strategy):
        return
    best = best_of(records, strategy)
    records.keep_recommendation({**best.to_json(), "is_full": best.is_full})


def kept_recommendation(records: "Source") -> MeasuredBest | None:
    """The stored recommendation, without its ranking, while the study is as it was then; None if nothing sound was."""
    form, problem = records.kept_recommendation(), records.problem
    if not form or problem.space.stages:
        return None
    try:
        numbers = [form[name] for name in ("trial", "measured", "ever") if form[name] is not None]
        trials = {trial.number: trial for trial in records.trials(sorted(set(numbers)))}
        return MeasuredBest(
            problem.space.check(form["params"]),
            float(form["value"]),
            trials[form["trial"]],
            problem,
            predicted=None if form["predicted"] is None else _prediction(*form["predicted"]),
            measured=trials.get(form["measured"]),
            schedule=None if form["schedule"] is None else Schedule.from_json(form["schedule"]),
            ever=trials.get(form["ever"]),
            is_full=bool(form["is_full"]),
            explanation=form["explanation"],
        )
    except (FarthingError, KeyError, TypeError, ValueError):  # changed by hand
        return None


def _prediction(mean: float, deviation: float | None) -> Prediction:
    return Prediction(float(mean), None if deviation is None else float(deviation))


class Source(Protocol):
    """The reader of a study's trials."""

    @property
    def problem(self) -> Problem: ...

    def leaders(self) -> Leaders | None:
        """The best trials as the database finds them; None if it cannot."""
        ...

    def refresh(self) -> History: ...

    def kept_recommendation(self) -> Mapping[str, Any]:
        """Returns the stored recommendation of `Records.keep_recommendation`; nothing if the study changed since."""
        ...

    def trials(self, numbers: Sequence[int]) -> Sequence[Trial]: ...


def best_of(records: Source, strategy: Strategy | None) -> MeasuredBest:
    """The recommendation of that strategy, or the best measured without one; of several values one of their front."""
    if not records.problem.is_simple:
        from farthing.analysis.front import Front, chosen

        history = records.refresh()
        return best_chosen(history, chosen(Front.of(history)))
    return _by_search(records, strategy) or _by_history(records.refresh(), strategy)


def best_chosen(history: History, choice: "FrontChoice") -> MeasuredBest:
    """The recommendation by a choice from the front."""
    problem, point = history.problem, choice.point
    return MeasuredBest(
        point.params,
        point.values[problem.value],
        point.trial,
        problem,
        predicted=point.predicted[problem.value],
        schedule=schedule_of(history, point.trial),
        is_full=history.is_full(point.trial),
        choice=choice,
    )


def _by_search(records: Source, strategy: Strategy | None) -> MeasuredBest | None:
    """The recommendation by measured value, found by the database if the history is not read anyway."""
    found = records.leaders() if strategy is None or _is_by_value(strategy) else None
    if found is None:
        return None
    best, problem = found.lineage[-1], records.problem
    assert best.value is not None, "only trials with a value are looked for"
    return MeasuredBest(
        best.params,
        best.value,
        best,
        problem,
        measured=found.full,
        schedule=schedule_along(problem, found.lineage),
        is_fallback=strategy is None,
        is_full=problem.is_full(best.fidelity),
    )


def _is_by_value(strategy: Strategy) -> bool:
    return type(strategy).recommend is Strategy.recommend


def _by_history(history: History, strategy: Strategy | None) -> MeasuredBest:
    found = best_by_value(history) if strategy is None else strategy.recommend(history)
    if found is None or found.trial.value is None:
        raise NoResult(f"The best trial is one that is done, got none among {len(history)} trials. Run some first.")
    measured = best_measured(history)
    if measured is not None and not history.is_noisy and _is_better_than_predicted(measured, found, history.problem):
        found = replace(found, params=measured.params, trial=measured, predicted=None)
    assert found.trial.value is not None, "only trials with a value are recommended"
    return MeasuredBest(
        found.params,
        found.trial.value,
        found.trial,
        history.problem,
        found.predicted,
        measured,
        schedule_of(history, found.trial),
        found.best_ever,
        is_fallback=strategy is None,
        is_full=history.is_full(found.trial),
        explanation=_retired(history, found) or _explanation(history, found, measured),
        ranking=found.ranking,
    )


def _retired(history: History, found: Recommendation) -> str | None:
    """Says that the space has changed since, and no trial yet has the params that new ones have."""
    space = history.problem.space
    gone = [name for name, kept in space.retired.items() if found.params.get(name, kept) != kept]
    if not gone:
        return None
    kept = short_params({name: space.retired[name] for name in gone})
    return f"No trial yet has {kept}, which every new one has: what is shown had another value."


def _is_better_than_predicted(measured: Trial, found: Recommendation, problem: Problem) -> bool:
    """Whether a value was measured that is better than the one that is expected of what is recommended."""
    if found.predicted is None or measured.value is None:
        return False
    return problem.better(measured.value, found.predicted.mean)


def _explanation(history: History, found: Recommendation, measured: Trial | None) -> str | None:
    """Why the best measurement is not believed: one sentence, None where there is nothing to explain."""
    if measured is None or not _is_better_than_predicted(measured, found, history.problem):
        return None
    expected = _expected(measured.params, found)
    is_luck = expected is None or abs(expected.mean - (measured.value or 0.0)) > (expected.deviation or 0.0)
    if measured.params == found.params and not is_luck:
        return None
    again = [trial for trial in history.done if trial.params == measured.params and history.is_full(trial)]
    count = "" if len(again) == 1 else f" as the best of {len(again)} times"
    suggested = short_prediction(expected) if expected is not None else "that it is no better than what is recommended"
    verdict = "the difference is probably noise" if is_luck else "the two are level, as far as the model can tell"
    return (
        f"Trial {measured.number} measured {measured.value:.4g}{count}, but similar configurations suggest "
        f"{suggested}; {verdict}."
    )


def _expected(params: Params, found: Recommendation) -> Prediction | None:
    """The model's expectation of these params."""
    everything = [found, *found.ranking]
    return next((one.predicted for one in everything if one.params == params and one.predicted is not None), None)
