"""One thing that was seen, and what seeing it cost."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsFloat, get_args

from farthing.errors import InvalidValue
from farthing.trials.suggestion import Params

if TYPE_CHECKING:
    from farthing.trials.trial import Trial


LARGEST_WHOLE = 2**63 - 1
"""The largest whole number that a database keeps, and the most that one measurement may cost: so sums are finite."""

IS_NOT_FINITE = "must be finite"
"""In every message about a value that is NaN or infinite."""

Kind = Literal["training", "validation", "stage", "overhead", "failed"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A point of a trial: a value at a fidelity or step, or (without a value) only a cost.

    `cost` is the cost *since the trial's previous measurement*, by kind: measured seconds, or, if `charged`, an
    amount that the user named and that replaces the measured seconds of its attempt. `saved` has savings
    by reason. `sequence` counts the measurements of one attempt, so that writing one twice changes nothing.
    `params` is set only where they change during a trial. `gradient` has derivatives of the value along numeric params,
    each in the param's own units on any scale. `time` is the storage's clock, in seconds since 1970. `rate` is what a
    measured second cost, where seconds have a price: `cost` is the seconds times it.
    """

    value: float | None = None
    cost: Mapping[str, float] = field(default_factory=dict)
    charged: bool = False
    fidelity: Mapping[str, float] = field(default_factory=dict)
    step: int | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    saved: Mapping[str, float] = field(default_factory=dict)
    params: Params | None = None
    gradient: Mapping[str, float] | None = None
    attempt: int = 1
    sequence: int = 0
    time: float = 0.0
    rate: float | None = None

    @property
    def place(self) -> Any:
        """The position of the point on its trial's curve: two points at one place are the same point, seen twice."""
        return tuple(sorted(self.fidelity.items())) if self.fidelity else self.step


class Payments(NamedTuple):
    """Of each measurement its attempt, whether its cost was charged, and that cost by kind."""

    attempts: list[int]
    charged: list[bool]
    costs: list[Mapping[str, float]]

    def are_all_measured_in(self, attempt: int) -> bool:
        return not any(self.charged) and self.attempts.count(attempt) == len(self.attempts)


class LazyMeasurements(Sequence[Measurement]):
    """Measurements that tell what was paid without an object made of each of them."""

    __slots__ = ()

    @abstractmethod
    def payments(self) -> Payments: ...

    @abstractmethod
    def savings(self) -> list[Mapping[str, float]]:
        """Savings by reason, if there are any."""

    @abstractmethod
    def metric_names(self) -> Iterable[str]: ...


def payments(measurements: Sequence[Measurement]) -> Payments:
    if isinstance(measurements, LazyMeasurements):
        return measurements.payments()
    return Payments(
        [point.attempt for point in measurements],
        [point.charged for point in measurements],
        [point.cost for point in measurements],
    )


def savings(measurements: Sequence[Measurement]) -> list[Mapping[str, float]]:
    if isinstance(measurements, LazyMeasurements):
        return measurements.savings()
    return [point.saved for point in measurements if point.saved]


def metric_names(measurements: Sequence[Measurement]) -> Iterable[str]:
    """Names of all metrics, each perhaps several times."""
    if isinstance(measurements, LazyMeasurements):
        return measurements.metric_names()
    return (name for point in measurements for name in point.metrics)


def finite_number(number: object, *, what: str) -> float:
    """`number` as a plain float, or the error that says why it is not one."""
    if type(number) is float and math.isfinite(number):  # nearly all: asking for a protocol takes microseconds
        return number
    if isinstance(number, bool) or not isinstance(number, SupportsFloat):
        raise InvalidValue(f"{what} must be a number, got {_shown(number)}. Return or report a float.")
    try:
        result = float(number)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"{what} must be one number, got {_shown(number)}. Return or report a float.") from error
    if not math.isfinite(result):
        raise InvalidValue(
            f"{what} {IS_NOT_FINITE}, got {result}. Work that diverged raises ft.Pruned; tell it as failure='diverged'."
        )
    return result


def cost_amount(amount: object, *, what: str = "Cost") -> float:
    """`amount` as a cost: not negative, and small enough that sums of costs stay finite."""
    cost = finite_number(amount, what=what)
    if cost > LARGEST_WHOLE:
        raise InvalidValue(f"{what} must be at most 2**63, got {cost:g}. Charge in a larger unit.")
    if cost < 0:
        raise InvalidValue(f"{what} must not be negative, got {cost:g}. Report seconds or dollars, not a difference.")
    return cost


def check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise InvalidValue(f"A cost's kind must be one of {', '.join(KINDS)}, got {kind!r}. Use the nearest category.")
    return kind


def total(costs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Sum of several costs, kind by kind."""
    amounts: dict[str, list[float]] = {}
    for cost in costs:
        for kind, amount in cost.items():
            amounts.setdefault(kind, []).append(amount)
    return {kind: math.fsum(parts) for kind, parts in amounts.items()}


def _shown(thing: object) -> str:
    try:
        text = repr(thing)
    except ValueError:
        text = "a number of more digits than Python writes"
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(thing).__name__})"


# ------------------------------------------------------------
# The rounds of an online run: the measurements of a trial whose params change while it runs.


BAD = "bad"
"""A metric of a round whose validation gave no value: it was no finite number, or measuring it failed."""


def played_rounds(trial: "Trial") -> list[Measurement]:
    """The rounds of a run, in order, as they led to where it stands."""
    return [trial.measurements[position] for position in kept_rounds(trial.measurements)]


def kept_rounds(measurements: Sequence[Measurement]) -> list[int]:
    """The positions of the rounds that led to where a run stands, in order.

    A process that went back to an earlier round, after a kill or with an older state, undid what came after it.
    """
    kept: list[int] = []
    for position, point in enumerate(measurements):
        if point.step is None or point.params is None:
            continue
        while kept and (measurements[kept[-1]].step or 0) >= point.step:
            kept.pop()
        kept.append(position)
    return kept
