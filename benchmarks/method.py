"""What every method under comparison is: a tuner that spends one evaluation at a time and says what it recommends."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from benchmarks.problems import Params, Problem
from farthing.costs import Budget


class Step(NamedTuple):
    """One evaluation: what it cost, the CPU seconds it took to choose it, and what is recommended after it.

    Only what was added is paid for: continuing a paused run costs the difference to what it had cost already. A batch
    that is evaluated at once is one step of several `evaluations`; it costs as much as the most expensive. `tallies`
    are further amounts to add up, where a driver has any. `reached` is the fidelity that was paid for, where the driver
    looked further.
    """

    recommended: Params
    cost: float
    suggest_seconds: float
    evaluations: int = 1
    tallies: Mapping[str, float] = {}
    reached: Mapping[str, float] | None = None


class Method(Protocol):
    """`packages` are those whose versions decide what the method does, besides Farthing itself."""

    @property
    def name(self) -> str: ...

    @property
    def packages(self) -> tuple[str, ...]: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """What sets this method apart, as JSON: results with other settings are not reused."""

    def missing(self) -> str | None:
        """Why the method cannot be used here, and what to do about it; None when it can."""

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        """Tunes the problem until the caller stops asking. `budget` is what the caller will let it spend."""
