"""Noisy measurements: what is suggested and recommended, and that nothing changes without noise."""

import math
from statistics import median

import numpy as np
import pytest

import farthing as ft
from farthing.acquisition.expected_improvement import LogAugmentedImprovement, LogExpectedImprovement
from farthing.costs import Remaining
from farthing.models.gp import condition
from farthing.models.kernels import Constant, Matern52
from farthing.strategies import Randomness
from farthing.strategies.plain.noisy import LEAST_NOISE, is_noisy
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space({"x": ft.Float(0, 1)})


def trial(number: int, x: float, value: float, *, noise: float = 0.1, state: State = State.DONE) -> Trial:
    """As one that a model with this noise suggested."""
    note = {"theta": [0.0, math.log(0.3), math.log(noise)], "fitted_on": 40}
    paid = Measurement(cost={"training": 1.0}, charged=True)
    known = value if state is State.DONE else None
    return Trial(number, Suggestion({"x": x}, note=note), state, value=known, measurements=(paid,))


def study(*, noise: float) -> History:
    """Two dozen values of a bowl about 0.6, and one far off that was lucky."""
    rng = np.random.default_rng(0)
    values = [(x, 4 * (x - 0.6) ** 2 + 0.1 * float(rng.standard_normal())) for x in np.linspace(0.0, 1.0, 24).tolist()]
    trials = [trial(i, x, value, noise=noise) for i, (x, value) in enumerate(values)]
    return History(Problem(SPACE), [*trials, trial(24, 0.95, -0.5, noise=noise)])


@pytest.mark.parametrize("strategy", [ft.LogEI(), ft.EIPerCost()])
def test_a_lucky_value_is_not_recommended(strategy: ft.LogEI) -> None:
    history = study(noise=0.1)
    assert is_noisy(history)
    best = strategy.recommend(history)
    assert best is not None
    assert best.params["x"] == pytest.approx(0.6, abs=0.12)
    assert best.predicted is not None
    assert best.predicted.deviation > 0.0


def test_without_noise_the_best_value_is_recommended() -> None:
    history = study(noise=1e-5)
    assert not is_noisy(history)
    best = ft.LogEI().recommend(history)
    assert best is not None
    assert best.trial.number == 24
    assert ft.LogEI().recommendable(history) == {24}


def test_a_trial_that_failed_is_not_recommended() -> None:
    states = [State.DONE if i == 2 else State.FAILED for i in range(5)]
    history = History(Problem(SPACE), [trial(i, i / 4, 1.0, state=state) for i, state in enumerate(states)])
    best = ft.LogEI().recommend(history)
    assert best is not None
    assert best.trial.number == 2


@pytest.mark.parametrize(
    ("noise", "kind"), [(LEAST_NOISE / 10, LogExpectedImprovement), (0.1, LogAugmentedImprovement)]
)
def test_improvement_counts_by_what_a_measurement_can_learn_if_there_is_noise(noise: float, kind: type) -> None:
    rows = np.linspace(0.0, 1.0, 9)[:, None]
    gp = condition(Constant() * Matern52((0,)), np.array([0.0, -1.0]), rows, rows[:, 0] ** 2, noise=noise)
    acquisition = ft.LogEI()._acquisition(gp, None, History(Problem(SPACE)), Remaining())
    assert type(acquisition) is kind


def test_a_noisy_bowl_is_found_nearer_than_its_luckiest_value() -> None:
    """Ten seeds of 30 trials; noise is a third of what a random configuration is off by."""

    def off(seed: int) -> tuple[float, float]:
        history, rng = History(Problem(SPACE)), np.random.default_rng(seed)
        for i in range(30):
            [suggestion] = ft.LogEI().suggest(history, Remaining(), 1, Randomness(seed))
            value = 4 * (suggestion.params["x"] - 0.6) ** 2 + 0.3 * float(rng.standard_normal())
            history = history.updated([Trial(i, suggestion, State.DONE, value=value)], version=i + 1)
        best, luckiest = ft.LogEI().recommend(history), min(history, key=lambda trial: trial.value or 0.0)
        assert best is not None
        return abs(best.params["x"] - 0.6), abs(luckiest.params["x"] - 0.6)

    recommended, lucky = zip(*(off(seed) for seed in range(10)), strict=True)
    assert median(recommended) < median(lucky)
