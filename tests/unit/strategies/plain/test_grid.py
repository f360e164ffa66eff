"""The grid: every combination once, in an order whose beginning covers every parameter, and the bill to come."""

from collections import Counter
from itertools import product
from typing import Any

import pytest

import farthing as ft
from farthing.extending import Strategy

SPACE = ft.Space({"rate": ft.Float(1e-4, 1e-1, log=True), "layers": ft.Int(1, 3), "kind": ft.Choice("a", "b")})


def tried(study: ft.Study, *, most: int = 1000) -> list[dict[str, Any]]:
    """The params of all trials, told one after the other until nothing is left."""
    for _ in range(most):
        asked = study.ask(count=1)
        if not asked:
            break
        study.tell(asked[0], 1.0, cost=1.0)
    return [dict(trial.params) for trial in study.trials]


def values(parameter: ft.Float | ft.Int | ft.Choice, strategy: Strategy) -> list[Any]:
    found = tried(ft.Study(ft.Space({"x": parameter}), minimize="error", strategy=strategy))
    return sorted({params["x"] for params in found})


def test_every_combination_is_tried_once_and_then_the_study_has_finished() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Grid(points=4), seed=0)
    ended = study.run(lambda trial: trial.params["rate"], executor="inline")
    found = [tuple(trial.params.values()) for trial in study.trials]
    assert len(found) == 24
    assert set(found) == set(product([0.0001, 0.001, 0.01, 0.1], [1, 2, 3], ["a", "b"]))
    assert ended.reason is ft.StopReason.STRATEGY_FINISHED
    assert "every combination" in str(ended)


@pytest.mark.parametrize(
    ("parameter", "points", "expected"),
    [
        (ft.Float(0, 1), 5, [0, 0.25, 0.5, 0.75, 1]),
        (ft.Float(0, 1), 1, [0.5]),
        (ft.Float(1, 100, log=True), 1, [10]),
        (ft.Float(0, 1, step=0.1), 3, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]),
        (ft.Float(0, 1, step=0.1), {"x": 3}, [0, 0.5, 1]),
        (ft.Int(1, 4), 2, [1, 2, 3, 4]),
        (ft.Int(0, 100, step=10), {"x": 3}, [0, 50, 100]),
        (ft.Int(1, 100, log=True), {"x": 3}, [1, 10, 100]),
        (ft.Int(1, 2, log=True), {"x": 2}, [1, 2]),
        (ft.Choice("b", "a"), 7, ["a", "b"]),
    ],
)
def test_the_values_of_a_parameter(parameter, points, expected) -> None:
    assert values(parameter, ft.Grid(points=points)) == expected


def test_names_that_are_left_out_have_the_usual_number_of_points() -> None:
    space = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})
    study = ft.Study(space, minimize="error", strategy=ft.Grid(points={"x": 2}))
    assert len(tried(study)) == 2 * 5


def test_a_conditional_parameter_counts_only_where_it_is_active() -> None:
    space = ft.Space(
        {
            "momentum": ft.Float(0, 0.9, when={"optimizer": "sgd"}),
            "nesterov": ft.Choice(True, False, when={"momentum_kind": "plain"}),
            "optimizer": ft.Choice("adam", "sgd"),
            "momentum_kind": ft.Choice("plain", "heavy", when={"optimizer": "sgd"}),
        }
    )
    found = tried(ft.Study(space, minimize="error", strategy=ft.Grid(points=3)))
    assert Counter(params["optimizer"] for params in found) == {"adam": 1, "sgd": 3 * (2 + 1)}
    assert len({tuple(sorted(params.items(), key=str)) for params in found}) == len(found)


def test_fidelities_are_full() -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True)})
    study = ft.Study(space, minimize="error", strategy=ft.Grid(points=3))
    tried(study)
    assert [trial.fidelity for trial in study.trials] == [{"epochs": 9}] * 3


@pytest.mark.parametrize("seed", range(5))
def test_a_quarter_of_the_grid_has_tried_every_value_about_equally_often(seed: int) -> None:
    space = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1), "z": ft.Int(1, 4)})
    study = ft.Study(space, minimize="error", strategy=ft.Grid(points=4), seed=seed)
    found = [dict(trial.params) for trial in study.ask(count=16)]
    for name in space.parameters:
        counts = Counter(params[name] for params in found)
        assert len(counts) == 4
        assert min(counts.values()) >= 2, "four each would be even; row by row it would be none for most"


def test_the_order_is_that_of_the_seed() -> None:
    orders = [tried(ft.Study(SPACE, minimize="error", strategy="grid", seed=seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_what_was_tried_already_is_left_out_but_not_what_was_tried_in_part() -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True)})
    study = ft.Study(space, minimize="error", strategy=ft.Grid(points=3))
    study.add({"x": 0.5}, 1.0)
    study.add({"x": 1.0}, 1.0, fidelity={"epochs": 1})
    study.enqueue({"x": 0.3})
    assert sorted(params["x"] for params in tried(study)[2:]) == [0.0, 0.3, 1.0]


def test_failed_combinations_are_not_tried_again() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Grid(points=1))
    for _ in range(6):
        study.tell(study.ask(), failure="diverged")
    assert study.ask(count=1) == []


def test_a_wider_space_has_more_combinations() -> None:
    study = ft.Study(ft.Space({"x": ft.Int(1, 3)}), minimize="error", strategy=ft.Grid())
    tried(study)
    study.extend(ft.Space({"x": ft.Int(1, 5)}))
    assert sorted(params["x"] for params in tried(study)) == [1, 2, 3, 4, 5]


def test_a_grid_that_is_too_large_is_refused_with_its_number() -> None:
    space = ft.Space({f"x{i}": ft.Float(0, 1) for i in range(6)})
    with pytest.raises(ft.FarthingError, match=r"at most 10,000 combinations, got 15,625 \(5 × 5 × 5 × 5 × 5 × 5"):
        ft.Study(space, minimize="error", strategy=ft.Grid())
    ft.Study(space, minimize="error", strategy=ft.Grid(points=4))


def test_a_large_grid_with_conditions_is_refused_at_once() -> None:
    chain = {"a": ft.Int(1, 1000), "b": ft.Int(1, 1000, when={"a": 1}), "c": ft.Int(1, 10**9, when={"b": 1})}
    with pytest.raises(ft.FarthingError, match="got more than 1"):
        ft.Study(ft.Space(chain), minimize="error", strategy=ft.Grid())


def test_a_study_that_is_opened_with_a_grid_that_is_too_large_refuses_to_suggest(tmp_path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    space = ft.Space({f"x{i}": ft.Float(0, 1) for i in range(6)})
    ft.Study(space, minimize="error", strategy=ft.Random(), storage=storage, name="large").close()
    with ft.Study.load("large", storage, strategy=ft.Grid()) as study, pytest.raises(ft.FarthingError, match="15,625"):
        study.ask()


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"lr": 3}, "Did you mean 'rate'|'rate', 'layers'"),
        ({"kind": 2}, "a Choice, which has all its options"),
        ({"layers": 4}, "at most the number of values, got 4 for 'layers', which has 3"),
        (0, "a whole number ≥ 1"),
        ({"rate": 0}, "a whole number ≥ 1"),
    ],
)
def test_points_that_cannot_be_meant_are_refused(points, message) -> None:
    with pytest.raises(ft.FarthingError, match=message):
        ft.Study(SPACE, minimize="error", strategy=ft.Grid(points=points))


# ------------------------------------------------------------
# The bill of what is to come.


def to_come(study: ft.Study) -> tuple[int, float | None]:
    found = study.ledger.to_come
    assert found is not None
    return found.trials, found.cost


def test_a_declared_cost_gives_the_bill_of_the_whole_grid_before_it_is_paid() -> None:
    space = ft.Space({"x": ft.Int(1, 4)}, fidelities={"epochs": ft.Fidelity(1, 10, integer=True)})
    study = ft.Study(
        space,
        minimize="error",
        strategy=ft.Grid(),
        cost=lambda params, fidelity: params["x"] * fidelity["epochs"],
        cost_unit="epochs",
    )
    assert to_come(study) == (4, 100.0)
    study.run(lambda trial: trial.params["x"], executor="inline", budget=ft.Budget(trials=2))
    trials, cost = to_come(study)
    assert trials == 2
    assert study.ledger.total + (cost or 0.0) == 100.0
    assert study.ledger.to_json()["to_come"] == {"trials": 2, "cost": cost}


def test_told_costs_are_expected_again() -> None:
    study = ft.Study(ft.Space({"x": ft.Int(1, 4)}), minimize="error", strategy=ft.Grid(), cost_unit="dollars")
    assert to_come(study) == (4, None)
    assert "unknown dollars" in str(study.ledger)
    study.tell(study.ask(), 1.0, cost=3.0)
    running = study.ask()
    assert to_come(study) == (3, 9.0), "the one in flight is to come too"
    study.tell(running, 1.0, cost=5.0)
    assert to_come(study) == (2, 8.0)
    assert "2 trials" in str(study.ledger)
    assert "about 8 dollars, 16 in all" in str(study.ledger)


def test_other_strategies_promise_nothing() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random())
    assert study.ledger.to_come is None
    assert "to_come" not in study.ledger.to_json()
