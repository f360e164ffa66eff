"""The training that populations are benchmarked with: right gradients, states to be copied, results that are kept."""

import importlib.util
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.population import cifar, rl, together
from farthing.study import Study

EXAMPLES = Path(__file__).parents[3] / "examples"
PARAMS = {"batch": 4, "dropout_1": 0.2, "dropout_2": 0.3, "lr": 1e-3, "weight_decay": 1e-4, "momentum": 0.85}


@pytest.fixture(scope="module")
def ppo():
    spec = importlib.util.spec_from_file_location("ppo", EXAMPLES / "ppo.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["ppo"] = module
    spec.loader.exec_module(module)
    return module


def numerical(function, vector, places, width=1e-6):
    slopes = []
    for place in places:
        kept = vector[place]
        vector[place] = kept + width
        above = function()
        vector[place] = kept - width
        below = function()
        vector[place] = kept
        slopes.append((above - below) / (2 * width))
    return slopes


def test_the_networks_gradient_is_that_of_finite_differences(ppo):
    rng = np.random.default_rng(0)
    network = ppo.Network(2, rng, extra=2)
    x, targets = rng.standard_normal((7, 8)), rng.standard_normal((7, 2))

    def loss():
        return float(((network.forward(x)[0] - targets) ** 2).sum())

    outputs, layers = network.forward(x)
    network.backward(layers, 2 * (outputs - targets))
    places = rng.choice(len(network.vector) - 2, 40, replace=False)
    assert network.gradient[places] == pytest.approx(numerical(loss, network.vector, places), rel=1e-5, abs=1e-7)


def test_the_policys_gradient_is_that_of_the_clipped_objective(ppo):
    rng = np.random.default_rng(1)
    agent = made(ppo, {"lr": 0.0, "gae": 0.95, "clip": 0.2, "batch": 10})
    agent.policy.vector[:] += 0.3 * rng.standard_normal(len(agent.policy.vector))
    x, actions, advantages = rng.standard_normal((30, 8)), rng.standard_normal((30, 2)), rng.standard_normal(30)
    before = ppo._log_density(actions, agent.policy.forward(x)[0], agent.policy.extra) + 0.3 * rng.standard_normal(30)

    def loss():
        ratio = np.exp(ppo._log_density(actions, agent.policy.forward(x)[0], agent.policy.extra) - before)
        return -float(np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages).mean())

    agent._improve(x, actions, advantages, before)
    places = [*rng.choice(len(agent.policy.vector) - 2, 30, replace=False), -1, -2]
    found = numerical(loss, agent.policy.vector, places)
    assert agent.policy.gradient[places] == pytest.approx(found, rel=1e-4, abs=1e-7)


def made(ppo, params):
    agent = ppo.Lander()
    agent.trial = SimpleNamespace(problem=SimpleNamespace(seed=0), number=0)
    agent.setup(params)
    agent.apply(params)
    return agent


def test_advantages_are_the_discounted_sum_of_errors(ppo):
    agent = made(ppo, {"lr": 0.0, "gae": 0.9, "clip": 0.2, "batch": 3})
    rng = np.random.default_rng(2)
    seen = rng.standard_normal((3, 8))
    piece = {"seen": seen, "input": seen, "action": np.zeros((3, 2)), "reward": np.array([1.0, 2.0, 3.0])}
    for after in (None, rng.standard_normal(8)):
        judged = agent._judged({**piece, "after": after})
        values = agent.critic.forward(seen)[0][:, 0]
        last = 0.0 if after is None else agent.critic.forward(after[None])[0][0, 0]
        following = np.append(values[1:], last)
        errors = 0.1 * piece["reward"] + 0.99 * following - values
        expected = [sum((0.99 * 0.9) ** k * errors[t + k] for k in range(3 - t)) for t in range(3)]
        assert judged["advantage"] == pytest.approx(expected)
        assert judged["target"] == pytest.approx(expected + values)


def test_an_agent_is_safe_in_a_population(ppo):
    pytest.importorskip("Box2D")
    from farthing.testing import check_trainable

    class Short(ppo.Lander):  # type: ignore[name-defined]
        play = 400

    params = {"lr": 1e-3, "gae": 0.95, "clip": 0.1, "batch": 300}
    other = {"lr": 1e-4, "gae": 0.9, "clip": 0.4, "batch": 200}
    report = check_trainable(Short, params=params, other_params=other, processes=False)
    assert set(report.effective.values()) == {"other values than without the change"}


# ---- CIFAR-10 --------------------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path):
    pytest.importorskip("torch")
    from benchmarks.population.cifar_training import Data

    rng = np.random.default_rng(0)
    files = {}
    for kind, count in (("train", 12), ("test", 4)):
        files[kind] = tmp_path / f"{kind}.npz"
        images = rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
        np.savez(files[kind], images=images, labels=rng.integers(0, 10, count))
    return Data(files, train=8, validation=4, device="cpu")


def test_a_member_goes_on_from_a_copy_with_its_own_params(data):
    import torch

    from benchmarks.population.cifar_training import Member, train_together

    first = Member(data, PARAMS, state=None, epochs=2, seed=1)
    assert first.steps == 4
    train_together([first])
    state = first.state()
    copy = Member(data, {**PARAMS, "lr": 5e-4, "momentum": 0.9, "dropout_2": 0.5}, state=state, epochs=1, seed=2)
    group = copy.optimizer.param_groups[0]
    assert (group["lr"], group["betas"], group["weight_decay"]) == (5e-4, (0.9, 0.999), 1e-4)
    assert [layer.p for layer in copy.model if type(layer) is torch.nn.Dropout] == [0.2, 0.5]
    assert int(copy.optimizer.state_dict()["state"][0]["step"]) == 4
    kept = state["model"]["0.weight"].clone()
    train_together([copy])
    assert torch.equal(state["model"]["0.weight"], kept), "what a copy began with is not its own to change"
    assert 0.0 <= copy.accuracy(data.test) <= 1.0


def test_examples_are_moved_and_mirrored_as_planned(data):
    import torch

    from benchmarks.population.cifar_training import PADDING, Member

    member = Member(data, PARAMS, state=None, epochs=1, seed=3)
    pictures, labels = member._examples()
    for place in range(4):
        which, down, right, mirrored = (int(part) for part in member.plan[:, place])
        whole = torch.nn.functional.pad(
            data.train.pictures[which, :, PADDING:-PADDING, PADDING:-PADDING], [PADDING] * 4
        )
        cut = whole[:, down : down + 32, right : right + 32]
        expected = data.normalised((cut.flip(2) if mirrored else cut)[None])[0]
        assert torch.allclose(pictures[place], expected)
        assert labels[place] == data.train.labels[which]


def test_every_method_may_train_four_whole_runs():
    scale = cifar.Scale()
    assert (scale.interval, scale.space().fidelities["epochs"].low) == (2, 2)
    for make in cifar.methods(scale).values():
        study = Study(scale.space(), maximize="accuracy", strategy=make(), cost_unit="epochs")
        assert len(study.ask(count=4)) == 4


def test_the_misspecified_range_is_the_papers_scaled():
    play = rl.INTERVALS * rl.PLAY / 1e6
    assert rl.BATCHES["lander"] == (1000 * play, 60_000 * play)
    assert rl.BATCHES["lander-misspecified"] == (5000 * play, 200_000 * play)


# ---- several at once -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    number: int
    deadline: float


def doubled(run: Run) -> dict[str, int] | None:
    return None if run.number == 2 else {"number": 2 * run.number}


def test_results_are_kept_as_they_come_and_nothing_begins_after_its_time(tmp_path, capsys):
    path = tmp_path / "results.jsonl"
    runs = [Run(number, time.time() + 86_400) for number in range(4)] + [Run(9, 0.0)]
    together.carry_out_together(runs, doubled, path=path, processes=2, describe=lambda run, record: str(record))
    kept = [json.loads(line)["number"] for line in path.read_text().splitlines()]
    assert sorted(kept) == [0, 2, 6]
    assert "no time left" in capsys.readouterr().out
