"""Measures the first look at a study of 10 000 trials in a browser, beside optuna-dashboard on the same trials.

Each look has a fresh server and a fresh browser profile: bytes that came over the network, seconds until the first
paint and until the first chart is drawn, and the CPU seconds of the server meanwhile. The two take turns. Needs
`pip install --group test-browser optuna optuna-dashboard` and Debian's Chromium.
"""

import json
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bars import Bar, Result
from benchmarks.speed._large_study import NAME, _rows, write_large_study
from benchmarks.spread import Spread

TRIALS, QUICK_TRIALS = 10_000, 1_000
PATIENCE = 180.0
"""Seconds after which a server or a chart counts as missing."""

QUIET = 2.0
"""Seconds after the first chart in which what still comes is counted."""

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
FIGURES = {
    "transferred_kilobytes": "kilobytes over the network",
    "first_paint_seconds": "seconds to the first paint",
    "first_chart_seconds": "seconds to the first chart",
    "server_cpu_seconds": "CPU seconds of the server",
}


class Served(NamedTuple):
    """A server that runs: its process, the page of the study, and what shows that its first chart is drawn."""

    process: subprocess.Popen[str]
    enter: str
    page: str
    chart: str


def run(*, seeds: int, quick: bool) -> Result:
    import optuna_dashboard  # noqa: F401
    from playwright.sync_api import sync_playwright

    trials = QUICK_TRIALS if quick else TRIALS
    looks: dict[str, list[dict[str, float]]] = {"farthing": [], "optuna-dashboard": []}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        ours, theirs = Path(folder) / "farthing.db", Path(folder) / "optuna.db"
        write_large_study(ours, trials=trials, points=1)
        write_optuna_study(theirs, trials)
        servers: dict[str, Callable[[], Any]] = {
            "farthing": lambda: serving_farthing(ours),
            "optuna-dashboard": lambda: serving_optuna(theirs),
        }
        for _ in range(seeds):
            for name, serve in servers.items():
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
                with serve() as served:
                    looks[name].append(look(browser, served))
                browser.close()
    spreads = {
        name: {figure: Spread.of(one[figure] for one in own) for figure in FIGURES} for name, own in looks.items()
    }
    return Result(
        figures={name: {figure: spread.to_json() for figure, spread in own.items()} for name, own in spreads.items()}
        | {"trials": trials, "looks": looks},
        bars=[_bar(figure, spreads) for figure in FIGURES],
        left_out=[],
    )


def _bar(figure: str, spreads: dict[str, dict[str, Spread]]) -> Bar:
    ours, theirs = spreads["farthing"][figure].median, spreads["optuna-dashboard"][figure].median
    return Bar(
        what=FIGURES[figure], bar=f"< {theirs:.4g} (optuna-dashboard)", measured=round(ours, 4), holds=ours < theirs
    )


def look(browser: Any, served: Served) -> dict[str, float]:
    """One first look."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(served.enter)
    page.wait_for_load_state("load")
    page.close()
    page = context.new_page()
    bytes_in = 0

    def count(event: dict[str, Any]) -> None:
        nonlocal bytes_in
        bytes_in += event["encodedDataLength"]

    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.on("Network.loadingFinished", count)
    before, began = cpu_seconds(served.process.pid), time.monotonic()
    page.goto(served.page, wait_until="commit")
    page.locator(served.chart).first.wait_for(timeout=PATIENCE * 1000)
    drawn = time.monotonic() - began
    painted = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
    page.wait_for_timeout(QUIET * 1000)
    used = cpu_seconds(served.process.pid) - before
    context.close()
    return {
        "transferred_kilobytes": bytes_in / 1000,
        "first_paint_seconds": painted / 1000,
        "first_chart_seconds": drawn,
        "server_cpu_seconds": used,
    }


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving_farthing(path: Path) -> Iterator[Served]:
    command = [sys.executable, "-m", "farthing", "dashboard", "--storage", str(path), "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with _ended(process):
        enter = process.stdout.readline().rpartition(" ")[2].strip()
        origin = enter.partition("/?")[0]
        yield Served(process, enter, f"{origin}/#/study/{NAME}", ".chart canvas")


@contextmanager
def serving_optuna(path: Path) -> Iterator[Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(Path(sys.executable).with_name("optuna-dashboard")),
        f"sqlite:///{path}",
        "--port",
        str(port),
        "--quiet",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    with _ended(process):
        origin = f"http://127.0.0.1:{port}"
        _wait_for(f"{origin}/dashboard/")
        yield Served(process, f"{origin}/dashboard/", f"{origin}/dashboard/studies/1", ".js-plotly-plot .main-svg")


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


def _wait_for(url: str) -> None:
    for _ in range(int(PATIENCE * 5)):
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise TimeoutError(f"{url} does not answer")


def write_optuna_study(path: Path, trials: int) -> None:
    """The same params and values, written straight into Optuna's tables: by its API it takes half an hour."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space: dict[str, Any] = {
        "rate": optuna.distributions.FloatDistribution(1e-4, 1.0, log=True),
        "layers": optuna.distributions.IntDistribution(1, 8),
        "momentum": optuna.distributions.FloatDistribution(0.0, 0.99),
        "optimizer": optuna.distributions.CategoricalDistribution(["adam", "sgd", "lion"]),
    }
    forms = {name: optuna.distributions.distribution_to_json(one) for name, one in space.items()}
    optuna.create_study(storage=f"sqlite:///{path}", study_name=NAME, direction="minimize")
    rows = [row for row, _ in _rows(trials, 1, random.Random(1))]
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany(
            "INSERT INTO trials (trial_id, number, study_id, state, datetime_start, datetime_complete) "
            "VALUES (?, ?, 1, ?, ?, ?)",
            [
                (row["number"] + 1, row["number"], _state(row), _time(row["opened_at"]), _time(row["finished_at"]))
                for row in rows
            ],
        )
        database.executemany(
            "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, 0, ?, 'FINITE')",
            [(row["number"] + 1, row["value"]) for row in rows if row["value"] is not None],
        )
        database.executemany(
            "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (?, ?, ?, ?)",
            [
                (row["number"] + 1, name, space[name].to_internal_repr(value), forms[name])
                for row in rows
                for name, value in json.loads(row["params"]).items()
            ],
        )
    study = optuna.load_study(storage=f"sqlite:///{path}", study_name=NAME)
    assert len(study.get_trials()) == trials, "Optuna reads what was written"


def _state(row: dict[str, Any]) -> str:
    return "FAIL" if row["state"] == "failed" else "COMPLETE"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
