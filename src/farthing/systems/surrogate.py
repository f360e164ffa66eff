"""A Gaussian process of the loss, fitted to a history and remembered in its notes."""

from dataclasses import dataclass

import numpy as np

from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import Kernel
from farthing.models.linalg import Array
from farthing.models.transforms import Standardise
from farthing.trials import History, Prediction

GROWTH_BEFORE_REFIT = 1.12
"""When suggestions must be cheap, hyperparameters are kept until there are so many times the observations."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The process, the scale of the loss it sees, and what to remember of its fit."""

    gp: GP
    scale: Standardise
    theta: Array
    fitted_on: int

    def predicted(self, x: Array, *, sign: float) -> Prediction:
        """The value at one row, in the user's units: `sign` times the loss."""
        mean, variance = self.gp.predict(x[None, :])
        value = sign * float(self.scale.undo(mean)[0])
        return Prediction(value, float(np.sqrt(self.scale.undo_variance(variance)[0])))

    def note(self) -> dict[str, object]:
        return {"theta": [float(value) for value in self.theta], "fitted_on": self.fitted_on}


def fit_surrogate(X: Array, loss: Array, kernel: Kernel, history: History, *, is_frugal: bool = False) -> Surrogate:
    """Fits to the rows, starting from the last fit noted in the history; a frugal fit keeps it while it is recent."""
    scale = Standardise.of(loss)
    posterior = hyperparameter_posterior(kernel, X, scale.apply(loss))
    theta, fitted_on = last_fit(history, "theta", size=len(posterior.parameters))
    if theta is None or not is_frugal or loss.size > fitted_on * GROWTH_BEFORE_REFIT:
        theta, fitted_on = fit(posterior, warm_start=theta), int(loss.size)
    return Surrogate(posterior.process(theta), scale, theta, fitted_on)


def last_fit(history: History, key: str, *, size: int) -> tuple[Array | None, int]:
    """The hyperparameters that the latest suggestion noted under `key`, and the number of observations behind them."""
    for trial in reversed(history):
        note = trial.note if isinstance(trial.note, dict) else {}
        if len(note.get(key) or ()) == size:
            return np.array(note[key], dtype=float), int(note.get("fitted_on", 0))
    return None, 0
