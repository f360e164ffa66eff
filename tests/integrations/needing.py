"""Says which library a file of tests needs."""

import importlib.util
import os

import pytest


def is_there(module: str) -> bool:
    """Whether it can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def need(module: str) -> None:
    """Skips the tests of a file without its library, except where all of them must be there."""
    if not is_there(module):
        if "FARTHING_INTEGRATIONS" in os.environ:
            raise ModuleNotFoundError(f"make test-integrations must install {module}")
        pytest.skip(f"{module} is absent; see make test-integrations", allow_module_level=True)
