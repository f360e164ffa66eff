"""Changes single values of a database by seed, and looks at it by every command, every endpoint and the library."""

import json
import logging
import os
import random
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from sqlalchemy import Boolean, MetaData, Table, create_engine, select
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.testclient import TestClient

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.dashboard.application import application
from farthing.dashboard.endpoints import Endpoint, key_of
from farthing.dashboard.reading import ShownStudies
from farthing.dashboard.routes import ENDPOINTS
from farthing.dashboard.security import Access
from farthing.errors import FarthingError
from farthing.storage import open_storage, tables
from farthing.trials.events import BUDGET, CHANGED, DURATION, LEARNED, NOISE_DECLARED
from farthing.trials.prefixes import EVICTED

STORED = Path(__file__).parents[2] / "data" / "stored_studies.db"
KINDS_OF_STUDIES = ("asha", "lambo", "log-ei", "online", "pb2")
"""One of each kind: several fidelities, stages, neither, rounds and a population."""

TABLES = ("study", "trial", "measurement", "event", "run")
TOKEN = "a-token-for-tests-only"

NUMBERS: tuple[object, ...] = (-1, 0, 1, 7, 2**31, 2**53, 2**63 - 1, -(2**63), -0.5, 0.5, 1e18, -1e18, 1e300, -1e300)
ODD: tuple[object, ...] = (None, "", "text", "5", "5.5", "null", "[]", "{}", "NaN", b"\xff\xfe", float("inf"))
TEXTS: tuple[object, ...] = ("\x1b[2J", "../..", "x" * 5_000, "os:system", "running", "lost")
LEAVES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**70, -(2**70), 0.5, -0.5, 1e300, float("nan"), float("inf"), -float("inf")),
    *("", "text", "x" * 500, "\ud83d", [], {}, [1], [[]], {"a": 1}, [None], {"": None}),
)

COMMANDS = (
    ["list"],
    ["list", "--json"],
    ["check"],
    ["show", "STUDY"],
    ["show", "STUDY", "--json"],
    ["show", "STUDY", "--all"],
    ["show", "STUDY", "--trial", "1"],
    ["show", "STUDY", "--trial", "0", "--json"],
    ["show", "STUDY", "--trial", "1", "--log"],
    ["show", "STUDY", "--model"],
    ["best", "STUDY"],
    ["best", "STUDY", "--json"],
    ["watch", "STUDY", "--once"],
    ["export", "STUDY"],
    ["export", "STUDY", "--format", "json"],
    ["budget", "STUDY"],
    ["report", "STUDY", "--output", "report.html"],
    ["cache", "list", "STUDY"],
)
DRAWN = 16
"""Of so many changed databases one is drawn too."""

PLOT = ["plot", "STUDY", "--output", "plot.png"]
"""Every command that only reads. Drawing takes as long as all the others together."""


def make_original(path: Path) -> None:
    """A database with every table, every kind of study and every kind of event."""
    shutil.copy(STORED, path)
    with closing(open_storage(path)) as storage:
        for name in [one.record.name for one in storage.list_studies()]:
            if name not in KINDS_OF_STUDIES:
                storage.delete_study(name)
        start = dict(storage.trials("log-ei", [0])[0].params)  # type: ignore[attr-defined]  # of SQLite's
        learned = {
            "sources": ["earlier"],
            "starts": [{"params": start, "source": "earlier"}],
            "random": [{"source": "earlier", "reach": 1.0, "value": 0.5}],
            "costs": [{"params": start, "reach": 1.0, "cost": 2.0}],
        }
        for name in KINDS_OF_STUDIES:
            storage.log_event(name, BUDGET, {"limits": {"trials": 20}, "trials": 1, "given": True, "noted": True})
            storage.log_event(name, NOISE_DECLARED, {"is_noisy": True, "trials": 1})
            storage.log_event(name, DURATION, {"decade": 1, "results": 5, "trials": 5})
        storage.log_event("log-ei", LEARNED, learned)
        storage.log_event("lambo", CHANGED, {"before": {"a": "1"}, "after": {"a": "2"}, "harmless": False})
        storage.log_event("lambo", EVICTED, {"prefix": "a", "length": 1, "why": "limit", "detail": ""})
    with closing(ft.Study.load("log-ei", path)) as study:
        more = {**study.space.parameters, "more": ft.Float(0, 1)}
        grown = ft.Space(more, fidelities=study.space.fidelities)
        study.extend(grown, fill={"more": 0.5})
        study.enqueue({**start, "more": 0.25})
        study.annotate(1, tags=["a tag"], comment="a comment")


@dataclass(frozen=True)
class Change:
    """Another value in one column of one row."""

    table: str
    column: str
    study: str
    before: object
    after: object

    def __str__(self) -> str:
        return f"{self.study}: {self.table}.{self.column} from {str(self.before)[:300]} to {str(self.after)[:300]}"


def change_something(engine: Engine, rng: random.Random) -> Change:
    """Changes one value; those that the database itself refuses are drawn again."""
    while True:
        table = tables.metadata.tables[rng.choice(TABLES)]
        column = rng.choice([one.name for one in table.columns])
        with engine.connect() as connection:
            names = {row.id: row.name for row in connection.execute(select(tables.study.c.id, tables.study.c.name))}
            rows = connection.execute(select(Table(table.name, MetaData(), autoload_with=engine))).mappings().all()
            if not rows:
                continue
            row = rng.choice(rows)
            before, after = row[column], _mutated(row[column], rng)
            key = [one == row[one.name] for one in table.primary_key.columns]
            try:
                _write(connection, table, column, key, after)
            except (SQLAlchemyError, UnicodeError, OverflowError):
                continue
            return Change(table.name, column, names[row["id" if table.name == "study" else "study_id"]], before, after)


def _write(connection: Connection, table: Any, column: str, key: list[Any], value: object) -> None:
    """Past SQLAlchemy's types: SQLite keeps a text in a column of numbers."""
    where = " AND ".join(f"{one.left.name} = {one.right.value!r}" for one in key)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(f"UPDATE {table.name} SET {column} = {mark} WHERE {where}", (value,))
    connection.commit()


def _mutated(value: object, rng: random.Random) -> object:
    if isinstance(value, str) and value[:1] in "[{" and rng.random() < 0.8:
        form = _other_form(json.loads(value), rng)
        return json.dumps(form)
    return rng.choice([*NUMBERS, *ODD, *TEXTS, "[" * 100_000])


def _other_form(form: Any, rng: random.Random) -> Any:
    """The same JSON with one part of it changed, left out or added."""
    if not isinstance(form, (dict, list)) or not form or rng.random() < 0.15:
        return rng.choice(LEAVES)
    if isinstance(form, list):
        place = rng.randrange(len(form))
        return [*form[:place], *_instead(form[place], rng), *form[place + 1 :]]
    name = rng.choice(list(form))
    match rng.randrange(8):
        case 0:
            return {key: value for key, value in form.items() if key != name}
        case 1:
            return {**form, "of nobody": rng.choice(LEAVES)}
        case 2:
            return {("renamed" if key == name else key): value for key, value in form.items()}
    return {**form, name: _other_form(form[name], rng)}


def _instead(value: Any, rng: random.Random) -> list[Any]:
    return rng.choice([[], [value, value], [_other_form(value, rng)], [_other_form(value, rng)]])


# ------------------------------------------------------------------------------------------- many databases


def after_changes(original: Path, folder: Path, seeds: Iterable[int]) -> Iterator[list[str]]:
    """What is unhandled of each of many SQLite files, in each of which one value was changed."""
    path = folder / "study.db"
    for seed in seeds:
        for old in folder.glob("study.db*"):
            os.unlink(old)
        shutil.copy(original, path)
        engine = create_engine(f"sqlite:///{path}")
        yield _after_change(engine, str(path), seed, draws=seed % DRAWN == DRAWN - 1)


def after_changes_on_a_server(original: Path, url: str, seeds: range) -> Iterator[list[str]]:
    """The same of rows of PostgreSQL, which keeps numbers in columns of numbers: texts, NaN and infinity remain."""
    with closing(open_storage(url)):
        pass
    for seed in seeds:
        engine = create_engine(url)
        _fill(engine, original)
        yield _after_change(engine, url, seed, draws=False)


def _fill(engine: Engine, original: Path) -> None:
    """Every table with the rows of the original."""
    with engine.begin() as connection, closing(sqlite3.connect(original)) as source:
        for table in reversed(tables.metadata.sorted_tables):
            connection.execute(table.delete())
        for table in tables.metadata.sorted_tables:
            cursor = source.execute(f"SELECT * FROM {table.name}")
            names = [column[0] for column in cursor.description]
            truths = {column.name for column in table.columns if isinstance(column.type, Boolean)}
            rows = [
                {name: bool(value) if name in truths else value for name, value in zip(names, row, strict=True)}
                for row in cursor
            ]
            if rows:
                connection.execute(table.insert(), rows)


def _after_change(engine: Engine, place: str, seed: int, *, draws: bool) -> list[str]:
    change = change_something(engine, random.Random(seed))
    engine.dispose()
    return [f"{seed}, {change}: {fault}" for fault in unhandled(place, change.study, draws=draws)]


# ------------------------------------------------------------------------------------------- looking at it


def unhandled(place: str, study: str, *, draws: bool) -> Iterator[str]:
    """What ends in an error outside the family: every command, every endpoint, and the library."""
    yield from _by_commands(place, study, [*COMMANDS, *([PLOT] if draws else [])])
    yield from _by_endpoints(place, study)
    yield from _by_library(place, study)


def _by_commands(place: str, study: str, commands: Sequence[list[str]]) -> Iterator[str]:
    for command in commands:
        words = [study if word == "STUDY" else word for word in command]
        result = CliRunner().invoke(program, [*words, "--storage", place])
        error, output = result.exception, result.output
        if (error is not None and not isinstance(error, SystemExit)) or "fault of Farthing" in output:
            yield f"{' '.join(command)}: {error!r} {output[-300:]}"
        elif result.exit_code not in (0, 1):
            yield f"{' '.join(command)}: exit code {result.exit_code} {output[-300:]}"


def _by_endpoints(place: str, study: str) -> Iterator[str]:
    with client_of(place) as client, _logged() as log:
        for endpoint in ENDPOINTS:
            if endpoint.method == "GET":
                answer = client.get(endpoint_address(endpoint, study))
                if log or answer.status_code == 500:
                    yield f"GET {endpoint.path}: {log[-1] if log else answer.text}"
                    log.clear()


@contextmanager
def client_of(place: str) -> Iterator[TestClient]:
    """Of a dashboard of that database."""
    with closing(open_storage(place, patience=0.0)) as storage:
        app = application(ShownStudies(storage, place="stored.db"), Access(TOKEN, 8000, change_secret="of changes"))
        headers = {"authorization": f"Bearer {TOKEN}"}
        yield TestClient(app, base_url="http://localhost:8000", headers=headers, raise_server_exceptions=False)


def endpoint_address(endpoint: Endpoint, study: str) -> str:
    path = endpoint.path.replace("{study}", key_of(study)).replace("{number}", "1")
    if path.endswith("/compare"):
        return f"{path}?study={key_of(study)}&study=asha"
    return f"{path}?x=rate&y=units" if path.endswith("/contour") else path


def _by_library(place: str, study: str) -> Iterator[str]:
    looks = {
        "history": lambda found: list(found.history),
        "repr": lambda found: [repr(one) for one in found.history],
        "str": str,
        "html": lambda found: found._repr_html_(),
        "best": lambda found: found.best,
        "export": lambda found: found.export(),
        "costs": lambda found: [one.costs for one in found.history],
    }
    for name, look in looks.items():
        try:
            with closing(ft.Study.load(study, place)) as found:
                look(found)
        except FarthingError:
            continue
        except Exception as error:
            yield f"study {name}: {error!r}"
    try:
        ft.studies(place)
    except FarthingError:
        pass
    except Exception as error:
        yield f"studies: {error!r}"


@contextmanager
def _logged() -> Iterator[list[str]]:
    """What the dashboard logs with a traceback."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info:
                found.append(f"{record.getMessage()}: {logging.Formatter().formatException(record.exc_info)[-700:]}")

    handler, log = Keep(), logging.getLogger("farthing")
    log.addHandler(handler)
    try:
        yield found
    finally:
        log.removeHandler(handler)
