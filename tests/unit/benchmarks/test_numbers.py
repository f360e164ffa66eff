"""A number in README or docs is on a page that is made from the records, or another statistic of them.

A decimal number anywhere; a whole one where it stands alone in a cell of a table or before the unit of a measurement.

Up to rounding, and of the suites that the page is about. What no record of ours can have is listed with its reason. The
claims tests (`test_claims`, `test_arena_claims`, `test_paper_claims`) check sentences word by word; this one finds the
number that somebody typed and nobody recorded.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import binomtest

from benchmarks.evidence.papers import regret_at
from benchmarks.online.training_report import guess_table
from benchmarks.pipelines import near_best, summary
from benchmarks.records import read_records, results_path
from benchmarks.report import current_records
from benchmarks.suites import SUITES

DOCS = Path(__file__).parents[3] / "docs"
NUMBER = re.compile(r"(?<![\w.\-/^·=])[+−-]?\d*\.\d+(?:e-\d+)?(?![\w.])|(?<![\w.])\d+e-\d+")
WHOLE = re.compile(
    r"(?<![\w.,\-/^·=–−])\d+(?: \d{3})*(?= ?(?:ms|MB|GB|kB|bytes|validations|times as|trainings a second)\b)"
    r"|(?<=\| )\**\d{3,}\**(?= *\|)"
)
"""Without the first cell of a row, which names it, and numbers of one or two digits in cells, which are counts."""
ROW = re.compile(r"^\|[^|]*\|", re.MULTILINE)
DIGITS = re.compile(r"(?<![\w.,])\d+(?: \d{3})*(?![\w.,]*\d)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|§[\d.]+|[Pp]ython [\d.]+", re.DOTALL | re.MULTILINE)

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
    "guides/ray.md": ("ray-", "speed"),
    "systems/objectives.md": ("objectives", "speed"),
    "integrations/boosting.md": ("lightgbm",),
    "integrations/optuna.md": ("optuna-sampler", "sequential"),
}
"""Which pages of docs/benchmarks a page speaks of."""

ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "systems/online.md": (".352", ".581", ".141", ".212", ".322", ".400", ".087", ".170", ".299", ".395"),
    "systems/population.md": ("84.4", "88.9", "87.2", "89.1", "1638", "1492", "2346"),
    "systems/multifidelity.md": ("5441", "1812", "821"),
}
"""Figures of a paper, and of the reference run beside ours. Runs that `benchmarks.recommending` counts in the stored
studies: it fits the model to each, which takes too long for a test.
"""


@cache
def sections() -> dict[str, str]:
    return {path.stem: CODE.sub("", path.read_text(encoding="utf-8")) for path in (DOCS / "benchmarks").glob("*.md")}


def figures_of_searches() -> Iterable[float]:
    """Medians over seeds of the error after four seconds, with suggesting and without, to more digits than the page
    has; and of the seconds of work and of suggesting, over all tables.
    """
    found: dict[tuple[str, ...], list[float]] = {}
    for row in read_records(results_path("pipeline-real")):
        if row["method"].startswith("search-"):
            which = row["method"], row["settings"]["allowance"]["unit"]
            last = [step["value"] for step in row["steps"] if step["spent"] <= 4.0 + 1e-9]
            found.setdefault((row["problem"], *which), []).extend(last[-1:])
            for name in ("cost", "suggest_cpu_seconds"):
                found.setdefault((name, *which), []).append(row[name])
    return [median(own) for own in found.values()]


def printed_of_pipelines() -> str:
    records = read_records(results_path(summary.SUITE))
    own = [(contest, current_records(contest, records)) for contest in SUITES[summary.SUITE].contests]
    parts = [summary.summary(contest, rows) for contest, rows in own if rows]
    parts += [near_best.report(results_path(near_best.SUITE), name) for name in near_best.PROBLEMS]
    return "\n".join([*parts, *(f"{one:.4f}" for one in figures_of_searches())])


def printed_of_populations() -> str:
    """What single runs ended with: worst ones, and those of a seed."""

    def ends(row: Mapping[str, Any]) -> Iterable[float]:
        return [
            row[key] * (100.0 if key == "test_accuracy" else 1.0)
            for key in ("regret", "score", "test_accuracy")
            if key in row
        ]

    rows = [row for name in ("population-real", "population-cifar") for row in read_records(results_path(name))]
    return " ".join(f"{one:.4f}" for row in rows for one in ends(row))


def printed_of(suite: str, key: str, *, middle: Callable[[list[float]], float] = median) -> str:
    """A statistic of each problem and method, to more digits than the page has."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in read_records(results_path(suite)):
        found.setdefault((row.get("problem", ""), row["method"]), []).append(row[key])
    return " ".join(f"{middle(own):.4f}" for own in found.values())


def losses_of_stopping() -> str:
    """Of single runs."""
    return " ".join(f"{row['lost']:.4f}" for row in read_records(results_path("stopping")))


def sign_tests_of_the_sampler() -> str:
    rows = {(row["method"], row["problem"], row["seed"]): row for row in read_records(results_path("optuna-sampler"))}
    found = []
    for at in (15.0, 30.0):
        gaps = [
            regret_at(row, at) - regret_at(rows["log-ei-in-optuna", *key], at)
            for (method, *key), row in rows.items()
            if method == "log-ei" and ("log-ei-in-optuna", *key) in rows
        ]
        won, lost = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
        found.append(f"{binomtest(won, won + lost).pvalue:.4f}")
    return " ".join(found)


def means_of_the_second_live_task() -> str:
    """Over the seeds that all methods have."""
    found: dict[int, dict[str, float]] = {}
    for row in read_records(results_path("real-live")):
        if row["task"] == "code":
            found.setdefault(row["seed"], {})[row["method"]] = row["verified_error"]
    common = [by_method for by_method in found.values() if len(by_method) == 4]
    return " ".join(f"{fmean(one[method] for one in common):.4f}" for method in common[0])


def gains_from_guesses() -> str:
    """Over all tasks, and on the stream alone."""
    records = read_records(results_path("online-training"))
    chosen: list[Callable[[str], bool]] = [lambda problem: True, lambda problem: problem.startswith("stream")]
    return "".join(guess_table(records, is_chosen, price=0.1) for is_chosen in chosen)


def edge_of_a_limit() -> str:
    """Where gain times probability is largest if the gain grows with the distance beyond a limit, and how probable."""
    found = minimize_scalar(lambda z: -z * ndtr(-z), bounds=(0.0, 3.0), method="bounded").x
    return f"{found:.4f} {ndtr(-found):.4f}"


MORE: Mapping[str, Callable[[], str]] = {
    "../README.md": means_of_the_second_live_task,
    "systems/multifidelity.md": means_of_the_second_live_task,
    "systems/objectives.md": edge_of_a_limit,
    "systems/pipeline.md": printed_of_pipelines,
    "systems/population.md": printed_of_populations,
    "systems/online.md": lambda: printed_of("online-fashion-mnist", "accuracy", middle=fmean) + gains_from_guesses(),
    "integrations/boosting.md": lambda: printed_of("lightgbm-rounds", "test_loss"),
    "integrations/optuna.md": sign_tests_of_the_sampler,
    "guides/second_study.md": losses_of_stopping,
}
"""Other statistics of the same records than the page has, by the programs that print them."""


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
    text = "\n".join(part for name, part in sections().items() if name.startswith(PAGES[page]))
    return Known(f"{text}\n{MORE[page]() if page in MORE else ''}")


def strangers(text: str, known: Known, elsewhere: Iterable[str] = ()) -> list[str]:
    typed = [*numbers(text), *whole_numbers(text)]
    return [one for one in typed if size(one) not in elsewhere and not known.has(one)]


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_a_page_is_recorded(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert strangers(text, recorded(page), ELSEWHERE.get(page, ())) == []


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
