"""The joint gain of several evaluations: qEI of the best k out of a pool, chosen one after the other."""

from collections.abc import Sequence

import numpy as np

from farthing.acquisition.expected_improvement import log_augmented_improvement
from farthing.models.gp import GP
from farthing.models.linalg import Array, cholesky

DRAWS = 128
"""Pairs of a normal and its negative. A limit on time, not tuned."""
RARE = 1.5
"""Deviations below the mean of the most promising row: improvements beyond are too rare to be sampled. A guess."""


def log_joint_improvements(
    gp: GP, pool: Array, best: float, sizes: Sequence[int], *, rng: np.random.Generator
) -> Array:
    """log qEI_k = log E max(best − min_{i ≤ k} f(x_i), 0) for each k of `sizes`, for k = 1 augmented for noise.

    x_1 is the first row of the pool.

    The others are added greedily. qEI_k/EI is estimated from joint draws and multiplied with the exact EI of the
    first row. If improvement is too rare for that, the quotient is estimated for a worse `best`, on which it depends
    little, unlike EI. It is at most k, as no row of the pool is expected to gain more than the first, which is the
    best of its class.
    """
    mean, covariance = gp.joint(pool)
    variance = np.maximum(np.diagonal(covariance), 1e-12)
    L = cholesky(covariance, against=variance)
    normals = rng.standard_normal((DRAWS, pool.shape[0]))
    draws = mean + np.concatenate([normals, -normals]) @ L.T
    reachable = max(best, float(np.min(mean - RARE * np.sqrt(variance))))
    gains = greedy_gains(np.maximum(reachable - draws, 0.0), max(sizes))
    log_first = float(log_augmented_improvement(mean[:1], variance[:1], best, noise=gp.noise)[0])
    at_first = max(float(gains[0]), np.finfo(float).tiny)
    quotients = [np.clip(gains[min(k, gains.size) - 1] / at_first, 1.0, k) for k in sizes]
    return np.asarray(log_first + np.log(quotients))


def greedy_gains(improvement: Array, count: int) -> Array:
    """The mean over draws (S, P) of the best improvement among 1, 2, … columns, each added where it helps most.

    The first column is always the first.
    """
    reached = improvement[:, 0]
    gains = [float(np.mean(reached))]
    for _ in range(min(count, improvement.shape[1]) - 1):
        joint = np.maximum(reached[:, None], improvement)
        totals = np.mean(joint, axis=0)
        chosen = int(np.argmax(totals))
        reached = joint[:, chosen]
        gains.append(float(totals[chosen]))
    return np.array(gains)
