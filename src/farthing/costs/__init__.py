"""Costs: budgets, the ledger and the clock."""

from farthing.costs.budget import EFFORT_LEVELS, Budget, EffortLevel, Remaining, Worth, WorthRule
from farthing.costs.clock import Clock, FakeClock, SystemClock, as_clock
from farthing.costs.ledger import Ledger
from farthing.costs.prices import PricesGiven, ResourcePrices

__all__ = [
    "EFFORT_LEVELS",
    "Budget",
    "Clock",
    "EffortLevel",
    "FakeClock",
    "Ledger",
    "PricesGiven",
    "Remaining",
    "ResourcePrices",
    "SystemClock",
    "Worth",
    "WorthRule",
    "as_clock",
]
