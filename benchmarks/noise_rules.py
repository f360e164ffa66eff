"""Rules for noisy measurements that were tried for `LogEI` and are not in it (`docs/systems/bayesian.md`)."""

import math
from dataclasses import dataclass

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.expected_improvement import LogAugmentedImprovement
from farthing.models.gp import GP
from farthing.models.linalg import one_thread
from farthing.strategies.plain.bayesian import LogEI
from farthing.strategies.shared.modelling import kernel_over, observe
from farthing.strategies.shared.strategy import Recommendation
from farthing.strategies.shared.surrogate import Compression, fit_surrogate
from farthing.trials import History, State

LEAST_NOISE = 1e-3
"""Of the variance of losses: measurements with less noise count as exact."""


@dataclass(frozen=True)
class LogEIAugmented(LogEI):
    """Improvement counts by the share that one more measurement can learn (Huang et al., 2006), if there is noise.

    With `by_mean` it then recommends the configuration measured whose posterior mean plus one deviation is least.
    """

    by_mean: bool = False

    def _improvement(self, gp: GP, history: History, *, own: bool) -> Acquisition:
        if gp.noise < LEAST_NOISE:
            return super()._improvement(gp, history, own=own)
        return LogAugmentedImprovement(gp, best=float(gp.mean(gp.X).min()))

    def recommend(self, history: History) -> Recommendation | None:
        by_value = super().recommend(history)
        return _by_mean(history) if self.by_mean and by_value and _is_noisy(history) else by_value


def _is_noisy(history: History) -> bool:
    """The hyperparameters that the latest suggestion noted end with log σ²."""
    noted = (
        trial.note["theta"] for trial in reversed(history) if isinstance(trial.note, dict) and "theta" in trial.note
    )
    return bool(next(noted, [-math.inf])[-1] >= math.log(LEAST_NOISE))


def _by_mean(history: History) -> Recommendation:
    seen, ended = observe(history), [trial for trial in history if history.is_full(trial) and trial.is_finished]
    kernel, compression = kernel_over(history.problem.space.encoder), Compression.of(seen.loss)
    with one_thread():
        surrogate = fit_surrogate(seen.X, seen.loss, kernel, history, compression=compression, takes_all=True)
        mean, variance = surrogate.gp.predict(seen.X)
    is_done = np.array([trial.state is State.DONE for trial in ended])
    best = ended[int(np.argmin(np.where(is_done, mean + np.sqrt(variance), np.inf)))]
    return Recommendation(best.params, best)
