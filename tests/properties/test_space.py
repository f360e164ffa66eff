"""What must hold for every space."""

import json
import math
import pickle
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farthing.errors import InvalidParams
from farthing.space import Choice, Fidelity, Float, Int, Space
from tests.strategies import (
    fidelities,
    linear_ints,
    log_ints,
    parameters,
    plain_spaces,
    spaces,
    spaces_with_params,
    stepped_floats,
    texts,
    values_of,
)

EPSILON = float(np.finfo(float).eps)

seeds = st.integers(0, 2**32 - 1)


def uniform_points(space: Space, seed: int, *, count: int = 20) -> npt.NDArray[np.float64]:
    """Points of the unit cube, corners included."""
    inside = np.random.default_rng(seed).random((count, space.encoder.dimension))
    return np.vstack([inside, np.zeros_like(inside[:1]), np.ones_like(inside[:1])])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), seed=seeds)
def test_a_row_is_decoded_alone_to_the_bit_as_among_others(space: Space, seed: int) -> None:
    U = uniform_points(space, seed)
    alone = [space.encoder.decode_unit_row(u) for u in U.tolist()]
    assert [list(params.items()) for params in alone] == [list(p.items()) for p in space.encoder.decode_unit(U)]
    assert all(type(value) in (float, int, str, bool, type(None)) for params in alone for value in params.values())


def loss_of_precision(parameter: Float) -> float:
    """The largest error of a value that went through a coordinate in [0, 1], which is itself rounded.

    Four roundings of half an ulp on the linear scale; on the logarithmic one, where the coordinate is multiplied by
    log(high / low) before the exponential, that many more relative to the value.
    """
    scale = max(abs(parameter.low), abs(parameter.high))
    return 4 * EPSILON * scale if not parameter.log else (4 + 2 * math.log(parameter.high / parameter.low)) * EPSILON


def same(space: Space, expected: dict[str, Any], got: dict[str, Any]) -> bool:
    """Whether got is expected: to the bit and the type for discrete parameters, to rounding for continuous ones."""
    return list(expected) == list(got) and all(_same_value(space, name, expected[name], got[name]) for name in expected)


def _same_value(space: Space, name: str, expected: Any, got: Any) -> bool:
    parameter = space.parameters[name]
    if not isinstance(parameter, Float) or parameter.step is not None:
        return bool(got == expected) and type(got) is type(expected)
    if expected in (parameter.low, parameter.high):
        return bool(got == expected)
    loss = loss_of_precision(parameter)
    return abs(got - expected) <= (loss * abs(expected) if parameter.log else loss)


@given(spaces())
def test_json_gives_back_an_equal_space(space: Space) -> None:
    again = Space.from_json(json.loads(json.dumps(space.to_json())))

    assert again == space
    assert repr(again) == repr(space)  # 1, 1.0 and True are equal but not written alike


@given(spaces(null=False))
def test_toml_gives_back_an_equal_space(space: Space) -> None:
    again = Space.from_toml(space.to_toml())

    assert again == space
    assert repr(again) == repr(space)


@given(spaces())
def test_a_space_survives_pickling_and_its_own_repr(space: Space) -> None:
    names = {"Space": Space, "Float": Float, "Int": Int, "Choice": Choice, "Fidelity": Fidelity}

    assert pickle.loads(pickle.dumps(space)) == space
    assert eval(repr(space), names) == space


@given(spaces_with_params())
def test_check_leaves_canonical_params_as_they_are(drawn: tuple[Space, list[dict[str, Any]]]) -> None:
    space, rows = drawn
    for params in rows:
        assert list(space.check(params).items()) == list(params.items())
        assert space.active_names(params) == list(params)


@given(spaces_with_params())
def test_decoding_what_was_encoded_gives_back_the_params(drawn: tuple[Space, list[dict[str, Any]]]) -> None:
    space, rows = drawn

    decoded = space.encoder.decode(space.encoder.encode(rows))

    assert len(decoded) == len(rows)
    assert all(same(space, expected, got) for expected, got in zip(rows, decoded, strict=True))


@given(spaces(), seeds)
def test_every_uniform_point_decodes_to_params_that_check_accepts(space: Space, seed: int) -> None:
    decoded = space.encoder.decode(space.encoder.from_unit(uniform_points(space, seed)))

    for params in decoded:
        checked = space.check(params)
        assert list(checked.items()) == list(params.items())
        assert [type(value) for value in checked.values()] == [type(value) for value in params.values()]


@given(spaces(), seeds)
def test_inactive_parameters_are_absent_and_their_coordinates_nan(space: Space, seed: int) -> None:
    X = space.encoder.from_unit(uniform_points(space, seed))

    for x, params in zip(X, space.encoder.decode(X), strict=True):
        active = [name for name, coordinate in zip(space.encoder.names, x, strict=True) if not math.isnan(coordinate)]
        assert active == list(params) == space.active_names(params)


@given(spaces(), seeds)
def test_snapping_is_a_projection_and_encoding_what_was_decoded_agrees_with_it(space: Space, seed: int) -> None:
    encoder = space.encoder
    anywhere = 3 * uniform_points(space, seed) - 1

    snapped = encoder.snap(anywhere)

    np.testing.assert_array_equal(encoder.snap(snapped), snapped)
    # A coordinate in [0, 1] that became a value and came back has lost what the value's rounding cost.
    widest = [_coordinate_loss(space, name) for name in encoder.names]
    difference = np.abs(encoder.encode(encoder.decode(snapped)) - snapped)
    assert np.all(np.isnan(difference) | (difference <= widest))


def _coordinate_loss(space: Space, name: str) -> float:
    parameter = space.parameters[name]
    if not isinstance(parameter, Float) or parameter.step is not None:
        return 0.0
    if parameter.log:
        return loss_of_precision(parameter) / math.log(parameter.high / parameter.low) + 4 * EPSILON
    return loss_of_precision(parameter) / (parameter.high - parameter.low) + 4 * EPSILON


@given(spaces(), seeds)
def test_many_rows_give_what_each_row_gives_alone(space: Space, seed: int) -> None:
    encoder = space.encoder
    U = uniform_points(space, seed)
    X = encoder.from_unit(U)
    params = encoder.decode(X)

    np.testing.assert_array_equal(X, np.vstack([encoder.from_unit(u[None]) for u in U]))
    np.testing.assert_array_equal(encoder.snap(X), np.vstack([encoder.snap(x[None]) for x in X]))
    assert params == [encoder.decode(x[None])[0] for x in X]
    np.testing.assert_array_equal(encoder.encode(params), np.vstack([encoder.encode([row]) for row in params]))


@given(parameters())
def test_both_ends_of_the_unit_interval_reach_the_first_and_the_last_value(parameter: Float | Int | Choice) -> None:
    encoder = Space({"x": parameter}).encoder

    first, last = (params["x"] for params in encoder.decode(encoder.from_unit(np.array([[0.0], [1.0]]))))

    ends = parameter.options if isinstance(parameter, Choice) else (parameter.low, parameter.high)
    assert (first, last) == (ends[0], ends[-1])


@given(linear_ints() | stepped_floats(), st.integers(1, 5))
def test_a_uniform_coordinate_covers_the_values_of_a_grid_equally(parameter: Int | Float, each: int) -> None:
    assert parameter.count is not None
    points = each * parameter.count
    u = (np.arange(points) + 0.5) / points
    encoder = Space({"x": parameter}).encoder

    times = Counter(params["x"] for params in encoder.decode(encoder.from_unit(u[:, None])))

    assert times == {parameter.value_at(index): each for index in range(parameter.count)}


@given(log_ints(), st.data())
def test_a_logarithmic_integer_has_the_bin_between_its_halves(parameter: Int, data: st.DataObject) -> None:
    value = data.draw(values_of(parameter))
    start, end = math.log(parameter.low - 0.5), math.log(parameter.high + 0.5)
    left, right = ((math.log(value + half) - start) / (end - start) for half in (-0.5, 0.5))
    inward = 1e-6 * (right - left)  # the edges themselves may round to either side
    encoder = Space({"x": parameter}).encoder

    decoded = encoder.decode(encoder.from_unit(np.array([[left + inward], [right - inward]])))

    assert decoded == [{"x": value}, {"x": value}]
    assert left < encoder.encode([{"x": value}])[0, 0] < right


@given(fidelities(), st.data())
def test_fidelities_come_back_from_their_coordinates(fidelity: Fidelity, data: st.DataObject) -> None:
    strategy = st.integers if fidelity.integer else st.floats
    amount = data.draw(strategy(fidelity.low, fidelity.high) | st.sampled_from([fidelity.low, fidelity.high]))
    encoder = Space({"x": Float(0, 1)}, fidelities={"data": fidelity}).encoder

    s = encoder.encode_fidelity([{"data": amount}])
    again = encoder.decode_fidelity(s)[0]["data"]

    assert s[0, 0] == amount / fidelity.high
    if fidelity.integer or amount in (fidelity.low, fidelity.high):
        assert again == amount
        assert type(again) is type(amount)
    assert math.isclose(again, amount, rel_tol=2 * EPSILON)  # one division and one multiplication


@given(plain_spaces(), st.floats(-1, 2))
def test_every_fidelity_coordinate_decodes_to_an_amount_that_check_accepts(space: Space, s: float) -> None:
    S = np.full((3, len(space.fidelities)), s)

    for amounts in space.encoder.decode_fidelity(S):
        assert space.check_fidelity(amounts) == amounts


@given(spaces(), texts())
def test_an_unknown_parameter_is_always_refused_in_one_line(space: Space, name: str) -> None:
    if name in space.parameters:
        return
    with pytest.raises(InvalidParams) as refusal:
        space.check({name: 1})
    assert "\n" not in str(refusal.value)
