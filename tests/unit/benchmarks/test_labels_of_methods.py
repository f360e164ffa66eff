"""A row that is called by a paper's name, or the published method, is made by `paper()`; our own settings say so."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")])

PLAIN = r"\b(?:LaMBO|PB2|CEGPUCB|TraceKG)\b(?!\.paper)"
"""One of our classes that have a form as published, without it."""
CALLED_PUBLISHED = re.compile(
    rf"^\|[^|]*{PLAIN}[^|]*\|.*\bthe published method\b"
    rf"|\bthe published method\b[^|.]*\|[^|]*{PLAIN}"
    rf"|`?{PLAIN}(?:\([^)]*\))?`?(?:,| is| as|:)? the published method\b"
)
PAPERS_NAME = re.compile(r"^`?(?:CE-GP-UCB`?(?=$|,| )|taKG⁰?`?(?=$|,))")
AS_PUBLISHED = re.compile(r"paper|as published|\(")
"""Says that the row is the paper's, or is its equation or a setting in brackets."""
IN_AN_EXAMPLE = re.compile(r'^\s*"(CE-GP-UCB[^"]*|taKG[^"]*)": (?:ft\.)?(?!.*\.paper\()')


def called_published(text: str) -> list[str]:
    return [line for line in text.split("\n") if CALLED_PUBLISHED.search(line)]


def labelled_by_a_paper(text: str) -> list[str]:
    """Labels of rows and columns, and keys of an example, that are a paper's name without its form."""
    found = [match[1] for line in text.split("\n") if (match := IN_AN_EXAMPLE.match(line))]
    lines = text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        labels = cells if following.startswith(("| -", "|-", "|:")) else cells[:1]
        found += [one for one in labels if PAPERS_NAME.match(one) and not AS_PUBLISHED.search(one)]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_ours_is_nowhere_called_the_published_method(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not called_published(text)
    assert not labelled_by_a_paper(text)


@pytest.mark.parametrize(
    "line",
    [
        "| `LaMBO()` | the published method: a bandit over a tree of regions |",
        "| `LaMBO` | you want the published method, which seldom changes the early stages | stages |",
        "With `PB2()`, the published method, agents copy one another.",
        "| the published method | `CEGPUCB(0.9)` |",
    ],
)
def test_the_test_sees_ours_under_that_name(line: str) -> None:
    assert called_published(line)
    assert not called_published(line.replace("LaMBO", "LaMBO.paper").replace("PB2", "PB2.paper").replace(
        "CEGPUCB", "CEGPUCB.paper"))  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "| CE-GP-UCB | .845 ± .004 | 21 |",
        "| CE-GP-UCB, every fifth round |    0.736 |",
        "| | keep | CE-GP-UCB |\n|---|---|---|",
        '    "CE-GP-UCB": ft.CEGPUCB(),',
    ],
)
def test_the_test_sees_a_papers_name_as_a_label(line: str) -> None:
    assert labelled_by_a_paper(line)


def test_labels_of_published_forms_stay() -> None:
    assert not labelled_by_a_paper('| CE-GP-UCB as published, κ = 0.95 | .1 |\n    "CE-GP-UCB": ft.CEGPUCB.paper(),')
