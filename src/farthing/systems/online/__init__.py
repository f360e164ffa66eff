"""Deciding inside one run: what to train with in the next round, and whether a validation is worth its price."""

from farthing.systems.online.ce_gp_ucb import CEGPUCB
from farthing.systems.online.query_rules import Bernoulli, Capped, Confidence, Every, ExpectedRegret, Overlap, Quota
from farthing.systems.online.strategy import Arena, Choice, OnlineStrategy, Player, online_strategy_from_json
from farthing.systems.online.value_of_information import ValueOfInformation

__all__ = [
    "CEGPUCB",
    "Arena",
    "Bernoulli",
    "Capped",
    "Choice",
    "Confidence",
    "Every",
    "ExpectedRegret",
    "OnlineStrategy",
    "Overlap",
    "Player",
    "Quota",
    "ValueOfInformation",
    "online_strategy_from_json",
]
