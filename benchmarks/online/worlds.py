"""Functions that change from round to round: the truth of every candidate, and the noise of measuring it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from benchmarks.problems.data import data_folder, missing_file
from farthing.models.kernels import Matern32
from farthing.models.linalg import Array, cholesky
from farthing.online import OnlineProblem
from farthing.space import Choice, Float, Space
from farthing.trials import Params

POINTS, ROUNDS = 1000, 500
LENGTHSCALE, NOISE = 0.2, 0.01
ARM_ROUNDS = 2000


@dataclass(frozen=True, eq=False)
class Truth:
    """F (T, m): the reward of each candidate in each round; `noise` (T,) is added to what is measured."""

    F: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class World:
    """`facts` are what a strategy may know before the first round, such as hyperparameters fitted to earlier data."""

    name: str
    space: Space
    candidates: tuple[Params, ...]
    draw: Callable[[int], Truth]
    facts: Callable[[], dict[str, Any]] = dict
    file: str | None = None
    rounds: int = ROUNDS
    seeds: int | None = None
    _truths: dict[int, Truth] = field(default_factory=dict, repr=False)

    def missing(self) -> str | None:
        return missing_file(self.file) if self.file else None

    def truth(self, seed: int) -> Truth:
        """The same for all strategies; only the last one is kept."""
        if seed not in self._truths:
            self._truths.clear()
            self._truths[seed] = self.draw(seed)
        return self._truths[seed]

    def problem(self, seed: int) -> OnlineProblem:
        return OnlineProblem(self.space.encoder, self.rounds, seed, candidates=self.candidates)


# ------------------------------------------------------------------------------------------------------ the paper's


def drifting(epsilon: float) -> World:
    """f_{t+1} = √(1−ε) f_t + √ε g_{t+1} with g ~ GP(0, Matérn-3/2) on a grid of 1000 points, as in Table A2."""

    def draw(seed: int) -> Truth:
        rng = np.random.default_rng([seed, round(1e4 * epsilon)])
        F = rng.standard_normal((ROUNDS, POINTS)) @ _grid_factor().T
        for t in range(1, ROUNDS):
            F[t] = sqrt(1.0 - epsilon) * F[t - 1] + sqrt(epsilon) * F[t]
        return Truth(F, sqrt(NOISE) * rng.standard_normal(ROUNDS))

    grid = np.linspace(0.0, 1.0, POINTS)
    return World(
        f"ε = {epsilon:g}",
        Space({"x": Float(0.0, 1.0)}),
        tuple({"x": float(x)} for x in grid),
        draw,
        facts=lambda: {"forgetting": epsilon, "noise": NOISE, "lengthscale": LENGTHSCALE, "kernel": "matern32"},
    )


@lru_cache
def _grid_factor() -> Array:
    X = np.linspace(0.0, 1.0, POINTS)[:, None]
    return cholesky(Matern32((0,)).evaluate(np.log([LENGTHSCALE]), X).K + 1e-9 * np.eye(POINTS))


# ------------------------------------------------------------------------------------------------------- three arms


def sine(t: Array, rng: np.random.Generator) -> Array:
    """½ + ½ sin(2πt/1000 + φ_i), the phases a third of a turn apart, after a random first one."""
    phases = 2.0 * np.pi * (rng.random() + np.arange(3) / 3.0)
    return np.asarray(0.5 + 0.5 * np.sin(2.0 * np.pi * t[:, None] / 1000.0 + phases))


def gaussian(t: Array, rng: np.random.Generator) -> Array:
    """exp(−(t − c_i)²/2w²), w = 300, the centres at T/6, T/2 and 5T/6, dealt to the arms at random."""
    centres = rng.permutation([ARM_ROUNDS / 6, ARM_ROUNDS / 2, 5 * ARM_ROUNDS / 6])
    return np.asarray(np.exp(-((t[:, None] - centres) ** 2) / (2.0 * 300.0**2)))


def piecewise(t: Array, rng: np.random.Generator) -> Array:
    """Levels uniform in [0, 1], drawn again for each arm every 250 rounds."""
    levels = rng.random((ARM_ROUNDS // 250 + 1, 3))
    return np.asarray(levels[(t // 250).astype(int)])


def three_arms(name: str, function: Callable[[Array, np.random.Generator], Array]) -> World:
    """Three arms over 2000 rounds, noise variance 0.01: the paper's second experiment, its curves stated here."""

    def draw(seed: int) -> Truth:
        rng = np.random.default_rng([seed, 3])
        F = function(np.arange(ARM_ROUNDS, dtype=float), rng)
        return Truth(F, sqrt(NOISE) * rng.standard_normal(ARM_ROUNDS))

    arms = ("first", "second", "third")
    return World(name, Space({"arm": Choice(*arms)}), tuple({"arm": arm} for arm in arms), draw, rounds=ARM_ROUNDS)


# ---------------------------------------------------------------------------------------------------------- sensors


@dataclass(frozen=True)
class Readings:
    """Readings of sensors (T, m), the first part to learn from and the rest to play on."""

    train: Array
    test: Array


def _metr() -> Readings:
    speeds = np.load(data_folder() / "metr_la_week/metr_la_week.npz")["speed_mph"].astype(float)
    return Readings(speeds[:864], speeds[864:])


def _split(file: str) -> Callable[[], Readings]:
    def load() -> Readings:
        arrays = np.load(data_folder() / file)
        return Readings(arrays["train"].astype(float), arrays["test"].astype(float))

    return load


READINGS: Mapping[str, Callable[[], Readings]] = {
    "metr-la": _metr,
    "intel": _split("intel_temperature/intel_temperature.npz"),
    "cmu-light": _split("cmu_light/cmu_light.npz"),
}


def sensors(name: str, file: str, *, arms: int, rounds: int) -> World:
    """An arm is a sensor and its reading the reward. Kernel, forgetting and noise are fitted to the first part."""

    def draw(seed: int) -> Truth:
        return Truth(READINGS[name]().test, np.zeros(rounds))

    names = tuple(f"sensor {i}" for i in range(arms))
    return World(
        name,
        Space({"sensor": Choice(*names)}),
        tuple({"sensor": sensor} for sensor in names),
        draw,
        facts=lru_cache(lambda: fitted_facts(READINGS[name]().train)),
        file=file,
        rounds=rounds,
    )


def fitted_facts(train: Array) -> dict[str, Any]:
    """From the first part: what each sensor reads on average, the covariance of the rest, its forgetting and noise.

    Readings k = 1, 2 steps apart correlate as ρ_k = (1 − s)(1 − ε)^{k/2}, with s the share of noise: that gives both.
    The scale is the deviation about the sensors' means.
    """
    offset = np.mean(train, axis=0)
    scale = float(np.std(train - offset))
    Z = (train - offset) / scale
    covariance = Z.T @ Z / len(Z)
    shrunk = 0.95 * covariance + 0.05 * np.diag(np.diagonal(covariance) + 1e-3)
    one, two = (float(np.sum(Z[k:] * Z[:-k]) / np.sum(Z * Z) * len(Z) / (len(Z) - k)) for k in (1, 2))
    epsilon = float(np.clip(1.0 - (two / one) ** 2, 1e-4, 0.5))
    noise = float(np.clip(1.0 - one / sqrt(1.0 - epsilon), 1e-3, 0.5))
    return {
        "offset": offset.tolist(),
        "scale": scale,
        "kernel": shrunk.tolist(),
        "forgetting": epsilon,
        "noise": noise,
    }


SYNTHETIC = tuple(drifting(epsilon) for epsilon in (0.003, 0.005, 0.01, 0.03, 0.05))
ARMS = (three_arms("sine", sine), three_arms("gaussian", gaussian), three_arms("piecewise", piecewise))
SENSORS = (
    sensors("metr-la", "metr_la_week/metr_la_week.npz", arms=207, rounds=1152),
    sensors("intel", "intel_temperature/intel_temperature.npz", arms=50, rounds=96),
    sensors("cmu-light", "cmu_light/cmu_light.npz", arms=41, rounds=192),
)
