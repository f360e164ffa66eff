"""The encoder: where values lie in the unit cube, and what points come back as."""

import math
import time

import numpy as np
import pytest

from farthing.errors import InvalidParams
from farthing.space import Choice, Fidelity, Float, Int, Space

SPACE = Space(
    {
        "lr": Float(1e-4, 1e-2, log=True),
        "momentum": Float(-1, 1),
        "units": Int(1, 4),
        "size": Choice("s", "m", "l", ordered=True),
        "act": Choice("relu", "tanh"),
        "slope": Float(0, 1, step=0.25, when={"act": "relu"}),
    },
    fidelities={"epochs": Fidelity(1, 50, integer=True, trace=True), "data": Fidelity(0.1, 2)},
)
PARAMS = [
    {"lr": 1e-3, "momentum": 0.0, "units": 1, "size": "m", "act": "relu", "slope": 0.25},
    {"lr": 1e-2, "momentum": -1.0, "units": 4, "size": "l", "act": "tanh"},
]
POINTS = np.array([[0.5, 0.5, 0.125, 0.5, 0.0, 0.3], [1.0, 0.0, 0.875, 5 / 6, 1.0, np.nan]])


def test_the_columns_are_described() -> None:
    encoder = SPACE.encoder

    assert encoder.names == ("lr", "momentum", "units", "size", "act", "slope")
    assert encoder.dimension == 6
    assert encoder.categories == {4: 2}
    assert encoder.discrete == {2: 4, 3: 3, 5: 5}


def test_values_lie_on_their_scale_and_discrete_ones_at_the_centre_of_their_bin() -> None:
    np.testing.assert_allclose(SPACE.encoder.encode(PARAMS), POINTS, rtol=1e-15)


def test_decoding_gives_the_params_back_in_plain_python_values() -> None:
    decoded = SPACE.encoder.decode(POINTS)

    assert decoded == [pytest.approx(PARAMS[0]), PARAMS[1]]
    assert [type(value) for value in decoded[0].values()] == [float, float, int, str, str, float]


def test_a_logarithmic_integer_lies_in_the_middle_of_its_bin() -> None:
    encoder = Space({"units": Int(1, 100, log=True)}).encoder
    start, end = math.log(0.5), math.log(100.5)

    (x,) = encoder.encode([{"units": 10}])[0]

    assert x == pytest.approx(((math.log(9.5) + math.log(10.5)) / 2 - start) / (end - start), rel=1e-14)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("low", [1, 2**40 - 3])
def test_the_largest_integers_keep_their_own_bins(low: int, log: bool) -> None:
    encoder = Space({"x": Int(low, 2**40, log=log)}).encoder
    params = [{"x": value} for value in (low, low + 1, 2**40 - 1, 2**40)]

    assert encoder.decode(encoder.encode(params)) == params


def test_none_is_an_option_and_not_an_absence() -> None:
    encoder = Space({"penalty": Choice(None, "l2")}).encoder

    assert encoder.encode([{"penalty": None}]).tolist() == [[0.0]]
    assert encoder.decode(np.array([[0.0]])) == [{"penalty": None}]


def test_uniform_points_become_indices_centres_and_nan() -> None:
    U = np.array([[0.0, 1.0, 0.26, 0.99, 0.49, 0.5], [0.5, 0.5, 1.0, 0.0, 1.0, 0.5]])

    X = SPACE.encoder.from_unit(U)

    np.testing.assert_allclose(X, [[0.0, 1.0, 0.375, 5 / 6, 0.0, 0.5], [0.5, 0.5, 0.875, 1 / 6, 1.0, np.nan]])


def test_snapping_clips_rounds_and_marks_what_is_inactive() -> None:
    outside = np.array([[-1.0, 2.0, 0.3, np.inf, 0.6, 0.1], [0.1, -np.inf, 9.0, -9.0, -3.0, 0.55]])

    snapped = SPACE.encoder.snap(outside)

    np.testing.assert_allclose(snapped, [[0.0, 1.0, 0.375, 5 / 6, 1.0, np.nan], [0.1, 0.0, 0.875, 1 / 6, 0.0, 0.5]])


def test_methods_leave_their_arguments_alone() -> None:
    U = np.full((1, 6), 0.9)

    SPACE.encoder.from_unit(U)
    SPACE.encoder.snap(U)
    SPACE.encoder.decode(U)

    assert (U == 0.9).all()


def test_a_missing_coordinate_of_an_active_parameter_is_refused() -> None:
    X = POINTS.copy()
    X[1, 2] = np.nan

    with pytest.raises(InvalidParams, match=r"must have a coordinate, got none for 'units' in row 1\. Fill in"):
        SPACE.encoder.decode(X)
    with pytest.raises(InvalidParams, match="got none for 'slope' in row 0"):
        SPACE.encoder.encode([{**PARAMS[1], "act": "relu"}])


def test_an_inactive_value_is_not_encoded() -> None:
    assert math.isnan(SPACE.encoder.encode([{**PARAMS[1], "slope": 0.5}])[0, 5])


def test_an_array_of_another_shape_is_refused() -> None:
    for points in (np.zeros(6), np.zeros((2, 5))):
        with pytest.raises(InvalidParams, match=r"shape \(n, 6\), got shape .* Pass one row per point"):
            SPACE.encoder.decode(points)


def test_no_rows_are_fine() -> None:
    encoder = SPACE.encoder

    assert encoder.encode([]).shape == (0, 6)
    assert encoder.decode(np.zeros((0, 6))) == []
    assert encoder.from_unit(np.zeros((0, 6))).shape == (0, 6)
    assert encoder.encode_fidelity([]).shape == (0, 2)
    assert encoder.decode_fidelity(np.zeros((0, 2))) == []


def test_a_fidelity_is_the_fraction_of_its_full_amount() -> None:
    S = SPACE.encoder.encode_fidelity([{"epochs": 50, "data": 2.0}, {"epochs": 10, "data": 0.1}])

    np.testing.assert_array_equal(S, [[1.0, 1.0], [0.2, 0.05]])


def test_fidelities_are_decoded_within_their_bounds_and_whole_where_declared() -> None:
    decoded = SPACE.encoder.decode_fidelity(np.array([[0.0, 0.0], [2.0, 2.0], [0.25, 0.25]]))

    assert decoded == [{"epochs": 1, "data": 0.1}, {"epochs": 50, "data": 2.0}, {"epochs": 12, "data": 0.5}]
    assert all(type(amounts["epochs"]) is int for amounts in decoded)


def test_a_fidelity_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidParams, match=r"must be numbers, got NaN\. Use 1 for the full"):
        SPACE.encoder.decode_fidelity(np.array([[np.nan, 1.0]]))


def test_a_space_without_fidelities_has_no_fidelity_columns() -> None:
    encoder = Space({"x": Float(0, 1)}).encoder

    assert encoder.encode_fidelity([{}, {}]).shape == (2, 0)
    assert encoder.decode_fidelity(np.zeros((2, 0))) == [{}, {}]


def test_ten_thousand_rows_take_a_fraction_of_a_second() -> None:
    encoder = SPACE.encoder
    U = np.random.default_rng(0).random((10_000, encoder.dimension))

    started = time.process_time()
    X = encoder.from_unit(U)
    encoder.encode(encoder.decode(X))

    # About 0.03 s on a laptop; work done row by row in NumPy takes many times the limit.
    assert time.process_time() - started < 0.5
