"""Links that somebody has planted lead nowhere: nothing is locked, counted or removed through them."""

from pathlib import Path

import pytest

from farthing.caching.stage_cache import CacheKey, StageCache
from farthing.execution import Checkpoints
from farthing.files.durable import remove, size_of
from farthing.files.file_lock import exclusive, exclusive_if_free, shared


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder with a file of 1000 bytes that is no business of ours."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "thesis.tex").write_bytes(b"x" * 1000)
    return folder


@pytest.mark.parametrize("lock", [exclusive, shared, exclusive_if_free])
def test_a_lock_is_not_taken_through_a_link(tmp_path, victim, lock):
    link = tmp_path / "study.lock"
    link.symlink_to(victim / "thesis.tex")
    with pytest.raises(OSError, match="symbolic"), lock(link):
        pass
    assert link.is_symlink()
    assert (victim / "thesis.tex").exists()


@pytest.mark.parametrize("lock", [exclusive, shared, exclusive_if_free])
def test_a_lock_creates_nothing_through_a_link(tmp_path, victim, lock):
    link = tmp_path / "study.lock"
    link.symlink_to(victim / "new")
    with pytest.raises(OSError, match="symbolic"), lock(link):
        pass
    assert not (victim / "new").exists()


def test_a_cache_whose_lock_is_a_link_computes_without_one_and_says_so(tmp_path, victim):
    address = CacheKey("source", (("first", "1"),), "prefix")
    cache = StageCache(tmp_path / "stages", limit=None)
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / f"{address.key}.lock").symlink_to(victim / "thesis.tex")
    with cache.computing(address):
        pass
    assert [eviction.why for eviction in cache.news()] == ["unwritable"]
    assert (victim / "thesis.tex").exists()


def test_sizes_are_not_counted_through_links(tmp_path, victim):
    root = tmp_path / "files"
    (root / "000001").mkdir(parents=True)
    (root / "000001" / "attempt-1.log").write_bytes(b"y" * 10)
    (root / "000002").symlink_to(victim)
    (root / "000001" / "attempt-1.checkpoint-1").symlink_to(victim / "thesis.tex")
    assert Checkpoints(root).disk_use() == size_of(root) == 10


def test_a_link_in_a_checkpoints_place_is_removed_and_what_it_points_to_stays(tmp_path, victim):
    files = Checkpoints(tmp_path / "files")
    (tmp_path / "files" / "000001").mkdir(parents=True)
    name = "000001/attempt-1.checkpoint-1"
    (tmp_path / "files" / name).symlink_to(victim)
    assert files.delete(name) == 0
    assert not list((tmp_path / "files" / "000001").iterdir())
    assert (victim / "thesis.tex").exists()


def test_removing_a_link_removes_the_link(tmp_path, victim):
    link = tmp_path / "link"
    link.symlink_to(victim)
    assert remove(link) == 0
    assert not link.is_symlink()
    assert (victim / "thesis.tex").exists()
