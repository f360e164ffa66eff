"""The best trials of a study, as a list that prints as a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from farthing.fields import Whole
from farthing.study.runs import ranked_runs
from farthing.study.views import html_table, text_table, trial_row
from farthing.trials import History, Problem, Trial


@dataclass(frozen=True, repr=False)
class Top(Sequence[Trial]):
    """The last trial of each run, what went furthest first, and among those the best."""

    problem: Problem
    trials: tuple[Trial, ...]

    @classmethod
    def of(cls, history: History, count: int) -> "Top":
        most = Whole(least=1).checked(count, what="The number of trials", advice="Write study.top(10).")
        return cls(history.problem, tuple(ranked_runs(history)[:most]))

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        return self.trials[index]

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __repr__(self) -> str:
        return text_table(self._rows())

    def _repr_html_(self) -> str:
        return html_table(self._rows())

    def _rows(self) -> list[list[str]]:
        return [["trial", self.problem.value, "cost", "fidelity", "params"], *map(trial_row, self.trials)]
