"""Constants, tuples as options, and names with dots or hyphens."""

from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidParams, InvalidSpace

SPACE = ft.Space(
    {
        "model.lr": ft.Float(0, 1),
        "weight-decay": ft.Float(0, 1),
        "layers": ft.Choice((64,), (64, 64), (32, 32, 32)),
        "batch": 32,
        "data": "small",
    }
)


def loss(trial: ft.RunningTrial) -> float:
    layers = trial.params["layers"]
    assert isinstance(layers, tuple)
    return trial.params["model.lr"] + len(layers) + trial.params["batch"]


def test_constants_are_choices_of_one() -> None:
    assert SPACE.parameters["batch"] == ft.Choice(32)
    assert SPACE.check({"model.lr": 0.5, "weight-decay": 0, "layers": [64, 64], "batch": 32, "data": "small"})[
        "layers"
    ] == (64, 64)


def test_they_survive_json_and_toml() -> None:
    assert ft.Space.from_json(SPACE.to_json()) == SPACE
    assert ft.Space.from_toml(SPACE.to_toml()) == SPACE
    assert ft.Space.from_toml("[space]\nx = {float = [0, 1]}\nbatch = 32\n").parameters["batch"] == ft.Choice(32)


@pytest.mark.parametrize("executor", ["processes", "inline"])
def test_tuples_are_tuples_in_the_work_and_after_a_load(executor: str, tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize="loss", strategy=ft.LogEI(initial=3), storage=tmp_path / "a.db", seed=0)
    study.run(loss, budget=ft.Budget(trials=5), executor=executor)  # type: ignore[arg-type]
    assert [trial.failure for trial in study.trials] == [None] * 5
    loaded = ft.Study.load("study", tmp_path / "a.db")
    assert loaded.trials[0].params == study.trials[0].params
    assert isinstance(loaded.best.params["layers"], tuple)


def test_such_names_are_fields_of_commands() -> None:
    space = ft.Space({"model.lr": ft.Float(0, 1), "weight-decay": ft.Float(0, 1)})
    study = ft.Study(space, minimize="loss", strategy=ft.Random(), seed=0)
    line = "python -c 'import sys; print(\"loss\", float(sys.argv[1]) + float(sys.argv[2]))' {model.lr} {weight-decay}"
    study.run(ft.Command(line, pattern=r"loss (?P<value>\S+)"), budget=ft.Budget(trials=1), executor="inline")
    params = study.trials[0].params
    assert study.best.value == pytest.approx(params["model.lr"] + params["weight-decay"])


@pytest.mark.parametrize("name", ["", ".lr", "lr.", "-lr", "lr-", "a b", "1st", "step"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidSpace, match="name of a parameter"):
        ft.Space({name: ft.Float(0, 1)})


def test_stages_keep_plain_names() -> None:
    with pytest.raises(InvalidSpace, match=r"must be an identifier, got 'a\.b'"):
        ft.Space(stages={"one": {"a.b": ft.Float(0, 1)}})


@pytest.mark.parametrize("options", [["a", "b"], ("a", "b")])
def test_options_that_were_not_unpacked_are_refused(options: object) -> None:
    with pytest.raises(InvalidSpace, match=r"Choice\(\*options\)"):
        ft.Choice(options)  # type: ignore[arg-type]


def test_a_tuple_that_is_no_option_is_refused() -> None:
    with pytest.raises(InvalidParams, match=r"layers must be one of \(64,\)"):
        SPACE.check({"model.lr": 0.5, "weight-decay": 0, "layers": (1,), "batch": 32, "data": "small"})
