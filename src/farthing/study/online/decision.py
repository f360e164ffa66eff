"""What an online tuner decides for one round, and the one way to answer it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from farthing.errors import InvalidArgument
from farthing.trials import Params

Value: TypeAlias = float | Callable[[], float]
"""A measured value, or the function that measures it."""


class Tuner(Protocol):
    """The tuner that a decision is answered to."""

    def _observe(self, decision: "Decision", value: Value, cost: float | None) -> None: ...

    def _observe_before(self, decision: "Decision", value: Value) -> None: ...


class NoTuner:
    """Stands for the tuner of a decision that was made by hand."""

    def _observe(self, decision: "Decision", value: Value, cost: float | None) -> None:
        raise InvalidArgument(
            f"A decision is observed by the tuner that made it, got one for round {decision.round} without a tuner. "
            "Write: for decision in tuner: …"
        )

    def _observe_before(self, decision: "Decision", value: Value) -> None:
        self._observe(decision, value, None)


@dataclass(frozen=True)
class Decision:
    """What to train with in this round, whether to measure it, and why."""

    params: Params
    measure: bool
    reason: str
    round: int = 0
    measure_before: bool = False
    """Set for rewards that are gains, where the value before the round is not known."""
    _tuner: Tuner = field(default_factory=NoTuner, compare=False, repr=False)

    def observe(self, value: Value, cost: float | None = None) -> None:
        """The value after this round, or the function that measures it.

        A function is called only where `measure` is true, and it is timed; so it can be given in every round. NaN, an
        infinite value and a function that raises are observations too: the round was bad. Without a cost a value costs
        1, and a function its seconds. With a storage all of it is durable when this returns; where it raises, nothing
        has happened: call it again.
        """
        self._tuner._observe(self, value, cost)

    def observe_before(self, value: Value) -> None:
        """For `reward="gain"`: the value before this round is trained; a function is called only where it is needed.

        It is charged as a validation of its own. Without it the gain since the last measurement is shared among the
        rounds between.
        """
        self._tuner._observe_before(self, value)
