"""CMA-ES (Hansen, 2016, "The CMA Evolution Strategy: A Tutorial"; its letters and equations) in the unit cube.

The distribution serves two: the strategy `CMAES`, and `evolved`, a rule for many trials that take less time than a
model, which begins at the best configuration seen. Categories are equal parts of their axis. The state is in the notes,
and a suggestion reads no trials but those of its generation: its time does not grow with the history.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from farthing.models.linalg import Array
from farthing.space.encoding import Encoder
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Json, Params, State, Trial, noted

NOTE = "evolution"
STEP = 0.3
"""The standard deviation at the start, in the unit cube, as the tutorial advises. 0.1 and 0.2 did no better around the
best row seen on `TUNING_FUNCTIONS` in `benchmarks/problems/synthetic.py` (medians of 5 seeds after 400 trials)."""
SMALLEST_STEP = 1e-9
"""A distribution that is narrower has converged, to about the precision that parameters have."""
SETTLED = 0.1
"""Once the steps of the numbers are smaller, a search in a space with categories has chosen its own for good. Chosen by
`python -m benchmarks.tuning.categories`, whose record is `benchmarks/results/tuning-categories.jsonl.xz`."""
LARGEST_POPULATION = 8
"""Restarts double the population up to this many times the first (IPOP, Auger and Hansen, 2005). Not tuned."""
DRAWS = 100
"""A point outside the unit cube is drawn again this often before it is moved to its edge, as in the package `cmaes`."""
TINY = 1e-8


@dataclass(frozen=True)
class Rates:
    """The constants for n dimensions and a population of λ: equations 48 to 56 of the tutorial."""

    weights: Array
    mu: int
    mu_eff: float
    c_1: float
    c_mu: float
    c_sigma: float
    d_sigma: float
    c_c: float
    expected: float

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, n: int, population: int) -> "Rates":
        mu = population // 2
        raw = np.array([math.log((population + 1) / 2) - math.log(i + 1) for i in range(population)])
        mu_eff = (np.sum(raw[:mu]) ** 2) / np.sum(raw[:mu] ** 2)
        mu_eff_minus = (np.sum(raw[mu:]) ** 2) / np.sum(raw[mu:] ** 2)
        c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)
        c_mu = min(1 - c_1 - 1e-8, 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) ** 2 + 2 * mu_eff / 2))
        least = min(1 + c_1 / c_mu, 1 + (2 * mu_eff_minus) / (mu_eff + 2), (1 - c_1 - c_mu) / (n * c_mu))
        positive, negative = np.sum(raw[raw > 0]), np.sum(np.abs(raw[raw < 0]))
        c_sigma = (mu_eff + 2) / (n + mu_eff + 5)
        return cls(
            weights=np.where(raw >= 0, 1 / positive * raw, least / negative * raw),
            mu=mu,
            mu_eff=mu_eff,
            c_1=c_1,
            c_mu=c_mu,
            c_sigma=c_sigma,
            d_sigma=1 + 2 * max(0, math.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma,
            c_c=(4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n),
            expected=math.sqrt(n) * (1.0 - (1.0 / (4.0 * n)) + 1.0 / (21.0 * (n**2))),
        )


@dataclass(frozen=True, eq=False)
class Distribution:
    """N(mean, σ² C) of a generation, with its paths.

    Sums and products are in the order of the package `cmaes`, with which studies were stored before: they are the same
    bit for bit, and so is every point that is drawn.
    """

    mean: Array
    sigma: float
    C: Array
    p_sigma: Array
    p_c: Array
    generation: int

    @classmethod
    def around(cls, mean: Array, sigma: float) -> "Distribution":
        n = mean.size
        return cls(mean, sigma, np.eye(n), np.zeros(n), np.zeros(n), 0)

    @property
    def n(self) -> int:
        return self.mean.size

    @cached_property
    def axes(self) -> tuple[Array, Array]:
        """B and D, where C = B D² Bᵀ."""
        squares, B = np.linalg.eigh((self.C + self.C.T) / 2)
        return np.asarray(B), np.sqrt(np.where(squares < 0, TINY, squares))

    def steps(self, columns: Sequence[int]) -> float:
        """The largest standard deviation along some axes of the cube."""
        return self.sigma * math.sqrt(float(np.max(np.diag(self.C)[list(columns)], initial=0.0)))

    def drawn(self, seed: int) -> Array:
        """A point of the unit cube."""
        (B, D), generator = self.axes, np.random.RandomState(seed)
        scaled = B.dot(np.diag(D))
        for _ in range(DRAWS):
            point = self.mean + self.sigma * scaled.dot(generator.randn(self.n))
            if np.all(point >= 0.0) and np.all(point <= 1.0):
                return np.asarray(point)
        return np.asarray(np.clip(self.mean + self.sigma * scaled.dot(generator.randn(self.n)), 0.0, 1.0))

    def after(self, points: Array) -> "Distribution":
        """The next one, from the points (λ, n) of a generation, the best first: equations 41 to 47."""
        rates, (B, D) = Rates.of(self.n, len(points)), self.axes
        Y = (points - self.mean) / self.sigma
        y = np.sum(Y[: rates.mu].T * rates.weights[: rates.mu], axis=1)
        root = B.dot(np.diag(1 / D)).dot(B.T)
        p_sigma = (1 - rates.c_sigma) * self.p_sigma + math.sqrt(
            rates.c_sigma * (2 - rates.c_sigma) * rates.mu_eff
        ) * root.dot(y)
        length = np.linalg.norm(p_sigma)
        sigma = self.sigma * np.exp((rates.c_sigma / rates.d_sigma) * (length / rates.expected - 1))
        stalls = length / math.sqrt(1 - (1 - rates.c_sigma) ** (2 * (self.generation + 2)))
        h = 1.0 if stalls < (1.4 + 2 / (self.n + 1)) * rates.expected else 0.0
        p_c = (1 - rates.c_c) * self.p_c + h * math.sqrt(rates.c_c * (2 - rates.c_c) * rates.mu_eff) * y
        lengths = np.linalg.norm(root.dot(Y.T), axis=0) ** 2 + TINY
        weights = rates.weights * np.where(rates.weights >= 0, 1, self.n / lengths)
        kept = 1 + rates.c_1 * ((1 - h) * rates.c_c * (2 - rates.c_c)) - rates.c_1 - rates.c_mu * np.sum(rates.weights)
        rank_mu = np.sum(weights.reshape(-1, 1, 1) * np.einsum("...i,...j->...ij", Y, Y), axis=0)
        C = kept * np.dot(np.dot(B, np.diag(D**2)), B.T) + rates.c_1 * np.outer(p_c, p_c) + rates.c_mu * rank_mu
        symmetric, mean = np.triu(C) + np.triu(C, 1).T, self.mean + self.sigma * y
        return Distribution(mean, min(float(sigma), 1e32), symmetric, p_sigma, p_c, self.generation + 1)

    def to_json(self) -> dict[str, Json]:
        """Of the symmetric C the upper triangle, row by row."""
        return {
            "mean": self.mean.tolist(),
            "sigma": self.sigma,
            "C": self.C[np.triu_indices(self.n)].tolist(),
            "p_sigma": self.p_sigma.tolist(),
            "p_c": self.p_c.tolist(),
            "generation": self.generation,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Json]) -> "Distribution":
        n = len(form["mean"])
        C, upper = np.zeros((n, n)), np.triu_indices(n)
        C[upper] = C.T[upper] = form["C"]
        mean, p_sigma, p_c = (np.array(form[name], dtype=float) for name in ("mean", "p_sigma", "p_c"))
        return cls(mean, form["sigma"], C, p_sigma, p_c, form["generation"])


@dataclass(frozen=True, eq=False)
class Generation:
    """Trials drawn from one distribution. `first` is the number of the first of them, whose note has the state.

    `restarts` is the number of searches before this one.
    """

    first: int
    distribution: Distribution
    population: int
    restarts: int = 0
    members: Sequence[Trial] = ()

    @property
    def ended(self) -> list[Trial]:
        """Measured ones first."""
        ended = [trial for trial in self.members if trial.is_finished]
        return sorted(ended, key=lambda trial: not is_measured(trial))

    def following(self, history: History, ended: Sequence[Trial], note: str) -> Distribution:
        """The distribution after the first λ trials of those."""
        told = sorted(ended[: self.population], key=lambda trial: loss(history, trial))
        return self.distribution.after(np.array([trial.note[note]["point"] for trial in told]))

    def drawn(self, encoder: Encoder, number: int, seed: int) -> tuple[Params, dict[str, Json]]:
        """The params of the trial that will have that number, and what is noted of it."""
        point = self.distribution.drawn(seed)
        [params] = encoder.decode_unit(point[None, :])
        state: dict[str, Json] = {"state": self.distribution.to_json()} if number == self.first else {}
        return params, {"point": point.tolist(), **state}


def evolved(history: History, count: int, rng: Randomness) -> list[tuple[Params, dict[str, Json]]]:
    """Params for the next `count` trials, and what is to be noted of each."""
    generation, encoder = current_generation(history, rng), history.problem.space.encoder
    numbers = range(len(history), len(history) + count)
    drawn = [generation.drawn(encoder, number, seed_at(rng, NOTE, number)) for number in numbers]
    search = {"population": generation.population, "restarts": generation.restarts}
    return [(params, {NOTE: note | search}) for params, note in drawn]


def current_generation(history: History, rng: Randomness) -> Generation:
    """The latest one, or the one after it if enough of its trials have ended."""
    latest = latest_generation(history)
    if latest is None:
        start = Distribution.around(best_point(history, history), STEP)
        return Generation(len(history), start, population_of(start.n))
    ended = latest.ended
    return latest if len(ended) < latest.population else _following(history, latest, ended, rng)


def latest_generation(history: History) -> Generation | None:
    """None where the last trial is of another rule, or of this one as it was before categories were axes."""
    if not len(history) or not is_evolving(history[len(history) - 1]):
        return None
    members = latest_members(history, NOTE)
    if not members or "restarts" not in members[0].note[NOTE]:
        return None
    note = members[0].note[NOTE]
    state = Distribution.from_json(note["state"])
    return Generation(members[0].number, state, note["population"], note["restarts"], members)


def latest_members(history: History, note: str) -> list[Trial]:
    """The trials of the last generation, read backwards from the last trial to the one that began it; [] without one.

    A generation of before the space was extended is none: its points are those of another cube.
    """
    members: list[Trial] = []
    for number in range(len(history) - 1, history.extended_at - 1, -1):
        trial = history[number]
        if note in noted(trial.note):
            members.append(trial)
            if "state" in trial.note[note]:
                return members[::-1]
    return []


def is_evolving(trial: Trial) -> bool:
    """Whether this rule suggested it."""
    return NOTE in noted(trial.note)


def is_measured(trial: Trial) -> bool:
    return trial.state is State.DONE and trial.value is not None


def loss(history: History, trial: Trial) -> float:
    """Infinite for trials without a result: they are the worst of their generation."""
    return history.loss(trial.value) if is_measured(trial) and trial.value is not None else math.inf


def best_point(history: History, trials: Iterable[Trial]) -> Array:
    """The best measured one, in the unit cube: the middle of its categories, and of axes that it does not have."""
    encoder = history.problem.space.encoder
    measured = [trial for trial in trials if is_measured(trial)]
    [point] = encoder.encode([min(measured, key=lambda trial: loss(history, trial)).params])
    for column, count in encoder.categories.items():
        point[column] = (point[column] + 0.5) / count
    return np.asarray(np.nan_to_num(point, nan=0.5))


def population_of(n: int) -> int:
    """Equation 48."""
    return 4 + math.floor(3 * math.log(n))


def seed_at(rng: Randomness, purpose: str, number: int) -> int:
    return int(rng.at(purpose, number).integers(2**32))


def _following(history: History, latest: Generation, ended: Sequence[Trial], rng: Randomness) -> Generation:
    losses = sorted(loss(history, trial) for trial in ended[: latest.population])
    after = latest.following(history, ended, NOTE)
    is_flat = losses[0] in (math.inf, losses[(len(losses) - 1) // 2])
    if is_flat or _has_ended(history.problem.space.encoder, latest, after):
        return _restarted(history, latest, rng)
    return Generation(len(history), after, latest.population, latest.restarts)


def _has_ended(encoder: Encoder, latest: Generation, after: Distribution) -> bool:
    """With categories a search is left when its step is small enough to compare it; later ones of the best go on."""
    numbers = [j for j in range(encoder.dimension) if j not in encoder.categories]
    width = SETTLED if _is_elsewhere(latest.restarts) else SETTLED ** (1 + latest.restarts // 2)
    least = max(width, SMALLEST_STEP) if encoder.categories else SMALLEST_STEP
    return not least <= after.steps(numbers or range(after.n)) < math.inf


def _is_elsewhere(restarts: int) -> bool:
    """Whether a search began at a random point rather than at the best one."""
    return restarts % 2 == 1


def _restarted(history: History, before: Generation, rng: Randomness) -> Generation:
    """At a random point, with twice the population: to find a wider valley.

    A search seldom leaves the categories that it begins with, as others look bad with its numbers. So with categories,
    two take turns: points with the categories tried least, and the search that found the best point so far, which goes
    on where it was left.
    """
    encoder, number, restarts = history.problem.space.encoder, len(history), before.restarts + 1
    population = before.population
    if encoder.categories and not _is_elsewhere(restarts):
        return Generation(number, _left(history), population, restarts)
    point = rng.at("restart", number).random(before.distribution.n)
    if encoder.categories:
        point = _with_other_categories(history, point)
    else:
        population = min(2 * population, LARGEST_POPULATION * population_of(point.size))
    return Generation(number, Distribution.around(point, STEP), population, restarts)


def _left(history: History) -> Distribution:
    """The last distribution of the search that found the best trial; a new one around it if it was no search."""
    best = min(filter(is_measured, history), key=lambda trial: loss(history, trial))
    search = best.note[NOTE].get("restarts") if is_evolving(best) and best.number >= history.extended_at else None
    if search is None:
        return Distribution.around(best_point(history, [best]), SETTLED)
    states = (trial.note[NOTE] for trial in reversed(history) if is_evolving(trial) and "state" in trial.note[NOTE])
    return Distribution.from_json(next(note["state"] for note in states if note.get("restarts") == search))


def _with_other_categories(history: History, point: Array) -> Array:
    """The category of each parameter that the fewest trials have had, the first of those; elsewhere as it was."""
    encoder = history.problem.space.encoder
    rows, found = encoder.encode([trial.params for trial in history]), point.copy()
    for column, count in encoder.categories.items():
        codes = rows[:, column]
        tried = np.bincount(codes[np.isfinite(codes)].astype(int), minlength=count)
        found[column] = (np.argmin(tried) + point[column]) / count
    return found
