"""Runs a benchmark and says for each bar whether it holds: python -m benchmarks.speed NAME."""

import argparse
import json
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import speed
from benchmarks.markdown import section, table
from benchmarks.provenance import commit, cpu_count, versions
from benchmarks.records import RESULTS
from benchmarks.spread import JSON_NAMES, Spread

SEEDS, QUICK_SEEDS = 5, 2
PACKAGES = ("numpy", "scipy", "sqlalchemy", "optuna", "botorch", "ray")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    try:
        result = measure(options.name, seeds=seeds, quick=options.quick)
    except ImportError as error:
        sys.stderr.write(f"{options.name} cannot run: {error}; make bench-setup\n")
        return 1
    if path := options.output or (RESULTS / f"speed-{options.name}.json" if options.save else None):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1) if options.json else as_markdown(result))
    return 0


def measure(name: str, *, seeds: int, quick: bool) -> dict[str, Any]:
    """The result of a benchmark, with the settings and the machine that it comes from."""
    result = import_module(f"benchmarks.speed.{name}").run(seeds=seeds, quick=quick)
    if not {"figures", "bars"} <= result.keys():
        raise TypeError(f"benchmarks.speed.{name}.run must return figures and bars, got {', '.join(result)}.")
    return {
        "benchmark": name,
        **result,
        "n": seeds,
        "quick": quick,
        "versions": versions(PACKAGES),
        **commit(),
        "cpu_count": cpu_count(),
    }


def as_markdown(result: Mapping[str, Any]) -> str:
    bars = [[bar["what"], bar["bar"], _shown(bar["measured"]), _held(bar)] for bar in result["bars"]]
    facts = f"n = {result['n']}, {result['cpu_count']} CPUs. Versions: {_listed(result['versions'])}."
    source = f"Commit: {result['commit']}{' with changes' if result['dirty'] else ''}."
    return section(
        f"speed {result['benchmark']}{' (quick)' if result['quick'] else ''}",
        *_figures(result["figures"]),
        table([["bar", "must be", "measured", "holds"], *bars]),
        *(f"left out: {reason}" for reason in result.get("left_out", ())),
        f"{facts} {source}",
        level=1,
    )


def _held(bar: Mapping[str, Any]) -> str:
    """A bar without a figure neither holds nor fails: its peer gave no answer."""
    if bar["measured"] is None:
        return "–"
    return "yes" if bar["holds"] else "NO"


def benchmark_names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(speed.__path__) if not module.name.startswith("_"))


def _figures(figures: Mapping[str, Any]) -> Iterator[str]:
    """Writes single figures and spreads in one table, and each list of rows in a table of its own."""
    flat = dict(_flattened(figures))
    single = [[name, _shown(value)] for name, value in flat.items() if not _is_rows(value)]
    yield table([["figure", "measured"], *single])
    for name, rows in flat.items():
        if _is_rows(rows):
            headings = list(dict.fromkeys(column for row in rows for column in row))
            cells = [[_shown(row.get(column)) for column in headings] for row in rows]
            yield section(name, table([headings, *cells]))


def _flattened(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in figures.items():
        if isinstance(value, Mapping) and tuple(value) == JSON_NAMES:
            yield f"{prefix}{name}", f"{Spread.from_json(value)}, n = {value['n']}"
        elif isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", value


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _listed(pairs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value or 'absent'}" for name, value in pairs.items())


def _shown(value: object) -> str:
    if value is None:
        return "not measured"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.speed", description=__doc__)
    parser.add_argument("name", choices=benchmark_names())
    parser.add_argument("--seeds", type=int, help=f"repeats, {SEEDS} unless told")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repeats")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the JSON object there")
    parser.add_argument("--save", action="store_true", help="also write it to benchmarks/results/speed-NAME.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
