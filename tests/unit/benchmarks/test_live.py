"""Live studies on a made-up set of images, and of a made-up text: what is recorded, verified and compared."""

import json

import numpy as np
import pytest
import torch

import farthing as ft
from benchmarks import live, live_training
from benchmarks.live_code import WORST, Code
from benchmarks.live_training import Network, Task

PARAMS = {"lr": 0.1, "weight_decay": 1e-4, "momentum": 0.9, "smoothing": 0.1, "width": 16, "batch": 32}
OF_CODE = {
    "lr": 0.01,
    "decay": 0.1,
    "one_minus_beta1": 0.1,
    "clip": 1.0,
    "dropout": 0.1,
    "layers": 2,
    "width": 64,
    "batch": 32,
}


@pytest.fixture
def task(tmp_path):
    """The class of an image is its brightness."""
    labels = np.arange(160) % 10
    noise = np.random.default_rng(0).integers(20, size=(160, 32, 32, 3))
    np.save(tmp_path / "images.npy", (25 * labels[:, None, None, None] + noise).astype(np.uint8))
    np.save(tmp_path / "labels.npy", labels)
    return Task(tmp_path, train=128, validation=32, epochs=4)


def test_a_paused_training_continues_as_if_it_had_not_been_paused(task):
    whole = Network(task, PARAMS, seed=3)
    errors = [whole.trained_on() for _ in range(4)]
    paused = Network(task, PARAMS, seed=3)
    for _ in range(2):
        paused.trained_on()
    continued = Network(task, PARAMS, seed=4, saved=paused.state())
    assert [continued.trained_on() for _ in range(2)] == errors[2:]
    for one, other in zip(whole.state()["tensors"], continued.state()["tensors"], strict=True):
        assert torch.equal(one, other)


def test_the_network_learns_and_one_that_overflows_is_as_wrong_as_chance(task):
    task = Task(task.folder, train=128, validation=32, epochs=12)
    assert task.verified(PARAMS, seed=1) < 0.6
    assert task.verified(PARAMS | {"lr": 1e30}, seed=1) == pytest.approx(live_training.CHANCE)


@pytest.fixture
def reading(tmp_path):
    """A text that repeats itself."""
    np.save(tmp_path / "text.npy", np.tile(np.arange(20, dtype=np.uint8), 2_000))
    return Code(tmp_path, epochs=4, sequences=64)


def test_a_paused_reading_continues_as_if_it_had_not_been_paused(reading):
    whole = reading.begin(OF_CODE, seed=3)
    losses = [whole.trained_on() for _ in range(4)]
    paused = reading.begin(OF_CODE, seed=3)
    for _ in range(2):
        paused.trained_on()
    file = reading.folder / "network.pt"
    torch.save(paused.state(), file)
    saved = torch.load(file, weights_only=True)
    continued = reading.begin(OF_CODE, seed=4, saved=saved)
    assert [continued.trained_on() for _ in range(2)] == losses[2:]
    assert losses[-1] < 0.7 * WORST
    assert reading.verified(OF_CODE | {"lr": 1e30}, seed=1) == pytest.approx(WORST)


def test_a_study_is_recorded_with_all_its_trials(task):
    record = live.studied(live.Job("random", task, ft.Budget(trials=1), workers=1))
    assert json.loads(json.dumps(record)) == record
    (trial,) = record["trials"]
    assert trial["epochs"] == len(trial["curve"]) == 4
    assert (record["finished"], record["configurations"]) == (1, 1)
    assert record["lowest"] == pytest.approx(min(trial["curve"]), abs=1e-4)  # curves are rounded
    assert record["best"]["params"] == trial["params"]
    assert record["spent"] == pytest.approx(trial["cost"], abs=2e-3)  # both are rounded
    assert live.verified(task, record, 5)["error"] == task.verified(trial["params"], seed=5)


def test_a_promoted_trial_trains_only_the_epochs_that_are_missing(task):
    trials = live.studied(live.Job("asha", task, ft.Budget(trials=8), workers=1))["trials"]
    continued = [trial for trial in trials if trial["resume_from"] is not None]
    assert continued
    for trial in continued:
        assert len(trial["curve"]) == trial["epochs"] - trials[trial["resume_from"]]["epochs"]


def test_the_table_compares_the_seeds_that_all_methods_have(tmp_path):
    found = {"default": {1: 0.2, 2: 0.4}, "asha": {1: 0.3, 2: 0.3, 3: 0.9}}
    lines = [
        {"method": method, "seed": seed, "training_seed": again, "error": error + 0.01 * again}
        for method, by_seed in found.items()
        for seed, error in by_seed.items()
        for again in (-1, 1)
    ]
    (tmp_path / live.VERIFIED).write_text("\n".join(map(json.dumps, lines)))
    heading, *rows = live.table(tmp_path).splitlines()
    assert heading.startswith("2 seeds")
    assert sorted(row.split()[:4] for row in rows) == [
        ["asha", "+0.3000", "±", "0.0000"],
        ["default", "+0.3000", "±", "0.1000"],
    ]
    assert next(row for row in rows if row.startswith("asha")).split()[4:] == ["+0.0000", "±", "0.1000", "1"]
