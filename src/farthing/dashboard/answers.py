"""Answers that are not JSON."""

import json
import math
import string
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote


@dataclass(frozen=True)
class Download:
    """A file: the browser keeps it, unless `is_shown`."""

    name: str
    media: str
    content: bytes | BinaryIO
    is_shown: bool = False


# ------------------------------------------------------------
# JSON as browsers read it, which has no NaN and no infinity: where one is stored, there is nothing.


def strict_json(form: Any) -> str:
    try:
        return _dumped(form)
    except ValueError:
        return _dumped(_finite(form))


def _dumped(form: Any) -> str:
    return json.dumps(form, separators=(",", ":"), default=str, allow_nan=False)


def _finite(form: Any) -> Any:
    match form:
        case dict():
            return {name: _finite(part) for name, part in form.items()}
        case list() | tuple():
            return [_finite(part) for part in form]
        case float() if not math.isfinite(form):
            return None
        case _:
            return form


# ------------------------------------------------------------
# Names of studies in addresses: readable where they can be, and never a path.


PLAIN = frozenset(string.ascii_letters + string.digits + "-_")


def key_of(name: str) -> str:
    """`digits 2/3` is `digits~202~2F3`: letters, digits, `-` and `_` stay, other bytes of UTF-8 are spelled out."""
    return "".join(letter if letter in PLAIN else _spelled(letter) for letter in name)


def _spelled(letter: str) -> str:
    return "".join(f"~{byte:02X}" for byte in letter.encode(errors="surrogatepass"))


def name_of(key: str) -> str:
    return unquote(key.replace("%", "%25").replace("~", "%"), errors="replace")
