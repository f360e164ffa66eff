"""Conditions: when a parameter is active, and which conditions cannot be meant."""

from collections.abc import Callable
from typing import Any

import pytest

from farthing.errors import InvalidParams, InvalidSpace
from farthing.space import Choice, Float, Int, Space

# Declared children first: the order of declaration need not follow the dependencies.
SPACE = Space(
    {
        "nesterov": Choice(True, False, when={"momentum_kind": "constant", "optimizer": ["sgd", "momentum"]}),
        "momentum_kind": Choice("constant", "cosine", when={"optimizer": "momentum"}),
        "optimizer": Choice("sgd", "momentum", "adam"),
        "layers": Int(1, 3),
        "third_width": Float(1, 2, when={"layers": 3}),
    }
)

REFUSED: list[tuple[str, Callable[[], Any], tuple[str, str, str]]] = [
    (
        "an unknown parent",
        lambda: Space({"act": Choice("a", "b"), "x": Float(0, 1, when={"atc": "a"})}),
        ("parameter of the same space", "'atc' for 'x'", "Did you mean 'act'?"),
    ),
    (
        "an unknown parent with nothing near",
        lambda: Space({"x": Float(0, 1, when={"optimizer": "a"})}),
        ("parameter of the same space", "'optimizer' for 'x'", "Add it to the space"),
    ),
    (
        "a continuous parent",
        lambda: Space({"lr": Float(0, 1), "x": Float(0, 1, when={"lr": 0.5})}),
        ("must be a Choice or an Int", "the Float 'lr' for 'x'", "Make the parent a Choice"),
    ),
    (
        "an option the parent does not have",
        lambda: Space({"act": Choice("relu", "tanh"), "x": Float(0, 1, when={"act": "rleu"})}),
        ("condition of 'x' must name values its parent can take", "got 'rleu'", "Did you mean 'relu'?"),
    ),
    (
        "an integer out of the parent's bounds",
        lambda: Space({"layers": Int(1, 3), "x": Float(0, 1, when={"layers": [3, 4]})}),
        ("must name values its parent can take", "got 4", "within the bounds"),
    ),
    (
        "a cycle",
        lambda: Space({"a": Choice(1, 2, when={"b": 1}), "b": Choice(1, 2, when={"a": 1})}),
        ("must not form a cycle", "'a' → 'b'", "Drop one of these when="),
    ),
    (
        "a parameter that depends on itself",
        lambda: Space({"a": Choice(1, 2, when={"a": 1})}),
        ("must not form a cycle", "'a' → 'a'", "Drop one of these when="),
    ),
    ("no mapping", lambda: Int(1, 2, when="act"), ("map the names of parents", "'act'", "when={'optimizer'")),
    ("no values", lambda: Int(1, 2, when={"act": []}), ("one or more values", "[] for 'act'", "Write one value")),
    (
        "no scalars",
        lambda: Int(1, 2, when={"act": {"a"}}),
        ("one or more values", "{'a'} for 'act'", "Write one value"),
    ),
    ("no name", lambda: Int(1, 2, when={1: "a"}), ("name its parents by strings", "got 1", "parameter's name")),
]


@pytest.mark.parametrize(("declare", "parts"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_condition_that_cannot_be_meant_is_refused(declare: Callable[[], Any], parts: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidSpace) as refusal:
        declare()

    for part in parts:
        assert part in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_condition_is_kept_as_a_tuple_of_values_for_each_parent() -> None:
    assert Float(0, 1).when == {}
    assert Float(0, 1, when={}).when == {}
    assert Float(0, 1, when={"a": "x", "b": ["y", "z"], "c": range(2)}).when == {
        "a": ("x",),
        "b": ("y", "z"),
        "c": (0, 1),
    }


def test_a_space_holds_the_values_of_a_condition_as_the_parent_declares_them() -> None:
    space = Space({"flag": Choice(True, False), "layers": Int(1, 3), "x": Float(0, 1, when={"flag": 1, "layers": 2.0})})

    assert repr(space.parameters["x"]) == "Float(0.0, 1.0, when={'flag': (True,), 'layers': (2,)})"


@pytest.mark.parametrize(
    ("params", "active"),
    [
        ({"optimizer": "adam", "layers": 1}, ["optimizer", "layers"]),
        ({"optimizer": "adam", "layers": 3}, ["optimizer", "layers", "third_width"]),
        ({"optimizer": "momentum", "layers": 1}, ["momentum_kind", "optimizer", "layers"]),
        (
            {"optimizer": "momentum", "momentum_kind": "constant", "layers": 1},
            ["nesterov", "momentum_kind", "optimizer", "layers"],
        ),
        # The parent is present but inactive itself, so the child stays inactive.
        ({"optimizer": "sgd", "momentum_kind": "constant", "layers": 1}, ["optimizer", "layers"]),
        ({}, ["optimizer", "layers"]),
    ],
)
def test_active_names_follow_every_parent(params: dict[str, Any], active: list[str]) -> None:
    assert SPACE.active_names(params) == active


def test_an_active_parameter_must_be_present() -> None:
    with pytest.raises(InvalidParams, match=r"active parameter must have a value, got none for 'third_width'\. Add"):
        SPACE.check({"optimizer": "adam", "layers": 3})


def test_an_inactive_parameter_must_be_absent() -> None:
    with pytest.raises(InvalidParams) as refusal:
        SPACE.check({"optimizer": "adam", "layers": 2, "third_width": 1.5})

    assert str(refusal.value) == (
        "An inactive parameter must be absent, got third_width=1.5. "
        "Leave it out, or meet its condition {'layers': (3,)}."
    )


def test_checked_params_follow_the_order_of_the_space() -> None:
    given = {"layers": 3.0, "third_width": 2, "optimizer": "momentum", "nesterov": False, "momentum_kind": "constant"}

    checked = SPACE.check(given)

    assert list(checked) == list(SPACE.parameters)
    assert checked["layers"] == 3
    assert type(checked["layers"]) is int
    assert list(given) == ["layers", "third_width", "optimizer", "nesterov", "momentum_kind"]
