"""Deciding inside one run: what to train with in the next round, and whether a validation is worth its price."""

from farthing.strategies.online.ce_gp_ucb import CEGPUCB
from farthing.strategies.online.query_rules import Bernoulli, Capped, Confidence, Every, ExpectedRegret, Overlap, Quota
from farthing.strategies.online.strategy import OnlineProblem, OnlineStrategy, Play, Player, online_strategy_from_json
from farthing.strategies.online.value_of_information import ValueOfInformation

__all__ = [
    "CEGPUCB",
    "Bernoulli",
    "Capped",
    "Confidence",
    "Every",
    "ExpectedRegret",
    "OnlineProblem",
    "OnlineStrategy",
    "Overlap",
    "Play",
    "Player",
    "Quota",
    "ValueOfInformation",
    "online_strategy_from_json",
]
