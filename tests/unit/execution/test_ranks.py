"""A launcher starts a program once for each rank; only the first one runs a study."""

import pytest

import farthing as ft
from farthing.errors import WorkError
from farthing.execution.ranks import refusal_in

SPACE = ft.Space({"x": ft.Float(0, 1)})


def run(study: ft.Study) -> None:
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=1), executor="inline", progress=False)


def set_all(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)


@pytest.mark.parametrize(
    "variables",
    [
        {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"},  # torchrun
        {"RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "4"},  # torchrun on a second node
        {"LOCAL_RANK": "1", "WORLD_SIZE": "2"},  # Lightning's own launcher
    ],
)
@pytest.mark.parametrize("take", [run, ft.Study.ask], ids=["run", "ask"])
def test_another_rank_takes_no_trial(monkeypatch, variables, take) -> None:
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    set_all(monkeypatch, variables)
    with pytest.raises(WorkError, match=r"run by one process, got rank \d of \d.*torchrun"):
        take(study)
    assert not study.trials


@pytest.mark.parametrize(
    "variables",
    [
        {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"},
        {"RANK": "1", "WORLD_SIZE": "1"},
        {"RANK": "3"},  # somebody's own variable
        {"RANK": "first", "WORLD_SIZE": "2"},
        {"SLURM_PROCID": "3", "WORLD_SIZE": "4"},  # one of several workers of a study, which srun started
    ],
)
def test_the_first_rank_and_workers_of_schedulers_do(monkeypatch, variables) -> None:
    set_all(monkeypatch, variables)
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    run(study)
    assert len(study.trials) == 1


def test_a_refusal_is_found_in_a_log() -> None:
    said = "A study is run by one process, got rank 1 of 2 (by RANK), which was started. Do that."
    assert refusal_in(f"epoch 1\nfarthing.errors.WorkError: {said}\n[rank: 1] terminated\n") == said
    assert refusal_in("epoch 1\n") is None
