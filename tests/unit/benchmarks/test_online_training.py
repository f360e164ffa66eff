"""The suite of real trainings: paired, resumable, and with figures that mean what they say."""

import json
from pathlib import Path

import pytest

from benchmarks.online.training_report import calibration, report
from benchmarks.online.training_suite import METHODS, Session
from benchmarks.online.trainings import TASKS
from benchmarks.records import read_records
from benchmarks.run import main

STREAM = next(task for task in TASKS if task.name == "stream")


def test_a_training_that_is_put_back_goes_on_as_it_would_have() -> None:
    for task in TASKS:
        if task.missing():
            continue
        training, start = task.begin(3), task.starts["plausible"]
        training.train(1, start)
        saved, value = training.save(), training.validate(1)
        training.train(2, start)
        training.restore(saved)
        assert training.validate(1) == value


def test_methods_are_paired() -> None:
    session = Session(STREAM, STREAM.starts["plausible"], 7, 0.1)
    assert METHODS["keep the start"](session) == METHODS["keep the start"](session)
    assert METHODS["cosine"](session) != METHODS["keep the start"](session)


def test_the_suite_is_run_through_the_one_command_and_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "training.jsonl"
    arguments = ["online-training", "--quick", "--json", "--seeds", "1", "--problems", "stream*", "--output", str(file)]
    assert main([*arguments, "--methods", "keep*"]) == 0
    capsys.readouterr()
    assert main([*arguments, "--methods", "keep*", "default"]) == 0
    assert [record["method"] for record in read_records(file)] == ["keep the start"] * 2 + ["default"] * 2
    (plausible, poor) = json.loads(capsys.readouterr().out)["problems"]
    assert plausible["rows"]["keep the start"]["median_gain"] == 0.0
    assert 0 < poor["rows"]["default"]["validations"] < STREAM.rounds / 3
    assert poor["rows"]["default"]["most_spent"] <= 0.1


def test_predictions_of_the_default_are_recorded() -> None:
    session = Session(STREAM, STREAM.starts["plausible"], 7, 0.1)
    told = METHODS["default"](session)
    assert told.calibration is not None
    assert told.calibration["n"] == len(told.squares) <= told.validations - 10
    assert told.calibration["cut_off"] <= told.calibration["mean"]


def test_calibration_weighs_every_prediction_alike() -> None:
    records = [{"calibration": {"n": 1, "mean": 4.0, "cut_off": 3.0}}, {"calibration": None}]
    records += [{"calibration": {"n": 3, "mean": 1.0, "cut_off": 1.0}}]
    assert calibration(records) == {"z2_mean": pytest.approx(1.75), "z2_cut_off": pytest.approx(1.5)}


def test_the_best_fixed_setting_of_a_grid_is_no_worse_than_any_of_it() -> None:
    session = Session(STREAM, STREAM.starts["poor"], 7, 0.1)
    best = METHODS["best fixed of a grid"](session).accuracy
    assert best == max(session.played(lambda t, at=params: at).accuracy for params in STREAM.grid)  # type: ignore[misc]


def test_gains_are_over_the_same_seed() -> None:
    def record(method: str, seed: int, accuracy: float) -> dict[str, object]:
        rest = {"validations": 3, "undone": 0, "spent": 0.02, "commit": "c", "dirty": False}
        return {"problem": "p, poor start, price 1", "method": method, "seed": seed, "accuracy": accuracy, **rest}

    records = [record("keep the start", seed, 0.1 * seed) for seed in range(3)]
    records += [record("default", seed, 0.1 * seed + 0.01 * (seed - 1)) for seed in range(3)]
    (told,) = report("s", records, order=("keep the start", "default"))["problems"]
    row = told["rows"]["default"]
    assert [row["worst_gain"], row["median_gain"], row["best_gain"]] == pytest.approx([-0.01, 0.0, 0.01])
