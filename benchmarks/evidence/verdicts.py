"""Verdicts on rows of docs/papers.md: what the wins and losses in a cell say, by a sign test."""

import re

from scipy.stats import binomtest

COUNTED = re.compile(r"(?:^|[,;:] )([^,;:|]+?):? (\d+)–(\d+)(?![–\d])")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
"""A rival and the wins and losses against it, such as "EI 27–13"."""
SURE = 0.1
"""The p-value of a sign test from which on one of two is ahead."""


def is_ahead(won: int, lost: int) -> bool:
    """By a sign test without ties."""
    return won > lost and float(binomtest(won, won + lost).pvalue) <= SURE


def counted(cell: str) -> list[tuple[str, int, int]]:
    """The rivals in a cell, with the wins and losses against them."""
    plain = LINK.sub(r"\1", cell)
    return [(name.rpartition("against ")[2].strip(), int(won), int(lost)) for name, won, lost in COUNTED.findall(plain)]


def standing(cell: str) -> str:
    """In words, of the wins and losses in a cell."""
    said: dict[str, list[str]] = {"ahead of": [], "undecided against": [], "behind": []}
    for rival, won, lost in counted(cell):
        word = "ahead of" if is_ahead(won, lost) else "behind" if is_ahead(lost, won) else "undecided against"
        said[word].append(rival)
    return ", ".join(f"{word} {listed(rivals)}" for word, rivals in said.items() if rivals)


def verdict(cell: str, otherwise: str, enough: str = "ahead") -> str:
    """*Not reproduced* unless the published method is ahead of every rival in its cell, or not behind where told so."""
    found = counted(cell)
    assert found, f"no wins and losses in {cell!r}"
    holds = (not is_ahead(lost, won) if enough == "or level" else is_ahead(won, lost) for _, won, lost in found)
    return f"{otherwise if all(holds) else 'not reproduced'}: {standing(cell)}"


def listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
