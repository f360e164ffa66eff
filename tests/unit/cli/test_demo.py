"""Which study a demo tunes."""

import sys
from pathlib import Path

import pytest

import farthing as ft
from farthing.cli import demo_pipeline, demo_population
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


def test_the_population_demo_trains_goes_on_and_starts_anew(
    farthing, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_population, "STRATEGY", ft.PB2(population=4, interval=15))

    first = farthing("--debug", "demo", "population", "--output", "out")

    assert first.exit_code == 0, first.output
    assert "Test accuracy" in first.output
    assert "The winner's schedule, 45 epochs" in first.output
    assert (folder / "out" / "readers-1.png").is_file()
    second = farthing("--debug", "demo", "population", "--output", "out")
    assert (folder / "out" / "readers-2.png").is_file()
    assert "Continuing" not in second.output


def test_the_population_demo_goes_on_where_it_was_interrupted(
    farthing, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy = ft.PB2(population=2, interval=15)
    monkeypatch.setattr(demo_population, "STRATEGY", strategy)
    (folder / "out").mkdir()
    space = demo_population.SPACE
    ft.Study(space, minimize="loss", strategy=strategy, storage="out/population.db", name="readers-1", seed=1).close()

    result = farthing("--debug", "demo", "population", "--output", "out")

    assert "Continuing readers-1" in result.output
    assert len(ft.Study.load("readers-1", "out/population.db").trials) == 6


def test_the_stages_of_the_pipeline_demo_read_digits() -> None:
    params = {"zoom": 1.5, "blur": 0.5, "count": 100, "gamma": 0.01, "alpha": 0.1}
    output = demo_pipeline.pipeline.source
    for name, stage in demo_pipeline.pipeline.stages.items():
        output = stage.function(output, **demo_pipeline.SPACE.stage_params(name, params))
    assert 0.0 < output < 0.15
