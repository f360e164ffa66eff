"""Names of studies in addresses: readable where they can be, and never a path."""

import string
from urllib.parse import unquote

PLAIN = frozenset(string.ascii_letters + string.digits + "-_")


def key_of(name: str) -> str:
    """`digits 2/3` is `digits~202~2F3`: letters, digits, `-` and `_` stay, other bytes of UTF-8 are spelled out."""
    return "".join(letter if letter in PLAIN else _spelled(letter) for letter in name)


def _spelled(letter: str) -> str:
    return "".join(f"~{byte:02X}" for byte in letter.encode(errors="surrogatepass"))


def name_of(key: str) -> str:
    return unquote(key.replace("%", "%25").replace("~", "%"), errors="replace")
