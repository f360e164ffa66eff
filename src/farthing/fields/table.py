"""The page of arguments, from the declarations: `python -m farthing.fields.table > docs/guides/arguments.md`."""

import sys
from collections.abc import Iterator
from typing import Any

from farthing.fields.declaration import Argument, arguments_of
from farthing.names import KINDS, Kind, find_class

OPENING = """# Arguments

Every argument of every strategy and query rule. `python -m farthing.fields.table` writes this page from the fields
themselves, which also give the checks, the error messages, and what may stand in a study file."""

HEADINGS = {"a strategy": "Strategies", "an online strategy": "Online strategies", "a query rule": "Query rules"}


def page() -> str:
    """The whole page, in Markdown."""
    return "\n".join([OPENING, *(line for kind in KINDS for line in _section(kind))]) + "\n"


def _section(kind: Kind) -> Iterator[str]:
    yield f"\n## {HEADINGS[kind.what]}\n"
    yield "| | argument | must be | default |"
    yield "|---|---|---|---|"
    for name in sorted(kind.homes):
        yield from _rows(name, arguments_of(find_class(name, kind)))


def _rows(name: str, arguments: tuple[Argument, ...]) -> Iterator[str]:
    if not arguments:
        yield f"| `{name}` | none | | |"
    for argument in arguments:
        default = "required" if argument.is_required else f"`{_code(argument.default)}`"
        yield f"| `{name}` | `{argument.name}` | {argument.rule.words.replace('|', ' or ')} | {default} |"


def _code(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


if __name__ == "__main__":
    sys.stdout.write(page())
