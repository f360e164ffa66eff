"""Half a character, which no file takes: refused where a text comes in, and spelled out where one is stored already."""

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.session import session_of
from farthing.storage import MemoryStorage, Storage, open_storage
from farthing.trials import Outcome, State, Suggestion

HALF = "half\ud83d"
SPELLED = "half\\ud83d"
SPACE = ft.Space({"x": ft.Float(0, 1)})


@pytest.fixture(params=["memory", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    opened = MemoryStorage() if request.param == "memory" else open_storage(tmp_path / "half.db")
    yield opened
    opened.close()


@pytest.fixture
def study(storage: Storage) -> ft.Study:
    found = ft.Study(SPACE, minimize="loss", storage=storage, name="half")
    found.tell(found.ask(), 0.5, cost=1.0)
    return found


DOORS: dict[str, Callable[[ft.Study], object]] = {
    "a comment": lambda study: study.annotate(0, comment=HALF),
    "a tag": lambda study: study.annotate(0, tags=["whole", HALF]),
    "a tag of what is enqueued": lambda study: study.enqueue({"x": 0.5}, tags=[HALF]),
    "a tag of what is added": lambda study: study.add({"x": 0.5}, 1.0, tags=[HALF]),
    "the name of a metric that is reported": lambda study: study.ask().report(1.0, step=1, metrics={HALF: 1.0}),
    "the name of a metric that is told": lambda study: study.tell(study.ask(), 1.0, metrics={HALF: 1.0}),
    "the unit of cost": lambda study: ft.Study(SPACE, minimize="loss", cost_unit=HALF),
    "a folder": lambda study: ft.Study(SPACE, minimize="loss", folder=HALF),
    "a study's name": lambda study: ft.Study(SPACE, minimize="loss", name=HALF),
    "the value's name": lambda study: ft.Study(SPACE, minimize=HALF),
    "a parameter's name": lambda study: ft.Space({HALF: ft.Float(0, 1)}),
    "an option": lambda study: ft.Space({"x": ft.Choice(HALF, "whole")}),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_text_with_half_a_character_is_refused_where_it_comes_in(study: ft.Study, door: str) -> None:
    before = study.export()
    with pytest.raises(InvalidArgument, match=r"got .*half\\ud83d"):
        DOORS[door](study)
    assert SPELLED not in before + str(study.export())


def test_the_refusal_says_what_to_do(study: ft.Study) -> None:
    with pytest.raises(InvalidArgument, match=r"whole characters.*errors='replace'"):
        study.annotate(0, comment=HALF)


def test_a_failure_is_told_all_the_same(study: ft.Study) -> None:
    """The text of an exception is nobody's choice, and the failure must not be lost by it."""
    failed = study.tell(study.ask(), failure=HALF)
    assert failed.failure is not None
    assert failed.failure.reason == SPELLED


@pytest.fixture
def spoiled(storage: Storage, study: ft.Study) -> ft.Study:
    """As an earlier version stored it."""
    storage.annotate("half", 0, tags=[HALF], comment=HALF)
    return study


def test_an_export_spells_out_what_is_stored(spoiled: ft.Study, tmp_path: Path) -> None:
    spoiled.export(tmp_path / "trials.csv")
    with (tmp_path / "strict.csv").open("w", encoding="ascii") as file:
        spoiled.export(file)
    for text in (str(spoiled.export()), (tmp_path / "trials.csv").read_text(), (tmp_path / "strict.csv").read_text()):
        (row,) = csv.DictReader(io.StringIO(text))
        assert (row["tags"], row["comment"]) == (SPELLED, SPELLED)

    spoiled.export(tmp_path / "trials.json")
    assert json.loads((tmp_path / "trials.json").read_text())["trials"][0]["comment"] == SPELLED


def test_the_name_of_a_column_is_spelled_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.db"
    with ft.Study(SPACE, minimize="loss", storage=path, name="half") as study:
        study.tell(study.ask(), 0.5, metrics={"whole": 1.0})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE measurement SET metrics = replace(metrics, 'whole', ?)", (SPELLED,))
    connection.close()
    with ft.Study.load("half", path) as study:
        assert f"metric.{SPELLED}" in str(study.export()).splitlines()[0].split(",")


def test_params_come_back_spelled_out(storage: Storage, study: ft.Study) -> None:
    """Names and texts at any depth; whole characters beyond the first plane are kept."""
    note = {HALF: [HALF, {"deep": "🙂"}]}
    storage.open_trials("half", [Suggestion({"x": HALF}, note=note)], owner=None, lease=1.0)
    stored = storage.history("half").trials[-1].suggestion
    assert (stored.params, stored.note) == ({"x": SPELLED}, {SPELLED: [SPELLED, {"deep": "🙂"}]})


@pytest.mark.parametrize(
    "command", ["show half", "show half --trial 0", "best half", "export half", "check", "report half"]
)
def test_commands_survive_what_is_stored(tmp_path: Path, command: str) -> None:
    with ft.Study(SPACE, minimize="loss", storage=tmp_path / "half.db", name="half") as study:
        study.tell(study.ask(), 0.5, cost=1.0)
        session_of(study).records.storage.annotate("half", 0, tags=[HALF], comment=HALF)
        session_of(study).records.storage.add_trial("half", Suggestion({"x": HALF}), Outcome(State.DONE, value=0.25))
    called = [sys.executable, "-m", "farthing", *command.split(), "--storage", "half.db"]
    ran = subprocess.run(called, cwd=tmp_path, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert ran.returncode == 0, ran.stderr
