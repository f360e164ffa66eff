"""`farthing budget` and `farthing stop`."""

import json
from pathlib import Path

import pytest

import farthing as ft

STUDY = """
[study]
minimize = "error"
[budget]
trials = 2
[space]
x = {float = [-1.0, 1.0]}
[strategy]
name = "Random"
[work]
command = "echo error 1 {x}"
pattern = 'error (?P<value>[0-9]+)'
"""

IN_FLIGHT = 16.5 / 9 + 16.5
"""Six epochs cost eleven seconds; a trial of one epoch runs, and one of nine waits."""


def test_the_budget_of_a_study_is_shown_with_what_is_left(farthing, digits) -> None:
    assert "digits has no budget yet" in farthing("budget", "digits").output
    digits.set_budget(ft.Budget(cost=40))
    assert farthing("budget", "digits").output == f"cost     40 seconds, {28.0 - IN_FLIGHT:.4g} left\n"


def test_limits_that_are_named_change_and_others_stay(farthing, digits) -> None:
    digits.set_budget(ft.Budget(cost=20, trials=9))
    farthing("budget", "digits", "--cost", "50")
    assert digits.budget == ft.Budget(cost=50, trials=9)
    form = json.loads(farthing("budget", "digits", "--json").output)
    assert form == {
        "study": "digits",
        "unit": "seconds",
        "limits": {"cost": 50.0, "trials": 9},
        "left": {"cost": pytest.approx(38.0 - IN_FLIGHT), "trials": 3},
    }


def test_a_limit_that_is_none_is_refused(farthing, digits) -> None:
    refused = farthing("budget", "digits", "--cost", "-3")
    assert refused.exit_code != 0
    assert "above 0" in refused.output


def test_a_study_is_asked_to_stop(farthing, digits) -> None:
    assert farthing("stop", "digits").output == "digits was asked to stop; 1 trials run, and are finished first.\n"
    assert digits.history.is_to_stop
    assert json.loads(farthing("stop", "digits", "--json").output) == {"study": "digits", "running": 1}


def test_resume_goes_on_with_the_budget_that_was_changed_meanwhile(farthing, folder: Path) -> None:
    (folder / "s.toml").write_text(STUDY)
    assert farthing("run", "s.toml", "--inline", "--quiet").exit_code == 0
    farthing("budget", "s", "--trials", "3")
    farthing("resume", "s", "--inline", "--quiet")
    farthing("run", "s.toml", "--inline", "--quiet")
    with ft.Study.load("s", "farthing.db") as study:
        assert len(study.trials) == 3
        assert study.budget == ft.Budget(trials=3)
