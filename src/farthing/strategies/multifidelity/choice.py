"""What was chosen."""

from dataclasses import dataclass

from farthing.models.linalg import Array
from farthing.strategies.multifidelity.candidates import NEW, Candidates


@dataclass(frozen=True, eq=False)
class Choice:
    """One evaluation, what it is going to cost, and its value of information.

    Of several that were chosen jointly, each has the information of all.
    """

    candidate: Candidates
    cost: float
    information: float
    retained: Array | None = None
    """Which points of the curve are to enter the model, s (ℓ, m); None for the usual ones."""

    @property
    def is_new(self) -> bool:
        return bool(self.candidate.source[0] == NEW)
