"""Trials whose stored params do not belong to the space: an error of the family says so."""

import pytest

import farthing as ft
from farthing.errors import InvalidParams, StorageError
from farthing.trials.events import Extension

BEFORE = ft.Space({"x": ft.Float(0, 1), "kind": ft.Choice("a", "b")})
AFTER = ft.Space({"x": ft.Float(0, 1), "kind": ft.Choice("a", "b"), "z": ft.Float(0, 1)})


def test_an_extension_fills_what_is_new_and_refuses_what_was_renamed() -> None:
    extension = Extension(BEFORE, AFTER, {"z": 0.25}, 3)
    assert extension.filled({"x": 0.5, "kind": "a"}) == {"x": 0.5, "kind": "a", "z": 0.25}
    with pytest.raises(StorageError, match="'x'"):
        extension.filled({"renamed": 0.5, "kind": "a"})


@pytest.mark.parametrize("option", ["c", ["a"], {"a": 1}])
def test_an_option_that_is_none_is_refused_where_it_is_encoded(option: object) -> None:
    with pytest.raises(InvalidParams, match="one of"):
        BEFORE.encoder.encode([{"x": 0.5, "kind": option}])


@pytest.mark.parametrize("value", ["text", None, [], {"a": 1}, "\\ud83d"])
@pytest.mark.parametrize("kind", [ft.Float(0, 1), ft.Float(0, 1, step=0.5), ft.Int(1, 9), ft.Int(1, 9, log=True)])
def test_what_is_no_number_is_refused_where_it_is_encoded(kind: ft.Float | ft.Int, value: object) -> None:
    space = ft.Space({"x": kind})
    with pytest.raises(InvalidParams, match="must"):
        space.encoder.encode([{"x": 1}, {"x": value}])


@pytest.mark.parametrize("value", [2**70, float("nan"), float("inf")])
def test_a_number_that_no_index_can_be_is_refused_where_it_is_encoded(value: float) -> None:
    with pytest.raises(InvalidParams, match="x must"):
        ft.Space({"x": ft.Int(1, 9)}).encoder.encode([{"x": 1}, {"x": value}])
