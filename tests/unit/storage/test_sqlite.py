"""What is particular to a SQLite file."""

import multiprocessing
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from farthing.errors import StorageError
from farthing.space import Float, Space
from farthing.storage import StudyRecord, engines
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Measurement, Outcome, Problem, State, Suggestion

PROBLEM = Problem(Space({"x": Float(0.0, 1.0)}))
SUGGESTION = Suggestion({"x": 0.5})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SqlStorage]:
    storage = SqlStorage(path)
    storage.create_study(StudyRecord("study", PROBLEM))
    yield storage
    storage.close()


def full_trial(storage: SqlStorage) -> None:
    (trial,) = storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    attempt = Attempt(trial.number, trial.attempt)
    storage.record("study", attempt, [Measurement(0.5, cost={"training": 1.0})], lease=60)
    storage.close_trial("study", attempt, Outcome(State.DONE, value=0.5))


def pragma(storage: SqlStorage, name: str) -> object:
    with storage._database.engine.connect() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()


def test_what_is_acknowledged_survives_a_power_cut_by_default(storage: SqlStorage) -> None:
    assert (pragma(storage, "journal_mode"), pragma(storage, "synchronous")) == ("wal", 2)
    assert pragma(storage, "foreign_keys") == 1
    assert pragma(storage, "busy_timeout") == engines.BUSY_TIMEOUT * 1000 >= 60_000


def test_speed_may_be_chosen_over_power_cuts(path: Path) -> None:
    storage = SqlStorage(f"sqlite:///{path}?synchronous=normal")
    assert pragma(storage, "synchronous") == 1
    storage.close()


def test_a_full_trial_is_three_commits(storage: SqlStorage) -> None:
    commits: list[object] = []
    event.listen(storage._database.engine, "commit", commits.append)
    full_trial(storage)
    assert len(commits) == 3


def test_a_writer_waits_for_its_turn(storage: SqlStorage, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, other.execute, ["COMMIT"]).start()
    full_trial(storage)
    assert len(storage.history("study").trials) == 1
    other.close()


def test_a_file_that_is_never_free_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BUSY_TIMEOUT", 0.01)
    storage = SqlStorage(path)
    storage.create_study(StudyRecord("study", PROBLEM))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="takes one writer at a time"):
        full_trial(storage)
    other.execute("ROLLBACK")
    full_trial(storage)
    other.close()
    storage.close()


def test_reading_does_not_wait_for_a_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BUSY_TIMEOUT", 0.01)  # to wait would be an error
    storage = SqlStorage(path)
    storage.create_study(StudyRecord("study", PROBLEM))
    full_trial(storage)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE study SET version = 99")
    assert storage.history("study").version == 3
    assert storage.claim_trial("study", owner="ada", lease=60) is None
    assert storage.sweep("study") == []
    other.execute("ROLLBACK")
    other.close()
    storage.close()


def test_a_full_disk_is_an_error_and_loses_nothing(storage: SqlStorage) -> None:
    full_trial(storage)
    large = Suggestion({"x": 0.5}, note="x" * 100_000)
    set_page_limit(storage, int(str(pragma(storage, "page_count"))) + 2)
    with pytest.raises(StorageError, match="A storage needs room to write") as refusal:
        storage.open_trials("study", [large], owner="ada", lease=60)
    assert "\n" not in str(refusal.value)
    assert len(storage.history("study").trials) == 1
    set_page_limit(storage, 100_000)
    (trial,) = storage.open_trials("study", [large], owner="ada", lease=60)
    assert trial.number == 1
    assert storage.check() == []


def set_page_limit(storage: SqlStorage, pages: int) -> None:
    """The storage has one connection as long as it is used from one thread."""
    with storage._database.engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


LIMITED = """
import resource, signal, sys
from farthing.errors import StorageError
from farthing.storage.sql import SqlStorage
from farthing.trials import Suggestion
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
storage = SqlStorage(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
large = Suggestion({"x": 0.5}, note="x" * 20_000)
acknowledged = 0
try:
    while True:
        storage.open_trials("study", [large], owner="ada", lease=60)
        acknowledged += 1
except StorageError as error:
    print(acknowledged, "needs room" in str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
storage.open_trials("study", [large], owner="ada", lease=60)
print(len(storage.history("study").trials), storage.check())
"""


def test_a_file_that_may_not_grow_is_an_error_and_loses_nothing(storage: SqlStorage, path: Path) -> None:
    finished = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True)
    first, second = finished.stdout.splitlines()
    acknowledged, was_explained = first.split()
    assert was_explained == "True"
    assert int(acknowledged) > 0
    assert second == f"{int(acknowledged) + 1} []"


def trial_in_child(storage: SqlStorage) -> None:
    full_trial(storage)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own(storage: SqlStorage) -> None:
    full_trial(storage)
    child = multiprocessing.get_context("fork").Process(target=trial_in_child, args=(storage,))
    child.start()
    child.join()
    assert child.exitcode == 0
    full_trial(storage)
    assert [trial.state for trial in storage.history("study").trials] == [State.DONE] * 3
    assert storage.check() == []


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_until_the_file_was_looked_at(storage: SqlStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork closes all connections, and the log is deleted with the last: who looked meanwhile would miss it."""
    file = storage._database._file
    assert file is not None
    check, is_looking, order = file.check, threading.Event(), list[str]()

    def check_slowly(*, is_open: bool = False) -> None:
        if is_open and not is_looking.is_set():
            is_looking.set()
            time.sleep(0.5)
            order.append("looked")
        check(is_open=is_open)

    monkeypatch.setattr(file, "check", check_slowly)
    thread = threading.Thread(target=full_trial, args=(storage,))
    thread.start()
    assert is_looking.wait(60)
    child = multiprocessing.get_context("fork").Process(target=trial_in_child, args=(storage,))
    child.start()
    order.append("forked")
    child.join()
    thread.join()
    assert (order, child.exitcode) == (["looked", "forked"], 0)


def test_ctrl_c_during_a_statement_is_no_deleted_file(storage: SqlStorage, path: Path) -> None:
    """The connection is closed then, and SQLite deletes its log with the last one."""

    def interrupted(*_: object) -> None:
        event.remove(storage._database.engine, "do_execute", interrupted)
        signal.raise_signal(signal.SIGINT)

    full_trial(storage)
    event.listen(storage._database.engine, "do_execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        storage.history("study")
    assert not Path(f"{path}-wal").exists()
    assert len(storage.history("study").trials) == 1
