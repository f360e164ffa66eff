"""A dashboard of the stored studies, and a client that has its token."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from farthing.dashboard.application import application
from farthing.dashboard.reading import ShownStudies
from farthing.dashboard.security import Access
from farthing.storage import Storage, open_storage

TOKEN = "a-token-for-tests-only"
SECRET = "what-only-our-page-holds"
STORED = Path(__file__).parents[2] / "data" / "stored_studies.db"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return Path(shutil.copy(STORED, tmp_path / "stored.db"))


@pytest.fixture
def storage(database: Path) -> Iterator[Storage]:
    opened = open_storage(database)
    yield opened
    opened.close()


def client_of(
    storage: Storage, *, may_change: bool = False, with_token: bool = True, follows: bool = False, **access
) -> TestClient:
    app = application(
        ShownStudies(storage, place="stored.db", may_change=may_change, follows=follows),
        Access(TOKEN, access.pop("port", 8000), change_secret=SECRET, **access),
    )
    headers = {"authorization": f"Bearer {TOKEN}"} if with_token else {}
    return TestClient(app, base_url="http://localhost:8000", headers=headers, raise_server_exceptions=False)


@pytest.fixture
def client(storage: Storage) -> TestClient:
    return client_of(storage)


@pytest.fixture
def stranger(storage: Storage) -> TestClient:
    """Without a token, of a server that allows changes."""
    return client_of(storage, may_change=True, with_token=False)
