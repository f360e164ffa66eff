"""Ways without links."""

import os
from pathlib import Path

import pytest

from farthing.files.inside import files_inside, open_inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """`a/b/deep.txt`, `a/file.txt`, and beside the root a file that is no business of ours."""
    found = tmp_path / "root"
    (found / "a" / "b").mkdir(parents=True)
    (found / "a" / "b" / "deep.txt").write_text("deep")
    (found / "a" / "file.txt").write_text("file")
    (tmp_path / "secret.txt").write_text("secret")
    return found


def test_files_are_named_and_opened_from_the_root(root: Path) -> None:
    assert list(files_inside(root, "a")) == ["file.txt", "b/deep.txt"]
    with open_inside(root, "a/b/deep.txt") as file:
        assert file.read() == b"deep"


def test_the_root_itself_may_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    """Users choose it, and may have it on another disk."""
    (tmp_path / "short").symlink_to(root)
    assert list(files_inside(tmp_path / "short", "a")) == ["file.txt", "b/deep.txt"]


@pytest.mark.parametrize("name", ["../secret.txt", "a/../../secret.txt", "/etc/passwd", "a//file.txt", "", ".", "a/."])
def test_a_name_that_leads_elsewhere_is_refused(root: Path, name: str) -> None:
    with pytest.raises(OSError, match="no name of a file"):
        open_inside(root, name)
    assert list(files_inside(root, name)) == []


@pytest.mark.parametrize("link", ["a", "a/b", "a/b/deep.txt"])
def test_a_link_anywhere_on_the_way_is_refused(root: Path, tmp_path: Path, link: str) -> None:
    """Also one that leads to a place below the same root."""
    place = root / link
    moved = place.rename(root / "moved")
    place.symlink_to(moved)
    with pytest.raises(OSError, match=r"symbolic|directory"):
        open_inside(root, "a/b/deep.txt")
    assert "b/deep.txt" not in list(files_inside(root, "a"))


def test_only_plain_files_are_files(root: Path) -> None:
    os.mkfifo(root / "a" / "pipe")
    with pytest.raises(OSError, match="no plain file"):
        open_inside(root, "a/pipe")
    with pytest.raises(OSError, match="no plain file"):
        open_inside(root, "a/b")
    assert list(files_inside(root, "a")) == ["file.txt", "b/deep.txt"]


def test_nothing_stays_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for name in ("a/b/deep.txt", "a/b", "a/none", "none/none"):
        try:
            open_inside(root, name).close()
        except OSError:
            continue
    list(files_inside(root, "a"))
    assert (len(os.listdir("/proc/self/fd")) if before else 0) == before
