"""The decision variables of taKG: params, fidelities and retained points, and the rows that follow from them.

A decision is a row  v = (x | s | ρ | b):  params, target fidelity, where on the way to it a curve is retained, and
where the run stands already (zero for nothing). Retained point k has  s_k = b + ρ_k (s − b)  in trace components.
Several decisions that are made together stand one after the other in a longer row.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.models.linalg import Array
from farthing.strategies.multifidelity.candidates import Candidates, with_params, zeroed
from farthing.strategies.multifidelity.levels import Fidelities

NEAREST = 0.1
"""Retained points keep at least this share of the curve between them and to its ends. A guess, not tuned."""


@dataclass(frozen=True)
class Decisions:
    """The layout of decision rows, and the way to the rows of a process and back.

    C(S) stands before S, and the S of all members after the C(S) of all members.
    """

    fidelities: Fidelities
    retain: int
    zero_avoiding: bool
    members: int = 1

    @cached_property
    def d(self) -> int:
        return self.fidelities.space.encoder.dimension

    @property
    def m(self) -> int:
        return self.fidelities.count

    @cached_property
    def traces(self) -> int:
        return int(self.fidelities.is_trace.sum())

    @cached_property
    def retained(self) -> int:
        """Points of S besides s itself: they differ in trace components only."""
        return self.retain - 1 if self.traces else 0

    @cached_property
    def width(self) -> int:
        return self.d + 2 * self.m + self.retained * self.traces

    @property
    def free(self) -> int:
        """The number of rows of C(S)."""
        one_trace = self.traces == 1
        points = self.retained + 1
        each = sum(1 if trace and one_trace else points for trace in self.fidelities.is_trace)
        return self.members * each if self.zero_avoiding else 0

    @property
    def bought(self) -> int:
        return self.members * (self.retained + 1)

    # --------------------------------------------------------------------------------------------- variables

    def parts(self, V: Array) -> tuple[Array, Array, Array, Array]:
        """x (…, d), s (…, m), ρ (…, retained, traces) and b (…, m) of rows with one member each."""
        d, m, k = self.d, self.m, self.retained * self.traces
        rho = V[..., d + m : d + m + k].reshape(*V.shape[:-1], self.retained, self.traces)
        return V[..., :d], V[..., d : d + m], rho, V[..., d + m + k :]

    def of(self, candidates: Candidates) -> Array:
        """Decision rows (N, width) that retain points at even shares of the way."""
        shares = np.arange(1, self.retained + 1) / (self.retained + 1)
        rho = np.tile(np.repeat(shares, self.traces), (len(candidates), 1))
        return np.hstack([candidates.X, candidates.S, rho, candidates.begun])

    def bounds(self, V: Array, least: Array) -> tuple[Array, Array]:
        """Bounds of the variables of rows (N, width): fidelities from `least` (N, m) on; b is fixed.

        A continued run keeps its params and every fidelity that is no trace.
        """
        x, s, _, begun = self.parts(V)
        goes_on = np.any(begun > 0.0, axis=1)[:, None]
        held = goes_on & ~self.fidelities.is_trace
        slots = NEAREST + (1.0 - NEAREST) * np.arange(self.retained + 1) / (self.retained + 1)
        low = np.tile(np.repeat(slots[:-1], self.traces), (V.shape[0], 1))
        high = np.tile(np.repeat(slots[1:] - NEAREST / (self.retained + 1), self.traces), (V.shape[0], 1))
        lower = [np.where(goes_on, x, 0.0), np.where(held, s, least), low, begun]
        upper = [np.where(goes_on, x, 1.0), np.where(held, s, 1.0), high, begun]
        return np.hstack(lower), np.hstack(upper)

    # --------------------------------------------------------------------------------------------------- rows

    def split(self, V: Array) -> Array:
        """(N, members · width) as (N, members, width)."""
        return V.reshape(V.shape[0], self.members, self.width)

    def rows(self, V: Array) -> tuple[Array, Array]:
        """The rows that decisions (N, members · width) observe, (N, R, D), and could recommend, (N, members, D)."""
        one = self.split(V).reshape(-1, self.width)
        x, s, _, _ = self.parts(one)
        S = self.points(one)
        C = zeroed(S, self.fidelities) if self.zero_avoiding else S[:, :0]
        own = with_params(x, np.ones_like(s)[:, None, :])
        joined = [self._joined(with_params(x, part)) for part in (C, S)]
        return np.concatenate(joined, axis=1), self._joined(own)

    def points(self, V: Array) -> Array:
        """S (N, ℓ, m) of rows with one member each; its last point is s."""
        _, s, rho, begun = self.parts(V)
        S = np.repeat(s[:, None, :], self.retained + 1, axis=1)
        trace = self.fidelities.is_trace
        S[:, :-1, trace] = begun[:, None, trace] + rho * (s - begun)[:, None, trace]
        return S

    def pulled(self, V: Array, rows_bar: Array, own_bar: Array) -> Array:
        """∂F/∂V from ∂F/∂rows and ∂F/∂own."""
        one = self.split(V).reshape(-1, self.width)
        _, s, rho, begun = self.parts(one)
        C_bar, S_bar = (
            part.reshape(one.shape[0], -1, self.d + self.m) for part in np.split(rows_bar, [self.free], axis=1)
        )
        x_bar = sum(part[:, :, : self.d].sum(axis=1) for part in (C_bar, S_bar))
        x_bar = x_bar + own_bar.reshape(one.shape[0], -1)[:, : self.d]
        points_bar = S_bar[:, :, self.d :] + self._zeroed_bar(C_bar[:, :, self.d :])
        trace = self.fidelities.is_trace
        s_bar = points_bar.sum(axis=1)
        s_bar[:, trace] = points_bar[:, -1, trace] + np.sum(rho * points_bar[:, :-1, trace], axis=1)
        rho_bar = points_bar[:, :-1, trace] * (s - begun)[:, None, trace]
        found = np.hstack([x_bar, s_bar, rho_bar.reshape(one.shape[0], -1), np.zeros_like(begun)])
        return np.asarray(found.reshape(V.shape))

    def _zeroed_bar(self, C_bar: Array) -> Array:
        """The part of C(S) in the gradient of S: the components that were not replaced by zero."""
        S_bar = np.zeros((C_bar.shape[0], self.retained + 1, self.m))
        if not self.zero_avoiding:
            return S_bar
        first = 0
        for i, trace in enumerate(self.fidelities.is_trace):
            count = 1 if trace and self.traces == 1 else self.retained + 1
            part = C_bar[:, first : first + count].copy()
            part[:, :, i] = 0.0
            S_bar[:, :count] += part
            first += count
        return S_bar

    def _joined(self, part: Array) -> Array:
        """Rows of single members (N · members, k, D) as rows of all of them, (N, members · k, D)."""
        N, k, D = part.shape
        return part.reshape(N // self.members, self.members * k, D)
