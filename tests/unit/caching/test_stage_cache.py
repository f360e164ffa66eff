"""The cache of stages: what comes out is what went in, or nothing."""

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from farthing.caching.stage_cache import CacheKey, StageCache, read_limit
from farthing.errors import InvalidArgument


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "stages"


@pytest.fixture
def cache(folder):
    return StageCache(folder, limit=None)


def test_reading_and_verifying_leave_no_locks(cache, folder):
    put(cache, "a")
    (address,) = lineage("a")
    assert cache.get(address, load).output == "output"
    assert list(cache.verify()) == [(address.key, "")]
    assert os.listdir(folder) == [address.key]


def lineage(*names):
    """Addresses of the prefixes of a pipeline whose stages have these params."""
    versions = [(f"stage {place}", "1") for place in range(len(names))]
    return [CacheKey("source", tuple(versions[: end + 1]), "-".join(names[: end + 1])) for end in range(len(names))]


def save(text, folder):
    (folder / "text").write_text(text)


def load(folder):
    return (folder / "text").read_text()


def put(cache, *names, output="output", seconds=None):
    addresses = lineage(*names)
    with cache.computing(addresses[-1]):
        cache.put(addresses, output, seconds=seconds or [1.0] * len(names), save=save)
    return addresses[-1]


def evictions(cache):
    return [(eviction.prefix, eviction.length, eviction.why) for eviction in cache.news()]


def test_an_output_comes_back_with_what_its_stages_had_cost(cache):
    address = put(cache, "a", "b", output="blurred", seconds=[3.0, 4.0])
    kept = cache.get(address, load)
    assert (kept.output, kept.seconds) == ("blurred", (3.0, 4.0))


def test_another_cache_at_the_same_place_finds_it(cache, folder):
    address = put(cache, "a")
    assert StageCache(folder, limit=None).get(address, load).output == "output"


@pytest.mark.parametrize(
    "other",
    [
        CacheKey("another source", (("stage 0", "1"),), "a"),
        CacheKey("source", (("stage 0", "2"),), "a"),
        CacheKey("source", (("another stage", "1"),), "a"),
        CacheKey("source", (("stage 0", "1"),), "b"),
        CacheKey("source", (("stage 0", "1"), ("stage 1", "1")), "a"),
    ],
)
def test_whatever_an_output_depends_on_tells_it_from_others(cache, other):
    put(cache, "a")
    assert cache.get(other, load) is None


def test_a_version_early_on_changes_the_addresses_of_all_that_follows(cache):
    put(cache, "a", "b")
    assert cache.get(CacheKey("source", (("stage 0", "2"), ("stage 1", "1")), "a-b"), load) is None


def test_an_entry_that_changed_in_any_byte_is_dropped_and_never_served(cache, folder, tmp_path):
    address = put(cache, "a")
    entry, pristine = folder / address.key, tmp_path / "pristine"
    entry.rename(pristine)
    for file in [path.relative_to(pristine) for path in pristine.rglob("*") if path.is_file()]:
        content = (pristine / file).read_bytes()
        for place in range(len(content)):
            shutil.copytree(pristine, entry)
            (entry / file).write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            assert cache.get(address, load) is None
            assert not cache.has(address)
    assert set(evictions(cache)) == {("a", 1, "corrupt")}


@pytest.mark.parametrize("change", ["truncate", "delete", "add", "empty"])
def test_an_entry_with_other_files_is_dropped(cache, folder, change):
    address = put(cache, "a")
    output = folder / address.key / "output"
    match change:
        case "truncate":
            os.truncate(output / "text", 3)
        case "delete":
            (output / "text").unlink()
        case "add":
            (output / "more").write_text("more")
        case "empty":
            (folder / address.key / "entry.json").write_text("")
    assert cache.get(address, load) is None
    assert evictions(cache) == [("a", 1, "corrupt")]


def test_an_entry_under_the_name_of_another_is_not_served(cache, folder):
    one, other = put(cache, "a", output="of a"), lineage("b")[-1]
    (folder / one.key).rename(folder / other.key)
    assert cache.get(other, load) is None


def test_an_entry_without_its_manifest_is_replaced(cache, folder):
    address = put(cache, "a", output="old")
    (folder / address.key / "entry.json").unlink()
    put(cache, "a", output="new")
    assert cache.get(address, load).output == "new"


def test_an_entry_that_cannot_be_loaded_is_dropped_with_the_reason(cache):
    address = put(cache, "a")

    def broken(folder):
        raise KeyError("weights")

    assert cache.get(address, broken) is None
    (eviction,) = cache.news()
    assert (eviction.why, eviction.detail) == ("corrupt", "KeyError: 'weights'")


def test_an_entry_stays_where_there_is_no_memory_to_load_it(cache):
    address = put(cache, "a", output="large")

    def short_of_memory(folder):
        raise MemoryError

    with pytest.raises(MemoryError):
        cache.get(address, short_of_memory)
    assert cache.get(address, load).output == "large"


def test_an_entry_that_cannot_be_removed_is_not_served_either(cache, folder, monkeypatch):
    address = put(cache, "a", output="right")
    (damaged,) = (folder / address.key / "output").iterdir()
    damaged.write_text("wrong")

    def refuse(path, target):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "rename", refuse)
    assert cache.get(address, load) is None
    assert {eviction.why for eviction in cache.news()} == {"corrupt"}


def test_a_failed_save_leaves_nothing(cache, folder):
    address = lineage("a")[-1]

    def refuse(output, folder):
        (folder / "half").write_text("half")
        raise TypeError("no weights")

    with pytest.raises(TypeError), cache.computing(address):
        cache.put([address], "output", seconds=[1.0], save=refuse)
    assert os.listdir(folder) == []


def test_where_there_is_no_room_the_output_is_not_kept_and_that_is_told(cache, folder):
    address = lineage("a")[-1]

    def full(output, folder):
        (folder / "half").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with cache.computing(address):
        cache.put([address], "output", seconds=[1.0], save=full)
    (eviction,) = cache.news()
    assert (eviction.why, eviction.detail) == ("unwritable", "No space left on device")
    assert os.listdir(folder) == []


def test_without_a_place_for_files_nothing_is_kept_and_nothing_fails(tmp_path):
    (tmp_path / "stages").write_text("a file where the folder should be")
    cache = StageCache(tmp_path / "stages", limit=100)
    address = put(cache, "a")
    cache.shrink()
    cache.tidy()
    assert cache.get(address, load) is None
    assert {eviction.why for eviction in cache.news()} == {"unwritable"}


def test_what_takes_the_least_time_per_byte_goes_first(folder):
    cache = StageCache(folder, limit=400)
    put(cache, "dear", output="x" * 100, seconds=[60.0])
    put(cache, "large", output="x" * 250, seconds=[60.0])
    put(cache, "cheap", output="x" * 100, seconds=[1.0])
    cache.shrink()
    assert evictions(cache) == [("cheap", 1, "limit")]
    put(cache, "last", output="x" * 100, seconds=[50.0])
    cache.shrink()
    assert evictions(cache) == [("large", 1, "limit")]


def test_what_can_be_computed_from_a_shorter_prefix_is_cheap(folder):
    cache = StageCache(folder, limit=250)
    put(cache, "a", output="x" * 100, seconds=[60.0])
    put(cache, "a", "b", output="x" * 100, seconds=[60.0, 1.0])
    put(cache, "c", "d", output="x" * 100, seconds=[30.0, 1.0])
    cache.shrink()
    assert evictions(cache) == [("a-b", 2, "limit")]


def test_what_is_in_use_is_not_evicted(folder):
    cache = StageCache(folder, limit=150)
    used = put(cache, "used", output="x" * 100, seconds=[1.0])
    put(cache, "idle", output="x" * 100, seconds=[2.0])
    with cache.computing(used):
        StageCache(folder, limit=150).shrink()
    assert cache.has(used)
    assert not cache.has(lineage("idle")[-1])


def test_an_output_larger_than_the_limit_is_not_kept(folder):
    cache = StageCache(folder, limit=50)
    address = put(cache, "a", output="x" * 51)
    assert not cache.has(address)
    (eviction,) = cache.news()
    assert (eviction.why, eviction.detail) == ("unwritable", "its 51 bytes are more than the limit of 50")


def test_a_second_waits_for_the_first_and_finds_its_output(cache, folder):
    address, found = lineage("a")[-1], []
    waiting = threading.Event()

    def second():
        other = StageCache(folder, limit=None)
        waiting.set()
        with other.computing(address):
            found.append(other.get_held(address, load))

    with cache.computing(address):
        thread = threading.Thread(target=second)
        thread.start()
        waiting.wait()
        thread.join(0.05)
        assert thread.is_alive()
        cache.put([address], "of the first", seconds=[1.0], save=save)
    thread.join()
    assert found[0].output == "of the first"


def test_tidying_removes_what_was_left_half_done_and_keeps_what_is_in_use(cache, folder):
    kept, busy = put(cache, "kept"), lineage("busy")[-1]
    for name in ("dead.staging", "dead.deleted", "no-entry"):
        (folder / name).mkdir()
        (folder / name / "file").write_text("half")
    with cache.computing(busy):
        (folder / f"{busy.key}.staging").mkdir()
        StageCache(folder, limit=None).tidy()
        assert sorted(os.listdir(folder)) == sorted([kept.key, f"{busy.key}.lock", f"{busy.key}.staging"])


@pytest.mark.parametrize(
    ("given", "limit"),
    [(None, None), (0, 0), (7, 7), ("2 GB", 2 * 10**9), ("1.5 kB", 1500), ("0 B", 0), ("2GB", 2 * 10**9)],
)
def test_limits_are_read(given, limit):
    assert read_limit(given) == limit


@pytest.mark.parametrize("given", [-1, True, 1.5, "2", "much", "two GB", "2 GiB", "-1 GB", "inf GB", "nan GB"])
def test_limits_that_cannot_be_meant_are_refused(given):
    with pytest.raises(InvalidArgument, match=r"limit must be a number of bytes or a text such as '2 GB', got"):
        read_limit(given)
