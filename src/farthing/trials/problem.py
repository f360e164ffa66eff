"""The problem of a study: the space, the value that is optimised, the unit in which cost is paid."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from farthing.errors import InvalidArgument
from farthing.fields import Text, Whole
from farthing.space import Space
from farthing.space.space_validation import is_name
from farthing.trials.measurement import cost_amount
from farthing.trials.suggestion import Json, Params
from farthing.validation import shown

DeclaredCost = Callable[[Params, Mapping[str, float]], float]
"""From params and fidelity to the cost of a run from nothing to that fidelity."""


@dataclass(frozen=True)
class Problem:
    """`measures_cost` says that cost is the measured seconds of the work, or follows from them by prices, unless a
    trial charges an amount.

    `declared_cost` is the user's own function; it is not stored, so a study that is loaded without it has none.
    """

    space: Space
    value: str = "value"
    minimize: bool = True
    seed: int = 0
    cost_unit: str = "seconds"
    measures_cost: bool = True
    declared_cost: DeclaredCost | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not is_name(self.value):
            raise InvalidArgument(
                f"The value's name must be one word, got {self.value!r}. Use letters, digits and _ . - / inside: "
                "minimize='val/loss'."
            )
        if self.value in self.space.fidelities or self.value in self.space.parameters:
            raise InvalidArgument(
                f"The value must have a name of its own, got {self.value!r}, which the space uses. Rename one of them."
            )
        Whole(least=0).checked(self.seed, what="The seed", advice="Use for example seed=0.")
        Text().checked(self.cost_unit, what="The unit of cost", advice="Write for example cost_unit='dollars'.")
        if self.declared_cost is not None and not callable(self.declared_cost):
            raise InvalidArgument(
                f"A declared cost must be a function of params and fidelity, got {shown(self.declared_cost)}. "
                "Write cost=lambda params, fidelity: fidelity['epochs']."
            )

    @property
    def cost_is_time(self) -> bool:
        """Whether cost is the measured seconds themselves."""
        return self.measures_cost and self.cost_unit == "seconds"

    @property
    def has_prices(self) -> bool:
        """Whether cost is measured seconds times the prices of what a trial holds."""
        return self.measures_cost and self.cost_unit != "seconds"

    @cached_property
    def best_so_far(self) -> tuple[str, ...]:
        """The fidelities along which a run is worth the best point of its curve."""
        return tuple(name for name, fidelity in self.space.fidelities.items() if fidelity.best_so_far)

    @property
    def sign(self) -> float:
        """1 or −1: times a value it gives a loss, of which less is better."""
        return 1.0 if self.minimize else -1.0

    @property
    def direction(self) -> str:
        return "minimize" if self.minimize else "maximize"

    def reach(self, fidelity: Mapping[str, float]) -> float:
        """How much of the full fidelity that is, from 0 to 1, all fidelities multiplied."""
        return math.prod(fidelity.get(name, 0.0) / top for name, top in self.space.full_fidelity.items())

    def is_full(self, fidelity: Mapping[str, float]) -> bool:
        return all(fidelity.get(name, 0) >= top for name, top in self.space.full_fidelity.items())

    def cost_of(self, params: Params, fidelity: Mapping[str, float]) -> float:
        """The declared cost of a run from nothing to that fidelity, checked."""
        assert self.declared_cost is not None, "ask only where a cost is declared"
        return cost_amount(self.declared_cost(params, fidelity), what="The declared cost")

    def better(self, value: float, other: float) -> bool:
        return self.sign * value < self.sign * other

    def to_json(self) -> dict[str, Json]:
        return {
            "space": self.space.to_json(),
            "value": self.value,
            "minimize": self.minimize,
            "seed": self.seed,
            "cost_unit": self.cost_unit,
            "measures_cost": self.measures_cost,
        }

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> "Problem":
        return cls(**{**form, "space": Space.from_json(form["space"])})
