import numpy as np
import pytest

import farthing as ft
from benchmarks.baselines.bandits import EXP3R, Arms
from benchmarks.baselines.knowledge_gradient import KG
from benchmarks.baselines.smooth_arms import SmoothArms
from benchmarks.online.playing import play
from benchmarks.online.suites import ONLINE_SUITES
from benchmarks.online.worlds import ARMS, Truth, World
from farthing.costs import Remaining
from farthing.models.kernels import SE
from farthing.online.strategy import Observation
from farthing.rules import Bernoulli, Confidence, Every, ValueOfInformation
from farthing.strategies import Randomness
from farthing.trials import History, Measurement, Problem, State, Trial

CURVES = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})


def test_kg_trains_everything_in_full() -> None:
    history = History(Problem(CURVES))
    for number in range(8):
        [one] = KG(samples=1).suggest(history, Remaining(), 1, Randomness(0))
        assert one.fidelity == {"epochs": 9}
        assert one.resume_from is None
        value = (one.params["x"] - 0.3) ** 2
        point = Measurement(value=value, fidelity=one.fidelity, cost={"training": 9.0})
        history = history.updated([Trial(number, one, State.DONE, measurements=(point,), value=value)], version=number)
    best = KG(samples=1).recommend(history)
    assert best is not None
    assert best.params["x"] == pytest.approx(0.3, abs=0.1)


def test_exp3r_begins_anew_only_if_another_arm_is_clearly_better() -> None:
    strategy = EXP3R(explore=0.5, interval=200, delta=0.5)
    arms = Arms(3, gamma=1.0)
    arms.weights = np.array([1.0, 0.1, 0.1])
    arms.explored = [(0, 0.5)] * 10 + [(1, 0.55)] * 10
    assert not strategy.has_drifted(arms)
    arms.explored = [(0, 0.1)] * 10 + [(1, 0.9)] * 10
    assert strategy.has_drifted(arms)


def test_exp3r_plays_and_forgets_after_a_reset() -> None:
    world = ARMS[2]
    assert play(EXP3R(rule=Every(5)), world, seed=1).queries == pytest.approx(400, abs=5)


def test_a_smooth_model_follows_a_smooth_function() -> None:
    score = play(SmoothArms(rule=Bernoulli(0.1)), ARMS[0], seed=1)
    assert score.regret < 0.05  # a random arm has about .5
    assert score.path[-1] == pytest.approx(score.regret)


def test_a_smooth_model_is_restored_from_its_observations() -> None:
    world = ARMS[0]
    truth = world.truth(2)
    player, again = (SmoothArms(rule=Every(3)).begin(world.problem(2)) for _ in range(2))
    for t in range(60):
        choice = player.decide(t + 1)
        assert isinstance(choice.place, int)
        if choice.measure:
            player.observe(Observation(t + 1, choice.place, float(truth.F[t, choice.place])))
    again.restore(player.observations, player.memory())
    plays = [one.decide(61) for one in (again, player)]
    assert plays[0].place == plays[1].place
    assert plays[0].measure == plays[1].measure


def test_the_likelier_drift_is_smooth_on_sines_and_rough_on_a_walk() -> None:
    rng = np.random.default_rng(0)
    times = np.arange(2000)[:, None]
    walk = np.zeros((2000, 3))
    for t in range(1, 2000):
        walk[t] = 0.99 * walk[t - 1] + 0.14 * rng.standard_normal(3)
    for F, is_smooth in ((np.sin(times / 160.0 + np.arange(3)), True), (walk, False)):
        player = SmoothArms(rule=Every(10), drift="likelier").begin(ARMS[0].problem(1))
        for t in range(0, 2000, 10):
            place = player.decide(t + 1).place
            assert isinstance(place, int)
            player.observe(Observation(t + 1, place, float(F[t, place] + 0.1 * rng.standard_normal())))
        assert player._gp is not None
        parts = getattr(player._gp.kernel, "kernels")  # noqa: B009
        assert any(isinstance(part, SE) for part in parts) == is_smooth


def test_a_smooth_model_with_given_facts_takes_what_arms_are_known_to_give() -> None:
    """Two steps apart it has the correlation that exponential forgetting has, and it measures nothing first."""
    facts = {"offset": [1.0, 3.0], "scale": 2.0, "kernel": [[1.0, 0.5], [0.5, 1.0]], "forgetting": 0.2, "noise": 0.1}
    strategy = ONLINE_SUITES["online-sensors"].contenders["default's rule, RBF in time"](facts)
    assert isinstance(strategy, SmoothArms)
    assert strategy.time is not None
    for steps in (1, 2):
        smooth = (1.0 - strategy.noise) * np.exp(-(steps**2) / (2.0 * strategy.time**2))
        assert smooth == pytest.approx(0.9 * 0.8 ** (steps / 2))
    world = ARMS[0]
    two = World("two", world.space, world.candidates[:2], lambda seed: Truth(np.zeros((9, 2)), np.zeros(9)), rounds=9)
    player = strategy.begin(two.problem(0))
    assert player.exploit(1) == 1, "it is known to give more"
    assert player._context(1).mean == pytest.approx([-0.5, 0.5])
    assert player._context(1).lasting < 1.0
    assert isinstance(strategy.rule, ValueOfInformation)
    for round in range(1, 5):
        player.observe(Observation(round, 1, -5.0))
    assert player.exploit(5) == 0


def test_a_silent_round_plays_the_choice_as_published_or_the_best_mean() -> None:
    """An arm that was seen long ago has the higher bound, and the one seen just now the higher mean."""
    observed = [(1, 0, 1.0), (2, 1, 0.9), (3, 2, 0.1), (1200, 0, 1.0)]
    plays = {}
    for silent in ("mean", "ucb"):
        player = SmoothArms(rule=Bernoulli(0.0), silent=silent).begin(ARMS[0].problem(1))
        for round, place, reward in observed:
            player.observe(Observation(round, place, reward))
        contexts = [player._context(round) for round in (1201, 1202)]
        plays[silent] = [player.decide(round).place for round in (1201, 1202)]
        expected = [one.best_mean if silent == "mean" else one.choice for one in contexts]
        assert plays[silent] == expected
    assert plays["mean"] != plays["ucb"]


def test_without_priors_the_likelihood_alone_decides() -> None:
    """Few values are a length scale's prior by half; the likelihood of all is higher without it."""
    found = []
    for priors in (True, False):
        player = SmoothArms(rule=Every(1), priors=priors).begin(ARMS[0].problem(1))
        for round in range(1, 31):
            place = player.decide(round).place
            assert isinstance(place, int)
            player.observe(Observation(round, place, float(np.sin(round / 4.0 + place))))
        rows, seen = np.array(player._rows), np.array(player._seen)
        found.append(player._fitted(rows, seen).log_marginal_likelihood)
    assert found[1] > found[0]


def test_the_rows_as_published_of_the_three_arms_are_the_published_form() -> None:
    """What the paper fits is learnt, and nothing else differs from `CEGPUCB.paper()`: neither floor nor silent mean."""
    rows = {name: make({}) for name, make in ONLINE_SUITES["online-arms"].contenders.items() if "as published" in name}
    assert len(rows) == 4
    assert all(getattr(strategy, "silent") == "ucb" for strategy in rows.values())  # noqa: B009
    assert all(getattr(strategy, "beta") == "paper" for strategy in rows.values())  # noqa: B009
    ours, paper = rows["CE κ=0.95, as published"], ft.CEGPUCB.paper(0.95)
    differing = {name for name in ft.CEGPUCB.__dataclass_fields__ if getattr(ours, name) != getattr(paper, name)}
    assert differing == {"kernel", "noise", "forgetting", "scale", "level", "floor", "climbs"}
    assert getattr(ours, "asking_rule") == Confidence(0.95)  # noqa: B009
