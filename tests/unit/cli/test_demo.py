"""Which study a demo tunes."""

import sys
from pathlib import Path

import pytest

from farthing.cli.commands.runs import EXAMPLES
from farthing.cli.demo_digits import FINISHED, begin_or_continue
from farthing.cli.storages import address_of
from farthing.session import session_of


def test_a_demo_begins_a_fresh_study_with_a_seed_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = address_of("demo.db")
    first = begin_or_continue(address)
    session_of(first).remember(**{FINISHED: True})
    capsys.readouterr()

    second = begin_or_continue(address)

    assert (first.name, second.name) == ("digits-1", "digits-2")
    assert first.problem.seed != second.problem.seed
    assert "Starting a fresh study, digits-2, in demo.db; digits-1 is kept beside it." in capsys.readouterr().out


def test_a_demo_that_was_interrupted_is_continued(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = address_of("demo.db")
    first = begin_or_continue(address)

    assert begin_or_continue(address).name == first.name
    assert "Continuing digits-1" in capsys.readouterr().out


def test_the_demo_needs_scikit_learn_and_names_the_extra(farthing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)

    result = farthing("demo")

    assert result.exit_code == 1
    assert "pip install 'farthing[demo]'" in result.stderr


@pytest.mark.parametrize("what", EXAMPLES)
def test_a_demo_that_is_a_program_now_is_named(farthing, what: str) -> None:
    result = farthing("demo", what)

    assert result.exit_code == 2
    program = f"examples/{EXAMPLES[what]}.py"
    assert f"Run {program}" in result.stderr
    assert (Path(__file__).parents[3] / program).is_file()


def test_a_demo_that_never_was_is_refused(farthing) -> None:
    result = farthing("demo", "cooking")

    assert result.exit_code == 2
    assert "There is one demo, got 'cooking'." in result.stderr
