"""A worker that the system kills costs one attempt: its trial is run again once, on a fresh worker, and then fails."""

import os
import signal
import time
from pathlib import Path

import pytest

import farthing as ft
from farthing.session import session_of
from farthing.trials import Attempt

SPACE = ft.Space({"x": ft.Float(0, 1)})
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]


def study() -> ft.Study:
    return ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0)


def killed_in(attempts: int, signal_number: int = signal.SIGKILL) -> object:
    def work(trial: ft.RunningTrial) -> float:
        if trial.number == 1 and trial.attempt <= attempts:
            os.kill(os.getpid(), signal_number)
        return float(trial.params["x"])

    return work


def ends(study: ft.Study) -> list[tuple[str, int]]:
    return [(str(trial.state), trial.attempt) for trial in study.trials]


@pytest.mark.parametrize("signal_number", SIGNALS)
def test_a_killed_workers_trial_is_run_again_once(signal_number: int) -> None:
    tuned = study()
    tuned.run(killed_in(1, signal_number), budget=ft.Budget(trials=3))
    assert ends(tuned) == [("done", 1), ("done", 2), ("done", 1)]
    assert "failed" in tuned.trials[1].costs


def test_it_is_run_on_a_fresh_worker(tmp_path: Path) -> None:
    def work(trial: ft.RunningTrial) -> float:
        with open(tmp_path / "workers", "a") as file:
            file.write(f"{os.getpid()}\n")
        if trial.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0.5

    study().run(work, budget=ft.Budget(trials=1))
    assert len(set((tmp_path / "workers").read_text().split())) == 2


def test_a_trial_whose_worker_is_killed_twice_fails_with_the_reason() -> None:
    tuned = study()
    assert tuned.run(killed_in(2), budget=ft.Budget(trials=3)).reason is ft.StopReason.BUDGET_SPENT
    assert ends(tuned) == [("done", 1), ("failed", 2), ("done", 1)]
    assert tuned.trials[1].failure is not None
    assert tuned.trials[1].failure.reason == "The work was killed by SIGKILL: out of memory, or killed from outside"


def test_retries_count_for_killed_workers_too() -> None:
    patient, strict = study(), study()
    patient.run(killed_in(3), budget=ft.Budget(trials=2), retries=3)
    strict.run(killed_in(1), budget=ft.Budget(trials=2), retries=0)
    assert ends(patient) == [("done", 1), ("done", 4)]
    assert ends(strict) == [("done", 1), ("failed", 1)]


def test_an_attempt_that_was_given_back_does_not_count_as_killed() -> None:
    tuned = study()
    first = tuned.ask()
    session_of(tuned).records.release(Attempt(first.number, first.attempt))

    def work(trial: ft.RunningTrial) -> float:
        if trial.attempt == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0.5

    tuned.run(work, budget=ft.Budget(trials=1))
    assert ends(tuned) == [("done", 3)]


def test_exceptions_exits_and_the_time_limit_are_not_tried_again() -> None:
    def work(trial: ft.RunningTrial) -> float:
        if trial.number == 0:
            raise ValueError("diverged")
        if trial.number == 1:
            os._exit(3)
        time.sleep(3600)
        return 0.5

    tuned = study()
    tuned.run(work, budget=ft.Budget(trials=3), time_limit=2)
    assert ends(tuned) == [("failed", 1)] * 3


def test_a_verification_whose_worker_is_killed_is_run_again() -> None:
    curves = ft.Space(SPACE.parameters, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
    tuned = ft.Study(curves, minimize="error", strategy=ft.ASHA(), seed=0)
    tuned.add({"x": 0.5}, 0.5, fidelity={"epochs": 3})

    def work(trial: ft.RunningTrial) -> float:
        if trial.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0.5

    assert tuned.verify(work).attempt == 2
