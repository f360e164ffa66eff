"""What an online strategy is, and what it plays in.

An `OnlineStrategy` is a frozen description. `begin` makes a `Player` of it, which changes round by round; the same
observations always make the same player, so that a run can be continued from its observations alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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
    """What is played for: rounds in a space, or in some candidates of it, with a seed.

    `initial` are params to be measured in the first rounds, in that order. `can_undo` says that what is trained can be
    put back into an earlier state.
    """

    encoder: Encoder
    rounds: int
    seed: int = 0
    candidates: Sequence[Params] | None = None
    initial: Sequence[Params] = ()
    can_undo: bool = False

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
    """What a measured round gave: a reward, to be made large, in its own units.

    `cost` is what measuring cost, in rounds of training; None where that is not known.
    """

    round: int
    place: Place
    reward: float
    cost: float | None = None


class Player(Protocol):
    """A strategy at work. Rounds count from one and never go back.

    `observations` are those that `restore` needs: a player may let go of what it has forgotten.
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
