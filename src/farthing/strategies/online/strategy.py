"""What an online strategy is, and what it plays in.

An `OnlineStrategy` is a frozen description. `begin` makes a `Player` of it, which changes round by round; the same
observations always make the same player, so that a run can be continued from its observations alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Protocol, runtime_checkable

import numpy as np

from farthing.errors import InvalidArgument
from farthing.fields.serialization import as_one, from_json
from farthing.models.linalg import Array
from farthing.names import ONLINE_STRATEGY
from farthing.space.encoding import Encoder
from farthing.strategies.shared.randomness import Randomness
from farthing.trials import Json, Params

Place = int | Array
"""The index of a candidate, or a row of the space where there are no candidates."""


@dataclass(frozen=True, eq=False)
class OnlineProblem:
    """What is played for: decisions in a space, or in some candidates of it, with a seed.

    A player decides `rounds` times, and each of its decisions holds for `hold` rounds of the user's loop. `initial` are
    params to be measured first, in that order. `can_undo` says that what is trained can be put back into an earlier
    state. `overhead` bounds what validations and training that is taken back cost, as a share of all decisions.
    `validation_cost` is what one costs, in decisions, where the user says so. `price` is what a validation must be
    expected to bring, as a sum of value over the rounds that are left. `validation_size` says that a value is a share
    of this many examples, such as an accuracy; `gains` that it is what a round adds.
    """

    encoder: Encoder
    rounds: int
    seed: int = 0
    candidates: Sequence[Params] | None = None
    initial: Sequence[Params] = ()
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
        """Where params stand. Two calls with the same params give the same bits."""
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
    """What one round is played with, whether to measure, and why; `saves` keeps the state before it, to go back to."""

    place: Place
    measure: bool
    reason: str
    saves: bool = False


@dataclass(frozen=True, eq=False)
class Observation:
    """What a measured decision gave: a reward, to be made large, in its own units; −∞ is bad, whatever the units.

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
        """What has the highest expected reward in that round, as far as is known."""
        ...

    def memory(self) -> Json:
        """What `restore` needs beside the observations, as plain data."""
        ...

    def restore(self, observations: Sequence[Observation], memory: Json) -> None:
        """Makes a new player what one with these observations and this memory is, bit for bit."""
        ...


@runtime_checkable
class Undoing(Protocol):
    """What a player is that may want a probe taken back: what was trained since it said `saves`."""

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
        """What validations, and training that was taken back, have cost, in decisions."""
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
    """What `farthing.fields.serialization.to_json` wrote."""
    strategy: OnlineStrategy = from_json(form, ONLINE_STRATEGY)
    return strategy


def as_online_strategy(given: OnlineStrategy | str) -> OnlineStrategy:
    """The online strategy that was given, or that of a name, with its usual arguments."""
    strategy: OnlineStrategy = as_one(given, ONLINE_STRATEGY)
    return strategy
