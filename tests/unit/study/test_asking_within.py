"""Trials for those who may not spend more than a budget, as the agents of `farthing mcp`."""

from collections.abc import Callable
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.storage import MemoryStorage
from farthing.study import ask_within

SPACE = ft.Space({"x": ft.Float(0, 1)})


class TakenMeanwhile(MemoryStorage):
    """A storage in which others come first, once, when a trial is claimed."""

    others: Callable[[], object] | None = None

    def claim_trial(self, *arguments: Any, **named: Any) -> ft.Trial | None:
        if self.others is not None:
            others, self.others = self.others, None
            others()
        return super().claim_trial(*arguments, **named)


def study_in(storage: MemoryStorage) -> ft.Study:
    return ft.Study(SPACE, minimize="error", strategy=ft.Random(), storage=storage, cost_unit="dollars")


def running(study: ft.Study) -> list[int]:
    return [trial.number for trial in study.trials if trial.state is ft.State.RUNNING]


def test_of_two_who_claim_at_the_same_moment_one_gives_back_what_the_budget_does_not_pay_for() -> None:
    storage = TakenMeanwhile()
    mine, others = study_in(storage), study_in(storage)
    mine.set_budget(ft.Budget(cost=5.0))
    mine.tell(mine.ask(), 0.5, cost=2.0)
    for x in (0.1, 0.2):
        mine.enqueue({"x": x})
    storage.others = lambda: ask_within(others, 1)
    assert ask_within(mine, 1) == [], "three dollars pay for one trial of two"
    assert running(mine) == [1]


def test_before_a_cost_is_known_one_of_two_who_ask_gets_a_trial() -> None:
    storage = TakenMeanwhile()
    mine, others = study_in(storage), study_in(storage)
    mine.set_budget(ft.Budget(cost=5.0))
    for x in (0.1, 0.2):
        mine.enqueue({"x": x})
    storage.others = lambda: ask_within(others, 2)
    assert ask_within(mine, 2) == []
    assert running(mine) == [0]


def test_a_trial_that_was_free_says_nothing_about_the_cost_of_others() -> None:
    study = study_in(MemoryStorage())
    study.set_budget(ft.Budget(cost=5.0))
    study.tell(study.ask(), 0.5, cost=0.0)
    assert len(ask_within(study, 10)) == 1
    study.tell(1, 0.5, cost=1.0)
    assert len(ask_within(study, 10)) == 4


def test_a_budget_of_trials_alone_lets_as_many_begin_at_once() -> None:
    study = study_in(MemoryStorage())
    study.set_budget(ft.Budget(trials=3))
    assert len(ask_within(study, 10)) == 3


def test_a_trial_has_no_negative_number() -> None:
    study = study_in(MemoryStorage())
    trial = study.ask()
    with pytest.raises(InvalidArgument, match="from 0 on, got -1"):
        study.tell(-1, 0.5, cost=1.0)
    with pytest.raises(InvalidArgument, match="from 0 on, got -1"):
        study.annotate(-1, comment="the last")
    assert study.tell(trial, 0.5, cost=1.0).number == 0
