"""Candidates: what could be trained next, how far, and from where."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.models.gp import VALUE
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.trials import History, Suggestion

NEW = -1
"""In `source`: trained from nothing."""

UNSEEN = 1e6
"""Variance of a point that no run can report: it tells nothing."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """N evaluations: params X (N, d), target fidelity S (N, m), and where each stands already (N, m), zero for nothing.

    `source` is the run that it continues, by its place in the list of runs, or NEW.
    """

    X: Array
    S: Array
    begun: Array
    source: IntArray

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def picked(self, rows: IntArray | BoolArray) -> "Candidates":
        return Candidates(self.X[rows], self.S[rows], self.begun[rows], self.source[rows])

    def and_also(self, other: "Candidates") -> "Candidates":
        return joined([self, other])


def joined(parts: Sequence[Candidates]) -> Candidates:
    columns = zip(*((part.X, part.S, part.begun, part.source) for part in parts), strict=True)
    return Candidates(*(np.concatenate(column) for column in columns))


def at_levels(x: Array, levels: Array, *, begun: Array, source: int) -> Candidates:
    """One configuration at every one of these levels (G, m)."""
    G = levels.shape[0]
    return Candidates(np.tile(x, (G, 1)), levels, np.tile(begun, (G, 1)), np.full(G, source))


def crossed(X: Array, levels: Array) -> Candidates:
    """New configurations (N, d), each at every level (G, m)."""
    N, G = X.shape[0], levels.shape[0]
    S = np.tile(levels, (N, 1))
    return Candidates(np.repeat(X, G, axis=0), S, np.zeros_like(S), np.full(N * G, NEW))


# ----------------------------------------------------------------------------------------- what they would observe


def retained_points(candidates: Candidates, fidelities: Fidelities, *, retain: int) -> Array:
    """S (N, ℓ, m): points of the new part of each curve, at even shares of the way to its end.

    Points of S differ in trace components only; without any there is one.
    """
    trace = fidelities.is_trace
    shares = np.arange(1, retain + 1) / retain if trace.any() else np.ones(1)
    S = np.repeat(candidates.S[:, None, :], shares.size, axis=1)
    way = candidates.begun[:, None, :] + shares[None, :, None] * (candidates.S - candidates.begun)[:, None, :]
    S[:, :, trace] = way[:, :, trace]
    return S


def zeroed(S: Array, fidelities: Fidelities) -> Array:
    """C(S) = ∪ {s with one component replaced by 0}, as a set: 1 + ℓ(m − 1) points with one trace (section 2.4).

    As points of S differ in trace components only, they meet where the only trace is replaced.
    """
    parts = []
    for i, trace in enumerate(fidelities.is_trace):
        is_only_trace = trace and fidelities.is_trace.sum() == 1
        part = (S[:, :1] if is_only_trace else S).copy()
        part[:, :, i] = 0.0
        parts.append(part)
    return np.concatenate(parts, axis=1)


def variance_of_unseen(S: Array, fidelities: Fidelities) -> Array:
    """`UNSEEN` for points of S (N, ℓ, m) that no run reports: less than may be asked for, or whole amounts twice."""
    declared = fidelities.space.fidelities.values()
    is_whole = np.array([fidelity.integer for fidelity in declared])
    amounts = S * np.array([fidelity.high for fidelity in declared])
    amounts[:, :, is_whole] = np.rint(amounts[:, :, is_whole])
    below = np.any(amounts < np.array([fidelity.low for fidelity in declared]) - 1e-9, axis=2)
    repeated = np.zeros(S.shape[:2], dtype=bool)
    repeated[:, :-1] = np.all(np.abs(np.diff(amounts, axis=1)) < 1e-12, axis=2)
    return np.where(below | repeated, UNSEEN, 0.0)


def kinds_of_rows(observed: IntArray, *, free: int, points: int) -> tuple[IntArray, IntArray]:
    """For rows of C(S) and then, for each thing observed, of S: what each row tells, and which of (C, S) it is."""
    along = np.concatenate([np.full(free, VALUE, dtype=np.int64), np.repeat(observed, points)])
    return along, np.concatenate([np.arange(free), np.tile(free + np.arange(points), observed.size)])


def with_params(X: Array, S: Array) -> Array:
    """Rows (x, s): (N, k, d + m) from X (N, d) and S (N, k, m)."""
    return np.concatenate([np.repeat(X[:, None, :], S.shape[1], axis=1), S], axis=2)


@dataclass(frozen=True, eq=False)
class ChosenEvaluation:
    """One evaluation, what it is going to cost, and its value of information.

    Of several that were chosen jointly, each has the information of all.
    """

    candidate: Candidates
    cost: float
    information: float
    retained: Array | None = None
    """Which points of the curve are to enter the model, s (ℓ, m); None for the usual ones."""
    reason: str = "the most information per cost"
    drops: tuple[int, ...] = ()
    """Runs that leave a full basket for it, by the number of their first trial."""

    @property
    def is_new(self) -> bool:
        return bool(self.candidate.source[0] == NEW)


# ------------------------------------------------------------
# The configurations bought already: equal params are one, however many runs it had.

SAME = 9
"""Decimals of encoded params in which equal ones agree: decoding and encoding may change the last bit."""


@dataclass(frozen=True, eq=False)
class Bought:
    """The fidelities (k, m) that each configuration was trained to or is being trained to, by the key of its row."""

    fidelities: Fidelities
    levels: dict[bytes, Array]

    @classmethod
    def of(cls, history: History, chosen: Sequence[Suggestion] = ()) -> "Bought":
        """Counts trials that are done, in flight, or chosen a moment ago."""
        encoder = history.problem.space.encoder
        trials = (*history.done, *history.in_flight)
        found = [(trial.params, trial.fidelity) for trial in trials]
        found += [(suggestion.params, suggestion.fidelity) for suggestion in chosen]
        levels: dict[bytes, list[Array]] = {}
        S = encoder.encode_fidelity([fidelity for _, fidelity in found])
        for key, s in zip(_keys(encoder.encode([params for params, _ in found])), S, strict=True):
            levels.setdefault(key, []).append(s)
        return cls(Fidelities(history.problem.space), {key: np.array(rows) for key, rows in levels.items()})

    def and_also(self, candidates: Candidates) -> "Bought":
        """The same with these as well."""
        levels = dict(self.levels)
        for key, s in zip(_keys(candidates.X), candidates.S, strict=True):
            levels[key] = np.vstack([levels[key], s]) if key in levels else s[None, :]
        return Bought(self.fidelities, levels)

    def has(self, X: Array, S: Array) -> BoolArray:
        """Whether params X (N, d) were trained to S (N, m), or beyond it along traces, which report on the way."""
        return np.array([self._reaches(key, s) for key, s in zip(_keys(X), S, strict=True)], dtype=bool)

    def knows(self, X: Array) -> BoolArray:
        """Whether params X (N, d) were trained at all."""
        return np.array([key in self.levels for key in _keys(X)], dtype=bool)

    def most(self, x: Array) -> Array:
        """The most of each fidelity (m,) that a configuration (d,) was trained to, in any of its runs."""
        [key] = _keys(x[None, :])
        return np.asarray(self.levels[key].max(axis=0))

    def _reaches(self, key: bytes, s: Array) -> bool:
        levels, trace = self.levels.get(key), self.fidelities.is_trace
        if levels is None:
            return False
        beyond = np.all(levels[:, trace] >= s[trace] - 1e-12, axis=1)
        return bool(np.any(beyond & np.all(np.abs(levels[:, ~trace] - s[~trace]) < 1e-12, axis=1)))


def distinct(X: Array) -> list[int]:
    """The first place of each configuration among rows (N, d)."""
    first: dict[bytes, int] = {}
    for place, key in enumerate(_keys(X)):
        first.setdefault(key, place)
    return list(first.values())


def _keys(X: Array) -> list[bytes]:
    """Equal keys for equal configurations. Adding zero makes −0 the same as 0; what is inactive is equal."""
    return [row.tobytes() for row in np.round(np.nan_to_num(X, nan=-1.0), SAME) + 0.0]
