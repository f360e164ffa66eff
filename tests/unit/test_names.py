"""The table of names: it is complete, and looking a name up imports one module."""

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys

import pytest

import farthing.strategies
from farthing.names import KINDS, Kind, find_class, name_of

LOOK_UP = """
import json, sys
from farthing.strategies import find_strategy
find_strategy("Random")
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def modules() -> list[str]:
    """What a process that looks one strategy up has imported."""
    done = subprocess.run([sys.executable, "-c", LOOK_UP], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def test_looking_up_a_strategy_imports_no_other_strategy_and_no_scipy(modules: list[str]) -> None:
    assert "farthing.strategies.plain.random" in modules
    assert not [name for name in modules if name.split(".")[0] in ("scipy", "numpy")]
    families = [name for name in modules if name.startswith("farthing.strategies.")]
    assert not [name for name in families if name.split(".")[2] not in ("plain", "shared")]
    assert len([name for name in modules if name.startswith("farthing.")]) < 60  # 48 when this was written


def test_reading_the_table_imports_nothing_but_errors() -> None:
    code = "import sys, farthing.names; print(*(name for name in sys.modules if name.startswith('farthing.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"farthing.names", "farthing.errors", "farthing.validation"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.what)
def test_every_name_of_the_table_is_found_and_stored_under_that_name(kind: Kind) -> None:
    for name, home in kind.homes.items():
        found = find_class(name, kind)
        assert (found.__module__, name_of(found)) == (home, name)
        assert callable(getattr(found, kind.method))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.what)
def test_everything_that_is_of_a_kind_is_found_under_the_name_it_is_stored_with(kind: Kind) -> None:
    """One that has no line in the table, as the published form of another, is stored with its module."""
    for module in pkgutil.walk_packages(farthing.strategies.__path__, "farthing.strategies."):
        for name, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            is_declared = cls.__module__ == module.name and hasattr(cls, "__dataclass_fields__")
            if is_declared and callable(getattr(cls, kind.method, None)) and not inspect.isabstract(cls):
                assert find_class(name_of(cls), kind) is cls, f"{name} of {module.name} is not found"
