"""The configurations bought already: equal params are one, however many runs it had."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.models.linalg import Array, BoolArray
from farthing.strategies.multifidelity.candidates import Candidates
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.trials import History, Suggestion

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
