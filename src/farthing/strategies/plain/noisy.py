"""Noisy measurements: whether there are any, and what to recommend then."""

import math

from farthing.strategies.shared.strategy import Recommendation, best_by_value
from farthing.trials import History, State

LEAST_NOISE = 1e-3
"""Of the variance of losses: measurements with less noise count as exact. Functions without noise are fitted with less.

Chosen with the rules for noise on functions that are not reported (`benchmarks/results/tuning-noise.jsonl`)."""


def is_noisy(history: History) -> bool:
    """Whether the model of the latest suggestion found noise: the hyperparameters that it noted end with log σ²."""
    for trial in reversed(history):
        note = trial.note if isinstance(trial.note, dict) else {}
        if theta := note.get("theta"):
            return bool(theta[-1] >= math.log(LEAST_NOISE))
    return False


def recommend_by_mean(history: History) -> Recommendation | None:
    """The configuration measured whose posterior mean plus one deviation is least, by the fit noted last.

    It is the effective best solution of Huang et al. (2006): the best of many noisy values is too good to be true, and
    a mean alone may rest on little.
    """
    import numpy as np

    from farthing.models.threads import one_thread
    from farthing.strategies.shared.compression import Compression
    from farthing.strategies.shared.modelling import kernel_over, observe
    from farthing.strategies.shared.surrogate import fit_surrogate

    seen, ended = observe(history), [trial for trial in history if history.is_full(trial) and trial.is_finished]
    if not any(trial.state is State.DONE for trial in ended):
        return best_by_value(history)
    kernel, compression = kernel_over(history.problem.space.encoder), Compression.of(seen.loss)
    with one_thread():
        surrogate = fit_surrogate(seen.X, seen.loss, kernel, history, compression=compression, may_refit=False)
        mean, variance = surrogate.gp.predict(surrogate.gp.X)
        is_done = np.array([ended[i].state is State.DONE for i in surrogate.rows])
        place = int(np.argmin(np.where(is_done, mean + np.sqrt(variance), np.inf)))
        trial = ended[int(surrogate.rows[place])]
        predicted = surrogate.predicted(surrogate.gp.X[place], sign=history.problem.sign)
    return Recommendation(trial.params, trial, predicted)
