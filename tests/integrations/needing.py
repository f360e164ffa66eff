"""Says which library a file of tests needs."""

import importlib.util
import os

import pytest


def need(module: str) -> None:
    """Skips the tests of a file without its library, except where all of them must be there."""
    if importlib.util.find_spec(module) is None:
        if "FARTHING_INTEGRATIONS" in os.environ:
            raise ModuleNotFoundError(f"make test-integrations must install {module}")
        pytest.skip(f"{module} is absent; see make test-integrations", allow_module_level=True)
