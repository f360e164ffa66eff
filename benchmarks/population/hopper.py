"""Hopper, a task of PB2's paper: PPO on a planar one-legged robot, for whole populations at once.

The physics is MuJoCo's own, in the compiled library: the games of all members are stepped on every core, and the
networks of all members are trained in one batch, on a GPU where there is one. Body, reward and endings are those of
Gymnasium's Hopper-v5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.population.batched_networks import State, forward, taken
from benchmarks.population.batched_tasks import Playing, Settings, network
from farthing.space import Float, Int, Parameter

FRAMES = 4
"""Steps of the physics, of 2 ms each, that one action lasts."""


class Physics:
    """Steps many robots at once, `threads` of them at the same time."""

    def __init__(self, threads: int) -> None:
        import mujoco
        from mujoco import rollout

        self._model = mujoco.MjModel.from_xml_path(str(_body()))
        self._data = [mujoco.MjData(self._model) for _ in range(threads)]
        self._pool = rollout.Rollout(nthread=threads if threads > 1 else 0)

    @property
    def standing(self) -> np.ndarray:
        """Six positions and six speeds (12,) of a robot that stands still."""
        return np.concatenate([self._model.qpos0, np.zeros(6)])

    def stepped(self, robots: np.ndarray, pushes: np.ndarray) -> np.ndarray:
        """Positions and speeds (n, 12) after the pushes (n, 3) of the three joints lasted one action."""
        timed = np.concatenate([np.zeros((len(robots), 1)), robots], axis=1)
        states, _ = self._pool.rollout(self._model, self._data, timed, np.repeat(pushes[:, None], FRAMES, axis=1))
        return np.ascontiguousarray(states[:, -1, 1:])


def _body() -> Path:
    """Gymnasium's description of the robot; the package need not be importable for that."""
    package = find_spec("gymnasium")
    assert package is not None, "the suite leaves Hopper out without it"
    assert package.submodule_search_locations, "it is a folder"
    return Path(package.submodule_search_locations[0], "envs", "mujoco", "assets", "hopper.xml")


@dataclass(frozen=True, eq=False)
class Hopper(Playing):
    """Hop as far as possible in 1000 steps without falling, by three motors.

    The paper tunes the same four hyperparameters over a million steps of play. Here an agent plays half of that, with
    16 rollouts an interval a quarter, and its largest batch is an interval of play (in the paper 1.2). A batch is a
    power of two times `rollout` steps of all games, the nearest to the number that was asked for: members with
    different batches can then learn at the same time.
    """

    name: str = "hopper"
    intervals: int = 20
    rollout: int = 50
    rollouts: int = 32
    envs: int = 16
    observed: int = 11
    outputs: int = 3
    scales: int = 3
    longest: int = 1000
    judged_steps: int = 1000
    discount: float = 0.99
    reward_scale: float = 0.02
    passes: int = 10
    minibatch: int = 400
    threads: int = 1

    def params(self) -> dict[str, Parameter]:
        smallest = self.rollout * self.envs
        return {
            "batch": Int(smallest, smallest * self.rollouts, log=True),
            "gae": Float(0.9, 0.99),
            "clip": Float(0.1, 0.5),
            "lr": Float(1e-5, 1e-3, log=True),
        }

    # --------------------------------------------------------------------------------------------- of the game
    def first(self, shape: tuple[int, ...]) -> Tensor:
        noise = 0.01 * torch.rand((*shape, 12), device=self.device, dtype=torch.float64) - 0.005
        steps = torch.zeros((*shape, 1), device=self.device, dtype=torch.float64)
        return torch.cat([self._standing + noise, steps], dim=-1)

    def observe(self, games: Tensor) -> Tensor:
        """Gymnasium's observation, each number scaled to about one."""
        return ((games[..., 1:12] - self._standing[1:]).clamp(-10.0, 10.0) * self._scale).float()

    def move(self, games: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        pushes = action.clamp(-1.0, 1.0).double()
        before, steps = games[..., :12], games[..., 12:]
        both = torch.cat([before, pushes], dim=-1).flatten(0, 1).cpu().numpy()
        moved = torch.from_numpy(self._physics.stepped(both[:, :12], both[:, 12:]))
        after = moved.to(self.device).view(before.shape)
        healthy = (after[..., 1] > 0.7) & (after[..., 2].abs() < 0.2) & (after[..., 2:].abs() < 100.0).all(-1)
        hopped = (after[..., 0] - before[..., 0]) / (FRAMES * 0.002)
        reward = hopped + healthy.double() - 1e-3 * pushes.square().sum(-1)
        return torch.cat([after, steps + 1.0], dim=-1), reward.float(), ~healthy

    def draw(self, outputs: Tensor, log_scale: Tensor) -> Tensor:
        return outputs + log_scale.clamp(-4.0, 2.0).exp() * torch.randn_like(outputs)

    def best_action(self, outputs: Tensor) -> Tensor:
        return outputs

    def log_chance(self, outputs: Tensor, log_scale: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        scale = log_scale.clamp(-4.0, 2.0)
        logs = -0.5 * ((action - outputs) / scale.exp()).square() - scale
        return logs.sum(-1), scale.sum(-1).expand(logs.shape[:-1])

    @cached_property
    def _physics(self) -> Physics:
        return Physics(self.threads)

    @cached_property
    def _standing(self) -> Tensor:
        return torch.tensor(self._physics.standing, device=self.device)

    @cached_property
    def _scale(self) -> Tensor:
        """Of height, lean and three joints, then of their speeds."""
        scale = [5.0, 5.0, 2.0, 2.0, 2.0, 0.5, 0.5, 0.5, 0.3, 0.3, 0.2]
        return torch.tensor(scale, device=self.device, dtype=torch.float64)

    # ------------------------------------------------------------------------------------------ of the training
    def start(self, seeds: Sequence[int], members: Sequence[int]) -> State:
        state = super().start(seeds, members)
        return {**state, "return": torch.zeros(state["games"].shape[:2], device=self.device)}

    def train(self, state: State, settings: Settings, seeds: Tensor) -> tuple[State, Tensor]:
        """The score is the mean return of the episodes that ended in the interval."""
        learners = self._learners(settings["batch"])
        plays: list[dict[str, Tensor]] = []
        returns, ended = torch.zeros_like(settings["batch"]), torch.zeros_like(settings["batch"])
        for number in range(1, self.rollouts + 1):
            state, batch = self._played(state)
            plays.append(batch)
            state, finished = _finished(state, batch)
            returns, ended = returns + finished, ended + batch["over"].sum((1, 2))
            for length, rows in learners.items():
                if number % length == 0:
                    own = {key: torch.cat([play[key][rows] for play in plays[-length:]], dim=1) for key in batch}
                    learned = self._learned(taken(state, rows), own, taken(settings, rows))
                    state = {name: tensor.index_copy(0, rows, learned[name]) for name, tensor in state.items()}
        return state, returns / ended

    def judge(self, state: State, seeds: Tensor) -> Tensor:
        """Mean return of one whole episode of each game, without exploration."""
        shape = (state["count"].shape[0], self.envs)
        policy, games = network(state, "p"), self.first(shape)
        returns, playing = torch.zeros(shape, device=self.device), torch.ones(shape, device=self.device)
        with torch.no_grad():
            for _ in range(self.judged_steps):
                action = self.best_action(forward(policy, self.observe(games), tanh=True))
                games, reward, lost = self.move(games, action)
                returns = returns + playing * reward
                playing = playing * ~lost
                games = torch.where(lost[..., None], self.first(shape), games)
        return returns.mean(1)

    def _learners(self, batch: Tensor) -> dict[int, Tensor]:
        """The members that learn after every 1, 2, 4, … rollouts."""
        doublings = torch.log2(batch / (self.rollout * self.envs)).round().long().tolist()
        return {
            2**doubling: torch.tensor([i for i, d in enumerate(doublings) if d == doubling], device=self.device)
            for doubling in sorted(set(doublings))
        }


def _finished(state: State, batch: Mapping[str, Tensor]) -> tuple[State, Tensor]:
    """The state with the returns of the games that go on, and the sum of those that ended (M,)."""
    running, finished = state["return"], torch.zeros_like(state["return"])
    for reward, over in zip(batch["reward"].unbind(1), batch["over"].unbind(1), strict=True):
        running = running + reward
        finished = finished + running * over
        running = running * ~over
    return {**state, "return": running}, finished.sum(1)
