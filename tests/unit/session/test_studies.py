"""The studies of a storage: listed, deleted, and closed by a `with` block."""

import os
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import StudyMismatch, StudyNotFound
from farthing.execution.folder_mark import MARK
from farthing.session.studies import Deleted
from farthing.storage import open_storage

SPACE = ft.Space({"x": ft.Float(0, 1)})


def leave_a_checkpoint(trial: ft.RunningTrial) -> float:
    (trial.checkpoint_dir / "weights").write_text("some")
    return trial.params["x"]


def run_one(storage, name: str) -> Path:
    with ft.Study(SPACE, minimize="error", storage=storage, name=name, strategy=ft.Random()) as study:
        study.run(leave_a_checkpoint, budget=ft.Budget(trials=1), executor="inline")
        return study.checkpoints.root


@pytest.mark.parametrize("is_open", [False, True])
def test_studies_are_listed_by_name_and_deleted_with_their_files(tmp_path: Path, is_open: bool) -> None:
    address = f"sqlite:///{tmp_path}/studies.db"
    kept, gone = run_one(address, "kept"), run_one(address, "gone")
    storage = open_storage(address) if is_open else address
    assert [(line.record.name, line.trials[ft.State.DONE]) for line in ft.studies(storage)] == [
        ("gone", 1),
        ("kept", 1),
    ]
    freed = sum(path.stat().st_size for path in gone.rglob("*") if path.is_file())
    assert ft.delete_study("gone", storage) == Deleted(freed=freed)
    assert freed > 0
    assert (gone.exists(), kept.exists()) == (False, True)
    assert [line.record.name for line in ft.studies(storage)] == ["kept"]  # a storage that was given open stays open


def test_files_in_a_folder_without_the_studys_mark_are_left_and_named(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/studies.db"
    folder = run_one(address, "gone")
    (folder / MARK).unlink()
    files = sorted(folder.rglob("*"))
    deleted = ft.delete_study("gone", address)
    assert (deleted, ft.studies(address)) == (Deleted(left=folder), [])
    assert "does not carry its mark" in str(deleted)
    assert sorted(folder.rglob("*")) == files


def test_a_study_that_is_not_there_cannot_be_deleted(tmp_path: Path) -> None:
    with pytest.raises(StudyNotFound):
        ft.delete_study("nobody", tmp_path / "studies.db")


def is_open(database: Path) -> bool:
    """Whether this process has the file open."""
    return str(database) in {os.path.realpath(descriptor) for descriptor in Path("/proc/self/fd").iterdir()}


def test_a_study_closes_the_storage_that_it_opened(tmp_path: Path) -> None:
    database = tmp_path / "study.db"
    with ft.Study(SPACE, minimize="error", storage=database) as study:
        study.add({"x": 0.5}, 0.5)
        assert is_open(database)
    assert not is_open(database)
    with ft.Study.load("study", database):
        assert is_open(database)
    assert not is_open(database)


def test_a_study_leaves_a_storage_open_that_it_was_given(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "study.db")
    with ft.Study(SPACE, minimize="error", storage=storage, name="first") as study:
        study.add({"x": 0.5}, 0.5)
    with ft.Study.load("first", storage):
        pass
    assert is_open(tmp_path / "study.db")
    storage.close()
    assert not is_open(tmp_path / "study.db")


def test_a_study_that_cannot_be_had_leaves_no_storage_open(tmp_path: Path) -> None:
    database = tmp_path / "study.db"
    ft.Study(SPACE, minimize="error", storage=database).close()
    with pytest.raises(StudyNotFound):
        ft.Study.load("another", database)
    with pytest.raises(StudyMismatch):
        ft.Study(SPACE, maximize="error", storage=database)
    assert not is_open(database)


def test_an_online_run_closes_the_storage_that_it_opened(tmp_path: Path) -> None:
    database = tmp_path / "study.db"
    tuner = ft.OnlineTuner(ft.Space({"arm": ft.Choice("a", "b")}), rounds=3, maximize="score", storage=database)
    next(tuner).observe(0.5)
    assert is_open(database)
    tuner.close()
    assert not is_open(database)
