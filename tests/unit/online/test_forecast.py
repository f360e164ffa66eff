"""What staying will give, how sure that is, and when it is lost."""

import numpy as np
import pytest

from farthing.online.forecast import DAMPED, LEAST_SHARE, REMEMBERED, TO_DEVIATION, Forecast


def stayed(*values: float) -> Forecast:
    """The forecast after these values of staying, in decisions 1, 2, …"""
    forecast = Forecast()
    for decision, value in enumerate(values, start=1):
        forecast.stayed(decision, value)
    return forecast


def test_the_forecast_is_the_last_value_and_a_part_of_its_change() -> None:
    forecast = Forecast()
    forecast.stayed(2, 0.5)
    assert not forecast.is_ready(2)
    forecast.stayed(3, 0.6)
    assert forecast.is_ready(3)
    assert forecast.at(4) == pytest.approx(0.6 + 0.7 * 0.1)
    assert forecast.at(5) == pytest.approx(0.6 + (0.7 + 0.49) * 0.1)


def test_before_its_last_value_a_forecast_is_that_value() -> None:
    forecast = stayed(0.5, 0.6)
    assert forecast.at(1) == forecast.at(2) == 0.6
    assert forecast.difference(2, 0.9) == pytest.approx(0.3)


def test_a_change_over_several_decisions_is_that_of_one() -> None:
    forecast = stayed(0.5)
    forecast.stayed(5, 0.9)
    assert forecast.at(6) == pytest.approx(0.9 + DAMPED * 0.1)
    assert forecast.errors == [pytest.approx(0.5 * 0.4 / 4)], "half of a first change is an error"
    forecast.stayed(7, 2.0)
    assert forecast.errors[-1] == pytest.approx((2.0 - 0.9 - (DAMPED + DAMPED**2) * 0.1) / 2)


def test_between_two_values_of_staying_it_went_straight() -> None:
    forecast = stayed(0.0, 1.0)
    found = [forecast.between(decision, 6, 3.0) for decision in (2, 3, 4, 6)]
    np.testing.assert_allclose(found, np.interp([2, 3, 4, 6], [2, 6], [1.0, 3.0]))


def test_one_broken_round_does_not_move_the_deviation() -> None:
    forecast = Forecast()
    for round in range(10):
        forecast.stayed(round, 0.5 + 0.01 * (-1) ** round)
    usual = forecast.deviation
    forecast.stayed(10, -1e6)
    assert forecast.deviation < 2.0 * usual


def test_the_deviation_is_that_of_the_last_errors_and_never_nothing() -> None:
    assert Forecast().deviation == LEAST_SHARE
    assert stayed(0.0, 0.0).deviation == LEAST_SHARE
    assert stayed(-20.0, -20.0).deviation == pytest.approx(20.0 * LEAST_SHARE)
    assert stayed(0.0, 6.0).deviation == pytest.approx(3.0 * TO_DEVIATION)
    assert len(stayed(*range(40)).errors) == REMEMBERED


@pytest.mark.parametrize(
    ("values", "has_fallen"),
    [
        ((), False),
        ((0.9,), False),
        ((0.9, 0.9, 0.9, 0.5), True),
        ((0.9, 0.9, 0.9, 0.899), False),
        ((0.9, 0.9, 0.9, 0.5, 0.6), False),
        ((0.9, 0.9, 0.9, 0.5, 0.5), False),
    ],
    ids=["nothing is known", "one value", "it fell", "by less than a deviation", "it rises again", "it stays there"],
)
def test_staying_has_fallen_where_it_is_below_its_peak_and_falls(values: tuple[float, ...], has_fallen: bool) -> None:
    assert stayed(*values).has_fallen(2.0) is has_fallen


def test_a_move_goes_on_from_its_value_and_is_no_error() -> None:
    forecast = stayed(0.5, 0.6)
    errors = list(forecast.errors)
    forecast.moved(3, 0.9)
    assert forecast.errors == errors
    assert forecast.has_moved
    assert forecast.at(4) == pytest.approx(0.9 + DAMPED * 0.3)
    forecast.stayed(4, 0.8)
    assert not forecast.has_moved
    assert forecast.peak == 0.9


def test_what_is_taken_back_leaves_the_last_value_for_the_next_decision() -> None:
    forecast = stayed(0.5, 0.6)
    forecast.taken_back(4)
    assert forecast.is_ready(4)
    assert forecast.at(5) == pytest.approx(0.6 + DAMPED * 0.1)
    unknown = Forecast()
    unknown.taken_back(4)
    assert unknown.decision is None
