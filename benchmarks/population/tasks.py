"""Made-up training runs: a state that an interval with some params changes, and a score of it that is measured.

A task of one seed has its own optimum and its own path. What counts is the true score at the end of the run of the
agent that a method recommends, as the regret against the best schedule there is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log2, log10
from typing import Any, Protocol

import numpy as np

from benchmarks.population.landscapes import Landscape, landscape
from farthing.models.linalg import Array, IntArray
from farthing.space import Choice, Fidelity, Float, Int, Space

State = tuple[float, ...]


class Task(Protocol):
    """A family of training runs, one for each seed."""

    @property
    def name(self) -> str: ...

    @property
    def intervals(self) -> int: ...

    def space(self) -> Space:
        """The params, with a trace fidelity "steps" of one step an interval."""
        ...

    def start(self, seed: int) -> State: ...

    def train(self, state: State, params: Mapping[str, Any], interval: int, seed: int) -> State:
        """The state after one interval."""
        ...

    def score(self, state: State) -> float:
        """The true score, to be maximised."""
        ...

    def regret(self, state: State, seed: int) -> float:
        """What the state at the end is short of; less is better."""
        ...

    @property
    def noise(self) -> float:
        """Deviation of a measured score."""
        ...


def _with_steps(params: dict[str, Any], intervals: int) -> Space:
    return Space(params, fidelities={"steps": Fidelity(1, intervals, integer=True, trace=True)})


@dataclass(frozen=True)
class Toy:
    """Figure 2 of the PBT paper: Q = 1.2 − θ₀² − θ₁² climbed by the gradient of 1.2 − h₀θ₀² − h₁θ₁², h the params."""

    name: str = "toy"
    intervals: int = 50
    noise: float = 0.0
    steps: int = 4
    rate: float = 0.01

    def space(self) -> Space:
        return _with_steps({"h0": Float(0.0, 1.0), "h1": Float(0.0, 1.0)}, self.intervals)

    def start(self, seed: int) -> State:
        return 0.9, 0.9

    def train(self, state: State, params: Mapping[str, Any], interval: int, seed: int) -> State:
        return (
            state[0] * (1.0 - 2.0 * self.rate * params["h0"]) ** self.steps,
            state[1] * (1.0 - 2.0 * self.rate * params["h1"]) ** self.steps,
        )

    def score(self, state: State) -> float:
        return 1.2 - state[0] ** 2 - state[1] ** 2

    def regret(self, state: State, seed: int) -> float:
        """log₁₀ of the gap to 1.2."""
        return log10(1.2 - self.score(state))


@dataclass(frozen=True)
class Drifting:
    """Every interval adds up to 1 to the score: f_t(x), a peak of some width whose place wanders with t."""

    name: str
    dimension: int
    intervals: int
    width: float
    drift: float
    noise: float
    shape: str = "bell"

    def space(self) -> Space:
        return _with_steps({f"x{j}": Float(0.0, 1.0) for j in range(self.dimension)}, self.intervals)

    def start(self, seed: int) -> State:
        return (0.0,)

    def train(self, state: State, params: Mapping[str, Any], interval: int, seed: int) -> State:
        x = np.array([params[f"x{j}"] for j in range(self.dimension)])
        return (state[0] + self._landscape(seed).gain(x, interval),)

    def score(self, state: State) -> float:
        return state[0]

    def regret(self, state: State, seed: int) -> float:
        return self.intervals - state[0]

    def _landscape(self, seed: int) -> Landscape:
        return landscape(self.shape, self.dimension, self.intervals, self.width, self.drift, (self.name, seed))


@dataclass(frozen=True)
class Mixed:
    """A categorical, a log parameter whose best value falls by decades as a learning rate's does, and two numbers.

    Options of the category lower the peak by different amounts, and each has a place of its own for the numbers.
    """

    name: str = "mixed"
    intervals: int = 20
    noise: float = 0.05
    options: tuple[str, ...] = ("a", "b", "c")

    def space(self) -> Space:
        numbers = {"dropout": Float(0.0, 1.0), "momentum": Float(0.0, 1.0)}
        params = {"rate": Float(1e-5, 1e-1, log=True), "kind": Choice(*self.options), **numbers}
        return _with_steps(params, self.intervals)

    def start(self, seed: int) -> State:
        return (0.0,)

    def train(self, state: State, params: Mapping[str, Any], interval: int, seed: int) -> State:
        order, places, fall = self._drawn(seed)
        kind = self.options.index(params["kind"])
        best_rate = 0.85 - fall * interval / self.intervals
        rate = (log10(params["rate"]) + 5.0) / 4.0
        offsets = np.array([rate, params["dropout"], params["momentum"]]) - np.array([best_rate, *places[kind]])
        gain = (1.0, 0.7, 0.4)[order[kind]] * float(np.exp(-0.5 * np.sum((offsets / 0.25) ** 2)))
        return (state[0] + gain,)

    def score(self, state: State) -> float:
        return state[0]

    def regret(self, state: State, seed: int) -> float:
        return self.intervals - state[0]

    def _drawn(self, seed: int) -> tuple[IntArray, Array, float]:
        """Ranks of the options, where their numbers are best, and how far the best rate falls."""
        rng = np.random.default_rng([7, seed])
        return rng.permutation(3), rng.uniform(0.2, 0.8, (3, 2)), float(rng.uniform(0.3, 0.7))


@dataclass(frozen=True)
class Cliff:
    """A learning rate that is best just below the edge where training diverges, which falls as training goes on.

    Below the edge an interval gains less the further away the rate is; beyond it half a point is lost. A batch size and
    a dropout lower the gain where they are wrong; the best dropout rises with time.
    """

    name: str = "cliff"
    intervals: int = 25
    noise: float = 0.15

    def space(self) -> Space:
        params = {"rate": Float(1e-5, 1.0, log=True), "batch": Int(8, 512, log=True), "dropout": Float(0.0, 1.0)}
        return _with_steps(params, self.intervals)

    def start(self, seed: int) -> State:
        return (0.0,)

    def train(self, state: State, params: Mapping[str, Any], interval: int, seed: int) -> State:
        edge, fall, batch, dropout = np.random.default_rng([11, seed]).uniform(
            [0.6, 0.1, 0.2, 0.1], [0.9, 0.4, 0.8, 0.6]
        )
        progress = interval / self.intervals
        below = edge - fall * progress - (log10(params["rate"]) + 5.0) / 5.0
        if below < 0.0:
            return (state[0] - 0.5,)
        wrong_batch = abs(log2(params["batch"] / 8.0) / 6.0 - batch)
        wrong_dropout = params["dropout"] - dropout - 0.3 * progress
        gain = max(0.0, 1.0 - below / 0.5) * (1.0 - 0.5 * wrong_batch) * exp(-4.0 * wrong_dropout**2)
        return (state[0] + float(gain),)

    def score(self, state: State) -> float:
        return state[0]

    def regret(self, state: State, seed: int) -> float:
        return self.intervals - state[0]


TASKS: tuple[Task, ...] = (
    Toy(),
    Drifting("drift", dimension=3, intervals=20, width=0.3, drift=0.2, noise=0.1),
    Drifting("drift4", dimension=4, intervals=40, width=0.15, drift=0.1, noise=0.2),
    Mixed(),
    Cliff(),
)
"""What is reported. Widths, drifts and noises were set by how random search, Clone and PBT fare, on other seeds. The
last one was designed apart from PB2, which was first run on it when all its settings were fixed."""

TUNING: tuple[Task, ...] = (
    Drifting("tuning 2-d", dimension=2, intervals=15, width=0.2, drift=0.3, noise=0.2),
    Drifting("tuning 3-d", dimension=3, intervals=20, width=0.25, drift=0.15, noise=0.05, shape="heavy"),
    Drifting("tuning 3-d, narrow", dimension=3, intervals=30, width=0.12, drift=0.2, noise=0.02),
    Drifting("tuning 5-d", dimension=5, intervals=30, width=0.3, drift=0.15, noise=0.1, shape="heavy"),
)
"""What settings of PB2 were compared on, with seeds from 1000; how it does on them is not reported."""
