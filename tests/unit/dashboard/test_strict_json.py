"""JSON that every browser reads, whatever a database has."""

import json
import math

from farthing.dashboard.endpoints import strict_json


def test_numbers_that_are_none_become_nothing() -> None:
    form = {"note": [1.0, math.nan, {"deep": (math.inf, "text", None, True)}]}
    assert json.loads(strict_json(form)) == {"note": [1.0, None, {"deep": [None, "text", None, True]}]}


def test_other_forms_are_written_as_they_are() -> None:
    form = {"a": [1, 2.5, None], "b": {"c": "<"}}
    assert json.loads(strict_json(form)) == form
