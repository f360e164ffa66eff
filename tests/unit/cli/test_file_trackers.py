"""Trackers that a study file names."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from farthing.cli.app import farthing as program
from farthing.cli.study_file import read_study_file
from farthing.errors import InvalidFile

STUDY = """
[study]
minimize = "loss"
storage = "tracked.db"
[budget]
trials = 2
[space]
x = {float = [0.0, 1.0]}
[strategy]
name = "Random"
[work]
python = "train.py:train"
"""
LINES = """
import farthing as ft

class Lines(ft.trackers.Tracker):
    def __init__(self, path, *, patience=300.0):
        self.path, self.patience = path, patience
    def _write(self, line):
        with open(self.path, "a") as file:
            file.write(line + "\\n")
    def begin(self, study):
        self._write(f"begin {study.name}")
    def start(self, trial):
        self._write(f"start {trial.number}")
    def report(self, trial, point):
        self._write(f"report {trial.number}")
    def end(self, trial, so_far):
        self._write(f"end {trial.number}, {so_far.trials} in all")
    def finish(self, ledger):
        self._write("finish")
"""


def written(folder: Path, trackers: str) -> Path:
    path = folder / "tracked.toml"
    path.write_text(STUDY + trackers, encoding="utf-8")
    (folder / "train.py").write_text("def train(trial):\n    return trial.params['x']\n", encoding="utf-8")
    (folder / "lines_tracker.py").write_text(LINES, encoding="utf-8")
    return path


def lines_of(number: int) -> list[str]:
    return [f"start {number}", f"report {number}", f"end {number}, {number + 1} in all"]


def test_a_run_and_a_resume_tell_the_trackers_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, '[[trackers]]\nname = "lines_tracker:Lines"\npath = "told.txt"\n')
    first = CliRunner().invoke(program, ["run", str(path), "--inline", "--quiet"], catch_exceptions=False)
    assert first.exit_code == 0, first.output
    told = (tmp_path / "told.txt").read_text().splitlines()
    assert told == ["begin tracked", *lines_of(0), *lines_of(1), "finish"]

    resume = ["resume", "tracked", "--storage", "tracked.db", "--trials", "1", "--inline", "--quiet"]
    second = CliRunner().invoke(program, resume, catch_exceptions=False)
    assert second.exit_code == 0, second.output
    later = (tmp_path / "told.txt").read_text().splitlines()[len(told) :]
    assert later == ["begin tracked", *lines_of(2), "finish"]


@pytest.mark.parametrize(
    ("trackers", "complaint"),
    [
        ('[[trackers]]\nname = "MLfow"', "Did you mean 'MLflow'"),
        ('[[trackers]]\nname = "MLflow"\nuri = "x"', "Keys of a tracker MLflow must be among"),
        ('[trackers]\nname = "MLflow"', "must be a list of tables"),
        ("[[trackers]]\nfolder = 'runs'", "must have a name"),
        ('[[trackers]]\nname = "lines_tracker:Circles"', "must be importable"),
    ],
)
def test_mistakes_are_found_when_the_file_is_read_without_any_library(
    trackers: str, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidFile, match=complaint):
        read_study_file(written(tmp_path, trackers))


def test_a_study_file_declares_that_there_is_no_noise(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    text = STUDY.replace("[budget]", "noise = false\n[budget]").replace(
        'python = "train.py:train"', 'command = "echo {x}"'
    )
    path.write_text(text, encoding="utf-8")
    with read_study_file(path).create_or_continue(tmp_path / "a.db") as study:
        assert not study.history.is_noisy
