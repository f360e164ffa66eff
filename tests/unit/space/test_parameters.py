"""Float, Int and Choice: what they accept, what they refuse, what they hold."""

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from farthing.errors import InvalidParams, InvalidSpace
from farthing.space import Choice, Float, Int, Parameter

REFUSED: list[tuple[str, Callable[[], Any], tuple[str, str, str]]] = [
    ("reversed float bounds", lambda: Float(1, 0), ("low < high", "Float(1.0, 0.0)", "Swap or widen")),
    ("equal float bounds", lambda: Float(1, 1), ("low < high", "Float(1.0, 1.0)", "needs no parameter")),
    ("reversed integer bounds", lambda: Int(3, 2), ("low < high", "Int(3, 2)", "Swap or widen")),
    ("equal integer bounds", lambda: Int(3, 3), ("low < high", "Int(3, 3)", "Swap or widen")),
    ("NaN", lambda: Float(math.nan, 1), ("low of a Float must be a finite number", "nan", "Write it like")),
    ("infinity", lambda: Float(0, math.inf), ("high of a Float must be a finite number", "inf", "Write it like")),
    ("text as a number", lambda: Float("0", 1), ("must be a finite number", "'0'", "Write it like")),
    ("a float too large for a double", lambda: Float(0, 10**400), ("finite number", "1000", "Write it like")),
    ("a range too wide for a double", lambda: Float(-1e308, 1e308), ("high - low", "1e+308", "closer together")),
    ("booleans as floats", lambda: Float(False, True), ("must be a finite number", "False", "Write it like")),
    ("booleans as integers", lambda: Int(False, 3), ("must be an integer", "False", "Write it like 10")),
    ("NumPy booleans", lambda: Int(0, np.True_), ("must be an integer", "True", "Write it like 10")),
    ("an array as a bound", lambda: Float(np.zeros(2), 1), ("must be a finite number", "array", "Write it like")),
    ("half an integer", lambda: Int(1.5, 3), ("low of an Int must be an integer", "1.5", "without a point")),
    ("a float for an integer", lambda: Int(1, 1e5), ("high of an Int must be an integer", "100000.0", "without")),
    ("an integer beyond doubles", lambda: Int(0, 2**60), ("±2**40", str(2**60), "Scale it down")),
    ("log from zero", lambda: Float(0, 1, log=True), ("low > 0", "Float(0.0, 1.0, log=True)", "drop log=")),
    ("log of negatives", lambda: Int(-1, 4, log=True), ("low > 0", "Int(-1, 4, log=True)", "drop log=")),
    ("log over everything", lambda: Float(1e-200, 1e200, log=True), ("at most 1e300", "1e-200", "closer")),
    ("log that is no flag", lambda: Float(1, 2, log="yes"), ("true or false", "'yes'", "Pass True")),
    ("a float step with log", lambda: Float(1, 2, log=True, step=0.5), ("linear scale", "step=0.5", "Drop log=")),
    ("an integer step with log", lambda: Int(1, 9, log=True, step=2), ("linear scale", "step=2", "Drop log=")),
    ("a float step that does not fit", lambda: Float(0, 1, step=0.3), ("divide high - low", "step=0.3", "Move a")),
    ("an integer step that does not fit", lambda: Int(0, 5, step=2), ("divide high - low", "step=2", "Move a")),
    ("a step wider than the range", lambda: Float(0, 1, step=1.5), ("divide high - low", "step=1.5", "Move a")),
    ("no step", lambda: Float(0, 1, step=0), ("must be positive", "step=0.0", "coarser")),
    ("no integer step", lambda: Int(0, 5, step=0), ("at least 1", "step=0", "positive step")),
    ("a backward step", lambda: Float(0, 1, step=-0.5), ("must be positive", "step=-0.5", "coarser")),
    ("a backward integer step", lambda: Int(0, 5, step=-1), ("at least 1", "step=-1", "positive step")),
    ("a step lost in rounding", lambda: Float(1e9, 1e9 + 1, step=0.5), ("1e-9 of its bounds", "0.5", "coarser")),
    ("a fraction of an integer step", lambda: Int(0, 5, step=0.5), ("must be an integer", "0.5", "without")),
    ("no options", lambda: Choice(), ("at least one option", "got none", "Choice('a', 'b')")),
    ("a list of options", lambda: Choice(["a", "b"]), ("strings, finite numbers", "['a', 'b']", "Choice(*options)")),
    ("an object as an option", lambda: Choice(object), ("strings, finite numbers", "object", "look it up")),
    ("NaN as an option", lambda: Choice(math.nan), ("finite numbers", "nan", "look it up")),
    ("text no file can hold", lambda: Choice("\ud800"), ("strings", "\\ud800", "look it up")),
    ("the same option twice", lambda: Choice("a", "a"), ("must differ", "'a' twice", "Drop one")),
    ("one and true", lambda: Choice(1, True), ("must differ", "True twice (1, 1.0 and True", "as strings")),
    ("one and one point nought", lambda: Choice(1, 1.0), ("must differ", "1.0 twice", "as strings")),
    ("ordered that is no flag", lambda: Choice("a", ordered=1), ("true or false", "got 1", "Pass True")),
]


@pytest.mark.parametrize(("declare", "parts"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_cannot_be_meant_is_refused_at_construction(
    declare: Callable[[], Any], parts: tuple[str, str, str]
) -> None:
    with pytest.raises(InvalidSpace) as refusal:
        declare()

    rule, came, remedy = parts
    message = str(refusal.value)
    assert rule in message
    assert came in message
    assert remedy in message
    assert "\n" not in message


WRONG_VALUES: list[tuple[Parameter, Any, tuple[str, str, str]]] = [
    (Float(0, 1), 1.1, ("x must lie in [0.0, 1.0]", "got 1.1", "within the bounds")),
    (Float(0, 1), -1e-9, ("x must lie in", "-1e-09", "within the bounds")),
    (Float(1e-20, 1, log=True), 0.0, ("x must lie in", "got 0.0", "within the bounds")),
    (Float(0, 1), "0.5", ("must be a finite number", "'0.5'", "as a float")),
    (Float(0, 1), True, ("must be a finite number", "True", "as a float")),
    (Float(0, 1), math.nan, ("must be a finite number", "nan", "as a float")),
    (Float(0, 1), None, ("must be a finite number", "None", "as a float")),
    (Float(0, 1, step=0.1), 0.25, ("multiple of its step 0.1", "got 0.25", "nearest such is 0.2")),
    (Int(1, 9), 10, ("x must lie in [1, 9]", "got 10", "within the bounds")),
    (Int(1, 9), 2.5, ("must be a whole number", "2.5", "as an int")),
    (Int(1, 9), True, ("must be a whole number", "True", "as an int")),
    (Int(1, 9), np.True_, ("must be a whole number", "True", "as an int")),
    (Int(1, 9), "2", ("must be a whole number", "'2'", "as an int")),
    (Int(1, 9, step=4), 3, ("multiple of its step 4", "got 3", "nearest such is 1")),
    (Choice("relu", "tanh"), "rleu", ("must be one of 'relu', 'tanh'", "'rleu'", "Did you mean 'relu'?")),
    (Choice("relu", "tanh"), 7, ("must be one of 'relu', 'tanh'", "got 7", "Choose one of the options")),
    (Choice("relu", "tanh"), ["relu"], ("must be one of", "['relu']", "Choose one of the options")),
    (Choice(*range(20)), 20, ("6, 7 and 12 more", "got 20", "Choose one of the options")),
]


@pytest.mark.parametrize(("parameter", "value", "parts"), WRONG_VALUES, ids=repr)
def test_a_value_that_the_parameter_cannot_take_is_refused(
    parameter: Parameter, value: Any, parts: tuple[str, str, str]
) -> None:
    with pytest.raises(InvalidParams) as refusal:
        parameter.check(value, name="x")

    rule, came, remedy = parts
    message = str(refusal.value)
    assert rule in message
    assert came in message
    assert remedy in message
    assert "\n" not in message


def test_an_error_shows_a_large_array_in_one_bounded_line() -> None:
    with pytest.raises(InvalidParams) as refusal:
        Float(0, 1).check(np.zeros((50, 50)), name="x")

    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 200


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("parameter", "value", "canonical"),
    [
        (Float(0, 1), 1, 1.0),
        (Float(0, 1), np.float32(0.5), 0.5),
        (Float(0, 1), np.array(0.25), 0.25),
        (Float(0, 1), Fraction(1, 4), 0.25),
        (Float(0, 1), 1 + 1e-13, 1.0),
        (Float(0, 1), -1e-13, 0.0),
        (Float(1e-5, 1e-1, log=True), 1e-5 * (1 - 1e-13), 1e-5),
        (Float(0, 1, step=0.1), 0.1 + 0.2, 0.3),
        (Float(0, 1, step=0.1), 0.3 + 1e-11, 0.3),
        (Float(1e6, 1e6 + 1, step=0.1), 1000000.7, 1000000.7),
        (Int(1, 9), 3.0, 3),
        (Int(1, 9), np.int64(3), 3),
        (Int(1, 9), np.uint8(3), 3),
        (Int(1, 9), 3 + 1e-10, 3),
        (Choice("a", "b"), np.str_("a"), "a"),
        (Choice("red", "blue"), Colour.RED, "red"),
        (Choice(True, False), np.True_, True),
        (Choice(True, False), 1, True),
        (Choice(8, 16), 16.0, 16),
        (Choice(None, "l2"), None, None),
    ],
    ids=repr,
)
def test_a_value_is_returned_in_its_canonical_form(parameter: Parameter, value: Any, canonical: Any) -> None:
    checked = parameter.check(value, name="x")

    assert checked == canonical
    assert type(checked) is type(canonical)


def test_numpy_numbers_declare_what_python_numbers_declare() -> None:
    assert Float(np.float64(0.5), np.float32(2)) == Float(0.5, 2)
    assert Int(np.int32(1), np.int64(4), step=np.int8(3)) == Int(1, 4, step=3)
    assert Choice(np.str_("a"), np.int64(2), np.float64(0.5), np.True_).options == ("a", 2, 0.5, True)
    assert [type(option) for option in Choice(np.str_("a"), np.int64(2), np.True_).options] == [str, int, bool]


def test_the_values_of_a_stepped_float_are_the_decimals_one_would_write() -> None:
    tenths = Float(0, 1, step=0.1)

    assert [tenths.value_at(index) for index in range(11)] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


@pytest.mark.parametrize(
    ("low", "high", "step", "count"),
    [
        (0, 2 * math.pi, math.pi / 4, 9),
        (0, 1, 1 / 3, 4),
        (-0.3, 0.3, 0.1, 7),
        (1e-5, 3e-5, 1e-5, 3),
        (5, 1e22, 1e22 - 5, 2),
    ],
)
def test_a_step_may_fit_up_to_rounding_and_still_reaches_both_bounds(
    low: float, high: float, step: float, count: int
) -> None:
    parameter = Float(low, high, step=step)

    assert parameter.count == count
    assert parameter.value_at(0) == low
    assert parameter.value_at(count - 1) == high
    assert all(parameter.index_of(parameter.value_at(index)) == index for index in range(count))


def test_declarations_are_frozen_hashable_and_equal_by_content() -> None:
    parameter = Float(0, 1, when={"act": "relu"})

    assert parameter == Float(0.0, 1.0, when={"act": ["relu"]})
    assert hash(parameter) == hash(Float(0, 1, when={"act": ("relu",)}))
    assert parameter != Float(0, 1)
    assert Int(0, 1) != Float(0, 1)
    with pytest.raises(FrozenInstanceError):
        parameter.low = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        (Float(1e-5, 0.1, log=True), "Float(1e-05, 0.1, log=True)"),
        (Float(0, 1, step=0.5), "Float(0.0, 1.0, step=0.5)"),
        (Int(1, 9, step=2, when={"act": "relu"}), "Int(1, 9, step=2, when={'act': ('relu',)})"),
        (Choice("a", None, ordered=True), "Choice('a', None, ordered=True)"),
    ],
)
def test_the_repr_is_the_expression_that_declares_it(parameter: Parameter, text: str) -> None:
    assert repr(parameter) == text
