"""Real training of small networks, many at once: classifiers of images and agents that learn to play.

A task of one seed has its own split of the data, its own first weights and, for agents, its own first states. Members
are judged by a score that is measured as users would (validation data, returns of the last interval); what is reported
is measured afresh, on test data or in play without exploration.
"""

import gzip
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.population.batched_networks import (
    State,
    adam,
    forward,
    fresh_layers,
    gradients,
    packed,
    sgd,
    unpacked,
    zeros_beside,
)
from farthing.space import Float, Parameter

Settings = Mapping[str, Tensor]
"""The params in force, each as a tensor (M,)."""


class BatchedTask(ABC):
    """Training runs of `intervals` intervals under `params`; M members at once, each with the seed of its study."""

    name: str
    intervals: int

    @abstractmethod
    def params(self) -> dict[str, Parameter]: ...

    @abstractmethod
    def start(self, seeds: Sequence[int], members: Sequence[int]) -> State:
        """Untrained members; the same seed and member have the same first weights."""

    @abstractmethod
    def train(self, state: State, settings: Settings, seeds: Tensor) -> tuple[State, Tensor]:
        """The state after one interval, and the score (M,) to maximise that is measured at its end."""

    @abstractmethod
    def judge(self, state: State, seeds: Tensor) -> Tensor:
        """What the members are worth (M,), measured on what no decision saw."""


# ------------------------------------------------------------------------------------------------- classifiers


@dataclass(frozen=True)
class Images:
    """Inputs (n, d) and labels (n,) of one data set."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Classifying(BatchedTask):
    """A network with dropout learns by SGD from `train` examples; the log-loss on `validation` others decides.

    Reported is the accuracy on all other examples. `noise` adds Gaussian noise to the inputs of training, a
    hyperparameter of its own where `augmented`.
    """

    name: str
    data: Images
    device: torch.device
    sizes: tuple[int, ...]
    train_size: int
    validation: int
    intervals: int = 25
    steps: int = 20
    batch: int = 32
    augmented: bool = False
    most_seeds: int = 64

    def params(self) -> dict[str, Parameter]:
        common: dict[str, Parameter] = {
            "lr": Float(1e-4, 1.0, log=True),
            "momentum": Float(0.0, 0.99),
            "dropout": Float(0.0, 0.8),
            "weight_decay": Float(1e-6, 1e-1, log=True),
        }
        return {**common, "noise": Float(0.0, 1.0)} if self.augmented else common

    def start(self, seeds: Sequence[int], members: Sequence[int]) -> State:
        weights = fresh_layers(self.sizes, list(zip(seeds, members, strict=True)), self.device)
        return {**weights, **zeros_beside(weights, "m")}

    def train(self, state: State, settings: Settings, seeds: Tensor) -> tuple[State, Tensor]:
        M = seeds.shape[0]
        for _ in range(self.steps):
            rows = self._order[seeds[:, None], torch.randint(self.train_size, (M, self.batch), device=self.device)]
            X, y = self._inputs[rows], self._labels[rows]
            if self.augmented:
                X = X + settings["noise"].view(-1, 1, 1) * torch.randn_like(X)
            weights = {name: state[name].requires_grad_() for name in state if name[0] in "wb"}
            loss = _log_loss(forward(weights, X, dropout=settings["dropout"]), y).mean(1)
            found = gradients(loss, weights)
            with torch.no_grad():
                state = sgd(
                    state,
                    found,
                    lr=settings["lr"],
                    momentum=settings["momentum"],
                    decay=settings["weight_decay"],
                )
            state = {name: tensor.detach() for name, tensor in state.items()}
        first = self.train_size
        rows = self._order[seeds][:, first : first + self.validation]
        return state, -self._loss(state, rows)

    def judge(self, state: State, seeds: Tensor) -> Tensor:
        rows = self._order[seeds][:, self.train_size + self.validation :][:, :2000]
        with torch.no_grad():
            right = [
                self._logits(state, part).argmax(-1) == self._labels[part] for part in torch.split(rows, 250, dim=1)
            ]
        return torch.cat(right, dim=1).float().mean(1)

    def _loss(self, state: State, rows: Tensor) -> Tensor:
        with torch.no_grad():
            parts = [_log_loss(self._logits(state, part), self._labels[part]) for part in torch.split(rows, 250, dim=1)]
            return torch.cat(parts, dim=1).mean(1)

    def _logits(self, state: State, rows: Tensor) -> Tensor:
        return forward({name: state[name] for name in state if name[0] in "wb"}, self._inputs[rows])

    @cached_property
    def _inputs(self) -> Tensor:
        scaled = (self.data.X - self.data.X.mean()) / self.data.X.std()
        return torch.tensor(scaled, dtype=torch.float32, device=self.device)

    @cached_property
    def _labels(self) -> Tensor:
        return torch.tensor(self.data.y, dtype=torch.long, device=self.device)

    @cached_property
    def _order(self) -> Tensor:
        """For each seed the examples in an order of its own: for training, for decisions, and to be judged by."""
        n = len(self.data.y)
        orders = [np.random.default_rng([17, seed]).permutation(n) for seed in range(self.most_seeds)]
        return torch.tensor(np.stack(orders), device=self.device)


def _log_loss(logits: Tensor, y: Tensor) -> Tensor:
    """(M, n)."""
    return torch.logsumexp(logits, -1) - logits.gather(-1, y[..., None])[..., 0]


def spirals(n: int = 3000) -> Images:
    """Two arms of a spiral, with noise."""
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=n)
    t = rng.uniform(0.2, 1.0, n)
    angle = 2.0 * np.pi * t + np.pi * y
    X = np.column_stack([t * np.cos(angle), t * np.sin(angle)]) + 0.05 * rng.standard_normal((n, 2))
    return Images(X, y)


def clusters(n: int = 3000, kinds: int = 10, d: int = 30) -> Images:
    """Three normal clusters of each kind, and a tenth of the labels wrong."""
    rng = np.random.default_rng(4)
    centres = 1.2 * rng.standard_normal((kinds, 3, d))
    y, which = rng.integers(kinds, size=n), rng.integers(3, size=n)
    X = centres[y, which] + 1.3 * rng.standard_normal((n, d))
    return Images(X, np.where(rng.random(n) < 0.1, rng.integers(kinds, size=n), y))


def digits() -> Images:
    from sklearn.datasets import load_digits

    found = load_digits()
    return Images(found.data, found.target)


def fashion(folder: Path, n: int = 5000) -> Images:
    """The first test images of Fashion-MNIST, at half the resolution."""
    with gzip.open(folder / "t10k-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 14, 2, 14, 2)[:n]
    with gzip.open(folder / "t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)[:n]
    return Images(pixels.mean((2, 4)).reshape(n, 196), labels.astype(np.int64))


def stored(path: Path) -> Images:
    """An archive of NumPy with X and y."""
    with np.load(path) as found:
        return Images(found["X"].astype(np.float32), found["y"].astype(np.int64))


# ------------------------------------------------------------------------------------------------------ agents


@dataclass(frozen=True, eq=False)
class Playing(BatchedTask):
    """PPO with a network for the policy and one for the value; `envs` games of each member run side by side.

    The games stand in the state: a copy goes on with its donor's. An interval is `updates` times `rollout` steps of
    every game and four passes over them.
    """

    device: torch.device
    intervals: int = 25
    updates: int = 4
    rollout: int = 64
    envs: int = 16
    hidden: int = 32
    judged_steps: int = 400

    observed: int = 0
    outputs: int = 0
    scales: int = 1
    """How many actions have a spread of their own."""

    def params(self) -> dict[str, Parameter]:
        return {
            "lr": Float(1e-5, 1e-1, log=True),
            "entropy": Float(1e-5, 1e-1, log=True),
            "clip": Float(0.05, 0.5),
            "gae": Float(0.7, 0.995),
        }

    # --------------------------------------------------------------------------------------------- of the game
    @abstractmethod
    def first(self, shape: tuple[int, ...]) -> Tensor:
        """States of games (…, s) that begin, the last number the count of steps."""

    @abstractmethod
    def observe(self, games: Tensor) -> Tensor:
        """What the agent sees (…, observed)."""

    @abstractmethod
    def move(self, games: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The games after a step, the reward, and whether the game was lost; games at their end are not yet reset."""

    @abstractmethod
    def draw(self, outputs: Tensor, log_scale: Tensor) -> Tensor: ...

    @abstractmethod
    def best_action(self, outputs: Tensor) -> Tensor: ...

    @abstractmethod
    def log_chance(self, outputs: Tensor, log_scale: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithm of the chance of an action, and the entropy of the policy."""

    discount: float = 0.97
    longest: int = 200

    # ------------------------------------------------------------------------------------------ of the training
    def start(self, seeds: Sequence[int], members: Sequence[int]) -> State:
        own = list(zip(seeds, members, strict=True))
        policy = fresh_layers(
            (self.observed, self.hidden, self.hidden, self.outputs), [(*s, 0) for s in own], self.device
        )
        value = fresh_layers((self.observed, self.hidden, self.hidden, 1), [(*s, 1) for s in own], self.device)
        last = [name for name in policy if name.endswith("2")]
        weights = {f"p{name}": tensor * (0.01 if name in last else 1.0) for name, tensor in policy.items()}
        weights |= {f"q{name}": tensor for name, tensor in value.items()}
        weights["pscale"] = torch.full((len(own), 1, self.scales), -0.5, device=self.device)
        count = torch.zeros(len(own), device=self.device)
        games = self.first((len(own), self.envs))
        return {**weights, **zeros_beside(weights, "m"), **zeros_beside(weights, "v"), "count": count, "games": games}

    def train(self, state: State, settings: Settings, seeds: Tensor) -> tuple[State, Tensor]:
        scores = []
        for _ in range(self.updates):
            state, batch = self._played(state)
            rewards, endings = batch["reward"].sum(1).mean(1), batch["over"].float().sum(1).mean(1)
            scores.append(self.score_of(rewards, endings, self.rollout))
            state = self._learned(state, batch, settings)
        return state, torch.stack(scores).mean(0)

    def judge(self, state: State, seeds: Tensor) -> Tensor:
        """Mean return of play without exploration, from fresh games."""
        M = state["count"].shape[0]
        policy, games = network(state, "p"), self.first((M, self.envs))
        rewards, endings = torch.zeros(M, device=self.device), torch.zeros(M, device=self.device)
        with torch.no_grad():
            for _ in range(self.judged_steps):
                action = self.best_action(forward(policy, self.observe(games), tanh=True))
                games, reward, lost = self.move(games, action)
                over = lost | (games[..., -1] >= self.longest)
                games = torch.where(over[..., None], self.first((M, self.envs)), games)
                rewards, endings = rewards + reward.mean(1), endings + over.float().mean(1)
        return self.score_of(rewards, endings, self.judged_steps)

    def score_of(self, rewards: Tensor, endings: Tensor, steps: int) -> Tensor:
        """The mean return of an episode, from rewards and endings a game in so many steps."""
        return rewards / steps * self.longest

    def _played(self, state: State) -> tuple[State, dict[str, Tensor]]:
        """`rollout` steps of every game; what was seen, done and got, as tensors (M, rollout, envs, …)."""
        policy, games = network(state, "p"), state["games"]
        kept: dict[str, list[Tensor]] = {
            key: [] for key in ("seen", "action", "log", "reward", "lost", "over", "after")
        }
        with torch.no_grad():
            seen = self.observe(games)
            for _ in range(self.rollout):
                outputs = forward(policy, seen, tanh=True)
                action = self.draw(outputs, state["pscale"])
                log, _ = self.log_chance(outputs, state["pscale"], action)
                games, reward, lost = self.move(games, action)
                after, over = self.observe(games), lost | (games[..., -1] >= self.longest)
                games = torch.where(over[..., None], self.first(games.shape[:2]), games)
                for key, tensor in zip(kept, (seen, action, log, reward, lost, over, after), strict=True):
                    kept[key].append(tensor)
                seen = self.observe(games)
        return {**state, "games": games}, {key: torch.stack(each, dim=1) for key, each in kept.items()}

    def _advantages(self, batch: Mapping[str, Tensor], values: Tensor, gae: Tensor) -> Tensor:
        reward, lost, over = batch["reward"], batch["lost"], batch["over"]
        value, ahead = values
        found, later = [], torch.zeros_like(reward[:, 0])
        for t in reversed(range(reward.shape[1])):
            error = self.reward_scale * reward[:, t] + self.discount * ahead[:, t] * ~lost[:, t] - value[:, t]
            later = error + self.discount * gae[:, None] * later * ~over[:, t]
            found.append(later)
        return torch.stack(found[::-1], dim=1)

    reward_scale: float = 1.0
    passes: int = 4
    minibatch: int = 0
    """Steps of play that one gradient is of; 0 is a quarter of what was played."""

    def _learned(self, state: State, batch: Mapping[str, Tensor], settings: Settings) -> State:
        """`passes` passes over a batch of any length, all steps of every pass in another order."""
        plays = self._judged_plays(state, batch, settings)
        n = plays["gain"].shape[1]
        weights = {name: state[name] for name in state if name[0] in "pq"}
        moments = {k: packed({name: state[f"{k}{name}"] for name in weights}) for k in "mv"}
        training = {"all": packed(weights), "mall": moments["m"], "vall": moments["v"], "count": state["count"]}
        for _ in range(self.passes):
            for rows in torch.split(torch.randperm(n, device=self.device), self.minibatch or -(-n // 4)):
                leaf = {"all": training["all"].requires_grad_()}
                part = {key: tensor[:, rows] for key, tensor in plays.items()}
                found = gradients(self._loss(unpacked(leaf["all"], weights), part, settings), leaf)
                with torch.no_grad():
                    training = adam(training, found, lr=settings["lr"])
        new = {k: unpacked(training[k].detach(), weights) for k in ("all", "mall", "vall")}
        moved = {f"{k}{name}": new[f"{k}all"][name] for k in "mv" for name in weights}
        return {**state, **new["all"], **moved, "count": training["count"]}

    def _judged_plays(self, state: State, batch: Mapping[str, Tensor], settings: Settings) -> State:
        """Every step of play as a row, with its advantage and the return that the value network is to learn."""
        with torch.no_grad():
            M, value = batch["reward"].shape[0], network(state, "q")
            values = torch.stack([self._values(value, batch[key]) for key in ("seen", "after")])
            gain = self._advantages(batch, values, settings["gae"])
            plays = {key: batch[key] for key in ("seen", "action", "log")} | {"gain": gain, "target": gain + values[0]}
            rows = {key: tensor.reshape(M, -1, *tensor.shape[3:]) for key, tensor in plays.items()}
            gain = rows["gain"]
            return {**rows, "gain": (gain - gain.mean(1, keepdim=True)) / (gain.std(1, keepdim=True) + 1e-6)}

    def _values(self, network: State, seen: Tensor) -> Tensor:
        return forward(network, seen.flatten(1, 2), tanh=True)[..., 0].view(seen.shape[:3])

    def _loss(self, weights: State, plays: Mapping[str, Tensor], settings: Settings) -> Tensor:
        clip = settings["clip"][:, None]
        outputs = forward(network(weights, "p"), plays["seen"], tanh=True)
        log, entropy = self.log_chance(outputs, weights["pscale"], plays["action"])
        ratio = (log - plays["log"]).clamp(-10.0, 10.0).exp()
        surrogate = torch.minimum(ratio * plays["gain"], ratio.clamp(1.0 - clip, 1.0 + clip) * plays["gain"])
        values = forward(network(weights, "q"), plays["seen"], tanh=True)[..., 0]
        loss = (values - plays["target"]).square().mean(1) - surrogate.mean(1)
        return loss - settings["entropy"] * entropy.mean(1) if "entropy" in settings else loss


def network(weights: Mapping[str, Tensor], prefix: str) -> State:
    return {name[1:]: tensor for name, tensor in weights.items() if name[0] == prefix and name[1] in "wb"}


@dataclass(frozen=True, eq=False)
class Pendulum(Playing):
    """Swing a pendulum up and hold it there: Gymnasium's Pendulum-v1, with rewards scaled for learning."""

    name: str = "pendulum"
    observed: int = 3
    outputs: int = 1
    reward_scale: float = 0.1
    discount: float = 0.95
    updates: int = 6

    def first(self, shape: tuple[int, ...]) -> Tensor:
        angle = (2.0 * torch.rand(shape, device=self.device) - 1.0) * torch.pi
        speed = 2.0 * torch.rand(shape, device=self.device) - 1.0
        steps = torch.randint(self.longest, shape, device=self.device).float()
        return torch.stack([angle, speed, steps], dim=-1)

    def observe(self, games: Tensor) -> Tensor:
        return torch.stack([games[..., 0].cos(), games[..., 0].sin(), games[..., 1] / 8.0], dim=-1)

    def move(self, games: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        angle, speed, steps = games.unbind(-1)
        torque = 2.0 * action.clamp(-1.0, 1.0)
        wrapped = torch.remainder(angle + torch.pi, 2.0 * torch.pi) - torch.pi
        cost = wrapped.square() + 0.1 * speed.square() + 0.001 * torque.square()
        speed = (speed + (15.0 * angle.sin() + 3.0 * torque) * 0.05).clamp(-8.0, 8.0)
        games = torch.stack([angle + 0.05 * speed, speed, steps + 1.0], dim=-1)
        return games, -cost, torch.zeros_like(cost, dtype=torch.bool)

    def draw(self, outputs: Tensor, log_scale: Tensor) -> Tensor:
        mean = outputs[..., 0]
        return mean + log_scale[..., 0].clamp(-4.0, 2.0).exp() * torch.randn_like(mean)

    def best_action(self, outputs: Tensor) -> Tensor:
        return outputs[..., 0]

    def log_chance(self, outputs: Tensor, log_scale: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        mean, scale = outputs[..., 0], log_scale[..., 0].clamp(-4.0, 2.0)
        return -0.5 * ((action - mean) / scale.exp()).square() - scale, scale + torch.zeros_like(mean)


@dataclass(frozen=True, eq=False)
class SwingUp(Pendulum):
    """Swing the pole of a cart up and keep it up, by a force on the cart; walls stop the cart."""

    name: str = "swing-up"
    observed: int = 5
    reward_scale: float = 0.2

    def first(self, shape: tuple[int, ...]) -> Tensor:
        physics = 0.1 * torch.randn((*shape, 4), device=self.device)
        physics[..., 2] += torch.pi
        steps = torch.randint(self.longest, (*shape, 1), device=self.device).float()
        return torch.cat([physics, steps], dim=-1)

    def observe(self, games: Tensor) -> Tensor:
        x, speed, angle, spin, _ = games.unbind(-1)
        return torch.stack([x / 2.4, speed / 3.0, angle.cos(), angle.sin(), spin / 6.0], dim=-1)

    def move(self, games: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, speed, angle, spin, steps = games.unbind(-1)
        slide, turn = _pushed(10.0 * action.clamp(-1.0, 1.0), angle, spin)
        speed, spin = (speed + 0.02 * slide).clamp(-6.0, 6.0), (spin + 0.02 * turn).clamp(-12.0, 12.0)
        at_wall = (x + 0.02 * speed).abs() > 2.4
        games = torch.stack(
            [(x + 0.02 * speed).clamp(-2.4, 2.4), speed * ~at_wall, angle + 0.02 * spin, spin, steps + 1.0], dim=-1
        )
        return games, angle.cos() - 0.1 * at_wall, torch.zeros_like(at_wall)


def _pushed(force: Tensor, angle: Tensor, spin: Tensor) -> tuple[Tensor, Tensor]:
    """Accelerations of the cart and of the pole's angle under a force on the cart (Barto, Sutton, Anderson, 1983)."""
    cos, sin = angle.cos(), angle.sin()
    push = (force + 0.05 * spin.square() * sin) / 1.1
    turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos.square() / 1.1))
    return push - 0.05 * turn * cos / 1.1, turn


@dataclass(frozen=True, eq=False)
class CartPole(Playing):
    """Balance a pole on a cart: Gymnasium's CartPole-v1, up to 500 steps an episode."""

    name: str = "cart-pole"
    observed: int = 4
    outputs: int = 2
    discount: float = 0.98
    longest: int = 500
    reward_scale: float = 0.1
    judged_steps: int = 1000
    updates: int = 1
    envs: int = 8

    def first(self, shape: tuple[int, ...]) -> Tensor:
        physics = 0.1 * torch.rand((*shape, 4), device=self.device) - 0.05
        return torch.cat([physics, torch.zeros((*shape, 1), device=self.device)], dim=-1)

    def observe(self, games: Tensor) -> Tensor:
        return games[..., :4]

    def move(self, games: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, speed, angle, spin, steps = games.unbind(-1)
        slide, turn = _pushed(20.0 * action - 10.0, angle, spin)
        moved = [x + 0.02 * speed, speed + 0.02 * slide, angle + 0.02 * spin, spin + 0.02 * turn, steps + 1.0]
        games = torch.stack(moved, dim=-1)
        lost = (games[..., 0].abs() > 2.4) | (games[..., 2].abs() > 0.2095)
        return games, torch.ones_like(x), lost

    def draw(self, outputs: Tensor, log_scale: Tensor) -> Tensor:
        return (torch.rand_like(outputs[..., 0]) < torch.sigmoid(outputs[..., 1] - outputs[..., 0])).float()

    def best_action(self, outputs: Tensor) -> Tensor:
        return (outputs[..., 1] > outputs[..., 0]).float()

    def log_chance(self, outputs: Tensor, log_scale: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        logs = torch.log_softmax(outputs, -1)
        entropy = -(logs.exp() * logs).sum(-1) + 0.0 * log_scale.sum((1, 2))[:, None]
        return torch.where(action > 0.5, logs[..., 1], logs[..., 0]), entropy

    def score_of(self, rewards: Tensor, endings: Tensor, steps: int) -> Tensor:
        """Steps between two endings, at most an episode's."""
        return (steps / endings.clamp(min=steps / self.longest)).clamp(max=float(self.longest))
