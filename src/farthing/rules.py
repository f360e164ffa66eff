"""Query rules: they say whether a round's measurement is worth its price. `ft.CEGPUCB(rule=ft.rules.Every(5))`."""

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
from farthing.strategies.online.value_of_information import ValueOfInformation

__all__ = [
    "Bernoulli",
    "Capped",
    "Confidence",
    "Every",
    "ExpectedRegret",
    "Floor",
    "Overlap",
    "Quota",
    "ValueOfInformation",
]
