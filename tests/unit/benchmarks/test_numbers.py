"""A number in README or docs is on a page that is made from the records, or another statistic of them.

On the pages in `HELD` numbers that stand together must stand together in the record that their section names
(`benchmarks.evidence.numbers`), and a test draws other numbers to see that they would be found.

Each other number must be somewhere in the suites that the page is about, up to rounding: a decimal number
anywhere; a whole one where it stands alone in a cell of a table or before the unit of a measurement. What no record of
ours can have is listed with its reason. The claims tests (`test_claims`, `test_arena_claims`, `test_paper_claims`)
check sentences word by word.
"""

import random
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from benchmarks.evidence.numbers import CODE, NUMBER, Group, blocks, known
from benchmarks.evidence.numbers import Known as Together
from benchmarks.evidence.statistics import STATISTICS

DOCS = Path(__file__).parents[3] / "docs"
WHOLE = re.compile(
    r"(?<![\w.,\-/^·=–−])\d+(?: \d{3})*(?= ?(?:ms|MB|GB|kB|bytes|validations|times as|trainings a second)\b)"
    r"|(?<=\| )\**\d{3,}\**(?= *\|)"
)
"""Without the first cell of a row, which names it, and numbers of one or two digits in cells, which are counts."""
ROW = re.compile(r"^\|[^|]*\|", re.MULTILINE)
DIGITS = re.compile(r"(?<![\w.,])\d+(?: \d{3})*(?![\w.,]*\d)")

SEQUENTIAL = ("sequential", "optuna-sampler", "conditional", "noisy", "cost-aware", "cheap", "suggesting", "stopping")
CURVES = (
    "mf-",
    "real-",
    "first-hour",
    "simulated",
    "demo",
    "lightgbm",
    "predictions",
    "transfer",
    "guesses",
    "stopping",
)
PAGES: Mapping[str, tuple[str, ...]] = {
    "../README.md": (*SEQUENTIAL, *CURVES, "speed"),
    "systems/bayesian.md": (*SEQUENTIAL, "speed"),
    "systems/multifidelity.md": (*CURVES, "speed"),
    "systems/online.md": ("online-", "speed"),
    "systems/pipeline.md": ("pipeline-", "speed"),
    "systems/population.md": ("population-", "speed"),
    "guides/second_study.md": ("transfer", "guesses", "stopping"),
    "guides/cluster.md": ("simulated-", "suggesting", "speed"),
    "guides/strategies.md": (*SEQUENTIAL, *CURVES, "speed"),
    "guides/ray.md": ("ray-", "speed"),
    "systems/objectives.md": ("objectives", "speed"),
    "integrations/boosting.md": ("lightgbm",),
    "integrations/optuna.md": ("optuna-sampler", "sequential"),
}
"""Which pages of docs/benchmarks a page speaks of."""

HELD = (
    "../README.md",
    *(f"systems/{name}.md" for name in ("bayesian", "multifidelity", "objectives", "online", "pipeline", "population")),
)
MOST_BY_CHANCE = 0.25
"""The share of other numbers of two or three decimals that a page may hold for its own."""

ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "systems/population.md": ("1638", "1492", "2346"),
    "systems/multifidelity.md": ("5441", "1812", "821"),
}
"""Figures of a paper. Runs that `benchmarks.recommending` counts in the stored
studies: it fits the model to each, which takes too long for a test.
"""


@cache
def sections() -> dict[str, str]:
    return {path.stem: CODE.sub("", path.read_text(encoding="utf-8")) for path in (DOCS / "benchmarks").glob("*.md")}


class Known:
    """Numbers as they were printed, by how many decimals they have."""

    def __init__(self, text: str) -> None:
        found = {(Decimal(size(one)), decimals(one)) for one in [*numbers(text), *digits(text)]}
        self._of: dict[int, list[Decimal]] = {}
        for least in range(12):
            self._of[least] = sorted(value for value, places in found if places >= least)

    def has(self, typed: str) -> bool:
        """Whether it is a rounding of one that has as many decimals or more."""
        value, places = Decimal(size(typed)), decimals(typed)
        slack = Decimal("0.5").scaleb(-places) + Decimal("0.5").scaleb(-places - 1)
        near = self._of[min(places, 11)]
        at = bisect_left(near, value - slack)
        return at < len(near) and near[at] <= value + slack


def size(text: str) -> str:
    return text.lstrip("+−-")


def decimals(text: str) -> int:
    """Without zeros at the end, which some programs print and others do not."""
    exponent = Decimal(size(text)).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return max(-exponent, 0)


def numbers(text: str) -> list[str]:
    return NUMBER.findall(CODE.sub("", text))


def digits(text: str) -> list[str]:
    return [one.replace(" ", "") for one in DIGITS.findall(CODE.sub("", text))]


def whole_numbers(text: str) -> list[str]:
    """Those that are results: measured, or alone in a cell."""
    return [one.strip("*").replace(" ", "") for one in WHOLE.findall(ROW.sub("| |", CODE.sub("", text)))]


@cache
def recorded(page: str) -> Known:
    parts = [part for name, part in sections().items() if name.startswith(PAGES[page])]
    more = [text() for name, text in STATISTICS.items() if name.startswith(PAGES[page])]
    return Known("\n".join([*parts, *more]))


def strangers(text: str, known: Known, elsewhere: Iterable[str] = (), *, decimal: str | None = None) -> list[str]:
    """Decimal numbers are looked for in another text where one is given."""
    typed = [*numbers(text if decimal is None else decimal), *whole_numbers(text)]
    return [one for one in typed if size(one) not in elsewhere and not known.has(one)]


def held(page: str) -> Iterator[tuple[Group, Together]]:
    """The groups of numbers in sections that name records, with what these records have."""
    for block in blocks((DOCS / page).read_text(encoding="utf-8")):
        if block.names:
            yield from ((group, known(block.names)) for group in block.groups)


@pytest.mark.parametrize("page", HELD)
def test_numbers_that_stand_together_do_so_in_the_record_that_their_section_names(page: str) -> None:
    found = list(held(page))
    assert found
    assert [group.lists for group, records in found if not records.has(group)] == []


@pytest.mark.parametrize("page", HELD)
def test_another_number_in_the_place_of_one_would_seldom_pass(page: str) -> None:
    rng = random.Random(page)
    places = [
        (group, records, place)
        for group, records in held(page)
        for place, number in enumerate(group.numbers)
        if re.fullmatch(r"[+−-]?\d*\.\d{2,3}", number)
    ]
    drawn = [rng.choice(places) for _ in range(1000)]
    passed = [records.has(group.with_other(place, other(group.numbers[place], rng))) for group, records, place in drawn]
    assert sum(passed) <= MOST_BY_CHANCE * len(passed)


def other(number: str, rng: random.Random) -> str:
    """Another one with as many digits before and after the point."""
    drawn = number
    while size(drawn) == size(number):
        drawn = re.sub(r"(?<!^)\d|^\d(?!\.)", lambda _: str(rng.randrange(10)), size(number))
    return drawn


def test_numbers_of_several_lines_do_not_stand_together() -> None:
    records = Together([("0.143", "0.25", "7"), ("0.31", "0.99")])
    (block,) = blocks("It has .143 / .25, and later 0.31 beside 0.99.")
    assert [group.lists for group in block.groups] == [((".143", ".25"), ("0.31",), ("0.99",))]
    assert all(records.has(group) for group in block.groups)
    (block,) = blocks("It has .143 / .31.")
    assert not any(records.has(group) for group in block.groups)


def test_a_table_is_of_the_record_that_the_paragraph_before_it_names() -> None:
    text = (
        "`python -m benchmarks.run objectives`\n\n| | a | b |\n|---|---|---|\n| x | .1 | 2.5 / 3.5 |\n\n## Next\n\n0.5"
    )
    _, table, _, last = blocks(text)
    assert (table.names, last.names) == ({"objectives"}, frozenset())
    assert [group.lists for group in table.groups] == [(("2.5", "3.5"),), ((".1",),)]


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_a_page_is_recorded(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    rest = "\n\n".join(block.text for block in blocks(text) if not (block.names and page in HELD))
    assert strangers(text, recorded(page), ELSEWHERE.get(page, ()), decimal=rest) == []


def test_a_page_with_many_numbers_is_one_of_those_that_are_checked() -> None:
    """All but the two that are made from records themselves, and what a page has as settings."""
    made = {DOCS / "papers.md", *(DOCS / "benchmarks").iterdir()}
    pages = {str(path.relative_to(DOCS)) for path in set(DOCS.rglob("*.md")) - made} - PAGES.keys()
    many = {page: found for page in pages if len(found := numbers((DOCS / page).read_text(encoding="utf-8"))) > 5}
    assert many == {}


def test_a_number_that_nobody_recorded_is_found() -> None:
    known = Known("recorded: 0.1432 and 3e-05")
    assert strangers("it has .143 and 0.14 at a price of 0.1", known) == []
    assert strangers("it has 0.00003", known) == []
    assert strangers("it has .1437, or −2.25 as [said](x.md#y-1.5) in `f(0.7)`", known) == [".1437", "−2.25"]
    assert strangers("a digit too many: .14321", known) == [".14321"]
    assert strangers("the paper's .352", known, [".352"]) == []
    known = Known("it takes 141 ms and 12 345 steps, or 138.6")
    assert strangers("it takes 139 ms, 141 ms or 12 345 ms for 140 trials", known) == []
    assert strangers("it takes 143 ms\n\n| 100 trials | **144** | 141 | 24 |", known) == ["143", "144"]
