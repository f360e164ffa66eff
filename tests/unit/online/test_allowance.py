"""What validations may cost, and that any player keeps to it."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

import farthing as ft
from farthing.online import CEGPUCB, OnlineProblem, PairedProbes
from farthing.online.strategy import AT_ONCE, Allowance, BoundedPlayer, Observation, begun
from farthing.rules import Every

ARMS = [{"arm": arm} for arm in "abc"]
ENCODER = ft.Space({"arm": ft.Choice("a", "b", "c")}).encoder
ALWAYS = CEGPUCB(kernel="independent", noise=0.01, forgetting=0.01, scale=1.0, rule=Every(1))


def problem(**settings: Any) -> OnlineProblem:
    return OnlineProblem(ENCODER, 20, candidates=ARMS, **settings)


def measured(player: Any, *, cost: float | None, decisions: Iterable[int] = range(1, 21)) -> list[bool]:
    """Where the third arm is the best one."""
    found = []
    for decision in decisions:
        play = player.decide(decision)
        found.append(play.measure)
        if play.measure:
            player.observe(Observation(decision, play.place, [0.0, 0.1, 1.0][play.place], cost))
    return found


@pytest.mark.parametrize("decision", [1, 5, 10])
def test_a_part_of_the_allowance_is_there_at_once_and_the_rest_comes_with_each_decision(decision: int) -> None:
    allowed = 0.2 * (AT_ONCE * 10 + (1.0 - AT_ONCE) * decision)
    allowance = Allowance(spent=0.1)
    for more, covers in ((allowed - 0.1 - 1e-9, True), (allowed - 0.1 + 1e-9, False)):
        assert allowance.covers(more, decision=decision, decisions=10, overhead=0.2) is covers
    assert Allowance().covers(allowed, decision=decision, decisions=10, overhead=0.2), "all of it may be spent"


def test_at_the_end_the_whole_share_is_allowed_and_without_one_anything_is() -> None:
    assert Allowance().covers(2.0, decision=10, decisions=10, overhead=0.2)
    assert not Allowance().covers(2.001, decision=10, decisions=10, overhead=0.2)
    assert Allowance().covers(1e9, decision=1, decisions=10, overhead=None)


def test_a_validation_is_charged_what_was_declared_what_it_took_or_what_the_last_one_did() -> None:
    allowance = Allowance()
    charged = []
    for cost, declared in ((None, None), (0.5, None), (None, None), (0.5, 0.2), (0.0, None)):
        before = allowance.spent
        allowance.charge(cost, declared=declared)
        charged.append(allowance.spent - before)
    assert charged == pytest.approx([0.0, 0.5, 0.5, 0.2, 0.0])


def test_only_a_player_that_does_not_keep_to_an_overhead_by_itself_is_bounded() -> None:
    assert not isinstance(begun(ALWAYS, problem()), BoundedPlayer)
    assert isinstance(begun(ALWAYS, problem(overhead=0.1)), BoundedPlayer)
    assert not isinstance(begun(PairedProbes(), problem(overhead=0.1)), BoundedPlayer)


@pytest.mark.parametrize("is_declared", [False, True])
def test_a_player_that_always_measures_does_so_while_that_is_allowed(is_declared: bool) -> None:
    """One half of a decision for each: 0.2 · (10 + t/2) are allowed by decision t, 4 in all."""
    player = begun(ALWAYS, problem(overhead=0.2, validation_cost=0.5 if is_declared else None))
    found = measured(player, cost=None if is_declared else 0.5)
    spent = 0.0
    for t, has_measured in enumerate(found, start=1):
        assert has_measured is (spent + 0.5 <= 0.2 * (10 + t / 2) + 1e-12)
        spent += 0.5 * has_measured
    assert player.spent == spent == 4.0  # type: ignore[attr-defined]


def test_what_may_not_be_measured_is_the_best_so_far_with_the_reason() -> None:
    player = begun(ALWAYS, problem(overhead=0.2, validation_cost=0.7))
    assert measured(player, cost=None, decisions=range(1, 5)) == [True, True, True, False]
    play = player.decide(5)
    assert (play.place, play.measure) == (2, False)
    assert "may cost no more" in play.reason
    assert player.exploit(5) == 2


def test_what_was_spent_is_restored() -> None:
    given = problem(overhead=0.2)
    player, again = begun(ALWAYS, given), begun(ALWAYS, given)
    measured(player, cost=0.7, decisions=(1, 2))
    again.restore(player.observations, json.loads(json.dumps(player.memory())))
    assert again.memory() == player.memory()
    rest = range(3, 21)
    assert measured(again, cost=0.7, decisions=rest) == measured(player, cost=0.7, decisions=rest)
