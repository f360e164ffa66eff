"""The knowledge gradient of a set of observations: how much lower the least posterior mean is expected to become.

    L(R) = E min_a [μ(a) + σ̃(a, R) W],   σ̃(a, R) = K_n(a, R) D⁻ᵀ,   D Dᵀ = K_n(R, R) + Σ,   W ~ N(0, I)

`a` runs over what may be recommended, at full fidelity: `choices`, which are the same for all candidates, and each
candidate's own rows. R = (C, S) are the rows that a candidate observes. The first of them, C, would be known for free
and count for the benchmark as well (taKG⁰, section 2.4); without any this is taKG's value of information:

    VOI(S) = L(C) − L(C ∪ S)

C stands before S in the factor D, so that both terms share it and the normals of C. The normals of S come in
antithetic pairs at the same normals of C: as min is concave, every pair adds at least zero, and so VOI ≥ 0.

Shapes: B candidates, R rows each, q own rows, T = R + q, M choices, P pairs of normals, F means (one a fantasy).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2

import numpy as np
from scipy.special import ndtri

from farthing.acquisition.expected_improvement import log_h
from farthing.models.batched_bfgs import minimize_batch
from farthing.models.gp import GP, as_values, pick, pull_inputs, row_covariance
from farthing.models.kernels import Covariance
from farthing.models.linalg import Array, IntArray, solve_lower, solve_upper
from farthing.models.sobol import sobol_points

JITTER = 1e-8
"""Variance added to free observations, relative to the prior's: with more of it, VOI⁰ would not vanish with s."""
LEAST_NOISE = 1e-3
"""Of the prior's variance: the least noise of a future observation. A guess, not tuned."""
TINY = 1e-12
INNER_CALLS = 6
"""Of the search for x* of one draw. A limit on time, not tuned."""
CHUNK = 2**16
"""Entries of the arrays of simulated means, which are filled a few candidates at a time."""


def antithetic_normals(pairs: int, free: int, bought: int, *, rng: np.random.Generator) -> Array:
    """W of (P, C + S) by quasi-Monte Carlo; the other half of each pair has the last columns negated."""
    unit = sobol_points(free + bought, ceil(log2(max(pairs, 2))), rng=rng)[:pairs]
    return np.asarray(ndtri(np.clip(unit, 1e-9, 1.0 - 1e-9)))


@dataclass(frozen=True, eq=False)
class KnowledgeGradient:
    """VOI of candidates under a process, or its mean under several that differ in their means only (fantasies)."""

    processes: Sequence[GP]
    choices: Array
    normals: Array
    free: int = 0

    def __call__(self, rows: Array, own: Array, *, along: IntArray | None = None, noise: Array | None = None) -> Array:
        """VOI (B,) of candidates with rows (B, R, D) and own rows (B, q, D).

        `along` (R,) says whether each row is a value or a slope; `noise` (B, R) adds to the variance of the rows.
        """
        kinds = as_values(rows[0]) if along is None else along
        extra = np.zeros(rows.shape[:2]) if noise is None else noise
        values = [self._look(rows[i], own[i], kinds, extra[i]).gain() for i in self._chunks(rows, own)]
        return np.concatenate(values) if values else np.zeros(0)

    def log_duel(self, rows: Array, own: Array, *, along: IntArray | None = None, noise: Array | None = None) -> Array:
        """log VOI (B,) of S where only the candidate and the best other choice could be recommended.

        It has a closed form, σ h(−|Δ|/σ) of their difference. So it still ranks candidates whose VOI is zero because
        none of the few simulated outcomes changes the recommendation.
        """
        kinds = as_values(rows[0]) if along is None else along
        extra = np.zeros(rows.shape[:2]) if noise is None else noise
        values = [self._look(rows[i], own[i], kinds, extra[i]).log_duel() for i in self._chunks(rows, own)]
        return np.concatenate(values) if values else np.zeros(0)

    def value_and_gradient(self, rows: Array, own: Array, *, noise: Array | None = None) -> tuple[Array, Array, Array]:
        """VOI (B,) of candidates that observe values, and its gradients in the rows and in the own rows."""
        kinds = as_values(rows[0])
        extra = np.zeros(rows.shape[:2]) if noise is None else noise
        values, gradient = (
            np.empty(rows.shape[0]),
            np.empty((rows.shape[0], rows.shape[1] + own.shape[1], own.shape[2])),
        )
        for i in self._chunks(rows, own):
            look = self._look(rows[i], own[i], kinds, extra[i])
            values[i], gradient[i] = look.gain(), look.gradient()
        return values, gradient[:, : rows.shape[1]], gradient[:, rows.shape[1] :]

    def sigma(self, rows: Array, own: Array) -> Array:
        """σ̃ (B, M + q, R) of the choices and own rows."""
        return self._look(rows, own, as_values(rows[0]), np.zeros(rows.shape[:2])).sigma.transpose(0, 2, 1)

    def minimisers(self, rows: Array, free_columns: IntArray, *, along: IntArray | None = None) -> Array:
        """x* of every draw (B, F · 3P, D): where the simulated mean is lowest over the whole cube (section 2.5).

        The lowest of `choices` begins, and BFGS goes on from there along the `free_columns`, each within [0, 1].
        """
        kinds = as_values(rows[0]) if along is None else along
        return self._look(rows, rows[:, :0], kinds, np.zeros(rows.shape[:2])).minimisers(free_columns)

    # ------------------------------------------------------------------------------------- what all looks share

    def _look(self, rows: Array, own: Array, kinds: IntArray, noise: Array) -> "_Look":
        return _Look(self, np.concatenate([rows, own], axis=1), rows.shape[1], kinds, noise)

    def _chunks(self, rows: Array, own: Array) -> list[slice]:
        size = max(1, CHUNK // ((self.choices.shape[0] + own.shape[1]) * self.normals.shape[0]))
        return [slice(first, first + size) for first in range(0, rows.shape[0], size)]

    @cached_property
    def gp(self) -> GP:
        return self.processes[0]

    @cached_property
    def half_solved(self) -> Array:
        """L⁻¹ k(X, choices)."""
        gp, kinds = self.gp, as_values(self.choices)
        return solve_lower(gp.L, row_covariance(gp.kernel, gp.theta, gp.X, gp.along, self.choices, kinds))

    @cached_property
    def solved(self) -> Array:
        """K⁻¹ k(X, choices)."""
        return solve_upper(self.gp.L, self.half_solved)

    @cached_property
    def means(self) -> Array:
        """μ (F, M)."""
        return np.stack([gp.mean(self.choices) for gp in self.processes])

    @cached_property
    def alphas(self) -> Array:
        return np.stack([gp.alpha for gp in self.processes])

    @cached_property
    def against(self) -> Array:
        """The rows that candidates are compared with: observations, then choices."""
        return np.concatenate([self.gp.X, self.choices])

    @cached_property
    def kinds_against(self) -> IntArray:
        return np.concatenate([self.gp.along, as_values(self.choices)])

    @cached_property
    def scale(self) -> float:
        """The prior's variance at full fidelity."""
        return float(np.mean(self.gp.kernel.variance(self.gp.theta, self.choices)[0]))

    def variances(self, R: int) -> Array:
        """Σ of the rows: C(S) is known exactly, and S never as well as that."""
        found = np.full(R, max(self.gp.noise, LEAST_NOISE * self.scale))
        found[: self.free] = JITTER * self.scale
        return found


class _Look:
    """The look-ahead of some candidates: every step of VOI forwards, and of its gradient backwards."""

    def __init__(self, kg: KnowledgeGradient, Q: Array, R: int, kinds: IntArray, noise: Array) -> None:
        self._kg, self._Q, self._R = kg, Q, R
        B, T, D = Q.shape
        self._kinds = all_kinds = np.concatenate([kinds, as_values(Q[0, R:])])
        self._covariance: Covariance = kg.gp.kernel.evaluate(kg.gp.theta, Q.reshape(-1, D), kg.against)
        K = pick(self._covariance, np.tile(all_kinds, B), kg.kinds_against)
        n = kg.gp.n
        self._C = K[:, :n].reshape(B, T, n)
        V = solve_lower(kg.gp.L, K[:, :n].T)
        self._V = V.T.reshape(B, T, n)
        self._prior = kg.gp.kernel.evaluate(kg.gp.theta, Q)
        self._joint = pick(self._prior, all_kinds, all_kinds) - self._V @ self._V.transpose(0, 2, 1)
        self._cross = (K[:, n:] - V.T @ kg.half_solved).reshape(B, T, -1)
        self._means = self._all_means()
        self._factor(noise)

    def _all_means(self) -> Array:
        """μ of choices and own rows (F, B, M + q)."""
        kg, own = self._kg, self._C[:, self._R :]
        level = np.array([gp.m for gp in kg.processes])[:, None, None]
        own_means = level + np.einsum("bqn,fn->fbq", own, kg.alphas)
        F, B = own_means.shape[:2]
        choices = np.broadcast_to(kg.means[:, None, :], (F, B, kg.means.shape[1]))
        return np.concatenate([choices, own_means], axis=2)

    def _factor(self, noise: Array) -> None:
        R = self._R
        covariance = self._joint[:, :R, :R].copy()
        np.einsum("bii->bi", covariance)[...] += self._kg.variances(R) + noise
        self._D = np.linalg.cholesky(covariance)
        targets = np.concatenate([self._cross[:, :R], self._joint[:, :R, R:]], axis=2)
        self.sigma: Array = np.asarray(np.linalg.solve(self._D, targets), dtype=np.float64)
        """σ̃ᵀ (B, R, M + q)."""

    def gain(self) -> Array:
        """VOI: the mean over fantasies and pairs of min(before) − ½ (min(+) + min(−))."""
        gains = [
            np.mean(before.min(axis=2) - 0.5 * (plus.min(axis=2) + minus.min(axis=2)), axis=1)
            for before, plus, minus in self._outcomes()
        ]
        return np.asarray(np.mean(gains, axis=0))

    def log_duel(self) -> Array:
        best, second = (np.argsort(self._kg.means[0], kind="stable").tolist() * 2)[:2]
        bought = self.sigma[:, self._kg.free :]
        gap = {a: np.linalg.norm(bought[:, :, -1] - bought[:, :, a], axis=1) for a in (best, second)}
        is_best = gap[best] < TINY  # the candidate itself stands among the choices
        deviation = np.maximum(np.where(is_best, gap[second], gap[best]), TINY)
        rival = self._means[0][:, [best, second]][np.arange(deviation.size), is_best.astype(int)]
        return np.asarray(np.log(deviation) + log_h(-np.abs(self._means[0][:, -1] - rival) / deviation))

    def _outcomes(self) -> Iterator[tuple[Array, Array, Array]]:
        """For each fantasy the simulated means (B, P, M + q): of C alone, and of both members of each pair."""
        normals, free = self._kg.normals, self._kg.free
        known = normals[:, :free] @ self.sigma[:, :free]
        moved = normals[:, free:] @ self.sigma[:, free:]
        for mean in self._means:
            before = mean[:, None, :] + known
            yield before, before + moved, before - moved

    def minimisers(self, free_columns: IntArray) -> Array:
        """Rows (B, F · 3P, D) where each draw's simulated mean has its minimum. That mean is a sum of kernels:

        μ(a) + σ̃(a, R) W = m + k(a, X) (α − K⁻¹k(X, R) u) + k(a, R) u,   u = D⁻ᵀ W

        Each row of the search has the number of its draw in a last column, which is held.
        """
        kg, R = self._kg, self._R
        lowest = [kg.choices[each.argmin(axis=2)] for found in self._outcomes() for each in found]
        start = np.concatenate(lowest, axis=1)
        B, N, D = start.shape
        u = np.linalg.solve(self._D.transpose(0, 2, 1), self._signed_normals().T).transpose(0, 2, 1)
        solved = solve_upper(kg.gp.L, self._V[:, :R].reshape(B * R, -1).T).T.reshape(B, R, -1)
        on_data = (kg.alphas[None, :, None, :] - (u @ solved)[:, None]).reshape(B * N, -1)
        on_rows: Array = np.asarray(np.repeat(u[:, None], len(kg.alphas), axis=1), dtype=np.float64)
        on_rows = on_rows.reshape(B * N, 1, R)
        is_gone = np.isnan(start.reshape(B * N, D))

        def simulated(rows: Array) -> tuple[Array, Array]:
            draw = rows[:, D].astype(np.int64)
            at = np.where(is_gone[draw], np.nan, rows[:, :D])
            data = kg.gp.kernel.evaluate(kg.gp.theta, at, kg.gp.X)
            own = kg.gp.kernel.evaluate(kg.gp.theta, at[:, None, :], self._Q[draw // N, :R])
            value = np.sum(pick(data, as_values(at), kg.gp.along) * on_data[draw], axis=1)
            value += np.sum(pick(own, as_values(at[:1]), self._kinds[:R]) * on_rows[draw], axis=(1, 2))
            slope = pull_inputs(data, on_data[draw], kg.gp.along)
            slope = slope + pull_inputs(own, on_rows[draw], self._kinds[:R])[:, 0]
            return value, np.column_stack([slope, np.zeros(len(draw))])

        first = np.column_stack([np.nan_to_num(start.reshape(B * N, D), nan=0.5), np.arange(B * N)])
        lower, upper = first.copy(), first.copy()
        lower[:, free_columns], upper[:, free_columns] = 0.0, 1.0
        found = minimize_batch(simulated, first, lower=lower, upper=upper, most_calls=INNER_CALLS, first_step=0.1).x
        return np.where(is_gone, np.nan, found[:, :D]).reshape(start.shape)

    def _signed_normals(self) -> Array:
        """W (3P, R) of the outcomes, in their order: of C alone, and of both members of each pair."""
        known, free = self._kg.normals, self._kg.free
        sides = [known * np.where(np.arange(self._R) < free, 1.0, side) for side in (0.0, 1.0, -1.0)]
        return np.concatenate(sides)

    def gradient(self) -> Array:
        """∂VOI/∂Q (B, T, D), by the envelope theorem: the winners of each draw stay as they are (Theorem 1)."""
        kg, R = self._kg, self._R
        sigma_bar, mean_bar = self._winner_weights()
        M = kg.choices.shape[0]
        targets_bar = np.linalg.solve(self._D.transpose(0, 2, 1), sigma_bar)
        joint_bar = np.zeros_like(self._joint)
        joint_bar[:, :R, :R] = self._cholesky_pullback(-np.tril(targets_bar @ self.sigma.transpose(0, 2, 1)))
        joint_bar[:, :R, R:] = targets_bar[:, :, M:]
        joint_bar += joint_bar.transpose(0, 2, 1).copy()
        cross_bar = np.zeros_like(self._cross)
        cross_bar[:, :R] = targets_bar[:, :, :M]
        return self._prior.input_gradient(joint_bar) + self._pulled_from_rows(joint_bar, cross_bar, mean_bar[:, :, M:])

    def _winner_weights(self) -> tuple[Array, Array]:
        """∂VOI/∂σ̃ᵀ (B, R, M + q) and ∂VOI/∂μ (F, B, M + q): what each draw's winners weigh."""
        kg, (F, B, width), P = self._kg, self._means.shape, self._kg.normals.shape[0]
        sigma_bar, mean_bar = np.zeros_like(self.sigma), np.zeros((F, B, width))
        for f, outcomes in enumerate(self._outcomes()):
            before, plus, minus = (_at_lowest(side, by) for side, by in zip(outcomes, (1.0, -0.5, -0.5), strict=True))
            whole = before + plus + minus
            sigma_bar[:, : kg.free] += np.einsum("pr,bpm->brm", kg.normals[:, : kg.free], whole)
            sigma_bar[:, kg.free :] += np.einsum("pr,bpm->brm", kg.normals[:, kg.free :], plus - minus)
            mean_bar[f] = whole.sum(axis=1)
        return sigma_bar / (F * P), mean_bar / (F * P)

    def _cholesky_pullback(self, D_bar: Array) -> Array:
        """∂F/∂Σ from ∂F/∂D for Σ = D Dᵀ:  ½ D⁻ᵀ (Φ + Φᵀ) D⁻¹, Φ the lower half of Dᵀ D̄ (Smith, 1995)."""
        Phi = np.tril(self._D.transpose(0, 2, 1) @ D_bar)
        np.einsum("bii->bi", Phi)[...] *= 0.5
        inner = np.linalg.solve(self._D.transpose(0, 2, 1), Phi + Phi.transpose(0, 2, 1))
        outer = np.linalg.solve(self._D.transpose(0, 2, 1), inner.transpose(0, 2, 1))
        return np.asarray(0.5 * outer.transpose(0, 2, 1), dtype=np.float64)

    def _pulled_from_rows(self, joint_bar: Array, cross_bar: Array, own_mean_bar: Array) -> Array:
        """The gradient through k(Q, X) and k(Q, choices)."""
        kg, (B, T, D) = self._kg, self._Q.shape
        solved = solve_upper(kg.gp.L, self._V.reshape(B * T, -1).T).T.reshape(B, T, -1)
        C_bar = -joint_bar @ solved - cross_bar @ kg.solved.T
        C_bar[:, self._R :] += np.einsum("fbq,fn->bqn", own_mean_bar, kg.alphas)
        weights = np.concatenate([C_bar, cross_bar], axis=2).reshape(B * T, -1)
        return pull_inputs(self._covariance, weights, kg.kinds_against).reshape(B, T, D)


def _at_lowest(outcomes: Array, weight: float) -> Array:
    """The weight where each draw has its minimum, zero elsewhere."""
    placed = np.zeros_like(outcomes)
    np.put_along_axis(placed, np.argmin(outcomes, axis=2)[..., None], weight, axis=2)
    return placed
