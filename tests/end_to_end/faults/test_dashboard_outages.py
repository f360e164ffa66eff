"""A dashboard whose PostgreSQL server is away says so at once, and goes on by itself once it is back."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from tests.conftest import started
from tests.postgres import PostgresServer

PLACES = ("api/studies", "api/studies/away", "api/studies/away/trials", "api/studies/away/trials.csv")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    yield from started(PostgresServer(durable=False))


@dataclass
class Served:
    """A dashboard in a process of its own."""

    url: str
    token: str
    log: Path

    def ask(self, path: str, change: dict[str, Any] | None = None) -> tuple[int, str]:
        """The status and the text of an answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        body = None if change is None else json.dumps(change).encode()
        asked = urllib.request.Request(self.url + path, headers=headers, data=body)
        try:
            with urllib.request.urlopen(asked) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def wait_until_it_answers(self) -> None:
        while self.ask("api/studies/away")[0] != 200:
            pass


@pytest.fixture
def served(server: PostgresServer, tmp_path: Path) -> Iterator[Served]:
    """Of a study that a page has been shown."""
    url = server.new_database()
    with ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="loss", storage=url, name="away") as study:
        study.add({"x": 0.5}, 1.0)
    command = [sys.executable, "-m", "farthing", "dashboard", "--storage", url, "--port", "0", "--no-browser"]
    log = tmp_path / "log.txt"
    with (
        log.open("w") as file,
        subprocess.Popen([*command, "--allow-changes"], stdout=subprocess.PIPE, stderr=file, text=True) as process,
    ):
        assert process.stdout is not None
        found = re.search(r"(http://\S+/)\?token=(\S+)", process.stdout.readline())
        assert found is not None
        dashboard = Served(found[1], found[2], log)
        assert dashboard.ask("api/studies/away")[0] == 200
        yield dashboard
        process.terminate()


def test_a_server_that_is_stopped_is_not_waited_for(server: PostgresServer, served: Served) -> None:
    with stopped(server):
        for place in PLACES:
            status, text = served.ask(place)
            assert status == 503, text
            assert "A PostgreSQL storage must" in json.loads(text)["error"]
        assert served.ask("api/studies/away/stop", {})[0] == 503
        assert "waiting for up to" not in served.log.read_text()

    assert [served.ask(place)[0] for place in PLACES] == [200] * len(PLACES)
    assert served.ask("api/studies/away/stop", {})[0] == 200


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


@contextmanager
def standing_still(server: PostgresServer) -> Iterator[None]:
    """It takes connections and answers nothing, as behind a network that drops all packets."""
    assert server._process is not None
    first = server._process.pid
    os.kill(first, signal.SIGSTOP)  # before its children, so that it starts no other
    family = [first, *children_of(first)]
    try:
        for process in family:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in reversed(family):
            os.kill(process, signal.SIGCONT)


def children_of(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = (line.split() for line in listed.splitlines())
    return [int(child) for child, parent in pairs if int(parent) == process]


def test_a_server_that_stands_still_is_not_waited_for(server: PostgresServer, served: Served) -> None:
    """Answers come while it stands still: it goes on only after them."""
    with standing_still(server):
        for place in PLACES * 12:
            status, text = served.ask(place)
            assert status == 503, text
            assert "got no answer" in json.loads(text)["error"]
        status, text = served.ask("api/studies/away/stop", {})
        assert status == 503
    served.wait_until_it_answers()
    assert [served.ask(place)[0] for place in PLACES] == [200] * len(PLACES)


def test_pages_are_told_when_it_goes_and_when_it_comes_back(server: PostgresServer, served: Served) -> None:
    headers = {"Authorization": f"Bearer {served.token}"}
    with urllib.request.urlopen(urllib.request.Request(f"{served.url}api/events", headers=headers)) as stream:
        assert failure_in(stream) is None
        with stopped(server):
            assert failure_in(stream) == "StorageError"
        assert failure_in(stream) is None
        with standing_still(server):
            assert failure_in(stream) == "StorageError"
        assert failure_in(stream) is None


def failure_in(stream: Any) -> str | None:
    """Of the next event."""
    for line in stream:
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))["failure"]
    raise AssertionError("the stream ended")
