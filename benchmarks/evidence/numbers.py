"""Whether the numbers of a page stand together in the record that the page names.

Numbers that a page puts together (in a cell, along a row, in a clause) must stand together in one *line* of figures of
that record: a cell, a row or a column of its page in docs/benchmarks, or of `benchmarks.evidence.statistics`. A wrong
number among others is then hardly ever there by chance, however many figures a record has.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from itertools import zip_longest
from pathlib import Path

from benchmarks.evidence.statistics import STATISTICS

DOCS = Path(__file__).parents[2] / "docs"
NUMBER = re.compile(r"(?<![\w.\-/^·=])[+−-]?\d*\.\d+(?:e[+-]?\d\d)?(?!\w|\.\w)|(?<![\w.])\de[+-]\d\d(?!\w)")
ANY = re.compile(NUMBER.pattern + r"|(?<![\w.])\d+(?![\w.]*\d)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|§[\d.]+|[Pp]ython [\d.]+", re.DOTALL | re.MULTILINE)
SETTING = re.compile(r"[εκλβηωσℓ]²? = [\d.]+(?:(?:,| and|,? or) [\d.]+)*|\(\.\d+/?\d*\)|[Pp]aper's \([^)]*\)")
"""What a Greek letter is set to, and in brackets the figure of a paper or of a reference."""
CLAUSE = re.compile(r"(?<=[\w)\]])[.;:] |[()]")
NAMED = re.compile(
    r"benchmarks\.run ([\w-]+)|results/([\w*-]+)\.json|benchmarks\.speed ([\w-]+)|benchmarks/([\w-]+)\.md|"
    r"`([\w-]+)\.jsonl|\*\*`(online-\w+)`\*\*|"
    r"benchmarks\.(demo|first_hour|live|recommending)\b|(2_online\.py) --compare"
)
PROGRAMS = {
    "demo": "demo-digits",
    "first_hour": "first-hour",
    "live": "real-live",
    "recommending": "tuning-recommended",
    "2_online.py": "online-fashion-mnist",
}
"""The records of programs of another name."""

LEADS = re.compile(r"^\*\*|`python -m benchmarks")
"""What a block has that is about another record than those before."""
Numbers = tuple[str, ...]
BETWEEN = re.compile(r"(?:[\s/,±–]|and|to)*")
"""What stands between two numbers of a list."""


@dataclass(frozen=True)
class Group:
    """Numbers that stand together, as they are printed: a cell's or row's list, or the lists of a clause."""

    lists: tuple[Numbers, ...]

    @classmethod
    def of_clause(cls, text: str) -> "Group":
        found: list[list[str]] = []
        end = None
        for number in NUMBER.finditer(text):
            if end is not None and BETWEEN.fullmatch(text, end, number.start()):
                found[-1].append(number[0])
            else:
                found.append([number[0]])
            end = number.end()
        return cls(tuple(map(tuple, found)))

    @property
    def numbers(self) -> Numbers:
        return tuple(number for own in self.lists for number in own)

    @property
    def ways(self) -> Iterator[Sequence[Numbers]]:
        """All in one line; or each list in one, and what stands alone together in another."""
        lists, alone = [own for own in self.lists if len(own) > 1], [own for own in self.lists if len(own) == 1]
        yield [self.numbers]
        yield [*lists, tuple(own[0] for own in alone)]

    def with_other(self, place: int, number: str) -> "Group":
        """With another number at that place."""
        rest = iter([*self.numbers[:place], number, *self.numbers[place + 1 :]])
        return Group(tuple(tuple(next(rest) for _ in own) for own in self.lists))


@dataclass(frozen=True)
class Block:
    """A paragraph or table, and the records that it or the text before it names."""

    text: str
    names: frozenset[str]

    @property
    def groups(self) -> list[Group]:
        return groups_of(self.text)


def blocks(text: str) -> Iterator[Block]:
    """A table has the records of the paragraph before it; what names none has those of the last one that a bold word
    or a command began with, up to the next heading.
    """
    before: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    for part in re.split(r"\n\s*\n|\n(?=- )", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)):
        own = named(part)
        if part.startswith("#") or (own and LEADS.search(part)) or not before:
            before = own
        names = last if part.startswith("|") else own if own and part.startswith("- ") else before | own
        yield Block(part, names)
        last = names


def named(text: str) -> frozenset[str]:
    found: set[str] = set()
    for run, file, speed, page, other, bold, *program in NAMED.findall(text):
        found |= {one for one in (run, page, other, bold, PROGRAMS.get("".join(program), "")) if one}
        found |= {f"speed-{speed}"} if speed else set()
        found |= {one for one in sources() if file and re.fullmatch(file.replace("*", ".*"), one)}
    return frozenset(found & sources())


def groups_of(text: str) -> list[Group]:
    """The numbers of each cell with several, of those with one along each row, and of each clause; without heads."""
    found: list[Group] = []
    rows: list[str] = []
    rest: list[str] = []
    for line in SETTING.sub("", CODE.sub("", text)).replace("**", "").splitlines():
        (rows if line.startswith("|") else rest).append(line)
    heads = [head.strip() for row in rows[:1] for head in _cells(row)]
    for row in rows[2:]:
        ours = [cell for cell, head in zip(_cells(row), heads, strict=True) if not head.startswith("the paper")]
        cells = [(ANY if "[" in cell else NUMBER).findall(cell) for cell in ours]
        found += [Group((tuple(cell),)) for cell in cells if len(cell) > 1]
        found.append(Group((tuple(cell[0] for cell in cells if len(cell) == 1),)))
    found += [Group.of_clause(clause) for clause in CLAUSE.split(" ".join(" ".join(rest).split()))]
    return [group for group in found if group.numbers]


def _cells(row: str) -> list[str]:
    """But the first, which names the row."""
    return row.strip().strip("|").split("|")[1:]


# ------------------------------------------------------------
# What records have.


@cache
def sources() -> frozenset[str]:
    return frozenset({*pages(), *STATISTICS})


@cache
def pages() -> Mapping[str, str]:
    """The pages made from records, by name; of speed, a part by benchmark."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "benchmarks").glob("*.md")}
    parts = re.findall(r"^## speed ([\w-]+)\n(.*?)(?=^## speed |\Z)", found.pop("speed"), re.DOTALL | re.MULTILINE)
    return found | {f"speed-{name}": part for name, part in parts}


def lines_of(name: str) -> Iterator[Sequence[str]]:
    """Each cell of several numbers; along each row and column, the first number of each cell; each clause."""
    table: list[list[list[str]]] = []
    text = f"{pages().get(name, '')}\n\n{STATISTICS[name]() if name in STATISTICS else ''}\n"
    for line in text.splitlines():
        if line.startswith("|"):
            table.append([ANY.findall(cell) for cell in line.strip().strip("|").split("|")])
        else:
            yield from _of_table(table)
            table = []
            yield from (ANY.findall(clause) for clause in CLAUSE.split(line))
    yield from _of_table(table)


def _of_table(table: Sequence[Sequence[Sequence[str]]]) -> Iterator[Sequence[str]]:
    yield from (cell for row in table for cell in row if len(cell) > 1)
    yield from ([cell[0] for cell in row if cell] for row in table)
    yield from (own for row in table if len(own := [number for cell in row for number in cell]) <= SHORT)
    yield from ([cell[0] for cell in column if cell] for column in zip_longest(*table, fillvalue=()))


SHORT = 12
"""Numbers of a row that are a line as they are, with the quartiles beside medians."""
MOST_PLACES, LARGEST, EXACT = 10, 10**12, Context(prec=40)


class Known:
    """Lines of numbers, found by any rounding of one."""

    def __init__(self, lines: Iterable[Sequence[str]]) -> None:
        self._lines: dict[tuple[int, Decimal], set[int]] = defaultdict(set)
        for place, line in enumerate(lines):
            for typed in set(line):
                for key in _roundings(typed):
                    self._lines[key].add(place)

    def has(self, group: Group) -> bool:
        return any(all(map(self._have, way)) for way in group.ways)

    def _have(self, numbers: Numbers) -> bool:
        """Whether one line has all of them."""
        places = [self._lines.get(_key(typed), set()) for typed in numbers]
        return not places or bool(set.intersection(*places))


def _roundings(typed: str) -> set[tuple[int, Decimal]]:
    """To as many places as it has and fewer, also before the point, a half both up and down."""
    value = _size(typed)
    if value > LARGEST:
        return set()
    most = min(max(-_exponent(value), 0), MOST_PLACES)
    return {(places, _rounded(value, places, rule)) for places in range(-3 if value >= 10 else 0, most + 1)
            for rule in ("ROUND_HALF_UP", "ROUND_HALF_DOWN")}  # fmt: skip


def _key(typed: str) -> tuple[int, Decimal]:
    """Without zeros at the end, which some programs print and others do not; 4.9e+02 has no place of units."""
    value = _size(typed).normalize()
    places = -_exponent(value) if "e+" in typed else max(-_exponent(value), 0)
    return min(places, MOST_PLACES), _rounded(value, min(places, MOST_PLACES), "ROUND_HALF_UP")


def _rounded(value: Decimal, places: int, rule: str) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), rule, EXACT)


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _size(typed: str) -> Decimal:
    return abs(Decimal(typed.replace("−", "-")))


@cache
def known(names: frozenset[str]) -> Known:
    return Known(line for name in sorted(names) for line in lines_of(name))
