"""python -m benchmarks.tuning.constants COMMIT …: the options of `TraceKG` and the numbers its folder names.

For each commit, and for the source as it is now, how many there are; then those that are gone and those that are new
since each of them. A number is a name in capitals, at the head of a module, whose value has a number in it.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.markdown import table
from benchmarks.problems.data import REPOSITORY

FOLDERS = ("src/farthing/strategies/multifidelity", "src/farthing/systems/multifidelity")
"""Where the folder is, and was."""
NOW = "now"


class Named(NamedTuple):
    """The values of the numbers by name, as they are written, and the options with their defaults."""

    numbers: Mapping[str, str]
    options: Mapping[str, str]


def named_at(commit: str) -> Named:
    modules = [ast.parse(source) for source in _sources(commit)]
    numbers = {name: ast.unparse(value) for module in modules for name, value in _assigned(module.body)}
    strategy = next(one for module in modules for one in module.body if _is_strategy(one))
    return Named({name: value for name, value in numbers.items() if name.isupper()}, dict(_options(strategy)))


def _sources(commit: str) -> list[str]:
    if commit == NOW:
        return [path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / FOLDERS[0]).glob("*.py"))]
    files = _git("ls-tree", "-r", "--name-only", commit, *FOLDERS).split()
    return [_git("show", f"{commit}:{file}") for file in files if file.endswith(".py")]


def _git(*arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout


def _is_strategy(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ClassDef) and statement.name == "TraceKG"


def _assigned(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Names and values that have a number in them."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = list(zip(names, values, strict=True))
            case ast.Assign(targets=[name], value=value) | ast.AnnAssign(target=name, value=ast.expr() as value):
                pairs = [(name, value)]
            case _:
                pairs = []
        yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name) and _has_number(value))


def _has_number(value: ast.expr) -> bool:
    found = (one.value for one in ast.walk(value) if isinstance(one, ast.Constant))
    return any(isinstance(one, int | float) and not isinstance(one, bool) for one in found)


def _options(strategy: ast.stmt) -> Iterator[tuple[str, str]]:
    """The fields of the dataclass."""
    assert isinstance(strategy, ast.ClassDef)
    for one in strategy.body:
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if not ast.unparse(one.annotation).startswith("ClassVar"):
                    yield name, ast.unparse(value)


def main(commits: Sequence[str]) -> int:
    named = {commit: named_at(commit) for commit in (*commits, NOW)}
    print(
        table(
            [
                ["", *named],
                ["numbers", *(str(len(one.numbers)) for one in named.values())],
                ["options", *(str(len(one.options)) for one in named.values())],
            ]
        )
    )
    for commit in commits:
        for what, before, now in zip(("numbers", "options"), named[commit], named[NOW], strict=True):
            print(f"\n{what} gone since {commit}: {_listed(before, without=now)}.")
            print(f"{what} new since {commit}: {_listed(now, without=before)}.")
    print(f"\nnumbers now: {_listed(named[NOW].numbers, without={})}.")
    return 0


def _listed(names: Mapping[str, str], *, without: Mapping[str, str]) -> str:
    return ", ".join(f"`{name} = {value}`" for name, value in names.items() if name not in without) or "none"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
