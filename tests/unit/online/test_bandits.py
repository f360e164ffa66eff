"""The baselines of online tuning: each finds the best arm, follows it when it changes, and takes any rule."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import farthing as ft
from benchmarks.baselines.bandits import (
    EXP3S,
    UCB1,
    UNSEEN,
    ArmPosterior,
    Arms,
    EpsilonGreedy,
    GPBandit,
    RestartedGPUCB,
    Softmax,
)
from farthing.errors import InvalidArgument
from farthing.online import CEGPUCB, OnlineProblem
from farthing.online.context import Query, RoundContext
from farthing.online.strategy import Observation, valued
from farthing.rules import Bernoulli, Confidence, Every, ExpectedRegret, ValueOfInformation

ARMS = [{"arm": arm} for arm in "abc"]
ENCODER = ft.Space({"arm": ft.Choice("a", "b", "c")}).encoder
GP = {"kernel": "independent", "noise": 0.01, "scale": 1.0}


def problem(rounds: int = 300, seed: int = 0) -> OnlineProblem:
    return OnlineProblem(ENCODER, rounds, seed, candidates=ARMS)


def played(strategy: Any, means: np.ndarray, *, rounds: int = 300) -> list[int]:
    """What was played in silent rounds' places too; the rewards change half-way to the reverse."""
    rng, player, places = np.random.default_rng(0), strategy.begin(problem(rounds)), []
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
    player = strategy(rule=rule).begin(problem())
    measured = 0
    for t in range(1, 60):
        choice = player.decide(t)
        measured += choice.measure
        if choice.measure:
            player.observe(Observation(t, choice.place, float(np.sin(t))))
    assert 3 <= measured <= 59


def test_gp_ucb_without_forgetting_is_certain_in_the_end() -> None:
    player = GPBandit(forgetting=0.0, **GP).begin(problem(400))
    for t in range(1, 300):
        choice = player.decide(t)
        player.observe(Observation(t, choice.place, [0.5, 0.0, -0.5][choice.place]))
    found = player.predict([0], 300)
    assert found is not None
    assert found[1][0] < 0.01


def test_known_means_save_the_first_round_of_every_arm() -> None:
    player = UCB1(scale=1.0, offset=[0.0, 3.0, 1.0], rule=Every(1)).begin(problem())
    assert player.decide(1).place == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: GPBandit(acquisition="best"),  # type: ignore[arg-type]
        lambda: UCB1(offset=[1.0, 2.0]),
        lambda: UCB1().begin(OnlineProblem(ft.Space({"x": ft.Float(0, 1)}).encoder, 5)),
        lambda: RestartedGPUCB().begin(problem()),
        lambda: RestartedGPUCB(forgetting=0.0).begin(problem()),
    ],
)
def test_wrong_settings_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()


# ------------------------------------------------------------------------------------------------------ the formulas


def seen_arms() -> Arms:
    """Two observations of the first arm, in rounds 1 and 3, one of the second in round 2, none of the third."""
    arms = Arms(3, gamma=0.5)
    for round, arm, z in ((1, 0, 4.0), (2, 1, 1.0), (3, 0, 1.0)):
        arms.advance_to(round)
        arms.add(arm, z)
    return arms


def test_an_observation_of_age_a_counts_gamma_to_the_a() -> None:
    arms = seen_arms()
    np.testing.assert_allclose(arms.counts, [1.25, 0.5, 1e-12])
    np.testing.assert_allclose(arms.means, [(0.25 * 4.0 + 1.0) / 1.25, 1.0, UNSEEN])
    assert arms.is_seen.tolist() == [True, True, False]


def test_what_is_known_of_an_arm_counts_as_one_observation() -> None:
    arms = Arms(2, gamma=0.5, first=np.array([0.5, -0.5]))
    np.testing.assert_array_equal(arms.counts, [1.0, 1.0])
    np.testing.assert_array_equal(arms.means, [0.5, -0.5])


def test_arms_become_surer_with_their_count() -> None:
    posterior = ArmPosterior(seen_arms(), noise=0.1)
    np.testing.assert_allclose(posterior.mean(), [1.6, 1.0, 0.0])
    np.testing.assert_allclose(posterior.variance(), [0.1 / 1.25 + 1 / 2.25, 0.1 / 0.5 + 1 / 1.5, 1.1])
    both = np.array([0, 1])
    np.testing.assert_allclose(posterior.covariance(both, both), np.diag(posterior.variance()[:2]))


def test_ucb1_adds_the_root_of_xi_log_n_over_n_i() -> None:
    arms = seen_arms()
    arms.add(1, 2.0)
    arms.add(2, 0.0)
    best, height = UCB1(xi=0.8).choice(arms, np.random.default_rng(0))
    counts = np.array([1.25, 1.5, 1.0])
    np.testing.assert_allclose(height, arms.means + np.sqrt(0.8 * np.log(counts.sum()) / counts))
    assert best == np.argmax(height)


def drawn(strategy: Any, draws: int = 4000) -> np.ndarray:
    """How often each arm is drawn; four deviations of it are at most 4 · 0.5/√draws."""
    rng, arms = np.random.default_rng(0), Arms(3, gamma=1.0, first=np.array([0.2, 0.5, 0.0]))
    return np.bincount([strategy.choice(arms, rng)[0] for _ in range(draws)], minlength=3) / draws


def test_epsilon_greedy_draws_any_arm_with_its_share_and_the_best_one_otherwise() -> None:
    np.testing.assert_allclose(drawn(EpsilonGreedy(explore=0.3)), [0.1, 0.8, 0.1], atol=0.03)


def test_softmax_draws_arms_in_proportion_to_their_exponentials() -> None:
    expected = np.exp(np.array([0.2, 0.5, 0.0]) / 0.5)
    np.testing.assert_allclose(drawn(Softmax(temperature=0.5)), expected / expected.sum(), atol=0.03)


def test_exp3s_updates_and_shares_its_weights_as_the_paper_says() -> None:
    """w_i ← w_i exp(γ x̂_i/K) + (eα/K) Σ w, scaled by the largest; p = (1 − γ) w/Σw + γ/K."""
    strategy, arms = EXP3S(explore=0.3, share=0.01), Arms(3, gamma=1.0)
    arms.weights = np.array([1.0, 0.5, 0.25])
    p = 0.7 * arms.weights / 1.75 + 0.1
    np.testing.assert_allclose(strategy.probabilities(arms), p)
    weights = arms.weights + np.e * 0.01 / 3 * 1.75
    weights[1] += 0.5 * (np.exp(0.3 * (2.5 / 4.0 / p[1]) / 3) - 1.0)
    np.testing.assert_allclose(strategy.updated_weights(arms, 1, 0.5), weights / weights.max())
    best, worst = (strategy.updated_weights(arms, 1, z)[1] for z in (2.0, -2.0))
    assert strategy.updated_weights(arms, 1, 9.0)[1] == best
    assert strategy.updated_weights(arms, 1, -9.0)[1] == worst < best


def test_the_heights_of_gp_bandits_are_what_draws_gain_and_how_often_they_do() -> None:
    """Over the highest mean; in units of the scale, the improvement that counts is above the margin."""
    mean, deviation = np.array([0.2, 0.5, -0.4]), np.array([0.6, 0.1, 2.0])
    gains = np.random.default_rng(0).normal(mean, deviation, (200_000, 3)) - 0.5
    error = 4.0 * 2.0 / np.sqrt(len(gains))  # four deviations of a mean, whose draws have one of at most 2
    gain = GPBandit(acquisition="ei").height(mean, deviation**2, round=3)
    np.testing.assert_allclose(gain, np.maximum(gains, 0.0).mean(axis=0), atol=error)
    for margin in (0.0, 0.3):
        share = GPBandit(acquisition="pi", margin=margin).height(mean, deviation**2, round=3)
        np.testing.assert_allclose(share, (gains > margin).mean(axis=0), atol=error / 2.0)
    bound = GPBandit(beta=4.0).height(mean, deviation**2, round=3)
    np.testing.assert_allclose(bound, mean + 2.0 * deviation)


def held_at(player: Any, rounds: int) -> list[int]:
    """How many observations there are in each round that is decided."""
    held = []
    for t in range(1, rounds + 1):
        choice = player.decide(t)
        held.append(len(player.observations))
        player.observe(Observation(t, choice.place, 0.0))
    return held


def test_a_restarted_bandit_forgets_at_the_start_of_each_block() -> None:
    player = RestartedGPUCB(forgetting=0.03, block=4, **GP).begin(problem())
    assert held_at(player, 10) == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]


def test_a_block_is_12_over_the_fourth_root_of_what_is_forgotten() -> None:
    """12 · 0.5^{−1/4} = 14.3, rounded up."""
    held = held_at(RestartedGPUCB(forgetting=0.5, **GP).begin(problem()), 17)
    assert held == [*range(15), 0, 1]


def test_a_restarted_bandit_is_restored_in_its_block() -> None:
    strategy = RestartedGPUCB(forgetting=0.03, block=4, **GP)
    player, again = strategy.begin(problem()), strategy.begin(problem())
    held_at(player, 6)
    again.restore(player.observations, json.loads(json.dumps(player.memory())))
    assert again.memory() == player.memory()
    assert len(again.observations) == 2
    assert again.decide(7).place == player.decide(7).place
    assert again.exploit(7) == player.exploit(7)


# ---------------------------------------------------------------------------------------------------------- the player


def test_arms_that_were_never_measured_are_not_exploited() -> None:
    player = UCB1(rule=Every(1)).begin(problem())
    first = player.decide(1).place
    player.observe(Observation(1, first, -5.0))
    second = player.decide(2).place
    player.observe(Observation(2, second, -7.0))
    third = player.decide(3).place
    assert {first, second, third} == {0, 1, 2}
    player.observe(Observation(3, third, -9.0))
    assert player.exploit(4) == first


@dataclass(frozen=True)
class Noting:
    """Always asks, and keeps what it was shown."""

    seen: list[RoundContext]

    def ask(self, context: RoundContext) -> Query:
        self.seen.append(context)
        return Query(context.choice, "to note it")


def test_a_rule_sees_the_arms_as_a_posterior_whose_knowledge_lasts_as_gamma_says() -> None:
    seen: list[RoundContext] = []
    player = UCB1(rule=Noting(seen), gamma=0.9, noise=0.2, scale=2.0).begin(problem(50))
    for t in range(1, 6):
        choice = player.decide(t)
        player.observe(Observation(t, choice.place, 2.0 * choice.place))
    assert [(each.round, each.rounds, each.asked) for each in seen] == [(4, 50, 3), (5, 50, 4)]
    assert (seen[0].lasting, seen[0].noise, seen[0].deviation) == (0.9, 0.2, 1.0)
    np.testing.assert_allclose(seen[0].mean, [0.0, 1.0, 2.0], err_msg="divided by the scale")
    assert seen[0].choice == np.argmax(seen[0].height)
    assert seen[0].rivals.size == 2, "arms stand alone"


def test_what_arms_are_known_to_give_is_scaled_about_their_mean() -> None:
    known = UCB1(scale=2.0, offset=[0.0, 3.0, 6.0])
    np.testing.assert_allclose(known.first_means(), [-1.5, 0.0, 1.5])
    np.testing.assert_allclose(known.scale_of(()).apply([3.0, 5.0]), [0.0, 1.0])
    for offset in (None, 3.0):
        assert UCB1(scale=2.0, offset=offset).first_means() is None


def test_silent_rounds_play_the_best_mean() -> None:
    player = EpsilonGreedy(rule=Bernoulli(0.0), explore=1.0).begin(problem())
    for t in range(1, 4):
        choice = player.decide(t)
        assert choice.measure
        player.observe(Observation(t, choice.place, [0.1, 0.2, 0.9][choice.place]))
    silent = [player.decide(t) for t in range(4, 20)]
    assert {(play.place, play.measure) for play in silent} == {(2, False)}


@pytest.mark.parametrize("strategy", [UCB1(), EXP3S(), CEGPUCB(kernel="independent", rule=Every(1))])
def test_values_that_are_bad_before_any_is_known_leave_nothing_but_a_count(strategy: Any) -> None:
    """The first two arms fail; the third gives the only value there is to learn from."""
    player, again = strategy.begin(problem()), strategy.begin(problem())
    for t, reward in ((1, -np.inf), (2, -np.inf), (3, 0.5)):
        choice = player.decide(t)
        assert choice.measure
        player.observe(Observation(t, choice.place, reward))
    good = choice.place
    assert [each.reward for each in player.observations] == [0.5]
    again.restore(player.observations, json.loads(json.dumps(player.memory())))
    assert again.exploit(4) == player.exploit(4) == good
    assert again.decide(4).place == player.decide(4).place


def test_a_bad_value_is_below_the_worst_by_the_whole_range() -> None:
    known = [Observation(1, 0, 3.0), Observation(2, 1, 5.0), Observation(3, 1, 4.0)]
    bad = valued(Observation(4, 2, -np.inf, 0.5), known)
    assert bad is not None
    assert (bad.round, bad.place, bad.reward, bad.cost) == (4, 2, 1.0, 0.5)
    good = Observation(4, 2, 9.0)
    assert valued(good, known) is good
    assert valued(good, []) is good
    assert valued(Observation(4, 2, -np.inf), []) is None
