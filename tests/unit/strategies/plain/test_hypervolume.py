"""LogEHVI in studies: fronts, limits, costs, replay."""

import numpy as np
import pytest

import farthing as ft
from farthing.acquisition.hypervolume import hypervolume
from farthing.costs import Remaining
from farthing.strategies import Randomness
from farthing.testing import check_replay

SPACE = ft.Space({f"x{i}": ft.Float(0, 1) for i in range(4)})


def two(params) -> dict[str, float]:
    """The front is x0 from 0 to 1 at x1 = x2 = x3 = 0.4: a quarter circle."""
    x = [params[f"x{i}"] for i in range(4)]
    g = 1.0 + 2.0 * sum((one - 0.4) ** 2 for one in x[1:])
    return {"a": g * np.cos(0.5 * np.pi * x[0]), "b": g * np.sin(0.5 * np.pi * x[0]), "size": x[1]}


def played(trials: int, work=two, *, seed: int = 0, cost=lambda params: 1.0, space=SPACE, **aims) -> ft.Study:
    study = ft.Study(space, seed=seed, cost_unit="cost", **aims)
    for _ in range(trials):
        asked = study.ask()
        study.tell(asked, work(asked.params), cost=cost(asked.params))
    return study


def volume(study: ft.Study) -> float:
    """Of all trials that keep x1 ≤ 0.5 where that is asked for."""
    found = [two(trial.params) for trial in study.trials]
    kept = [[one["a"], one["b"]] for one in found if not study.problem.constraints or one["size"] <= 0.5]
    return hypervolume(np.array(kept).reshape(-1, 2), np.array([1.1, 1.1]))


@pytest.mark.parametrize("seed", [0, 1])
def test_it_finds_a_front_of_two_far_sooner_than_an_even_design(seed: int) -> None:
    """The whole is 1.21 − π/4 = 0.42."""
    model = volume(played(35, minimize=["a", "b"], seed=seed))
    design = volume(played(35, minimize=["a", "b"], seed=seed, strategy="Sobol"))
    assert model > 0.25
    assert model > 2.0 * design


def test_it_is_the_default_of_plain_spaces_and_replays() -> None:
    study = ft.Study(SPACE, minimize="a", maximize="speed", constraints={"size": ft.AtMost(0.5)}, seed=1)

    def work(trial: ft.RunningTrial) -> dict[str, float]:
        found = two(trial.params)
        return {"a": found["a"], "speed": -found["b"], "size": found["size"]}

    study.run(work, budget=ft.Budget(trials=14), executor="inline", progress=False)
    assert isinstance(study.strategy, ft.LogEHVI)
    assert check_replay(study) == []
    last = study.trials[-1]
    assert last.note["predicted"].keys() == {"speed"}
    assert last.suggestion.predicted_value is not None


def test_under_a_limit_most_evaluations_keep_it_and_the_front_is_found() -> None:
    study = played(30, minimize=["a", "b"], constraints={"size": ft.AtMost(0.5)})
    by_model = [trial.params["x1"] for trial in study.trials[10:]]
    assert sum(one <= 0.5 for one in by_model) > 0.7 * len(by_model)
    assert volume(study) > 0.3


def test_one_objective_under_a_limit_that_cuts_off_its_minimum_ends_at_the_limit() -> None:
    """(x0 − 0.8)² + (x1 − 0.8)² where x0 + x1 ≤ 1: the best is 0.18 at (0.5, 0.5)."""
    space = ft.Space({"x0": ft.Float(0, 1), "x1": ft.Float(0, 1)})

    def work(params) -> dict[str, float]:
        x, y = params["x0"], params["x1"]
        return {"loss": (x - 0.8) ** 2 + (y - 0.8) ** 2, "sum": x + y}

    study = played(20, work, space=space, minimize="loss", constraints={"sum": ft.AtMost(1.0)})
    kept = [work(trial.params)["loss"] for trial in study.trials if work(trial.params)["sum"] <= 1.0]
    assert min(kept) == pytest.approx(0.18, abs=0.005)


def test_where_costs_differ_much_cheap_configurations_come_first() -> None:
    """Cost is 100 to the power of x3, on which the objectives hardly depend."""

    def work(params) -> dict[str, float]:
        return {"a": params["x0"] + 0.01 * params["x3"], "b": 1.0 - params["x0"] + 0.1 * params["x1"]}

    study = played(24, work, cost=lambda params: 100.0 ** params["x3"], minimize=["a", "b"])
    later = [trial.params["x3"] for trial in study.trials[12:]]
    assert np.median(later) < 0.25
    assert study.trials[-1].suggestion.predicted_cost is not None


def test_success_is_learnt_where_it_is_asked_for() -> None:
    """Half of the front is where all fails: the search turns to the other half."""
    study = ft.Study(SPACE, minimize=["a", "b"], constraints={"runs": ft.Succeeds()}, seed=0, cost_unit="cost")
    for _ in range(26):
        asked = study.ask()
        found = two(asked.params)
        if asked.params["x0"] < 0.5:
            study.tell(asked, failure="out of memory", cost=1.0)
        else:
            study.tell(asked, {"a": found["a"], "b": found["b"]}, cost=1.0)
    assert sum(trial.params["x0"] < 0.5 for trial in study.trials[14:]) <= 4
    assert "theta failure" in study.trials[-1].note


def test_four_objectives_are_searched_too() -> None:
    def work(params) -> dict[str, float]:
        return {name: abs(params[f"x{i}"] - 0.3) + 0.1 * params["x0"] for i, name in enumerate("abcd")}

    study = played(20, work, minimize=list("abcd"))
    sums = [sum(work(trial.params).values()) for trial in study.trials]
    assert np.mean(sums[12:]) < np.mean(sums[:6])


def test_several_at_once_differ() -> None:
    study = played(12, minimize=["a", "b"])
    found = study.strategy.suggest(study.history, Remaining(), 3, Randomness(0))
    assert len({tuple(one.params.values()) for one in found}) == 3
