"""Deciding inside one run: what to train with in the next round, and whether a validation is worth its price."""

from farthing.strategies.online.ce_gp_ucb import CEGPUCB
from farthing.strategies.online.context import QueryRule
from farthing.strategies.online.probes import PairedProbes
from farthing.strategies.online.strategy import (
    OnlineProblem,
    OnlineStrategy,
    Play,
    Player,
    as_online_strategy,
    online_strategy_from_json,
)

__all__ = [
    "CEGPUCB",
    "OnlineProblem",
    "OnlineStrategy",
    "PairedProbes",
    "Play",
    "Player",
    "QueryRule",
    "as_online_strategy",
    "online_strategy_from_json",
]
