"""The price of a full run as an objective, or under a limit: `minimize=["error", "cost"]`."""

import sys
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.analysis.front import round_sums
from farthing.errors import InvalidArgument
from farthing.testing import SimulatedExecutor, check_replay
from farthing.trackers.contents import costs_of

PLAIN = ft.Space({"width": ft.Int(8, 512, log=True)})
TRACED = ft.Space(PLAIN.parameters, fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)})
BOTH = ["error", "cost"]
SET_UP = 1.0
"""Dollars that each program pays before its first epoch."""


def error(params: Any) -> float:
    return 0.05 + 1 / float(params["width"]) ** 0.5


def work(trial: Any) -> float:
    trial.charge(0.02 * trial.params["width"])
    return error(trial.params)


def train(trial: Any) -> None:
    done = int((trial.resume_dir / "epochs").read_text()) if trial.resume_dir else 0
    trial.charge(SET_UP)
    for epoch in range(done + 1, int(trial.fidelity["epochs"]) + 1):
        trial.charge(0.001 * trial.params["width"])
        trial.report(error(trial.params) + 0.3 / epoch, epochs=epoch)
    (trial.checkpoint_dir / "epochs").write_text(str(int(trial.fidelity["epochs"])))


def price(params: Any) -> float:
    """Of a full training."""
    return SET_UP + 0.02 * float(params["width"])


def prices(study: ft.Study) -> list[float | None]:
    """As they are stored with the last value of each trial."""
    return [trial.points[-1].metrics["cost"] for trial in study.trials]


# ---- where a price comes from ------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_without_fidelities_the_cost_is_what_a_trial_paid(executor: Any) -> None:
    study = ft.Study(PLAIN, minimize=BOTH, cost_unit="$", seed=0)
    study.run(work, budget=ft.Budget(trials=8), executor=executor, progress=False)
    assert prices(study) == [trial.cost for trial in study.trials]
    assert len(study.front) > 1
    assert all(point.values["cost"] == point.trial.cost for point in study.front)


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_what_is_paid_after_the_last_report_belongs_to_the_price(executor: Any) -> None:
    study = ft.Study(PLAIN, minimize=BOTH, cost_unit="$", strategy="Random")
    study.run(reported_before_it_is_validated, budget=ft.Budget(trials=2), executor=executor, progress=False)
    assert prices(study) == [trial.cost for trial in study.trials] == [7.0, 7.0]
    assert [len(trial.points) for trial in study.trials] == [2, 2]


def reported_before_it_is_validated(trial: Any) -> None:
    for _ in range(2):
        trial.charge(2.0)
        trial.report(error(trial.params))
    trial.charge(3.0, kind="validation")


@pytest.mark.parametrize("rate", [None, 2.5])
def test_measured_seconds_have_a_price(rate: float | None) -> None:
    """Three seconds of set-up and half a second an epoch, or as many times $2.50."""
    executor = SimulatedExecutor(workers=2, thinking=0.0)
    paid: dict[str, Any] = {} if rate is None else {"prices": {"cpu": rate, "per": "second"}, "cost_unit": "$"}
    study = ft.Study(TRACED, minimize=BOTH, strategy=ft.ASHA(), seed=0, **paid, **executor.settings)

    def timed(trial: Any) -> None:
        executor.spend(3.0)
        for epoch in range(1, int(trial.fidelity["epochs"]) + 1):
            executor.spend(0.5)
            trial.report(error(trial.params), epochs=epoch)

    study.run(timed, budget=ft.Budget(trials=12), executor=executor, progress=False)
    known = [trial for trial in study.history.done if trial.fidelity["epochs"] > 1]
    assert min(trial.fidelity["epochs"] for trial in known) < 20
    for trial in known:
        assert trial.points[-1].metrics["cost"] == pytest.approx((3.0 + 20 * 0.5) * (rate or 1.0))


@pytest.mark.parametrize(("executor", "workers"), [("inline", 1), ("processes", 3)])
def test_a_short_run_has_the_price_of_a_full_one(executor: Any, workers: int) -> None:
    """Set-up is paid once, although a run that was continued paid it again; its first look knows that of others."""
    study = ft.Study(TRACED, minimize=BOTH, cost_unit="$", seed=0, strategy=ft.ParetoHalving())
    study.run(train, budget=ft.Budget(cost=150.0), executor=executor, workers=workers, progress=False)
    continued = [trial for trial in study.history.done if trial.resume_checkpoint]
    assert continued
    for trial in continued:
        for point in (*trial.points[1:], trial.points[-1]):
            assert point.metrics["cost"] == pytest.approx(price(trial.params))
    looks = [trial for trial in study.history.done[-20:] if not trial.resume_checkpoint]
    assert looks
    for trial in looks:
        assert trial.points[-1].metrics["cost"] == pytest.approx(price(trial.params))


def test_the_set_up_is_learnt_where_trials_show_sums_alone() -> None:
    """Three dollars of set-up, which a share of each sum would count twenty times; from sums it is about known."""
    study = ft.Study(TRACED, minimize=BOTH, cost_unit="$", strategy=ft.Random(), seed=0)
    for place, epochs in enumerate([1, 2, 4, 8, 12, 16, 20, 1]):
        study.add({"width": 40 + place}, 0.5, cost=3.0 + 0.5 * epochs, fidelity={"epochs": epochs})
    assert prices(study)[0] == 20 * 3.5
    assert prices(study)[6] == 13.0
    assert prices(study)[-1] == pytest.approx(13.0, rel=0.1)


def test_a_continued_run_of_sums_is_not_set_up_twice() -> None:
    """It trains 5 epochs and then 15 more, and returns a value after each; others have shown the set-up."""
    space = ft.Space(PLAIN.parameters, fidelities={"epochs": ft.Fidelity(5, 20, integer=True, trace=True)})
    study = ft.Study(space, minimize=BOTH, cost_unit="$", strategy=ft.ASHA(reduction=4), seed=0)

    def returned(trial: Any) -> float:
        done = int((trial.resume_dir / "epochs").read_text()) if trial.resume_dir else 0
        trial.charge(3.0 + 0.5 * (trial.fidelity["epochs"] - done))
        (trial.checkpoint_dir / "epochs").write_text(str(int(trial.fidelity["epochs"])))
        return error(trial.params)

    study.run(returned, budget=ft.Budget(trials=24), executor="inline", progress=False)
    continued = [trial for trial in study.history.done if trial.resume_checkpoint]
    assert continued
    for trial in continued[1:]:
        assert trial.points[-1].metrics["cost"] == pytest.approx(13.0, rel=0.15), "16 with both set-ups"


def test_an_attempt_that_went_on_from_its_own_checkpoint_has_the_price_of_both() -> None:
    study = ft.Study(TRACED, minimize=BOTH, cost_unit="$", strategy=ft.Random(), seed=0)

    def dies_once(trial: Any) -> None:
        done = int((trial.resume_dir / "epochs").read_text()) if trial.resume_dir else 0
        for epoch in range(done + 1, 21):
            trial.charge(0.5)
            if epoch % 10 == 0:
                trial.report(error(trial.params), epochs=epoch)
                with trial.checkpoint() as folder:
                    (folder / "epochs").write_text(str(epoch))
                if trial.attempt == 1:
                    raise OSError("the machine was taken away")

    study.run(dies_once, budget=ft.Budget(trials=1), retries=1, executor="inline", progress=False)
    [trial] = study.trials
    assert (trial.attempt, trial.costs["failed"]) == (2, 5.0)
    assert prices(study) == [10.0]


def test_the_cost_of_a_failed_attempt_that_left_nothing_is_not_in_the_price() -> None:
    study = ft.Study(PLAIN, minimize=BOTH, cost_unit="$", strategy=ft.Random(), seed=0)

    def fails_once(trial: Any) -> float:
        trial.charge(4.0)
        if trial.attempt == 1:
            raise OSError("the machine was taken away")
        return 0.5

    study.run(fails_once, budget=ft.Budget(trials=1), retries=1, executor="inline", progress=False)
    assert (study.trials[0].cost, prices(study)) == (8.0, [4.0])


def test_every_point_of_a_trace_has_the_price_of_the_whole() -> None:
    study = ft.Study(TRACED, minimize=BOTH, cost_unit="$", strategy=ft.Random(), seed=0)
    study.enqueue({"width": 64}, fidelity={"epochs": 20})
    trace = [({"epochs": epoch}, 1 / epoch) for epoch in range(1, 21)]
    study.tell(study.ask(), cost=13.0, trace=trace)
    study.add({"width": 32}, 0.05, cost=6.5, fidelity={"epochs": 10}, trace=trace[:10])
    assert {point.metrics["cost"] for point in study.trials[0].points} == {13.0}
    assert {point.metrics["cost"] for point in study.trials[1].points} == {13.0}
    study.enqueue({"width": 16}, fidelity={"epochs": 20})
    study.tell(study.ask(), cost=9.0, trace=[({"epochs": 10}, {"error": 0.5, "cost": 7.0}), ({"epochs": 19}, 0.4)])
    assert [point.metrics["cost"] for point in study.trials[2].points] == [7.0, 9.0, 9.0], "one was said"


def test_a_run_without_a_pace_is_priced_by_its_share() -> None:
    study = ft.Study(TRACED, minimize=BOTH, cost_unit="$", strategy=ft.Random())
    study.enqueue({"width": 64}, fidelity={"epochs": 5})
    study.tell(study.ask(), 0.5, cost=3.0)
    assert prices(study) == [12.0]


def test_a_declared_cost_is_the_price() -> None:
    """Of all epochs, of which the later ones cost more."""
    study = ft.Study(
        TRACED, minimize=BOTH, cost=lambda params, fidelity: 0.025 * params["width"] * fidelity["epochs"] ** 2, seed=0
    )

    def told(trial: Any) -> None:
        for epoch in range(1, int(trial.fidelity["epochs"]) + 1):
            trial.report(error(trial.params), epochs=epoch)

    study.run(told, budget=ft.Budget(trials=6), executor="inline", progress=False)
    study.add({"width": 32}, 0.4, fidelity={"epochs": 2})
    assert min(trial.fidelity["epochs"] for trial in study.trials) < 20
    assert prices(study) == pytest.approx([10 * trial.params["width"] for trial in study.trials])


def test_the_cost_may_be_limited_beside_one_objective() -> None:
    study = ft.Study(TRACED, minimize="error", constraints={"cost": ft.AtMost(5.0)}, cost_unit="$", seed=0)
    study.run(train, budget=ft.Budget(trials=16), executor="inline", progress=False)
    assert price(study.best.params) <= 5.0
    assert "limit ≤ 5" in repr(study.best)


def test_a_cost_that_the_work_reports_is_taken() -> None:
    """It is that of one request."""

    def requested(trial: Any) -> dict[str, float]:
        trial.charge(100.0)
        return {"error": error(trial.params), "cost": 0.001 * trial.params["width"]}

    study = ft.Study(PLAIN, minimize=BOTH, cost_unit="$", strategy="Random")
    study.run(requested, budget=ft.Budget(trials=3), executor="inline", progress=False)
    assert prices(study) == [0.001 * trial.params["width"] for trial in study.trials]


def test_a_program_prints_its_charge_and_no_price(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text('import sys\nprint(\'{"error": 0.5, "cost": %s}\' % (2 * int(sys.argv[1])))\n')
    study = ft.Study(PLAIN, minimize=BOTH, cost_unit="$", strategy="Random")
    study.run(ft.Command(f"{sys.executable} {script} {{width}}"), budget=ft.Budget(trials=2), progress=False)
    for trial in study.trials:
        assert (trial.value, trial.cost) == (0.5, 2 * trial.params["width"])
        assert trial.points[-1].metrics["cost"] == trial.cost


def test_only_what_the_work_must_return_is_missed() -> None:
    study = ft.Study(PLAIN, minimize=["error", "latency", "cost"], strategy="Random")
    study.run(lambda trial: {"error": 0.5}, budget=ft.Budget(trials=1), executor="inline", progress=False)
    failure = study.trials[0].failure
    assert failure is not None
    assert "must have 'error', 'latency', got none called 'latency'" in failure.reason


def test_a_result_from_elsewhere_says_what_it_cost() -> None:
    study = ft.Study(PLAIN, minimize=BOTH, cost_unit="$", strategy="Random")
    with pytest.raises(InvalidArgument, match=r"must say what it cost where 'cost' is asked for.*Pass cost=12\.0"):
        study.add({"width": 64}, 0.2)
    study.add({"width": 64}, 0.2, cost=3.0)
    study.add({"width": 32}, {"error": 0.3, "cost": 1.5})
    assert [trial.points[-1].metrics["cost"] for trial in study.trials] == [3.0, 1.5]


def test_a_pattern_finds_the_charge_of_a_program(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys\nprint('dollars', 2 * int(sys.argv[1]))\nprint('error 0.5')\n")
    program = ft.Command(
        f"{sys.executable} {script} {{width}}", pattern=[r"dollars (?P<cost>\S+)", r"error (?P<error>\S+)"]
    )
    study = ft.Study(PLAIN, minimize=BOTH, cost_unit="$", strategy="Random")
    study.run(program, budget=ft.Budget(trials=2), progress=False)
    assert prices(study) == [trial.cost for trial in study.trials] == [2 * one.params["width"] for one in study.trials]


def test_a_pattern_needs_no_price() -> None:
    study = ft.Study(PLAIN, minimize=BOTH, strategy="Random")
    study.run(
        ft.Command("echo error 0.{width}", pattern=r"error (?P<error>\S+)"), budget=ft.Budget(trials=1), progress=False
    )
    assert prices(study) == [study.trials[0].cost]
    assert study.trials[0].cost > 0.0


# ---- the best for each sum ---------------------------------------------------------------------------------------


def test_the_best_for_each_sum_costs_no_more() -> None:
    study = ft.Study(PLAIN, minimize="cost", maximize="accuracy", cost_unit="$", seed=0)

    def accuracy(trial: Any) -> float:
        return 1 - work(trial)

    study.run(accuracy, budget=ft.Budget(trials=15), executor="inline", progress=False)
    assert [one.name for one in study.problem.objectives] == ["accuracy", "cost"]
    chosen = [study.pick(cost=ft.AtMost(dollars)) for dollars in (0.5, 2.0, 8.0)]
    assert all(best.values["cost"] <= dollars for best, dollars in zip(chosen, (0.5, 2.0, 8.0), strict=True))
    assert sorted(best.values["accuracy"] for best in chosen) == [best.values["accuracy"] for best in chosen]
    assert chosen[0].values["accuracy"] < chosen[-1].values["accuracy"]


def eight_prices(**settings: Any) -> ft.Study:
    """Eight configurations, whose measurements have no noise: the more dollars, the less error."""
    given: dict[str, Any] = {"minimize": BOTH, "cost_unit": "$", "noise": False, "strategy": "Random", **settings}
    study = ft.Study(PLAIN, **given)
    for width, dollars in ((8, 0.7), (16, 1.5), (32, 4.0), (64, 9.0), (128, 11.0), (256, 60.0), (300, 80.0)):
        study.add({"width": width}, {"error": 1 / width, "cost": dollars})
    study.add({"width": 9}, {"error": 0.9, "cost": 3.0})
    return study


def test_the_front_says_what_is_best_for_each_round_sum() -> None:
    front = eight_prices().front
    assert {most: point.values["cost"] for most, point in front.for_sums.items()} == {1: 0.7, 10: 9.0, 100: 80.0}
    lines = repr(front).splitlines()
    assert lines[1].split() == ["the", "best", "for", "trial", "error", "cost", "($)", "params"]
    assert [line.split()[:3] for line in lines[2:5]] == [["1", "$", "0"], ["10", "$", "3"], ["100", "$", "6"]]
    assert front.to_json()["for_sums"] == [{"sum": 1, "trial": 0}, {"sum": 10, "trial": 3}, {"sum": 100, "trial": 6}]
    assert "<td>100 $</td>" in front._repr_html_()


def test_a_sum_that_buys_no_more_is_left_out() -> None:
    study = ft.Study(PLAIN, minimize=BOTH, noise=False, strategy="Random")
    for width, seconds in ((8, 0.7), (300, 80.0)):
        study.add({"width": width}, 1 / width, cost=seconds)
    assert list(study.front.for_sums) == [1.0, 100.0]


def test_a_sum_buys_what_is_picked_for_it() -> None:
    """Where two other objectives are left it is the knee of what the sum pays for."""
    study = ft.Study(PLAIN, minimize=["error", "latency", "cost"], cost_unit="$", noise=False, strategy="Random")
    for place, dollars in enumerate([0.7, 1.5, 4.0, 9.0, 11.0, 60.0, 80.0]):
        study.add({"width": 8 + place}, {"error": 1 / dollars, "latency": abs(dollars - 9), "cost": dollars})
    assert len(study.front.for_sums) > 1
    for most, point in study.front.for_sums.items():
        assert study.pick(cost=ft.AtMost(most)).trial == point.trial


def test_the_cheapest_that_is_good_enough_is_picked() -> None:
    assert eight_prices().pick(error=ft.AtMost(0.02)).values == {"error": 1 / 64, "cost": 9.0}


@pytest.mark.parametrize(
    ("prices", "sums"),
    [
        ([80.0, 0.7], [1, 10, 100]),
        ([0.86, 6.0], [1, 2, 5, 10]),
        ([1.0, 10.0], [1, 2, 5, 10]),
        ([3.0], [5]),
        ([0.0, 0.04, 0.0021], [0.005, 0.01, 0.02, 0.05]),
        ([0.0], []),
        ([], []),
    ],
)
def test_sums_are_round(prices: list[float], sums: list[float]) -> None:
    assert round_sums(prices) == sums


def test_other_fronts_have_no_sums() -> None:
    study = ft.Study(PLAIN, minimize=["error", "latency"], noise=False, strategy="Random")
    study.add({"width": 8}, {"error": 0.5, "latency": 3.0})
    assert study.front.for_sums == {}
    assert "the best for" not in repr(study.front)
    assert eight_prices(minimize="error", maximize="cost").front.for_sums == {}


# ---- what is stored and shown ------------------------------------------------------------------------------------


def test_a_resumed_study_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    whole = ft.Study(TRACED, minimize=BOTH, cost_unit="$", seed=0)
    whole.run(train, budget=ft.Budget(trials=12), executor="inline", progress=False)
    where = str(tmp_path / "studies.db")
    for trials in (5, 12):
        with ft.Study(TRACED, minimize=BOTH, cost_unit="$", seed=0, storage=where) as study:
            study.run(train, budget=ft.Budget(trials=trials), executor="inline", progress=False)
            found = [(trial.params, trial.fidelity, trial.value, trial.cost) for trial in study.trials]
            measured, front = prices(study), study.front.to_json()
    assert found == [(trial.params, trial.fidelity, trial.value, trial.cost) for trial in whole.trials]
    assert (measured, front) == (prices(whole), whole.front.to_json())
    check_replay(whole)


def test_the_cost_is_no_metric_unless_it_is_asked_for() -> None:
    study = ft.Study(PLAIN, minimize="error", cost_unit="$", strategy="Random")
    study.run(work, budget=ft.Budget(trials=2), executor="inline", progress=False)
    assert [dict(trial.points[-1].metrics) for trial in study.trials] == [{}, {}]
    paid = {"cost": study.trials[0].cost, "cost.training": study.trials[0].cost}
    assert costs_of(study, study.trials[0]) == paid  # type: ignore[arg-type]


def test_an_earlier_study_gives_the_first_configurations(tmp_path: Path) -> None:
    where = str(tmp_path / "studies.db")
    with ft.Study(PLAIN, minimize=BOTH, cost_unit="$", seed=0, storage=where, name="first") as first:
        first.run(work, budget=ft.Budget(trials=6), executor="inline", progress=False)
        starts = [first.best.params, *(point.params for point in first.front)]
    study = ft.Study(PLAIN, minimize=BOTH, cost_unit="$", seed=1, storage=where, name="second", learn_from=["first"])
    study.run(work, budget=ft.Budget(trials=2), executor="inline", progress=False)
    assert all(trial.params in starts for trial in study.trials)


def test_tables_have_what_was_paid_beside_the_price(tmp_path: Path) -> None:
    where = str(tmp_path / "studies.db")
    with ft.Study(TRACED, minimize=BOTH, cost_unit="$", seed=0, storage=where) as study:
        study.run(train, budget=ft.Budget(trials=4), executor="inline", progress=False)
        front = study.front.to_json()
        assert repr(study.top(2)).split("\n")[0].split()[:4] == ["trial", "error", "cost", "paid"]
        trial, columns = study.trials[0], study.export().split("\n")[0].split(",")
        assert {"cost", "metric.cost"} < set(columns)
        assert costs_of(study, trial) == {"paid": trial.cost, "paid.training": trial.cost}  # type: ignore[arg-type]
    with ft.Study.load("study", storage=where) as again:
        assert again.front.to_json() == front
