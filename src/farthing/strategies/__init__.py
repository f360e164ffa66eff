"""Strategies, each a pure function of the history and the budget."""

from farthing.strategies.shared.strategy import (
    Randomness,
    Recommendation,
    Strategy,
    as_strategy,
    best_by_value,
    find_strategy,
    strategy_from_json,
)

__all__ = [
    "Randomness",
    "Recommendation",
    "Strategy",
    "as_strategy",
    "best_by_value",
    "find_strategy",
    "strategy_from_json",
]
