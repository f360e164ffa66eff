"""The sections of suites that are played in rounds or in populations, and of our own speed."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.evidence.contests import short
from benchmarks.evidence.figures import Line, Panel, draw
from benchmarks.markdown import table
from benchmarks.online import report as online_report
from benchmarks.online import training_report
from benchmarks.online.suites import OnlineSuite
from benchmarks.paired import Difference
from benchmarks.population import report as population_report
from benchmarks.records import Record, label_of
from benchmarks.speed.__main__ import as_markdown
from benchmarks.spread import Spread

# ---------------------------------------------------------------------------------------------------------- online


def online_section(suite: OnlineSuite, records: Sequence[Record], *, images: Path) -> str:
    """Regret or reward beside the number of measurements, and curves of those that differ in how often they ask."""
    own = [record for record in records if record["seed"] >= suite.first_seed]
    result = online_report.report(suite, own)
    figures = []
    if suite.curves:
        draw(_online_panels(suite, own), images / f"{suite.name}.svg")
        caption = f"Median {suite.measure} against the number of measurements C_T; bands are quartiles"
        figures.append(f"![{caption}](images/benchmarks/{suite.name}.svg)")
    text = online_report.as_text({**result, "commits": [short(commit) for commit in result["commits"]]}, as_json=False)
    return "\n\n".join([_below(text), *figures])


def _online_panels(suite: OnlineSuite, records: Sequence[Record]) -> list[Panel]:
    families = {"default": ("default",), **suite.curves}
    problems = list(dict.fromkeys(record["problem"] for record in records))
    return [
        Panel(
            problem,
            "C_T",
            suite.measure,
            tuple(
                _online_line(label, [r for r in records if r["problem"] == problem], members, suite.measure)
                for label, members in families.items()
            ),
            points=True,
        )
        for problem in problems
    ]


def _online_line(label: str, records: Sequence[Record], members: Sequence[str], measure: str) -> Line:
    found = []
    for member in members:
        own = [record for record in records if record["method"] == member]
        if own:
            queries = Spread.of(float(record["queries"]) for record in own).median
            found.append((queries, Spread.of(float(record[measure]) for record in own)))
    found.sort()
    return Line(label, tuple(queries for queries, _ in found), tuple(spread for _, spread in found))


def training_section(suite: str, records: Sequence[Record], *, order: Sequence[str]) -> str:
    own = [record for record in records if record["suite"] == suite]
    result = training_report.report(suite, own, order=order)
    result["commits"] = [short(commit) for commit in result["commits"]]
    return _below(training_report.as_text(result, as_json=False))


# ----------------------------------------------------------------------------------------------------- populations


def population_section(
    suite: str,
    records: Sequence[Record],
    *,
    ours: str,
    order: Sequence[str],
    measure: str,
    images: Path | None = None,
) -> str:
    """Spreads, wins and losses of ours, seed by seed; small numbers are good."""
    result = population_report.report(suite, records, ours=ours, order=order)
    result["commits"] = [short(commit) for commit in result["commits"]]
    text = _below(population_report.as_text(result, as_json=False))
    title, _, rest = text.partition("\n\n")
    figures = []
    if images is not None:
        draw(_population_panels(records, order), images / f"{suite}.svg")
        caption = "Median against the size of the population, which is the cost in runs; bands are quartiles"
        figures.append(f"![{caption}](images/benchmarks/{suite}.svg)")
    return "\n\n".join([title, f"Compared is {measure}; small numbers are good.", *figures, rest])


def _population_panels(records: Sequence[Record], order: Sequence[str]) -> list[Panel]:
    """Of methods that have a result for every size of a task, ours first."""
    tasks = {name: list(own) for name, own in groupby(sorted(records, key=_task), key=_task)}
    return [_population_panel(task, own, order) for task, own in tasks.items()]


def _population_panel(task: str, records: Sequence[Record], order: Sequence[str]) -> Panel:
    sizes = sorted({_size(record) for record in records})
    lines = []
    for method in (order[-1], *order[:-1]) if order[-1] == "PB2" else ("PB2", *(m for m in order if m != "PB2")):
        spreads = [
            [float(r["regret"]) for r in records if r["method"] == method and _size(r) == size] for size in sizes
        ]
        if all(spreads):
            xs = tuple(float(size) for size in sizes)
            lines.append(Line(method, xs, tuple(Spread.of(sample) for sample in spreads)))
    return Panel(task, "members", "regret", tuple(lines), log_x=False, points=True)


def _task(record: Record) -> str:
    return str(record["problem"]).partition(",")[0]


def _size(record: Record) -> int:
    return int(str(record["problem"]).rpartition("=")[2])


def as_losses(records: Sequence[Record], key: str, *, scale: float = 1.0) -> list[Record]:
    """Records of a score that should be large, as the report of populations reads them."""
    return [
        {"suggest_cpu_seconds": record.get("suggest_seconds"), **record, "regret": -scale * record[key]}
        for record in records
    ]


# ----------------------------------------------------------------------------------------------------------- speed


def speed_section(path: Path) -> str:
    result = json.loads(path.read_text(encoding="utf-8"))
    name = path.stem.removeprefix("speed-")
    text = as_markdown({**result, "commit": short(result["commit"])})
    return _below(text.replace(f"# speed {result['benchmark']}", f"# speed {name}", 1), level=3)


def scaling_figure(results: Path, path: Path) -> str:
    """How the CPU time of one decision grows with what was seen so far."""
    read = {
        name: json.loads((results / f"speed-{name}.json").read_text(encoding="utf-8"))["figures"]
        for name in ("suggest", "suggest-large", "takg", "online", "population")
    }
    columns = {"ours": "ours, CPU ms", "Optuna's GPSampler": "optuna, CPU ms", "BoTorch": "botorch, CPU ms"}
    plain = [row for row in read["suggest"]["one suggestion"] if row["space"] == "6-d"]
    large = [
        {"n": row["n"], "ours, CPU ms": str(row["CPU ms"])}
        for row in read["suggest-large"]["with the trials, 6 parameters"]
        if row["contender"] == "LogEI"
    ]
    curves = [row for row in read["takg"]["one suggestion"] if row["function"] == "augmented-hartmann-6"]
    rounds = [row for row in read["online"]["rounds"] if row["where"] == "1000 candidates"]
    members = [row for row in read["population"]["decisions of one interval"] if row["after intervals"] == 20]
    drawn = [
        _scaling("LogEI, 6 dimensions", "trials", plain, "n", columns),
        _scaling("LogEI in large studies", "trials", large, "n", columns),
        _scaling("TraceKG, Hartmann-6", "observations", curves, "n", columns),
        _scaling("a silent round, 1000 candidates", "round", rounds, "round", {"ours": "silent, CPU ms"}),
        _scaling("decisions of an interval", "members", members, "B", columns),
    ]
    draw(drawn, path)
    return f"![CPU ms of one decision against the size of the history](images/benchmarks/{path.name})"


def _scaling(
    title: str, x_label: str, rows: Sequence[Mapping[str, Any]], along: str, columns: Mapping[str, str]
) -> Panel:
    lines = []
    for name, column in columns.items():
        kept = [row for row in rows if column in row]
        if kept:
            spreads = tuple(_parsed(str(row[column])) for row in kept)
            lines.append(Line(name, tuple(float(row[along]) for row in kept), spreads))
    return Panel(title, x_label, "CPU ms", tuple(lines), log_x=True, log_y=True, points=True)


def _parsed(text: str) -> Spread:
    """A spread as it was printed, "17.1 [17.1, 17.9]", or one number."""
    middle, _, band = text.partition(" [")
    low, high = band.rstrip("]").split(", ") if band else (middle, middle)
    return Spread(float(middle), float(low), float(high), 0)


# ------------------------------------------------------------------------------------------------------------ text


def _below(text: str, *, level: int = 2) -> str:
    """The same with its title at that level and every other heading one below it: the page has one title."""
    title, *lines = text.splitlines()
    moved = (f"{'#' * (level + 1)} {line.lstrip('# ')}" if line.startswith("#") else line for line in lines)
    return "\n".join([f"{'#' * level} {title.lstrip('# ')}", *moved])


def spreads_table(records: Sequence[Record], keys: Sequence[str], measures: Sequence[str]) -> str:
    """Medians with quartiles over what the keys do not tell apart; keys that no record has are left out."""
    keys = [key for key in keys if key in records[0]]
    measures = [measure for measure in measures if measure in records[0]]
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(str(record.get(key, "")) for key in keys), []).append(record)
    rows = [[*keys, *measures, "n"]]
    for group, own in groups.items():
        spreads = (Spread.of(float(record[measure]) for record in own) for measure in measures)
        rows.append([*group, *(str(spread) for spread in spreads), str(len(own))])
    return table(rows)


def pairs_table(records: Sequence[Record], measure: str, method: str) -> str:
    """How a method differs from the others on the same problems, seeds and budgets; less of the measure is better."""
    scores: dict[tuple[str, float], dict[tuple[str, int], dict[str, float]]] = {}
    for record in records:
        own = scores.setdefault((record["problem"], record["budget"]), {})
        own.setdefault((record["problem"], record["seed"]), {})[record["method"]] = record[measure]
    rows = [["problem", "pair", f"{measure}: mean difference (end of its 95 % interval) wins–ties–losses"]]
    for (problem, _), own in scores.items():
        for other in dict.fromkeys(name for found in own.values() for name in found if name != method):
            if difference := Difference.of(own, method, other):
                rows.append([problem, f"{method} − {other}", str(difference)])
    return table(rows)


def coverage(records: Sequence[Record]) -> list[str]:
    """How many of the gains were within their interval, for each family; nothing for records without intervals."""
    inside: dict[str, list[bool]] = {}
    for record in records:
        if "inside" in record:
            inside.setdefault(record["family"], []).append(bool(record["inside"]))
    shares = [f"{name} {sum(own)} of {len(own)} ({sum(own) / len(own):.0%})" for name, own in inside.items()]
    return [f"Within the interval of 80 %: {', '.join(shares)}."] if shares else []


def own_table(records: Sequence[Record], heading: Sequence[str]) -> str:
    """Records without a suite, as means over seeds by method."""
    rows = [list(heading)]
    for method in dict.fromkeys(record["method"] for record in records):
        own = [record for record in records if record["method"] == method]
        means = [sum(float(record[key]) for record in own) / len(own) for key in heading[1:-1]]
        rows.append([label_of(method), *(f"{mean:.3g}" for mean in means), str(len(own))])
    return table(rows)
