"""Requests over real connections: schemathesis against the kept document, readers that do not read, and the stream."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.speed._large_study import write_large_study
from farthing.dashboard.connections import PATIENCE
from farthing.dashboard.live import MOST_READERS
from tests.browser.conftest import ROOT, start

DOCUMENT = ROOT / "docs" / "dashboard_api.json"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "unsupported_method,ignored_auth,negative_data_rejection"
)


def with_studies(document: dict) -> dict:
    """The document, in which studies and trials are some that there are, so that requests reach more than the door."""
    known = {"study": ["digits", "curves", "online"], "number": [0, 3]}
    for path in document["paths"].values():
        for operation in path.values():
            for argument in operation["parameters"]:
                if argument["in"] == "path":
                    argument["schema"]["enum"] = known[argument["name"]]
    return document


@pytest.mark.parametrize("is_known", [True, False])
def test_schemathesis_finds_nothing(studies, tmp_path, is_known: bool) -> None:
    """Of each operation some dozens of requests, right and wrong ones."""
    document = json.loads(DOCUMENT.read_text())
    described, database = tmp_path / "api.json", tmp_path / "studies.db"
    described.write_text(json.dumps(with_studies(document) if is_known else document))
    shutil.copy(studies, database)
    with start(database, "--allow-changes") as dashboard:
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", str(described)]
        options = ["--url", dashboard.origin, "-H", f"Authorization: Bearer {dashboard.token}", "--checks", CHECKS]
        limits = ["--max-examples", "8", "--phases", "examples,coverage,fuzzing", "--seed", "1", "--no-color"]
        ran = subprocess.run([*command, *options, *limits], capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]


def stream(dashboard, last_id: str | None = None) -> socket.socket:
    host, _, port = dashboard.origin.removeprefix("http://").rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    back = f"Last-Event-ID: {last_id}\r\n" if last_id else ""
    asked = f"GET /api/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {dashboard.token}\r\n{back}\r\n"
    connection.sendall(asked.encode())
    return connection


def events_of(connection: socket.socket, count: int) -> list[dict]:
    """The next events, each with its id."""
    text, found = b"", []
    while len(found) < count:
        text += connection.recv(65536)
        found = [
            {"id": part.partition("\n")[0], **json.loads(part.partition("data: ")[2].partition("\n\n")[0])}
            for part in text.decode().split("id: ")[1:]
            if "\n\n" in part.partition("data: ")[2]
        ]
    return found


def get(dashboard, path: str) -> dict:
    asked = urllib.request.Request(dashboard.origin + path, headers={"Authorization": f"Bearer {dashboard.token}"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.load(answer)


def test_a_reader_that_comes_back_gets_what_it_missed(tmp_path) -> None:
    import farthing as ft

    path = tmp_path / "stream.db"
    space = ft.Space({"x": ft.Float(0, 1)})
    first = ft.Study(space, minimize="loss", storage=path, name="first")
    ft.Study(space, minimize="loss", storage=path, name="second").close()
    with start(path) as dashboard:
        reader = stream(dashboard)
        (everything,) = events_of(reader, 1)
        assert everything["studies"] is None
        time.sleep(1.5)  # a look at the versions, to tell a change from the first sight
        first.add({"x": 0.5}, 1.0)
        change = events_of(reader, 1)[0]
        assert list(change["studies"]) == ["first"]
        keeper = stream(dashboard)  # so that the server goes on looking
        reader.close()
        first.add({"x": 0.6}, 1.0)
        events_of(keeper, 2)
        back = stream(dashboard, change["id"])
        assert list(events_of(back, 1)[0]["studies"]) == ["first"]
        stranger = stream(dashboard, "elsewhere-17")
        assert events_of(stranger, 1)[0]["studies"] is None
        for connection in (keeper, back, stranger):
            connection.close()
    first.close()


def test_readers_that_do_not_read_cost_nothing_and_are_not_too_many(studies) -> None:
    with start(studies) as dashboard:
        get(dashboard, "/api/studies")
        before = dashboard.peak_megabytes()
        readers = [stream(dashboard) for _ in range(MOST_READERS + 4)]
        time.sleep(2)
        heads = [reader.recv(65536).split(b"\r\n")[0] for reader in readers]
        assert sum(b"200" in head for head in heads) == MOST_READERS
        assert sum(b"503" in head for head in heads) == 4
        assert get(dashboard, "/api/studies")["studies"]
        assert dashboard.peak_megabytes() - before < 50
        for reader in readers:
            reader.close()


@pytest.mark.long
def test_a_slow_reader_of_a_long_answer_is_let_go(tmp_path) -> None:
    """It asks for the whole table, waits for its first byte, and takes nothing for a long time."""
    write_large_study(tmp_path / "long.db", trials=50_000, points=1)
    with start(tmp_path / "long.db") as dashboard:
        host, _, port = dashboard.origin.removeprefix("http://").rpartition(":")
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((host, int(port)))
            ask = (
                f"GET /api/studies/large/trials.csv HTTP/1.1\r\nHost: {host}:{port}\r\n"
                f"Authorization: Bearer {dashboard.token}\r\n\r\n"
            )
            slow.sendall(ask.encode())
            assert get(dashboard, "/api/studies")["studies"], "others are answered meanwhile"
            slow.settimeout(600)
            answer = slow.recv(1)
            time.sleep(3 * PATIENCE)
            with suppress(ConnectionResetError):
                while part := slow.recv(1 << 20):
                    answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        assert len(body) < length, "the answer was cut off before its end"


def test_the_vendored_chart_library_is_the_one_that_was_checked() -> None:
    import hashlib

    folder = Path(ROOT) / "src/farthing/dashboard/static/vendor"
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
