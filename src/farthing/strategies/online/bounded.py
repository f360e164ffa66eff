"""Keeps any player within the overhead that its problem allows."""

from collections.abc import Sequence
from dataclasses import asdict

from farthing.strategies.online.allowance import Allowance
from farthing.strategies.online.strategy import (
    Observation,
    OnlineProblem,
    OnlineStrategy,
    Place,
    Play,
    Player,
    Skilled,
    Spending,
)
from farthing.trials import Json


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
