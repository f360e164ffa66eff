"""Fidelity: what it accepts and refuses, alone and in a space."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidParams, InvalidSpace
from farthing.space import Fidelity, Float, Space

SPACE = Space(
    {"lr": Float(0, 1)}, fidelities={"epochs": Fidelity(1, 50, integer=True, trace=True), "data": Fidelity(0.05, 1)}
)


@pytest.mark.parametrize(
    ("declare", "parts"),
    [
        (lambda: Fidelity(0, 1), ("low > 0", "Fidelity(0.0, 1.0)", "no work at all")),
        (lambda: Fidelity(-1, 1), ("low > 0", "Fidelity(-1.0, 1.0)", "no work at all")),
        (lambda: Fidelity(2, 1), ("low < high", "Fidelity(2.0, 1.0)", "Swap or widen")),
        (lambda: Fidelity(1, 1), ("low < high", "Fidelity(1.0, 1.0)", "Swap or widen")),
        (lambda: Fidelity(1, math.inf), ("must be a finite number", "inf", "Write it like")),
        (lambda: Fidelity(True, 2), ("must be a finite number", "True", "Write it like")),
        (lambda: Fidelity(1, 2.5, integer=True), ("must be an integer", "2.5", "without a point")),
        (lambda: Fidelity(1, 2, trace="yes"), ("true or false", "'yes'", "Pass True")),
        (lambda: Fidelity(1, 2, integer=None), ("true or false", "None", "Pass True")),
    ],
)
def test_an_impossible_fidelity_is_refused(declare: Callable[[], Any], parts: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidSpace) as refusal:
        declare()

    for part in parts:
        assert part in str(refusal.value)


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"epochs": 51}, ("epochs must lie in [1, 50]", "got 51", "within the bounds")),
        ({"epochs": 0}, ("epochs must lie in [1, 50]", "got 0", "within the bounds")),
        ({"epochs": 2.5}, ("must be a whole number", "2.5", "as an int")),
        ({"data": "all"}, ("must be a finite number", "'all'", "as a float")),
        ({"epoch": 3}, ("must be among 'epochs', 'data'", "'epoch'", "Did you mean 'epochs'?")),
        (3, ("must map names to values", "got 3", "Pass a dict")),
    ],
)
def test_a_fidelity_outside_the_space_is_refused(values: Any, parts: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidParams) as refusal:
        SPACE.check_fidelity(values)

    for part in parts:
        assert part in str(refusal.value)


def test_a_space_without_fidelities_says_so() -> None:
    with pytest.raises(InvalidParams, match=r"There are no fidelities here, got 'epochs'\. Remove or rename"):
        Space({"lr": Float(0, 1)}).check_fidelity({"epochs": 3})


def test_what_is_not_named_is_at_its_full_amount() -> None:
    assert SPACE.full_fidelity == {"epochs": 50, "data": 1.0}
    assert SPACE.check_fidelity(None) == SPACE.full_fidelity
    assert SPACE.check_fidelity({}) == SPACE.full_fidelity
    assert SPACE.check_fidelity({"data": 0.5}) == {"epochs": 50, "data": 0.5}


def test_amounts_are_canonical_and_in_the_order_of_the_space() -> None:
    checked = SPACE.check_fidelity({"data": 1 + 1e-13, "epochs": np.float64(7)})

    assert list(checked.items()) == [("epochs", 7), ("data", 1.0)]
    assert type(checked["epochs"]) is int


def test_the_repr_is_the_expression_that_declares_it() -> None:
    assert repr(Fidelity(1, 50, integer=True, trace=True)) == "Fidelity(1, 50, integer=True, trace=True)"
    assert repr(Fidelity(0.05, 1)) == "Fidelity(0.05, 1.0)"
