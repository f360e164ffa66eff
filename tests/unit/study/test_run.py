import re
import signal

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, MissingExtra, StudyMismatch, WorkError
from farthing.extending import Strategy
from farthing.storage import MemoryStorage

SPACE = ft.Space({"x": ft.Float(0, 1)})
CURVES = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)})


def distance(trial: ft.RunningTrial) -> float:
    return abs(trial.params["x"] - 0.3)


def epochs(trial: ft.RunningTrial) -> None:
    done = int((trial.resume_dir / "epoch").read_text()) if trial.resume_dir else 0
    for epoch in range(done + 1, int(trial.fidelity["epochs"]) + 1):
        trial.report(trial.params["x"] + 1 / epoch, epochs=epoch)
    (trial.checkpoint_dir / "epoch").write_text(str(int(trial.fidelity["epochs"])))


INTERRUPTED = ft.StopReason.INTERRUPTED


def run(study: ft.Study, work: object = distance, **settings: object) -> ft.Stopped:
    return study.run(work, **{"executor": "inline", **settings})  # type: ignore[arg-type]


def study_of(space: ft.Space = SPACE, strategy: Strategy | None = None, **settings: object) -> ft.Study:
    return ft.Study(space, minimize="error", strategy=strategy or ft.Random(), **settings)  # type: ignore[arg-type]


def test_a_run_ends_when_its_trials_are_spent_and_says_so() -> None:
    study = study_of()
    assert str(run(study, budget=ft.Budget(trials=20))) == "the budget is spent"
    assert len(study.trials) == 20
    assert study.best.value == min(trial.value for trial in study.trials if trial.value is not None)


def test_budgets_are_totals_over_all_runs_of_a_study() -> None:
    study = study_of()
    run(study, budget=ft.Budget(trials=5))
    run(study, budget=ft.Budget(trials=5))
    assert len(study.trials) == 5
    run(study, budget=ft.Budget(trials=8))
    assert len(study.trials) == 8


@pytest.mark.parametrize("strategy", [ft.Random(), ft.Sobol(), ft.CMAES()])
def test_a_trial_is_not_started_if_those_before_it_cost_more_than_is_left(strategy: Strategy) -> None:
    def dear(trial: ft.RunningTrial) -> float:
        trial.charge(3.0)
        return 0.5

    study = ft.Study(SPACE, minimize="error", strategy=strategy, cost_unit="dollars", seed=0)
    stopped = run(study, dear, budget=ft.Budget(cost=10))
    assert study.ledger.total == 9.0
    assert str(stopped) == "the next trial is predicted to cost 3, more than the 1 that is left"


def test_the_first_trial_starts_whatever_it_may_cost() -> None:
    def dear(trial: ft.RunningTrial) -> float:
        trial.charge(30.0)
        return 0.5

    study = study_of()
    run(study, dear, budget=ft.Budget(cost=10))
    assert study.ledger.total == 30.0


def test_a_configuration_in_line_waits_for_a_budget_that_pays_for_it() -> None:
    def dear(trial: ft.RunningTrial) -> float:
        trial.charge(3.0)
        return 0.5

    study = study_of()
    run(study, dear, budget=ft.Budget(cost=8))
    study.enqueue({"x": 0.5})
    run(study, dear, budget=ft.Budget(cost=8))
    assert [trial.state for trial in study.trials] == [ft.State.DONE, ft.State.DONE, ft.State.PENDING]
    run(study, dear, budget=ft.Budget(cost=9))
    assert study.ledger.total == 9.0


def test_the_cost_of_failures_is_part_of_the_budget() -> None:
    def failing(trial: ft.RunningTrial) -> float:
        trial.charge(4.0)
        raise ValueError("diverged")

    study = study_of()
    run(study, failing, budget=ft.Budget(cost=10))
    assert [trial.state for trial in study.trials] == [ft.State.FAILED] * 3
    assert study.ledger.spent == {"failed": 12.0}


def test_a_failed_trial_that_can_no_longer_be_paid_is_left_waiting() -> None:
    def diverging(trial: ft.RunningTrial) -> float:
        trial.charge(4.0)
        if trial.number == 2:
            raise ValueError("diverged")
        return 0.5

    study = study_of()
    assert run(study, diverging, budget=ft.Budget(cost=13), retries=1).reason is ft.StopReason.BUDGET_SPENT
    assert [trial.state for trial in study.trials] == [ft.State.DONE, ft.State.DONE, ft.State.PENDING]


def test_a_trial_that_was_given_back_is_run_on_what_was_set_aside_for_it() -> None:
    def interrupted(trial: ft.RunningTrial) -> float:
        if trial.number == 1:
            raise KeyboardInterrupt
        return 0.5

    study = study_of(cost=lambda params, fidelity: 5.0, cost_unit="dollars")
    with pytest.raises(KeyboardInterrupt):
        run(study, interrupted, budget=ft.Budget(cost=10))
    assert run(study, budget=ft.Budget(cost=10)).reason is ft.StopReason.BUDGET_SPENT
    assert [trial.state for trial in study.trials] == [ft.State.DONE, ft.State.DONE]


def test_wall_clock_seconds_are_counted_over_resumes() -> None:
    clock = ft.FakeClock()
    study = study_of(storage=MemoryStorage(clock), clock=clock)

    def slow(trial: ft.RunningTrial) -> float:
        clock.advance(10)
        return 0.5

    run(study, slow, budget=ft.Budget(seconds=25))
    assert len(study.trials) == 2, "the third would not be done in the five that are left"
    run(study, slow, budget=ft.Budget(seconds=25))
    assert len(study.trials) == 2
    run(study, slow, budget=ft.Budget(seconds=45))
    assert len(study.trials) == 4


def test_a_declared_cost_is_charged_and_what_does_not_fit_is_not_started() -> None:
    study = study_of(cost=lambda params, fidelity: 4.0, cost_unit="dollars")
    stopped = run(study, budget=ft.Budget(cost=10))
    assert stopped.reason is ft.StopReason.TOO_EXPENSIVE
    assert str(stopped) == "the next trial is predicted to cost 4, more than the 2 that is left"
    assert [trial.cost for trial in study.trials] == [4.0, 4.0]


def test_a_trial_that_does_not_fit_makes_room_for_cheaper_ones() -> None:
    study = study_of(CURVES, ft.ASHA(), cost=lambda params, fidelity: fidelity["epochs"], cost_unit="epochs")
    run(study, epochs, budget=ft.Budget(cost=100))
    assert study.ledger.total == 100.0
    assert len({(trial.params["x"], trial.fidelity["epochs"]) for trial in study.trials}) == len(study.trials)


def test_a_declared_cost_in_seconds_must_fit_the_wall_clock() -> None:
    study = study_of(cost=lambda params, fidelity: 100.0)
    sentence = str(run(study, budget=ft.Budget(seconds=50)))
    assert re.search(r"predicted to cost 100, more than the (50|4\d(\.\d)?) that is left", sentence), sentence
    assert study.trials == []


def test_fewer_trials_than_workers_are_no_trouble() -> None:
    study = study_of()
    assert study.run(distance, budget=ft.Budget(trials=1), workers=2).reason is ft.StopReason.BUDGET_SPENT


def broken(trial: ft.RunningTrial) -> float:
    raise FileNotFoundError(f"train.csv of trial {trial.number}")


def test_a_run_whose_first_trials_fail_on_the_same_line_ends_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of()
    stopped = run(study, broken, budget=ft.Budget(trials=20))
    assert (stopped.reason, len(study.trials)) == (ft.StopReason.WORK_FAILS, 3)
    assert "the first 3 trials failed in the same way" in str(stopped)
    assert "FileNotFoundError: train.csv of trial 0 (test_run.py, line " in str(stopped)
    assert "keep_going=True" in str(stopped)
    assert [record.message for record in caplog.records] == [f"The run ends: {stopped}."]


def test_a_run_that_keeps_going_spends_its_budget_on_failures_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of()
    assert run(study, broken, budget=ft.Budget(trials=5), keep_going=True).reason is ft.StopReason.BUDGET_SPENT
    assert [record.message for record in caplog.records] == [
        "The first trials all failed, trial 2 with: FileNotFoundError: train.csv of trial 2"
    ]


def test_failures_on_other_lines_or_after_a_success_end_nothing() -> None:
    def on_two_lines(trial: ft.RunningTrial) -> float:
        if trial.number % 2:
            raise ValueError("odd")
        raise ValueError("even")

    def after_a_success(trial: ft.RunningTrial) -> float:
        return 0.5 if trial.number == 1 else broken(trial)

    for work in (on_two_lines, after_a_success):
        assert run(study_of(), work, budget=ft.Budget(trials=6)).reason is ft.StopReason.BUDGET_SPENT


def test_lack_of_memory_may_be_the_params_and_ends_nothing() -> None:
    def diverging(trial: ft.RunningTrial) -> float:
        raise MemoryError("of one row")

    assert run(study_of(), diverging, budget=ft.Budget(trials=5)).reason is ft.StopReason.BUDGET_SPENT


@pytest.mark.parametrize("is_reported", [True, False])
def test_a_value_that_is_always_nan_ends_the_run(is_reported: bool) -> None:
    def diverging(trial: ft.RunningTrial) -> float:
        value = float("inf" if trial.number % 2 else "nan")
        if is_reported:
            trial.report(value)
        return value

    study = study_of(strategy=ft.Sobol())
    stopped = run(study, diverging, budget=ft.Budget(trials=40))
    assert (stopped.reason, len(study.trials)) == (ft.StopReason.WORK_FAILS, 3)
    assert "The value 'error' must be finite, got nan" in str(stopped)


def test_values_that_are_nan_on_one_side_of_a_range_end_nothing() -> None:
    def diverging(trial: ft.RunningTrial) -> float:
        return float("nan") if trial.params["x"] > 0.6 else 0.5

    study = study_of()
    for x in (0.7, 0.8, 0.9, 1.0):
        study.enqueue({"x": x})
    study.enqueue({"x": 0.1})
    assert run(study, diverging, budget=ft.Budget(trials=6)).reason is ft.StopReason.BUDGET_SPENT


def test_one_option_that_always_fails_is_not_taken_for_broken_work() -> None:
    def picky(trial: ft.RunningTrial) -> float:
        if trial.params["solver"] == "a":
            raise ValueError("no such data")
        return 0.5

    study = study_of(ft.Space({"solver": ft.Choice("a", "b"), "x": ft.Float(0, 1)}))
    for x in (0.1, 0.2, 0.3, 0.4):
        study.enqueue({"solver": "a", "x": x})
    study.enqueue({"solver": "b", "x": 0.5})
    assert run(study, picky, budget=ft.Budget(trials=6)).reason is ft.StopReason.BUDGET_SPENT
    broken_all = study_of(ft.Space({"solver": ft.Choice("a", "b")}))
    assert run(broken_all, broken, budget=ft.Budget(trials=40)).reason is ft.StopReason.WORK_FAILS


def test_a_corrected_run_is_not_held_to_the_failures_before_it() -> None:
    study = study_of()
    run(study, broken, budget=ft.Budget(trials=20))
    assert run(study, broken, budget=ft.Budget(trials=20)).reason is ft.StopReason.WORK_FAILS
    assert len(study.trials) == 6
    assert run(study, budget=ft.Budget(trials=20)).reason is ft.StopReason.BUDGET_SPENT


def test_commands_that_exit_alike_end_the_run() -> None:
    study = study_of()
    stopped = run(study, ft.Command("python -c 'import sys; sys.exit(3)' {x}"), budget=ft.Budget(trials=9))
    assert (stopped.reason, len(study.trials)) == (ft.StopReason.WORK_FAILS, 3)
    assert "The command exited with code 3" in str(stopped)


MISTAKES = {
    "a pattern that matches nothing": ft.Command(
        'python -c \'print("loss", {x}, "{kind}")\'', pattern=r"error (?P<value>\S+)"
    ),
    "a misspelt flag": ft.Command(
        "python -c 'import argparse; argparse.ArgumentParser().parse_args()' --rate {x} --kind {kind}"
    ),
    "no such file, in a folder of the trial's own": ft.Command("cat /tmp/nowhere-{trial}/{x}/{kind}.txt"),
    "no Python exception": ft.Command("sh -c 'echo {x} steps of {kind} 0x7f{trial}a went wrong >&2; exit {trial}'"),
    "a returned object": lambda trial: object(),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_whose_words_differ_by_numbers_params_addresses_and_paths_are_one(mistake: str) -> None:
    study = study_of(ft.Space({"x": ft.Float(0, 1), "kind": ft.Choice("sgd", "adam")}), ft.Sobol())
    for x, kind in ((0.25, "sgd"), (0.5, "adam"), (0.75, "sgd")):
        study.enqueue({"x": x, "kind": kind})
    stopped = run(study, MISTAKES[mistake], budget=ft.Budget(trials=20))
    ends_alike = mistake != "no Python exception"  # those exit with other codes
    assert (stopped.reason is ft.StopReason.WORK_FAILS) is ends_alike, study.trials[0].failure
    assert (len(study.trials) == 3) is ends_alike


def test_a_declared_cost_is_paid_in_steps_and_a_continuation_pays_the_difference() -> None:
    study = study_of(CURVES, ft.ASHA(), cost=lambda params, fidelity: 10.0 + fidelity["epochs"])
    run(study, epochs, budget=ft.Budget(trials=9))
    for trial in study.trials:
        source = study.trials[trial.resume_from] if trial.resume_from is not None else None
        paid_before = 10.0 + source.fidelity["epochs"] if source else 0.0
        assert trial.cost == 10.0 + trial.fidelity["epochs"] - paid_before
    assert study.ledger.saved["warm starts"] > 0


def test_continued_runs_really_continue() -> None:
    study = study_of(CURVES, ft.ASHA())
    run(study, epochs, budget=ft.Budget(trials=30))
    continued = [trial for trial in study.trials if trial.resume_from is not None]
    assert continued
    for trial in continued:
        assert trial.resume_checkpoint is not None
        first = min(point.fidelity["epochs"] for point in trial.points)
        assert first == study.trials[trial.resume_from].fidelity["epochs"] + 1


def test_work_that_leaves_no_checkpoint_is_continued_from_nothing() -> None:
    def forgetful(trial: ft.RunningTrial) -> None:
        assert trial.resume_dir is None
        for epoch in range(1, int(trial.fidelity["epochs"]) + 1):
            trial.report(trial.params["x"], epochs=epoch)

    study = study_of(CURVES, ft.ASHA())
    run(study, forgetful, budget=ft.Budget(trials=9))
    assert {trial.state for trial in study.trials} == {ft.State.DONE}
    assert any(trial.resume_from is not None for trial in study.trials)
    assert study.ledger.saved == {}


def test_checkpoints_are_collected_except_those_that_may_be_resumed_and_the_best() -> None:
    study = study_of(CURVES, ft.Hyperband())
    run(study, epochs, budget=ft.Budget(trials=27))
    kept = {trial.number for trial in study.trials if trial.checkpoint is not None}
    assert kept == study.strategy.resumable(study.history) | {study.best.trial.number}
    on_disk = {
        int(path.name.split("-")[0]) if path.name[0].isdigit() else -1 for path in study.checkpoints.root.iterdir()
    }
    assert len(kept) < len(study.trials) / 2
    assert kept <= on_disk


def test_a_failed_trial_is_retried_as_often_as_allowed() -> None:
    attempts: list[int] = []

    def flaky(trial: ft.RunningTrial) -> float:
        attempts.append(trial.attempt)
        if trial.attempt < 3:
            raise RuntimeError("try again")
        return 0.5

    study = study_of()
    run(study, flaky, budget=ft.Budget(trials=1), retries=2)
    assert attempts == [1, 2, 3]
    assert study.trials[0].state is ft.State.DONE
    run(study, flaky, budget=ft.Budget(trials=2), retries=1)
    assert study.trials[1].state is ft.State.FAILED


def test_callbacks_see_each_trial_and_may_stop_the_run() -> None:
    seen: list[int] = []

    def stop_at_four(study: ft.Study, trial: ft.Trial) -> None:
        seen.append(trial.number)
        if trial.number == 4:
            study.stop()

    study = study_of()
    assert run(study, budget=ft.Budget(trials=100), callbacks=[stop_at_four]).reason is ft.StopReason.STOPPED
    assert seen == [0, 1, 2, 3, 4]


def test_ctrl_c_gives_the_running_trial_back_and_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(trial: ft.RunningTrial) -> float:
        if trial.number == 2 and trial.attempt == 1:
            signal.raise_signal(signal.SIGINT)
        return 0.5

    study = study_of()
    with pytest.raises(KeyboardInterrupt):
        run(study, interrupted, budget=ft.Budget(trials=5))
    assert [trial.state for trial in study.trials] == [ft.State.DONE, ft.State.DONE, ft.State.PENDING]
    assert "2 trials done. 1 unfinished: they were given back" in capsys.readouterr().err
    run(study, interrupted, budget=ft.Budget(trials=5))
    assert [trial.number for trial in study.trials if trial.state is ft.State.DONE] == [0, 1, 2, 3, 4]


def test_a_run_that_is_interrupted_may_return_instead() -> None:
    def interrupted(trial: ft.RunningTrial) -> float:
        raise KeyboardInterrupt

    stopped = run(study_of(), interrupted, budget=ft.Budget(trials=5), on_interrupt="return")
    assert (stopped.reason, str(stopped)) == (ft.StopReason.INTERRUPTED, "interrupted")


def test_what_an_interrupt_does_is_one_of_two_things() -> None:
    with pytest.raises(InvalidArgument, match="on_interrupt must be one of 'raise', 'return', got 'ignore'"):
        run(study_of(), budget=ft.Budget(trials=1), on_interrupt="ignore")


def test_an_interrupted_study_proposes_what_an_unbroken_one_would_have() -> None:
    def broken(trial: ft.RunningTrial) -> None:
        if trial.number in (3, 11) and trial.attempt == 1:
            raise KeyboardInterrupt
        epochs(trial)

    unbroken, resumed = study_of(CURVES, ft.ASHA(), seed=1), study_of(CURVES, ft.ASHA(), seed=1)
    run(unbroken, epochs, budget=ft.Budget(trials=20))
    interrupted = 0
    while run(resumed, broken, budget=ft.Budget(trials=20), on_interrupt="return").reason is INTERRUPTED:
        interrupted += 1
    assert interrupted == 2
    assert [trial.params for trial in resumed.trials] == [trial.params for trial in unbroken.trials]
    assert [trial.resume_from for trial in resumed.trials] == [trial.resume_from for trial in unbroken.trials]


def test_a_callback_that_raises_ends_the_run_and_loses_nothing() -> None:
    def broken(study: ft.Study, trial: ft.Trial) -> None:
        raise RuntimeError("callback")

    study = study_of()
    with pytest.raises(RuntimeError, match="callback"):
        run(study, budget=ft.Budget(trials=5), callbacks=[broken])
    assert [trial.state for trial in study.trials] == [ft.State.DONE]


def test_the_strategy_is_chosen_by_the_shape_of_the_space_and_stored() -> None:
    storage = MemoryStorage()
    chosen = ft.Study(CURVES, minimize="error", storage=storage)
    chosen.ask()
    assert chosen.strategy == ft.TraceKG()
    assert ft.Study.load("study", storage).strategy == ft.TraceKG()
    assert ft.Study(SPACE, minimize="error").strategy == ft.EIPerCost()
    staged = ft.Space(stages={"first": {"x": ft.Float(0, 1)}, "last": {"y": ft.Float(0, 1)}})
    assert ft.Study(staged, minimize="error").strategy == ft.PrefixEI()


def test_a_study_can_move_to_another_strategy() -> None:
    storage = MemoryStorage()
    run(study_of(storage=storage), budget=ft.Budget(trials=3))
    moved = study_of(strategy=ft.Sobol(), storage=storage)
    run(moved, budget=ft.Budget(trials=6))
    assert ft.Study.load("study", storage).strategy == ft.Sobol()
    assert len(moved.trials) == 6


@pytest.mark.parametrize(
    ("change", "aspect"),
    [
        ({"space": ft.Space({"y": ft.Float(0, 1)})}, "space it has"),
        ({"minimize": "loss"}, "value it began with"),
        ({"minimize": None, "maximize": "error"}, "minimize='error'"),
        ({"seed": 9}, "seed it began with"),
        ({"cost_unit": "dollars"}, "cost_unit it began with"),
    ],
)
def test_a_study_is_only_continued_with_what_it_began_with(change: dict[str, object], aspect: str) -> None:
    storage = MemoryStorage()
    ft.Study(SPACE, minimize="error", storage=storage)
    settings = {"space": SPACE, "minimize": "error", **change}
    with pytest.raises(StudyMismatch, match=f"with (the )?{aspect}.*another name="):
        ft.Study(storage=storage, **settings)  # type: ignore[arg-type]


def test_one_line_is_enough() -> None:
    study = ft.minimize(distance, SPACE, budget=ft.Budget(trials=10), seed=3, executor="inline")
    assert study.problem.minimize
    assert len(study.trials) == 10
    assert not ft.maximize(distance, SPACE, budget=ft.Budget(trials=1), executor="inline").problem.minimize


def test_a_study_exports_its_trials(tmp_path: pytest.TempPathFactory) -> None:
    import csv
    import json
    from pathlib import Path

    study = study_of(CURVES, ft.ASHA())
    run(study, epochs, budget=ft.Budget(trials=4))
    rows = list(csv.DictReader(study.export().splitlines()))
    assert [float(row["param.x"]) for row in rows] == [trial.params["x"] for trial in study.trials]
    path = Path(str(tmp_path)) / "trials.json"
    study.export(path)
    everything = json.loads(path.read_text())
    assert everything["trials"][0]["measurements"][0]["fidelity"] == {"epochs": 1}
    frame = study.to_pandas()
    assert frame.loc[0, "fidelity.epochs"] == 1
    assert frame["cost"].sum() == pytest.approx(study.ledger.total)


def test_pandas_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"farthing\[pandas\]"):
        study_of().to_pandas()


def test_a_study_shows_its_best_trials_and_its_bill() -> None:
    study = study_of()
    study.add({"x": 0.5}, 0.25, cost=2.0)
    assert "0.25" in str(study)
    assert "2 seconds" in str(study)
    assert "<table>" in study._repr_html_()
    assert repr(study) == "Study('study', minimize='error', 1 trials)"


def test_text_of_users_cannot_become_markup_in_a_notebook() -> None:
    study = ft.Study(SPACE, minimize="error", name="<script>alert(1)</script>")
    assert "<script>" not in study._repr_html_()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": None}, "needs a budget"),
        ({"workers": 0, "executor": "processes"}, "workers must be a whole number"),
        ({"workers": 2}, "inline executor has one worker"),
        ({"time_limit": 3.0}, "cannot be stopped"),
        ({"time_limit": -1.0, "executor": "processes"}, "time limit must be a number above 0"),
        ({"retries": -1}, "number of retries must be"),
        ({"executor": "cloud"}, "must be 'processes', 'inline', 'async' or 'ray', got 'cloud'"),
    ],
)
def test_a_run_that_cannot_be_meant_is_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        run(study_of(), **{"budget": ft.Budget(trials=1), **settings})


def test_work_that_is_none_is_refused_before_anything_is_stored() -> None:
    study = study_of()
    with pytest.raises(WorkError):
        run(study, 3.0, budget=ft.Budget(trials=1))
    assert study.trials == []


@pytest.mark.parametrize("settings", [{"lease": -1.0}, {"lost_retries": -1}])
def test_a_study_that_could_not_keep_its_leases_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match="must be"):
        study_of(**settings)


def test_a_misspelt_setting_of_the_one_line_start_is_named() -> None:
    with pytest.raises(InvalidArgument, match="Did you mean 'workers'"):
        ft.minimize(distance, SPACE, budget=ft.Budget(trials=1), worker=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("aim", [{}, {"minimize": None}, {"minimize": []}])
def test_a_study_needs_a_value(aim: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="a value to optimise"):
        ft.Study(SPACE, **aim)  # type: ignore[arg-type]


def test_a_strategy_is_not_asked_again_once_all_trials_are_made(monkeypatch) -> None:
    asked = []

    class Asked(ft.Random):
        def suggest(self, history, budget, count, rng):
            asked.append(count)
            return super().suggest(history, budget, count, rng)

    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=Asked())
    stopped = study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=3), executor="inline")
    assert (asked, stopped.reason) == ([1, 1, 1], ft.StopReason.BUDGET_SPENT)


def test_a_run_does_not_wait_for_what_its_own_program_has_asked_for() -> None:
    study = study_of()
    asked = study.ask()
    assert run(study, budget=ft.Budget(trials=3)).reason is ft.StopReason.BUDGET_SPENT
    assert [trial.state.value for trial in study.trials] == ["running", "done", "done"]
    study.tell(asked, 0.5)
    assert study.trials[0].value == 0.5


def test_a_run_waits_for_what_another_program_has_asked_for() -> None:
    clock = ft.FakeClock()
    storage = MemoryStorage(clock)
    other, study = study_of(storage=storage, clock=clock), study_of(storage=storage, clock=clock)
    asked = other.ask()

    def tell_late(trial: ft.RunningTrial) -> float:
        if trial.number == 2:
            other.tell(asked, 0.5)
        return distance(trial)

    assert run(study, tell_late, budget=ft.Budget(trials=3)).reason is ft.StopReason.BUDGET_SPENT
    assert [trial.state.value for trial in study.trials] == ["done"] * 3
