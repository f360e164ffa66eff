"""Which parameters matter: shares of the variance of a model over the space, with their uncertainty."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from farthing.models.diagnostics import variance_shares
from farthing.models.gp import GP
from farthing.models.linalg import Array
from farthing.models.threads import one_thread
from farthing.space.encoding import Encoder
from farthing.study.fitted_curves import fit_model
from farthing.trials import History

POINTS, DRAWN_POINTS, DRAWS = 1024, 40, 32
"""Random configurations for the shares; fewer of them, and draws of the function, for the uncertainty. For time."""

Rows = Callable[[Array], Array]
"""From encoded configurations (N, d) to rows of the model."""


class Share(NamedTuple):
    """A parameter's share of the variance, from 0 to 1, and its standard deviation by the model's own uncertainty."""

    share: float
    deviation: float


def importance_of(history: History) -> dict[str, Share]:
    """By the model of full trainings; if there are too few, by the model of learning curves, at full fidelity."""
    with one_thread():
        fitted = fit_model(history)
        return shares_of(fitted.gp, fitted.encoder, fitted.rows)


def shares_of(gp: GP, encoder: Encoder, rows: Rows = lambda X: X) -> dict[str, Share]:
    """For each parameter, the greatest share first."""
    rng = np.random.default_rng(0)
    shares = variance_shares(*_split(gp.mean(rows(_moved(encoder, POINTS, rng))), encoder.dimension))
    drawn = gp.sample(rows(_moved(encoder, DRAWN_POINTS, rng)), DRAWS, rng=rng)
    deviations = np.std(variance_shares(*_split(drawn, encoder.dimension)), axis=0)
    found = zip(encoder.names, map(Share, shares.tolist(), deviations.tolist()), strict=True)
    return dict(sorted(found, key=lambda item: -item[1].share))


def _moved(encoder: Encoder, count: int, rng: np.random.Generator) -> Array:
    """Random configurations, then the same with one parameter after the other drawn again: (D + 1) · N rows."""
    U, again = rng.random((2, count, encoder.dimension))
    parts = [U]
    for j in range(encoder.dimension):
        parts.append(U.copy())
        parts[-1][:, j] = again[:, j]
    return encoder.snap(encoder.from_unit(np.concatenate(parts)))


def _split(values: Array, dimension: int) -> tuple[Array, Array]:
    """Values (…, (D + 1) · N) as those of the base (…, N) and of each that was moved (…, D, N)."""
    parts = values.reshape(*values.shape[:-1], dimension + 1, -1)
    return parts[..., 0, :], parts[..., 1:, :]
