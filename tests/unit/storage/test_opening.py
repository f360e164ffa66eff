"""From an address to a storage."""

import subprocess
import sys
from pathlib import Path

import pytest

from farthing.errors import InvalidArgument
from farthing.storage import MemoryStorage, open_storage
from farthing.storage.sql import SqlStorage


def test_nothing_means_memory() -> None:
    assert isinstance(open_storage(None), MemoryStorage)


def test_a_storage_is_itself() -> None:
    storage = MemoryStorage()
    assert open_storage(storage) is storage


@pytest.mark.parametrize(
    "form", ["{folder}/a.db", "{folder}/a.sqlite", "sqlite:///{folder}/a.db", "sqlite:///{folder}/a"]
)
def test_a_file_may_be_named_by_its_path_or_by_a_url(tmp_path: Path, form: str) -> None:
    storage = open_storage(form.format(folder=tmp_path))
    assert isinstance(storage, SqlStorage)
    assert len(list(tmp_path.glob("a*"))) >= 1
    storage.close()


def test_a_path_may_hold_what_means_something_in_urls(tmp_path: Path) -> None:
    path = tmp_path / "what?really#100%" / "study.db"
    path.parent.mkdir()
    open_storage(path).close()
    assert path.exists()


def test_files_of_a_study_go_beside_its_database(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "study.db")
    assert storage.folder == tmp_path / "study.db.files"
    storage.close()
    assert MemoryStorage().folder is None


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mysql://user:secret@host/database", "got the scheme 'mysql'"),
        ("study.csv", "got 'study.csv'"),
        ("", "got '.'"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("sqlite:///study.db?mode=ro", "got mode"),
        ("sqlite:///study.db?synchronous=sometimes", "got 'sometimes'"),
        ("postgresql://user:secret@host:port/database", "must be a URL"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(address: str, said: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        open_storage(address)
    assert said in str(refusal.value)
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_importing_storage_imports_neither_sqlalchemy_nor_numerics() -> None:
    program = "import sys, farthing.storage; print({'sqlalchemy', 'numpy', 'scipy'} & set(sys.modules))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "set()"
