"""Ctrl-C or an error at any step of a run: whatever was opened is done or given back, and the next run ends."""

import itertools
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from interrupting import Steps
from taking_turns import Turns, TurnTakingExecutor

import farthing as ft
from farthing.errors import WorkError
from farthing.execution import InlineExecutor
from farthing.session import session_of
from farthing.storage import MemoryStorage

SPACE = ft.Space({"x": ft.Float(0, 1)})
BUDGET = ft.Budget(trials=6)


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def run_out_of_files() -> None:
    raise WorkError("A worker needs a process of its own, got too many open files. Free memory or processes.")


def work(trial: ft.RunningTrial) -> float:
    trial.report(0.5)
    return float(trial.params["x"])


def study_in(storage: object, folder: Path) -> ft.Study:
    return ft.Study(SPACE, minimize="error", strategy=ft.Random(), storage=storage, folder=folder)  # type: ignore[arg-type]


def run(study: ft.Study, steps: Steps | None = None) -> ft.Stopped:
    places = [InlineExecutor(work, study.problem, checkpoints=study.checkpoints) for _ in range(3)]
    executor = TurnTakingExecutor(places, Turns(0), seed=0)
    return study.run(work, budget=BUDGET, executor=steps.watching(executor) if steps else executor, progress=False)


@pytest.mark.parametrize("act", [press_ctrl_c, run_out_of_files])
def test_a_fault_at_any_step_of_a_run_leaves_nothing_running(act: Callable[[], None], tmp_path: Path) -> None:
    for at in itertools.count():
        storage, steps = MemoryStorage(), Steps(act, at=at, after=act is press_ctrl_c)
        study = study_in(storage, tmp_path)
        session_of(study).records._storage = session_of(study).records.leases._storage = steps.watching(storage)
        try:
            run(study, steps)
        except (KeyboardInterrupt, WorkError):
            assert steps.has_acted
        left = [trial.state for trial in study_in(storage, tmp_path).trials]
        assert ft.State.RUNNING not in left, f"step {at}: {left}"
        assert not session_of(study).records.leases.held
        if not steps.has_acted:
            assert at > 40
            return
        assert run(study).reason is ft.StopReason.BUDGET_SPENT
        assert [trial.state for trial in study.trials] == [ft.State.DONE] * 6
        session_of(study).records.leases.close()


@pytest.mark.parametrize("act", [press_ctrl_c, run_out_of_files])
def test_a_fault_at_any_step_of_an_ask_leaves_nothing_running(act: Callable[[], None], tmp_path: Path) -> None:
    for at in itertools.count():
        storage, steps = MemoryStorage(), Steps(act, at=at, after=act is press_ctrl_c)
        study = study_in(storage, tmp_path)
        study.enqueue({"x": 0.5})
        session_of(study).records._storage = session_of(study).records.leases._storage = steps.watching(storage)
        try:
            study.ask(3)
        except (KeyboardInterrupt, WorkError):
            left = [trial.state for trial in study_in(storage, tmp_path).trials]
            assert ft.State.RUNNING not in left, f"step {at}: {left}"
            assert not session_of(study).records.leases.held
        else:
            assert not steps.has_acted
            assert at > 4
            return
        finally:
            session_of(study).records.leases.close()


NOTEBOOK = """
    import json, os, resource, signal, sys, threading
    import farthing as ft

    def work(trial):
        return trial.params["x"]

    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage=sys.argv[1], strategy=ft.Random())
    study.tell(study.ask(), 0.5)  # imports NumPy, which an interrupt in its import would spoil for good

    def interrupted():
        threading.Timer(float(sys.argv[3]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        study.run(work, budget=ft.Budget(trials=9), workers=8)

    def out_of_files():
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]), hard))
        try:
            study.run(work, budget=ft.Budget(trials=9), workers=8)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    try:
        {"interrupted": interrupted, "out of files": out_of_files}[sys.argv[2]]()
    except (KeyboardInterrupt, ft.FarthingError, OSError) as error:
        print(type(error).__name__, error, file=sys.stderr)
    after_the_first = [str(trial.state) for trial in study.trials]
    study.run(work, budget=ft.Budget(trials=9), workers=2)
    print(json.dumps([after_the_first, [str(trial.state) for trial in study.trials]]))
"""


def run_twice(tmp_path: Path, fault: str, setting: float) -> None:
    """A program whose first run meets the fault and whose second must end all the same."""
    script = tmp_path / "notebook.py"
    script.write_text(textwrap.dedent(NOTEBOOK))
    database = tmp_path / f"{fault}-{setting}.db"
    done = subprocess.run(
        [sys.executable, str(script), str(database), fault, str(setting)], capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    after_the_first, after_the_second = json.loads(done.stdout)
    assert "running" not in after_the_first
    assert after_the_second == ["done"] * 9


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.3])
def test_ctrl_c_while_workers_start_leaves_nothing_running(tmp_path: Path, delay: float) -> None:
    run_twice(tmp_path, "interrupted", delay)


@pytest.mark.parametrize("files", [18, 24, 40])
def test_too_many_open_files_leave_nothing_running(tmp_path: Path, files: int) -> None:
    run_twice(tmp_path, "out of files", files)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_ctrl_c_at_many_moments_leaves_nothing_running(tmp_path: Path) -> None:
    for moment in range(100):
        run_twice(tmp_path, "interrupted", moment / 100)
