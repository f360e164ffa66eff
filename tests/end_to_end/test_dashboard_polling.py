"""A dashboard that is looked at beside four writers: no errors on either side, and the writers hardly notice."""

import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.storage import open_storage

WRITERS = 4
LEAST_SHARE = 0.9
"""Of the writers' throughput without a page, with one."""

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


class Polling:
    """Asks what an open page asks after each change, at most as often as a page does."""

    def __init__(self, url: str) -> None:
        self._origin, _, self._token = url.partition("/?token=")
        self._is_on = threading.Event()
        self._is_over = threading.Event()
        self.answers, self.errors = 0, []
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
        while self._is_on.wait() and not self._is_over.is_set():
            for path in ("/api/studies", "/api/studies/busy", "/api/studies/busy/predictions"):
                self._get(path)
            self._is_over.wait(0.8)

    def _get(self, path: str) -> None:
        asked = urllib.request.Request(self._origin + path, headers={"authorization": f"Bearer {self._token}"})
        try:
            with urllib.request.urlopen(asked, timeout=120) as answer:
                json.load(answer)
                self.answers += 1
        except Exception as error:
            self.errors.append(repr(error))


def compare(storage: str, *, windows: int, seconds: float) -> dict:
    """Trials a second in windows that take turns, without and with a page, while the same writers go on."""
    ft.Study(SPACE, minimize="loss", storage=storage, name="busy", strategy=ft.Random(), seed=1).close()
    writers: list[subprocess.Popen[Any]] = [
        subprocess.Popen([sys.executable, "-c", WRITER, storage], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(WRITERS)
    ]
    command = [sys.executable, "-m", "farthing", "dashboard", "--storage", storage, "--port", "0", "--no-browser"]
    server: subprocess.Popen[Any] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    place: Any = open_storage(storage)
    url = re.search(r"http://\S+", server.stdout.readline())[0]
    for writer in writers:
        writer.stdout.readline()
    polling = Polling(url)
    rates = {"without": [], "with": []}
    try:
        for window in range(2 * windows):
            name = ("without", "with")[(window + window // 2) % 2]
            (polling.on if name == "with" else polling.off)()
            before, began = place.versions()["busy"], time.monotonic()
            time.sleep(seconds)
            rates[name].append((place.versions()["busy"] - before) / (time.monotonic() - began))
        ended = [writer.poll() for writer in writers]
    finally:
        polling.end()
        for process in (*writers, server):
            process.kill()
            process.wait()
        words = [writer.stderr.read().decode() for writer in writers]
        for process in (*writers, server):
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        place.close()
    assert ended == [None] * WRITERS, words
    assert polling.errors == []
    assert polling.answers > 0
    share = statistics.median(w / o for w, o in zip(rates["with"], rates["without"], strict=True))
    found = {"share": share, "changes_a_second": rates, "answers": polling.answers}
    if "FARTHING_MEASURED" in os.environ:
        with Path(os.environ["FARTHING_MEASURED"]).open("a") as file:
            file.write(json.dumps({"storage": storage.partition(":")[0], **found}) + "\n")
    return found


def test_a_page_beside_four_writers_makes_no_errors(tmp_path) -> None:
    compare(f"sqlite:///{tmp_path}/busy.db", windows=1, seconds=3.0)


@pytest.mark.long
def test_writers_hardly_notice_a_page_on_sqlite(tmp_path) -> None:
    found = compare(f"sqlite:///{tmp_path}/busy.db", windows=6, seconds=10.0)
    assert found["share"] >= LEAST_SHARE, found


@pytest.mark.long
def test_writers_hardly_notice_a_page_on_postgresql(postgres_url) -> None:
    found = compare(postgres_url, windows=6, seconds=10.0)
    assert found["share"] >= LEAST_SHARE, found
