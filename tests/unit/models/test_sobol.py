import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import qmc

from farthing.models.sobol import sobol_points


@pytest.mark.parametrize("seed", [0, 1, 2**40])
@pytest.mark.parametrize(("dimension", "power"), [(1, 0), (1, 5), (2, 10), (3, 1), (6, 9), (19, 7), (40, 6), (150, 4)])
def test_points_are_those_of_scipy_bit_for_bit(dimension: int, power: int, seed: int) -> None:
    ours = sobol_points(dimension, power, rng=np.random.default_rng(seed))
    theirs = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(seed)).random_base2(power)
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == theirs.dtype


def test_a_generator_goes_on_as_it_does_after_scipy() -> None:
    """Each sequence is scrambled by a child of its own, and what is drawn afterwards is the same."""
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(3):
        np.testing.assert_array_equal(
            sobol_points(4, 6, rng=ours), qmc.Sobol(4, scramble=True, rng=theirs).random_base2(6)
        )
        assert ours.random() == theirs.random()


def test_a_suggestion_does_not_import_scipy_stats() -> None:
    program = """
import sys
import farthing as ft
study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="y", strategy=ft.EIPerCost(), seed=0)
for _ in range(6):
    trial = study.ask()
    study.tell(trial, trial.params["x"], cost=1.0 + trial.params["x"])
assert "scipy.stats" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
