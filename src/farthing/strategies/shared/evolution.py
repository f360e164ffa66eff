"""An evolution strategy around the best configuration seen: a rule for many trials that take less time than a model.

Numbers follow CMA-ES (Hansen, 2016, "The CMA Evolution Strategy: A Tutorial"; its letters and equations), from the best
row seen; categories are drawn by the shares that they have among the better ones. The state is in the notes, and a
suggestion reads no trials but those of its generation: its time does not grow with the history.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from farthing.models.linalg import Array
from farthing.space.encoding import Encoder
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Json, Params, State, Trial

NOTE = "evolution"
STEP = 0.3
"""The standard deviation at the start, in the unit cube, as the tutorial advises. 0.1 and 0.2 did no better around the
best row seen on `TUNING_FUNCTIONS` in `benchmarks/problems/synthetic.py` (medians of 5 seeds after 400 trials)."""
SMALLEST_STEP = 1e-9
"""A distribution that is narrower has converged, to about the precision that parameters have."""
LARGEST_POPULATION = 8
"""Restarts double the population up to this many times the first (IPOP, Auger and Hansen, 2005). Not tuned."""
DRAWS = 10
"""A row outside the unit cube is drawn again this often before it is moved to its edge. Not tuned."""
LEARNING = 0.3
"""Of the shares of categories, from one generation to the next; a guess, not tuned."""
LEAST_SHARE = 0.1
"""Divided evenly among all categories of a parameter, so that none dies out; a guess, not tuned."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of a generation: N(mean, σ² C) of the numbers, and the shares of each category."""

    mean: Array
    sigma: float
    C: Array
    p_sigma: Array
    p_c: Array
    generation: int
    population: int
    shares: Sequence[Array]

    @classmethod
    def around(cls, encoder: Encoder, row: Array, *, population: int, weight: float) -> "Distribution":
        """Around a row; `weight` is the share that its categories begin with, beside equal ones."""
        numbers = numeric_columns(encoder)
        shares = []
        for j, count in encoder.categories.items():
            share = np.full(count, (1.0 - weight) / count)
            share[int(row[j])] += weight
            shares.append(share)
        n = numbers.size
        return cls(row[numbers], STEP, np.eye(n), np.zeros(n), np.zeros(n), 0, population, shares)

    @property
    def n(self) -> int:
        return self.mean.size

    @cached_property
    def axes(self) -> Array:
        """B D, where C = B D² Bᵀ."""
        squares, B = np.linalg.eigh(self.C)
        return np.asarray(B * np.sqrt(np.maximum(squares, 0.0)))

    @property
    def has_converged(self) -> bool:
        widest = self.sigma * math.sqrt(float(np.max(np.diag(self.C), initial=0.0)))
        return self.n > 0 and not SMALLEST_STEP <= widest < math.inf

    def drawn(self, encoder: Encoder, generator: np.random.Generator) -> Array:
        """A row (d,): numbers in the unit cube, codes of categories."""
        row = np.zeros(encoder.dimension)
        row[numeric_columns(encoder)] = self._numbers(generator)
        for j, share in zip(encoder.categories, self.shares, strict=True):
            row[j] = generator.choice(share.size, p=share / share.sum())
        return row

    def _numbers(self, generator: np.random.Generator) -> Array:
        x = self.mean
        for _ in range(DRAWS):
            x = self.mean + self.sigma * self.axes @ generator.standard_normal(self.n)
            if np.all((x >= 0.0) & (x <= 1.0)):
                return x
        return np.clip(x, 0.0, 1.0)

    def after(self, encoder: Encoder, rows: Array) -> "Distribution":
        """The next one, from the rows (λ, d) of a generation, the best first."""
        weights = _weights(len(rows))
        best = rows[: weights.size]
        shares = [
            self._next_share(share, best[:, j], weights)
            for j, share in zip(encoder.categories, self.shares, strict=True)
        ]
        moved = self._moved(best[:, numeric_columns(encoder)], weights) if self.n else self
        return replace(moved, shares=shares, generation=self.generation + 1)

    def _next_share(self, share: Array, codes: Array, weights: Array) -> Array:
        seen = np.bincount(codes.astype(int), weights=weights, minlength=share.size)
        learnt = (1.0 - LEARNING) * share + LEARNING * seen
        return (1.0 - LEAST_SHARE) * learnt + LEAST_SHARE / share.size

    def _moved(self, X: Array, weights: Array) -> "Distribution":
        """Equations 41 to 49 of the tutorial, without negative weights."""
        n, mu_eff = self.n, 1.0 / float(np.sum(weights**2))
        c_sigma = (mu_eff + 2.0) / (n + mu_eff + 5.0)
        d_sigma = 1.0 + 2.0 * max(0.0, math.sqrt((mu_eff - 1.0) / (n + 1.0)) - 1.0) + c_sigma
        c_c = (4.0 + mu_eff / n) / (n + 4.0 + 2.0 * mu_eff / n)
        c_1 = 2.0 / ((n + 1.3) ** 2 + mu_eff)
        c_mu = min(1.0 - c_1, 2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / ((n + 2.0) ** 2 + mu_eff))
        expected = math.sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n**2))
        Y = (X - self.mean) / self.sigma
        y = weights @ Y
        whitened = np.asarray(np.linalg.lstsq(self.axes, y, rcond=None)[0], dtype=float)
        B_whitened = self._rotated(whitened)
        p_sigma = (1.0 - c_sigma) * self.p_sigma + math.sqrt(c_sigma * (2.0 - c_sigma) * mu_eff) * B_whitened
        length = float(np.linalg.norm(p_sigma))
        stalls = length / math.sqrt(1.0 - (1.0 - c_sigma) ** (2 * (self.generation + 1)))
        h = float(stalls < (1.4 + 2.0 / (n + 1.0)) * expected)
        p_c = (1.0 - c_c) * self.p_c + h * math.sqrt(c_c * (2.0 - c_c) * mu_eff) * y
        kept = 1.0 - c_1 - c_mu + (1.0 - h) * c_1 * c_c * (2.0 - c_c)
        C = kept * self.C + c_1 * np.outer(p_c, p_c) + c_mu * (Y.T * weights) @ Y
        sigma = self.sigma * math.exp(min(1.0, c_sigma / d_sigma * (length / expected - 1.0)))
        return replace(self, mean=self.mean + self.sigma * y, sigma=sigma, C=(C + C.T) / 2, p_sigma=p_sigma, p_c=p_c)

    def _rotated(self, z: Array) -> Array:
        """C^(−1/2) y = B D⁻¹ Bᵀ y, from z = D⁻¹ Bᵀ y."""
        lengths = np.linalg.norm(self.axes, axis=0)
        return np.asarray((self.axes / np.where(lengths > 0.0, lengths, 1.0)) @ z)

    def to_json(self) -> dict[str, Json]:
        parts = {"mean": self.mean, "C": self.C, "p_sigma": self.p_sigma, "p_c": self.p_c}
        return {
            **{name: part.tolist() for name, part in parts.items()},
            "sigma": self.sigma,
            "generation": self.generation,
            "population": self.population,
            "shares": [share.tolist() for share in self.shares],
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Json]) -> "Distribution":
        n = len(form["mean"])
        arrays = {name: np.array(form[name], dtype=float) for name in ("mean", "p_sigma", "p_c")}
        return cls(
            **arrays,
            C=np.array(form["C"], dtype=float).reshape(n, n),
            sigma=form["sigma"],
            generation=form["generation"],
            population=form["population"],
            shares=[np.array(share, dtype=float) for share in form["shares"]],
        )


@dataclass(frozen=True, eq=False)
class Generation:
    """Trials drawn from one distribution. `first` is the number of the first of them, whose note has the state."""

    first: int
    distribution: Distribution
    members: Sequence[Trial] = ()


def evolved(history: History, count: int, rng: Randomness) -> list[tuple[Params, dict[str, Json]]]:
    """Params for the next `count` trials, and what is to be noted of each."""
    generation, encoder = current_generation(history, rng), history.problem.space.encoder
    return [_drawn(encoder, generation, number, rng) for number in range(len(history), len(history) + count)]


def is_evolving(trial: Trial) -> bool:
    """Whether this rule suggested it."""
    return isinstance(trial.note, dict) and NOTE in trial.note


def current_generation(history: History, rng: Randomness) -> Generation:
    """The latest one, or the one after it if enough of its trials have ended."""
    latest = latest_generation(history)
    if latest is None:
        return Generation(len(history), _start(history))
    ended = [trial for trial in latest.members if trial.is_finished]
    if len(ended) < latest.distribution.population:
        return latest
    return Generation(len(history), _following(history, latest.distribution, ended, rng))


def latest_generation(history: History) -> Generation | None:
    """Read backwards from the last trial to the one that began it; none is older than an extension of the space."""
    members: list[Trial] = []
    for number in range(len(history) - 1, history.extended_at - 1, -1):
        trial = history[number]
        if not is_evolving(trial):
            if members:
                continue
            return None
        members.append(trial)
        if "state" in trial.note[NOTE]:
            return Generation(number, Distribution.from_json(trial.note[NOTE]["state"]), members[::-1])
    return None


def numeric_columns(encoder: Encoder) -> "np.ndarray":
    return np.array([j for j in range(encoder.dimension) if j not in encoder.categories], dtype=int)


def _drawn(encoder: Encoder, generation: Generation, number: int, rng: Randomness) -> tuple[Params, dict[str, Json]]:
    row = generation.distribution.drawn(encoder, rng.at("evolution", number))
    state = {"state": generation.distribution.to_json()} if number == generation.first else {}
    return encoder.decode(row[None, :])[0], {NOTE: {"point": row.tolist(), **state}}


def _start(history: History) -> Distribution:
    encoder = history.problem.space.encoder
    best = min(_measured(history), key=lambda trial: _loss(history, trial))
    row = np.nan_to_num(encoder.encode([best.params])[0], nan=0.5)
    row[list(encoder.categories)] = np.floor(row[list(encoder.categories)])
    return Distribution.around(encoder, row, population=_population(encoder), weight=0.5)


def _following(history: History, distribution: Distribution, ended: Sequence[Trial], rng: Randomness) -> Distribution:
    encoder = history.problem.space.encoder
    losses = np.array([_loss(history, trial) for trial in ended])
    order = np.argsort(losses, kind="stable")
    rows = np.array([ended[i].note[NOTE]["point"] for i in order])
    after = distribution.after(encoder, rows)
    is_flat = not np.isfinite(losses).any() or losses[order[0]] == losses[order[(len(ended) - 1) // 2]]
    if not (is_flat or after.has_converged):
        return after
    return _restarted(encoder, distribution, rng.at("restart", len(history)))


def _restarted(encoder: Encoder, before: Distribution, generator: np.random.Generator) -> Distribution:
    """At a random row, with twice the population: to find a wider valley."""
    population = min(2 * before.population, LARGEST_POPULATION * _population(encoder))
    row = np.nan_to_num(encoder.from_unit(generator.random((1, encoder.dimension)))[0], nan=0.0)
    return Distribution.around(encoder, row, population=population, weight=0.0)


def _population(encoder: Encoder) -> int:
    return 4 + int(3.0 * math.log(max(1, encoder.dimension)))


def _weights(count: int) -> Array:
    """Of the better half, the best first; they add up to one."""
    ranks = np.arange(1, max(1, count // 2) + 1)
    weights = math.log((count + 1.0) / 2.0) - np.log(ranks) if count > 1 else np.ones(1)
    weights = np.maximum(weights, 1e-12)
    return np.asarray(weights / weights.sum())


def _measured(history: History) -> list[Trial]:
    return [trial for trial in history if trial.state is State.DONE and trial.value is not None]


def _loss(history: History, trial: Trial) -> float:
    is_measured = trial.state is State.DONE and trial.value is not None
    return history.loss(trial.value) if is_measured and trial.value is not None else math.inf
