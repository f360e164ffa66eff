"""`farthing logs`: what a trial prints is seen by another process, while the trial runs and afterwards."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import farthing as ft
from farthing.execution import stored_checkpoints
from farthing.session import session_of
from farthing.trials import Attempt

MAIN = "from farthing.cli import main; main()"


def study_in(storage: str, **settings) -> ft.Study:
    space = ft.Space({"x": ft.Float(0, 1)})
    return ft.Study(space, minimize="error", strategy=ft.Sobol(), seed=0, storage=storage, name="s", **settings)


@contextmanager
def reader(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "logs", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), **variables},
    ) as program:
        try:
            yield program
        finally:
            program.kill()


@contextmanager
def running(study: ft.Study, gate: Path, *, fails_first: bool = False) -> Iterator[None]:
    """Runs a trial that prints a line, waits until the gate is there, and prints another."""

    begun = gate.with_name("begun")

    def work(trial: ft.RunningTrial) -> float:
        import time

        print("begins", trial.attempt)
        begun.touch()
        if fails_first and trial.attempt == 1:
            raise ValueError("the first attempt fails")
        while not gate.exists():
            time.sleep(0.01)
        print("ends")
        return 0.5

    run = threading.Thread(target=lambda: study.run(work, budget=ft.Budget(trials=1), retries=1, progress=False))
    run.start()
    while not begun.exists():
        run.join(0.01)
    try:
        yield
    finally:
        gate.touch()
        run.join()


def first_line(program: subprocess.Popen[str], begins: str) -> str:
    """The first line that begins so; those before it are passed over."""
    assert program.stdout is not None
    return next(line for line in program.stdout if line.startswith(begins))


def test_a_log_is_followed_until_its_trial_ends(folder: Path) -> None:
    study = study_in("s.db")
    with running(study, folder / "gate"), reader("s", "0", "-f", "--storage", "s.db") as program:
        assert first_line(program, "begins") == "begins 1\n"
        (folder / "gate").touch()
        assert program.communicate()[0] == "ends\n"
    assert program.returncode == 0


def test_a_trial_that_is_tried_again_is_followed_to_its_next_log(folder: Path) -> None:
    study = study_in("s.db")
    with running(study, folder / "gate", fails_first=True), reader("s", "0", "-f", "--storage", "s.db") as program:
        assert first_line(program, "begins 2")
        (folder / "gate").touch()
        assert program.communicate()[0] == "ends\n"


def test_a_log_that_lies_elsewhere_is_said_to(folder: Path, farthing: Callable) -> None:
    study = study_in("s.db")
    trial = study.ask()
    owner = study.trials[0].owner or ""
    found = farthing("logs", "s", str(trial.number), "--storage", "s.db")
    assert (found.exit_code, found.output) == (1, found.stderr)
    assert f"got none in {str(study.checkpoints.root / '000000')!r} here for trial 0, which {owner.split('/')[0]}" in (
        found.stderr
    )
    assert "Look there, or give the study a folder that all machines see" in found.stderr


def test_a_log_is_printed_in_pieces(folder: Path, farthing: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_in("s.db")
    study.tell(study.ask(), 0.5)
    path = study.checkpoints.log_path(0, 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a line\nno UTF-8: \xff\n" * 1000)
    monkeypatch.setattr("farthing.execution.checkpoints.LOG_PIECE", 7)
    assert farthing("logs", "s", "0", "--storage", "s.db").stdout_bytes == path.read_bytes()


# ---- in a store, which machines share without sharing a disk --------------------------------------------------------


@pytest.fixture
def url(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    pytest.importorskip("fsspec")
    monkeypatch.setattr(stored_checkpoints, "SECONDS_BETWEEN_LOOKS", 0.05)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "here"))
    monkeypatch.setenv("TMPDIR", str(folder / "here"))
    (folder / "here").mkdir()
    (folder / "there").mkdir()
    return f"file://{folder}/store"


def test_another_machine_sees_the_log_of_a_running_trial_in_the_store(url: str, folder: Path) -> None:
    study, there = study_in("s.db", folder=url), str(folder / "there")
    with (
        running(study, folder / "gate"),
        reader("s", "0", "-f", "--follow", "--storage", "s.db", TMPDIR=there) as program,
    ):
        assert first_line(program, "begins") == "begins 1\n"
        (folder / "gate").touch()
        assert program.communicate()[0] == "ends\n"
    assert sorted((folder / "store" / "s" / "logs" / "000000").glob("*.log")) != []


def test_the_end_of_a_long_log_is_shown_and_the_gap_is_said(url: str, folder: Path, monkeypatch) -> None:
    checkpoints = stored_checkpoints.StoredCheckpoints(url)
    monkeypatch.setattr(stored_checkpoints, "LIVE_BYTES", 4)
    attempt = Attempt(0, 1)
    log = checkpoints.log_path(0, 1)
    log.write_text("0123456789")
    checkpoints.show_log(attempt)
    while (found := checkpoints.read_live_log(attempt)) is None:
        threading.Event().wait(0.01)
    assert found == (6, b"6789")
    assert checkpoints.read_live_log(attempt, since=8) == (8, b"89")
    checkpoints.hide_log(attempt)
    while checkpoints.read_live_log(attempt) is not None:
        threading.Event().wait(0.01)
    assert log.exists()


def test_a_store_that_only_the_database_names_is_not_asked(url: str, folder: Path, farthing: Callable) -> None:
    study = study_in("s.db", folder=url)
    study.ask()
    session_of(study).files.to_write()
    found = farthing("logs", "s", "0", "--storage", "s.db")
    assert found.exit_code == 1
    assert "Add --follow" in found.stderr
