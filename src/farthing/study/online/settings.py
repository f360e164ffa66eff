"""The types of what online tuners are told."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from farthing.storage import Storage
from farthing.strategies.online import OnlineStrategy
from farthing.trials import Params


class OnlineSettings(TypedDict, total=False):
    """The arguments of `OnlineTuner` that those who make one for the user pass on."""

    strategy: OnlineStrategy | str | None
    candidates: Sequence[Params] | None
    initial: Params | Sequence[Params] | None
    hold: int | None
    overhead: float | None
    validation_cost: float | None
    price: float
    validation_size: int | None
    reward: Literal["value", "gain"]
    storage: str | Path | Storage | None
    name: str
    seed: int
