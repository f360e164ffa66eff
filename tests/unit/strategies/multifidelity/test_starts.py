"""Random starts where there are several fidelities, or none is a trace: as many as a budget lets them be."""

import pytest

import farthing as ft
from farthing.costs import Budget
from farthing.strategies import Randomness
from farthing.strategies.multifidelity.takg import START_BUDGET, START_SHARE, STARTS
from farthing.trials import History, Measurement, Problem, State, Trial

SPACE = ft.Space(
    {"x": ft.Float(0, 1)},
    fidelities={"data": ft.Fidelity(0.01, 1.0), "epochs": ft.Fidelity(1, 100, integer=True, trace=True)},
)


def starts(budget: Budget, *, set_up: float = 0.0) -> list[Trial]:
    """The trials that were starts; a full training costs 1 and what its set-up costs."""
    history = History(Problem(SPACE))
    while True:
        left = budget.remaining(history, seconds=0.0)
        [found] = ft.TraceKG().suggest(history, left, 1, Randomness(0))
        if "a start" not in found.note["why"]:
            return list(history)
        cost = set_up + history.problem.reach(found.fidelity)
        point = Measurement(value=found.params["x"], fidelity=found.fidelity, cost={"training": cost}, charged=True)
        trial = Trial(len(history), found, State.DONE, measurements=(point,), value=point.value)
        history = history.updated([trial], version=len(history))


def test_starts_fit_their_share_of_a_small_budget_by_being_smaller() -> None:
    found = [trial.cost for trial in starts(Budget(cost=1.0))]
    assert len(found) >= STARTS - 1
    assert sum(found) <= START_BUDGET
    assert found[0] == pytest.approx(START_SHARE, rel=0.05)
    assert all(cost < 0.8 * found[0] for cost in found[1:])


def test_starts_that_a_budget_pays_for_are_all_of_one_size() -> None:
    found = [trial.cost for trial in starts(Budget(cost=10.0))]
    assert len(found) == STARTS
    assert max(found) == min(found)


def test_where_a_smaller_start_costs_as_much_there_are_fewer() -> None:
    found = [trial.cost for trial in starts(Budget(cost=2.5), set_up=0.4)]
    assert len(found) == 2
    assert sum(found) <= START_BUDGET * 2.5


def test_a_budget_of_trials_leaves_starts_as_they_are() -> None:
    found = starts(Budget(trials=20))
    assert len(found) == STARTS
    assert {trial.fidelity["epochs"] for trial in found} == {36}


ALONG = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 100, integer=True, trace=True)})


def first_looks(budget: Budget) -> list[int]:
    """The epochs of eight new configurations along a trace; an epoch costs 1."""
    history = History(Problem(ALONG))
    while sum(trial.resume_from is None for trial in history) < 8:
        [found] = ft.TraceKG().suggest(history, budget.remaining(history, seconds=0.0), 1, Randomness(0))
        begun = 0 if found.resume_from is None else history[found.resume_from].fidelity["epochs"]
        cost = {"training": found.fidelity["epochs"] - begun}
        point = Measurement(value=1.0 - found.params["x"] / 2, fidelity=found.fidelity, cost=cost, charged=True)
        trial = Trial(len(history), found, State.DONE, measurements=(point,), value=point.value)
        history = history.updated([trial], version=len(history))
    return [int(trial.fidelity["epochs"]) for trial in history if trial.resume_from is None]


def test_first_looks_are_shorter_where_a_budget_would_be_spent_on_them() -> None:
    first, *others = first_looks(Budget(cost=100))
    assert first == 5, "nothing is known of costs yet"
    assert max(others) <= 3, "a fifth of the budget for eight"


@pytest.mark.parametrize("budget", [Budget(cost=200), Budget(cost=1000), Budget(trials=20)])
def test_first_looks_have_their_length_where_a_budget_pays_for_them(budget: Budget) -> None:
    assert set(first_looks(budget)) == {5}
