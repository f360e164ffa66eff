import numpy as np
import pytest

import farthing as ft
from benchmarks.baselines.bandits import EXP3R, Arms
from benchmarks.baselines.knowledge_gradient import KG
from benchmarks.baselines.smooth_arms import SmoothArms
from benchmarks.online.playing import play
from benchmarks.online.worlds import ARMS
from farthing.costs import Remaining
from farthing.online.strategy import Observation
from farthing.rules import Bernoulli, Every
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
