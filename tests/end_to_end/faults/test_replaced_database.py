"""A database that is deleted, replaced or cut short under a run: nothing more is acknowledged."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

import farthing as ft
from farthing.errors import StorageError
from farthing.storage import StudyRecord
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Measurement, Outcome, Problem, State, Suggestion

SPACE = ft.Space({"x": ft.Float(0, 1)})
SUGGESTION = Suggestion({"x": 0.5})


def files(path: Path) -> list[Path]:
    return [path, Path(f"{path}-wal"), Path(f"{path}-shm")]


def delete_all(path: Path) -> None:
    for file in files(path):
        file.unlink()


def delete_the_database(path: Path) -> None:
    path.unlink()


def delete_the_log(path: Path) -> None:
    files(path)[1].unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    SqlStorage(other).close()
    other.rename(path)


def replace_the_log(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(files(path)[1], copy)
    copy.rename(files(path)[1])


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def truncate_the_log(path: Path) -> None:
    os.truncate(files(path)[1], 0)


DAMAGES = [
    delete_all,
    delete_the_database,
    delete_the_log,
    move_away,
    replace,
    replace_the_log,
    truncate,
    truncate_the_log,
]
by_name = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SqlStorage]:
    """With one trial that runs, a log that is not empty, and a file that has been written back to."""
    storage = SqlStorage(path)
    storage.create_study(StudyRecord("study", Problem(SPACE)))
    storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA wal_checkpoint(PASSIVE)")
    other.close()
    storage.record("study", Attempt(0, 1), [Measurement(0.5)], lease=60)
    yield storage
    storage.close()


@by_name
@pytest.mark.parametrize(
    "write",
    [
        lambda storage: storage.record("study", Attempt(0, 1), [Measurement(0.5, sequence=1)], lease=60),
        lambda storage: storage.open_trials("study", [SUGGESTION], owner="ada", lease=60),
        lambda storage: storage.close_trial("study", Attempt(0, 1), Outcome(State.DONE, value=0.5)),
    ],
    ids=["record", "open", "close"],
)
def test_nothing_is_acknowledged_afterwards(
    storage: SqlStorage, path: Path, damage: Callable[[Path], None], write: Callable[[SqlStorage], object]
) -> None:
    damage(path)
    for _ in range(2):
        with pytest.raises(StorageError, match="must stay as it is while it is used") as refusal:
            write(storage)
        assert str(path) in str(refusal.value)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("damage", [delete_all, delete_the_database, delete_the_log, replace])
def test_nothing_is_acknowledged_that_was_being_written(
    storage: SqlStorage, path: Path, damage: Callable[[Path], None]
) -> None:
    event.listen(storage._database.engine, "commit", lambda _: damage(path), once=True)
    with pytest.raises(StorageError, match="must stay as it is while it is used"):
        storage.record("study", Attempt(0, 1), [Measurement(0.5, sequence=1)], lease=60)


@pytest.mark.parametrize("damage", [delete_all, replace])
def test_a_run_ends_before_the_next_acknowledgement(path: Path, damage: Callable[[Path], None]) -> None:
    study = ft.Study(SPACE, minimize="error", storage=path, strategy=ft.Random())
    acknowledged = []

    def note(study: ft.Study, trial: ft.Trial) -> None:
        acknowledged.append(trial.number)
        if trial.number == 2:
            damage(path)

    with pytest.raises(StorageError, match="must stay as it is while it is used"):
        study.run(lambda trial: 0.5, budget=ft.Budget(trials=20), callbacks=[note], executor="inline")
    assert acknowledged == [0, 1, 2]
    study.close()


def test_a_file_that_is_put_back_is_used_again(storage: SqlStorage, path: Path) -> None:
    move_away(path)
    with pytest.raises(StorageError):
        storage.record("study", Attempt(0, 1), [Measurement(0.5, sequence=1)], lease=60)
    path.with_name("elsewhere.db").rename(path)
    storage.record("study", Attempt(0, 1), [Measurement(0.5, sequence=1)], lease=60)
    assert len(storage.history("study").trials[0].measurements) == 2
    assert storage.check() == []


@pytest.mark.parametrize("statement", ["PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"])
def test_what_other_programs_may_do_is_no_damage(storage: SqlStorage, path: Path, statement: str) -> None:
    large = Suggestion({"x": 0.5}, note="x" * 200_000)
    storage.create_study(StudyRecord("gone", Problem(SPACE)))
    storage.open_trials("gone", [large], owner="ada", lease=60)
    storage.delete_study("gone")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(statement)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    storage.record("study", Attempt(0, 1), [Measurement(0.5, sequence=1)], lease=60)
    assert storage.check() == []


def test_ctrl_c_in_a_statement_is_no_deletion_of_the_log(path: Path) -> None:
    """A connection that was interrupted is closed, and the last who closes a database deletes its log."""
    storage = SqlStorage(path)
    storage.create_study(StudyRecord("study", Problem(SPACE)))

    def interrupt(*_: object) -> None:
        event.remove(storage._database.engine, "before_cursor_execute", interrupt)
        raise KeyboardInterrupt

    event.listen(storage._database.engine, "before_cursor_execute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        storage.history("study")
    assert not files(path)[1].exists()
    assert storage.history("study").trials == []
    storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    assert files(path)[1].exists()
    delete_the_log(path)
    with pytest.raises(StorageError, match="deleted"):
        storage.record("study", Attempt(0, 1), [Measurement(0.5)], lease=60)
