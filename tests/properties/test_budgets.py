"""Budgets hold in simulated studies of every strategy, with set-up, noise and stragglers."""

import statistics
from itertools import islice

import pytest

from benchmarks.simulated.budgets import STRATEGIES, Held, simulated, studies
from farthing.names import STRATEGIES as NAMES

LONG, AT_ONCE = 500, 50


def held(begin: int, count: int) -> list[Held]:
    chosen = islice(studies(begin + count), begin, None)
    return [simulated(strategy, seed, hard=hard) for strategy, seed, hard in chosen]


def check(found: list[Held]) -> None:
    soft = [one for one in found if not one.hard]
    assert [one for one in found if one.hard and one.reports_beyond > 1] == [], "one report of each running trial"
    assert [one for one in soft if one.excess > 0.15] == []
    assert statistics.median(one.excess for one in soft) <= 0.02
    assert statistics.median(one.unspent for one in soft) <= 0.05


def test_every_strategy_is_among_them() -> None:
    assert {type(strategy).__name__ for strategy in STRATEGIES} == set(NAMES)


def test_budgets_hold() -> None:
    check(held(0, len(STRATEGIES)))


@pytest.mark.long
@pytest.mark.parametrize("begin", range(0, LONG, AT_ONCE))
def test_budgets_hold_in_many_studies(begin: int) -> None:
    check(held(begin, AT_ONCE))
