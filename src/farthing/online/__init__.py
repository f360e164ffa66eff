"""Deciding inside one run: what to train with in the next round, and whether a validation is worth its price."""

from farthing.online.ce_gp_ucb import CEGPUCB
from farthing.online.context import QueryRule
from farthing.online.probes import PairedProbes
from farthing.online.strategy import (
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
