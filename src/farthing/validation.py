"""Common to all errors: how they show the wrong value and the remedy."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from farthing.errors import InvalidArgument

LONGEST_SHOWN = 80
MOST_LISTED = 8


def shown(value: object) -> str:
    """The value that came, in one line of bounded length."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to write numbers of thousands of digits
        text = f"{type(value).__name__} of more digits than Python writes"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def spelled_out(text: str) -> str:
    """The text with `\\ud83d` for half a character, a lone surrogate, which no file, terminal or database takes."""
    return text.encode(errors="backslashreplace").decode()


def listed(values: Iterable[object]) -> str:
    """The values that would be right; the first few when there are many."""
    texts = [shown(value) for value in values]
    hidden = len(texts) - MOST_LISTED
    return ", ".join(texts) if hidden <= 0 else f"{', '.join(texts[:MOST_LISTED])} and {hidden} more"


def did_you_mean(given: object, known: Iterable[object], *, otherwise: str) -> str:
    """The remedy for a wrong word: the nearest right one, if one is near."""
    words = [word for word in known if isinstance(word, str)]
    nearest = get_close_matches(given, words, n=1) if isinstance(given, str) else []
    return f"Did you mean {shown(nearest[0])}?" if nearest else otherwise


def refuse_unknown(
    given: Iterable[object], known: Iterable[object], *, what: str, error: type[InvalidArgument]
) -> None:
    """Raise `error` for the first of the given names that is not known."""
    right = tuple(known)
    for name in given:
        if name not in right:
            rule = f"{what} must be among {listed(right)}" if right else f"There are no {what.lower()} here"
            raise error(f"{rule}, got {shown(name)}. {did_you_mean(name, right, otherwise='Remove or rename it.')}")


def refuse_non_mapping(given: object, *, what: str, error: type[InvalidArgument]) -> None:
    """Raise `error` for what does not map names to anything."""
    if not isinstance(given, Mapping):
        raise error(f"{what} must map names to values, got {shown(given)}. Pass a dict.")
