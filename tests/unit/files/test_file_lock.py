"""Locks between processes: one holder at a time, although the last holder removes the file."""

import os
import subprocess
import sys
import threading

import pytest

from farthing.files.file_lock import exclusive, exclusive_if_free, shared, shared_if_free

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

READING = """
import sys
from pathlib import Path
from farthing.files.file_lock import shared

folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
for _ in range(5 * rounds):
    with shared(folder / "count.lock"):
        int((folder / "count").read_text())
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


@pytest.mark.parametrize("lock", [shared, shared_if_free])
def test_the_last_that_shares_a_lock_removes_its_file(tmp_path, lock):
    path = tmp_path / "lock"
    with lock(path):
        with lock(path):
            pass
        assert path.exists()
        with exclusive_if_free(path) as is_free:
            assert not is_free, "the first holds it still"
    assert not path.exists()


def test_who_shares_a_lock_leaves_the_file_of_the_next_holder_alone(tmp_path):
    path = tmp_path / "lock"
    with shared(path):
        path.unlink()
        with exclusive(path):
            first = path.stat().st_ino
            with exclusive_if_free(path) as is_free:
                assert not is_free
            assert path.stat().st_ino == first
        path.touch()
    assert path.exists()


def test_processes_that_share_and_count_lose_nothing_and_leave_nothing(tmp_path):
    (tmp_path / "count").write_text("0")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), "60"], env=os.environ | {"PYTHONPATH": ":".join(sys.path)}
        )
        for program in (COUNTING, READING, COUNTING, READING)
    ]
    assert [process.wait() for process in started] == [0] * 4
    assert (tmp_path / "count").read_text() == "120"
    assert os.listdir(tmp_path) == ["count"]


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
