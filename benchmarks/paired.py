"""python -m benchmarks.paired NAME: how one method does beside others on the same problems and seeds of an arena.

For each family of problems and over all of them: the mean regret at the end of every budget, and in parentheses that of
the best configuration visited; the mean paired difference with its standard error, the upper end of its 95 % interval,
and wins, ties and losses; the 90th percentile. Of several files, such as those of two versions of the code, a method is
named METHOD@FILE.
"""

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple, TypeAlias

from benchmarks.comparing import Scores, Wins, complete_pairs, paired_wins
from benchmarks.markdown import section, table
from benchmarks.records import Record, read_records, results_path
from benchmarks.spread import quantile

DEFAULT, AGAINST = "TraceKG", ("asha", "bohb", "random")
NORMAL_95 = 1.96

ByBudget: TypeAlias = Mapping[float, Scores]


class Difference(NamedTuple):
    """Of paired regrets, one method minus another: below 0 the first is better."""

    mean: float
    error: float
    wins: Wins

    @classmethod
    def of(cls, scores: Scores, one: str, other: str) -> "Difference | None":
        """None where there are fewer than two pairs."""
        found = [scores[pair][one] - scores[pair][other] for pair in complete_pairs(scores, (one, other))]
        if len(found) < 2:
            return None
        return cls(fmean(found), stdev(found) / math.sqrt(len(found)), paired_wins(scores, (one, other))[one, other])

    @property
    def upper(self) -> float:
        return self.mean + NORMAL_95 * self.error

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f} (≤ {self.upper:+.3f}) {self.wins}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    paths = options.input or [results_path(options.name)]
    records = [record for path in paths for record in _labelled(path, several=len(paths) > 1)]
    if not records:
        sys.stderr.write(
            f"No results in {', '.join(map(str, paths))}. Make some: python -m benchmarks.run {options.name}\n"
        )
        return 1
    print_pairs(records, method=options.method, against=options.against)
    return 0


def print_pairs(records: Sequence[Record], *, method: str = DEFAULT, against: Sequence[str] = AGAINST) -> None:
    for one in pair_sections(records, method=method, against=against):
        print(one)


def pair_sections(
    records: Sequence[Record], *, method: str = DEFAULT, against: Sequence[str] = AGAINST, level: int = 2
) -> Iterator[str]:
    """One for each family of problems, and one of all."""
    for family in dict.fromkeys(_family(record) for record in records):
        own = [record for record in records if _family(record) == family]
        yield _section(family, own, method, against, level=level)
    yield _section("all", records, method, against, level=level)


def _labelled(path: Path, *, several: bool) -> list[Record]:
    suffix = f"@{path.stem}" if several else ""
    return [record | {"method": record["method"] + suffix} for record in read_records(path)]


def _family(record: Record) -> str:
    return str(record["problem"]).partition("/")[0]


def _section(name: str, records: Sequence[Record], method: str, against: Sequence[str], *, level: int) -> str:
    regrets, visited = _by_budget(records, "regret"), _by_budget(records, "visited")
    methods = list(dict.fromkeys(record["method"] for record in records))
    budgets = [f"{budget:g}" for budget in regrets]
    means = [[one, *(_mean(regrets[at], visited[at], one) for at in regrets)] for one in methods]
    others = [other for other in (against or methods) if other in methods and other != method]
    differences = [
        [f"{method} − {other}", *(str(Difference.of(scores, method, other) or "") for scores in regrets.values())]
        for other in others
    ]
    tails = [[one, *(_tail(scores, one) for scores in regrets.values())] for one in methods]
    return section(
        name,
        table([["mean regret (visited) at a budget of", *budgets], *means]),
        table([["paired difference", *budgets], *differences]),
        table([["90th percentile", *budgets], *tails]),
        level=level,
    )


def _by_budget(records: Iterable[Record], field: str) -> dict[float, dict[tuple[str, int], dict[str, float]]]:
    found: dict[float, dict[tuple[str, int], dict[str, float]]] = {}
    for record in sorted(records, key=_budget):
        scores = found.setdefault(_budget(record), {})
        scores.setdefault((record["problem"], record["seed"]), {})[record["method"]] = record[field]
    return found


def _budget(record: Record) -> float:
    return float(record["settings"]["allowance"]["amount"])


def _own(scores: Scores, method: str) -> list[float]:
    return [by_method[method] for by_method in scores.values() if method in by_method]


def _mean(regrets: Scores, visited: Scores, method: str) -> str:
    """With the number of studies."""
    own = _own(regrets, method)
    return f"{fmean(own):.3f} ({fmean(_own(visited, method)):.3f}) n {len(own)}" if own else ""


def _tail(scores: Scores, method: str) -> str:
    own = sorted(_own(scores, method))
    return f"{quantile(own, 0.9):.3f}" if own else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.paired", description=__doc__)
    parser.add_argument("name", help="the suite")
    parser.add_argument("--method", default=DEFAULT, help=f"{DEFAULT} by default")
    parser.add_argument("--against", nargs="*", default=AGAINST, help="those compared with; all with no name given")
    parser.add_argument("--input", nargs="+", type=Path, metavar="FILE", help="JSON lines; benchmarks/results/ else")
    return parser


if __name__ == "__main__":
    sys.exit(main())
