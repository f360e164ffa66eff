"""Bandits to compare with. Each takes any query rule, and exploits in silent rounds as CE-GP-UCB does.

The model-based ones are CE-GP-UCB's model with another choice: `GPBandit` (TV-GP-UCB, GP-UCB, EI, PI) and
`RestartedGPUCB` (R-GP-UCB). The others keep a discounted mean for each arm and need candidates.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, e, exp, log, sqrt
from typing import Literal

import numpy as np
from scipy.special import ndtr

from farthing.acquisition.expected_improvement import expected_excess
from farthing.errors import InvalidArgument
from farthing.fields import Declaration, Part, number, positive, ruled, share, whole
from farthing.models.drifting_posterior import DriftingPosterior
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.names import QUERY_RULE
from farthing.online.ce_gp_ucb import CEGPUCB
from farthing.online.context import Neighbourhood, Query, QueryRule, RoundContext
from farthing.online.gp_player import GPPlayer, Scale
from farthing.online.query_rules import Every
from farthing.online.strategy import Observation, OnlineProblem, Place, Play, valued
from farthing.trials import Json


def scaled_reward(z: float) -> float:
    """In [0, 1], as EXP3 needs it."""
    return min(max((z + 2.0) / 4.0, 0.0), 1.0)


UNSEEN = 1e6
"""The height of an arm that was never measured: it comes first."""


# --------------------------------------------------------------------------------------------------- with a GP


@dataclass(frozen=True)
class GPBandit(CEGPUCB):
    """TV-GP-UCB (Bogunovic et al., 2016) and its relatives: CE-GP-UCB's model, measured in every round unless told.

    `acquisition` is "ucb", or "ei" or "pi" over the highest mean; for "pi" an improvement must exceed `margin`, in
    units of the scale. `forgetting=0` is plain GP-UCB.
    """

    rule: QueryRule = ruled(Part(QUERY_RULE), default_factory=lambda: Every(1))
    acquisition: Literal["ucb", "ei", "pi"] = "ucb"
    margin: float = 0.1

    def height(self, mean: Array, variance: Array, *, round: int) -> Array:
        if self.acquisition == "ucb":
            return super().height(mean, variance, round=round)
        excess = mean - np.max(mean)
        if self.acquisition == "ei":
            return expected_excess(excess, variance)
        return np.asarray(ndtr((excess - self.margin) / np.sqrt(variance)))


@dataclass(frozen=True)
class RestartedGPUCB(GPBandit):
    """R-GP-UCB (Bogunovic et al., 2016): GP-UCB that forgets nothing, and everything at the start of each block.

    `block` is a number of rounds; None is ⌈12 ε^{−1/4}⌉ with `forgetting` as ε.
    """

    block: int | None = whole(None, least=1)

    def begin(self, problem: OnlineProblem) -> "RestartingPlayer":  # type: ignore[override]
        length = self.block or ceil(12.0 * _known_share(self.forgetting) ** -0.25)
        settings = {name: getattr(self, name) for name in GPBandit.__dataclass_fields__}
        return RestartingPlayer(GPBandit(**{**settings, "forgetting": 0.0}), problem, length=length)


def _known_share(forgetting: float | str) -> float:
    if isinstance(forgetting, str) or forgetting <= 0.0:
        raise InvalidArgument(
            f"A block's length needs forgetting above 0, got {forgetting!r}. Give forgetting=0.01, or block=50."
        )
    return forgetting


class RestartingPlayer:
    """Begins a new player at the start of each block."""

    def __init__(self, strategy: GPBandit, problem: OnlineProblem, *, length: int) -> None:
        self._strategy, self._problem, self._length = strategy, problem, length
        self._block = 0
        self._player: GPPlayer = strategy.begin(problem)

    @property
    def observations(self) -> list[Observation]:
        """The observations of the current block."""
        return self._player.observations

    def decide(self, round: int) -> Play:
        self._enter((round - 1) // self._length)
        return self._player.decide(round)

    def _enter(self, block: int) -> None:
        if block != self._block:
            self._block, self._player = block, self._strategy.begin(self._problem)

    def observe(self, observation: Observation) -> None:
        self._player.observe(observation)

    def exploit(self, round: int) -> Place:
        return self._player.exploit(round)

    def memory(self) -> Json:
        return {"block": self._block, "player": self._player.memory()}

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        self._enter(memory["block"])
        self._player.restore(observations, memory["player"])


# ------------------------------------------------------------------------------------------------- with arms


@dataclass(frozen=True)
class ArmBandit(Declaration):
    """Arms with discounted means: an observation of age a counts γ^a. Rewards are scaled as CE-GP-UCB scales them.

    Every arm is measured once first, unless `offset` is a list of what each is known to give on average.
    """

    rule: QueryRule = ruled(Part(QUERY_RULE), default_factory=lambda: Every(1))
    gamma: float = share(0.99)
    scale: float | None = positive(None)
    offset: float | Sequence[float] | None = None
    noise: float = positive(0.01)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.knows_arms and self.scale is None:
            raise InvalidArgument("Offsets of single arms need a scale, got none. Give scale=, or one offset for all.")

    @property
    def knows_arms(self) -> bool:
        return self.offset is not None and not isinstance(self.offset, (int, float))

    def first_means(self) -> Array | None:
        """What the arms are known to give, scaled."""
        if not self.knows_arms or self.scale is None:
            return None
        known = np.array(self.offset, dtype=float)
        return np.asarray((known - np.mean(known)) / self.scale, dtype=np.float64)

    def scale_of(self, rewards: Sequence[float]) -> Scale:
        centre = None if self.offset is None else float(np.mean(self.offset))
        return Scale.of(rewards, offset=centre, scale=self.scale, clip=None)

    def begin(self, problem: OnlineProblem) -> "ArmPlayer":
        if problem.rows is None:
            raise InvalidArgument("A bandit of arms needs candidates, got none. Give candidates=[…].")
        return ArmPlayer(self, problem, arms=problem.rows.shape[0])

    @abstractmethod
    def choice(self, arms: "Arms", rng: np.random.Generator) -> tuple[int, Array]:
        """The arm to measure, and the heights that arms are compared by."""


@dataclass(frozen=True)
class UCB1(ArmBandit):
    """UCB1 (Auer et al., 2002) with forgetting (discounted UCB): mean + √(ξ log n / n_i)."""

    xi: float = number(0.5, least=0.0)

    def choice(self, arms: "Arms", rng: np.random.Generator) -> tuple[int, Array]:
        total = max(float(np.sum(arms.counts)), e)
        height = arms.means + np.sqrt(self.xi * log(total) / arms.counts)
        return int(np.argmax(height)), height


@dataclass(frozen=True)
class EpsilonGreedy(ArmBandit):
    """The best mean, and with probability `explore` any arm."""

    explore: float = share(0.1)

    def choice(self, arms: "Arms", rng: np.random.Generator) -> tuple[int, Array]:
        best = int(np.argmax(arms.means))
        return int(rng.integers(arms.means.size)) if rng.random() < self.explore else best, arms.means


@dataclass(frozen=True)
class Softmax(ArmBandit):
    """An arm with probability ∝ exp(mean/temperature)."""

    temperature: float = positive(0.1)

    def choice(self, arms: "Arms", rng: np.random.Generator) -> tuple[int, Array]:
        weights = np.exp((arms.means - np.max(arms.means)) / self.temperature)
        return int(rng.choice(weights.size, p=weights / np.sum(weights))), arms.means


@dataclass(frozen=True)
class EXP3S(ArmBandit):
    """EXP3.S (Auer et al., 2002): exponential weights that are shared, for an adversary that changes its mind.

    Rewards are put into [0, 1] by (z + 2)/4; `explore` is γ and `share` α of the paper.
    """

    explore: float = share(0.1)
    share: float = number(1e-3, least=0.0, most=1.0)

    def choice(self, arms: "Arms", rng: np.random.Generator) -> tuple[int, Array]:
        p = self.probabilities(arms)
        return int(rng.choice(p.size, p=p)), p

    def probabilities(self, arms: "Arms") -> Array:
        return np.asarray((1.0 - self.explore) * arms.weights / np.sum(arms.weights) + self.explore / arms.weights.size)

    def updated_weights(self, arms: "Arms", arm: int, z: float) -> Array:
        """w_i ← w_i exp(γ x̂_i/K) + (eα/K) Σ w, with x̂ the reward over its probability."""
        K = arms.weights.size
        reward = scaled_reward(z) / float(self.probabilities(arms)[arm])
        shared = e * self.share / K * float(np.sum(arms.weights))
        weights = arms.weights.copy()
        weights[arm] *= exp(self.explore * reward / K)
        weights += shared
        return np.asarray(weights / np.max(weights))


@dataclass(frozen=True)
class EXP3R(EXP3S):
    """EXP3.R (Allesiardo, Féraud and Maillard, 2017): EXP3 that begins anew when exploring shows another best arm.

    After every `interval` measurements the means of those that explored are compared. If one of them exceeds that of
    the arm of highest weight by 2ε, ε = √(K log(1/δ)/2γH) with H the interval, the weights are equal again.
    """

    explore: float = share(0.3)
    share: float = number(0.0, least=0.0, most=1.0)
    interval: int = whole(50, least=1)
    delta: float = number(0.1, least=0.0, most=1.0)

    def choice(self, arms: "Arms", rng: np.random.Generator) -> tuple[int, Array]:
        """The first number that is drawn says whether it explores (`explores`)."""
        weights = arms.weights / np.sum(arms.weights)
        explores, arm = self.explores(rng), int(rng.choice(weights.size, p=weights))
        return int(rng.integers(weights.size)) if explores else arm, self.probabilities(arms)

    def explores(self, rng: np.random.Generator) -> bool:
        return bool(rng.random() < self.explore)

    def has_drifted(self, arms: "Arms") -> bool:
        counts, sums = np.zeros(arms.weights.size), np.zeros(arms.weights.size)
        for arm, reward in arms.explored:
            counts[arm], sums[arm] = counts[arm] + 1, sums[arm] + reward
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        epsilon = sqrt(means.size * log(1.0 / self.delta) / (2.0 * self.explore * self.interval))
        gaps = means - means[int(np.argmax(arms.weights))]
        return bool(np.any(gaps[np.isfinite(gaps)] >= 2.0 * epsilon))


class Arms:
    """Discounted counts and means, and the weights of EXP3.S. What is known at the start counts as one observation."""

    def __init__(self, count: int, *, gamma: float, first: Array | None = None) -> None:
        self.round = 0
        self.weights = np.ones(count)
        self.explored: list[tuple[int, float]] = []
        self.since = 0
        self._gamma = gamma
        self._n = np.zeros(count) if first is None else np.ones(count)
        self._sum = np.zeros(count) if first is None else first.copy()

    def advance_to(self, round: int) -> None:
        decay = self._gamma ** (round - self.round)
        self._n *= decay
        self._sum *= decay
        self.round = round

    def add(self, arm: int, z: float) -> None:
        self._n[arm] += 1.0
        self._sum[arm] += z

    @property
    def counts(self) -> Array:
        return np.maximum(self._n, 1e-12)

    @property
    def is_seen(self) -> BoolArray:
        return self._n > 0.0

    @property
    def means(self) -> Array:
        """Of what was seen; an arm never seen stands above all others."""
        return np.where(self.is_seen, self._sum / self.counts, UNSEEN)


class OneRound(DriftingPosterior):
    """A posterior of all arms in one round, which is made again for the next."""

    _mean: Array

    @property
    def size(self) -> int:
        return int(self._mean.size)

    def advance_to(self, round: int) -> None:
        """Nothing moves within a round."""

    def mean(self) -> Array:
        return self._mean


class ArmPosterior(OneRound):
    """Discounted means as a posterior: variances σ²/n + 1/(1 + n), at most 1 + σ², no covariance between arms."""

    def __init__(self, arms: Arms, *, noise: float) -> None:
        self._mean = np.where(arms.is_seen, arms.means, 0.0)
        self._variance = np.minimum(noise / arms.counts + 1.0 / (1.0 + arms.counts), 1.0 + noise)

    def variance(self) -> Array:
        return self._variance

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        return np.where(i[:, None] == j[None, :], self._variance[i][:, None], 0.0)


class ArmPlayer:
    def __init__(self, strategy: ArmBandit, problem: OnlineProblem, *, arms: int) -> None:
        self._strategy, self._problem = strategy, problem
        known = strategy.first_means()
        self._arms = Arms(arms, gamma=strategy.gamma, first=known)
        self._neighbourhood = Neighbourhood(np.zeros((arms, 1)), bandwidth=None)
        self.observations: list[Observation] = []
        self._asked = 0
        order = problem.randomness.at("design").permutation(arms)
        self._first = [int(arm) for arm in order] if known is None else []
        self._scale = None if strategy.scale is None else strategy.scale_of(())

    def decide(self, round: int) -> Play:
        if self._asked < len(self._first):
            return Play(self._first[self._asked], True, "every arm is measured once")
        self._arms.advance_to(round)
        context = self._context(round)
        query: Query | None = self._strategy.rule.ask(context)
        if query is not None:
            return Play(query.place, True, query.reason)
        return Play(int(np.argmax(self._arms.means)), False, "not asked for")

    def observe(self, observation: Observation) -> None:
        self._asked += 1
        known = valued(observation, self.observations)
        if known is not None:
            self.observations.append(known)
        self._learn(known)

    def _learn(self, known: Observation | None) -> None:
        if self._scale is None and (self._asked < len(self._first) or not self.observations):
            return
        if self._scale is None:
            self._scale = self._strategy.scale_of([each.reward for each in self.observations])
            for each in self.observations:
                self._take(each)
        elif known is not None:
            self._take(known)

    def exploit(self, round: int) -> Place:
        return int(np.argmax(np.where(self._arms.is_seen, self._arms.means, -np.inf)))

    def memory(self) -> Json:
        return {"asked": self._asked}

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        unknown = memory["asked"] - len(observations)
        self._asked = unknown
        for observation in observations:
            self.observe(observation)
        self._learn(None)

    def _take(self, observation: Observation) -> None:
        assert isinstance(observation.place, int)
        assert self._scale is not None
        z = float(self._scale.apply([observation.reward])[0])
        self._arms.advance_to(observation.round)
        if isinstance(self._strategy, EXP3S):
            self._arms.weights = self._strategy.updated_weights(self._arms, observation.place, z)
        if isinstance(self._strategy, EXP3R):
            self._watch(self._strategy, observation.place, observation.round, z)
        self._arms.add(observation.place, z)

    def _watch(self, strategy: EXP3R, arm: int, round: int, z: float) -> None:
        """Notes what explored, and begins anew at the end of an interval that shows another best arm."""
        arms = self._arms
        if strategy.explores(self._problem.randomness.at("arm", round)):
            arms.explored.append((arm, scaled_reward(z)))
        arms.since += 1
        if arms.since == strategy.interval:
            if strategy.has_drifted(arms):
                arms.weights = np.ones_like(arms.weights)
            arms.explored, arms.since = [], 0

    def _context(self, round: int) -> RoundContext:
        choice, height = self._strategy.choice(self._arms, self._problem.randomness.at("arm", round))
        return RoundContext(
            round=round,
            rounds=self._problem.rounds,
            asked=self._asked,
            posterior=ArmPosterior(self._arms, noise=self._strategy.noise),
            choice=choice,
            height=height,
            beta=2.0,
            noise=self._strategy.noise,
            deviation=1.0,
            lasting=self._strategy.gamma,
            neighbourhood=self._neighbourhood,
            randomness=self._problem.randomness,
        )
