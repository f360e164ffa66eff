"""Measures what four writers lose when a page looks on: one client polls the dashboard as an open page does.

The writers go on all the time; windows without and with the client take turns, a minute of each in all. Runs on
SQLite and, where a server can be started, on PostgreSQL, and counts the errors on either side.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack
from typing import Any

import farthing as ft
from benchmarks.bars import Bar, Result
from farthing.errors import StorageError
from farthing.storage import open_storage
from tests.postgres import PostgresServer

WRITERS = 4
LEAST_SHARE = 0.9
"""Of the writers' throughput without a page, with one."""

SECONDS, QUICK_SECONDS = 10.0, 2.0
WINDOWS, QUICK_WINDOWS = 6, 1
SECONDS_BETWEEN_DRAWINGS = 0.8
SECONDS_KEPT = 15.0
"""As in the page's `app.js` and `overview.js`: how often it draws, and how long it keeps what takes longer."""

SPACE = ft.Space({"rate": ft.Float(1e-4, 1.0, log=True), "units": ft.Int(1, 64), "kind": ft.Choice("a", "b")})
WRITER = """
import sys
import farthing as ft
study = ft.Study.load("busy", sys.argv[1])
print("ready", flush=True)
while True:
    trial = study.ask()
    trial.report(0.5, step=1)
    study.tell(trial, trial.params["rate"])
"""


def run(*, seeds: int, quick: bool) -> Result:
    """One comparison on each storage, whatever the number of repeats: its windows are the repeats."""
    windows, seconds = (QUICK_WINDOWS, QUICK_SECONDS) if quick else (WINDOWS, SECONDS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        storages, left_out = {"SQLite": f"sqlite:///{folder}/busy.db"}, []
        try:
            storages["PostgreSQL"] = stack.enter_context(PostgresServer(durable=True)).new_schema()
        except StorageError as error:
            left_out.append(f"PostgreSQL: {error}")
        found = {name: compare(storage, windows=windows, seconds=seconds) for name, storage in storages.items()}
    return Result(
        figures=found, bars=[bar for name, own in found.items() for bar in _bars(name, own)], left_out=left_out
    )


def _bars(name: str, found: dict[str, Any]) -> list[Bar]:
    share, errors = found["share"], found["errors"]
    return [
        Bar(
            what=f"{name}: writers' throughput with a page, of that without",
            bar=f"≥ {LEAST_SHARE}",
            measured=round(share, 4),
            holds=share >= LEAST_SHARE,
        ),
        Bar(what=f"{name}: errors of writers and answers", bar="0", measured=errors, holds=errors == 0),
    ]


class Polling:
    """Asks what an open page asks after each change, at most as often as a page does, and the list of studies too."""

    def __init__(self, url: str) -> None:
        self._origin, _, self._token = url.partition("/?token=")
        self._is_on = threading.Event()
        self._is_over = threading.Event()
        self.answers = 0
        self.errors: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def on(self) -> None:
        self._is_on.set()

    def off(self) -> None:
        self._is_on.clear()

    def end(self) -> None:
        self._is_over.set()
        self._is_on.set()
        self._thread.join()

    def _run(self) -> None:
        slow_at = -SECONDS_KEPT
        while self._is_on.wait() and not self._is_over.is_set():
            for path in ("", "/busy", "/busy/predictions"):
                self._get(f"/api/studies{path}")
            if time.monotonic() - slow_at >= SECONDS_KEPT:
                slow_at = time.monotonic()
                self._get("/api/studies/busy/bill")
                self._get("/api/studies/busy/outlook")
            self._is_over.wait(SECONDS_BETWEEN_DRAWINGS)

    def _get(self, path: str) -> None:
        asked = urllib.request.Request(self._origin + path, headers={"authorization": f"Bearer {self._token}"})
        try:
            with urllib.request.urlopen(asked, timeout=120) as answer:
                json.load(answer)
                self.answers += 1
        except Exception as error:
            self.errors.append(repr(error))


def compare(storage: str, *, windows: int, seconds: float) -> dict[str, Any]:
    """Changes a second in windows that take turns, without and with a page, while the same writers go on."""
    ft.Study(SPACE, minimize="loss", storage=storage, name="busy", strategy=ft.Random(), seed=1).close()
    writers: list[subprocess.Popen[Any]] = [
        subprocess.Popen([sys.executable, "-c", WRITER, storage], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(WRITERS)
    ]
    command = [sys.executable, "-m", "farthing", "dashboard", "--storage", storage, "--port", "0", "--no-browser"]
    server: subprocess.Popen[Any] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    place: Any = open_storage(storage)
    assert server.stdout is not None
    address = re.search(r"http://\S+", server.stdout.readline())
    assert address is not None, "the dashboard listens"
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    polling = Polling(address[0])
    rates: dict[str, list[float]] = {"without": [], "with": []}
    try:
        for window in range(2 * windows):
            name = ("without", "with")[(window + window // 2) % 2]
            (polling.on if name == "with" else polling.off)()
            before, began = place.versions()["busy"], time.monotonic()
            time.sleep(seconds)
            rates[name].append((place.versions()["busy"] - before) / (time.monotonic() - began))
        fallen = sum(writer.poll() is not None for writer in writers)
        trials = len(place.results("busy"))
    finally:
        polling.end()
        for process in (*writers, server):
            process.kill()
            process.wait()
        words = [writer.stderr.read().decode() for writer in writers if writer.stderr is not None]
        for process in (*writers, server):
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        place.close()
    pairs = list(zip(rates["with"], rates["without"], strict=True))
    return {
        "share": statistics.median(with_page / without for with_page, without in pairs),
        "windows": [{"with": with_page, "without": without} for with_page, without in pairs],
        "trials": trials,
        "answers": polling.answers,
        "errors": len(polling.errors) + fallen,
        **({"words": [*polling.errors, *words][:5]} if polling.errors or fallen else {}),
    }
