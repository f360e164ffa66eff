"""A Gaussian process of the loss, fitted to a history and remembered in its notes."""

from dataclasses import dataclass, replace

import numpy as np

from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import Kernel
from farthing.models.likelihood import HyperparameterPosterior
from farthing.models.linalg import Array
from farthing.models.parameters import Parameter
from farthing.models.transforms import Standardise
from farthing.strategies.shared.active_set import active_rows
from farthing.strategies.shared.compression import Compression
from farthing.trials import History, Prediction

GROWTH_BEFORE_REFIT = 1.05
FRUGAL_GROWTH = 1.25
"""Hyperparameters are kept until the observations have grown by this factor; the second is for cheap suggestions.

1.05 was chosen for speed on the tuning problems of `docs/systems/bayesian.md` (64–5–39 with it, 70–5–33 before); 1.25
is a guess, not tuned.
"""

NOISE = Parameter("noise", median=1e-5, spread=3.0, lower=1e-6, upper=1.0)
"""A low median, because a model that takes a ripple for noise does not climb it; a wide spread, as little is known.

The median was chosen on the tuning problems of `docs/systems/bayesian.md` (57–18–33 against 1e-3); the spread on a
made-up noisy function, which is among the tests.
"""

EXACT = replace(NOISE, median=NOISE.lower, upper=NOISE.lower)
"""Where a study declares that it has no noise: the least that keeps the covariance of close rows invertible."""

NOISY = 1e-2
"""Noise from which one search for hyperparameters starts: searches from little noise alone miss the mode with much
noise, and lengthscales shrink until every measurement is a peak of its own. Chosen on the same noisy function."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The process, the scale of the loss it sees, and what to remember of its fit.

    With a `compression` the process models compressed losses, and `scale` standardises those.
    """

    gp: GP
    scale: Standardise
    theta: Array
    fitted_on: int
    compression: Compression | None = None

    def predicted(self, x: Array, *, sign: float) -> Prediction:
        """The value at one row, in the user's units: `sign` times the loss."""
        mean, variance = self.gp.predict(x[None, :])
        loss, deviation = self.scale.undo(mean), np.sqrt(self.scale.undo_variance(variance))
        if self.compression is not None:
            loss, deviation = self.compression.undo(loss), deviation * self.compression.slope(loss)
        return Prediction(sign * float(loss[0]), float(deviation[0]))

    def note(self) -> dict[str, object]:
        return {"theta": [float(value) for value in self.theta], "fitted_on": self.fitted_on}


def fit_surrogate(
    X: Array,
    loss: Array,
    kernel: Kernel,
    history: History,
    *,
    compression: Compression | None = None,
    is_frugal: bool = False,
    in_haste: bool = False,
    takes_all: bool = False,
    refits: bool | None = None,
) -> Surrogate:
    """Fits to the rows, starting from the last fit noted in the history, or keeps that one while it is recent.

    Noted fits are of compressed losses: for other losses they only serve as a start. `refits` decides instead whether
    to fit again; what is noted must then be of losses like these. Of more rows than `active_set.MOST` only some are
    taken, and fewer `in_haste`, unless all are asked for.
    """
    loss = loss if compression is None else compression.apply(loss)
    scale = Standardise.of(loss)
    rows = np.arange(loss.size) if takes_all else active_rows(loss, in_haste=in_haste)
    noise_prior = NOISE if history.is_noisy else EXACT
    posterior = hyperparameter_posterior(kernel, X[rows], scale.apply(loss)[rows], noise_prior=noise_prior)
    theta, fitted_on = last_fit(history, "theta", size=len(posterior.parameters))
    if refits is None:
        refits = compression is None or not is_recent(fitted_on, loss.size, is_frugal=is_frugal)
    if theta is None or refits:
        theta, fitted_on = fit(posterior, warm_start=_starts(posterior, theta)), int(loss.size)
    if not history.is_noisy:
        theta = np.clip(theta, posterior.priors.lower, posterior.priors.upper)  # a fit noted before it was declared
    return Surrogate(posterior.process(theta), scale, theta, fitted_on, compression)


def _starts(posterior: HyperparameterPosterior, noted: Array | None) -> Array:
    noisy = posterior.priors.mean.copy()
    noisy[-1] = np.log(NOISY)
    return np.stack([noisy] if noted is None else [noisy, noted])


def is_recent(fitted_on: int, count: int, *, is_frugal: bool) -> bool:
    """Whether a fit of `fitted_on` observations still serves for `count` of them."""
    return count <= fitted_on * (FRUGAL_GROWTH if is_frugal else GROWTH_BEFORE_REFIT)


def last_fit(history: History, key: str, *, size: int) -> tuple[Array | None, int]:
    """The hyperparameters that the latest suggestion noted under `key`, and the number of observations behind them."""
    for trial in reversed(history):
        note = trial.note if isinstance(trial.note, dict) else {}
        if len(note.get(key) or ()) == size:
            return np.array(note[key], dtype=float), int(note.get("fitted_on", 0))
    return None, 0
