"""Halving of several objectives and under limits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.strategies import Randomness
from farthing.strategies.multifidelity.halving import Rungs
from farthing.testing import check_replay
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.objectives import Limit, Objective

SPACE = ft.Space(
    {"x": ft.Float(0, 1), "y": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)}
)


def history(
    runs: Sequence[tuple[float, Mapping[str, float], float, int, int | None]],
    constraints: Mapping[str, Limit] | None = None,
) -> History:
    """Runs as (x, values, cost, epochs, the run they continue)."""
    problem = Problem(SPACE, value="a", further=(Objective("b"),), constraints=constraints or {})
    trials = []
    for number, (x, values, cost, epochs, source) in enumerate(runs):
        metrics = {name: one for name, one in values.items() if name != "a"}
        point = Measurement(value=values["a"], metrics=metrics, cost={"training": cost}, charged=True)
        suggestion = Suggestion({"x": x, "y": 0.5}, {"epochs": epochs}, resume_from=source)
        trials.append(Trial(number, suggestion, State.DONE, value=values["a"], measurements=(point,)))
    return History(problem, trials)


def next_one(past: History) -> Suggestion:
    return ft.ParetoHalving().suggest(past, Remaining(), 1, Randomness(0))[0]


def run(x: float, a: float, b: float, *, cost: float = 1.0, epochs: int = 1, source: int | None = None, **more: float):
    return (x, {"a": a, "b": b, **more}, cost, epochs, source)


def test_what_is_not_dominated_is_continued_first() -> None:
    past = history([run(0.1, 5, 5), run(0.2, 1, 1), run(0.3, 4, 4)])
    found = next_one(past)
    assert (found.resume_from, found.fidelity) == (1, {"epochs": 3})


@pytest.mark.parametrize(("costs", "expected"), [((8.0, 1.0), 1), ((1.0, 8.0), 0)])
def test_of_equal_gains_the_cheaper_run_is_continued_first(costs: tuple[float, float], expected: int) -> None:
    ends = [run(0.1, 0, 4, cost=costs[0]), run(0.2, 4, 0, cost=costs[1])]
    past = history([*ends, *(run(0.3 + 0.1 * i, 5 + i, 5 + i) for i in range(4))])
    assert next_one(past).resume_from == expected


def test_of_equal_costs_the_run_that_alone_dominates_most_is_continued_first() -> None:
    front = [run(0.1, 0, 10), run(0.2, 0.4, 9.8), run(0.3, 2, 2), run(0.4, 10, 0)]
    past = history([*front, *(run(0.5 + 0.01 * i, 11 + i, 11 + i) for i in range(8))])
    assert next_one(past).resume_from == 2


def test_a_run_beyond_a_limit_is_continued_after_all_that_keep_it() -> None:
    limits = {"memory": ft.AtMost(5.0)}
    past = history([run(0.1, 0, 0, memory=9), run(0.2, 3, 3, memory=4), run(0.3, 4, 4, memory=4)], limits)
    assert next_one(past).resume_from == 1


def passed(memory: Callable[[int, int], float]) -> list[Any]:
    """Four runs that went through all rungs, by number and epochs, and the memory of each on each."""
    rungs = {epochs: [memory(number, epochs) for number in range(4)] for epochs in (1, 3, 9)}
    return [
        run(
            0.1 * number, number, number, memory=amount, epochs=epochs, source=4 * place + number - 4 if place else None
        )
        for place, (epochs, amounts) in enumerate(rungs.items())
        for number, amount in enumerate(amounts)
    ]


@pytest.mark.parametrize(("falls", "is_continued"), [(0.0, False), (1.0, False), (2.0, True)])
def test_runs_that_more_training_does_not_bring_back_are_given_up(falls: float, is_continued: bool) -> None:
    """They exceed the limit by 3, and runs come back by as much on each of two steps."""
    rest = [run(0.5 + 0.1 * i, -1.0 - i, -1.0 - i, memory=8.0) for i in range(3)]
    worst = [run(0.9, 9, 9, memory=90.0) for _ in range(14)]
    seen = passed(lambda number, epochs: 6.0 + number - falls * {1: 0, 3: 1, 9: 2}[epochs])
    past = history([*seen, *rest, *worst], {"memory": ft.AtMost(5.0)})
    waiting = [trial.number for trial in Rungs(past, 3, "epochs").best(0)]
    assert set(waiting) & {12, 13, 14}, "they are among the best that wait"
    assert (next_one(past).resume_from in {12, 13, 14}) == is_continued


def test_a_limit_that_holds_so_far_and_not_in_the_end_gives_a_run_up() -> None:
    """Seconds grow with the epochs: who needs 1 for the first needs 9 for all."""
    seen = passed(lambda number, epochs: (0.3 + 0.05 * number) * epochs)
    slow = [run(0.5, -9, -9, memory=1.0), run(0.6, -8, -8, memory=0.9), run(0.7, 5, 5, memory=0.5)]
    past = history([*seen, *slow, *(run(0.9, 9, 9, memory=2.0) for _ in range(14))], {"memory": ft.AtMost(5.0)})
    assert next_one(past).resume_from == 14


def test_what_grows_in_proportion_is_expected_to() -> None:
    """The second step has noise, so that its forecasts are off by as much."""
    seen = passed(lambda number, epochs: (0.3 + 0.05 * number) * epochs + (0.1 if epochs == 9 and number == 3 else 0.0))
    past = history([*seen, run(0.5, 1, 1, memory=1.0)], {"memory": ft.AtMost(5.0)})
    found = Rungs(past, 3, "epochs").in_the_end[12]
    assert found.excess == pytest.approx([9.0 - 5.0])
    assert found.error == pytest.approx([0.1])


def test_what_falls_by_the_same_amount_is_expected_to_also_below_zero() -> None:
    seen = passed(lambda number, epochs: number - 1.0 + {1: 0.0, 3: 0.5, 9: 0.75}[epochs])
    past = history([*seen, run(0.5, 1, 1, memory=-2.0)], {"memory": ft.AtLeast(0.0)})
    found = Rungs(past, 3, "epochs").in_the_end[12]
    assert found.excess == pytest.approx([1.25])
    assert found.error == pytest.approx([0.0])


def test_where_few_runs_went_on_the_rung_before_is_a_guess_that_gives_up_nothing() -> None:
    seen = [one for one in passed(lambda number, epochs: (2.0 + number) * epochs) if one[3] < 9]
    past = history([*seen, run(0.5, 1, 1, memory=2.0)], {"memory": ft.AtMost(5.0)})
    found = Rungs(past, 3, "epochs").in_the_end[8]
    assert found.excess == pytest.approx([18.0 - 5.0])
    assert found.is_guess
    assert not found.is_beyond


def test_before_there_is_proof_no_run_is_given_up() -> None:
    limits = {"memory": ft.AtMost(5.0)}
    past = history([run(0.1 * i, i, i, memory=6.0 + i) for i in range(3)], limits)
    assert next_one(past).resume_from == 0


def work(trial: ft.RunningTrial) -> dict[str, float]:
    x, y = trial.params["x"], trial.params["y"]
    found = {}
    for epoch in range(1, int(trial.fidelity["epochs"]) + 1):
        found = {"a": x + (y - 0.7) ** 2 + 1 / epoch, "b": 1 - x + (y - 0.7) ** 2 + 1 / epoch, "size": x}
        trial.report(found, epochs=epoch)
    return found


@pytest.mark.parametrize("strategy", [None, "ASHA", "Hyperband", "BOHB"])
def test_studies_with_fidelities_and_limits_run_and_replay(strategy: str | None) -> None:
    study = ft.Study(SPACE, minimize=["a", "b"], constraints={"size": ft.AtMost(0.8)}, strategy=strategy, seed=2)
    study.run(work, budget=ft.Budget(trials=24), executor="inline", progress=False)
    assert isinstance(study.strategy, ft.ParetoHalving if strategy is None else getattr(ft, strategy))
    assert any(trial.fidelity == {"epochs": 9} for trial in study.trials)
    assert check_replay(study) == []


def test_newcomers_are_chosen_where_the_model_expects_the_front() -> None:
    """Of a good y, the newcomers by a model have most; a third of them stays random."""
    study = ft.Study(SPACE, minimize=["a", "b"], seed=1)
    study.run(work, budget=ft.Budget(trials=40), executor="inline", progress=False)
    later = [trial.params["y"] for trial in study.trials if trial.resume_from is None][15:]
    assert sum(abs(y - 0.7) < 0.15 for y in later) > 0.5 * len(later)
