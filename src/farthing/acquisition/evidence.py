"""How much a model knows of one row against all others."""

import numpy as np
from scipy.special import ndtr

from farthing.models.gp import GP
from farthing.models.linalg import Array

LEAST_VARIANCE = 1e-12
"""The rounding error of a variance that should be zero."""


def chance_of_better(gp: GP, rows: Array, x: Array) -> float:
    """P(f(u) < f(x)) for a loss f and u drawn from the rows: their mean of Φ((μ_x − μ_u)/sd(f_u − f_x)).

    ½ when nothing is known, towards 0 when x is clearly the best.
    """
    here = x[None, :]
    mean, variance = gp.predict(rows)
    own_mean, own_variance = gp.predict(here)
    spread = np.maximum(variance + own_variance - 2.0 * gp.covariance(rows, here)[:, 0], LEAST_VARIANCE)
    return float(np.mean(ndtr((own_mean - mean) / np.sqrt(spread))))
