"""The strategy that a study names in its database. To read a study, nothing is imported because a database names it."""

import sys
from typing import Any

from farthing.errors import InvalidArgument
from farthing.strategies import Strategy, strategy_from_json
from farthing.trials import Json

ONLINE = "farthing.study.online.stored"
"""The one module outside the package of strategies that has a strategy of ours."""


def is_at_hand(form: Json) -> bool:
    """Whether the strategy is Farthing's own, or of a module that this program has imported itself."""
    module, colon, qualified = name_of(form).partition(":")
    if not colon or module == ONLINE:
        return True
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):  # not getattr, which a module may answer by importing
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return isinstance(found, type) and issubclass(found, Strategy)


def strategy_at_hand(form: Json) -> Strategy:
    """The strategy, unless a module would have to be imported for it."""
    if not is_at_hand(form):
        raise InvalidArgument(
            f"A strategy of your own must be imported before it is used, got {name_of(form)!r}, which is not. "
            "Import its module, or pass strategy=…, or import_strategy=True to Study.load, if you trust the database."
        )
    return strategy_from_json(form)


def class_name(form: Json) -> str:
    """Without the module of one that is not ours."""
    return name_of(form).rpartition(":")[2]


def shown_form(form: Json) -> str:
    """As it would be written in Python: `ASHA(eta=3)`."""
    arguments: Any = form.get("arguments") if isinstance(form, dict) else None
    given = arguments if isinstance(arguments, dict) else {}
    return f"{class_name(form)}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def name_of(form: Json) -> str:
    """As it is stored: `ASHA`, or `module:Class`."""
    name = form.get("name") if isinstance(form, dict) else None
    return name if isinstance(name, str) else ""
