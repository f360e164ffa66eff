"""A checkpoint is there wholly or not at all."""

import os
import signal
import subprocess
import sys

import pytest

from farthing.errors import InvalidArgument
from farthing.execution import Checkpoints
from farthing.files.file_lock import scratch_folder
from farthing.trials import Attempt

FIRST, SECOND, OTHER = Attempt(12, 1), Attempt(12, 2), Attempt(7, 1)


def commit(checkpoints, attempt, content="good"):
    folder = checkpoints.stage(attempt)
    (folder / "deep").mkdir()
    (folder / "deep" / "weights").write_text(content)
    return checkpoints.commit(folder)


def test_names_are_relative_and_tell_whose_they_are(checkpoints):
    names = [commit(checkpoints, FIRST), commit(checkpoints, FIRST), commit(checkpoints, SECOND)]
    assert names == ["000012/attempt-1.checkpoint-1", "000012/attempt-1.checkpoint-2", "000012/attempt-2.checkpoint-1"]
    assert all((checkpoints.path(name) / "deep" / "weights").read_text() == "good" for name in names)


def test_a_folder_left_by_an_earlier_study_is_not_overwritten(checkpoints):
    old = commit(checkpoints, FIRST, "old")
    new = commit(checkpoints, FIRST, "new")
    assert (checkpoints.path(old) / "deep" / "weights").read_text() == "old"
    assert (checkpoints.path(new) / "deep" / "weights").read_text() == "new"


@pytest.mark.parametrize(
    "name",
    [
        "../../etc",
        "/etc",
        "",
        "000012/attempt-1.staging-1",
        "000012/attempt-1.checkpoint-1/..",
        "000012/attempt-1.checkpoint-1\n",
        "000012/attempt-01.checkpoint-1",
        "000012",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(checkpoints, name):
    with pytest.raises(InvalidArgument, match="name must look like"):
        checkpoints.path(name)
    with pytest.raises(InvalidArgument, match="name must look like"):
        checkpoints.delete(name)


def test_everything_is_on_the_disk_before_the_name_is(checkpoints, monkeypatch):
    order = []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append(os.readlink(f"/proc/self/fd/{fd}")), fsync(fd)))
    monkeypatch.setattr(os, "rename", lambda *names: (order.append("rename"), rename(*names)))
    folder = checkpoints.stage(FIRST)
    (folder / "deep").mkdir()
    (folder / "deep" / "weights").write_text("good")
    checkpoints.commit(folder)
    before, after = order[: order.index("rename")], order[order.index("rename") + 1 :]
    assert before == [str(folder / "deep" / "weights"), str(folder / "deep"), str(folder)]
    assert str(folder.parent) in after
    assert str(checkpoints.root) in after


def test_nothing_is_put_on_the_disk_where_the_folder_goes_with_the_process(monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with scratch_folder() as root:
        checkpoints = Checkpoints(root)
        folder = checkpoints.stage(FIRST)
        (folder / "weights").write_text("good")
        name = checkpoints.commit(folder)
        assert (checkpoints.path(name) / "weights").read_text() == "good"
    assert synced == []


def test_a_kill_before_the_rename_leaves_no_checkpoint(checkpoints):
    """The process dies at the last moment of a commit, with all of it on the disk but its name."""
    script = f"""
import os, signal
from pathlib import Path
from farthing.execution import Checkpoints
from farthing.trials import Attempt
checkpoints = Checkpoints(Path({str(checkpoints.root)!r}))
folder = checkpoints.stage(Attempt(12, 1))
(folder / "weights").write_text("good")
os.rename = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
checkpoints.commit(folder)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert [path.name for path in (checkpoints.root / "000012").iterdir()] == ["attempt-1.staging-1"]
    assert checkpoints.collect(set(), may_live=lambda attempt: False) == len("good")
    assert list((checkpoints.root / "000012").iterdir()) == []


def test_deleting_frees_the_bytes_and_may_be_repeated(checkpoints):
    name = commit(checkpoints, FIRST, "12345")
    assert checkpoints.delete(name) == 5
    assert checkpoints.delete(name) == 0
    assert not checkpoints.path(name).exists()


def test_a_deletion_that_was_cut_short_is_finished_later(checkpoints, monkeypatch):
    name = commit(checkpoints, FIRST)
    monkeypatch.setattr("farthing.files.durable.rmtree", lambda *_, **__: None)
    checkpoints.delete(name)
    assert not checkpoints.path(name).exists()
    monkeypatch.undo()
    assert checkpoints.collect(set(), may_live=lambda attempt: attempt == FIRST) == 4
    assert checkpoints.disk_use() == 0


def test_collecting_keeps_what_is_named_and_what_is_being_written(checkpoints):
    kept, unneeded = commit(checkpoints, OTHER), commit(checkpoints, FIRST)
    being_written, abandoned = checkpoints.stage(SECOND), checkpoints.stage(FIRST)
    assert checkpoints.collect({kept}, may_live=lambda attempt: attempt == SECOND) == 4
    assert checkpoints.path(kept).exists()
    assert being_written.exists()
    assert not checkpoints.path(unneeded).exists()
    assert not abandoned.exists()


def test_a_checkpoint_that_was_committed_but_not_announced_yet_is_kept(checkpoints):
    superseded, announced, new = (commit(checkpoints, FIRST) for _ in range(3))
    checkpoints.collect({announced}, may_live=lambda attempt: attempt == FIRST)
    assert not checkpoints.path(superseded).exists()
    assert checkpoints.path(announced).exists()
    assert checkpoints.path(new).exists()


def test_the_order_of_commits_counts_not_that_of_staging(checkpoints):
    begun_first = checkpoints.stage(FIRST)
    announced = commit(checkpoints, FIRST)
    (begun_first / "weights").write_text("last")
    checkpoints.collect({announced}, may_live=lambda attempt: attempt == FIRST)
    last = checkpoints.commit(begun_first)
    checkpoints.collect({announced}, may_live=lambda attempt: attempt == FIRST)
    assert (checkpoints.path(last) / "weights").read_text() == "last"


def test_logs_are_kept_and_counted(checkpoints):
    commit(checkpoints, FIRST)
    checkpoints.log_path(12, 1).write_text("said")
    checkpoints.collect(set(), may_live=lambda attempt: False)
    assert checkpoints.log_path(12, 1).read_text() == "said"
    assert checkpoints.disk_use() == 4


def test_links_are_not_followed(checkpoints, tmp_path):
    (tmp_path / "data").write_text("dear")
    folder = checkpoints.stage(FIRST)
    (folder / "link").symlink_to(tmp_path / "data")
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    checkpoints.delete(checkpoints.commit(folder))
    assert (tmp_path / "data").read_text() == "dear"


def test_collecting_where_nothing_was_ever_written_is_free(checkpoints):
    assert checkpoints.collect(set(), may_live=lambda attempt: False) == 0
    assert checkpoints.disk_use() == 0
    assert not checkpoints.root.exists()
