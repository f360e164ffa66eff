"""The trackers of a study file: its tables [[trackers]], checked when it is read and made when it is run."""

from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from farthing.cli.file_work import make_importable
from farthing.errors import InvalidArgument
from farthing.names import TRACKER, find_class
from farthing.running.tracking import Tracker, read_trackers
from farthing.validation import refuse_unknown, shown


def read_tracker_tables(tables: Mapping[str, Any], *, folder: Path) -> tuple[dict[str, Any], ...]:
    """The tables, once it is certain that they name trackers and arguments of theirs; their libraries may be absent."""
    given = tables.get("trackers", [])
    if not isinstance(given, list) or not all(isinstance(table, Mapping) for table in given):
        raise InvalidArgument(
            f"trackers must be a list of tables, got {shown(given)}. Write [[trackers]] above the name of each."
        )
    for table in given:
        _check(table, folder=folder)
    return tuple(dict(table) for table in given)


def make_trackers(tables: Sequence[Mapping[str, Any]], *, folder: Path) -> tuple[Tracker, ...]:
    made = []
    for table in tables:
        kind, arguments = _class_of(table, folder=folder), {key: one for key, one in table.items() if key != "name"}
        made.append(kind(**arguments))
    return read_trackers(made)


def _check(table: Mapping[str, Any], *, folder: Path) -> None:
    kind = _class_of(table, folder=folder)
    takes = {
        name
        for name, one in signature(kind).parameters.items()
        if one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    }
    refuse_unknown(table, ["name", *sorted(takes)], what=f"Keys of a tracker {table['name']}", error=InvalidArgument)


def _class_of(table: Mapping[str, Any], *, folder: Path) -> type[Any]:
    name = table.get("name")
    if not isinstance(name, str):
        raise InvalidArgument(f'A tracker must have a name, got {shown(dict(table))}. Write name = "MLflow".')
    if ":" in name:
        make_importable(folder)
    return find_class(name, TRACKER)
