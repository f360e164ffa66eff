"""What is given to `Study(…)` is stored when it is created, so that whoever opens it by name goes on with it."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.extending import Randomness, Strategy
from farthing.storage import MemoryStorage, Storage, StudyRecord, open_storage
from farthing.trials import History, Problem, Suggestion

SPACE = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})


@dataclass(frozen=True)
class Own(Strategy):
    """A user's own, with an argument."""

    x: float = 0.25

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        return [Suggestion({"x": self.x, "y": 0.5})] * count


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "memory":
        yield MemoryStorage()
        return
    address = request.getfixturevalue("postgres_url") if request.param == "postgresql" else str(tmp_path / "study.db")
    opened = open_storage(address)
    yield opened
    opened.close()


@pytest.mark.parametrize("strategy", [ft.Sobol(), ft.LogEI(initial=7), Own(0.75), "Random"])
def test_who_opens_a_study_by_name_goes_on_with_the_strategy_that_it_was_given(
    storage: Storage, strategy: Strategy | str
) -> None:
    first = ft.Study(SPACE, minimize="error", storage=storage, strategy=strategy, seed=7)
    second = ft.Study.load("study", storage)
    third = ft.Study(SPACE, minimize="error", storage=storage)
    assert second.strategy == third.strategy == first.strategy
    expected = ft.Study(SPACE, minimize="error", strategy=strategy, seed=7).ask().params
    assert second.ask().params == expected


def test_what_is_asked_of_a_study_before_its_first_trial_is_there_for_the_next_program(storage: Storage) -> None:
    first = ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Sobol(), seed=7)
    first.set_budget(ft.Budget(trials=5))
    first.enqueue({"x": 0.125, "y": 0.25})
    second = ft.Study.load("study", storage)
    assert second.budget == ft.Budget(trials=5)
    assert second.ask().params == {"x": 0.125, "y": 0.25}
    assert second.strategy == ft.Sobol()


def test_creating_a_study_is_one_step_and_its_first_trial_stores_nothing_more(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "study.db"))
    study = ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Sobol(), folder=tmp_path / "files")
    created = storage.load_study("study")
    assert created.strategy == ft.Sobol().to_json()
    assert created.settings["folder"] == str(tmp_path / "files" / "study")
    study.ask()
    assert storage.load_study("study") == created
    storage.close()


def test_who_opens_a_study_by_name_finds_its_folder(storage: Storage, tmp_path: Path) -> None:
    first = ft.Study(SPACE, minimize="error", storage=storage, folder=tmp_path / "files")
    if isinstance(storage, MemoryStorage):  # its files cannot be found again, so each finds a folder when it needs one
        assert "folder" not in storage.load_study("study").settings
        return
    second = ft.Study.load("study", storage)
    assert second.checkpoints.root == first.checkpoints.root == tmp_path / "files" / "study"
    assert not (tmp_path / "files").exists()


def test_who_opens_a_study_by_name_finds_its_files_at_a_url(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    storage, url = open_storage(str(tmp_path / "study.db")), f"file://{tmp_path}/nfs"
    first = ft.Study(SPACE, minimize="error", storage=storage, folder=url)
    assert ft.Study.load("study", storage).checkpoints.place == first.checkpoints.place == f"{url}/study"
    storage.close()
    assert str(ft.delete_study("study", tmp_path / "study.db")) == "0 bytes of files are freed."


def test_a_folder_with_the_files_of_others_is_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "files" / "study").mkdir(parents=True)
    (tmp_path / "files" / "study" / "thesis.tex").write_text("mine")
    storage = open_storage(str(tmp_path / "study.db"))
    study = ft.Study(SPACE, minimize="error", storage=storage, folder=tmp_path / "files")
    assert "folder" not in storage.load_study("study").settings
    with pytest.raises(ft.FarthingError, match="must be its own or empty"):
        study.ask()
    storage.close()


def test_another_strategy_takes_over_at_its_first_suggestion_and_the_log_says_so(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Sobol())
    other = ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Random())
    assert ft.Study.load("study", storage).strategy == ft.Sobol()
    assert not caplog.records
    other.ask()
    assert ft.Study.load("study", storage).strategy == ft.Random()
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "From now on Random() suggests for the study 'study', which had Sobol().")
    ]
    other.ask()
    ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Random()).ask()
    assert len(caplog.records) == 1


def test_a_study_that_stored_no_strategy_or_an_older_form_of_it_is_continued_in_silence(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    storage.create_study(StudyRecord("bare", Problem(SPACE)))
    older = {"name": "LogEI", "arguments": {"initial": 7}}
    storage.create_study(StudyRecord("older", Problem(SPACE), older))
    ft.Study.load("bare", storage, strategy=ft.Sobol()).ask()
    ft.Study.load("older", storage, strategy=ft.LogEI(initial=7)).ask()
    assert ft.Study.load("older", storage).strategy == ft.LogEI(initial=7)
    assert not caplog.records
