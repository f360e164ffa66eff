"""Several objectives and limits from the command line: study files, and what each command says of all values."""

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.analysis.text import short_number
from farthing.cli.study_file import read_study_file
from farthing.errors import InvalidFile
from farthing.trials.objectives import MeasuredFront

TRAIN = """
import json, sys
x = float(sys.argv[1])
print(json.dumps({"error": x * x, "speed": 1 + x, "memory": 2 * x}))
"""
FILE = f"""
[study]
name = "net"
minimize = "error"
maximize = ["speed"]
storage = "sqlite:///net.db"
[constraints]
memory = {{at_most = 1.5}}
speed = {{at_least = 1.0}}
runs = "succeeds"
[budget]
trials = 5
[space]
x = {{float = [0.0, 1.0]}}
[strategy]
name = "Sobol"
[work]
command = "{sys.executable} train.py {{x}}"
"""
SMALL = """
[study]
minimize = ["error", "size"]
[space]
x = {float = [0.0, 1.0]}
[work]
command = "true {x}"
"""


@pytest.fixture
def net(folder: Path, farthing: Any) -> ft.Study:
    (folder / "train.py").write_text(TRAIN)
    (folder / "net.toml").write_text(FILE)
    result = farthing("run", "net.toml")
    assert result.exit_code == 0, result.output
    assert "The knee of a front of " in result.output
    assert " configurations are on the front (minimize error; maximize speed; memory ≤ 1.5" in result.output
    return ft.Study.load("net", storage="net.db")


def test_a_study_file_is_run_with_its_objectives_and_limits(net: ft.Study) -> None:
    assert net.problem.aim == "minimize error; maximize speed; memory ≤ 1.5; speed ≥ 1; runs succeeds"
    for trial in net.trials:
        x = trial.params["x"]
        assert (trial.value, trial.points[-1].metrics) == (x * x, pytest.approx({"speed": 1 + x, "memory": 2 * x}))


def test_a_study_file_is_run_again_and_resumed(net: ft.Study, farthing: Any) -> None:
    assert farthing("run", "net.toml", "--trials", "6").exit_code == 0
    assert farthing("resume", "net", "--storage", "net.db", "--trials", "7").exit_code == 0
    assert len(net.history.done) == 6 + 7


def test_a_file_with_other_limits_is_refused(net: ft.Study, folder: Path, farthing: Any) -> None:
    (folder / "net.toml").write_text(FILE.replace("1.5", "1.2"))
    result = farthing("run", "net.toml")
    assert result.exit_code != 0
    assert "continued with the constraints it began with" in result.output


def test_the_best_is_printed_with_all_values_and_the_front(net: ft.Study, farthing: Any) -> None:
    text = farthing("best", "net", "--storage", "net.db").output
    assert all(name in text for name in ("The knee of a front of", "error", "speed", "memory", "limit ≤ 1.5"))
    assert f"\nhypervolume {short_number(net.front.hypervolume)}, measured from error " in text
    form = json.loads(farthing("best", "net", "--storage", "net.db", "--json").output)
    assert form["values"].keys() == {"error", "speed", "memory"}
    assert [point["trial"] for point in form["front"]["points"]] == [point.trial.number for point in net.front]


def test_a_study_is_shown_with_a_column_for_each_value(net: ft.Study, farthing: Any) -> None:
    text = farthing("show", "net", "--storage", "net.db").output
    assert "net: minimize error; maximize speed; memory ≤ 1.5" in text
    [header] = [line for line in text.splitlines() if line.startswith("trial  state")]
    assert header.split() == ["trial", "state", "error", "speed", "memory", "cost", "from", "x"]
    one = farthing("show", "net", "--storage", "net.db", "--trial", "0").output
    assert all(name in one for name in ("error", "speed", "memory"))
    assert json.loads(farthing("show", "net", "--storage", "net.db", "--json").output)["best"]["values"]


def test_other_commands_name_all_values(net: ft.Study, farthing: Any) -> None:
    listed = farthing("list", "--storage", "net.db").output
    assert "minimize error; maximize speed" in listed
    [row] = json.loads(farthing("list", "--storage", "net.db", "--json").output)
    assert (row["aim"], row["best_seen"]) == (net.problem.aim, None)
    assert row["front"] == len(MeasuredFront.of(net.history).trials) > 1
    assert f" front of {row['front']} " in listed
    rows = farthing("export", "net", "--storage", "net.db").output.splitlines()
    assert {"value", "metric.speed", "metric.memory"} <= set(rows[0].split(","))


def test_the_list_has_the_best_within_the_limits(farthing: Any, folder: Path) -> None:
    space = ft.Space({"x": ft.Float(0, 1)})
    for name, bound in (("some", 0.5), ("none", -1.0), ("new", 0.0)):
        study = ft.Study(
            space, maximize="gain", constraints={"memory": ft.AtMost(bound)}, storage="limits.db", name=name, seed=0
        )
        for x in (0.25, 0.5, 0.75) if name != "new" else ():
            study.add({"x": x}, {"gain": x, "memory": x})
    rows = json.loads(farthing("list", "--storage", "limits.db", "--json").output)
    assert {row["name"]: (row["best_seen"], row["front"]) for row in rows} == {
        "new": (None, None),
        "none": (None, 0),
        "some": (0.5, 1),
    }
    lines = [line.split("  ") for line in farthing("list", "--storage", "limits.db").output.splitlines()]
    seen = {line[0]: [cell.strip() for cell in line] for line in lines}
    assert "0.5" in seen["some"]
    assert "none within limits" in seen["none"]


def test_a_study_that_cannot_be_read_hides_no_other_from_the_list(farthing: Any, folder: Path) -> None:
    for name in ("broken", "whole"):
        study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize=["a", "b"], storage="two.db", name=name, seed=0)
        study.add({"x": 0.5}, {"a": 1.0, "b": 2.0})
        study.close()
    with sqlite3.connect("two.db") as database:
        database.execute("UPDATE trial SET params = '[' WHERE study_id = (SELECT id FROM study WHERE name = 'broken')")
    database.close()
    rows = json.loads(farthing("list", "--storage", "two.db", "--json").output)
    assert [(row["name"], row["front"]) for row in rows] == [("broken", None), ("whole", 1)]


def test_a_model_is_of_one_value(net: ft.Study, farthing: Any) -> None:
    assert "Say which: --of error" in farthing("show", "net", "--storage", "net.db", "--model").output
    assert "Say which: --of error" in farthing("plot", "net", "--storage", "net.db", "--kind", "model").output
    text = farthing("show", "net", "--storage", "net.db", "--model", "--of", "speed").output
    assert "net (speed): a model of 5 trials" in text
    assert "--kind model --of speed" in text
    assert "--of needs --model" in farthing("show", "net", "--storage", "net.db", "--of", "speed").output


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ("[constraints]\nmemory = 8e9", "must be {at_most = number}"),
        ("[constraints]\nmemory = {at_most = 1, at_least = 0}", "must be {at_most = number}"),
        ("[constraints]\nmemory = {below = 1}", "must be {at_most = number}"),
        ("[constraints]\nmemory = {at_most = 'much'}", "The bound of AtMost must be a number"),
        ("[constraints]\ngradient = {at_most = 1}", "must not be called 'gradient'"),
        ("[constraints]\nx = {at_most = 1}", "must have a name of its own, got 'x'"),
        ("[strategy]\nname = 'TraceKG'", "TraceKG optimises one value without limits, got error, size"),
        ("[budget]\npatience = 3\ntrials = 3", "judge one value without limits"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(folder: Path, farthing: Any, extra: str, reason: str) -> None:
    (folder / "study.toml").write_text(f"{SMALL}{extra}\n")
    result = farthing("run", "study.toml", "--trials", "1")
    assert result.exit_code != 0
    assert reason in " ".join(result.output.split())


def test_a_file_needs_a_value(folder: Path) -> None:
    (folder / "study.toml").write_text(SMALL.replace('minimize = ["error", "size"]', "seed = 1"))
    with pytest.raises(InvalidFile, match=r"\[study\] must say minimize or maximize, got neither"):
        read_study_file(folder / "study.toml")


def test_watching_shows_the_front_and_all_values_of_what_runs(folder: Path, farthing: Any) -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
    study = ft.Study(space, minimize=["error", "size"], storage="two.db", name="two", strategy="Random")
    study.add({"x": 0.5}, {"error": 0.25, "size": 4.0})
    study.ask().report({"error": 0.5, "size": 3.0}, epochs=2)
    shown = farthing("watch", "two", "--storage", "two.db", "--once").output
    assert "front of 1: error down to 0.25, size down to 4" in shown
    assert "epochs=2/9 error=0.5 size=3" in shown
    assert "epochs=2/9 error=0.5 size=3" in farthing("show", "two", "--storage", "two.db").output


def test_the_best_for_each_sum_is_printed_where_the_cost_is_an_objective(folder: Path, farthing: Any) -> None:
    space = ft.Space({"x": ft.Float(0.0, 1.0)})
    with ft.Study(space, minimize=["error", "cost"], cost_unit="$", noise=False, storage="net.db", name="net") as study:
        for place, dollars in enumerate([0.8, 7.0, 80.0]):
            study.add({"x": place / 10}, 1 / dollars, cost=dollars)
    lines = farthing("best", "net", "--storage", "net.db").output.splitlines()
    [header] = [place for place, line in enumerate(lines) if line.startswith("the best for")]
    assert [line.split()[:5] for line in lines[header + 1 : header + 4]] == [
        ["1", "$", "0", "1.25", "0.8"],
        ["10", "$", "1", "0.1429", "7"],
        ["100", "$", "2", "0.0125", "80"],
    ]
    form = json.loads(farthing("best", "net", "--storage", "net.db", "--json").output)
    assert [one["sum"] for one in form["front"]["for_sums"]] == [1.0, 10.0, 100.0]
    shown = farthing("show", "net", "--storage", "net.db").output
    [header] = [line for line in shown.splitlines() if line.startswith("trial  state")]
    assert header.split() == ["trial", "state", "error", "cost", "paid", "from", "x"]
    one = farthing("show", "net", "--storage", "net.db", "--trial", "1").output
    assert [line.split()[:2] for line in one.splitlines() if line.split()[:1] in (["cost"], ["paid"])] == [
        ["cost", "7"],
        ["paid", "7"],
    ]
