"""A study's files in an object store: whole or not at all, the same on every machine, and collected."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import farthing as ft
from farthing.caching import plain_files
from farthing.caching.stage_cache import CacheKey
from farthing.caching.stored_stages import stage_cache
from farthing.errors import InvalidArgument
from farthing.execution.folder_mark import Mark
from farthing.execution.stored_checkpoints import StoredCheckpoints
from farthing.files.object_store import CONTENT, MANIFESTS, Damaged, ObjectStore
from farthing.trials import Attempt

pytestmark = pytest.mark.ray

FIRST, OTHER = Attempt(12, 1), Attempt(7, 1)
MARK = Mark("a" * 32, "study")


@pytest.fixture(scope="session")
def s3():
    """A server that speaks S3, with a bucket."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    import s3fs

    s3fs.S3FileSystem().mkdir("bucket")
    yield "s3://bucket"
    server.stop()


@pytest.fixture(params=["file", "s3"])
def url(request, tmp_path):
    if request.param == "file":
        return f"file://{tmp_path}/nfs"
    return f"{request.getfixturevalue('s3')}/{tmp_path.name}"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Goes to the machine of that name: each has a folder of its own in front of the store."""

    def go_to(name):
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
        monkeypatch.setenv("TMPDIR", str(tmp_path / name))

    go_to("here")
    return go_to


def commit(checkpoints, attempt, content="good"):
    folder = checkpoints.stage(attempt)
    (folder / "deep").mkdir()
    (folder / "deep" / "weights").write_text(content)
    return checkpoints.commit(folder)


def test_a_checkpoint_is_found_on_another_machine(url, machine):
    name = commit(StoredCheckpoints(url), FIRST)
    there = StoredCheckpoints(url).named(name)
    machine("there")
    checkpoints = StoredCheckpoints(url)
    assert not checkpoints.named(name).exists()
    assert (checkpoints.local(there) / "deep" / "weights").read_text() == "good"
    assert (checkpoints.path(name) / "deep" / "weights").read_text() == "good"
    assert not checkpoints.path("000012/attempt-2.checkpoint-1").exists()


def test_an_upload_without_its_manifest_is_not_there(url, machine):
    checkpoints = StoredCheckpoints(url)
    name = commit(checkpoints, FIRST)
    checkpoints.store.delete(f"{MANIFESTS}/{name}")
    machine("there")
    assert not StoredCheckpoints(url).path(name).exists()


def test_a_manifest_that_was_cut_short_is_not_there_and_is_replaced(url, machine, tmp_path):
    store = ObjectStore(url)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("good")
    store.write(f"{MANIFESTS}/name", b"half of")
    assert not store.has("name")
    assert store.put(tmp_path / "folder", "name")
    assert store.get("name", tmp_path / "copy")
    assert (tmp_path / "copy" / "file").read_text() == "good"


def test_a_damaged_file_is_never_served(url, machine):
    checkpoints = StoredCheckpoints(url)
    name = commit(checkpoints, FIRST)
    (weights,) = checkpoints.store.names(f"{CONTENT}/{name}")
    checkpoints.store.write(weights, b"bad")
    machine("there")
    with pytest.raises(Damaged, match="is not as it was uploaded"):
        StoredCheckpoints(url).path(name)
    assert not StoredCheckpoints(url).named(name).exists()


def test_the_first_manifest_wins_and_the_loser_leaves_nothing(url, machine, tmp_path):
    for content in ("first", "second"):
        (tmp_path / content).mkdir()
        (tmp_path / content / "file").write_text(content)
    store = ObjectStore(url)
    assert store.put(tmp_path / "first", "name")
    assert not store.put(tmp_path / "second", "name")
    store.get("name", tmp_path / "copy")
    assert (tmp_path / "copy" / "file").read_text() == "first"
    assert len(store.names(CONTENT)) == 1


def test_the_owners_mark_is_an_object(url, machine):
    StoredCheckpoints(url, mark=MARK).claim()
    StoredCheckpoints(url, mark=MARK).claim()
    other = StoredCheckpoints(url, mark=Mark("b" * 32, "other"))
    with pytest.raises(InvalidArgument, match="belongs to another study"):
        other.claim()
    name = commit(StoredCheckpoints(url, mark=MARK), FIRST)
    assert other.delete(name) == other.collect(set(), may_live=lambda attempt: False) == 0
    machine("there")
    assert StoredCheckpoints(url).path(name).exists()


def test_what_is_not_needed_is_collected_also_what_was_uploaded_in_part(url, machine):
    checkpoints = StoredCheckpoints(url)
    kept, needless, half = commit(checkpoints, FIRST), commit(checkpoints, FIRST), commit(checkpoints, OTHER)
    checkpoints.store.delete(f"{MANIFESTS}/{half}")
    machine("there")
    there = StoredCheckpoints(url)
    there.collect({kept}, may_live=lambda attempt: attempt == OTHER)
    assert there.store.folders() == [half, kept]
    there.collect({kept}, may_live=lambda attempt: False)
    assert there.store.folders() == [kept]
    assert needless not in there.store.folders()
    assert there.delete(kept) == len("good")
    assert there.store.folders() == []


def test_an_output_of_a_stage_is_found_on_another_machine(url, machine):
    address = CacheKey("source", (("first", "1"),), "{}")

    def cache():
        checkpoints = StoredCheckpoints(url)
        checkpoints.claim()
        return stage_cache(checkpoints.root, limit=10**6)

    load = lambda folder: plain_files.load(folder, scratch=folder.parent.parent / "scratch")  # noqa: E731
    first = cache()
    first.put([address], [1, 2, 3], seconds=[0.5], save=plain_files.save)
    machine("there")
    second = cache()
    assert second.has(address)
    kept = second.get(address, load)
    assert (kept.output, kept.seconds) == ([1, 2, 3], (0.5,))
    machine("third")
    third = cache()
    assert [entry.key for entry in third.entries()] == [address.key]
    assert [entry.key for entry in third.discard(third.entries())] == [address.key]
    machine("fourth")
    assert not cache().has(address)


def test_of_two_machines_that_compute_the_same_stage_the_first_counts(url, machine):
    address = CacheKey("source", (("first", "1"),), "{}")
    load = lambda folder: plain_files.load(folder, scratch=folder.parent.parent / "scratch")  # noqa: E731
    for name, output in (("here", [1]), ("there", [2])):
        machine(name)
        checkpoints = StoredCheckpoints(url)
        checkpoints.claim()
        cache = stage_cache(checkpoints.root, limit=None)
        with cache.computing(address):
            cache.put([address], output, seconds=[0.5], save=plain_files.save)
    assert cache.get(address, load).output == [1]


TOGETHER = """
import os, sys, time
from pathlib import Path
import farthing as ft

url, database, meeting = sys.argv[1], sys.argv[2], Path(sys.argv[3])

def slow(previous, x):
    (meeting / str(os.getpid())).touch()
    until = time.monotonic() + 60
    while len(list(meeting.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    return [x]

space = ft.Space(stages={"first": {"x": ft.Choice(1)}, "second": {"y": ft.Float(0, 1)}})
study = ft.Study(space, minimize="error", strategy=ft.Random(), storage=database, folder=url, seed=0)
stages = ft.Pipeline(first=slow, second=lambda previous, y: previous[0] + y)
study.run(stages, budget=ft.Budget(trials=4), workers=1, progress=False)
study.close()
"""


def test_the_ledger_shows_a_stage_that_two_machines_computed_at_the_same_time(url, tmp_path):
    (tmp_path / "program.py").write_text(TOGETHER)
    (tmp_path / "meeting").mkdir()
    database = f"sqlite:///{tmp_path}/study.db"
    command = [sys.executable, "program.py", url, database, str(tmp_path / "meeting")]
    programs = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        programs.append(subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path / name)}))
    assert [program.wait() for program in programs] == [0, 0]
    with ft.Study.load("study", database) as study:
        bill = study.ledger.stages["first"]
        assert {trial.state for trial in study.trials} == {ft.State.DONE}
        assert (bill.computed, bill.loaded) == (2, 2)
        assert 0.0 < bill.repeated < bill.spent
        assert "of it again" in str(study.ledger)
    assert len(ObjectStore(f"{url}/study").folders("stages")) == 1


def test_a_study_keeps_its_files_in_a_store_and_goes_on_elsewhere(url, machine, tmp_path):
    def work(trial):
        print("at work on", trial.number)
        done = int((trial.resume_dir / "done").read_text()) if trial.resume_dir else 0
        for epoch in range(done + 1, trial.fidelity["epochs"] + 1):
            trial.report(1 / epoch, epochs=epoch)
        (trial.checkpoint_dir / "done").write_text(str(trial.fidelity["epochs"]))

    database = f"sqlite:///{tmp_path}/study.db"
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})

    def study():
        return ft.Study(space, minimize="error", strategy=ft.ASHA(), storage=database, folder=url, seed=0)

    here = study()
    here.run(work, budget=ft.Budget(trials=4), workers=2)
    here.close()
    machine("there")
    there = study()
    there.run(work, budget=ft.Budget(trials=9), workers=2)
    trials = there.trials
    assert {trial.state for trial in trials} == {ft.State.DONE}
    continued = [trial for trial in trials if trial.resume_from is not None]
    assert continued
    assert there.checkpoints.log_path(0, 1).read_text() == "at work on 0\n"
    there.close()
    assert ft.delete_study("study", database).freed > 0
    assert ObjectStore(f"{url}/study").names("") == []


def test_work_on_ray_leaves_its_files_in_the_store(address, s3, tmp_path):
    def stages():
        return ft.Pipeline(
            first=lambda previous, x: (time.sleep(0.1), [x])[1], second=lambda previous, y: previous[0] + y
        )

    space = ft.Space(stages={"first": {"x": ft.Choice(1, 2)}, "second": {"y": ft.Float(0, 1)}})
    study = ft.Study(space, minimize="error", strategy=ft.Random(), folder=f"{s3}/{tmp_path.name}", seed=0)
    variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    on_ray = ft.RayExecutor(address=address, runtime_env={"env_vars": {**variables, "TMPDIR": str(tmp_path)}})
    study.run(stages(), budget=ft.Budget(trials=6), workers=2, executor=on_ray)
    assert {trial.state for trial in study.trials} == {ft.State.DONE}
    assert study.ledger.saved["cache"] > 0
    assert len(ObjectStore(f"{s3}/{tmp_path.name}/study").folders("stages")) == 2
    assert Path(study.checkpoints.root).exists()


def test_the_log_of_a_killed_worker_comes_back(address, s3, tmp_path):
    def work(trial):
        print("last words")
        os.kill(os.getpid(), 9)

    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", folder=f"{s3}/{tmp_path.name}", seed=0)
    variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    on_ray = ft.RayExecutor(address=address, runtime_env={"env_vars": {**variables, "TMPDIR": str(tmp_path)}})
    study.run(work, budget=ft.Budget(trials=1), executor=on_ray, retries=0)
    (trial,) = study.trials
    assert "killed by SIGKILL" in trial.failure.reason
    assert trial.failure.traceback == "last words"
