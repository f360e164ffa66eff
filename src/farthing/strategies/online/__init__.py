"""Deciding inside one run: what to train with in the next round, and whether a validation is worth its price."""

from farthing.strategies.online.ce_gp_ucb import CEGPUCB
from farthing.strategies.online.probes import PairedProbes
from farthing.strategies.online.query_rules import (
    Bernoulli,
    Capped,
    Confidence,
    Every,
    ExpectedRegret,
    Floor,
    Overlap,
    Quota,
)
from farthing.strategies.online.strategy import (
    OnlineProblem,
    OnlineStrategy,
    Play,
    Player,
    as_online_strategy,
    online_strategy_from_json,
)
from farthing.strategies.online.value_of_information import ValueOfInformation

__all__ = [
    "CEGPUCB",
    "Bernoulli",
    "Capped",
    "Confidence",
    "Every",
    "ExpectedRegret",
    "Floor",
    "OnlineProblem",
    "OnlineStrategy",
    "Overlap",
    "PairedProbes",
    "Play",
    "Player",
    "Quota",
    "ValueOfInformation",
    "as_online_strategy",
    "online_strategy_from_json",
]
