"""taKG or taKG⁰: whether cost and information vanish together as the fidelity goes to zero."""

from typing import Literal

import numpy as np

from farthing.models.gp import GP
from farthing.models.linalg import Array
from farthing.strategies.multifidelity.levels import Fidelities

Form = Literal["taKG", "taKG0"]

MOST_COST = 0.2
"""Of a full training: a start that costs more than this is not bought for its price alone. A guess, not tuned."""
MOST_INFORMATION = 0.9
"""Of the variance at full fidelity: a start that tells more is worth buying. A guess, not tuned."""


def measured_form(gp: GP, fidelities: Fidelities, least_cost: float, x: Array) -> Form:
    """taKG⁰ where the start is cheap and tells less than everything about the end.

    `least_cost` is what the least amount costs of a full training; x (N, d) are configurations to judge the model at.
    """
    return "taKG0" if least_cost <= MOST_COST and told_by_zero(gp, fidelities, x) <= MOST_INFORMATION else "taKG"


def told_by_zero(gp: GP, fidelities: Fidelities, x: Array) -> float:
    """ρ² between f(x, 0) and f(x, 1) under the prior, in the fidelity that tells the most."""
    ones = np.ones((x.shape[0], fidelities.count))
    shares = []
    for i in range(fidelities.count):
        S = ones.copy()
        S[:, i] = 0.0
        pair = np.stack([np.hstack([x, S]), fidelities.at_full(x)], axis=1)
        K = gp.kernel.evaluate(gp.theta, pair).K
        shares.append(float(np.mean(K[:, 0, 1] ** 2 / (K[:, 0, 0] * K[:, 1, 1]))))
    return max(shares)
