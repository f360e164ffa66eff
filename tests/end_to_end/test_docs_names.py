"""The tables that say which line of a paper is which line of code name code that is there."""

import importlib
import re
from pathlib import Path

import pytest

import farthing as ft

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = (
    *("acquisition", "caching", "costs", "execution", "files", "models", "plots"),
    *("space", "storage", "strategies", "study", "trials"),
)
EXAMPLES = {"space": ft.Space, "study": ft.Study}
NAME = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")


def named() -> list[tuple[str, str]]:
    pages = sorted(DOCS.rglob("*.md"))
    return [(page.relative_to(DOCS).as_posix(), name) for page in pages for name in NAME.findall(page.read_text())]


def resolves(name: str) -> bool:
    """Whether the longest part of it that is a module has the rest as its attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["farthing", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not hasattr(found, attribute) and attribute not in getattr(found, "__annotations__", {}):
                return False
            found = getattr(found, attribute, None)
        return True
    return False


def test_the_documentation_names_code() -> None:
    assert len(named()) > 40


@pytest.mark.parametrize(("page", "name"), named())
def test_code_that_the_documentation_names_is_there(page: str, name: str) -> None:
    assert resolves(name) or belongs_to_an_example(name)


def belongs_to_an_example(name: str) -> bool:
    """Examples call a study `study` and a space `space`: what follows is an attribute of it."""
    first, attribute, *_ = name.split(".")
    return first in EXAMPLES and hasattr(EXAMPLES[first], attribute)
