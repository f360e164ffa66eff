"""Whether one-step predictions are better than the last value."""

from dataclasses import dataclass, field

REMEMBERED = 12
"""Predictions that count: a model that was good early may be of no use later."""

FEWEST = 3
"""With fewer predictions nothing can be said."""


@dataclass
class Skill:
    """Absolute errors of predictions, and of taking the last value in their place."""

    errors: list[float] = field(default_factory=list)
    errors_of_last: list[float] = field(default_factory=list)
    last: float | None = None

    def learn(self, value: float, *, predicted: float | None) -> None:
        if predicted is not None and self.last is not None:
            self.errors = [*self.errors, abs(value - predicted)][-REMEMBERED:]
            self.errors_of_last = [*self.errors_of_last, abs(value - self.last)][-REMEMBERED:]
        self.last = value

    @property
    def score(self) -> float | None:
        """1 − the sum of errors over that of the last value: 1 is perfect, below 0 is worse than the last value."""
        if len(self.errors) < FEWEST:
            return None
        worst = sum(self.errors_of_last)
        return 1.0 - sum(self.errors) / worst if worst > 0.0 else 0.0
