"""Hard budgets: a trial that runs ends with the report or charge that reaches the limit, and its value is kept."""

import sys
from pathlib import Path

import pytest

import farthing as ft
from farthing.costs import FakeClock
from farthing.errors import InvalidArgument, NoResult
from farthing.running.executors import ExecutorName
from farthing.running.stopping import Limits
from farthing.storage import MemoryStorage
from farthing.study import run_as_worker
from farthing.testing import SimulatedExecutor

SPACE = ft.Space({"x": ft.Float(0, 1)})
TRACED = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 10, integer=True, trace=True)})
EXECUTORS: tuple[ExecutorName, ...] = ("inline", "processes")


def charging(trial: ft.RunningTrial) -> None:
    """Ten epochs at 1 each."""
    for epoch in range(1, 1 + int(trial.fidelity["epochs"])):
        trial.charge(1.0)
        trial.report(1.0 / epoch, epochs=epoch)


def charging_often(trial: ft.RunningTrial) -> float:
    trial.report(0.5)
    for _ in range(10):
        trial.charge(1.0)
    return 0.1


def catching(trial: ft.RunningTrial) -> float:
    for _ in range(10):
        trial.charge(1.0)
        try:
            trial.report(0.5)
        except Exception:
            continue
    return 0.1


def study_of(space: ft.Space = TRACED, **settings: object) -> ft.Study:
    defaults = {"cost_unit": "dollars", "strategy": ft.Random(), "seed": 0}
    return ft.Study(space, minimize="loss", **{**defaults, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_charge_that_reaches_the_limit_ends_the_trial(executor: ExecutorName) -> None:
    study = study_of()
    stopped = study.run(charging, budget=ft.Budget(cost=3.5, hard=True), executor=executor, progress=False)
    (trial,) = study.trials
    assert stopped.reason is ft.StopReason.BUDGET_SPENT
    assert trial.state is ft.State.PRUNED
    assert trial.cost == 4.0, "three dollars were within it, the fourth was not"
    assert trial.value == 1.0 / 3.0, "of the last report before the charge"
    assert [point.fidelity["epochs"] for point in trial.points] == [1, 2, 3]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_work_that_catches_every_exception_is_ended_too(executor: ExecutorName) -> None:
    study = study_of(SPACE)
    study.run(catching, budget=ft.Budget(cost=2.0, hard=True), executor=executor, progress=False)
    assert study.trials[0].cost == 2.0


@pytest.mark.parametrize("executor", EXECUTORS)
def test_charges_between_reports_count_at_once(executor: ExecutorName) -> None:
    study = study_of(SPACE)
    study.run(charging_often, budget=ft.Budget(cost=3.0, hard=True), executor=executor, progress=False)
    (trial,) = study.trials
    assert (trial.cost, trial.value, trial.state) == (3.0, 0.5, ft.State.PRUNED)


def test_a_budget_that_is_not_hard_lets_the_trial_end() -> None:
    study = study_of()
    study.run(charging, budget=ft.Budget(cost=3.5), executor="inline", progress=False)
    assert [(trial.state, trial.cost) for trial in study.trials] == [(ft.State.DONE, 10.0)]


def test_a_report_of_all_that_was_to_be_done_lets_the_work_save_and_return() -> None:
    def work(trial: ft.RunningTrial) -> None:
        for epoch in range(1, 11):
            trial.report(1.0 / epoch, epochs=epoch)
        (trial.checkpoint_dir / "model").write_text("weights")

    study = study_of(cost=lambda params, fidelity: fidelity["epochs"], strategy=ft.Random())
    study.run(work, budget=ft.Budget(cost=10.0, hard=True), executor="inline", progress=False)
    (trial,) = study.trials
    assert trial.state is ft.State.DONE
    assert trial.checkpoint is not None


def test_measured_seconds_and_their_prices_are_held_to_it() -> None:
    def run(budget: ft.Budget, **settings: object) -> list[ft.Trial]:
        executor = SimulatedExecutor(workers=2, thinking=0.0)

        def work(trial: ft.RunningTrial) -> None:
            for epoch in range(1, 11):
                executor.spend(60.0)
                trial.report(1.0 / epoch, epochs=epoch)

        study = ft.Study(TRACED, minimize="loss", strategy=ft.Random(), **settings, **executor.settings)  # type: ignore[arg-type]
        resources = {"gpu": 1} if "prices" in settings else None
        study.run(work, budget=budget, executor=executor, resources=resources, progress=False)
        return study.trials

    measured = run(ft.Budget(cost=250.0, hard=True))
    assert [(trial.cost, trial.state) for trial in measured] == [(180.0, ft.State.PRUNED)] * 2
    priced = run(ft.Budget(cost=2.5, hard=True), prices={"gpu": 0.6, "per": "minute"}, cost_unit="dollars")
    assert [round(trial.cost, 6) for trial in priced] == [1.8, 1.8], "one report each"


def test_running_trials_end_when_the_seconds_are_over() -> None:
    executor = SimulatedExecutor(workers=2, thinking=0.0)

    def work(trial: ft.RunningTrial) -> None:
        for epoch in range(1, 11):
            executor.spend(60.0)
            trial.report(1.0 / epoch, epochs=epoch)

    study = ft.Study(TRACED, minimize="loss", strategy=ft.Random(), **executor.settings)
    study.run(work, budget=ft.Budget(seconds=150.0, hard=True), executor=executor, progress=False)
    assert executor.clock.elapsed() == 150.0
    assert [(trial.state, trial.value, trial.cost) for trial in study.trials] == [(ft.State.PRUNED, 0.5, 150.0)] * 2
    assert study.ledger.spent == {"training": 300.0}


def endless(trial: ft.RunningTrial) -> float:
    trial.report(0.25)
    while True:
        pass


def test_work_in_a_process_that_never_reports_again_ends_when_the_seconds_are_over() -> None:
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random())
    stopped = study.run(endless, budget=ft.Budget(seconds=3.0, hard=True), progress=False)
    (trial,) = study.trials
    assert stopped.reason is ft.StopReason.BUDGET_SPENT
    assert trial.state is ft.State.PRUNED, trial.failure
    assert trial.value in (0.25, None), "None if the machine was too busy to start a worker in time"


def test_inline_work_ends_at_its_next_report_after_the_seconds() -> None:
    clock = FakeClock()

    def work(trial: ft.RunningTrial) -> None:
        for epoch in range(1, 11):
            clock.advance(60.0)
            trial.report(1.0 / epoch, epochs=epoch)

    storage = MemoryStorage(clock=clock)
    study = ft.Study(TRACED, minimize="loss", strategy=ft.Random(), clock=clock, storage=storage)
    study.run(work, budget=ft.Budget(seconds=150.0, hard=True), executor="inline", progress=False)
    assert [(trial.state, trial.value) for trial in study.trials] == [(ft.State.PRUNED, 1.0 / 3.0)]


def test_who_asks_is_told_to_stop_and_tells_what_there_is() -> None:
    study = study_of()
    trial = study.ask(budget=ft.Budget(cost=2.0, hard=True))
    trial.charge(1.0)
    trial.report(0.5, epochs=1)
    with pytest.raises(ft.Pruned, match=r"tell\(trial, pruned=True\)"):
        trial.charge(1.0)
    told = study.tell(trial, pruned=True)
    assert (told.state, told.value, told.cost) == (ft.State.PRUNED, 0.5, 2.0)
    study.set_budget(ft.Budget(cost=4.0, hard=True))
    again = study.ask()
    again.charge(1.0)
    again.report(0.5, epochs=1)
    with pytest.raises(ft.Pruned, match="cost 4 of 4"):
        again.charge(1.0)
    assert study.tell(again, pruned=True).cost == 2.0


def test_a_result_that_another_program_tells_is_taken_although_it_goes_beyond() -> None:
    clock = FakeClock()
    storage = MemoryStorage(clock=clock)
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), clock=clock, storage=storage)
    study.set_budget(ft.Budget(cost=10.0, hard=True))
    number = study.ask().number
    clock.advance(20.0)
    told = ft.Study.load("study", storage).tell(number, 0.5)
    assert (told.state, told.value, told.cost) == (ft.State.DONE, 0.5, 20.0)


def test_who_asks_keeps_the_value_of_the_report_that_goes_beyond() -> None:
    clock = FakeClock()
    storage = MemoryStorage(clock=clock)
    study = ft.Study(TRACED, minimize="loss", strategy=ft.Random(), clock=clock, storage=storage)
    trial = study.ask(budget=ft.Budget(cost=100.0, hard=True))
    clock.advance(120.0)
    with pytest.raises(ft.Pruned):
        trial.report(0.5, epochs=1)
    assert study.tell(trial, pruned=True).value == 0.5


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_line_of_a_command_has_its_cost_and_its_value_together(tmp_path: Path, executor: ExecutorName) -> None:
    (tmp_path / "train.py").write_text(
        "import json, itertools\n"
        "for step in itertools.count(1): print(json.dumps({'loss': 1 / step, 'cost': 1.0}), flush=True)\n"
    )
    study = study_of(SPACE)
    command = ft.Command(f"{sys.executable} {tmp_path}/train.py {{x}}")
    study.run(command, budget=ft.Budget(cost=4.0, hard=True), executor=executor, progress=False)
    (trial,) = study.trials
    assert (trial.state, trial.value, trial.cost) == (ft.State.PRUNED, 0.25, 4.0)


def test_workers_of_a_shared_study_are_held_to_it(tmp_path: Path) -> None:
    with study_of(storage=f"sqlite:///{tmp_path}/s.db") as study:
        limits = Limits(None).of_a_process(most_trials=None, seconds=None, waits_for_more=False)
        run_as_worker(study, charging, budget=ft.Budget(cost=6.0, hard=True), workers=2, limits=limits, progress=False)
        assert 6.0 <= study.ledger.total <= 7.0, "one charge of the other worker's trial may come after the last"
        assert {trial.state for trial in study.trials} == {ft.State.PRUNED}


def test_it_is_stored_with_the_study(tmp_path: Path) -> None:
    budget = ft.Budget(cost=3.5, hard=True)
    assert ft.Budget(**budget.to_json()) == budget
    assert "hard" not in ft.Budget(cost=3.5).to_json()
    with study_of(storage=f"sqlite:///{tmp_path}/s.db") as study:
        study.run(charging, budget=budget, executor="inline", progress=False)
    with ft.Study.load("study", f"sqlite:///{tmp_path}/s.db") as loaded:
        assert loaded.budget == budget
        loaded.set_budget(ft.Budget(cost=7.5, hard=True))
        loaded.run(charging, executor="inline", progress=False)
        assert [trial.cost for trial in loaded.trials] == [4.0, 4.0]


def test_hard_alone_is_no_limit() -> None:
    with pytest.raises(InvalidArgument, match="needs a limit"):
        ft.Budget(hard=True)


def test_a_budget_made_hard_while_it_runs_ends_the_trial_at_its_next_report() -> None:
    study = study_of()

    def work(trial: ft.RunningTrial) -> None:
        for epoch in range(1, 11):
            trial.charge(1.0)
            trial.report(1.0 / epoch, epochs=epoch)
            if epoch == 5:
                study.set_budget(ft.Budget(cost=3.0, hard=True))

    study.run(work, budget=ft.Budget(cost=3.0), executor="inline", progress=False)
    assert study.trials[0].cost == 6.0


def test_a_verification_is_held_to_the_budget_it_was_given() -> None:
    prices = [1.0]

    def work(trial: ft.RunningTrial) -> None:
        for epoch in range(1, 1 + int(trial.fidelity["epochs"])):
            trial.charge(prices[-1])
            trial.report(1.0 / epoch, epochs=epoch)

    study = study_of(strategy=ft.ASHA())
    study.run(work, budget=ft.Budget(trials=4), executor="inline", progress=False)
    before = study.ledger.total
    prices.append(5.0)  # it turns out to be more expensive than predicted
    with pytest.raises(NoResult, match="which is pruned"):
        study.verify(work, budget=ft.Budget(cost=before + 12.0, hard=True), executor="inline")
    assert study.ledger.total == before + 15.0
