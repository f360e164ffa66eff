"""A Ray cluster of three nodes on this machine, for the tests in this folder."""

import importlib.util
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ray_nodes import Nodes

os.environ.setdefault("RAY_raylet_start_wait_time_s", "200")  # a busy machine starts nodes slowly
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

if importlib.util.find_spec("ray") is None:  # `make test-ray` has it, in an environment of its own
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def nodes() -> "Iterator[Nodes]":
    """The head, which takes no work, and two nodes of two cores; one of these has what the tests call GPUs."""
    from ray_nodes import Nodes

    with Nodes() as started:
        yield started


@pytest.fixture
def address(nodes: "Nodes") -> str:
    nodes.repair()
    return nodes.address
