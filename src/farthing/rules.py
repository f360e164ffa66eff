"""Query rules: they say whether a round's measurement is worth its price. `ft.CEGPUCB(rule=ft.rules.Every(5))`."""

from farthing.online.query_rules import (
    Bernoulli,
    Capped,
    Confidence,
    Every,
    ExpectedRegret,
    Floor,
    Overlap,
    Quota,
    ValueOfInformation,
)

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
