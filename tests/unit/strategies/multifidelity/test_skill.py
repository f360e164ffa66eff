import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.strategies.multifidelity.skill import share_of_wins

CURVE = st.dictionaries(st.integers(1, 6).map(float), st.integers(-3, 3).map(float))
CURVES = st.lists(CURVE, max_size=6)


def test_two_runs_are_compared_at_the_furthest_fidelity_that_both_have_reached() -> None:
    slow, quick = {1.0: 0.9, 3.0: 0.2, 9.0: 0.9}, {1.0: 0.5, 3.0: 0.4}
    assert share_of_wins(slow, [quick]) == 1.0


def test_where_the_shorter_run_ends_between_reports_of_the_longer_one_earlier_reports_are_compared() -> None:
    assert share_of_wins({2.0: 0.1, 5.0: 0.9}, [{2.0: 0.2, 4.0: 0.0, 6.0: 0.0}]) == 1.0


def test_a_run_that_diverged_loses_against_one_that_has_not() -> None:
    assert share_of_wins({}, [{1.0: 9.0}]) == 0.0
    assert share_of_wins({1.0: 9.0}, [{}]) == 1.0
    assert share_of_wins({}, [{}]) == 0.5


def test_runs_without_a_fidelity_in_common_say_nothing() -> None:
    assert share_of_wins({1.0: 0.5}, [{2.0: 0.5}]) is None
    assert share_of_wins({1.0: 0.5}, [{2.0: 0.5}, {1.0: 0.7}]) == 1.0
    assert share_of_wins({1.0: 0.5}, []) is None


@given(CURVE, CURVE)
def test_what_one_run_wins_the_other_loses(one: dict[float, float], other: dict[float, float]) -> None:
    won, lost = share_of_wins(one, [other]), share_of_wins(other, [one])
    assert (won is None) == (lost is None)
    if won is not None and lost is not None:
        assert won in (0.0, 0.5, 1.0)
        assert won + lost == 1.0


@given(CURVE, CURVES)
def test_neither_the_order_nor_the_scale_of_losses_matters(
    one: dict[float, float], others: list[dict[float, float]]
) -> None:
    [scaled, *rest] = [{place: 2.0**loss for place, loss in curve.items()} for curve in (one, *others)]
    share = share_of_wins(one, others)
    assert share_of_wins(scaled, rest[::-1]) == (share if share is None else pytest.approx(share))


@given(CURVE, CURVES)
def test_a_better_run_never_wins_less(one: dict[float, float], others: list[dict[float, float]]) -> None:
    share = share_of_wins(one, others)
    better = share_of_wins({place: loss - 1.0 for place, loss in one.items()}, others)
    assert (share is None) == (better is None)
    if share is not None and better is not None:
        assert better >= share
