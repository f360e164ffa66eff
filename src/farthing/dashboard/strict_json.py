"""JSON as browsers read it, which has no NaN and no infinity: where one is stored, there is nothing."""

import json
import math
from typing import Any


def strict_json(form: Any) -> str:
    try:
        return _dumped(form)
    except ValueError:
        return _dumped(_finite(form))


def _dumped(form: Any) -> str:
    return json.dumps(form, separators=(",", ":"), default=str, allow_nan=False)


def _finite(form: Any) -> Any:
    match form:
        case dict():
            return {name: _finite(part) for name, part in form.items()}
        case list() | tuple():
            return [_finite(part) for part in form]
        case float() if not math.isfinite(form):
            return None
        case _:
            return form
