"""The size of the source only falls: a commit that makes it smaller lowers these numbers.

They rise only in a commit that adds a feature, whose message names the lines that it needs.
"""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import farthing

SOURCE = Path(farthing.__file__).parent
SHORT = 60
"""Lines up to which a module that only one other imports is a paragraph of that one."""

SIZES = {
    "lines": 62_863,
    "modules": 326,
    "short modules with one importer": 1,
    "class names that stand twice": 3,
    "public names": 57,
    "modules that a run crosses": 78,
    "longest chain of imports": 30,
}


@cache
def trees() -> dict[str, ast.Module]:
    """By the name of the module, or package."""
    names = {path: ".".join(("farthing", *path.relative_to(SOURCE).with_suffix("").parts)) for path in files()}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text(encoding="utf-8")) for path, name in names.items()}


@cache
def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def imported_by(tree: ast.Module) -> set[str]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {name for node in found for name in (str(node.module), *(f"{node.module}.{one.name}" for one in node.names))}


def short_modules() -> list[str]:
    importers = Counter(name for tree in trees().values() for name in imported_by(tree))
    named = {path: name for path, name in zip(files(), trees(), strict=True) if path.name != "__init__.py"}
    return [name for path, name in named.items() if importers[name] == 1 and lines_of(path) <= SHORT]


def doubled_classes() -> list[str]:
    nodes = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    counts = Counter(node.name for node in nodes if not node.name.startswith("_"))
    return sorted(name for name, count in counts.items() if count > 1)


@cache
def crossed_modules() -> list[str]:
    """The modules that `study.run(train)` calls, in a process of its own, where nothing is imported yet."""
    program = Path(__file__).with_name("crossing.py")
    found = subprocess.run(
        [sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.split()


def imports_at_the_top(body: list[ast.stmt]) -> Iterator[ast.ImportFrom]:
    """The imports that happen with that of the module: none in functions, and none for type checkers only."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            is_for_checkers = ast.unparse(node.test) == "TYPE_CHECKING"
            yield from imports_at_the_top(node.orelse if is_for_checkers else [*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from imports_at_the_top(node.body)


@cache
def imported_with(module: str) -> frozenset[str]:
    named = [(str(one.module), name.name) for one in imports_at_the_top(trees()[module].body) for name in one.names]
    found = {f"{package}.{name}" if f"{package}.{name}" in trees() else package for package, name in named}
    return frozenset((found & trees().keys()) - {module})


@cache
def chain_from(module: str) -> tuple[str, ...]:
    """The longest chain of imports that begins with that module."""
    return (module, *max(map(chain_from, imported_with(module)), key=len, default=()))


def longest_chain() -> tuple[str, ...]:
    return max(map(chain_from, trees()), key=len)


FOUND: dict[str, Callable[[], int]] = {
    "lines": lambda: sum(map(lines_of, files())),
    "modules": lambda: len(files()),
    "short modules with one importer": lambda: len(short_modules()),
    "class names that stand twice": lambda: len(doubled_classes()),
    "public names": lambda: len(farthing.__all__),
    "modules that a run crosses": lambda: len(crossed_modules()),
    "longest chain of imports": lambda: len(longest_chain()),
}


@pytest.mark.parametrize("what", SIZES)
def test_the_source_does_not_grow(what: str) -> None:
    found, most = FOUND[what](), SIZES[what]
    which: dict[str, Callable[[], object]] = {
        "short modules with one importer": short_modules,
        "class names that stand twice": doubled_classes,
        "modules that a run crosses": crossed_modules,
        "longest chain of imports": longest_chain,
    }
    assert found <= most, (
        f"{what} must be at most {most}, got {found}. Make something smaller, or let the commit that adds a feature "
        f"raise the number here and say why. {which[what]() if what in which else ''}"
    )


ROOT = Path(__file__).parents[2]


def rooms() -> dict[str, tuple[int, int]]:
    """The lines and the modules of each folder of the source."""
    found = {path.relative_to(SOURCE).parts[0] for path in files() if path.parent != SOURCE}
    own = {room: [path for path in files() if path.is_relative_to(SOURCE / room)] for room in found}
    return {room: (sum(map(lines_of, paths)), len(paths)) for room, paths in own.items()}


def test_the_page_on_design_has_the_rooms_and_about_their_sizes() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = {
        room: (int(lines), int(modules))
        for room, lines, modules in re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|", page, re.M)
    }
    assert table.keys() == rooms().keys()
    for room, sizes in rooms().items():
        assert sizes == pytest.approx(table[room], rel=0.1, abs=1), f"write | `{room}` | {sizes[0]} | {sizes[1]} |"
    largest = sorted(table, key=lambda room: -table[room][0])
    assert list(table) == largest
    assert "The three largest are `{}`, `{}` and `{}`".format(*largest) in page


def test_who_contributes_reads_of_the_rooms_that_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^  (\w+)/ ", page, re.M)) == rooms().keys()
