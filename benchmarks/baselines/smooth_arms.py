"""GP-UCB and CE-GP-UCB over arms with an RBF kernel in time: the models of the paper's Table A1.

With k_space = I, an RBF kernel whose length scale is fitted can only be one over time. CE-GP-UCB's own model forgets
exponentially instead: its paths are rough, and what was seen a moment ago counts for less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from benchmarks.baselines.bandits import ArmBandit, ArmPlayer, Arms, OneRound
from farthing.acquisition.confidence_bound import ce_gp_ucb_beta
from farthing.fields import number
from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import SE, Constant
from farthing.models.linalg import Array, IntArray
from farthing.models.parameters import Parameter
from farthing.online.context import Query, RoundContext
from farthing.online.model import NOISE, Lookup
from farthing.online.strategy import Observation, OnlineProblem, Place, Play

TIME = Parameter("time", median=0.1, spread=1.0, lower=5e-3, upper=2.0)
"""The length scale as a share of all rounds; wide, as the paper has maximum likelihood."""
GROWTH = 1.25
"""Hyperparameters are fitted again when there are so many times the observations."""


@dataclass(frozen=True)
class SmoothArms(ArmBandit):
    """μ + √β σ of arms that share nothing, each a smooth function of time; asks by any rule, exploits in silence."""

    beta: float | Literal["paper"] = number("paper", least=0.0)

    def begin(self, problem: OnlineProblem) -> "SmoothPlayer":
        return SmoothPlayer(self, problem, arms=len(problem.rows if problem.rows is not None else ()))

    def choice(self, arms: Arms, rng: np.random.Generator) -> tuple[int, Array]:
        raise NotImplementedError

    def beta_at(self, round: int) -> float:
        return ce_gp_ucb_beta(round) if isinstance(self.beta, str) else self.beta


class TimePosterior(OneRound):
    """By a process over arms and time."""

    def __init__(self, gp: GP, arms: int, time: float) -> None:
        rows = np.column_stack([np.arange(float(arms)), np.full(arms, time)])
        self._mean, self._covariance = gp.joint(rows)

    def variance(self) -> Array:
        return np.maximum(np.diagonal(self._covariance), 1e-12)

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        return np.asarray(self._covariance[np.ix_(i, j)])


class SmoothPlayer(ArmPlayer):
    """Fits amplitude, length scale and noise to all that was observed."""

    def __init__(self, strategy: SmoothArms, problem: OnlineProblem, *, arms: int) -> None:
        super().__init__(strategy, problem, arms=arms)
        self._smooth, self._count = strategy, arms
        self._rows: list[tuple[float, float]] = []
        self._seen: list[float] = []
        self._fitted_on = 0
        self._gp: GP | None = None

    def decide(self, round: int) -> Play:
        if self._asked < len(self._first) or self._gp is None:
            return super().decide(round)
        context = self._context(round)
        query: Query | None = self._smooth.rule.ask(context)
        if query is not None:
            return Play(query.place, True, query.reason)
        return Play(int(np.argmax(context.posterior.mean())), False, "not asked for")

    def exploit(self, round: int) -> Place:
        assert self._gp is not None
        return int(np.argmax(self._posterior(round).mean()))

    def _take(self, observation: Observation) -> None:
        super()._take(observation)
        assert self._scale is not None
        assert isinstance(observation.place, int)
        self._rows.append((float(observation.place), observation.round / self._problem.rounds))
        self._seen.append(float(self._scale.apply([observation.reward])[0]))
        if self._gp is None or len(self._seen) > GROWTH * self._fitted_on:
            self._gp, self._fitted_on = self._fitted(self._rows, self._seen), len(self._seen)
        else:
            self._gp = self._gp.condition_on(np.array(self._rows[-1:]), np.array(self._seen[-1:]), noise=self._gp.noise)

    def _fitted(self, rows: Sequence[tuple[float, float]], seen: Sequence[float]) -> GP:
        kernel = Constant() * Lookup(np.eye(self._count)) * SE((1,), lengthscale=TIME)
        posterior = hyperparameter_posterior(kernel, np.array(rows), np.array(seen), noise_prior=NOISE)
        return posterior.process(fit(posterior))

    def _posterior(self, round: int) -> TimePosterior:
        assert self._gp is not None
        return TimePosterior(self._gp, self._count, round / self._problem.rounds)

    def _context(self, round: int) -> RoundContext:
        if self._gp is None:
            return super()._context(round)
        posterior = self._posterior(round)
        beta = self._smooth.beta_at(round)
        height = posterior.mean() + sqrt(beta) * np.sqrt(posterior.variance())
        return RoundContext(
            round=round,
            rounds=self._problem.rounds,
            asked=self._asked,
            posterior=posterior,
            choice=int(np.argmax(height)),
            height=height,
            beta=beta,
            noise=self._gp.noise,
            deviation=1.0,
            lasting=1.0,
            neighbourhood=self._neighbourhood,
            randomness=self._problem.randomness,
        )
