"""Costs: budgets, the ledger and the clock."""

from farthing.costs.budget import Budget, Remaining
from farthing.costs.clock import Clock, FakeClock, SystemClock, as_clock
from farthing.costs.ledger import Ledger

__all__ = ["Budget", "Clock", "FakeClock", "Ledger", "Remaining", "SystemClock", "as_clock"]
