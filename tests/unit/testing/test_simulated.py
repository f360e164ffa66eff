"""A simulated cluster: virtual time, asynchronous workers, faults, through the same loop."""

from collections.abc import Callable
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.execution import Checkpoints, as_work
from farthing.extending import Strategy
from farthing.running.suggestions import GivesTimeToThink
from farthing.testing import ExecutorContract, Faults, SimulatedExecutor, check_replay
from farthing.testing.executor_contract import PLAIN

SPACE = ft.Space({"x": ft.Float(0, 1)})
CURVES = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})


def simulated(
    executor: SimulatedExecutor, *, seconds: float = 60.0, trials: int = 24, strategy: Strategy | None = None, **run
) -> ft.Study:
    def work(trial: ft.RunningTrial) -> float:
        executor.spend(seconds * (0.5 + trial.params["x"]))
        return trial.params["x"]

    study = ft.Study(SPACE, minimize="loss", strategy=strategy or ft.Sobol(), seed=0, **executor.settings)
    study.run(work, executor=executor, **{"budget": ft.Budget(trials=trials), "progress": False, **run})
    return study


def test_costs_are_virtual_seconds_and_workers_run_at_the_same_time() -> None:
    executor = SimulatedExecutor(workers=4, thinking=0.0)
    study = simulated(executor)
    costs = [60.0 * (0.5 + trial.params["x"]) for trial in study.trials]
    assert [trial.cost for trial in study.trials] == pytest.approx(costs)
    assert executor.clock.elapsed() >= sum(costs) / 4
    assert executor.clock.elapsed() <= sum(costs) / 4 + max(costs)


def test_thinking_takes_the_time_that_is_declared() -> None:
    """One worker, which waits for each suggestion."""
    executor = SimulatedExecutor(workers=1, thinking=2.0)
    study = simulated(executor, trials=5)
    assert executor.clock.elapsed() == pytest.approx(study.ledger.total + 5 * 2.0)
    assert study.ledger.waiting == pytest.approx(5 * 2.0)
    assert study.ledger.overhead == pytest.approx(5 * 2.0)
    assert executor.idle_share == pytest.approx(10.0 / executor.clock.elapsed())


def test_thinking_is_measured_otherwise() -> None:
    executor = SimulatedExecutor(workers=1)
    study = simulated(executor, trials=3)
    assert 0.0 < study.ledger.overhead < 60.0
    assert executor.clock.elapsed() == pytest.approx(study.ledger.total + study.ledger.waiting)


def test_any_number_of_workers_gives_the_same_trials_of_sobol() -> None:
    params = [
        [trial.params for trial in simulated(SimulatedExecutor(workers=workers), trials=24).trials]
        for workers in (1, 7, 24)
    ]
    assert params[0] == params[1] == params[2]


def test_a_budget_of_seconds_ends_a_study_in_virtual_time() -> None:
    executor = SimulatedExecutor(workers=2, thinking=0.0)
    simulated(executor, budget=ft.Budget(seconds=600.0))
    assert 540.0 <= executor.clock.elapsed() <= 600.0 + 90.0


def test_failures_stragglers_and_preemptions_happen_as_often_as_they_are_to() -> None:
    faults = Faults(failure=0.2, preemption=0.2, straggler=0.3, slowdown=10.0)
    study = simulated(SimulatedExecutor(workers=8, faults=faults), trials=150, retries=20)
    attempts = sum(trial.attempt for trial in study.trials)
    share = 1.0 - 150 / attempts
    assert 0.28 < share < 0.44, "0.2 + 0.8 · 0.2 = 0.36, within two deviations of 150 draws"
    assert {trial.state for trial in study.trials} == {ft.State.DONE}
    assert study.ledger.spent["failed"] > 0.0
    slow = [trial for trial in study.trials if trial.attempt == 1 and trial.cost > 90.0 + 1e-9]
    assert slow, "only a straggler takes longer than the longest trial"


def test_a_killed_worker_is_told_from_a_failure() -> None:
    killed = simulated(SimulatedExecutor(workers=2, faults=Faults(preemption=1.0)), trials=2, keep_going=True)
    failed = simulated(SimulatedExecutor(workers=2, faults=Faults(failure=1.0)), trials=2, keep_going=True)
    assert [trial.attempt for trial in killed.trials] == [2, 2], "tried again once by default"
    assert [trial.attempt for trial in failed.trials] == [1, 1]
    assert killed.trials[0].failure.reason == "Its worker was pre-empted."


def test_the_same_seed_gives_the_same_faults() -> None:
    def costs(seed: int) -> list[float]:
        faults = Faults(failure=0.3, straggler=0.3)
        executor = SimulatedExecutor(workers=3, thinking=0.5, faults=faults, seed=seed)
        return [trial.cost for trial in simulated(executor).trials]

    assert costs(1) == costs(1)
    assert costs(1) != costs(2)


def test_curves_are_reported_when_their_time_has_come_and_runs_are_continued() -> None:
    executor = SimulatedExecutor(workers=4, thinking=0.1)

    def work(trial: ft.RunningTrial) -> None:
        done = int((trial.resume_dir / "epoch").read_text()) if trial.resume_dir else 0
        for epoch in range(done + 1, int(trial.fidelity["epochs"]) + 1):
            executor.spend(10.0)
            trial.report(trial.params["x"] + 1 / epoch, epochs=epoch)
        (trial.checkpoint_dir / "epoch").write_text(str(int(trial.fidelity["epochs"])))

    study = ft.Study(CURVES, minimize="loss", strategy=ft.ASHA(), seed=0, **executor.settings)
    study.run(work, executor=executor, budget=ft.Budget(trials=20), progress=False)
    assert any(trial.resume_from is not None for trial in study.trials)
    for trial in study.trials:
        times = [point.time for point in trial.points]
        assert times == sorted(times)
        epochs = len(trial.points)
        assert trial.cost == pytest.approx(10.0 * epochs), "a continued run pays for what it adds"


def test_a_trial_beyond_the_time_limit_is_ended_there() -> None:
    executor = SimulatedExecutor(workers=1, thinking=0.0)
    study = simulated(executor, trials=4, time_limit=50.0, keep_going=True)
    assert max(trial.cost for trial in study.trials) == pytest.approx(50.0)
    assert "time limit" in next(trial.failure.reason for trial in study.trials if trial.failure)


def test_suggestions_of_a_model_are_repeated_bit_for_bit() -> None:
    study = simulated(SimulatedExecutor(workers=5, thinking=30.0), strategy=ft.EIPerCost(), trials=20)
    assert check_replay(study) == []


def test_time_is_spent_by_work_only() -> None:
    with pytest.raises(InvalidArgument, match="Only work"):
        SimulatedExecutor(workers=1).spend(1.0)
    with pytest.raises(InvalidArgument, match="probability of a failure"):
        Faults(failure=2.0)


def test_the_place_to_think_in_keeps_the_contract_of_executors(tmp_path: Path) -> None:
    def start(work: Callable[[ft.RunningTrial], float]) -> SimulatedExecutor:
        executor = SimulatedExecutor(workers=1)
        executor.take_up(as_work(work), PLAIN, checkpoints=Checkpoints(tmp_path))
        assert isinstance(executor, GivesTimeToThink)
        return executor

    ExecutorContract().test_a_place_to_think_in_takes_one_question_and_gives_one_answer(start)
