"""Reading a database runs nobody's code, however the database is made, and what is exported runs none either."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.session import session_of
from farthing.storage import open_storage

STRATEGY = """
from dataclasses import dataclass
from pathlib import Path
from farthing.extending import Recommendation, Strategy, Suggestion

Path(__file__).with_name("ran").touch()

@dataclass(frozen=True)
class Worst(Strategy):
    def suggest(self, history, budget, count, rng):
        return [Suggestion({"x": 0.5})] * count

    def recommend(self, history):
        worst = max(history.done, key=lambda trial: trial.value, default=None)
        return None if worst is None else Recommendation(worst.params, worst)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A database that names a strategy's module and the folder where it is; the module says when it is imported."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "trap_strategy.py").write_text(STRATEGY)
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", name="trap", storage=folder / "trap.db")
    for x in (0.5, 0.25, 0.75):
        study.add({"x": x}, x)
    work = {"folder": str(folder), "command": "echo '{{\"error\": {x}}}'", "python": None}
    session_of(study).remember(
        run={"work": work, "limits": {"trials": 4}, "workers": 1, "time_limit": None, "retries": None}
    )
    open_storage(folder / "trap.db").update_study("trap", strategy={"name": "trap_strategy:Worst", "arguments": {}})
    return folder


def farthing(project: Path, *arguments: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, in a folder that is not the trap's."""
    where = at or project.parent
    command = [sys.executable, "-m", "farthing", *arguments, "--storage", str(project / "trap.db")]
    return subprocess.run(command, capture_output=True, text=True, cwd=where, env={**os.environ, "MPLBACKEND": "agg"})


READING = [
    ("show",),
    ("show", "--json"),
    ("show", "--all"),
    ("show", "--trial", "1"),
    ("best",),
    ("best", "--json"),
    ("list",),
    ("export",),
    ("export", "--format", "json"),
    ("plot", "--output", "trap.png"),
    ("check",),
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_that_reads_imports_nothing_that_the_database_names(project, command):
    result = farthing(project, *command)
    assert result.returncode == 0, result.stderr
    assert not (project / "ran").exists()


def test_deleting_imports_nothing(project):
    assert farthing(project, "delete", "trap", "--yes").returncode == 0
    assert not (project / "ran").exists()


def test_best_says_that_it_is_the_best_measured_and_how_to_ask_the_strategy(project):
    text = farthing(project, "best").stdout
    assert "0.25" in text
    assert "trap_strategy:Worst" in text
    assert "--import" in text
    form = json.loads(farthing(project, "best", "--json").stdout)
    assert (form["value"], form["is_fallback"]) == (0.25, True)


def test_a_users_own_strategy_is_shown_by_its_json(project):
    assert "Worst" in farthing(project, "show").stdout
    form = json.loads(farthing(project, "show", "--json").stdout)
    assert form["strategy"] == {"name": "trap_strategy:Worst", "arguments": {}}


@pytest.mark.parametrize("command", [("best", "--json"), ("show", "--json")], ids=" ".join)
def test_import_asks_the_strategy_itself_and_says_what_it_imports(project, command):
    result = farthing(project, *command, "--import")
    form = json.loads(result.stdout)
    best = form.get("best", form)
    assert (best["value"], best["is_fallback"]) == (0.75, False)
    assert "trap_strategy" in result.stderr
    assert (project / "ran").exists()


def test_resume_imports_and_says_what(project):
    result = farthing(project, "resume", "--inline")
    assert result.returncode == 0, result.stderr
    assert "trap_strategy" in result.stderr
    assert (project / "ran").exists()


def test_loading_a_study_for_reading_imports_nothing(project, monkeypatch):
    monkeypatch.syspath_prepend(project)
    study = ft.Study.load("trap", project / "trap.db")
    assert study.best.is_fallback
    assert study.best.value == 0.25
    assert str(study)
    assert study._repr_html_()
    assert study.export()
    with pytest.raises(InvalidArgument, match="import_strategy=True"):
        study.strategy  # noqa: B018
    number = study.enqueue({"x": 0.1}).number
    open_storage(project / "trap.db").claim_trial("trap", owner="another program", lease=60.0, number=number)
    study.tell(number, failure="no matter")
    assert not (project / "ran").exists()


def test_continuing_with_another_space_imports_nothing(project, monkeypatch):
    monkeypatch.syspath_prepend(project)
    with pytest.raises(ft.FarthingError, match="space"):
        ft.Study(ft.Space({"y": ft.Float(0, 1)}), minimize="error", name="trap", storage=project / "trap.db")
    assert not (project / "ran").exists()


def test_asking_imports_and_says_what(project, monkeypatch, caplog):
    monkeypatch.syspath_prepend(project)
    monkeypatch.delitem(sys.modules, "trap_strategy", raising=False)
    with caplog.at_level("INFO", logger="farthing"):
        ft.Study.load("trap", project / "trap.db").ask()
    assert "trap_strategy:Worst" in caplog.text
    del sys.modules["trap_strategy"]  # for good, as monkeypatch would put it back: other tests look for imports


@pytest.mark.parametrize("name", ["farthing.__main__:main", "antigravity:x", "os:system", "this:s"])
def test_modules_that_do_something_when_imported_are_not(tmp_path, name):
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage=tmp_path / "a.db")
    study.add({"x": 0.5}, 0.5)
    open_storage(tmp_path / "a.db").update_study("study", strategy={"name": name, "arguments": {}})
    module = name.partition(":")[0]
    was_loaded = module in sys.modules
    assert ft.Study.load("study", tmp_path / "a.db").best.is_fallback
    assert (module in sys.modules) == was_loaded


HOSTILE = ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "x\r=1", "x\r\n=1", '=HYPERLINK("http://x","y")']


@pytest.mark.parametrize("text", HOSTILE)
def test_a_spreadsheet_executes_no_cell_of_an_export(text):
    space = ft.Space({"x": ft.Float(0, 1), "option": ft.Choice(text, "plain")})
    study = ft.Study(space, minimize="error", strategy=ft.Random(), seed=0)
    study.add({"x": 0.5, "option": text}, -0.5, tags=[text])
    study.annotate(0, comment=text)
    study.tell(study.ask(), failure=text)
    cells = [cell for row in csv.reader(io.StringIO(study.export(format="csv"))) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))] == []
    assert [cell for cell in cells if cell.startswith("-")] == ["-0.5"]
    assert sum(text.split()[-1] in cell for cell in cells) >= 3


def test_numbers_and_plain_words_are_exported_as_they_are():
    space = ft.Space({"x": ft.Float(-1, 1), "option": ft.Choice("-1.5", "relu")})
    study = ft.Study(space, minimize="error", strategy=ft.Random(), seed=0)
    study.add({"x": -0.5, "option": "-1.5"}, -0.25)
    study.add({"x": -0.5, "option": "relu"}, -1e-9)
    rows = list(csv.DictReader(io.StringIO(study.export(format="csv"))))
    assert [(row["param.x"], row["param.option"], row["value"]) for row in rows] == [
        ("-0.5", "-1.5", "-0.25"),
        ("-0.5", "relu", "-1e-09"),
    ]
