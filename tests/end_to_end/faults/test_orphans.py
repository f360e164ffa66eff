"""The program is killed: its workers end with it, and all that the work started, whatever the work is doing."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

PROGRAM = """
    import ctypes, os, re, signal, subprocess, sys, time
    import farthing as ft

    def announce(name):
        with open(f"{sys.argv[2]}/{name}.new", "w") as file:
            file.write(f"{os.getpid()} {helper.pid}")
        os.rename(f"{sys.argv[2]}/{name}.new", f"{sys.argv[2]}/{name}")

    def work(trial):
        global helper
        helper = subprocess.Popen(["sleep", "3600"])
        announce(trial.number)
        if sys.argv[1] == "sleeps":
            time.sleep(3600)
        if sys.argv[1] == "holds the interpreter in C":
            ctypes.PyDLL(None).pause()
        if sys.argv[1] == "is in a regular expression":
            re.match(r"(a+)+$", "a" * 60 + "b")
        if sys.argv[1] == "is stopped":
            os.kill(os.getpid(), signal.SIGSTOP)

    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=ft.Random())
    if sys.argv[3] == "with a fork":
        study.tell(study.ask(), 0.5)
        def fork(study, trial):
            if os.fork() == 0:
                time.sleep(3600)
        study.run(lambda trial: 0.5, budget=ft.Budget(trials=2), callbacks=[fork])
    study.run(work, budget=ft.Budget(trials=4), workers=2)
"""
DOING = ["sleeps", "holds the interpreter in C", "is in a regular expression", "is stopped"]


def is_alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids: list[int]) -> None:
    """Returns when none is left; the test's own time limit is the only one."""
    try:
        while any(is_alive(pid) for pid in pids):
            time.sleep(0.01)
    finally:
        for pid in pids:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


def kill_program(tmp_path: Path, doing: str, fork: str = "alone") -> None:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    news = tmp_path / "news"
    news.mkdir()
    command = [sys.executable, str(script), doing, str(news), fork]
    program = subprocess.Popen(command, start_new_session=True)
    try:
        while len(announced := [path for path in news.iterdir() if path.suffix != ".new"]) < 2:
            assert program.poll() is None
            time.sleep(0.01)
        started = [int(pid) for path in announced for pid in path.read_text().split()]
        program.kill()
        program.wait()
        wait_until_gone(started)
    finally:
        os.killpg(program.pid, signal.SIGKILL) if fork != "alone" else program.kill()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("doing", DOING)
def test_workers_end_with_a_killed_program(tmp_path: Path, doing: str) -> None:
    kill_program(tmp_path, doing)


@pytest.mark.timeout(120)
def test_a_fork_of_the_program_that_lives_on_keeps_no_workers_alive(tmp_path: Path) -> None:
    kill_program(tmp_path, "holds the interpreter in C", "with a fork")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("doing", DOING)
def test_workers_end_with_a_killed_program_many_times(tmp_path: Path, doing: str) -> None:
    for number in range(25):
        (tmp_path / str(number)).mkdir()
        kill_program(tmp_path / str(number), doing)
