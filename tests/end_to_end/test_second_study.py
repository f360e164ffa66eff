"""A study that learns from earlier ones, in real processes: killed between two starts, and shared by several."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import farthing as ft

ROOT = Path(__file__).parents[2]
SPACE = ft.Space({"x": ft.Float(0.0, 1.0), "y": ft.Float(0.0, 1.0)})
PLACES = {"april": 0.8, "may": 0.3, "june": 0.6}
"""The earlier studies, with their optima."""
STARTS = 6
"""Starts in all: the three that are learnt and three random ones."""

WORK = """
import os
import time


def work(trial):
    if trial.number == 1 and os.path.exists("wait"):
        open("begun", "w").close()
        time.sleep(3600)
    trial.charge(1.0)
    return (trial.params["x"] - 0.5) ** 2 + (trial.params["y"] - 0.5) ** 2
"""

PROGRAM = f"""
import farthing as ft
from work import work

space = ft.Space({{"x": ft.Float(0.0, 1.0), "y": ft.Float(0.0, 1.0)}})
study = ft.Study(space, minimize="error", storage="sqlite:///all.db", name="july", strategy=ft.LogEI(initial={STARTS}),
                 learn_from=["april", "may", "june"])
print("ready", flush=True)
input()
study.run(work, budget=ft.Budget(trials={STARTS}), workers=1, progress=False)
"""

STUDY = f"""
[study]
name = "july"
minimize = "error"
storage = "sqlite:///all.db"
learn_from = ["april", "may", "june"]
[space]
x = {{float = [0.0, 1.0]}}
y = {{float = [0.0, 1.0]}}
[strategy]
name = "LogEI"
initial = {STARTS}
[budget]
trials = {STARTS}
[work]
python = "work.py:work"
"""

FIRST = {
    "python": [sys.executable, "program.py"],
    "command line": [sys.executable, "-m", "farthing", "run", "july.toml"],
}
AGAIN = {**FIRST, "command line": [sys.executable, "-m", "farthing", "resume", "july"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three earlier studies, and with the new one as a program and as a study file."""
    monkeypatch.chdir(tmp_path)
    for name, at in PLACES.items():
        with ft.Study(SPACE, minimize="error", storage="sqlite:///all.db", name=name, seed=len(name)) as study:
            for _ in range(6):
                trial = study.ask()
                study.tell(trial, (trial.params["x"] - at) ** 2 + (trial.params["y"] - at) ** 2, cost=1.0)
    for file, text in {"work.py": WORK, "program.py": PROGRAM, "july.toml": STUDY}.items():
        (tmp_path / file).write_text(text)
    return tmp_path


def started(command: list[str]) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(ROOT / "src"), "."])
    return subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> None:
    _, errors = process.communicate("go\n")
    assert process.returncode == 0, errors


def unbroken() -> list[dict[str, float]]:
    """The starts of the same study in one process, from the same earlier ones."""
    with ft.Study(
        SPACE,
        minimize="error",
        name="july",
        strategy=ft.LogEI(initial=STARTS),
        learn_from=[f"sqlite:///all.db#{name}" for name in PLACES],
    ) as study:
        for _ in range(STARTS):
            trial = study.ask()
            study.tell(trial, (trial.params["x"] - 0.5) ** 2 + (trial.params["y"] - 0.5) ** 2, cost=1.0)
        return [dict(trial.params) for trial in study.trials]


def params_of(name: str) -> list[dict[str, float]]:
    with ft.Study.load(name, "sqlite:///all.db") as study:
        assert {trial.state for trial in study.trials} == {ft.State.DONE}
        return [dict(trial.params) for trial in study.trials]


@pytest.mark.parametrize("door", FIRST)
def test_a_study_that_is_killed_at_its_second_start_goes_on_with_the_same_starts(folder: Path, door: str) -> None:
    expected = unbroken()
    (folder / "wait").touch()
    process = started(FIRST[door])
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    while not (folder / "begun").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (folder / "wait").unlink()
    for name in PLACES:  # what was learnt is in the study itself
        ft.delete_study(name, "sqlite:///all.db")
    ended(started(AGAIN[door]))
    assert params_of("july") == expected


def test_several_processes_that_begin_together_try_each_start_once(folder: Path) -> None:
    expected = unbroken()
    processes = [started(FIRST["python"]) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        ended(process)
    assert params_of("july") == expected
    with ft.Study.load("july", "sqlite:///all.db") as study:
        assert [trial.note["learned"][0] for trial in study.trials if "learned" in (trial.note or {})] == [0, 1, 2]
