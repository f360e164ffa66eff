"""Measures the overhead of clusters: real ones and simulated ones, each in a module of its own."""

import importlib.util
from importlib import import_module

from benchmarks.bars import Result

PARTS = ("_ray_overhead", "_simulated_cluster")


def run(*, seeds: int, quick: bool) -> Result:
    """The figures, bars and gaps of all parts that there are, each part under its own name."""
    names = [name for name in PARTS if importlib.util.find_spec(f"benchmarks.speed.{name}")]
    results: list[Result] = [import_module(f"benchmarks.speed.{name}").run(seeds=seeds, quick=quick) for name in names]
    return Result(
        figures={key: part for result in results for key, part in result["figures"].items()},
        bars=[bar for result in results for bar in result["bars"]],
        left_out=[reason for result in results for reason in result["left_out"]],
    )
