"""GP-UCB and CE-GP-UCB over arms with an RBF kernel in time: the models of the paper's Table A1.

With k_space = I, an RBF kernel whose length scale is fitted can only be one over time. CE-GP-UCB's own model forgets
exponentially instead: its paths are rough, and what was seen a moment ago counts for less.
"""

from dataclasses import dataclass, replace
from math import exp, pi, sqrt
from typing import Literal

import numpy as np
from scipy.special import expit

from benchmarks.baselines.bandits import ArmBandit, ArmPlayer, Arms, OneRound
from farthing.acquisition.confidence_bound import ce_gp_ucb_beta
from farthing.fields import number, positive
from farthing.models.fidelity_kernels import FORGETTING, TimeDecay
from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.gp import GP, condition
from farthing.models.kernels import SCALE, SE, Constant, Kernel, Parameter
from farthing.models.linalg import Array, IntArray
from farthing.online.ce_gp_ucb import Matrix
from farthing.online.context import Query, RoundContext
from farthing.online.model import NOISE, Lookup
from farthing.online.strategy import Observation, OnlineProblem, Place, Play

TIME = Parameter("time", median=0.1, spread=1.0, lower=5e-3, upper=2.0)
"""The length scale as a share of all rounds; wide, as the paper has maximum likelihood."""
FLAT = 1e3
"""The spread of a prior that says nothing: what is fitted is then the likelihood alone, within the bounds."""
GROWTH = 1.25
"""Hyperparameters are fitted again when there are so many times the observations."""


@dataclass(frozen=True)
class SmoothArms(ArmBandit):
    """μ + √β σ of arms whose rewards are smooth functions of time; asks by any rule.

    Arms share nothing unless their `covariance` is given. `time` is the length scale in rounds, which goes with a scale
    and a noise; without it amplitude, length scale and noise are fitted, by the likelihood alone without `priors`. With
    `drift="exponential"` the process forgets as CE-GP-UCB's does, and with "likelier" each fit decides anew. Silent
    rounds play the argmax of the mean or, as published, of the bound.
    """

    beta: float | Literal["paper"] = number("paper", least=0.0)
    covariance: Matrix | None = None
    time: float | None = positive(None)
    drift: Literal["smooth", "exponential", "likelier"] = "smooth"
    silent: Literal["mean", "ucb"] = "mean"
    priors: bool = True

    def begin(self, problem: OnlineProblem) -> "SmoothPlayer":
        return SmoothPlayer(self, problem, arms=len(problem.rows if problem.rows is not None else ()))

    def choice(self, arms: Arms, rng: np.random.Generator) -> tuple[int, Array]:
        raise NotImplementedError

    def beta_at(self, round: int) -> float:
        return ce_gp_ucb_beta(round) if isinstance(self.beta, str) else self.beta


class TimePosterior(OneRound):
    """By a process over arms and time, about the means that are known before."""

    def __init__(self, gp: GP, rows: Array, known: Array) -> None:
        mean, self._covariance = gp.joint(rows)
        self._mean = mean + known

    def variance(self) -> Array:
        return np.maximum(np.diagonal(self._covariance), 1e-12)

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        return np.asarray(self._covariance[np.ix_(i, j)])


class SmoothPlayer(ArmPlayer):
    """A process over rows of an arm, the share of all rounds that is over, and the round."""

    def __init__(self, strategy: SmoothArms, problem: OnlineProblem, *, arms: int) -> None:
        super().__init__(strategy, problem, arms=arms)
        known = strategy.first_means()
        self._smooth, self._count = strategy, arms
        self._known = np.zeros(arms) if known is None else known
        self._between = np.eye(arms) if strategy.covariance is None else np.array(strategy.covariance, dtype=float)
        self._rows: list[tuple[float, float, float]] = []
        self._seen: list[float] = []
        self._fitted_on = 0
        self._gp: GP | None = None if strategy.time is None else self._given(strategy.time)

    def decide(self, round: int) -> Play:
        if not self._first and self._gp is None:
            return Play(int(np.argmax(self._known)), True, "the first one, of the best known mean")
        if self._asked < len(self._first) or self._gp is None:
            return super().decide(round)
        context = self._context(round)
        query: Query | None = self._smooth.rule.ask(context)
        if query is not None:
            return Play(query.place, True, query.reason)
        row = context.best_mean if self._smooth.silent == "mean" else context.choice
        return Play(row, False, "not asked for")

    def exploit(self, round: int) -> Place:
        assert self._gp is not None
        return int(np.argmax(self._posterior(self._gp, round).mean()))

    def _take(self, observation: Observation) -> None:
        super()._take(observation)
        arm = observation.place
        assert self._scale is not None
        assert isinstance(arm, int)
        self._rows.append((float(arm), observation.round / self._problem.rounds, float(observation.round)))
        self._seen.append(float(self._scale.apply([observation.reward])[0] - self._known[arm]))
        if self._gp is None or (self._smooth.time is None and len(self._seen) > GROWTH * self._fitted_on):
            self._gp, self._fitted_on = self._fitted(np.array(self._rows), np.array(self._seen)), len(self._seen)
        else:
            self._gp = self._gp.condition_on(np.array(self._rows[-1:]), np.array(self._seen[-1:]), noise=self._gp.noise)

    def _given(self, time: float) -> GP:
        kernel = Lookup(self._between) * SE((1,), lengthscale=TIME)
        theta = np.log([time / self._problem.rounds])
        return condition(kernel, theta, np.zeros((0, 3)), np.zeros(0), noise=self._smooth.noise)

    def _fitted(self, rows: Array, seen: Array) -> GP:
        """The likelier of the processes that are considered."""
        time, forgetting, amplitude, noise = map(self._prior, (TIME, FORGETTING, SCALE, NOISE))
        considered: dict[str, Kernel] = {
            "smooth": SE((1,), lengthscale=time),
            "exponential": TimeDecay(2, forgetting),
        }
        if self._smooth.drift != "likelier":
            considered = {self._smooth.drift: considered[self._smooth.drift]}
        kernels = [Constant(amplitude) * Lookup(self._between) * drift for drift in considered.values()]
        posteriors = [hyperparameter_posterior(kernel, rows, seen, noise_prior=noise) for kernel in kernels]
        return max((one.process(fit(one)) for one in posteriors), key=lambda gp: gp.log_marginal_likelihood)

    def _prior(self, parameter: Parameter) -> Parameter:
        return parameter if self._smooth.priors else replace(parameter, spread=FLAT)

    def _posterior(self, gp: GP, round: int) -> TimePosterior:
        share = np.full(self._count, round / self._problem.rounds)
        rows = np.column_stack([np.arange(float(self._count)), share, np.full(self._count, float(round))])
        return TimePosterior(gp, rows, self._known)

    def _context(self, round: int) -> RoundContext:
        if self._gp is None:
            return super()._context(round)
        posterior = self._posterior(self._gp, round)
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
            deviation=1.0 if self._smooth.time is not None else exp(0.5 * self._gp.theta[0]),
            lasting=self._lasting(self._gp),
            neighbourhood=self._neighbourhood,
            randomness=self._problem.randomness,
        )

    def _lasting(self, gp: GP) -> float:
        """√(1 − ε); of an RBF the rate at which as many rounds in all profit: Σ_h exp(−h²/2ℓ²) ≈ ½ + ℓ√(π/2)."""
        last = gp.theta[-1]
        if gp.kernel.parameters[-1].name != TIME.name:
            return sqrt(1.0 - float(expit(last)))
        return 1.0 - 1.0 / (0.5 + exp(last) * self._problem.rounds * sqrt(pi / 2.0))
