"""Noisy measurements: by what improvement counts, and that nothing changes without noise."""

import numpy as np
import pytest

import farthing as ft
from farthing.acquisition.expected_improvement import LogAugmentedImprovement, LogExpectedImprovement
from farthing.costs import Remaining
from farthing.models.gp import condition
from farthing.models.kernels import Constant, Matern52
from farthing.strategies.plain.bayesian import LEAST_NOISE
from farthing.trials import History, Problem

SPACE = ft.Space({"x": ft.Float(0, 1)})


@pytest.mark.parametrize("strategy", [ft.LogEI(), ft.EIPerCost()])
@pytest.mark.parametrize(
    ("noise", "kind"), [(LEAST_NOISE / 10, LogExpectedImprovement), (0.1, LogAugmentedImprovement)]
)
def test_improvement_counts_by_what_a_measurement_can_learn_if_there_is_noise(
    strategy: ft.LogEI, noise: float, kind: type
) -> None:
    rows = np.linspace(0.0, 1.0, 9)[:, None]
    gp = condition(Constant() * Matern52((0,)), np.array([0.0, -1.0]), rows, rows[:, 0] ** 2, noise=noise)
    acquisition = strategy._acquisition(gp, None, History(Problem(SPACE)), Remaining())
    assert type(acquisition) is kind
