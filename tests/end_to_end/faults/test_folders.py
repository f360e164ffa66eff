"""A study's files are its own: no other study, and no other database, writes to or deletes them."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.errors import InvalidArgument
from farthing.execution.folder_mark import MARK, Mark, mark_of
from farthing.session import session_of
from farthing.session.folder import folder_name
from farthing.storage import open_storage

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"n": ft.Fidelity(1, 9, integer=True, trace=True)})


def leave_checkpoint(trial):
    (trial.checkpoint_dir / "who").write_text("mine")
    return trial.params["x"]


def run(storage, *, name: str = "study", trials: int = 3, **options) -> ft.Study:
    study = ft.Study(SPACE, minimize="e", storage=storage, name=name, strategy=ft.ASHA(), seed=0, **options)
    study.run(leave_checkpoint, budget=ft.Budget(trials=trials), executor="inline")
    return study


def kept(study: ft.Study) -> list[bool]:
    """Whether each checkpoint that the study knows of is there."""
    named = [trial.checkpoint for trial in study.trials if trial.checkpoint]
    return [(study.checkpoints.path(name) / "who").exists() for name in named]


def delete(database: Path, name: str):
    return CliRunner().invoke(program, ["delete", name, "--yes", "--storage", str(database)])


def test_names_that_differ_by_a_space_have_folders_of_their_own(tmp_path):
    spaced, joined = run(tmp_path / "c.db", name="my run"), run(tmp_path / "c.db", name="my_run")
    assert spaced.checkpoints.root != joined.checkpoints.root
    assert kept(spaced)
    assert all([*kept(spaced), *kept(joined)])


def test_a_second_database_is_refused_the_folder_of_the_first(tmp_path):
    first = run(tmp_path / "a.db", folder=tmp_path / "files")
    with pytest.raises(InvalidArgument, match="folder=") as refused:
        run(tmp_path / "b.db", folder=tmp_path / "files")
    assert "'study'" in str(refused.value)
    assert all(kept(first))


def test_a_folder_that_holds_somebody_elses_files_is_refused(tmp_path):
    photos = tmp_path / "files" / "study" / "000001"
    photos.mkdir(parents=True)
    (photos / "holiday.jpg").write_text("dear to somebody")
    with pytest.raises(InvalidArgument, match="empty"):
        run(tmp_path / "a.db", folder=tmp_path / "files")
    assert (photos / "holiday.jpg").exists()


def test_a_kill_while_the_folder_is_marked_does_not_make_it_anothers(tmp_path):
    root = tmp_path / "files" / "study"
    root.mkdir(parents=True)
    (root / f"{MARK}.0123456789abcdef").write_text('{"iden')
    study = run(tmp_path / "a.db", folder=tmp_path / "files")
    assert study.checkpoints.root == root
    assert kept(study)


def test_studies_of_two_servers_that_begin_together_have_folders_of_their_own(postgres_urls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"minimize": "e", "strategy": ft.ASHA(), "seed": 0}
    studies = [ft.Study(SPACE, storage=url, **options) for url, _ in zip(postgres_urls, range(2), strict=False)]
    assert len({study.checkpoints.root for study in studies}) == 2  # both were found before either was marked
    for study in studies:
        study.run(leave_checkpoint, budget=ft.Budget(trials=3), executor="inline")
    for study in studies:
        assert all(kept(study))
        study.close()


def test_what_a_deleted_database_left_is_neither_used_nor_removed(tmp_path):
    left = run(tmp_path / "a.db").checkpoints.root
    for file in tmp_path.glob("a.db*"):
        if file.is_file():
            file.unlink()
    again = run(tmp_path / "a.db")
    assert again.checkpoints.root != left
    assert list(left.rglob("who"))
    assert all(kept(again))


def test_studies_in_memory_may_be_given_one_place_again_and_again(tmp_path):
    roots = {run(None, folder=tmp_path).checkpoints.root for _ in range(3)}
    assert len(roots) == 3


def test_a_study_that_is_continued_finds_its_folder(tmp_path):
    first = run(tmp_path / "a.db", folder=tmp_path / "files")
    again = run(tmp_path / "a.db", folder=tmp_path / "files", trials=5)
    loaded = ft.Study.load("study", tmp_path / "a.db")
    assert first.checkpoints.root == again.checkpoints.root == loaded.checkpoints.root
    assert all(kept(loaded))


def test_a_database_that_was_moved_with_its_files_finds_them(tmp_path):
    run(tmp_path / "a.db").close()
    (tmp_path / "elsewhere").mkdir()
    for path in tmp_path.glob("a.db*"):
        shutil.move(path, tmp_path / "elsewhere" / path.name.replace("a.db", "b.db"))
    moved = run(tmp_path / "elsewhere" / "b.db", trials=5)
    assert moved.checkpoints.root.parent == tmp_path / "elsewhere" / "b.db.files"
    assert kept(moved)
    assert all(kept(moved))
    assert not (tmp_path / "a.db.files").exists()


def test_a_copy_with_its_files_leaves_those_of_the_original_alone(tmp_path):
    original = run(tmp_path / "a.db")
    original.close()
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
    shutil.copytree(tmp_path / "a.db.files", tmp_path / "copy.db.files")
    assert delete(tmp_path / "copy.db", "study").exit_code == 0
    assert not list((tmp_path / "copy.db.files").rglob("who"))
    assert all(kept(ft.Study.load("study", tmp_path / "a.db")))


def unmark(study: ft.Study, *, stored: Path | None = None) -> None:
    """Makes the study one of a version that knew no marks."""
    (study.checkpoints.root / MARK).unlink()
    session_of(study).remember(identity=None, **({} if stored is None else {"folder": str(stored)}))
    study.close()


def test_an_old_study_adopts_the_folder_that_it_names(tmp_path):
    old = run(tmp_path / "a.db")
    unmark(old)
    again = run(tmp_path / "a.db", trials=5)
    assert again.checkpoints.root == old.checkpoints.root
    assert mark_of(again.checkpoints.root) is not None
    assert all(kept(again))


def test_of_two_old_studies_in_one_folder_the_second_is_refused(tmp_path):
    shared = tmp_path / "a.db.files" / "one"
    one, other = run(tmp_path / "a.db", name="one"), run(tmp_path / "a.db", name="other")
    unmark(one)
    unmark(other, stored=shared)
    run(tmp_path / "a.db", name="one", trials=5)
    with pytest.raises(InvalidArgument, match="'one'"):
        run(tmp_path / "a.db", name="other", trials=5)
    way_out = run(tmp_path / "a.db", name="other", trials=5, folder=tmp_path / "elsewhere")
    assert way_out.checkpoints.root.parent == tmp_path / "elsewhere"


def test_delete_removes_the_folder_that_carries_the_studys_mark(tmp_path):
    root = run(tmp_path / "a.db").checkpoints.root
    assert delete(tmp_path / "a.db", "study").exit_code == 0
    assert not root.exists()


@pytest.mark.parametrize("mark", [None, Mark("0123", "somebody's")])
def test_delete_leaves_a_folder_without_the_studys_mark(tmp_path, mark):
    victim = tmp_path / "home" / "000001"
    victim.mkdir(parents=True)
    (victim / "thesis.tex").write_text("years of work")
    if mark is not None:
        (victim.parent / MARK).write_text(json.dumps({"identity": mark.identity, "study": mark.study}))
    study = run(tmp_path / "a.db")
    session_of(study).remember(folder=str(victim.parent))
    study.close()
    result = delete(tmp_path / "a.db", "study")
    assert result.exit_code == 0
    assert str(victim.parent) in result.output
    assert (victim / "thesis.tex").exists()


@pytest.mark.parametrize("damage", ["", "[1]", '{"identity": 3}', "not json"])
def test_a_damaged_mark_is_nobodys(tmp_path, damage):
    root = run(tmp_path / "a.db").checkpoints.root
    (root / MARK).write_text(damage)
    with pytest.raises(InvalidArgument, match="mark"):
        run(tmp_path / "a.db", trials=5)


NAMES = ["é" * 100, "試" * 60, "a" * 200, "..", ".", "../../../evil", "/etc/passwd", "a/b", "%2E%2E", "\U0001f600" * 40]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_length_and_script_have_folders(tmp_path, name):
    study = run(tmp_path / "a.db", name=name)
    assert study.checkpoints.root.parent == tmp_path / "a.db.files"
    assert kept(study)
    assert all(kept(study))


@given(st.sets(st.text(min_size=1, max_size=200).filter(str.isprintable), min_size=2, max_size=20))
@settings(suppress_health_check=list(HealthCheck))
def test_different_names_have_different_folders_that_any_disk_can_hold(names):
    folders = {folder_name(name) for name in names}
    assert len(folders) == len(names)
    assert all(len(folder.encode()) <= 100 and folder.isascii() and folder[0] not in ".-" for folder in folders)


def test_asking_and_telling_leaves_no_folder_behind_where_no_file_is_written(tmp_path):
    study = ft.Study(SPACE, minimize="e", storage=tmp_path / "a.db", strategy=ft.ASHA(), seed=0)
    study.tell(study.ask(), 1.0)
    assert not (tmp_path / "a.db.files").exists()


def test_reading_a_study_writes_nothing(tmp_path):
    run(tmp_path / "a.db").close()
    shutil.rmtree(tmp_path / "a.db.files")
    before = open_storage(tmp_path / "a.db").load_study("study").settings
    loaded = ft.Study.load("study", tmp_path / "a.db")
    assert loaded.checkpoints.disk_use() == 0
    assert open_storage(tmp_path / "a.db").load_study("study").settings == before
    assert not (tmp_path / "a.db.files").exists()
