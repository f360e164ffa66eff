"""What validations, and training that is taken back, may cost."""

from dataclasses import dataclass

AT_ONCE = 0.5
"""The share of the allowance that is there from the beginning; the rest comes as training goes on."""


@dataclass
class Allowance:
    """Counts in decisions: the training between two of them costs 1."""

    validation_cost: float = 0.0
    """What the last validation cost, or what the user said; 0 as long as nothing is known."""
    spent: float = 0.0

    def charge(self, cost: float | None, *, declared: float | None) -> None:
        """Books a validation at what the user declared, at what it was timed at, or at what the last one cost."""
        self.validation_cost = self.cost_of(cost, declared=declared)
        self.spent += self.validation_cost

    def cost_of(self, cost: float | None, *, declared: float | None) -> float:
        known = declared if declared is not None else cost
        return self.validation_cost if known is None else known

    def covers(self, cost: float, *, decision: int, decisions: int, overhead: float | None) -> bool:
        """Whether that much more may be spent by that decision; without an overhead anything may."""
        if overhead is None:
            return True
        allowed = overhead * (AT_ONCE * decisions + (1.0 - AT_ONCE) * decision)
        return self.spent + cost <= allowed
