"""The baselines of online tuning: each finds the best arm, follows it when it changes, and takes any rule."""

from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.rules import Bernoulli, Confidence, Every, ExpectedRegret, ValueOfInformation
from farthing.strategies.online import Arena
from farthing.strategies.online.bandits import EXP3S, UCB1, EpsilonGreedy, GPBandit, RestartedGPUCB, Softmax
from farthing.strategies.online.strategy import Observation

ARMS = [{"arm": arm} for arm in "abc"]
ENCODER = ft.Space({"arm": ft.Choice("a", "b", "c")}).encoder
GP = {"kernel": "independent", "noise": 0.01, "scale": 1.0}


def arena(rounds: int = 300, seed: int = 0) -> Arena:
    return Arena(ENCODER, rounds, seed, candidates=ARMS)


def played(strategy: Any, means: np.ndarray, *, rounds: int = 300) -> list[int]:
    """What was played in silent rounds' places too; the rewards change half-way to the reverse."""
    rng, player, places = np.random.default_rng(0), strategy.begin(arena(rounds)), []
    for t in range(1, rounds + 1):
        now = means if t <= rounds // 2 else means[::-1]
        choice = player.decide(t)
        places.append(choice.place)
        if choice.measure:
            player.observe(Observation(t, choice.place, float(now[choice.place] + 0.1 * rng.standard_normal())))
    return places


@pytest.mark.parametrize(
    "strategy",
    [
        GPBandit(forgetting=0.03, rule=Bernoulli(0.5), **GP),
        GPBandit(forgetting=0.03, acquisition="ei", rule=Bernoulli(0.5), **GP),
        GPBandit(forgetting=0.03, acquisition="pi", rule=Bernoulli(0.5), **GP),
        RestartedGPUCB(forgetting=0.03, block=40, rule=Bernoulli(0.5), **GP),
        UCB1(rule=Bernoulli(0.5), gamma=0.97),
        EpsilonGreedy(rule=Bernoulli(0.5), gamma=0.97, explore=0.3),
        Softmax(rule=Bernoulli(0.5), gamma=0.97, temperature=0.5),
    ],
    ids=lambda strategy: f"{type(strategy).__name__}-{getattr(strategy, 'acquisition', '')}",
)
def test_a_baseline_follows_the_best_arm(strategy: Any) -> None:
    places = played(strategy, np.array([0.9, 0.3, 0.0]))
    # chance alone would play it in a third of the rounds
    assert places[75:150].count(0) > 50
    assert places[225:].count(2) > 45


def test_exp3s_prefers_the_best_arm_and_never_gives_the_others_up() -> None:
    """With every round measured: the weights learn slowly, by design."""
    places = played(EXP3S(rule=Every(1), explore=0.3, scale=0.3, offset=0.4), np.array([0.9, 0.3, 0.0]), rounds=1500)
    first_half = places[400:750]
    assert first_half.count(0) > len(first_half) / 2
    assert {0, 1, 2} <= set(first_half)


@pytest.mark.parametrize("rule", [Confidence(0.9), ExpectedRegret(0.05), ValueOfInformation(0.05), Every(3)])
@pytest.mark.parametrize("strategy", [UCB1, EpsilonGreedy, Softmax, EXP3S])
def test_every_bandit_takes_every_rule(strategy: Any, rule: Any) -> None:
    player = strategy(rule=rule).begin(arena())
    measured = 0
    for t in range(1, 60):
        choice = player.decide(t)
        measured += choice.measure
        if choice.measure:
            player.observe(Observation(t, choice.place, float(np.sin(t))))
    assert 3 <= measured <= 59


def test_gp_ucb_without_forgetting_is_certain_in_the_end() -> None:
    player = GPBandit(forgetting=0.0, **GP).begin(arena(400))
    for t in range(1, 300):
        choice = player.decide(t)
        player.observe(Observation(t, choice.place, [0.5, 0.0, -0.5][choice.place]))
    found = player.predict([0], 300)
    assert found is not None
    assert found[1][0] < 0.01


def test_known_means_save_the_first_round_of_every_arm() -> None:
    player = UCB1(scale=1.0, offset=[0.0, 3.0, 1.0], rule=Every(1)).begin(arena())
    assert player.decide(1).place == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: GPBandit(acquisition="best"),  # type: ignore[arg-type]
        lambda: UCB1(offset=[1.0, 2.0]),
        lambda: UCB1().begin(Arena(ft.Space({"x": ft.Float(0, 1)}).encoder, 5)),
        lambda: RestartedGPUCB().begin(arena()),
    ],
)
def test_wrong_settings_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()
