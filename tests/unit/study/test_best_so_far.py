"""Runs that are worth the best point of their curve, and that may stop by themselves."""

import math
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.costs.expected import work_of
from farthing.errors import InvalidSpace
from farthing.extending import Strategy
from farthing.strategies.multifidelity.runs import runs_of

SPACE = ft.Space(
    {"x": ft.Float(0, 1)}, fidelities={"rounds": ft.Fidelity(1, 27, integer=True, trace=True, best_so_far=True)}
)


def overfitting(trial: ft.RunningTrial) -> float:
    """Falls until round 6, then rises, and returns the last value, as a careless script does."""
    done = int((trial.resume_dir / "round").read_text()) if trial.resume_dir else 0
    value = math.nan
    for step in range(done + 1, int(trial.fidelity["rounds"]) + 1):
        value = 1.0 + abs(step - 6) / 10
        trial.report(value, rounds=step)
    (trial.checkpoint_dir / "round").write_text(str(int(trial.fidelity["rounds"])))
    return value


def stopping(trial: ft.RunningTrial) -> float:
    """Is best in round 4, gives up two rounds later, and returns the best."""
    for step in range(1, min(6, int(trial.fidelity["rounds"])) + 1):
        trial.report(1.0 + abs(step - 4) / 10, rounds=step)
    return 1.0


def stopping_in_silence(trial: ft.RunningTrial) -> None:
    """The same, and returns nothing: what it reported counts."""
    stopping(trial)


def study_of(strategy: Strategy | None = None, **settings: object) -> ft.Study:
    return ft.Study(SPACE, minimize="loss", strategy=strategy or ft.Random(), seed=0, **settings)  # type: ignore[arg-type]


def run(study: ft.Study, work: object, trials: int = 1) -> ft.Trial:
    study.run(work, budget=ft.Budget(trials=trials), executor="inline")  # type: ignore[arg-type]
    return study.trials[0]


def test_a_run_is_worth_the_best_point_of_its_curve() -> None:
    trial = run(study_of(), overfitting)
    assert trial.value == 1.0
    assert trial.points[-1].value == pytest.approx(3.1)


def test_a_continuation_is_worth_the_best_point_of_the_whole_run() -> None:
    study = study_of()
    study.enqueue({"x": 0.5}, fidelity={"rounds": 9})
    run(study, overfitting)
    study.verify(overfitting, executor="inline")
    continued = study.trials[1]
    assert continued.resume_from == 0
    assert min(point.value or 0.0 for point in continued.points) == pytest.approx(1.4)
    assert continued.value == 1.0


def test_maximised_values_take_the_highest() -> None:
    study = ft.Study(SPACE, maximize="score", strategy=ft.Random(), seed=0)
    trial = study.ask()
    assert study.tell(trial, 0.25, trace=[({"rounds": 1}, 0.5), ({"rounds": 2}, 0.75)]).value == 0.75


@pytest.mark.parametrize("stopping", [stopping, stopping_in_silence])
def test_work_that_stops_by_itself_is_trained_to_the_end_and_pays_for_what_it_did(stopping: Any) -> None:
    study = study_of(cost=lambda params, fidelity: fidelity["rounds"], cost_unit="rounds")
    study.enqueue({"x": 0.5}, fidelity={"rounds": 18})
    trial = run(study, stopping)
    assert study.history.ended_early(trial)
    assert study.history.is_full(trial)
    assert study.history.reach(trial) == 1.0
    assert (trial.value, trial.cost, trial.points[-1].fidelity) == (1.0, 6.0, {"rounds": 6})
    assert study.best.measured == trial
    assert study.verify(stopping, executor="inline") == trial, "there is nothing more to train"


def test_a_told_trace_that_ends_early_counts_the_same() -> None:
    study = study_of()
    curve = [({"rounds": step}, 1.0 + abs(step - 6) / 10) for step in range(1, 9)]
    assert study.history.is_full(study.tell(study.ask(), 1.0, trace=curve))


def test_reports_at_intervals_do_not_make_a_run_end_early() -> None:
    def every_fifth(trial: ft.RunningTrial) -> None:
        for step in range(5, int(trial.fidelity["rounds"]) + 1, 5):
            trial.report(1.0 / step, rounds=step)

    study = study_of()
    study.enqueue({"x": 0.5}, fidelity={"rounds": 18})
    trial = run(study, every_fifth)
    assert not study.history.ended_early(trial)
    assert not study.history.is_full(trial)


def test_the_model_sees_the_best_so_far_and_the_level_end_of_a_run_that_stopped() -> None:
    study = study_of()
    study.enqueue({"x": 0.5}, fidelity={"rounds": 18})
    run(study, stopping)
    [seen] = runs_of(study.history)
    losses = [point.loss for point in seen.curve]
    assert losses == sorted(losses, reverse=True)
    assert (seen.curve[-1].fidelity, seen.curve[-1].loss) == ({"rounds": 27}, 1.0)
    assert seen.reached == pytest.approx(1.0)
    assert work_of(study.history, seen.trials[0]) == pytest.approx(1.0), "its cost is that of the whole run"


@pytest.mark.parametrize("strategy", [ft.ASHA(), ft.Hyperband(), ft.TraceKG()])
def test_no_strategy_continues_a_run_that_stopped(strategy: Strategy) -> None:
    study = study_of(strategy)
    run(study, stopping, trials=12)
    stopped = {trial.number for trial in study.trials if study.history.ended_early(trial)}
    assert stopped
    assert not stopped & {trial.resume_from for trial in study.trials}


def test_the_recommendation_of_curves_that_turn_up_is_by_their_best_points() -> None:
    """A steep curve that overfits is better at its best than a slow one that falls to the end."""

    def boosting(trial: ft.RunningTrial) -> None:
        rate = 0.05 + trial.params["x"]
        for step in range(1, int(trial.fidelity["rounds"]) + 1):
            trial.report(1 / (1 + 4 * rate * step) + 0.02 * rate * step + 0.3 * (rate - 0.6) ** 2, rounds=step)

    study = study_of(ft.TraceKG())
    run(study, boosting, trials=10)
    x = np.linspace(0, 1, 101)
    steps = np.arange(1, 28)[:, None]
    curves = 1 / (1 + 4 * (0.05 + x) * steps) + 0.02 * (0.05 + x) * steps + 0.3 * (x - 0.55) ** 2
    at_best = np.interp(study.best.params["x"], x, curves.min(axis=0))
    assert at_best < curves.min() + 0.02


def test_a_space_with_it_is_stored_and_read_back() -> None:
    assert ft.Space.from_json(SPACE.to_json()) == SPACE
    assert ft.Space.from_toml(SPACE.to_toml()) == SPACE
    assert "best_so_far=True" in repr(SPACE)


def test_it_needs_a_trace() -> None:
    with pytest.raises(InvalidSpace, match=r"must be of a trace.*Add trace=True"):
        ft.Fidelity(1, 9, best_so_far=True)


def test_best_reads_the_curves_where_the_database_cannot_tell(tmp_path: object) -> None:
    study = study_of(storage=f"{tmp_path}/a.db")
    study.enqueue({"x": 0.5}, fidelity={"rounds": 18})
    run(study, stopping)
    assert ft.Study.load("study", f"{tmp_path}/a.db").best.measured is not None
