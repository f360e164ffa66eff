"""Is the model to be trusted? Leave-one-out residuals, calibration, and which columns matter."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from farthing.models.gp import GP
from farthing.models.linalg import Array, IntArray, inverse_from_factor


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Predictions of each observation from all others; hyperparameters stay as they are."""

    observed: Array
    mean: Array
    variance: Array
    """Of the observation, noise included."""

    @property
    def residuals(self) -> Array:
        """(y − μ₋ᵢ)/σ₋ᵢ: standard normal if the model is right."""
        return (self.observed - self.mean) / np.sqrt(self.variance)

    @property
    def explained(self) -> float:
        """1 − Σ(y − μ₋ᵢ)²/Σ(y − ȳ)²: one is perfect, zero no better than the average; NaN for constant y."""
        spread = float(np.sum((self.observed - np.mean(self.observed)) ** 2)) if self.observed.size else 0.0
        return 1.0 - float(np.sum((self.observed - self.mean) ** 2)) / spread if spread > 0.0 else float("nan")


def leave_one_out(gp: GP) -> LeaveOneOut:
    """In closed form (Rasmussen and Williams, 5.12):  μ₋ᵢ = yᵢ − αᵢ/[K⁻¹]ᵢᵢ,  σ²₋ᵢ = 1/[K⁻¹]ᵢᵢ."""
    precision = np.diagonal(inverse_from_factor(gp.L))
    return LeaveOneOut(gp.y, gp.y - gp.alpha / precision, 1.0 / precision)


def leave_groups_out(gp: GP, groups: Sequence[IntArray]) -> LeaveOneOut:
    """The first row of each group, predicted without any of the group: of a learning curve, its end without the rest.

    With P = K⁻¹ and the rows B of a group, μ₋B = y_B − (P_BB)⁻¹ α_B and Σ₋B = (P_BB)⁻¹, which is (5.12) for one row.
    """
    P = inverse_from_factor(gp.L)
    first = np.array([group[0] for group in groups], dtype=np.int64)
    left = [np.linalg.inv(P[np.ix_(group, group)])[0] for group in groups]
    misses = np.array([float(row @ gp.alpha[group]) for row, group in zip(left, groups, strict=True)])
    return LeaveOneOut(gp.y[first], gp.y[first] - misses, np.array([row[0] for row in left]))


def calibration(residuals: Array, levels: Array) -> Array:
    """The share of residuals inside the central interval of each level; equal to the levels if calibrated."""
    central = np.abs(2.0 * ndtr(residuals) - 1.0)
    return np.array([float(np.mean(central <= level)) if central.size else float("nan") for level in levels])


def variance_shares(base: Array, moved: Array) -> Array:
    """Each input's share (…, D) of the variance of a function: its total effect, all of them divided by their sum.

    `base` (…, N) has values at random inputs, `moved` (…, D, N) the values where input j alone is drawn again. By
    Jansen's estimator, T_j = E(f − f_j)²/(2 Var f); interactions count for all of their inputs. The shares are zero
    for a constant.
    """
    effects = np.mean((moved - base[..., None, :]) ** 2, axis=-1)
    total = np.sum(effects, axis=-1, keepdims=True)
    return np.asarray(np.divide(effects, total, out=np.zeros_like(effects), where=total > 0.0))
