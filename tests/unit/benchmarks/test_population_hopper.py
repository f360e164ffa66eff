"""Hopper for populations: Gymnasium's game, returns of whole episodes, members that learn from batches of their own."""

import math

import numpy as np
import pytest
import torch

from benchmarks.population import real
from benchmarks.population.batched_networks import packed, unpacked

mujoco = pytest.importorskip("mujoco", reason="Hopper needs MuJoCo: pip install --group rl")
gymnasium = pytest.importorskip("gymnasium", reason="Hopper's body comes with Gymnasium: pip install --group rl")

from benchmarks.population.hopper import Hopper, _finished  # noqa: E402

CPU = torch.device("cpu")


def test_the_game_is_gymnasiums():
    pytest.importorskip("imageio", reason="Gymnasium's own Hopper needs it: pip install 'gymnasium[mujoco]'")
    task, theirs = Hopper(CPU), gymnasium.make("Hopper-v5").unwrapped
    theirs.reset(seed=0)
    games = torch.tensor(np.concatenate([theirs.data.qpos, theirs.data.qvel, [0.0]])).view(1, 1, 13)
    rng = np.random.default_rng(0)
    for step in range(1, 100):
        action = rng.uniform(-1.0, 1.0, 3).astype(np.float32)
        seen, reward, lost, _, _ = theirs.step(action)
        games, our_reward, our_lost = task.move(games, torch.tensor(action).view(1, 1, 3))
        # Contact forces are found to a tolerance, from another first guess; errors of 1e-8 grow from step to step.
        assert games[0, 0, 1:6].numpy() == pytest.approx(seen[:5], abs=1e-4)
        assert games[0, 0, 6:12].clamp(-10.0, 10.0).numpy() == pytest.approx(seen[5:], abs=1e-2)
        assert our_reward.item() == pytest.approx(reward, abs=1e-2)
        assert bool(our_lost) == lost
        assert games[0, 0, -1] == step
        if lost:
            break
    assert lost, "a random agent falls within 100 steps"


def test_the_score_is_the_mean_return_of_whole_episodes():
    state = {"return": torch.tensor([[5.0, 0.0]])}
    reward = torch.tensor([[[1.0, 2.0], [1.0, 3.0], [1.0, 4.0]]])
    over = torch.tensor([[[False, False], [True, False], [False, False]]])
    state, finished = _finished(state, {"reward": reward, "over": over})
    assert finished.tolist() == [7.0]
    assert state["return"].tolist() == [[1.0, 9.0]]


def test_a_member_learns_whenever_its_own_batch_is_full():
    task = Hopper(CPU, rollout=10, rollouts=4, envs=2, longest=8, minibatch=20, passes=1)
    batch = torch.tensor([20.0, 45.0, 70.0])
    assert {length: rows.tolist() for length, rows in task._learners(batch).items()} == {1: [0], 2: [1], 4: [2]}
    settings = {
        "batch": batch,
        "gae": torch.full((3,), 0.95),
        "clip": torch.full((3,), 0.2),
        "lr": torch.full((3,), 1e-3),
    }
    state, score = task.train(task.start([0, 0, 0], [0, 1, 2]), settings, torch.zeros(3, dtype=torch.long))
    assert state["count"].tolist() == [4.0, 4.0, 4.0], "every step of play is learned from once, in minibatches of 20"
    assert score.isfinite().all()


@pytest.mark.parametrize(("name", "steps"), [("hopper", 512_000), ("hopper-short", 256_000)])
def test_both_lengths_are_run_by_name(name, steps):
    task = real.task_named(name, CPU, data=None)
    assert isinstance(task, Hopper)
    played = task.rollouts * task.rollout * task.envs
    assert (task.name, task.intervals * played) == (name, steps)
    assert task.params()["batch"].high == played, "the largest batch is one interval"


def test_populations_of_hoppers_train_to_the_end():
    task = Hopper(CPU, rollout=10, rollouts=2, envs=2, longest=8, minibatch=20, passes=1, judged_steps=5)
    runs = [real.Run("hopper", 4, method, 0, 3, "cpu") for method in ("PB2", "PBT", "random search")]
    for record in real.train_together(runs, task, CPU):
        assert record["failed"] == 0
        assert math.isfinite(record["regret"])


def test_packed_weights_come_back_as_they_were():
    weights = {"w": torch.arange(12.0).view(2, 2, 3), "b": torch.arange(6.0).view(2, 1, 3)}
    again = unpacked(packed(weights), weights)
    assert all(torch.equal(again[name], weights[name]) for name in weights)
