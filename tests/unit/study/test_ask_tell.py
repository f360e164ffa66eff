import math
import threading

import pytest

import farthing as ft
from farthing.errors import (
    InvalidArgument,
    InvalidParams,
    InvalidValue,
    NoResult,
    NoSuggestion,
    StaleAttempt,
    TrialFinished,
    TrialNotFound,
)
from farthing.storage import MemoryStorage

SPACE = ft.Space({"x": ft.Float(0, 1)})
CURVES = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})


@pytest.fixture
def study() -> ft.Study:
    return ft.Study(SPACE, minimize="error", strategy=ft.Random())


def test_ask_gives_one_trial_and_ask_with_a_count_a_list(study: ft.Study) -> None:
    assert study.ask().number == 0
    assert [trial.number for trial in study.ask(count=3)] == [1, 2, 3]


def test_a_told_value_and_cost_are_what_the_trial_has(study: ft.Study) -> None:
    told = study.tell(study.ask(), 0.25, cost=42.0)
    assert (told.state, told.value, told.cost) == (ft.State.DONE, 0.25, 42.0)
    assert study.best.value == 0.25


def test_without_a_told_cost_the_seconds_since_the_ask_count() -> None:
    clock = ft.FakeClock()
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), storage=MemoryStorage(clock), clock=clock)
    trial = study.ask()
    clock.advance(3.5)
    assert study.tell(trial, 0.25).costs == {"training": 3.5}


def test_a_result_may_be_told_by_number_from_elsewhere() -> None:
    clock = ft.FakeClock()
    storage = MemoryStorage(clock)
    here, there = (ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Random()) for _ in range(2))
    number = here.ask().number
    clock.advance(7.0)
    told = there.tell(number, 0.25)
    assert (told.value, told.cost) == (0.25, 7.0)


def test_what_is_told_from_elsewhere_did_not_cost_the_time_in_which_it_waited() -> None:
    clock = ft.FakeClock()
    storage = MemoryStorage(clock)
    here, there = (ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Random()) for _ in range(2))
    here.enqueue({"x": 0.5})
    clock.advance(100.0)
    number = here.ask().number
    clock.advance(7.0)
    assert there.tell(number, 0.25).cost == 7.0


def test_a_trace_becomes_the_trials_curve() -> None:
    study = ft.Study(CURVES, minimize="error", strategy=ft.Random())
    told = study.tell(study.ask(), 0.2, trace=[({"epochs": 3}, 0.41), ({"epochs": 6}, 0.3)])
    assert [(p.fidelity["epochs"], p.value) for p in told.points] == [(3, 0.41), (6, 0.3), (9, 0.2)]


def test_the_last_report_is_the_result_when_no_value_is_told() -> None:
    study = ft.Study(CURVES, minimize="error", strategy=ft.Random())
    trial = study.ask()
    trial.report(0.4, epochs=8)
    trial.report(0.3, epochs=9)
    assert study.tell(trial).value == 0.3


def test_failures_and_pruned_trials_are_told_apart(study: ft.Study) -> None:
    failed = study.tell(study.ask(), failure="the loss diverged", cost=2.0)
    pruned = study.tell(study.ask(), pruned=True, cost=3.0)
    assert (failed.state, failed.costs) == (ft.State.FAILED, {"failed": 2.0})
    assert failed.failure is not None
    assert failed.failure.reason == "the loss diverged"
    assert (pruned.state, pruned.costs) == (ft.State.PRUNED, {"training": 3.0})


@pytest.mark.parametrize("bad", [math.nan, math.inf, "0.3", [0.3, 0.4]])
def test_a_bad_value_is_refused_and_the_trial_can_still_be_told(study: ft.Study, bad: object) -> None:
    trial = study.ask()
    with pytest.raises(InvalidValue):
        study.tell(trial, bad)  # type: ignore[arg-type]
    assert study.trials[0].state is ft.State.RUNNING
    assert study.tell(trial, 0.5).value == 0.5


def test_a_bad_point_in_a_trace_leaves_nothing_behind() -> None:
    study = ft.Study(CURVES, minimize="error", strategy=ft.Random())
    trial = study.ask()
    with pytest.raises(InvalidParams):
        study.tell(trial, 0.2, trace=[({"epochs": 3}, 0.4), ({"epochs": 99}, 0.3)])
    assert study.trials[0].measurements == ()


def test_a_negative_cost_is_refused(study: ft.Study) -> None:
    with pytest.raises(InvalidValue, match="must not be negative"):
        study.tell(study.ask(), 0.5, cost=-1)


def test_a_refused_result_leaves_no_charge_behind(study: ft.Study) -> None:
    trial = study.ask()
    for bad in (math.nan, None):
        with pytest.raises(InvalidValue):
            study.tell(trial, bad, cost=2.0)
    assert study.tell(trial, 0.5, cost=2.0).cost == 2.0


def test_a_second_result_is_refused(study: ft.Study) -> None:
    trial = study.ask()
    study.tell(trial, 0.5)
    with pytest.raises(TrialFinished, match="trial 0"):
        study.tell(trial, 0.4)
    assert study.best.value == 0.5


def test_two_kinds_of_result_at_once_are_refused(study: ft.Study) -> None:
    with pytest.raises(InvalidArgument, match="one result"):
        study.tell(study.ask(), 0.5, failure="no")


def test_a_trial_that_does_not_exist_cannot_be_told(study: ft.Study) -> None:
    with pytest.raises(TrialNotFound):
        study.tell(12, 0.5)


def test_no_result_at_all_is_refused(study: ft.Study) -> None:
    with pytest.raises(InvalidValue, match="returned no value and reported none"):
        study.tell(study.ask())


def test_the_best_of_nothing_is_a_clear_error(study: ft.Study) -> None:
    with pytest.raises(NoResult, match="Run some first"):
        study.best  # noqa: B018


def test_ask_says_why_there_is_nothing_to_ask_for(study: ft.Study) -> None:
    budget = ft.Budget(trials=1)
    trial = study.ask(budget=budget)
    with pytest.raises(NoSuggestion, match="Tell a result"):
        study.ask(budget=budget)
    study.tell(trial, 0.5)
    with pytest.raises(NoSuggestion, match="larger budget"):
        study.ask(budget=budget)
    assert study.ask(count=2, budget=budget) == []


def test_an_enqueued_configuration_comes_first_and_keeps_its_tags(study: ft.Study) -> None:
    study.enqueue({"x": 0.125}, tags=["mine"])
    first, second = study.ask(count=2)
    assert first.params == {"x": 0.125}
    assert second.params != {"x": 0.125}
    assert study.trials[0].tags == ("mine",)


def test_an_added_result_needs_no_run(study: ft.Study) -> None:
    added = study.add({"x": 0.5}, 0.1, cost=3.0, tags=["paper"])
    assert (added.state, added.value, added.cost, added.tags) == (ft.State.DONE, 0.1, 3.0, ("paper",))
    assert study.ledger.total == 3.0


@pytest.mark.parametrize("params", [{"y": 1}, {"x": 2.0}, {"x": "half"}])
def test_params_that_are_not_of_the_space_are_refused_everywhere(study: ft.Study, params: dict[str, object]) -> None:
    with pytest.raises(InvalidParams):
        study.enqueue(params)
    with pytest.raises(InvalidParams):
        study.add(params, 0.5)
    assert study.trials == []


def test_tags_and_comments_can_be_written_later(study: ft.Study) -> None:
    trial = study.ask()
    study.annotate(trial, tags=["odd"], comment="look at the curve")
    assert (study.trials[0].tags, study.trials[0].comment) == (("odd",), "look at the curve")


def test_a_trial_whose_lease_ended_is_offered_again_and_its_old_owner_fenced_off() -> None:
    clock = ft.FakeClock()
    storage = MemoryStorage(clock)
    study = ft.Study(CURVES, minimize="error", storage=storage, strategy=ft.Random(), lease=60)
    zombie = study.ask()
    clock.advance(61)
    again = study.ask()
    assert (again.number, again.attempt, again.params) == (0, 2, zombie.params)
    with pytest.raises(StaleAttempt):
        zombie.report(0.5, epochs=1)


def test_a_late_result_is_taken_unless_another_attempt_has_one() -> None:
    clock = ft.FakeClock()
    study = ft.Study(SPACE, minimize="error", storage=MemoryStorage(clock), strategy=ft.Random(), lease=60)
    late = study.ask()
    clock.advance(61)
    again = study.ask()
    assert study.tell(late, 0.5).value == 0.5
    with pytest.raises(TrialFinished):
        study.tell(again, 0.4)
    assert study.trials[0].value == 0.5


def test_several_threads_may_ask_and_tell_on_one_study() -> None:
    storage = MemoryStorage()

    def work() -> None:
        mine = ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Random())
        for _ in range(25):
            trial = mine.ask()
            mine.tell(trial, trial.params["x"])

    ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Random())
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trials = ft.Study.load("study", storage).trials
    assert [trial.number for trial in trials] == list(range(100))
    assert len({trial.params["x"] for trial in trials}) == 100, "two trials got the same random draw"


def test_a_trial_that_was_told_takes_no_more_reports(study: ft.Study) -> None:
    trial = study.ask()
    study.tell(trial, 0.5)
    with pytest.raises(TrialFinished, match="trial 0, which is done"):
        trial.report(0.4)
    assert [point.value for point in study.trials[0].points] == [0.5]
