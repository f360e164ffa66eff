"""Make the tables of what was recorded: `python -m benchmarks.recording.pack RECORDED benchmarks/data`.

The price of a step is linear in what it computes, fitted to the runs that were timed alone; `seconds` is that times the
number of steps. Prints the figures of `benchmarks/data/README.md`.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import spearmanr

Table = Mapping[str, NDArray[Any]]


def fitted(runs: list[dict[str, Any]]) -> tuple[NDArray[np.float64], float]:
    """Non-negative coefficients of the price of a step, and the median relative error of the fit."""
    work = np.array([run["work"] for run in runs])
    seconds = np.array([run["seconds"] for run in runs])
    scale = work.max(axis=0)
    found, _ = nnls(work / scale / seconds[:, None], np.ones(len(runs)))
    errors = np.abs(work / scale @ found / seconds - 1.0)
    return found / scale, float(np.median(errors))


def packed(recorded: Table, timing: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The table with its prices, its space and where it comes from."""
    runs = timing["runs"]
    coefficients, error = fitted(runs)
    prices = {
        tuple(run["shape"].values()): run["total_steps"] * float(coefficients @ np.array(run["work"])) for run in runs
    }
    shapes = np.stack([recorded[name] for name in runs[0]["shape"]], axis=1).astype(int)
    meta = {
        "task": timing["says"],
        "data": timing["data"],
        "device": "one GPU",
        "versions": timing["versions"],
        "timed_runs": len(runs),
        "fit_error": round(error, 4),
        "seconds_a_step": "a linear function of " + timing["work"],
        "coefficients": coefficients.tolist(),
    }
    return {
        "curves": recorded["curves"],
        "seconds": np.array([prices[tuple(shape)] for shape in shapes.tolist()], dtype=np.float32),
        **{name: recorded[name] for name in timing["space"]},
        "space": np.array(json.dumps(timing["space"])),
        "meta": np.array(json.dumps(meta)),
    }


def figures(table: Table) -> dict[str, float]:
    """What says whether a table is worth tuning on."""
    curves, seconds = table["curves"], table["seconds"]
    last = curves[:, -1]
    best = np.argsort(last, kind="stable")[:20]
    correlations = {f"rank correlation of point {p}": spearmanr(curves[:, p - 1], last).statistic for p in (1, 2, 4)}
    return {
        "rows": len(last),
        **correlations,
        "dearest / cheapest": seconds.max() / seconds.min(),
        "mean seconds": seconds.mean(),
        "best": last.min(),
        "tenth": np.quantile(last, 0.1),
        "median": np.median(last),
        "worst": last.max(),
        "share at or above the worst's guess": np.mean(last >= 0.98 * last.max()),
        "cost of the best 20 / mean": seconds[best].mean() / seconds.mean(),
        "fit error": json.loads(str(table["meta"]))["fit_error"],
        "timed runs": json.loads(str(table["meta"]))["timed_runs"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recorded", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    timings = json.loads((arguments.recorded / "timings.json").read_text())
    for name, timing in timings.items():
        with np.load(arguments.recorded / f"{name}.npz") as archive:
            table = packed(dict(archive), timing)
        np.savez_compressed(arguments.target / f"{name}.npz", **table)  # type: ignore[arg-type]
        print(name, *(f"  {what}: {value:.4g}" for what, value in figures(table).items()), sep="\n")


if __name__ == "__main__":
    main()
