"""What going on is expected to bring, and runs that end once it is not worth its price."""

from pathlib import Path

import numpy as np
import pytest

import farthing as ft
from farthing.analysis.outlook import Prospects, _brought, _interval, costs_without_gain, is_worthless
from farthing.costs import Remaining
from farthing.errors import InvalidArgument, NoResult

SPACE = ft.Space({"x": ft.Float(0.0, 1.0), "y": ft.Float(0.0, 1.0)})
CURVES = ft.Space(SPACE.parameters, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)})


def bowl(params: dict[str, float]) -> float:
    return float((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2)


def work(trial: ft.RunningTrial) -> float:
    trial.charge(1.0)
    return bowl(dict(trial.params))


def told(study: ft.Study, count: int) -> ft.Study:
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, bowl(dict(trial.params)) + 1.0 / trial.fidelity.get("epochs", 1e9), cost=2.0)
    return study


@pytest.mark.parametrize("space", [SPACE, CURVES], ids=["plain", "curves"])
def test_less_is_expected_the_longer_a_study_has_run(space: ft.Space) -> None:
    study = told(ft.Study(space, minimize="error", strategy=ft.Random(), seed=0), 6)
    early = study.outlook(cost=20.0)
    late = told(study, 14).outlook(cost=20.0)
    assert 0.0 <= late.low <= late.high
    assert late.expected < early.expected
    assert (late.cost, late.trials) == (20.0, 10)
    assert "error" in str(late)
    assert late.to_json()["expected"] == late.expected


def test_more_cost_brings_no_less() -> None:
    study = told(ft.Study(SPACE, maximize="score", strategy=ft.Random(), seed=0), 8)
    expected = [study.outlook(cost=cost).expected for cost in (2.0, 10.0, 50.0)]
    assert expected == sorted(expected)


def test_results_from_elsewhere_count_with_their_cost() -> None:
    study = ft.Study(SPACE, minimize="error", seed=0)
    for step in range(8):
        study.add({"x": 0.1 * step, "y": 0.5}, 1.0 - 0.1 * step, cost=3.0 if step % 2 else None)
    assert study.outlook(cost=9.0).trials == 3


def test_what_a_search_just_brought_it_may_bring_again() -> None:
    """Steps of a tenth along a slope: a model that takes the rest of the slope for flat would promise nothing."""
    study = ft.Study(SPACE, minimize="error", seed=0)
    for step in range(10):
        study.add({"x": 0.1 * step, "y": 0.5}, 1.0 - 0.1 * step, cost=1.0)
    assert study.outlook(cost=2.0).high >= 0.4 - 0.01  # what the last four brought; the model fits within 0.01


def test_an_interval_that_begins_at_zero_leaves_out_the_highest_fifth() -> None:
    assert _interval(np.arange(1.0, 101.0)) == pytest.approx((10.9, 90.1))
    assert _interval(np.concatenate([np.zeros(20), np.arange(21.0, 101.0)])) == pytest.approx((0.0, 80.2))


def test_what_the_last_configurations_brought_is_counted_from_the_end() -> None:
    brought = _brought(np.array([5.0, 3.0, 4.0, 1.0]))
    assert brought[:6].tolist() == [0.0, 2.0, 2.0, 4.0, 4.0, 4.0]


def test_an_outlook_is_the_same_whenever_it_is_asked_for() -> None:
    study = told(ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0), 8)
    assert study.outlook(cost=4.0) == study.outlook(cost=4.0)


def test_too_little_is_no_outlook() -> None:
    study = told(ft.Study(SPACE, minimize="error", seed=0), 3)
    with pytest.raises(NoResult, match="at least 5"):
        study.outlook()
    with pytest.raises(InvalidArgument, match="cost of an outlook"):
        study.outlook(cost=-1.0)


def test_a_noisy_incumbent_promises_no_more_than_it_is_worth() -> None:
    """With all values alike but for noise there is nothing to gain, however lucky the best was."""
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0)
    for place in range(30):
        trial = study.ask()
        study.tell(trial, 1.0 + (0.1 if place % 2 else -0.1), cost=1.0)
    assert study.outlook(cost=5.0).expected < 0.1


def test_a_run_ends_when_going_on_is_not_worth_its_price() -> None:
    study = ft.Study(SPACE, minimize="error", seed=0, cost_unit="dollars")
    budget = ft.Budget(trials=60, worth=ft.Worth(value=0.001, per=1.0))
    stopped = study.run(work, budget=budget, executor="inline", progress=False)
    assert stopped.reason is ft.StopReason.NOT_WORTH_IT
    assert "expected to improve error" in str(stopped)
    assert len(study.trials) < 40
    assert study.best.value < 0.01
    assert study.ask(count=1, budget=budget) == []


def test_what_is_worth_much_is_gone_on_with() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0, cost_unit="dollars")
    stopped = study.run(
        work, budget=ft.Budget(trials=10, worth=ft.Worth(value=1e-9, per=1.0)), executor="inline", progress=False
    )
    assert stopped.reason is ft.StopReason.BUDGET_SPENT


def test_only_what_can_be_paid_counts() -> None:
    study = told(ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0), 8)
    prospects = Prospects.of(study.history)
    one, ten = prospects.hoped_for(np.array([1, 10]))
    assert ten > one  # ten are worth more than their price, one is not
    assert prospects.is_worthless(ft.Worth(value=one, per=0.9 * prospects.price), Remaining(trials=1))
    assert not prospects.is_worthless(ft.Worth(value=ten, per=11.0 * prospects.price), Remaining(trials=10))


def test_a_run_goes_on_for_two_and_a_half_times_the_upper_end_of_what_is_drawn() -> None:
    prospects = Prospects.of(told(ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0), 8).history)
    upper = float(np.quantile(prospects.gains[:, 1], 0.9))  # of an interval of 80 %
    assert not prospects.is_worthless(ft.Worth(value=upper, per=prospects.price / 2.4), Remaining(trials=1))
    assert prospects.is_worthless(ft.Worth(value=upper, per=prospects.price / 2.6), Remaining(trials=1))


def test_nothing_is_said_before_twice_an_initial_design_is_tried() -> None:
    study = told(ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0), 7)
    worthless = ft.Worth(value=1e9, per=1e-9)
    assert not is_worthless(study.history, worthless, Remaining())
    assert is_worthless(told(study, 1).history, worthless, Remaining())


def test_patience_counts_cost_since_the_last_better_value() -> None:
    study = ft.Study(SPACE, minimize="error", seed=0)
    for value in (0.5, 0.3, 0.4, 0.35, 0.3):
        study.add({"x": value, "y": 0.1}, value, cost=2.0)
    assert costs_without_gain(study.history) == 6.0
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0, cost_unit="dollars")
    stopped = study.run(work, budget=ft.Budget(trials=500, patience=8.0), executor="inline", progress=False)
    assert stopped.reason is ft.StopReason.PATIENCE_OVER
    assert costs_without_gain(study.history) == 8.0
    assert "brought no better error" in str(stopped)


def test_a_value_at_a_higher_fidelity_is_news_for_patience() -> None:
    study = ft.Study(CURVES, minimize="error", seed=0)
    study.add({"x": 0.1, "y": 0.1}, 0.2, cost=1.0, fidelity={"epochs": 1})
    study.add({"x": 0.1, "y": 0.2}, 0.3, cost=5.0, fidelity={"epochs": 9})
    assert costs_without_gain(study.history) == 0.0
    study.add({"x": 0.1, "y": 0.3}, 0.4, cost=5.0, fidelity={"epochs": 9})
    assert costs_without_gain(study.history) == 5.0


def test_a_budget_with_worth_and_patience_is_plain_json() -> None:
    budget = ft.Budget(cost=10.0, worth=ft.Worth(value=0.1, per=2.0), patience=3.0)
    assert budget.to_json() == {"cost": 10.0, "worth": {"value": 0.1, "per": 2.0}, "patience": 3.0}
    assert ft.Budget(**budget.to_json()) == budget
    assert ft.Budget(patience=2.0).to_json() == {"patience": 2.0}
    with pytest.raises(InvalidArgument, match="a Worth"):
        ft.Budget(cost=1.0, worth=3.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="above 0"):
        ft.Worth(value=0.0, per=1.0)


def test_earlier_stops_are_read_from_a_study_file(tmp_path: Path) -> None:
    from farthing.cli.study_file import read_study_file

    path = tmp_path / "study.toml"
    path.write_text(
        '[study]\nminimize = "error"\n[budget]\ncost = 9\npatience = 4\nworth = {value = 0.1, per = 2.0}\n'
        '[space]\nx = {float = [0.0, 1.0], guess = 0.5}\n[work]\ncommand = "true {x}"\n'
    )
    plan = read_study_file(path).plan
    assert plan.budget == ft.Budget(cost=9, patience=4, worth=ft.Worth(value=0.1, per=2.0))
    again = type(plan).from_json(plan.overridden(workers=None, limits={}, has_end=False).to_json())
    assert again.budget == plan.budget
