"""A dashboard in a process of its own, and Debian's Chromium. Without the browser these tests fail."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks.speed._large_study import write_large_study
from tests.browser.some_studies import write_studies

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
ROOT = Path(__file__).parents[2]
SECONDS = 120_000
"""Milliseconds that a page may take on a busy machine."""

expect.set_options(timeout=SECONDS)


@dataclass
class Dashboard:
    """A server that runs: its address with the token, and its process."""

    url: str
    process: subprocess.Popen[str]

    @property
    def origin(self) -> str:
        return self.url.partition("/?")[0]

    @property
    def token(self) -> str:
        return self.url.partition("token=")[2]

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024

    def __enter__(self) -> "Dashboard":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()


def start(storage: str | Path, *options: str, cwd: Path = ROOT) -> Dashboard:
    """Waits for the address that the server prints once it listens."""
    command = [sys.executable, "-m", "farthing", "dashboard", "--storage", str(storage), "--port", "0", "--no-browser"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, cwd=cwd)
    line = process.stdout.readline()
    found = re.search(r"https?://\S+", line)
    assert found, f"the dashboard did not start: {line}"
    return Dashboard(found[0], process)


@pytest.fixture(scope="session")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "These tests need Debian's Chromium: apt-get install chromium."
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        launched.close()


class Visitor:
    """A page that remembers what went wrong on it."""

    def __init__(self, page: Page, dashboard: Dashboard) -> None:
        self.page, self.dashboard = page, dashboard
        self.faults: list[str] = []
        page.set_default_timeout(SECONDS)
        page.on("console", lambda message: self._note(message.type == "error", message.text))
        page.on("pageerror", lambda error: self._note(True, str(error)))
        page.on("response", lambda answer: self._note(answer.status >= 500, f"{answer.status} {answer.url}"))
        page.on("dialog", lambda dialog: (self._note(True, f"a dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(dashboard.url)
        page.locator("#main .page, #main .empty, #main h1").first.wait_for()

    def _note(self, is_fault: bool, text: str) -> None:
        if is_fault and " 404 " not in f" {text} ":
            self.faults.append(text)

    def open(self, place: str, *, shows: str = "#main .page") -> Page:
        self.page.evaluate("place => { location.hash = place; }", f"#/{place}")
        self.page.locator("#main[aria-busy]").wait_for(state="detached")
        self.page.locator(shows).first.wait_for()
        return self.page


@pytest.fixture(scope="session")
def studies(tmp_path_factory) -> Path:
    """A study of each kind, run in earnest."""
    path = tmp_path_factory.mktemp("studies") / "studies.db"
    write_studies(path)
    return path


@pytest.fixture(scope="session")
def dashboard(studies: Path) -> Iterator[Dashboard]:
    with start(studies) as started:
        yield started


@pytest.fixture(scope="session")
def large(tmp_path_factory) -> Path:
    """50 000 trials with 1 000 000 measurements."""
    path = tmp_path_factory.mktemp("large") / "large.db"
    write_large_study(path, trials=50_000, points=20)
    return path


@pytest.fixture
def visit(browser: Browser) -> Iterator:
    """Opens a page; at the end there must be nothing wrong on any of them."""
    contexts, visitors = [], []

    def open_page(dashboard: Dashboard, **look) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **look})
        contexts.append(context)
        visitors.append(Visitor(context.new_page(), dashboard))
        return visitors[-1]

    yield open_page
    faults = [fault for visitor in visitors for fault in visitor.faults]
    for context in contexts:
        context.close()
    assert not faults
