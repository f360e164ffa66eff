"""Temporary folders that go with their process."""

import subprocess
import sys

import pytest

from farthing.files import file_lock as scratch


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_a_folder_lasts_as_long_as_its_block(temporary):
    with scratch.scratch_folder() as folder:
        (folder / "file").write_text("in use")
        assert folder.stat().st_mode & 0o777 == 0o700
        scratch.remove_abandoned()
        assert (folder / "file").exists()
    assert not list(temporary.iterdir())


def test_where_no_folder_can_be_made_there_is_none(temporary, monkeypatch):
    monkeypatch.setattr(scratch, "gettempdir", lambda: str(temporary / "missing"))
    with scratch.scratch_folder() as folder:
        assert not folder.exists()


def test_what_a_killed_process_left_is_removed(temporary):
    script = (
        "import os\nfrom farthing.files import file_lock as scratch\n"
        f"scratch.gettempdir = lambda: {str(temporary)!r}\n"
        "with scratch.scratch_folder() as folder:\n    (folder / 'large').touch()\n    os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    (temporary / "of somebody else").mkdir()
    assert len(list(temporary.glob("*/large"))) == 1
    scratch.remove_abandoned()
    assert [path.name for path in temporary.iterdir()] == ["of somebody else"]
