"""Candidates: what could be trained next, how far, and from where."""

from dataclasses import dataclass

import numpy as np

from farthing.models.linalg import Array, IntArray
from farthing.systems.multifidelity.levels import Fidelities

NEW = -1
"""In `source`: trained from nothing."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """N evaluations: params X (N, d), target fidelity S (N, m), where each stands already (N, m; zero for nothing),
    and the run that it continues, by its place in the list of runs, or NEW."""

    X: Array
    S: Array
    begun: Array
    source: IntArray

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def picked(self, rows: Array | IntArray) -> "Candidates":
        return Candidates(self.X[rows], self.S[rows], self.begun[rows], self.source[rows])

    def and_also(self, other: "Candidates") -> "Candidates":
        return Candidates(
            np.concatenate([self.X, other.X]),
            np.concatenate([self.S, other.S]),
            np.concatenate([self.begun, other.begun]),
            np.concatenate([self.source, other.source]),
        )


def at_levels(x: Array, levels: Array, *, begun: Array | None = None, source: int = NEW) -> Candidates:
    """One configuration at every one of these levels (G, m)."""
    G, m = levels.shape
    start = np.zeros(m) if begun is None else begun
    return Candidates(np.tile(x, (G, 1)), levels, np.tile(start, (G, 1)), np.full(G, source))


def crossed(X: Array, levels: Array) -> Candidates:
    """New configurations (N, d), each at every level (G, m)."""
    N, G = X.shape[0], levels.shape[0]
    S = np.tile(levels, (N, 1))
    return Candidates(np.repeat(X, G, axis=0), S, np.zeros_like(S), np.full(N * G, NEW))


# --------------------------------------------------------------------------------------------------- what is seen


@dataclass(frozen=True, eq=False)
class Simulated:
    """Rows that candidates would observe: C(S), known for free, before S; and (x, 1), which could be recommended."""

    rows: Array
    own: Array
    free: int
    noise: Array
    """Added to a row's variance: huge for a retained point that no run can report, so that it tells nothing."""


UNSEEN = 1e6


def simulated(candidates: Candidates, fidelities: Fidelities, *, retain: int, zero_avoiding: bool) -> Simulated:
    """S are points of the new part of each curve at even shares of the way to its end."""
    S = retained_points(candidates, fidelities, retain=retain)
    C = zeroed(S, fidelities) if zero_avoiding else S[:, :0]
    rows = np.concatenate([C, S], axis=1)
    hidden = np.concatenate([np.zeros(C.shape[:2]), UNSEEN * _is_unseen(S, fidelities)], axis=1)
    return Simulated(
        rows=_with_params(candidates.X, rows),
        own=_with_params(candidates.X, np.ones_like(candidates.S)[:, None, :]),
        free=C.shape[1],
        noise=hidden,
    )


def retained_points(candidates: Candidates, fidelities: Fidelities, *, retain: int) -> Array:
    """S (N, ℓ, m); its points differ in trace components only, and without any there is one."""
    trace = fidelities.is_trace
    shares = np.arange(1, retain + 1) / retain if trace.any() else np.ones(1)
    S = np.repeat(candidates.S[:, None, :], shares.size, axis=1)
    way = candidates.begun[:, None, :] + shares[None, :, None] * (candidates.S - candidates.begun)[:, None, :]
    S[:, :, trace] = way[:, :, trace]
    return S


def zeroed(S: Array, fidelities: Fidelities) -> Array:
    """C(S) = ∪ {s with one component replaced by 0}, as a set: 1 + ℓ(m − 1) points with one trace (section 2.4).

    Points of S differ in trace components only, so that they meet where the only trace is replaced.
    """
    parts = []
    for i, is_trace in enumerate(fidelities.is_trace):
        is_only_trace = is_trace and fidelities.is_trace.sum() == 1
        part = (S[:, :1] if is_only_trace else S).copy()
        part[:, :, i] = 0.0
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _is_unseen(S: Array, fidelities: Fidelities) -> Array:
    """Points that no run reports: below the least amount, or the same whole amount as a later point."""
    declared = fidelities.space.fidelities.values()
    high = np.array([fidelity.high for fidelity in declared])
    amounts = S * high
    for j, fidelity in enumerate(declared):
        if fidelity.integer:
            amounts[:, :, j] = np.rint(amounts[:, :, j])
    below = np.any(amounts < np.array([fidelity.low for fidelity in declared]) - 1e-9, axis=2)
    repeated = np.zeros(S.shape[:2], dtype=bool)
    repeated[:, :-1] = np.all(np.abs(amounts[:, :-1] - amounts[:, 1:]) < 1e-12, axis=2)
    return np.asarray((below | repeated), dtype=float)


def _with_params(X: Array, S: Array) -> Array:
    return np.concatenate([np.repeat(X[:, None, :], S.shape[1], axis=1), S], axis=2)
