"""Which study a demo tunes."""

import sys
from pathlib import Path

import pytest

from farthing.cli import demo_pipeline
from farthing.cli.demo import FINISHED, begin_or_continue
from farthing.cli.storages import address_of


def test_a_demo_begins_a_fresh_study_with_a_seed_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = address_of("demo.db")
    first = begin_or_continue(address)
    first.remember(**{FINISHED: True})
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


def test_the_stages_of_the_pipeline_demo_read_digits() -> None:
    params = {"zoom": 1.5, "blur": 0.5, "count": 100, "gamma": 0.01, "alpha": 0.1}
    output = demo_pipeline.pipeline.source
    for name, stage in demo_pipeline.pipeline.stages.items():
        output = stage.function(output, **demo_pipeline.SPACE.stage_params(name, params))
    assert 0.0 < output < 0.15
