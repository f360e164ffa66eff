"""The slowly moving bandit (Koren et al., 2017): arms are drawn near the last one, but as often as if they were not.

Probabilities are kept as logarithms; subtrees are given by labels, one array of them for each level of the tree.
"""

from collections.abc import Sequence

import numpy as np

from farthing.models.linalg import Array, IntArray


def draw_signs(height: int, *, rng: np.random.Generator) -> IntArray:
    """σ_h ∈ {−1, 1} for h = 0 … H − 1, and σ_H = −1 (Algorithm 1, lines 7–8)."""
    return np.append(rng.integers(0, 2, height) * 2 - 1, -1)


def level_of(signs: IntArray) -> int:
    """h = min{h : σ_h = −1}: the next arm is drawn from the subtree of this level."""
    return int(np.argmax(signs == -1))


def draw_arm(log_p: Array, subtree: IntArray, last: int, *, rng: np.random.Generator) -> int:
    """i ~ p(· | A(last)), where A are the arms with the same label (line 5)."""
    near = np.flatnonzero(subtree == subtree[last])
    weights = np.exp(log_p[near] - np.max(log_p[near]))
    return int(rng.choice(near, p=weights / np.sum(weights)))


def relative_losses(losses: Array) -> Array:
    """ℓ̄_0 ∈ [0, 1]: how much worse than the best arm, at most 1.

    p does not change when a constant is added to all losses, so subtracting the least one is free; a bound that was
    clipped before, or scaled to the worst arm, would say something else.
    """
    return np.minimum(losses - np.min(losses), 1.0)


def loss_estimate(
    log_p: Array, loss: Array, signs: IntArray, subtrees: Sequence[IntArray], *, eta: float = 1.0
) -> Array:
    """ℓ̃ = ℓ̄_0 + Σ_{h<H} σ_h ℓ̄_h (Eq. 4), where (Eq. 5, whose exponent −1/η belongs before the logarithm)

        ℓ̄_h(i) = −(1/η) log Σ_{j ∈ A_h(i)} p(j) exp(−η (1 + σ_{h−1}) ℓ̄_{h−1}(j)) / p(A_h(i))

    From the first σ_h = −1 on, all further ℓ̄ vanish.
    """
    level = loss
    estimate = loss.copy()
    for h in range(len(signs) - 1):
        if h > 0:
            level = -_log_mean(log_p, -eta * (1.0 + signs[h - 1]) * level, subtrees[h]) / eta
        estimate = estimate + signs[h] * level
        if signs[h] == -1:
            break
    return np.asarray(estimate)


def updated(log_p: Array, estimate: Array, *, eta: float = 1.0) -> Array:
    """log p_{t+1}, p_{t+1} ∝ p_t exp(−η ℓ̃) (line 10)."""
    moved = log_p - eta * estimate
    return np.asarray(moved - _log_sum(moved))


def _log_mean(log_p: Array, exponent: Array, labels: IntArray) -> Array:
    """log Σ_{j ∈ A(i)} p(j) e^{exponent(j)} / p(A(i)) for every i."""
    result = np.empty_like(log_p)
    for label in np.unique(labels):
        own = labels == label
        result[own] = _log_sum(log_p[own] + exponent[own]) - _log_sum(log_p[own])
    return result


def _log_sum(values: Array) -> float:
    highest = float(np.max(values))
    return highest + float(np.log(np.sum(np.exp(values - highest))))
