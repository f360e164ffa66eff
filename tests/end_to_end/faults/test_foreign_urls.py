"""Reading a database opens no store that it names: no command, no page and no look from Python asks for one."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from click.testing import CliRunner, Result
from fsspec.implementations.memory import MemoryFileSystem

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.dashboard.routes import ENDPOINTS
from farthing.storage import open_storage
from tests.end_to_end.faults.tampering import COMMANDS, PLOT, client_of, endpoint_address

LISTING = [["cache", "list", "STUDY", "--all"], ["cache", "verify", "STUDY"], ["cache", "prune", "STUDY", "--all"]]


class Trap(MemoryFileSystem):
    """A file system that notes each time that it is opened, as an object store would note a request."""

    protocol = "trap"
    cachable = False
    opened: list[str] = []  # noqa: RUF012 (of the class: fsspec makes the objects)

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.opened.append("opened")


@pytest.fixture
def requests() -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and what it was asked for."""
    seen: list[str] = []

    class Counting(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            seen.append(self.rfile.readline(1000).decode(errors="replace"))
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/files", seen
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def opened() -> Iterator[list[str]]:
    fsspec.register_implementation("trap", Trap, clobber=True)
    Trap.opened.clear()
    yield Trap.opened
    Trap.opened.clear()


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain study and one of a pipeline, each with a checkpoint and a failure."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    stages = {"first": {"x": ft.Float(0, 1)}, "last": {"y": ft.Float(0, 1)}}
    spaces = {"plain": ft.Space({"x": ft.Float(0, 1)}), "staged": ft.Space(stages=stages)}
    for name, space in spaces.items():
        with closing(ft.Study(space, minimize="error", name=name, storage=tmp_path / "foreign.db")) as study:
            for place in (0.25, 0.5):
                study.add(dict.fromkeys(space.parameters, place), place)
            study.tell(study.ask(), failure="no")
    return tmp_path / "foreign.db"


def name_folder(database: Path, url: str) -> None:
    """Whoever may write to the database names a store, and checkpoints there."""
    with closing(open_storage(database)) as storage:
        for name in ("plain", "staged"):
            storage.update_study(name, settings={**storage.load_study(name).settings, "folder": url})
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE trial SET checkpoint = '000001/attempt-1.checkpoint-1' WHERE number = 1")


def call(database: Path, *words: str) -> Result:
    return CliRunner().invoke(program, [*words, "--storage", str(database)])


def look_everywhere(database: Path) -> None:
    for name in ("plain", "staged"):
        for command in (*COMMANDS, PLOT, *LISTING):
            result = call(database, *(name if word == "STUDY" else word for word in command))
            assert result.exit_code in (0, 1), (command, result.output)
            assert "fault of Farthing" not in result.output, (command, result.output)
            assert "needs fsspec" not in result.output, (command, result.output)  # it tried, and lacks a package
        with client_of(str(database)) as client:
            for endpoint in ENDPOINTS:
                if endpoint.method == "GET":
                    assert client.get(endpoint_address(endpoint, name)).status_code < 500
        with closing(ft.Study.load(name, database)) as study:
            assert str(study)
            assert study._repr_html_()
            assert study.export()
            assert study.best.value == 0.25


def test_a_url_in_a_database_is_asked_for_nothing_by_those_who_read(
    database: Path, requests: tuple[str, list[str]]
) -> None:
    url, seen = requests
    name_folder(database, url)
    look_everywhere(database)
    assert seen == []


def test_a_store_of_any_kind_is_opened_by_nobody_who_reads(database: Path, opened: list[str]) -> None:
    name_folder(database, "trap://bucket/files")
    look_everywhere(database)
    assert opened == []


def test_a_folder_on_this_disk_that_names_a_store_opens_none_either(
    database: Path, tmp_path: Path, opened: list[str]
) -> None:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / ".farthing-store").write_text("trap://bucket/files")
    name_folder(database, str(tmp_path / "planted"))
    look_everywhere(database)
    assert opened == []


def test_the_commands_say_where_the_files_are_and_how_to_ask_for_them(database: Path, opened: list[str]) -> None:
    name_folder(database, "trap://bucket/files")
    assert "trap://bucket/files" in call(database, "show", "plain").output
    assert "--follow" in call(database, "show", "plain", "--trial", "1").output
    for command in (["show", "plain", "--trial", "1", "--log"], ["logs", "plain", "1"], ["cache", "list", "staged"]):
        result = call(database, *command)
        assert result.exit_code == 1
        assert "--follow" in result.output
    assert json.loads(call(database, "show", "plain", "--trial", "1", "--json").output)["log"] is None
    assert opened == []


@pytest.mark.parametrize(
    "command", [["show", "plain"], ["show", "plain", "--trial", "1"], ["cache", "list", "staged"]], ids=" ".join
)
def test_follow_asks_the_store(database: Path, opened: list[str], command: list[str]) -> None:
    name_folder(database, "trap://bucket/files")
    result = call(database, *command, "--follow")
    assert result.exit_code == 0, result.output
    assert opened
