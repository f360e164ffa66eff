"""Every storage keeps the contract."""

from pathlib import Path

import pytest

from farthing.costs import FakeClock
from farthing.storage import MemoryStorage, Storage
from farthing.storage.sql import SqlStorage
from farthing.testing import StorageContract


class TestMemory(StorageContract):
    @pytest.fixture
    def storage(self, clock: FakeClock) -> Storage:
        return MemoryStorage(clock)


class TestSqlite(StorageContract):
    @pytest.fixture
    def storage(self, clock: FakeClock, tmp_path: Path) -> Storage:
        return SqlStorage(tmp_path / "study.db", clock=clock)


class TestPostgreSQL(StorageContract):
    @pytest.fixture
    def storage(self, clock: FakeClock, postgres_url: str) -> Storage:
        return SqlStorage(postgres_url, clock=clock)


class TestPgBouncer(StorageContract):
    """In transaction mode: each transaction has another connection to the server, and leaves nothing there."""

    @pytest.fixture
    def storage(self, clock: FakeClock, pgbouncer_url: str) -> Storage:
        return SqlStorage(pgbouncer_url, clock=clock)
