"""Several configurations, each trained to the end several times: which, and what came of it."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

from farthing.analysis.best import Best, best_of
from farthing.analysis.runs import ranked_runs
from farthing.analysis.text import html_table, short_params, short_prediction, text_table
from farthing.costs import Remaining
from farthing.costs.expected import expected_cost
from farthing.errors import InvalidArgument, NoResult
from farthing.fields import Flag, Whole
from farthing.session.records import Records
from farthing.strategies import Strategy
from farthing.trials import History, Json, Params, Prediction, Problem, State, Suggestion, Trial

# ------------------------------------------------------------
# Training recommended configurations to full fidelity: these trials, and no others.


def verified(history: History, params: Params) -> Trial | None:
    """The trial that ran these params to full fidelity, is to do so, or does; the first such one."""
    full = _at_full(history, params)
    done = [trial for trial in full if trial.state is State.DONE]
    return next(iter([*done, *(trial for trial in full if not trial.is_finished)]), None)


def verification(history: History, params: Params) -> Suggestion:
    """These params at full fidelity, from the furthest of their runs that leads there."""
    source = furthest(history, params)
    full = history.problem.space.full_fidelity
    suggestion = Suggestion(params, full, resume_from=None if source is None else source.number)
    return replace(suggestion, predicted_cost=_predicted_cost(history, suggestion, source))


def furthest(history: History, params: Params) -> Trial | None:
    """The trial nearest to full fidelity: a run may continue along its traces, the rest must be full already.

    A trial that left a checkpoint comes before one that went further and left none.
    """
    fidelities = history.problem.space.fidelities
    leading = [
        trial
        for trial in _done(history, params)
        if all(trial.fidelity[name] >= fidelity.high for name, fidelity in fidelities.items() if not fidelity.trace)
    ]
    return max(leading, key=lambda trial: (trial.checkpoint is not None, history.reach(trial)), default=None)


def runs_missing(history: History, params: Params, *, repeats: int) -> list[Suggestion]:
    """The trials that these params still need to have been trained to the end `repeats` times.

    The first continues what there is; the others start afresh, because they are to have a luck of their own.
    """
    there = len(trained(history, params))
    first = [verification(history, params)] if there == 0 else []
    fresh = Suggestion(params, history.problem.space.full_fidelity)
    return [*first, *[fresh] * (repeats - there - len(first))]


def trained(history: History, params: Params) -> list[Trial]:
    """The trials that trained these params to the end, or are to."""
    return [trial for trial in _at_full(history, params) if not trial.is_finished or trial.state is State.DONE]


def _at_full(history: History, params: Params) -> list[Trial]:
    return [trial for trial in history if history.is_full(trial) and trial.params == params]


def require_covered(suggestions: Sequence[Suggestion], left: Remaining, *, in_seconds: bool) -> None:
    for suggestion in suggestions:
        is_new = suggestion.resume_from is None
        _require_covered(suggestion, left, in_seconds=in_seconds)
        left = left.less(suggestion.predicted_cost, is_new=is_new)


def _require_covered(suggestion: Suggestion, left: Remaining, *, in_seconds: bool) -> None:
    predicted = suggestion.predicted_cost
    if left.covers(predicted, is_new=suggestion.resume_from is None, in_seconds=in_seconds):
        return
    price = "" if predicted is None else f", predicted to cost {predicted.mean:.3g},"
    raise InvalidArgument(
        f"A verification must fit the rest of the budget, got one{price} with {_amounts_left(left)} left. "
        "Budgets count all runs of a study: give a larger one, or none."
    )


def require_done(trial: Trial) -> Trial:
    if trial.state is State.DONE:
        return trial
    why = f": {trial.failure.reason}" if trial.failure else ""
    raise NoResult(
        f"A verification must be trained to the end, got trial {trial.number}, which is {trial.state}{why}. "
        f"Look at its output: farthing show --trial {trial.number} --log."
    )


def _predicted_cost(history: History, suggestion: Suggestion, source: Trial | None) -> Prediction | None:
    """As declared, or learnt from the costs so far; None where nothing was paid."""
    problem = history.problem
    if problem.declared_cost is None:
        from farthing.models.linalg import one_thread
        from farthing.strategies.shared.cost_model import predicted_cost

        with one_thread():
            return predicted_cost(history, suggestion)
    head_start = problem.cost_of(suggestion.params, source.fidelity) if source and source.checkpoint else 0.0
    return Prediction(max(0.0, problem.cost_of(suggestion.params, suggestion.fidelity) - head_start))


def _done(history: History, params: Params) -> list[Trial]:
    return [trial for trial in history.done if trial.params == params]


def _amounts_left(left: Remaining) -> str:
    amounts = {"cost": left.cost, "seconds": left.seconds, "trials": left.trials}
    return ", ".join(f"{name} {max(0.0, amount):.3g}" for name, amount in amounts.items() if amount < math.inf)


@dataclass(frozen=True)
class Checked:
    """One configuration: the trials that trained it to the end, and what was expected of it."""

    params: Params
    trials: tuple[Trial, ...]
    predicted: Prediction | None = None

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(trial.value for trial in self.trials if trial.value is not None)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float | None:
        """The standard deviation of the values; None for one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def to_json(self) -> dict[str, Json]:
        return {
            "params": dict(self.params),
            "trials": [trial.number for trial in self.trials],
            "values": list(self.values),
            "mean": self.mean,
            "spread": self.spread,
            "predicted": None if self.predicted is None else [self.predicted.mean, self.predicted.deviation],
        }


@dataclass(frozen=True, repr=False)
class Verification(Sequence[Checked]):
    """The configurations that were checked, the best mean first."""

    problem: Problem
    checked: tuple[Checked, ...]

    @overload
    def __getitem__(self, index: int) -> Checked: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Checked]: ...
    def __getitem__(self, index: int | slice) -> Checked | Sequence[Checked]:
        return self.checked[index]

    def __len__(self) -> int:
        return len(self.checked)

    def __iter__(self) -> Iterator[Checked]:
        return iter(self.checked)

    def __repr__(self) -> str:
        return text_table([_header(self.problem), *map(_row, self.checked)])

    def _repr_html_(self) -> str:
        return html_table([_header(self.problem), *map(_row, self.checked)])

    def to_json(self) -> list[dict[str, Json]]:
        return [one.to_json() for one in self.checked]


@dataclass(frozen=True)
class Chosen:
    """The configurations to verify, with what is expected of each, and the number of trainings of each."""

    configurations: tuple[tuple[Params, Prediction | None], ...]
    repeats: int

    @classmethod
    def of(cls, best: Best, history: History, *, measured: bool, top: int | None, repeats: int | None) -> "Chosen":
        """The most promising ones: as the model ranks them, or as they were measured."""
        Flag().checked(measured, what="measured=", advice="Write measured=True for the best that was measured.")
        if not history.problem.is_simple and (measured or top is not None or repeats is not None):
            raise InvalidArgument(
                f"A verification of several configurations ranks them by one value without limits, got "
                f"{history.problem.aim}. Leave out measured=, top= and repeats=: it then trains study.best to the end."
            )
        count = 1 if top is None else Whole(least=1).checked(top, what="top", advice="Write for example top=3.")
        times = 1 if repeats is None else Whole(least=1).checked(repeats, what="repeats", advice="Write repeats=2.")
        ranked = [(trial.params, None) for trial in ranked_runs(history) if trial.state is State.DONE]
        modelled = [(best.params, best.predicted), *((one.params, one.predicted) for one in best.ranking)]
        return cls(tuple(_distinct(ranked if measured else [*modelled, *ranked])[:count]), times)

    def missing(self, history: History) -> list[Suggestion]:
        """The trials still to be enqueued."""
        return [one for params, _ in self.configurations for one in runs_missing(history, params, repeats=self.repeats)]

    def waiting(self, history: History) -> list[int]:
        """The numbers of the trials that were enqueued before and have not ended."""
        found = [trial for params, _ in self.configurations for trial in trained(history, params)]
        return [trial.number for trial in found if not trial.is_finished]

    def checked(self, history: History, *, ran: Sequence[int]) -> "Verification":
        """The results, the best first. Raises `NoResult` if no training came to its end."""
        done = [
            Checked(params, trials, predicted)
            for params, predicted in self.configurations
            if (trials := tuple(trial for trial in trained(history, params) if trial.state is State.DONE))
        ]
        if not done:
            require_done(history[ran[-1]])
        problem = history.problem
        return Verification(problem, tuple(sorted(done, key=lambda one: problem.sign * one.mean)))


def _distinct(
    configurations: Iterable[tuple[Params, Prediction | None]],
) -> list[tuple[Params, Prediction | None]]:
    found: list[tuple[Params, Prediction | None]] = []
    for params, predicted in configurations:
        if all(params != other for other, _ in found):
            found.append((params, predicted))
    return found


def _header(problem: Problem) -> list[str]:
    return [f"mean {problem.value}", "spread", "runs", "predicted", "trials", "params"]


def _row(one: Checked) -> list[str]:
    return [
        f"{one.mean:.6g}",
        "" if one.spread is None else f"{one.spread:.2g}",
        str(len(one.values)),
        "" if one.predicted is None else short_prediction(one.predicted),
        " ".join(str(trial.number) for trial in one.trials),
        short_params(one.params),
    ]


# ------------------------------------------------------------
# What a run that ends with a verification sets aside for it from the start.


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
        """The rest of the budget for other trials."""
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
