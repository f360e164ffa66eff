"""What several folders of tests share."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from farthing.errors import StorageError
from tests.postgres import PostgresServer

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before NumPy is imported: test workers would only get in each other's way

# Time decides no test: a machine may be busy, and a first example imports SciPy.
settings.register_profile("farthing", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("farthing")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C, which tests press

pytest.register_assert_rewrite("farthing.testing.storage_contract", "farthing.testing.strategy_contract")


def started(server: PostgresServer) -> Iterator[PostgresServer]:
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
