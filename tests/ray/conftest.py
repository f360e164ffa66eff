"""A Ray cluster of three nodes on this machine, for the tests in this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("RAY_raylet_start_wait_time_s", "200")  # a busy machine starts nodes slowly
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

ray = pytest.importorskip("ray", reason="needs farthing[ray]: make test-ray")

from ray_nodes import Nodes  # noqa: E402

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker("ray")


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """The head, which takes no work, and two nodes of two cores; one of these has what the tests call GPUs."""
    with Nodes() as started:
        yield started


@pytest.fixture
def address(nodes: Nodes) -> str:
    nodes.repair()
    return nodes.address
