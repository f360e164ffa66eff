"""A folder to work in, the program as a function, and a study that has trials of every kind."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import farthing as ft
from farthing.cli.app import farthing as program

Farthing = Callable[..., Result]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FARTHING_STORAGE", raising=False)
    return tmp_path


@pytest.fixture
def farthing() -> Farthing:
    """Runs the program with these arguments."""
    return lambda *arguments, **settings: CliRunner().invoke(program, [str(part) for part in arguments], **settings)


@pytest.fixture
def digits(folder: Path) -> ft.Study:
    """A study in `digits.db`: trials 0 to 3 are done, 1 carries on 0, 4 failed, 5 is running, 6 waits."""
    space = ft.Space(
        {"lr": ft.Float(1e-4, 1e-1, log=True), "layers": ft.Int(1, 4), "act": ft.Choice("relu", "tanh")},
        fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)},
    )
    study = ft.Study(space, minimize="error", storage="digits.db", name="digits", strategy=ft.ASHA(), seed=1)
    for number, value in enumerate((0.4, 0.5, 0.6)):
        trial = study.ask()
        study.tell(trial, value, cost=2.0, trace=[({"epochs": 1}, value)])
        assert trial.number == number
    promoted = study.ask()
    study.tell(promoted, 0.25, cost=5.0, trace=[({"epochs": 2}, 0.3), ({"epochs": 3}, 0.25)])
    study.tell(study.ask(), failure="CUDA out of memory", cost=1.0)
    study.ask()
    study.enqueue({"lr": 0.01, "layers": 2, "act": "relu"})
    return study
