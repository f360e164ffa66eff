"""What several folders of tests share."""

import os
import signal
from collections.abc import Iterator
from typing import Protocol, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from farthing.errors import StorageError
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before NumPy is imported: test workers would only get in each other's way

# Time decides no test: a machine may be busy, and a first example imports SciPy.
settings.register_profile("farthing", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("farthing")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C, which tests press

pytest.register_assert_rewrite("farthing.testing.storage_contract", "farthing.testing.strategy_contract")


class Server(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


Started = TypeVar("Started", bound=Server)


def started(server: Started) -> Iterator[Started]:
    """The server while it runs. Where there can be none, tests are skipped, except in CI, where they fail."""
    try:
        server.start()
    except StorageError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, started by the first test that needs it. Quick, so not for tests of power cuts."""
    yield from started(PostgresServer(durable=False))


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """A place of its own on the server."""
    return postgres.new_schema()


@pytest.fixture
def postgres_urls(postgres: PostgresServer) -> Iterator[str]:
    """As many places of their own as a test asks for."""
    return (postgres.new_schema() for _ in iter(int, 1))


@pytest.fixture(scope="session")
def pgbouncer(postgres: PostgresServer) -> Iterator[PgBouncer]:
    """A pool of three connections for each database, which forgets those that are idle: tests have many databases."""
    yield from started(PgBouncer(postgres, pool=3, server_idle_timeout=1))


@pytest.fixture
def pgbouncer_url(pgbouncer: PgBouncer) -> str:
    """A database of its own, by way of the pool."""
    return pgbouncer.new_database()


@pytest.fixture
def pgbouncer_urls(pgbouncer: PgBouncer) -> Iterator[str]:
    """As many of them as a test asks for."""
    return (pgbouncer.new_database() for _ in iter(int, 1))
