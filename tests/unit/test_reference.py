"""The reference has every public name: what `farthing` and its public modules offer, and what a page imports."""

import importlib
import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))
MODULES = ("farthing", "farthing.extending", "farthing.rules", "farthing.testing", "farthing.trackers")
DIRECTIVE = re.compile(r"^::: ([\w.]+)$(\n +options:\n +members: (?:false|\[(.*)\]))?", flags=re.MULTILINE)
IMPORT = re.compile(r"^ *from (farthing\.[\w.]+) import ([\w, ]+)$", flags=re.MULTILINE)


def in_the_reference() -> set[str]:
    """What is named, its members that are listed, and `module.*` where none are."""
    found = [directive for page in PAGES for directive in DIRECTIVE.findall(page.read_text())]
    listed = {f"{name}.{member}" for name, _, members in found for member in re.findall(r"\w+", members)}
    return {name for name, _, _ in found} | listed | {f"{name}.*" for name, members, _ in found if not members}


def offered() -> set[str]:
    return {f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__}


def imported_by_pages() -> set[str]:
    lines = [line for page in PAGES for line in IMPORT.findall(page.read_text())]
    return {f"{module}.{name}" for module, names in lines for name in re.findall(r"(\w+)(?: as \w+)?", names)}


def test_the_names_were_found() -> None:
    assert len(offered()) > 80
    assert len(imported_by_pages()) > 15


@pytest.mark.parametrize("name", sorted((offered() | imported_by_pages()) - set(MODULES)))
def test_a_public_name_is_in_the_reference(name: str) -> None:
    module, _, own = name.rpartition(".")
    shown = {name, f"{module}.*", f"farthing.{own}"} & in_the_reference()
    assert shown, f"write `::: {name}` in docs/reference.md"
