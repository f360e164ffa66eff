"""Suggestions that one process makes for the workers of all."""

import threading

import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.running.suggestions import SuggesterForAll
from farthing.session import session_of
from farthing.session.questions import Question
from farthing.storage import MemoryStorage


@pytest.mark.parametrize(("own", "elsewhere", "expected"), [(1, 3, 3), (4, 2, 4)])
def test_there_is_a_suggestion_for_each_worker_of_every_process(own: int, elsewhere: int, expected: int) -> None:
    storage, answered = MemoryStorage(), threading.Event()
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="loss", strategy=ft.Sobol(), storage=storage, name="s")
    for _ in range(elsewhere):
        storage.start_run("s", lease=60.0)
    records = session_of(study).records
    suggester = SuggesterForAll(records, study.strategy, workers=own, on_answer=answered.set)
    question = Question(records.refresh(), Remaining(), 1)

    assert suggester.answer(question) is None, "it thinks in a thread"
    answered.wait()
    answer = suggester.answer(question)
    suggester.close(waits=True)

    assert answer is not None
    assert len(answer.suggestions) == expected
