"""Online strategies, and the problems that they play in.

An `OnlineStrategy` is a frozen description. `begin` makes a `Player` of it, which changes round by round; the same
observations always make the same player, so that a run can be continued from its observations alone.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import inf
from typing import Protocol, runtime_checkable

import numpy as np

from farthing.errors import InvalidArgument
from farthing.fields.serialization import as_one, from_json
from farthing.models.linalg import Array
from farthing.names import ONLINE_STRATEGY
from farthing.space.encoding import Encoder
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import Json, Params

Place = int | Array
"""The index of a candidate, or a row of the space where there are no candidates."""


@dataclass(frozen=True, eq=False)
class OnlineProblem:
    """The problem of a player: decisions in a space, or in some candidates of it, with a seed.

    A player decides `rounds` times, and each of its decisions holds for `hold` rounds of the user's loop. `initial` are
    params to be measured first, in that order; `trusted` says that the first of them is thought to be good. `can_undo`
    says that what is trained can be put back into an earlier state. `overhead` bounds what validations and training
    that is taken back cost, as a share of all decisions. `validation_cost` is what one costs, in decisions, where the
    user says so. `price` is what a validation must be expected to bring, as a sum of value over the rounds that are
    left. `validation_size` says that a value is a share of this many examples, such as an accuracy; `gains` that it is
    what a round adds.
    """

    encoder: Encoder
    rounds: int
    seed: int = 0
    candidates: Sequence[Params] | None = None
    initial: Sequence[Params] = ()
    trusted: bool = True
    can_undo: bool = False
    hold: int = 1
    overhead: float | None = None
    validation_cost: float | None = None
    price: float = 0.0
    validation_size: int | None = None
    gains: bool = False

    @cached_property
    def rows(self) -> Array | None:
        """The candidates as rows; None where the whole space is allowed."""
        return None if self.candidates is None else self.encoder.encode(self.candidates)

    @cached_property
    def randomness(self) -> Randomness:
        return Randomness(self.seed)

    def params(self, place: Place) -> Params:
        if isinstance(place, np.ndarray):
            return self.encoder.decode(place[None, :])[0]
        assert self.candidates is not None
        return self.candidates[place]

    def place(self, params: Params) -> Place:
        """The row of these params. Two calls with the same params give the same bits."""
        if self.candidates is None:
            return np.asarray(self.encoder.encode([params])[0])
        try:
            return self.candidates.index(params)
        except ValueError:
            raise InvalidArgument(
                f"Params must be one of the {len(self.candidates)} candidates, got {dict(params)}. Add them to them."
            ) from None


@dataclass(frozen=True, eq=False)
class Play:
    """The setting of one round, whether to measure, and why; `saves` keeps the state before it, to go back to."""

    place: Place
    measure: bool
    reason: str
    saves: bool = False


@dataclass(frozen=True, eq=False)
class Observation:
    """The result of a measured decision: a reward, to be made large, in its own units; −∞ is bad, whatever the units.

    `cost` is what measuring cost, in decisions; None where that is not known.
    """

    round: int
    place: Place
    reward: float
    cost: float | None = None

    @property
    def is_bad(self) -> bool:
        """Whether there was no value: it was no number, or measuring it failed."""
        return self.reward == -inf


def valued(observation: Observation, earlier: Sequence[Observation]) -> Observation | None:
    """The observation with a reward that a model can learn from: a bad one is below the worst by their whole range.

    None where it is bad and nothing is known to compare it with.
    """
    if not observation.is_bad:
        return observation
    rewards = [each.reward for each in earlier]
    if not rewards:
        return None
    return replace(observation, reward=2.0 * min(rewards) - max(rewards))


class Player(Protocol):
    """A strategy at work. A round is one of its decisions; they count from one and never go back.

    `observations` are what `restore` needs: a player may drop what it has forgotten.
    """

    @property
    def observations(self) -> Sequence[Observation]: ...

    def decide(self, round: int) -> Play:
        """For that round, once a round."""
        ...

    def observe(self, observation: Observation) -> None:
        """Takes in what was measured, of the round that was decided last."""
        ...

    def exploit(self, round: int) -> Place:
        """The params with the highest expected reward in that round, as far as is known."""
        ...

    def memory(self) -> Json:
        """The state that `restore` needs beside the observations, as plain data."""
        ...

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        """Makes a new player what one with these observations and this memory is, bit for bit."""
        ...


@runtime_checkable
class Undoing(Protocol):
    """A player that may want a probe taken back: the training since it said `saves`."""

    def undoes(self, observation: Observation) -> bool:
        """Whether it is to be taken back after this observation, which is not taken in yet; changes nothing."""
        ...


@runtime_checkable
class Skilled(Protocol):
    """A player that knows whether its predictions are better than the last value."""

    @property
    def skill(self) -> float | None:
        """1 is perfect, 0 as good as the last value; None while nothing can be said."""
        ...


@runtime_checkable
class Spending(Protocol):
    """A player that keeps to the overhead of its problem by itself."""

    @property
    def spent(self) -> float:
        """The cost of validations, and of training that was taken back, in decisions."""
        ...


@runtime_checkable
class Holding(Protocol):
    """A strategy that says how many rounds a setting is held where the user does not."""

    def usual_hold(self, rounds: int) -> int: ...


class OnlineStrategy(Protocol):
    """A frozen dataclass whose fields are plain values or rules."""

    def begin(self, problem: OnlineProblem) -> Player:
        """A player at round zero."""
        ...


def online_strategy_from_json(form: Json) -> OnlineStrategy:
    """A strategy from the form that `farthing.fields.serialization.to_json` wrote."""
    strategy: OnlineStrategy = from_json(form, ONLINE_STRATEGY)
    return strategy


def as_online_strategy(given: OnlineStrategy | str) -> OnlineStrategy:
    """The online strategy that was given, or that of a name, with its usual arguments."""
    strategy: OnlineStrategy = as_one(given, ONLINE_STRATEGY)
    return strategy


# ------------------------------------------------------------
# What validations, and training that is taken back, may cost.


AT_ONCE = 0.5
"""The share of the allowance that is there from the beginning; the rest comes as training goes on."""


@dataclass
class Allowance:
    """Counts in decisions: the training between two of them costs 1."""

    validation_cost: float = 0.0
    """The cost of the last validation, or the one the user gave; 0 as long as nothing is known."""
    spent: float = 0.0

    def charge(self, cost: float | None, *, declared: float | None) -> None:
        """Books a validation at what the user declared, at what it was timed at, or at what the last one cost."""
        self.validation_cost = self.cost_of(cost, declared=declared)
        self.spent += self.validation_cost

    def cost_of(self, cost: float | None, *, declared: float | None) -> float:
        known = declared if declared is not None else cost
        return self.validation_cost if known is None else known

    def covers(self, cost: float, *, decision: int, decisions: int, overhead: float | None) -> bool:
        """Whether that much more may be spent by that decision; without an overhead anything may."""
        if overhead is None:
            return True
        allowed = overhead * (AT_ONCE * decisions + (1.0 - AT_ONCE) * decision)
        return self.spent + cost <= allowed


# ------------------------------------------------------------
# Keeps any player within the overhead that its problem allows.


def begun(strategy: OnlineStrategy, problem: OnlineProblem) -> Player:
    """A player at its beginning that keeps to the problem's overhead, by itself or because it is bounded."""
    player = strategy.begin(problem)
    return player if problem.overhead is None or isinstance(player, Spending) else BoundedPlayer(player, problem)


class BoundedPlayer:
    """Lets a player measure while validations cost no more than their share; else it plays what is best so far.

    What a validation costs is known after the first, or where the user declares it.
    """

    def __init__(self, player: Player, problem: OnlineProblem) -> None:
        self.player, self._problem = player, problem
        self._allowance = Allowance(problem.validation_cost or 0.0)

    @property
    def observations(self) -> Sequence[Observation]:
        return self.player.observations

    @property
    def skill(self) -> float | None:
        return self.player.skill if isinstance(self.player, Skilled) else None

    @property
    def spent(self) -> float:
        return self._allowance.spent

    def decide(self, round: int) -> Play:
        play = self.player.decide(round)
        if not play.measure or self._can_afford(round):
            return play
        reason = f"validations have cost {self.spent:.3g} decisions, and may cost no more by now"
        return Play(self.player.exploit(round), False, reason)

    def observe(self, observation: Observation) -> None:
        self.player.observe(observation)
        self._allowance.charge(observation.cost, declared=self._problem.validation_cost)

    def exploit(self, round: int) -> Place:
        return self.player.exploit(round)

    def memory(self) -> Json:
        return {"player": self.player.memory(), "allowance": asdict(self._allowance)}

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        self.player.restore(observations, memory["player"])
        self._allowance = Allowance(**memory["allowance"])

    def _can_afford(self, round: int) -> bool:
        given = self._problem
        cost = self._allowance.validation_cost
        return self._allowance.covers(cost, decision=round, decisions=given.rounds, overhead=given.overhead)
