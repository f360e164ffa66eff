"""Tests against the real libraries. `make test-integrations` has them all; without its library a test is skipped."""

import pytest

FOLDER = "tests/integrations/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The warnings of other people's libraries are theirs: they fail no test here."""
    for item in items:
        if item.nodeid.startswith(FOLDER):
            item.add_marker(pytest.mark.filterwarnings("default"))
