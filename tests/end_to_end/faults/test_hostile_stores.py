"""Whoever can write to a store can spoil the files of a study there, and no other: not on any machine that reads it."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from farthing.caching import plain_files
from farthing.caching.plain_data import Parts, put_together
from farthing.caching.stage_cache import MANIFEST, CacheKey, Manifest
from farthing.caching.stored_stages import StoredStageCache, stage_cache
from farthing.execution.stored_checkpoints import LOGS, StoredCheckpoints
from farthing.files.object_store import CONTENT, MANIFESTS, Damaged, ObjectStore
from farthing.trials import Attempt

fsspec = pytest.importorskip("fsspec")

FIRST = Attempt(12, 1)
ADDRESS = CacheKey("source", (("first", "1"),), "{}")
UPLOAD = "0123456789abcdef" * 2
OWNED = b"owned"
OWNED_SUM = hashlib.sha256(OWNED).hexdigest()
ODD_BUT_OURS = ["a\\b", "..a", "a..", "...", "~", "~root", "C:", "W", "w", " ", "a\nb", "é", "ａ", "-", "*", "deep/…/x"]
"""Names of files that are unusual, and that a folder can have."""


@pytest.fixture(params=["file", "memory"])
def url(request, tmp_path) -> Iterator[str]:
    """A folder, and a store that takes any text for a key, as buckets do."""
    if request.param == "file":
        yield f"file://{tmp_path}/nfs"
        return
    memory = fsspec.filesystem("memory")
    yield f"memory://{tmp_path.name}"
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path) -> Path:
    """This machine's temporary folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def signed(form: Any) -> bytes:
    """A manifest that an attacker has written: its own checksum is right."""
    content = json.dumps(form).encode()
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def plant(store: ObjectStore, name: str, form: Any) -> None:
    """Puts a manifest into the store, and wherever a reader of it may look for the files, these."""
    store.write(f"{MANIFESTS}/{name}", signed(form))
    if not isinstance(form, dict) or not isinstance(form.get("files"), dict):
        return
    system, root = store._system
    for relative in form["files"]:
        path = f"{root}/{CONTENT}/{name}/upload-{form.get('upload')}/{relative}"
        try:
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
            system.pipe_file(path, OWNED)
        except (OSError, ValueError):  # a disk cannot hold every name
            pass


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("wrong", ["../stolen", "../../stolen", "deep/../../stolen", "ABSOLUTE", "//stolen", "."])
def test_a_checkpoint_writes_only_into_its_own_folder(url, here, tmp_path, wrong):
    relative = str(tmp_path / "stolen") if wrong == "ABSOLUTE" else wrong
    checkpoints = StoredCheckpoints(url)
    name = "000012/attempt-1.checkpoint-1"
    plant(checkpoints.store, name, {"upload": UPLOAD, "files": {relative: [len(OWNED), OWNED_SUM]}})
    (tmp_path / "stolen").unlink(missing_ok=True)
    before = contents(here)
    with pytest.raises(Damaged, match="manifest"):
        checkpoints.path(name)
    assert contents(here) == before
    assert not (tmp_path / "stolen").exists()


def test_a_stage_whose_manifest_leads_elsewhere_is_computed_again(url, here, tmp_path):
    checkpoints = StoredCheckpoints(url)
    name = f"stages/{ADDRESS.key}"
    plant(checkpoints.store, name, {"upload": UPLOAD, "files": {"../../../stolen": [len(OWNED), OWNED_SUM]}})
    before = contents(here)
    cache = stage_cache(checkpoints.root, limit=None)
    assert not cache.has(ADDRESS)
    assert cache.get(ADDRESS, lambda folder: plain_files.load(folder, scratch=here)) is None
    assert [eviction.why for eviction in cache.news()] == ["corrupt"]
    assert {path for path in contents(here) if not path.endswith(".lock")} == set(before)
    with cache.computing(ADDRESS):
        cache.put([ADDRESS], [1], seconds=[0.5], save=plain_files.save)
    assert checkpoints.store.has(name)


def test_a_manifest_that_put_would_not_have_made_is_replaced_by_the_next_upload(url, tmp_path):
    store = ObjectStore(url)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("good")
    plant(store, "name", {"upload": UPLOAD, "files": {"../stolen": [len(OWNED), OWNED_SUM]}})
    assert store.put(tmp_path / "folder", "name")
    assert store.get("name", tmp_path / "copy")
    assert contents(tmp_path / "copy") == {"file": b"good"}
    plant(store, "name", {"upload": "../" * 3, "files": {}})
    assert store.drop("name") == 0
    assert store.names(MANIFESTS) == []


def test_whatever_a_folder_holds_comes_back(url, tmp_path):
    folder = tmp_path / "folder"
    for name in ODD_BUT_OURS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    store = ObjectStore(url)
    assert store.put(folder, "name")
    assert store.get("name", tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(folder)


PIECES = [
    "..",
    ".",
    "",
    "a",
    "b",
    "deep",
    "/",
    "//",
    "\\",
    "..\\",
    "\0",
    "~",
    "C:",
    "\ud800",
    "\udc80",
    "x" * 300,
    "․․",
]
BAD_ENTRIES = [None, 5, [], [5], ["5", OWNED_SUM], [-1, OWNED_SUM], [True, OWNED_SUM], [5, 5], [5, "../x"], {"a": 1}]
BAD_UPLOADS = [None, 5, "", "..", f"../{UPLOAD}", UPLOAD.upper(), f"{UPLOAD}\n", f"x/../{UPLOAD}", [UPLOAD], "\ud800"]
BAD_FORMS = [None, 5, [], "x", {}, {"upload": UPLOAD}, {"files": {}}, {"upload": UPLOAD, "files": []}]


def hostile_form(random: Random, outside: Path) -> Any:
    """A manifest with one wrong thing or more, or by chance none."""
    if random.random() < 0.05:
        return random.choice(BAD_FORMS)

    def name() -> str:
        start = random.choice(["", "", "", f"{outside}/"])
        return start + random.choice(["", "/"]).join(random.choices(PIECES, k=random.randint(1, 5)))

    files: dict[str, Any] = {name(): [len(OWNED), OWNED_SUM] for _ in range(random.randint(0, 3))}
    if random.random() < 0.1:
        files["file"] = random.choice(BAD_ENTRIES)
    return {"upload": random.choice(BAD_UPLOADS) if random.random() < 0.1 else UPLOAD, "files": files}


def test_a_thousand_hostile_manifests_write_nothing_elsewhere(tmp_path, here):
    """In a store whose keys are any text, so that each file is there under the very name that the manifest has."""
    store, random, outside = ObjectStore(f"memory://{tmp_path.name}"), Random(0), tmp_path / "outside"
    refused = 0
    try:
        for number in range(1000):
            form = hostile_form(random, outside)
            plant(store, str(number), form)
            copy = here / "copies" / "one" / str(number)
            copy.parent.mkdir(parents=True, exist_ok=True)
            try:
                is_there = store.get(str(number), copy)
            except OSError:
                refused += 1
                assert not copy.exists()
                continue
            assert is_there
            assert contents(copy) == dict.fromkeys(form["files"], OWNED)
            assert [str(path.relative_to(here)) for path in here.rglob("*") if path.is_file()] == [
                f"copies/one/{number}/{name}" for name in contents(copy)
            ]
            for path in sorted(copy.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
    finally:
        fsspec.filesystem("memory").store.clear()
    assert 600 < refused < 1000
    assert not outside.exists()
    assert contents(here) == {}
    assert contents(tmp_path) == {}


def test_an_output_with_a_name_that_is_no_key_removes_nothing(tmp_path, here):
    """Keys in a bucket may hold "..", and an eviction removes a folder of that name."""
    victim = here / "victim"
    victim.mkdir()
    (victim / "thesis.tex").write_text("mine")
    store = ObjectStore(f"memory://{tmp_path.name}")
    key = "../../victim"
    form = {"lineage": [key], "prefix": "{}", "seconds": [0.1], "size": 10**9, "checksums": {}}
    entry = signed(form)
    files = {MANIFEST: [len(entry), hashlib.sha256(entry).hexdigest()]}
    system, root = store._system
    system.pipe_file(f"{root}/{MANIFESTS}/stages/{key}", signed({"upload": UPLOAD, "files": files}))
    system.pipe_file(f"{root}/{CONTENT}/stages/{key}/upload-{UPLOAD}/{MANIFEST}", entry)
    cache = StoredStageCache(here / "study" / "stages", store, limit=1)
    assert cache.entries() == []
    cache.shrink()
    fsspec.filesystem("memory").store.clear()
    assert (victim / "thesis.tex").read_text() == "mine"
    assert not (here / "victim.lock").exists()


GOOD_ENTRY = {"lineage": [ADDRESS.key], "prefix": "{}", "seconds": [0.1], "size": 5, "checksums": {"a": "b"}}


@pytest.mark.parametrize(
    "change",
    [
        {"size": "5"},
        {"size": -1},
        {"size": True},
        {"lineage": [{}, ADDRESS.key]},
        {"lineage": [ADDRESS.key] * 2},
        {"seconds": ["0.1"]},
        {"seconds": []},
        {"prefix": None},
        {"checksums": []},
        {"checksums": {"a": 1}},
        {"more": 1},
    ],
)
def test_the_description_of_an_output_is_read_only_as_it_is_written(change):
    assert Manifest.of(signed(GOOD_ENTRY), key=ADDRESS.key) is not None
    assert Manifest.of(signed({**GOOD_ENTRY, **change}), key=ADDRESS.key) is None


def test_an_output_calls_nothing_that_it_names():
    with pytest.raises(KeyError):
        put_together({"sparse": ["coo_array", [1, 1], *[{"list": [1]}] * 3]}, Parts())


def link(place: Path, to: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(to)


def test_in_a_shared_folder_nothing_is_read_written_or_removed_through_a_link(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "attempt-1.log").write_text("secret")
    root = tmp_path / "nfs"
    checkpoints = StoredCheckpoints(f"file://{root}")
    link(root / LOGS / "000001", victim)
    link(root / LOGS / "000002" / "attempt-1.log", victim / "attempt-1.log")
    link(root / CONTENT, victim)
    link(root / MANIFESTS / "name", victim / "attempt-1.log")
    assert not checkpoints.log_path(1, 1).exists()
    assert not checkpoints.log_path(2, 1).exists()
    staging = checkpoints.stage(FIRST)
    (staging / "weights").write_text("new")
    with pytest.raises(Damaged, match="link"):
        checkpoints.commit(staging)
    with pytest.raises(Damaged, match="link"):
        checkpoints.store.write(f"{MANIFESTS}/name", b"new")
    with pytest.raises(Damaged, match="link"):
        checkpoints.store.delete(f"{LOGS}/000001/attempt-1.log")
    checkpoints.store.delete(f"{LOGS}/000002/attempt-1.log")
    assert not os.path.lexists(root / LOGS / "000002" / "attempt-1.log")
    assert contents(victim) == {"attempt-1.log": b"secret"}


def test_a_folder_that_is_itself_behind_a_link_is_a_place_like_any_other(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "nfs").symlink_to(tmp_path / "disk")
    checkpoints = StoredCheckpoints(f"file://{tmp_path}/nfs")
    staging = checkpoints.stage(FIRST)
    (staging / "weights").write_text("new")
    name = checkpoints.commit(staging)
    assert name is not None
    assert checkpoints.store.get(name, tmp_path / "copy")
    assert contents(tmp_path / "copy") == {"weights": b"new"}
