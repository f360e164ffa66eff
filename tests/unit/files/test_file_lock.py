"""Locks between processes: one holder at a time, although the last holder removes the file."""

import os
import subprocess
import sys
import threading

import pytest

from farthing.files.file_lock import exclusive, exclusive_if_free, shared

COUNTING = """
import sys, time
from pathlib import Path
from farthing.files.file_lock import exclusive

folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
for _ in range(rounds):
    with exclusive(folder / "count.lock"):
        count = int((folder / "count").read_text())
        time.sleep(0.0005)
        (folder / "count").write_text(str(count + 1))
"""


def test_processes_that_count_together_lose_nothing(tmp_path):
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", COUNTING, str(tmp_path), "60"]
    counting = [subprocess.Popen(command, env=os.environ | {"PYTHONPATH": ":".join(sys.path)}) for _ in range(4)]
    assert [process.wait() for process in counting] == [0] * 4
    assert (tmp_path / "count").read_text() == "240"
    assert not (tmp_path / "count.lock").exists()


def test_many_may_share_a_lock_and_then_nobody_has_it_alone(tmp_path):
    path = tmp_path / "lock"
    with shared(path), shared(path), exclusive_if_free(path) as is_free:
        assert not is_free
    with exclusive_if_free(path) as is_free:
        assert is_free


def test_a_lock_that_is_held_alone_is_not_free(tmp_path):
    with exclusive(tmp_path / "lock"), exclusive_if_free(tmp_path / "lock") as is_free:
        assert not is_free


def test_sharing_waits_for_whoever_holds_it_alone(tmp_path):
    order = []

    def share():
        with shared(tmp_path / "lock"):
            order.append("shared")

    with exclusive(tmp_path / "lock"):
        thread = threading.Thread(target=share)
        thread.start()
        thread.join(0.05)
        order.append("alone")
    thread.join()
    assert order == ["alone", "shared"]


def test_an_error_inside_lets_go(tmp_path):
    with pytest.raises(ValueError, match="inside"), exclusive(tmp_path / "lock"):
        raise ValueError("inside")
    with exclusive_if_free(tmp_path / "lock") as is_free:
        assert is_free
