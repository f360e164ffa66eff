"""Networks that are trained in batches: each as if it were alone, and every study continues from its own states."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from benchmarks.population import batched_networks as networks
from benchmarks.population import batched_tasks as tasks
from benchmarks.population import real

CPU = torch.device("cpu")


def trained_alone(layers, X, y, make_optimizer, steps):
    """A copy of one network in PyTorch's own words."""
    own = [layer.clone().requires_grad_() for layer in layers]
    optimizer = make_optimizer(own)
    for _ in range(steps):
        out = torch.relu(X @ own[0] + own[1]) @ own[2] + own[3]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(out, y).backward()
        optimizer.step()
    return own


def test_a_row_of_the_batch_learns_as_a_network_of_its_own_does():
    torch.manual_seed(0)
    X, y = torch.randn(3, 20, 4), torch.randint(3, (3, 20))
    lr, momentum, decay = torch.tensor([0.1, 0.01, 0.3]), torch.tensor([0.9, 0.0, 0.5]), torch.tensor([0.0, 0.1, 0.01])
    weights = networks.fresh_layers((4, 5, 3), [(0, 0), (0, 1), (7, 0)], CPU)
    state = {**weights, **networks.zeros_beside(weights, "m")}
    for _ in range(6):
        leaves = {name: state[name].detach().requires_grad_() for name in weights}
        loss = tasks._log_loss(networks.forward(leaves, X), y).mean(1)
        state = networks.sgd(state, networks.gradients(loss, leaves), lr=lr, momentum=momentum, decay=decay)
    for row in range(3):
        alone = trained_alone(
            [weights[name][row] for name in ("w0", "b0", "w1", "b1")],
            X[row],
            y[row],
            lambda own, row=row: torch.optim.SGD(
                own, lr=lr[row].item(), momentum=momentum[row].item(), weight_decay=decay[row].item()
            ),
            steps=6,
        )
        for name, tensor in zip(("w0", "b0", "w1", "b1"), alone, strict=True):
            torch.testing.assert_close(state[name][row].detach(), tensor.detach())


def test_adam_is_pytorchs_where_gradients_are_small():
    torch.manual_seed(0)
    start, slope = torch.randn(2, 3, 1), 0.1 * torch.randn(2, 3, 1)
    state = {"w": start, **networks.zeros_beside({"w": start}, "m"), **networks.zeros_beside({"w": start}, "v")}
    state["count"] = torch.zeros(2)
    theirs = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([theirs], lr=0.01, betas=(0.9, 0.99))
    for step in range(5):
        theirs.grad = slope * (step + 1) / 5
        optimizer.step()
        state = networks.adam(state, {"w": theirs.grad}, lr=torch.tensor([0.01, 0.01]))
    torch.testing.assert_close(state["w"], theirs.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("task", [tasks.Pendulum(CPU, updates=5), tasks.CartPole(CPU, updates=2)], ids=lambda t: t.name)
def test_an_agent_learns_to_play(task):
    torch.manual_seed(1)
    settings = {
        name: torch.tensor([value]) for name, value in {"lr": 3e-3, "entropy": 1e-3, "clip": 0.2, "gae": 0.9}.items()
    }
    seeds = torch.tensor([0])
    state = task.start([0], [0])
    untrained = float(task.judge(state, seeds))
    scores = []
    for _ in range(6):
        state, score = task.train(state, settings, seeds)
        scores.append(float(score))
    assert scores[-1] > scores[0]
    assert float(task.judge(state, seeds)) > untrained


def test_a_copy_starts_from_its_donors_state(tmp_path):
    """Every study gets its own records, and a task in which nothing is learned keeps every state as it was."""

    class Still(tasks.Classifying):
        def train(self, state, settings, seeds):
            return state, -self._loss(state, self._order[seeds][:, :200])

    task = Still("still", tasks.clusters(), CPU, (30, 8, 10), train_size=100, validation=100)
    runs = [real.Run("still", 4, method, seed, 3) for method in ("PBT", "ASHA", "random search") for seed in (0, 1)]
    records = list(real.train_together(runs, task, CPU))
    assert [(record["method"], record["seed"]) for record in records] == [(run.method, run.seed) for run in runs]
    for record in records:
        state = task.start([record["seed"]] * 30, range(30))
        scores = task.train(state, {}, torch.tensor([record["seed"]] * 30))[1]
        assert np.isclose(scores.numpy(), record["score"], atol=1e-5).any()
        assert json.dumps(record)


def test_a_member_that_diverges_is_told_and_replaced():
    class Blown(tasks.Classifying):
        def train(self, state, settings, seeds):
            score = torch.where(settings["lr"] > 0.01, torch.nan, settings["lr"])
            return state, score

    task = Blown("blown", tasks.clusters(), CPU, (30, 8, 10), train_size=100, validation=100)
    (record,) = real.train_together([real.Run("blown", 8, "PBT", 0, 4)], task, CPU)
    assert record["failed"] > 0
    assert record["score"] <= 0.01


class Rates(tasks.Classifying):
    """Notes the rates in force; the score is that of the real training."""

    rates: list[list[float]]

    def train(self, state, settings, seeds):
        self.rates.append(settings["lr"].tolist())
        return super().train(state, settings, seeds)


def test_a_rate_on_a_schedule_falls_to_its_last_share_and_others_stay():
    task = Rates("digits", tasks.digits(), CPU, (64, 8, 10), train_size=100, validation=50, steps=1)
    task.rates = []
    methods = ("random search, a schedule", "random search")
    runs = [real.Run("digits", 1, method, seed=1, intervals=4, device="cpu") for method in methods]
    lanes = [real.Lane.of(run, task) for run in runs]
    waves = real.Waves(task, CPU)
    for lane in lanes:
        lane.fill()
    falling, constant = (lane.in_flight[0].trial.params for lane in lanes)
    for _ in range(4):
        waves.train([(lane, lane.in_flight[0]) for lane in lanes])
    first, last = zip(*task.rates, strict=True)
    expected = [falling["lr"] * falling["lr_end"] ** (interval / 3) for interval in range(4)]
    assert first == pytest.approx(expected)
    assert last == pytest.approx([constant["lr"]] * 4)
    assert "lr_end" not in constant


def test_runs_on_a_cpu_are_not_mixed_with_those_on_a_gpu():
    on_gpu, on_cpu = (real.Run("digits", 8, "PB2", 0, 25, device).identity for device in ("cuda", "cpu"))
    assert on_gpu["problem"] == "digits, B = 8"
    assert on_cpu == {**on_gpu, "problem": "digits, B = 8, on a CPU"}


@pytest.mark.skipif(find_spec("mujoco") is not None, reason="MuJoCo is here, so Hopper is not left out")
def test_hopper_is_left_out_without_its_physics(tmp_path, capsys):
    assert real.main(["--problems", "hopper-short", "--output", str(tmp_path / "results.jsonl")]) == 0
    assert "hopper-short is left out: mujoco is not installed." in capsys.readouterr().out
