"""Storages and studies that nobody closed: what goes out of scope leaves no connection open."""

import gc
import sqlite3
from pathlib import Path

import pytest

import farthing as ft
from farthing.session import session_of
from farthing.storage.sql import SqlStorage


def connection_of(storage: SqlStorage) -> sqlite3.Connection:
    """The one connection that it has, as the driver made it."""
    lent = storage._database.engine.raw_connection()
    found = lent.driver_connection
    lent.close()  # back into the pool
    assert isinstance(found, sqlite3.Connection)
    found.execute("SELECT 1")
    return found


def assert_closed(connection: sqlite3.Connection) -> None:
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")


def test_a_storage_that_goes_out_of_scope_closes_its_connections(tmp_path: Path) -> None:
    storage = SqlStorage(tmp_path / "studies.db")
    connection = connection_of(storage)
    del storage
    assert_closed(connection)


def test_so_does_a_study_that_opened_its_storage(tmp_path: Path) -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0.0, 1.0)}), minimize="error", storage=tmp_path / "study.db")
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=2), executor="inline", progress=False)
    storage = session_of(study).records._storage
    assert isinstance(storage, SqlStorage)
    connection = connection_of(storage)
    del study, storage
    assert_closed(connection)


def test_a_storage_that_was_closed_is_only_closed_once(tmp_path: Path) -> None:
    storage = SqlStorage(tmp_path / "studies.db")
    connection = connection_of(storage)
    storage.close()
    assert_closed(connection)
    del storage
    assert_closed(connection)
