"""A count in docs (wins and losses, x of y, a share in percent) is computed from the records, or is no result.

Each page's tables and sentences with counts are made by `benchmarks.evidence.counts`. What is left are settings and one
figure of trajectories that are in the history only: they are listed here with the words around them, so that a count
that somebody typed is found wherever it stands.
"""

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from benchmarks.evidence.counts import PAGES
from benchmarks.evidence.counts.counting import Said, Table

DOCS = Path(__file__).parents[3] / "docs"
COUNT = re.compile(r"(?<![\w.–−-])\d+(?:–\d+){1,2}(?![\w.]*\d)|\b\d+ of \d+\b|(?<![\w.])\d*\.?\d+ ?%")
FENCED, LINK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE), re.compile(r"\[([^\]]*)\]\([^)]*\)")

SETTINGS: Mapping[str, Sequence[str]] = {
    "guides/second_study.md": (
        "between low and high with 80 %",
        "An evaluation, or 10 % of a training",
        "within the interval of 80 %",
    ),
    "guides/strategies.md": (
        "may take 10 % of the time of their trials",
        "at most 10 % of what the",
        "at most 2 % of the time that the budget lasts",
        "at most 5 % of all",
        "wait for more than 2 % of a trial",
    ),
    "integrations/optuna.md": ("a chance of 5 % to end better",),
    "systems/bayesian.md": (
        "until there are 5 % more observations",
        "by less than 10 % of the distance",
        "until there are 25 % more observations",
        "the second half of a run brings less than 1 %",
        "With 30 % no run ends in a wrong branch",
    ),
    "systems/multifidelity.md": (
        "priced at no less than 1 % of a full training",
        "looked at for 5 % of a training",
        "goes on, to 15 % and 45 %",
        "trained to at most 20 %",
        "It has 35 % of what the budget has beyond two trainings",
        "has at most 20 % of a full training",
        "at each rung (10 %, 20 %, 40 %, all)",
        "configurations at 13 % of a full training",
        "improved by less than 2 % since",
        "less than 10 % better than their median",
        "higher by 10 % and by 50 %, either",
        "win 85 % of these pairs",
        "the 95 % interval of its difference",
        "(seeds 0–2;",
        "within 80 % | order",
    ),
    "systems/objectives.md": ("once there are 5 % more trials",),
    "systems/online.md": (
        "on seeds 100–109 of digits",
        "(seeds 100–129)",
        "seeds 10–13)",
        "2 % of the rounds are measured by a coin",
        "on other seeds (100–179)",
        "seeds 1000–1029",
        "The aim of 25 % at",
    ),
    "systems/pipeline.md": (
        "within 5 % of the best score found.",
        "within 5 % of the best score found (0.851)",
        "within 5 % of the best F1 found (0.853;",
        "it is within 5 % of the best after",
        "16–1–23 against TPE and 24–1–15 against random search after four seconds (the trajectories at commit ea7f88",
    ),
    "systems/population.md": ("PPO (32–32 tanh)",),
}


ELSEWHERE: Mapping[str, Sequence[str]] = {
    "guides/costs.md": (
        "with set-up, noise of 30 %, stragglers",
        "none exceeds its budget by more than 15 % and half of them by at most 2 %",
        "half of them leave at most 5 % unspent",
    ),
    "guides/dashboard.md": ("10 % more results",),
    "guides/diagnostics.md": (
        "it scores 0 %",
        "outside their 95 % interval",
        "About 50 % of all values should lie in the 50 % intervals",
        "a share of 5 % ± 6 % says",
        "contains the value with 95 % probability",
        "from all others, and its 95 % interval",
    ),
    "guides/space.md": ("within 25 % of each range",),
    "reliability.md": ("0 of 5 | |", "0 of 5 | its 8 draws", "5 of 5 | |", "5 of 5 | |"),
    "style.md": ("by less than 2 %",),
}
"""Pages without a benchmark's results: settings, examples, and a few figures of tests that are not recorded."""


def plain(text: str) -> str:
    """Without blocks of code, addresses, and the marks of bold, italics and code."""
    return LINK.sub(r"\1", FENCED.sub("", text)).replace("*", "").replace("`", "")


@cache
def said(page: str) -> Said:
    return PAGES[page]()


def page_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def faults(text: str, made: Said, settings: Sequence[str]) -> list[str]:
    """What of a page is not as the records have it, and the counts that nothing accounts for.

    The first cell of a row names it and has no result.
    """
    lines = [" ".join(line.split()) for line in plain(text).splitlines()]
    found = []
    for table in made.tables:
        place = place_of(table.after, lines)
        rows = [row for line in lines[place][1:] if (row := counted(line))[1]]
        expected = [(label, list(counts)) for label, counts in table.rows]
        found += [f"{table.after} {row} is not on the page" for row in expected if row not in rows]
        found += [f"{table.after} {row} is in no record" for row in rows if row not in expected]
        lines[place] = []
    found += [f"{line!r} is not on the page" for line in made.lines if line not in lines]
    lines = [line for line in lines if line not in made.lines]
    rest = " ".join(" ".join(line.partition(" | ")[2] if line.startswith("|") else line for line in lines).split())
    for sentence in (*made.sentences, *settings):
        if sentence not in rest:
            found.append(f"{sentence!r} is not on the page")
        rest = rest.replace(sentence, " ", 1)
    return found + [f"{one} is in no record" for one in COUNT.findall(rest)]


def place_of(after: str, lines: Sequence[str]) -> slice:
    """The lines of the table after these words or with them in its heading; none where they are not."""
    starts = [
        number for number, line in enumerate(lines) if line.startswith("|") and not lines[number - 1].startswith("|")
    ]
    for start in starts:
        end = next((number for number in range(start, len(lines)) if not lines[number].startswith("|")), len(lines))
        if after in lines[start] or " ".join(" ".join(lines[max(0, start - 12) : start]).split()).endswith(after):
            return slice(start, end)
    return slice(0, 0)


def counted(line: str) -> tuple[str, list[str]]:
    """The words that a row begins with, up to its first cell with a number but the first, and the counts after it."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    words = list(takewhile(lambda cell: not re.search(r"\d", cell), cells[1:]))
    return " | ".join([cells[0], *filter(None, words)]), COUNT.findall(" | ".join(cells[1:]))


@pytest.mark.parametrize("page", PAGES)
def test_the_counts_of_a_page_are_those_of_the_records(page: str) -> None:
    assert faults(page_of(page), said(page), SETTINGS.get(page, ())) == []


def changed(text: str, rng: random.Random) -> str:
    """With one number of one count another, outside of code and of what names a row."""
    count = rng.choice([found for found in COUNT.finditer(text) if not is_name_or_code(text, found.start())])
    number = rng.choice(list(re.finditer(r"\d+", count[0])))
    other = rng.choice([one for one in range(max(0, int(number[0]) - 3), int(number[0]) + 4) if one != int(number[0])])
    start = count.start() + number.start()
    return f"{text[:start]}{other}{text[start + len(number[0]) :]}"


def is_name_or_code(text: str, at: int) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    is_code = line.count("`") % 2 == 1 or text.count("```", 0, at) % 2 == 1
    return is_code or line.count("](") > line.count(")") or (line.startswith("|") and line.count("|") < 2)


def test_other_pages_have_no_counts_but_settings() -> None:
    made = {DOCS / "papers.md", *(DOCS / "benchmarks").iterdir()}
    pages = sorted(str(path.relative_to(DOCS)) for path in set(DOCS.rglob("*.md")) - made)
    found = {page: faults(page_of(page), Said(), ELSEWHERE.get(page, ())) for page in pages if page not in PAGES}
    assert {page: own for page, own in found.items() if own} == {}


@pytest.mark.parametrize("page", PAGES)
def test_nearly_every_changed_count_of_a_page_is_noticed(page: str) -> None:
    rng, text = random.Random(page), page_of(page)
    noticed = [bool(faults(changed(text, rng), said(page), SETTINGS.get(page, ()))) for _ in range(40)]
    assert sum(noticed) >= 0.9 * len(noticed)


def test_a_count_that_nobody_recorded_is_found() -> None:
    made = Said([Table("Pairs:", [("EI", ["7–1", "3–5"])])], ["better in 6 of 10 pairs"])
    table = "| | at 2 | at 4 |\n|---|---|---|\n| `EI` | **7–1** | .3 (3–5) |"
    page = f"Pairs:\n\n{table}\n\nIt is better in 6 of\n10 pairs, by 5 % or more.\n"
    assert faults(page, made, ["by 5 % or more"]) == []
    assert faults(page, made, []) == ["5 % is in no record"]
    assert len(faults(page.replace("7–1", "7–2"), made, ["by 5 % or more"])) == 2
    assert len(faults(page.replace("6 of", "7 of"), made, ["by 5 % or more"])) == 2
    assert len(faults(page.replace("Pairs:", "Nothing:"), made, ["by 5 % or more"])) == 3
