"""Several configurations, each trained to the end several times: which, and what came of it."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from farthing.analysis.best import Best
from farthing.analysis.runs import ranked_runs
from farthing.analysis.text import html_table, short_params, short_prediction, text_table
from farthing.fields import Flag, Whole
from farthing.study.verifying import require_done, runs_missing, trained
from farthing.trials import History, Json, Params, Prediction, Problem, State, Suggestion, Trial


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
