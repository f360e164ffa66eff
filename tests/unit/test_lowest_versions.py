"""`constraints-lowest.txt` has the versions from which on pyproject.toml says that the package works."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TESTED = ("dashboard", "demo", "pandas", "plot", "postgres")
"""The extras of users among those of `make test-lowest`."""


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    names = [line.split("==") for line in lines if not line.startswith("#")]
    return {name: Version(version) for name, version in names}


def bounds() -> dict[str, Version]:
    given = [*PROJECT["dependencies"], *(text for extra in TESTED for text in EXTRAS[extra])]
    found = [Requirement(text) for text in given]
    return {each.name: lowest(each) for each in found if each.name != PROJECT["name"]}


def lowest(requirement: Requirement) -> Version:
    [only] = requirement.specifier
    assert only.operator == ">="
    return Version(only.version)


def test_the_lowest_versions_that_are_tested_are_those_that_are_promised() -> None:
    parts = {"psycopg-binary": bounds()["psycopg"]}
    assert pins() == {**bounds(), **parts}
