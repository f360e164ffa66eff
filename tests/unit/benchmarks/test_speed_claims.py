"""Figures of speed that pages tell in their own tables and sentences are those of the committed records."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from benchmarks.records import RESULTS, read_records, results_path
from benchmarks.speed import _simulated_cluster

DOCS = Path(__file__).parents[3] / "docs"
MINUTE_MS = 60_000


def words_of(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def rows_after(page: str, words: str) -> list[list[str]]:
    """The cells of the first table after these words, without its heading."""
    lines = (DOCS / page).read_text(encoding="utf-8").partition(words)[2].splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("|"))
    table = lines[first : lines.index("", first)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def result_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"speed-{name}.json").read_text(encoding="utf-8"))
    return found


def short(milliseconds: float) -> str:
    return f"{milliseconds:.1f}" if milliseconds < 10 else f"{milliseconds:.0f}"


# ------------------------------------------------------------
# How many workers one coordinator serves.


@cache
def simulated() -> Sequence[Mapping[str, Any]]:
    return read_records(results_path("simulated-cluster"))


def of_cluster(strategy: str, workers: int, figure: str) -> float:
    found = [one[figure] for one in simulated() if (one["strategy"], one["workers"]) == (strategy, workers)]
    assert len(found) == (3 if workers <= _simulated_cluster.JUDGED_AT else 1)
    return median(found)


def taken(strategy: str, workers: int) -> float:
    """Of a model beside many workers only the suggestions after the first of each worker say what one takes."""
    is_late = strategy in _simulated_cluster.MODELS and workers > _simulated_cluster.JUDGED_AT
    return of_cluster(strategy, workers, _simulated_cluster.LATER if is_late else "CPU ms a trial")


def test_the_milliseconds_of_a_coordinator_are_those_recorded() -> None:
    rows = {name.strip("`"): cells for name, *cells in rows_after("guides/cluster.md", "How many workers one")}
    expected = {
        strategy: [
            short(taken(strategy, workers)) + (", saturated" if taken(strategy, workers) > MINUTE_MS / workers else "")
            for workers in _simulated_cluster.WORKERS
        ]
        for strategy in _simulated_cluster.STRATEGIES
    }
    assert rows == expected


def test_what_workers_of_a_model_wait_for_is_recorded() -> None:
    idle = {n: of_cluster("TraceKG", n, "idle share after the start") for n in (64, 256, 1000)}
    others = [of_cluster(name, 64, "idle share after the start") for name in ("Sobol", "ASHA")]
    page = words_of("guides/cluster.md")
    assert max(others) < idle[64]
    assert f"workers were idle for {idle[64]:.2%}".replace("%", " %") in page
    assert f"a suggestion takes {taken('TraceKG', 256):.0f} ms of the {MINUTE_MS / 256:.0f} ms" in page
    assert f"waited for {idle[256]:.1%} of their time. With 1000".replace("%", " %") in page
    assert f"it takes {taken('TraceKG', 1000):.0f} ms where {MINUTE_MS / 1000:.0f} are left" in page
    assert f"waited for {idle[1000]:.1%} while".replace("%", " %") in page


def test_a_thousand_workers_over_many_trials_take_what_is_recorded() -> None:
    [(_, rows)] = result_of("thousand")["figures"].items()
    sobol, costly_sobol, asha, costly_asha = rows
    said = (
        f"takes {sobol['CPU ms a trial']:.2f} ms a trial with `Sobol` and {asha['CPU ms a trial']:.1f} ms with `ASHA`, "
        f"in the last quarter {sobol['growth']:.2f} and {asha['growth']:.2f} times as much as in the second. A trial's "
        f"note takes {sobol['bytes of note a trial']:.0f} and {asha['bytes of note a trial']:.0f} bytes, and the study "
        f"opens in {sobol['CPU s to open']:.1f} and {asha['CPU s to open']:.1f} seconds of CPU. "
        f"With a budget of cost it takes {costly_sobol['CPU ms a trial']:.2f} and "
        f"{costly_asha['CPU ms a trial']:.1f} ms a trial."
    )
    assert (sobol["strategy"], asha["strategy"], sobol["trials"]) == ("Sobol", "ASHA", 20_000)
    assert [one["budget"] for one in rows] == ["trials", "cost"] * 2
    assert said in words_of("guides/cluster.md")


def test_what_a_stored_trial_takes_is_recorded() -> None:
    figures = result_of("storage")["figures"]
    cpu, rates = (
        {row["on"]: {name: row[name].split()[0] for name in row if name != "on"} for row in figures[table]}
        for table in ("CPU ms a trial", "full trials a second")
    )
    lone, four = (f"PostgreSQL, {processes}" for processes in ("1 process", "4 processes"))
    mine, theirs = ([float(cpu[on][name]) for on in (lone, four)] for name in ("farthing", "optuna"))
    page = words_of("guides/storage.md")
    assert f"takes {mine[0]:.1f} ms of CPU on PostgreSQL with one process, and {mine[1]:.1f} ms with four" in page
    assert f"Optuna takes {theirs[0]:.0f} and {theirs[1]:.0f}." in page
    assert f"On SQLite it takes {float(cpu['SQLite, 1 process']['farthing']):.1f} ms and three syncs" in page
    assert figures["syncs a trial, SQLite and journal"]["farthing"] == 3
    faster = [float(rates[on]["farthing / optuna"]) for on in (four, lone)]
    assert f"finish {faster[0]:.1f} times as many trials a second as Optuna's, one process {faster[1]:.1f}" in page


# ------------------------------------------------------------
# Suggesting ahead, long histories.


def test_what_eight_workers_wait_for_is_recorded() -> None:
    idle = {row["trials"]: row for row in result_of("idle")["figures"]["shares"] if row["strategy"] == "LogEI"}
    ahead, without = (
        {trials: f"{100 * float(row[key].split()[0]):.1f}" for trials, row in idle.items()}
        for key in ("idle", "not ahead")
    )
    page = words_of("guides/strategies.md")
    assert (
        f"wait for {ahead[400]} % of their time with `LogEI`, and for {without[400]} % if nothing is prepared" in page
    )
    assert f"In studies of 100 trials they wait for {ahead[100]} and {without[100]} %." in page


def test_how_long_a_model_of_curves_takes_late_is_recorded() -> None:
    cells = result_of("suggest-large")["figures"]["with the trials, 6 parameters"]
    took = {row["n"]: row["CPU ms"] for row in cells if row["contender"] == "TraceKG"}
    late = f"{took[100]:.0f} ms of CPU after 100 trials, {took[1000]:.0f} ms after 1000 and {took[10_000] / 1000:.2f} s"
    assert late in words_of("guides/strategies.md")


@pytest.mark.parametrize("name", ["LogEI", "EIPerCost", "TraceKG", "PrefixEI", "PB2", "Optuna TPE", "Optuna GPSampler"])
def test_how_suggestions_grow_is_recorded(name: str) -> None:
    figures = result_of("suggest-large")["figures"]
    cells = {row["n"]: row for row in figures["with the trials, 6 parameters"] if row["contender"] == name}
    [exponent] = [row["time over n"].split()[0] for row in figures["exponents"] if row["contender"] == name]
    rows = {
        re.split("[,(]", row[0])[0].strip("` "): row[1:] for row in rows_after("systems/bayesian.md", "How time and")
    }
    times = [f"{cells[n]['CPU ms']:.0f}" if n in cells else "" for n in (10, 100, 1000, 10_000)]
    assert rows[name] == [*times, exponent, str(cells[1000]["MB"])]
