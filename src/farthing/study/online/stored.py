"""An online run as a study keeps it: what its tuner was told, and the rounds it played."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farthing.costs import Remaining
from farthing.errors import NoSuggestion
from farthing.fields.serialization import to_json
from farthing.strategies import Randomness, Strategy
from farthing.strategies.online import online_strategy_from_json
from farthing.trials import History, Json, Params, Suggestion


@dataclass(frozen=True)
class Online(Strategy):
    """Stands for an online tuner in a stored study: it decides inside its run, so there is no trial to suggest.

    Its fields are what the run can be played again from.
    """

    strategy: Mapping[str, Json] = field(default_factory=dict)
    rounds: int = 1
    reward: str = "value"
    candidates: Sequence[Params] | None = None
    initial: Sequence[Params] = ()
    can_undo: bool = False
    hold: int = 1
    overhead: float | None = 0.1
    validation_cost: float | None = None
    price: float = 0.0
    validation_size: int | None = None

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        raise NoSuggestion(
            "An online study has one trial a run, which its own tuner opens; there is none to ask for. "
            "Start the program that has the ft.OnlineTuner again."
        )


def with_new_arguments(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Settings of a run; arguments that its strategy had not yet when they were written have their defaults."""
    known = dict(settings)
    if known.get("strategy"):
        known["strategy"] = json.loads(json.dumps(to_json(online_strategy_from_json(known["strategy"]))))
    return known
