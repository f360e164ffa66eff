"""The page of the threat model names, for each line, tests that are there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat_model.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LINES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| whoever")]


def test_the_page_has_lines_for_each_door() -> None:
    doors = re.findall(r"^## The (\w+)$", PAGE, re.MULTILINE)
    assert doors == ["database", "folder", "bucket", "socket", "page", "agents"]
    assert len(LINES) > 25


@pytest.mark.parametrize("line", LINES)
def test_each_line_names_tests_that_are_there(line: str) -> None:
    named = NAMED.findall(line)
    assert named, "a line of the threat model needs a test"
    assert line.count("::") == len(named), "a test is written as `tests/folder/test_file.py::test_name`"
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"
