"""PPO in NumPy: two tanh networks of 32–32 units, a Gaussian policy, normalised observations; for 3_population_rl.py.

`Lander` is a Trainable: a step plays some steps of LunarLanderContinuous and learns whenever a batch is full. Every
step begins with new episodes, so that one continued from a checkpoint does exactly the same as an uninterrupted one.
"""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import farthing as ft

OBSERVATIONS, ACTIONS, HIDDEN = 8, 2, 32
ENVIRONMENTS, LONGEST_EPISODE = 4, 1000
DISCOUNT, PASSES, MINIBATCH = 0.99, 10, 128
REWARD_SCALE = 0.1
FIRST_DEVIATION = 0.6


class Network:
    """8–32–32–n with tanh between; its weights are views of one vector, which Adam changes in place."""

    def __init__(self, outputs: int, rng: np.random.Generator, *, extra: int = 0, last_gain: float = 1.0) -> None:
        sizes = [OBSERVATIONS, HIDDEN, HIDDEN, outputs]
        shapes = [shape for pair in pairwise(sizes) for shape in (pair, pair[1:])] + [(extra,)]
        counts = [int(np.prod(shape)) for shape in shapes]
        self.vector = np.zeros(sum(counts))
        self.gradient = np.zeros_like(self.vector)
        self.weights = _views(self.vector, shapes, counts)
        self.slopes = _views(self.gradient, shapes, counts)
        for layer, gain in ((0, 1.0), (2, 1.0), (4, last_gain)):
            inputs = self.weights[layer].shape[0]
            self.weights[layer][:] = gain * rng.standard_normal(self.weights[layer].shape) / np.sqrt(inputs)
        self.moments = np.zeros((2, len(self.vector)))
        self.updates = 0

    @property
    def extra(self) -> np.ndarray:
        return self.weights[6]

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        W = self.weights
        first = np.tanh(x @ W[0] + W[1])
        second = np.tanh(first @ W[2] + W[3])
        return second @ W[4] + W[5], [x, first, second]

    def backward(self, layers: list[np.ndarray], slope: np.ndarray, *, extra: np.ndarray | float = 0.0) -> None:
        """The gradient of a loss whose derivative by the outputs is `slope`."""
        W, G = self.weights, self.slopes
        G[6][:] = extra
        for place in (4, 2, 0):
            inputs = layers[place // 2]
            G[place][:] = inputs.T @ slope
            G[place + 1][:] = slope.sum(0)
            if place:
                slope = (slope @ W[place].T) * (1 - inputs**2)

    def descend(self, rate: float) -> None:
        """One step of Adam."""
        self.updates += 1
        gradient = self.gradient / max(1.0, float(np.linalg.norm(self.gradient)))
        self.moments[0] += 0.1 * (gradient - self.moments[0])
        self.moments[1] += 0.001 * (gradient**2 - self.moments[1])
        mean = self.moments[0] / (1 - 0.9**self.updates)
        square = self.moments[1] / (1 - 0.999**self.updates)
        self.vector -= rate * mean / (np.sqrt(square) + 1e-8)


def _views(vector: np.ndarray, shapes: list, counts: list[int]) -> list[np.ndarray]:
    ends = np.cumsum(counts)
    return [vector[end - count : end].reshape(shape) for shape, count, end in zip(shapes, counts, ends, strict=True)]


@dataclass
class Filter:
    """Running mean and variance of the observations."""

    count: float = 1e-4
    mean: np.ndarray | float = 0.0
    square: np.ndarray | float = 0.0

    def take(self, seen: np.ndarray) -> None:
        total = self.count + len(seen)
        change = seen.mean(0) - self.mean
        self.square = self.square + ((seen - seen.mean(0)) ** 2).sum(0) + change**2 * self.count * len(seen) / total
        self.mean = self.mean + change * len(seen) / total
        self.count = total

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        if self.count < 2:
            return seen
        return np.clip((seen - self.mean) / np.sqrt(self.square / self.count + 1e-8), -10, 10)


class Lander(ft.Trainable):
    """An agent. Its params are lr, gae (λ), clip (ε) and batch: how many steps of play it learns from at a time."""

    play = 10_000
    """Steps of play in one step of training."""

    def setup(self, params):
        self.rng = np.random.default_rng([self.trial.problem.seed, self.trial.number])
        self.policy = Network(ACTIONS, self.rng, extra=ACTIONS, last_gain=0.01)
        self.policy.extra[:] = np.log(FIRST_DEVIATION)
        self.critic = Network(1, self.rng)
        self.filter = Filter()
        self.waiting = []

    def apply(self, params):
        self.params = dict(params)

    def params_in_effect(self):
        return self.params

    def step(self):
        returns, pieces = self.played()
        self.waiting += pieces
        while sum(len(piece["reward"]) for piece in self.waiting) >= self.params["batch"]:
            self.learn(self._next_batch())
        return float(np.mean(returns))

    # ---- playing ----------------------------------------------------------------------------------------------------

    def played(self, *, steps: int | None = None, explores: bool = True) -> tuple[list[float], list[dict]]:
        """The returns of the episodes that ended, and all that was seen and done, an episode a piece."""
        environments = [new_environment() for _ in range(ENVIRONMENTS)]
        seeds = self.rng.integers(0, 2**31, ENVIRONMENTS)
        seen = np.array([e.reset(seed=int(s))[0] for e, s in zip(environments, seeds, strict=True)])
        records = [_Episode() for _ in environments]
        returns, pieces = [], []
        rounds = (steps or self.play) // ENVIRONMENTS
        noise = self.rng.standard_normal((rounds, ENVIRONMENTS, ACTIONS)) * (np.exp(self.policy.extra) * explores)
        for turn in range(rounds):
            inputs = self.filter(seen)
            actions = self.policy.forward(inputs)[0] + noise[turn]
            for place, environment in enumerate(environments):
                after, reward, has_ended, _, _ = environment.step(np.clip(actions[place], -1, 1))
                record = records[place]
                record.add(seen[place], inputs[place], actions[place], reward)
                if has_ended or len(record.rewards) >= LONGEST_EPISODE:
                    returns.append(sum(record.rewards))
                    pieces.append(record.piece(None if has_ended else after))
                    records[place] = _Episode()
                    after, _ = environment.reset()
                seen[place] = after
        pieces += [record.piece(seen[place]) for place, record in enumerate(records) if record.rewards]
        return returns or [sum(record.rewards) for record in records], pieces

    def _next_batch(self) -> dict[str, np.ndarray]:
        """The first steps of play that wait, cut at the size of a batch; with their advantages."""
        batch, missing = [], self.params["batch"]
        while missing > 0:
            piece = self.waiting.pop(0)
            if len(piece["reward"]) > missing:
                piece, rest = _cut(piece, missing)
                self.waiting.insert(0, rest)
            batch.append(self._judged(piece))
            missing -= len(piece["reward"])
        return {name: np.concatenate([piece[name] for piece in batch]) for name in batch[0]}

    def _judged(self, piece: dict) -> dict[str, np.ndarray]:
        """Generalised advantages (Schulman et al., 2016) and what the critic should have said."""
        states = piece["input"] if piece["after"] is None else np.vstack([piece["input"], self.filter(piece["after"])])
        values = self.critic.forward(states)[0][:, 0]
        following = np.append(values[1:], 0.0) if piece["after"] is None else values[1:]
        values = values[: len(following)]
        errors = REWARD_SCALE * piece["reward"] + DISCOUNT * following - values
        advantages = np.zeros_like(errors)
        running = 0.0
        for place in reversed(range(len(errors))):
            running = errors[place] + DISCOUNT * self.params["gae"] * running
            advantages[place] = running
        return {
            "seen": piece["seen"],
            "input": piece["input"],
            "action": piece["action"],
            "advantage": advantages,
            "target": advantages + values,
        }

    # ---- learning ---------------------------------------------------------------------------------------------------

    def learn(self, batch: dict[str, np.ndarray]) -> None:
        """PPO: several passes over the batch in minibatches, with the clipped objective."""
        x, actions = batch["input"], batch["action"]
        advantages = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
        before = _log_density(actions, self.policy.forward(x)[0], self.policy.extra)
        for _ in range(PASSES):
            order = self.rng.permutation(len(x))
            for start in range(0, len(x), MINIBATCH):
                rows = order[start : start + MINIBATCH]
                self._improve(x[rows], actions[rows], advantages[rows], before[rows])
                values, layers = self.critic.forward(x[rows])
                self.critic.backward(layers, 2 * (values - batch["target"][rows, None]) / len(rows))
                self.critic.descend(self.params["lr"])
        self.filter.take(batch["seen"])

    def _improve(self, x: np.ndarray, actions: np.ndarray, advantages: np.ndarray, before: np.ndarray) -> None:
        means, layers = self.policy.forward(x)
        deviations = np.exp(self.policy.extra)
        ratio = np.exp(np.clip(_log_density(actions, means, self.policy.extra) - before, -20, 20))
        clip = self.params["clip"]
        is_open = np.where(advantages > 0, ratio < 1 + clip, ratio > 1 - clip)
        pull = -(advantages * ratio * is_open)[:, None] / len(x)
        scaled = (actions - means) / deviations
        self.policy.backward(layers, pull * scaled / deviations, extra=(pull * (scaled**2 - 1)).sum(0))
        self.policy.descend(self.params["lr"])
        np.clip(self.policy.extra, -3.0, 0.5, out=self.policy.extra)

    # ---- saving -----------------------------------------------------------------------------------------------------

    def save(self, folder):
        arrays = {"count": self.filter.count, "mean": self.filter.mean, "square": self.filter.square}
        for name, network in (("policy", self.policy), ("critic", self.critic)):
            arrays |= {name: network.vector, f"{name}_moments": network.moments, f"{name}_updates": network.updates}
        for number, piece in enumerate(self.waiting):
            arrays |= {f"waiting_{number}_{key}": array for key, array in piece.items() if array is not None}
        np.savez(Path(folder) / "agent.npz", **arrays)
        facts = {"random": self.rng.bit_generator.state, "waiting": len(self.waiting)}
        (Path(folder) / "agent.json").write_text(json.dumps(facts))

    def load(self, folder):
        facts = json.loads((Path(folder) / "agent.json").read_text())
        self.rng.bit_generator.state = facts["random"]
        with np.load(Path(folder) / "agent.npz") as arrays:
            self.filter = Filter(float(arrays["count"]), arrays["mean"], arrays["square"])
            for name, network in (("policy", self.policy), ("critic", self.critic)):
                network.vector[:], network.moments[:] = arrays[name], arrays[f"{name}_moments"]
                network.updates = int(arrays[f"{name}_updates"])
            self.waiting = [
                {key: arrays.get(f"waiting_{number}_{key}") for key in _Episode.PARTS}
                for number in range(facts["waiting"])
            ]


class _Episode:
    """What was seen and done in an episode so far."""

    PARTS = ("seen", "input", "action", "reward", "after")

    def __init__(self) -> None:
        self.seen, self.inputs, self.actions, self.rewards = [], [], [], []

    def add(self, seen, inputs, action, reward) -> None:
        self.seen.append(seen.copy())
        self.inputs.append(inputs)
        self.actions.append(action)
        self.rewards.append(float(reward))

    def piece(self, after: np.ndarray | None) -> dict:
        """`after` is what was seen when it was cut off, None where it ended."""
        arrays = (np.array(self.seen), np.array(self.inputs), np.array(self.actions), np.array(self.rewards))
        return dict(zip(self.PARTS, (*arrays, None if after is None else np.array(after)), strict=True))


def _cut(piece: dict, count: int) -> tuple[dict, dict]:
    first = {name: piece[name][:count] for name in ("seen", "input", "action", "reward")}
    rest = {name: piece[name][count:] for name in ("seen", "input", "action", "reward")}
    return first | {"after": rest["seen"][0]}, rest | {"after": piece["after"]}


def _log_density(actions: np.ndarray, means: np.ndarray, log_deviations: np.ndarray) -> np.ndarray:
    return (-0.5 * ((actions - means) / np.exp(log_deviations)) ** 2 - log_deviations).sum(1)


def new_environment():
    from gymnasium.envs.box2d.lunar_lander import LunarLander

    return LunarLander(continuous=True)
