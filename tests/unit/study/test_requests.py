"""A budget that is stored with the study and may change while it runs, and requests to stop."""

import threading
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, NoSuggestion
from farthing.storage import MemoryStorage
from farthing.testing import check_replay
from farthing.trials.events import BUDGET, DURATION, STOP, WITHDRAWN

SPACE = ft.Space({"x": ft.Float(0, 1)})


def study_of(**settings: object) -> ft.Study:
    return ft.Study(SPACE, **{"minimize": "error", "strategy": ft.Random(), **settings})  # type: ignore[arg-type]


def run(study: ft.Study, **settings: object) -> ft.Stopped:
    return study.run(lambda trial: trial.params["x"], **{"executor": "inline", **settings})  # type: ignore[arg-type]


def kinds(study: ft.Study) -> list[str]:
    """What was asked of the study; it decides for itself how long its trials take."""
    return [event.kind for event in study.history.events if event.kind != DURATION]


def test_the_first_run_stores_its_budget_and_a_later_one_needs_none(tmp_path: Path) -> None:
    study = study_of(storage=f"sqlite:///{tmp_path}/s.db")
    assert study.budget is None
    run(study, budget=ft.Budget(trials=3))

    with ft.Study.load("study", f"sqlite:///{tmp_path}/s.db") as loaded:
        assert loaded.budget == ft.Budget(trials=3)
        assert run(loaded).reason is ft.StopReason.BUDGET_SPENT
        assert len(loaded.trials) == 3


def test_a_run_of_a_study_without_a_budget_still_needs_one() -> None:
    with pytest.raises(InvalidArgument, match="needs a budget, got none"):
        run(study_of())


def test_another_budget_of_a_run_replaces_the_stored_one() -> None:
    study = study_of()
    run(study, budget=ft.Budget(trials=3))
    run(study, budget=ft.Budget(trials=5))
    run(study, budget=ft.Budget(trials=5))
    assert study.budget == ft.Budget(trials=5)
    assert kinds(study) == [BUDGET, BUDGET]


def test_a_program_that_is_started_again_leaves_a_changed_budget_as_it_is() -> None:
    study = study_of()
    run(study, budget=ft.Budget(trials=2))
    study.set_budget(ft.Budget(trials=6))
    run(study, budget=ft.Budget(trials=2))
    assert study.budget == ft.Budget(trials=6)
    assert len(study.trials) == 6


def test_a_run_takes_up_a_budget_that_is_raised_or_lowered_meanwhile() -> None:
    study = study_of()

    def change(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number == 1:
            study.set_budget(ft.Budget(trials=7))
        if trial.number == 4:
            study.set_budget(ft.Budget(trials=6))

    run(study, budget=ft.Budget(trials=3), callbacks=[change])
    assert len(study.trials) == 6


def test_a_verification_keeps_to_its_own_budget() -> None:
    study = study_of()
    run(study, budget=ft.Budget(trials=2))
    verified = study.verify(lambda trial: trial.params["x"], repeats=2, executor="inline")
    assert len(verified[0].trials) == 2
    assert study.budget == ft.Budget(trials=2)


@pytest.mark.parametrize("wrong", [5, None, {"cost": 5}])
def test_what_is_no_budget_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match=r"must be a Budget, got .*ft.Budget\(cost=50\)"):
        study_of().set_budget(wrong)


def test_every_suggestion_is_repeated_with_the_budget_that_was_in_force() -> None:
    """The strategy's choice depends on the rest of the budget."""
    study = study_of(strategy=ft.EIPerCost(), cost=lambda params, _: 1.0 + 9.0 * params["x"], cost_unit="credits")

    def raise_it(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number in (8, 12):
            study.set_budget(ft.Budget(cost=40.0 * trial.number))

    run(study, budget=ft.Budget(cost=60.0, trials=18), callbacks=[raise_it])
    assert kinds(study) == [BUDGET, BUDGET, BUDGET]
    assert check_replay(study) == []


class BusyStorage(MemoryStorage):
    """A storage in which others are busy: `then` is done once, when `method` is called and before it takes effect."""

    method = ""

    def then(self) -> None: ...

    def _let_others_go_first(self, method: str) -> None:
        if method == self.method:
            self.method = ""
            self.then()

    def log_event(self, *arguments: Any, **named: Any) -> None:
        self._let_others_go_first("log_event")
        super().log_event(*arguments, **named)

    def open_trials(self, *arguments: Any, **named: Any) -> list[ft.Trial]:
        self._let_others_go_first("open_trials")
        return super().open_trials(*arguments, **named)


def busy_study() -> tuple[ft.Study, BusyStorage]:
    """With eight trials, and a strategy whose choice depends on the rest of the budget."""
    storage = BusyStorage()
    study = study_of(
        strategy=ft.EIPerCost(), cost=lambda params, _: 1.0 + 9.0 * params["x"], cost_unit="credits", storage=storage
    )
    run(study, budget=ft.Budget(cost=60.0, trials=8))
    study.set_budget(ft.Budget(cost=60.0))
    return study, storage


def unlimited_study(trials: int) -> tuple[ft.Study, BusyStorage]:
    """With so many trials that were asked for without a budget."""
    storage = BusyStorage()
    study = study_of(
        strategy=ft.EIPerCost(), cost=lambda params, _: 1.0 + 9.0 * params["x"], cost_unit="credits", storage=storage
    )
    for _ in range(trials):
        asked = study.ask()
        study.tell(asked, (asked.params["x"] - 0.3) ** 2)
    return study, storage


def run_some(study: ft.Study, count: int) -> None:
    until = len(study.trials) + count
    run(study, callbacks=[lambda study, trial: study.stop() if len(study.trials) >= until else None])


def test_trials_that_were_opened_while_a_budget_was_being_set_are_repeated_with_the_one_before() -> None:
    study, storage = busy_study()
    storage.method, storage.then = "log_event", lambda: run_some(study, 3)
    study.set_budget(ft.Budget(cost=500.0))
    assert len(study.trials) == 11
    assert study.history.events[-1].payload["trials"] == 11
    run_some(study, 3)
    assert check_replay(study) == []


def test_a_trial_that_was_suggested_before_a_budget_was_set_and_opened_after_is_repeated_with_the_one_before() -> None:
    study, storage = busy_study()
    storage.method, storage.then = "open_trials", lambda: study.set_budget(ft.Budget(cost=500.0))
    run_some(study, 4)
    assert study.history.events[-1].payload["trials"] == 8
    assert check_replay(study) == []


@pytest.mark.parametrize("trials", [0, 8])
def test_a_trial_suggested_before_the_first_budget_and_opened_after_it_is_repeated_without_it(
    trials: int,
) -> None:
    study, storage = unlimited_study(trials)
    storage.method, storage.then = "open_trials", lambda: study.set_budget(ft.Budget(cost=70.0))
    for _ in range(4):
        asked = study.ask()
        study.tell(asked, 0.0)
    assert study.history.events[-1].payload["trials"] == trials
    assert check_replay(study) == []


def test_a_trial_that_was_suggested_after_the_first_budget_is_repeated_with_it() -> None:
    study, _ = unlimited_study(8)
    run(study, budget=ft.Budget(cost=70.0))
    assert len(study.trials) > 8
    assert check_replay(study) == []


def test_a_budget_of_seconds_is_noted_because_it_follows_from_no_trial() -> None:
    study = study_of(strategy=ft.EIPerCost())
    run(study, budget=ft.Budget(seconds=600, trials=8))
    assert all(trial.note["knew"]["left"]["seconds"] <= 600 for trial in study.trials)
    assert check_replay(study) == []


def test_a_request_to_stop_ends_the_run_of_another_program_within_two_seconds(tmp_path: Path) -> None:
    """The other program has a worker of its own, which is free: only the storage tells it."""
    storage = f"sqlite:///{tmp_path}/s.db"
    study, asked = study_of(storage=storage), study_of(storage=storage)
    running = asked.ask()
    ended: list[ft.Stopped] = []
    begun = threading.Event()
    thread = threading.Thread(
        target=lambda: ended.append(
            run(study, budget=ft.Budget(trials=3), callbacks=[lambda study, trial: begun.set()])
        )
    )
    thread.start()
    assert begun.wait(60)
    asked.request_stop()
    thread.join(60)
    assert not thread.is_alive()
    assert (ended[0].reason, str(ended[0])) == (ft.StopReason.STOPPED, "stopped on request")
    assert not asked.history[running.number].is_finished


def test_a_request_to_stop_finishes_running_trials_and_stands_until_the_next_run() -> None:
    study = study_of()
    stopped = run(study, budget=ft.Budget(trials=9), callbacks=[lambda study, trial: study.request_stop()])
    assert stopped.reason is ft.StopReason.STOPPED
    assert [trial.state for trial in study.trials] == [ft.State.DONE]
    assert study.history.is_to_stop

    assert run(study).reason is ft.StopReason.BUDGET_SPENT
    assert kinds(study) == [BUDGET, STOP, WITHDRAWN]
    assert not study.history.is_to_stop


def test_a_busy_run_takes_up_a_raised_budget_of_another_program(tmp_path: Path) -> None:
    """All workers are busy and the budget is spent when it is raised: the run goes on without ending first."""
    storage, gate = f"sqlite:///{tmp_path}/s.db", tmp_path / "gate"
    study = study_of(storage=storage)

    def work(trial: ft.RunningTrial) -> float:
        import time

        while not gate.exists():
            time.sleep(0.01)
        return 0.0

    def let_go() -> None:
        other = ft.Study.load("study", storage)
        while not other.history.in_flight:
            threading.Event().wait(0.05)
        other.set_budget(ft.Budget(trials=4))
        gate.touch()

    thread = threading.Thread(target=let_go)
    thread.start()
    study.run(work, budget=ft.Budget(trials=1), workers=1)
    thread.join()
    assert len(study.trials) == 4


def test_who_asks_heeds_the_budget_of_the_study_unless_another_is_given() -> None:
    study = study_of()
    study.set_budget(ft.Budget(trials=2))
    asked = study.ask(count=5)
    assert len(asked) == 2
    for trial in asked:
        study.tell(trial, 0.5)
    with pytest.raises(NoSuggestion, match="set_budget"):
        study.ask()
    assert len(study.ask(count=5, budget=ft.Budget(trials=4))) == 2
    study.set_budget(ft.Budget(trials=5))
    study.tell(study.ask(), 0.5)
    assert study.ask(count=1) == []
    assert check_replay(study) == []


def test_who_asks_heeds_the_cost_and_the_seconds_of_the_budget() -> None:
    clock = ft.FakeClock()
    study = study_of(clock=clock)
    study.set_budget(ft.Budget(cost=10.0))
    study.tell(study.ask(), 0.5, cost=4.0)
    study.tell(study.ask(), 0.5, cost=5.0)
    assert study.ask(count=1) == [], "what is left does not pay for one more"

    study = study_of(clock=clock, storage=MemoryStorage(clock=clock))
    study.run(lambda trial: clock.advance(20.0) or 0.5, budget=ft.Budget(seconds=50.0), executor="inline")
    assert len(study.trials) == 2
    assert study.ask(count=1) == []
    study.set_budget(ft.Budget(seconds=70.0))
    assert len(study.ask(count=1)) == 1


def test_a_trial_that_waits_is_handed_out_although_the_budget_is_spent() -> None:
    study = study_of()
    run(study, budget=ft.Budget(trials=1))
    study.enqueue({"x": 0.25})
    assert study.ask().params == {"x": 0.25}
