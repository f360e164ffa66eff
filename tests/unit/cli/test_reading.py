"""The commands that read a study, as text and as JSON."""

import csv
import io
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import farthing as ft
from farthing.analysis.text import best_lines
from farthing.cli.running import best_text
from farthing.extending import History, Strategy, Suggestion
from farthing.session import session_of
from farthing.strategies import Recommendation
from farthing.trials import Prediction


def test_list_has_a_line_for_each_study(farthing, digits: ft.Study) -> None:
    header, line = farthing("list").output.splitlines()

    assert header.split()[:5] == ["study", "aim", "strategy", "trials", "best"]
    assert line.split()[:6] == ["digits", "minimize", "error", "ASHA", "7", "0.25"]


def test_list_is_json_for_a_program(farthing, digits: ft.Study) -> None:
    (form,) = json.loads(farthing("list", "--json").output)

    assert form["name"] == "digits"
    assert form["trials"] == {"done": 4, "failed": 1, "running": 1, "pending": 1}
    assert form["best_seen"] == 0.25
    assert form["cost"] == pytest.approx(12.0)


def test_show_has_the_best_what_runs_the_curves_and_the_bill(farthing, digits: ft.Study) -> None:
    text = farthing("show").output

    assert "Best error: 0.25 (trial 3, epochs=3)" in text
    assert "trial 5:" in text
    assert "waiting for a worker" in text
    assert "error by epochs (line: trial 3, the best; dots: the others)" in text
    assert "warm starts" not in text, "nothing was continued from a checkpoint"
    assert "--trial 4 --log" in text, "the failed trial is worth a look"


def test_show_says_how_many_trials_the_model_chose(farthing, folder: Path) -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="model.db", strategy=ft.LogEI(), seed=0)
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=9), executor="inline", progress=False)
    chosen = sum("theta" in (trial.note or {}) for trial in study.trials)

    assert 0 < chosen < 9
    assert f"The model chose {chosen} of 9 trials." in farthing("show").output


def test_show_says_that_the_model_chose_none(farthing, folder: Path) -> None:
    """A reader is to know that the model has decided nothing yet; of a strategy without a model there is no line."""
    for name, strategy in (("modelled", ft.LogEI()), ("drawn", ft.Random())):
        study = ft.Study(
            ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="none.db", name=name, strategy=strategy
        )
        study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=2), executor="inline", progress=False)

    assert "The model chose 0 of 2 trials." in farthing("show", "modelled").output
    assert "The model chose" not in farthing("show", "drawn").output


def test_show_ranks_what_went_furthest_first_and_a_continued_run_once(farthing, digits: ft.Study) -> None:
    lines = farthing("show").output.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("trial  state"))

    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["3", "1", "2"]


def test_show_all_has_every_trial_by_number(farthing, digits: ft.Study) -> None:
    lines = farthing("show", "--all").output.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("trial  state"))

    assert [line.split()[:2] for line in lines[start + 1 : start + 8]] == [
        ["0", "done"],
        ["1", "done"],
        ["2", "done"],
        ["3", "done"],
        ["4", "failed"],
        ["5", "running"],
        ["6", "pending"],
    ]


def test_show_is_json_for_a_program(farthing, digits: ft.Study) -> None:
    form = json.loads(farthing("show", "--json").output)

    assert form["study"] == "digits"
    assert form["strategy"]["name"] == "ASHA"
    assert form["best"]["trial"] == 3
    assert form["ledger"]["total"] == pytest.approx(12.0)
    assert [trial["state"] for trial in form["trials"]].count("done") == 4


def test_show_of_a_trial_has_its_measurements_and_its_run(farthing, digits: ft.Study) -> None:
    text = farthing("show", "--trial", "3").output

    assert text.startswith("digits, trial 3: done")
    assert "trial 0 → trial 3" in text
    assert [line.split()[:2] for line in text.splitlines()[-2:]] == [["2", "0.3"], ["3", "0.25"]]


def test_show_of_a_pipelines_trial_has_its_stages(farthing) -> None:
    space = ft.Space(stages={"clean": {"cut": ft.Int(1, 2)}, "fit": {"shrink": ft.Float(0, 1)}})
    pipeline = ft.Pipeline(source=[1.0, 2.0], clean=lambda numbers, cut: numbers, fit=lambda numbers, shrink: shrink)
    study = ft.Study(space, minimize="error", storage="sqlite:///farthing.db", name="staged", strategy=ft.Random())
    for shrink in (0.1, 0.2):
        study.enqueue({"cut": 1, "shrink": shrink})
    study.run(pipeline, budget=ft.Budget(trials=2), executor="inline")
    shown = farthing("show", "staged", "--trial", "1").output
    assert re.search(r"stage +cost\n *clean +loaded, saved \S+ +\S+\n *fit +computed +\S+\n", shown)
    ledger = json.loads(farthing("show", "staged", "--json").output)["ledger"]
    assert ledger["stages"]["clean"]["loaded"] == 1
    assert ledger["saved"].keys() == {"cache"}


def test_show_of_a_failed_trial_says_why(farthing, digits: ft.Study) -> None:
    assert "Failed: CUDA out of memory" in farthing("show", "--trial", "4").output


def test_show_of_a_trial_is_json_for_a_program(farthing, digits: ft.Study) -> None:
    form = json.loads(farthing("show", "--trial", "3", "--json").output)

    assert (form["number"], form["value"], form["resume_from"], form["log"]) == (3, 0.25, 0, None)


def test_a_log_is_printed(farthing, digits: ft.Study) -> None:
    path = digits.checkpoints.log_path(4, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("loading\ncrash\n")

    assert farthing("show", "--trial", "4", "--log").output == "loading\ncrash\n\n"
    assert str(path) in farthing("show", "--trial", "4").output


def test_show_of_an_empty_study_says_that_there_is_nothing(farthing) -> None:
    ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="empty.db").close()

    result = farthing("show")

    assert result.exit_code == 0
    assert "No trial of 0 is done" in result.output


def test_a_space_of_many_parameters_is_shown_in_one_column(farthing) -> None:
    names = [f"x{index}" for index in range(12)]
    study = ft.Study(ft.Space({name: ft.Float(0, 1) for name in names}), minimize="error", storage="wide.db")
    study.add(dict.fromkeys(names, 0.5), 1.0)

    assert "x0=0.5 x1=0.5" in farthing("show").output


def test_best_prints_a_line_for_each_parameter(farthing, digits: ft.Study) -> None:
    lines = farthing("best").output.splitlines()

    assert lines[0] == "Best error: 0.25 (trial 3, epochs=3)"
    assert [line.split()[0] for line in lines[1:]] == ["lr", "layers", "act"]


def test_best_is_json_for_a_program(farthing, digits: ft.Study) -> None:
    form = json.loads(farthing("best", "--json").output)

    assert form["value"] == 0.25
    assert form["params"] == dict(digits.best.params)


def test_best_of_a_study_without_results_is_an_error(farthing) -> None:
    ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="empty.db").close()

    result = farthing("best")

    assert result.exit_code == 1
    assert "Run some first" in result.stderr


def test_export_writes_csv_to_standard_output(farthing, digits: ft.Study) -> None:
    rows = list(csv.DictReader(io.StringIO(farthing("export").stdout)))

    assert [row["state"] for row in rows[:5]] == ["done"] * 4 + ["failed"]


@pytest.mark.parametrize("arguments", [["--output", "x.json"], ["--output", "x", "--format", "json"]])
def test_export_writes_a_file(farthing, folder: Path, digits: ft.Study, arguments: list[str]) -> None:
    result = farthing("export", *arguments)

    assert result.stdout == ""
    assert len(json.loads((folder / arguments[1]).read_text())["trials"]) == 7


def test_check_says_that_a_storage_is_intact(farthing, digits: ft.Study) -> None:
    assert farthing("check").output == "digits.db is intact.\n"
    assert json.loads(farthing("check", "--json").output) == {"storage": "digits.db", "problems": []}


def test_delete_asks_first(farthing, digits: ft.Study) -> None:
    result = farthing("delete", "digits", input="n\n")

    assert result.exit_code == 1
    assert "7 trials, 1 of them running now" in result.output
    assert "digits" in farthing("list").output


def test_delete_takes_the_files_of_the_study_with_it_and_nothing_else(farthing, digits: ft.Study) -> None:
    digits.checkpoints.claim()
    root = digits.checkpoints.root
    (root / "000003").mkdir(parents=True)
    (root / "000003" / "attempt-1.log").write_text("hello")
    (root / "precious.txt").write_text("not ours")

    result = farthing("delete", "digits", "--yes")

    assert result.exit_code == 0
    assert farthing("list").output == "No studies yet.\n"
    assert [path.name for path in root.iterdir()] == ["precious.txt"]


@dataclass(frozen=True)
class Predicting(Strategy):
    """Recommends the first trial, whatever came of it, as a model might."""

    def suggest(self, history: History, budget: object, count: int, rng: object) -> Sequence[Suggestion]:
        return []

    def recommend(self, history: History) -> Recommendation:
        return Recommendation(history[0].params, history[0], Prediction(0.0812, 0.0039))


def predicted_study(*, full: bool, strategy: Strategy | None = None) -> ft.Study:
    """Trial 0 is recommended, at 3 epochs or at all 9; trial 1 was measured at 9."""
    space = ft.Space({"lr": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
    strategy = strategy or Predicting()
    study = ft.Study(space, minimize="error", storage="predicted.db", name="predicted", strategy=strategy, seed=1)
    study.add({"lr": 0.5}, 0.13, fidelity={"epochs": 9 if full else 3})
    study.add({"lr": 0.25}, 0.125, fidelity={"epochs": 9})
    return study


SHORT = [
    "Best error: predicted 0.0812 ± 0.0039 at epochs=9",
    "Measured so far: 0.13 at epochs=3 (trial 0)",
    "Best measured at full fidelity: 0.125 (trial 1)",
]
FULL = [
    "Best error: 0.13 (trial 0, epochs=9; predicted 0.0812 ± 0.0039)",
    "Best measured at full fidelity: 0.125 (trial 1)",
]


@pytest.mark.parametrize(("full", "lines"), [(False, SHORT), (True, FULL)])
def test_a_recommendation_by_a_model_says_what_is_predicted_and_what_was_measured(full: bool, lines: list[str]) -> None:
    study = predicted_study(full=full)
    assert best_text(study, study.best).splitlines() == [*lines, "  lr  0.5"]
    assert str(study).splitlines()[1 : len(lines) + 2] == [*lines, "lr=0.5"]
    assert "<br>".join(lines) in study._repr_html_()


def test_a_recommendation_says_that_nothing_was_measured_at_full_fidelity_yet() -> None:
    space = ft.Space({"lr": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
    study = ft.Study(space, minimize="error", strategy=Predicting())
    study.add({"lr": 0.5}, 0.13, fidelity={"epochs": 3})
    assert best_lines(session_of(study), study.best)[-1] == "Measured at full fidelity: none yet"


@dataclass(frozen=True)
class Elsewhere(Predicting):
    """Recommends what nobody has tried, as a model that looks everywhere may."""

    def recommend(self, history: History) -> Recommendation:
        return Recommendation({"lr": 0.75}, history[0], Prediction(0.07, 0.01))


def test_what_was_not_tried_is_not_said_to_have_been_measured() -> None:
    study = predicted_study(full=False, strategy=Elsewhere())
    assert (
        best_lines(session_of(study), study.best)[1] == "Not tried yet; the best that was: 0.13 at epochs=3 (trial 0)"
    )


def test_watching_shows_the_whole_study_and_every_trial_in_flight(farthing, digits: ft.Study) -> None:
    shown = farthing("watch", "digits", "--once").output.splitlines()
    assert shown[0].startswith("digits: 1 pending, 1 running, 4 done, 1 failed;")
    assert "error measured" in shown[1]
    rows = [line.split() for line in shown[3:]]
    assert [row[:2] for row in rows] == [["5", "running"], ["6", "pending"]]
    assert str(os.getpid()) in shown[3], "the process that runs it"


def test_watching_follows_changes_until_it_is_interrupted(digits: ft.Study, capsys, monkeypatch) -> None:
    from farthing.cli import watch_view

    def pause(seconds: float) -> None:
        if len(digits.trials) > 8:
            raise KeyboardInterrupt
        digits.add({"lr": 0.01, "layers": 2, "act": "relu"}, 0.1)

    monkeypatch.setattr("farthing.cli.watch_view.time.sleep", pause)
    with pytest.raises(KeyboardInterrupt):
        watch_view.follow(ft.Study.load("digits", "digits.db"), every=1.0, is_terminal=False)
    lines = capsys.readouterr().out.splitlines()
    assert ["4 done" in lines[0], "5 done" in lines[1], "6 done" in lines[2]] == [True] * 3


def test_all_that_is_shown_is_of_one_moment(digits: ft.Study) -> None:
    other = ft.Study.load("digits", "digits.db")
    with session_of(other).records.still() as history:
        digits.add({"lr": 0.01, "layers": 2, "act": "relu"}, 0.1, cost=5.0)
        assert other.history is history
        assert other.ledger.total == history.cost
    assert len(other.history) == len(history) + 1


def test_a_trials_note_is_in_words(farthing, folder: Path) -> None:
    study = ft.Study(
        ft.Space({"x": ft.Float(0, 1)}), minimize="e", storage="w.db", name="w", strategy=ft.LogEI(initial=3)
    )
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=5), executor="inline")
    study.add({"x": 0.5}, 0.5)
    shown = farthing("show", "w", "--trial", 4).output
    assert "theta" not in shown
    assert "by a model fitted to " in shown
    assert re.search(r"predicted +e -?[\d.e-]+ ± ", shown)
    assert re.search(r"note +added\n", farthing("show", "w", "--trial", 5).output)
