"""What was spent on what, and what need not be spent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from farthing.costs.warm_starts import saved_by_warm_starts
from farthing.trials import KINDS, History, Json, State
from farthing.trials.measurement import total


@dataclass(frozen=True)
class Ledger:
    """The bill of a study.

    `spent` is by kind, in the study's cost unit; `saved` is by reason, in the same unit. `overhead` is the seconds
    spent on suggesting, which are no part of `total`: they are the tuner's time, not the work's.
    """

    unit: str
    spent: Mapping[str, float] = field(default_factory=dict)
    saved: Mapping[str, float] = field(default_factory=dict)
    overhead: float = 0.0
    trials: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, history: History) -> "Ledger":
        spent = total(trial.costs for trial in history)
        savings = total([*(trial.saved for trial in history), {"warm starts": saved_by_warm_starts(history)}])
        states = [trial.state.value for trial in history]
        return cls(
            unit=history.problem.cost_unit,
            spent={kind: spent[kind] for kind in KINDS if kind in spent},
            saved={reason: amount for reason, amount in savings.items() if amount},
            overhead=math.fsum(trial.overhead for trial in history),
            trials={state.value: states.count(state.value) for state in State if state.value in states},
        )

    @property
    def total(self) -> float:
        return math.fsum(self.spent.values())

    def to_json(self) -> dict[str, Json]:
        return {
            "unit": self.unit,
            "spent": dict(self.spent),
            "total": self.total,
            "saved": dict(self.saved),
            "overhead_seconds": self.overhead,
            "trials": dict(self.trials),
        }

    def rows(self) -> list[tuple[str, str, str]]:
        """The bill as (part, item, amount), the way every view of it shows them."""
        spent = [("spent", kind, f"{amount:.4g} {self.unit}") for kind, amount in self.spent.items()]
        saved = [("saved", reason, f"{amount:.4g} {self.unit}") for reason, amount in self.saved.items()]
        trials = [("trials", state, str(count)) for state, count in self.trials.items()]
        total_row = ("spent", "total", f"{self.total:.4g} {self.unit}")
        return [*spent, total_row, *saved, ("overhead", "suggesting", f"{self.overhead:.3g} seconds"), *trials]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(item) for _, item, _ in rows)
        return "\n".join(f"{part:<9}{item:<{width + 2}}{amount}" for part, item, amount in rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{part}</td><td>{item}</td><td>{amount}</td></tr>" for part, item, amount in self.rows()
        )
        return f"<table>{cells}</table>"
