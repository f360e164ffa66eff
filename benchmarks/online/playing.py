"""Plays a strategy through the rounds of a world, and counts what it lost and what it paid for."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.online.worlds import World
from farthing.models.linalg import one_thread
from farthing.online import OnlineStrategy
from farthing.online.strategy import Observation


@dataclass(frozen=True)
class Score:
    """`regret` is R_T/T against the best candidate of each round, `reward` the mean true reward of what was played.

    `queries` is C_T: measurements paid for, the first one, which is always taken, not counted.
    """

    regret: float
    reward: float
    queries: int
    cpu_ms: float
    path: tuple[float, ...]
    """R_t/t after an eighth, a quarter, a half and all of the rounds."""

    def to_json(self) -> dict[str, Any]:
        found = {"regret": self.regret, "reward": self.reward, "queries": self.queries, "cpu_ms_a_round": self.cpu_ms}
        return found | {"path": list(self.path)}


def play(strategy: OnlineStrategy, world: World, *, seed: int) -> Score:
    truth = world.truth(seed)
    played = np.zeros(world.rounds, dtype=np.int64)
    queries = 0
    began = time.process_time()
    with one_thread():
        player = strategy.begin(world.problem(seed))
        for t in range(world.rounds):
            choice = player.decide(t + 1)
            assert isinstance(choice.place, int)
            played[t] = choice.place
            if choice.measure:
                queries += 1
                measured = float(truth.F[t, choice.place] + truth.noise[t])
                player.observe(Observation(t + 1, choice.place, measured))
    spent = time.process_time() - began
    reward = truth.F[np.arange(world.rounds), played]
    lost = np.max(truth.F, axis=1) - reward
    return Score(
        regret=float(np.mean(lost)),
        reward=float(np.mean(reward)),
        queries=queries - 1,
        cpu_ms=1000.0 * spent / world.rounds,
        path=tuple(float(np.mean(lost[: world.rounds // part])) for part in (8, 4, 2, 1)),
    )
