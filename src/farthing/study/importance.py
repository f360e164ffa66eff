"""Which parameters matter: shares of the variance of a model over the space, with their uncertainty."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from farthing.errors import NoResult
from farthing.models.diagnostics import variance_shares
from farthing.models.gp import GP
from farthing.models.linalg import Array
from farthing.models.threads import one_thread
from farthing.space.encoding import Encoder
from farthing.study.fitted_history import FEWEST, fit_history, has_enough
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
        if has_enough(history) or not history.problem.space.fidelities:
            return shares_of(fit_history(history).gp, history.problem.space.encoder)
        return _by_curves(history)


def shares_of(gp: GP, encoder: Encoder, rows: Rows = lambda X: X) -> dict[str, Share]:
    """For each parameter, the greatest share first."""
    rng = np.random.default_rng(0)
    shares = variance_shares(*_split(gp.mean(rows(_moved(encoder, POINTS, rng))), encoder.dimension))
    drawn = gp.sample(rows(_moved(encoder, DRAWN_POINTS, rng)), DRAWS, rng=rng)
    deviations = np.std(variance_shares(*_split(drawn, encoder.dimension)), axis=0)
    found = zip(encoder.names, map(Share, shares.tolist(), deviations.tolist()), strict=True)
    return dict(sorted(found, key=lambda item: -item[1].share))


def _by_curves(history: History) -> dict[str, Share]:
    from farthing.strategies.multifidelity.curve_model import fit_curves
    from farthing.strategies.multifidelity.levels import Fidelities
    from farthing.strategies.multifidelity.runs import runs_of

    runs = runs_of(history)
    count = sum(run.last is not None for run in runs)
    model = fit_curves(history, runs, retain=4, fidelity_kernel="curves", may_refit=True) if count >= FEWEST else None
    if model is None:
        raise NoResult(
            f"A model needs at least {FEWEST} configurations with a value, got {count} among {len(history)} trials. "
            "Run some more first."
        )
    space = history.problem.space
    return shares_of(model.gp, space.encoder, Fidelities(space).at_full)


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
