"""The proposal of a strategy for the next trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from farthing.scalars import with_tuples

Params = Mapping[str, Any]
Json = Any
"""A value that `json.dumps` takes and `json.loads` gives back unchanged."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted number and its standard deviation, where the strategy knows one."""

    mean: float
    deviation: float | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One trial to run.

    `resume_from` is the number of the trial to continue: the new trial starts from its checkpoint, if it left
    one. `note` is the strategy's own memory; it comes back in the history.
    """

    params: Params
    fidelity: Mapping[str, float] = field(default_factory=dict)
    resume_from: int | None = None
    predicted_cost: Prediction | None = None
    predicted_value: Prediction | None = None
    note: Json = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", with_tuples(self.params))
