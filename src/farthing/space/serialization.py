"""Spaces as plain tables, the form they have in JSON and in study files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar

from farthing.errors import InvalidSpace
from farthing.space.fidelity import Fidelity
from farthing.space.parameters import Choice, Float, Int, Parameter
from farthing.validation import refuse_unknown, shown

Table: TypeAlias = dict[str, Any]
T = TypeVar("T")

EXAMPLE = "{float = [0.1, 1.0]}"


class ParameterKind(NamedTuple):
    """How tables of one kind are read: which keys there may be besides the list, and what is made of them."""

    keys: tuple[str, ...]
    make: Callable[..., Any]


PARAMETERS = {
    "float": ParameterKind(("log", "step", "when", "guess", "cheap"), Float),
    "int": ParameterKind(("log", "step", "when", "guess", "cheap"), Int),
    "choice": ParameterKind(("ordered", "when", "guess", "cheap"), lambda *options, **keys: _choice(options, keys)),
}
FIDELITIES = {
    "float": ParameterKind(("trace", "best_so_far"), Fidelity),
    "int": ParameterKind(("trace", "best_so_far"), lambda low, high, **keys: Fidelity(low, high, integer=True, **keys)),
}


def _choice(options: Sequence[Any], keys: Table) -> Choice:
    for name in ("guess", "cheap"):
        if isinstance(keys.get(name), list):
            keys[name] = [*map(_hashable, keys[name])]
    return Choice(*map(_hashable, options), **keys)


def _hashable(option: Any) -> Any:
    """Tuples are lists in JSON and TOML."""
    return tuple(option) if isinstance(option, list) else option


def _plain(options: Sequence[Any]) -> list[Any]:
    return [list(one) if isinstance(one, tuple) else one for one in options]


def plain_options(values: Mapping[str, Any]) -> Table:
    """Values of parameters, with lists for tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def read_options(values: object) -> Table:
    """The values that `plain_options` wrote."""
    return {name: _hashable(value) for name, value in _mapping(values, what="What is retired").items()}


def parameter_tables(parameters: Mapping[str, Parameter]) -> Table:
    """The table of every parameter, without the settings that have their defaults."""
    return {name: _parameter_table(parameter) for name, parameter in parameters.items()}


def fidelity_tables(fidelities: Mapping[str, Fidelity]) -> Table:
    """The table of every fidelity, without the settings that have their defaults."""
    return {name: _fidelity_table(fidelity) for name, fidelity in fidelities.items()}


def read_parameters(tables: object) -> dict[str, Parameter]:
    """The parameters of a mapping from names to tables."""
    return _read_each(tables, what="parameter", read=_read_parameter)


def read_fidelities(tables: object) -> dict[str, Fidelity]:
    """The fidelities of a mapping from names to tables."""
    return _read_each(tables, what="fidelity", read=lambda table: _read(table, kinds=FIDELITIES))


def read_stages(tables: object) -> dict[str, dict[str, Parameter]]:
    """The stages of a mapping from names to mappings of parameters."""
    return _read_each(tables, what="stage", read=read_parameters)


def _parameter_table(parameter: Parameter) -> Table:
    settings = parameter.settings
    if parameter.when:
        settings["when"] = {parent: list(values) for parent, values in parameter.when.items()}
    for name in {"guess", "cheap"} & settings.keys():
        settings[name] = _plain(settings[name]) if isinstance(settings[name], list | tuple) else settings[name]
    if isinstance(parameter, Choice):
        return {"choice": _plain(parameter.options), **settings}
    kind = "int" if isinstance(parameter, Int) else "float"
    return {kind: [parameter.low, parameter.high], **settings}


def _fidelity_table(fidelity: Fidelity) -> Table:
    kind = "int" if fidelity.integer else "float"
    flags = {name: flag for name, flag in fidelity.settings.items() if name != "integer"}
    return {kind: [fidelity.low, fidelity.high], **flags}


def _read_each(tables: object, *, what: str, read: Callable[[object], T]) -> dict[str, T]:
    result = {}
    for name, table in _mapping(tables, what=f"What declares each {what}").items():
        with _naming(f"{what} {shown(name)}"):
            result[name] = read(table)
    return result


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Say where in the form an error is."""
    try:
        yield
    except InvalidSpace as error:
        raise InvalidSpace(f"In {place}: {error}") from None


def _mapping(value: object, *, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidSpace(f"{what} must be a table, got {shown(value)}. Write it like name = {EXAMPLE}.")
    return value


def _read(table: object, *, kinds: Mapping[str, ParameterKind]) -> Any:
    keys = dict(_mapping(table, what="A declaration"))
    kind = _kind(keys, kinds)
    refuse_unknown(keys, (kind, *kinds[kind].keys), what="Keys of the table", error=InvalidSpace)
    return kinds[kind].make(*_arguments(kind, keys.pop(kind)), **keys)


def _read_parameter(table: object) -> Any:
    """A declaration, or a constant: `batch = 32`."""
    if table is None or isinstance(table, str | int | float):
        return Choice(table)
    return _read(table, kinds=PARAMETERS)


def _kind(keys: Table, kinds: Mapping[str, ParameterKind]) -> str:
    named = [kind for kind in kinds if kind in keys]
    if len(named) == 1:
        return named[0]
    refuse_unknown(keys, _all_keys(kinds), what="Keys of the table", error=InvalidSpace)
    rule = f"A declaration must have exactly one of the keys {', '.join(kinds)}"
    raise InvalidSpace(f"{rule}, got {shown(keys)}. Write it like {EXAMPLE}.")


def _all_keys(kinds: Mapping[str, ParameterKind]) -> list[str]:
    return list(dict.fromkeys([*kinds, *(key for kind in kinds.values() for key in kind.keys)]))


def _arguments(kind: str, given: object) -> list[Any]:
    wanted = "a list of options" if kind == "choice" else "the list [low, high]"
    if not isinstance(given, list | tuple) or (kind != "choice" and len(given) != 2):
        raise InvalidSpace(f"The key {kind} must have {wanted}, got {shown(given)}. Put it in square brackets.")
    return list(given)


# ------------------------------------------------------------
# Spaces as TOML: read by the standard library, written here.


BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    import tomllib  # here, as most programs never read any

    try:
        return tomllib.loads(text)
    except (ValueError, TypeError) as error:
        raise InvalidSpace(f"A space must be written in TOML, got {shown(text)}. Correct it: {error}.") from None


def write_toml(tables: Mapping[tuple[str, ...], Mapping[str, Any]]) -> str:
    """One table under each header, one line for each of its rows."""
    return "\n".join(_table(header, rows) for header, rows in tables.items())


def _table(header: tuple[str, ...], rows: Mapping[str, Any]) -> str:
    lines = [f"[{'.'.join(_key(part) for part in header)}]"]
    lines += [f"{_key(name)} = {_value(value, name=name)}" for name, value in rows.items()]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    # JSON's escapes are TOML's too; only DEL needs one in TOML that it does not need in JSON.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, *, name: str) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case int() | float():
            return repr(value)
        case list():
            return f"[{', '.join(_value(item, name=name) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{_key(key)} = {_value(item, name=name)}' for key, item in value.items())}}}"
    raise InvalidSpace(
        f'TOML must do without null, got {value!r} in {name!r}. Use an option such as "none", or write JSON.'
    )
