"""Spaces as TOML: read by the standard library, written here."""

import json
import re
from collections.abc import Mapping
from typing import Any

from farthing.errors import InvalidSpace
from farthing.validation import shown

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
