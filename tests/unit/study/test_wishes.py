"""Results from elsewhere, and configurations that a user wants tried."""

import pytest

import farthing as ft
from farthing.errors import InvalidParams, InvalidValue
from farthing.extending import Strategy

CURVES = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(3, 9, integer=True, trace=True)})
MIXED = ft.Space(
    {
        "x": ft.Float(0, 1),
        "optimizer": ft.Choice("adam", "sgd"),
        "momentum": ft.Float(0, 1, when={"optimizer": "sgd"}),
        "nesterov": ft.Choice(True, False, when={"optimizer": "sgd"}),
    }
)


def loss(trial: ft.RunningTrial) -> float:
    return float(trial.params["x"])


def test_an_added_result_may_have_a_curve() -> None:
    study = ft.Study(CURVES, minimize="error", seed=0)
    trial = study.add({"x": 0.5}, 0.2, cost=9.0, trace=[({"epochs": 1}, 0.9), ({"epochs": 4}, 0.4)])
    assert [(point.fidelity["epochs"], point.value) for point in trial.points] == [(1, 0.9), (4, 0.4), (9, 0.2)]
    assert (trial.value, trial.cost) == (0.2, 9.0)


def test_a_told_trace_takes_what_a_report_takes() -> None:
    study = ft.Study(CURVES, minimize="error", strategy=ft.Random(), seed=0)
    told = study.tell(study.ask(), 0.2, trace=[({"epochs": 1}, 0.9), ({"epochs": 2.0}, 0.5)])
    assert [point.fidelity["epochs"] for point in told.points] == [1, 2, 9], "below the least that can be asked for too"
    plain = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=ft.Random())
    told = plain.tell(plain.ask(), 0.2, trace=[({}, 0.9), ({}, 0.5), ({"step": 7}, 0.4)])
    assert [point.step for point in told.points] == [1, 2, 7, 8]


@pytest.mark.parametrize("trace", [[({"epochs": 10}, 0.5)], [({"epoch": 1}, 0.5)], [({}, 0.5)], [(1, 0.5)], [0.5]])
def test_a_wrong_trace_is_refused_and_nothing_is_added(trace: object) -> None:
    study = ft.Study(CURVES, minimize="error", seed=0)
    with pytest.raises((InvalidParams, InvalidValue)):
        study.add({"x": 0.5}, 0.2, trace=trace)  # type: ignore[arg-type]
    assert study.trials == []


def test_a_budget_of_trials_does_not_count_added_results() -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=ft.Random(), seed=0)
    for x in (0.1, 0.2, 0.3):
        study.add({"x": x}, x)
    study.run(loss, budget=ft.Budget(trials=4), executor="inline")
    assert len(study.trials) == 7


@pytest.mark.parametrize("strategy", [None, ft.Random(), ft.LogEI(initial=3), ft.CMAES()])
def test_the_strategy_fills_what_a_wish_leaves_open(strategy: Strategy | None) -> None:
    study = ft.Study(MIXED, minimize="error", strategy=strategy, seed=0)
    study.run(loss, budget=ft.Budget(trials=5), executor="inline")
    for _ in range(3):
        trial = study.enqueue({"optimizer": "sgd", "x": 0.25})
        assert (trial.params["optimizer"], trial.params["x"]) == ("sgd", 0.25)
        assert {"momentum", "nesterov"} <= trial.params.keys()
    assert study.enqueue({}).state is ft.State.PENDING
    with pytest.raises(InvalidParams, match="'rate'"):
        study.enqueue({"rate": 1})


def test_a_population_fills_by_draws_while_it_waits() -> None:
    study = ft.Study(
        ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=ft.PB2(population=2, interval=1, steps=4)
    )
    study.ask(count=2)
    assert 0 <= study.enqueue({}).params["x"] <= 1
