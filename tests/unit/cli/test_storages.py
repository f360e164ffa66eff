"""Which storage and which study a command takes when it is told little."""

import os
from pathlib import Path

import pytest

import farthing as ft
from farthing.cli.storages import address_of, address_to_read, address_to_write, databases_in
from farthing.errors import StorageError

SPACE = ft.Space({"x": ft.Float(0, 1)})


def make_study(path: str, *names: str) -> None:
    for name in names or ("study",):
        ft.Study(SPACE, minimize="error", storage=path, name=name).close()


def test_the_only_database_of_the_folder_is_found_among_other_files(folder: Path) -> None:
    make_study("mine.db")
    (folder / "notes.db").write_text("no database")
    (folder / "empty.db").touch()

    assert databases_in(folder) == [folder / "mine.db"]
    assert address_to_read(None).file == folder / "mine.db"


def test_of_several_databases_none_is_guessed_and_all_are_listed(folder: Path) -> None:
    make_study("a.db")
    make_study("b.db")

    with pytest.raises(StorageError, match=r"got 2: a.db, b.db.*--storage"):
        address_to_read(None)


def test_the_environment_names_the_storage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_study("a.db")
    make_study("b.db")
    monkeypatch.setenv("FARTHING_STORAGE", "b.db")

    assert address_to_read(None).file == folder / "b.db"
    assert address_to_read("a.db").file == folder / "a.db"


def test_a_new_study_goes_where_the_command_the_file_or_the_environment_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARTHING_STORAGE", "environment.db")

    assert address_to_write("option.db", "sqlite:///file.db").file == folder / "option.db"
    assert address_to_write(None, "sqlite:///file.db").file == folder / "file.db"
    assert address_to_write(None, None).file == folder / "environment.db"
    monkeypatch.delenv("FARTHING_STORAGE")
    assert address_to_write(None, None).file == folder / "farthing.db"


def test_an_address_does_not_move_with_the_current_folder(folder: Path) -> None:
    address = address_of("sqlite:///a.db?synchronous=normal")
    (folder / "elsewhere").mkdir()
    os.chdir(folder / "elsewhere")

    assert address.place == f"sqlite:///{folder}/a.db?synchronous=normal"
    assert str(address) == str(folder / "a.db")


def test_a_password_is_never_shown() -> None:
    address = address_of("postgresql://me:secret@host:5432/tuning")

    assert "secret" in str(address.place)
    assert str(address) == "postgresql://me:***@host:5432/tuning"


def test_later_commands_are_told_the_storage_only_where_they_would_not_find_it(folder: Path) -> None:
    make_study("a.db")
    assert address_of("a.db").option == ""

    make_study("b.db")
    assert address_of("a.db").option == " --storage a.db"


def test_the_only_study_needs_no_name(farthing) -> None:
    make_study("mine.db", "first")

    assert farthing("show").output.startswith("first: minimize error")


def test_of_several_studies_one_must_be_named(farthing) -> None:
    make_study("mine.db", "first", "second")

    result = farthing("show")

    assert result.exit_code == 1
    assert "got 2: 'first', 'second'" in result.stderr
