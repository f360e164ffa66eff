"""The knowledge gradient of a set of observations: how much lower the least posterior mean is expected to become.

    L(R) = E min_a [μ(a) + σ̃(a, R) W],   σ̃(a, R) = K_n(a, R) D⁻ᵀ,   D Dᵀ = K_n(R, R) + Σ,   W ~ N(0, I)

`a` runs over what may be recommended, at full fidelity: `choices`, which are the same for all candidates, and each
candidate's own rows. R = (C, S) are the rows that a candidate observes. The first of them, C, would be known for free
and count for the benchmark as well (taKG⁰, section 2.4); without any this is taKG's value of information:

    VOI(S) = L(C) − L(C ∪ S)

C stands before S in the factor D, so that both terms share it and the normals of C. The normals of S come in
antithetic pairs at the same normals of C: as min is concave, every pair adds at least zero, and so VOI ≥ 0.

Shapes: B candidates, R rows each, q own rows, M choices, P pairs of normals, F means (one a fantasy).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2

import numpy as np
from scipy.special import ndtri

from farthing.models.gp import GP, row_covariance
from farthing.models.linalg import Array, IntArray, solve_lower

JITTER = 1e-8
"""Variance added to what is known for free, relative to the prior's: with more of it, VOI⁰ would not vanish with s."""
LEAST_NOISE = 1e-3
"""Of the prior's variance: less noise than this is not believed of what is to be observed."""
CHUNK = 2**16
"""Entries of the arrays of simulated means, which are filled a few candidates at a time."""


def antithetic_normals(pairs: int, free: int, bought: int, *, rng: np.random.Generator) -> Array:
    """W of (P, C + S) by quasi-Monte Carlo; the other half of each pair has the last columns negated."""
    from scipy.stats import qmc

    unit = qmc.Sobol(free + bought, seed=rng).random_base2(ceil(log2(max(pairs, 2))))[:pairs]
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

        `along` says for each of the R rows whether it is a value or a slope; `noise` (B, R) adds to the rows' variance.
        """
        B, R, _ = rows.shape
        size = max(1, CHUNK // (max(1, self.choices.shape[0] + own.shape[1]) * self.normals.shape[0]))
        values = np.empty(B)
        for first in range(0, B, size):
            some = slice(first, first + size)
            extra = None if noise is None else noise[some]
            values[some] = self._value(rows[some], own[some], along, extra)
        return values

    def _value(self, rows: Array, own: Array, along: IntArray | None, noise: Array | None) -> Array:
        look = self._look(rows, own, along)
        sigma = self._sigma(look, rows.shape[1], noise)
        return self._expected_gain(look.means, sigma)

    # ------------------------------------------------------------------------------------------------ pieces

    @cached_property
    def _gp(self) -> GP:
        return self.processes[0]

    @cached_property
    def _V(self) -> Array:
        """L⁻¹ k(X, choices)."""
        gp = self._gp
        return solve_lower(
            gp.L, row_covariance(gp.kernel, gp.theta, gp.X, gp.along, self.choices, _values(self.choices))
        )

    @cached_property
    def _choice_means(self) -> Array:
        return np.stack([gp.mean(self.choices) for gp in self.processes])

    @cached_property
    def _scale(self) -> float:
        """The prior's variance at full fidelity."""
        return float(np.mean(self._gp.kernel.variance(self._gp.theta, self.choices)[0]))

    @cached_property
    def observed_noise(self) -> float:
        return max(self._gp.noise, LEAST_NOISE * self._scale)

    def _look(self, rows: Array, own: Array, along: IntArray | None) -> "_Look":
        """Posterior covariances of the rows with each other, with own rows and with the choices, and all means."""
        gp, (B, R, D), q = self._gp, rows.shape, own.shape[1]
        Q = np.concatenate([rows, own], axis=1)
        kinds = np.concatenate([_values(rows[0]) if along is None else along, _values(own[0])])
        flat, flat_kinds = Q.reshape(-1, D), np.tile(kinds, B)
        V = solve_lower(gp.L, row_covariance(gp.kernel, gp.theta, gp.X, gp.along, flat, flat_kinds))
        V = V.reshape(-1, B, R + q).transpose(1, 0, 2)
        prior = (
            np.stack([row_covariance(gp.kernel, gp.theta, rows_of, kinds) for rows_of in Q])
            if along is not None
            else gp.kernel.evaluate(gp.theta, Q).K
        )
        joint = prior - V.transpose(0, 2, 1) @ V
        cross = row_covariance(gp.kernel, gp.theta, self.choices, _values(self.choices), flat, flat_kinds)
        cross = cross - self._V.T @ V.transpose(1, 0, 2).reshape(-1, B * (R + q))
        cross = cross.reshape(-1, B, R + q).transpose(1, 2, 0)
        own_means = np.stack([process.mean(own.reshape(-1, D)).reshape(B, q) for process in self.processes])
        return _Look(joint, cross, self._with_choices(own_means))

    def _with_choices(self, own_means: Array) -> Array:
        F, B, _ = own_means.shape
        choices = np.broadcast_to(self._choice_means[:, None, :], (F, B, self.choices.shape[0]))
        return np.concatenate([choices, own_means], axis=2)

    def _sigma(self, look: "_Look", R: int, noise: Array | None) -> Array:
        """σ̃ (B, R, M + q)."""
        covariance = look.joint[:, :R, :R].copy()
        variances = np.full(R, self.observed_noise)
        variances[: self.free] = JITTER * self._scale
        np.einsum("bii->bi", covariance)[...] += variances if noise is None else variances + noise
        D = np.linalg.cholesky(covariance)
        targets = np.concatenate([look.cross[:, :R, :], look.joint[:, :R, R:]], axis=2)
        return np.linalg.solve(D, targets)

    def _expected_gain(self, means: Array, sigma: Array) -> Array:
        """Mean over fantasies and pairs of min(before) − ½ (min(+) + min(−))."""
        free, bought = self.normals[:, : self.free], self.normals[:, self.free :]
        moved = np.einsum("pr,brm->bpm", bought, sigma[:, self.free :])
        gain = np.zeros(sigma.shape[0])
        for mean in means:
            before = mean[:, None, :] + np.einsum("pr,brm->bpm", free, sigma[:, : self.free])
            after = (before + moved).min(axis=2) + (before - moved).min(axis=2)
            gain += np.mean(before.min(axis=2) - 0.5 * after, axis=1)
        return gain / means.shape[0]


@dataclass(frozen=True, eq=False)
class _Look:
    joint: Array
    """(B, R + q, R + q)."""
    cross: Array
    """(B, R + q, M)."""
    means: Array
    """(F, B, M + q)."""


def _values(X: Array) -> IntArray:
    return np.full(X.shape[0], -1, dtype=np.int64)
