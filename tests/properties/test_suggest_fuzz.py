"""Random histories through `suggest`: whatever happened before, the next suggestion is a valid one.

Histories are made by a seeded generator rather than by Hypothesis, so that a number names each of them and ten
thousand can be made quickly. They have duplicates, constants, extreme scales, failures, trials in flight, conditions.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.strategies import Randomness, Strategy
from farthing.trials import History, Measurement, Params, Problem, State, Suggestion, Trial

QUICK, LONG, AT_ONCE = 100, 10_000, 50
SPACES = (
    ft.Space({"x": ft.Float(0, 1)}),
    ft.Space({"x": ft.Float(1e-8, 1e8, log=True), "y": ft.Float(-1e12, 1e12)}),
    ft.Space({"n": ft.Int(1, 3), "b": ft.Choice(True, False)}),
    ft.Space({"n": ft.Int(1, 10**6, log=True), "c": ft.Choice("a", "b", "c"), "s": ft.Float(0, 1, step=0.25)}),
    ft.Space({"only": ft.Choice("a"), "o": ft.Choice(1, 2, 4, 8, ordered=True)}),
    ft.Space(
        {
            "kind": ft.Choice("linear", "tree"),
            "penalty": ft.Float(1e-4, 1e2, log=True, when={"kind": "linear"}),
            "depth": ft.Int(1, 6, when={"kind": "tree"}),
            "leaf": ft.Choice("few", "many", when={"depth": [4, 5, 6]}),
        },
        fidelities={"epochs": ft.Fidelity(1, 9, integer=True)},
    ),
    ft.Space(
        {"x": ft.Float(0, 1), "c": ft.Choice("a", "b"), "y": ft.Float(0, 1, when={"c": "a"})},
        fidelities={"epochs": ft.Fidelity(1, 30, integer=True, trace=True), "data": ft.Fidelity(0.01, 1.0)},
    ),
)
Values = Callable[[np.random.Generator, int], np.ndarray]
VALUES: tuple[Values, ...] = (
    lambda rng, n: rng.standard_normal(n),
    lambda rng, n: np.full(n, rng.standard_normal()),
    lambda rng, n: np.zeros(n),
    lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n),
    lambda rng, n: 1e300 * rng.standard_normal(n),
    lambda rng, n: 1e-300 * rng.standard_normal(n),
    lambda rng, n: 1e9 + 1e-7 * rng.standard_normal(n),
    lambda rng, n: rng.integers(0, 2, n).astype(float),
    lambda rng, n: rng.standard_cauchy(n) ** 3,
)
STATES = (State.DONE,) * 6 + (State.FAILED, State.LOST, State.PRUNED, State.RUNNING, State.PENDING)


def random_history(number: int) -> History:
    rng = np.random.default_rng([2024, number])
    space = SPACES[int(rng.integers(len(SPACES)))]
    n = int(rng.choice([1, 2, 3, 5, 8, 13, 25]))
    values = VALUES[int(rng.integers(len(VALUES)))](rng, n)
    costs = 10.0 ** rng.uniform(*rng.choice([(0.0, 0.0), (-3.0, 3.0), (-200.0, 200.0)]), n)
    params = [_params(space, rng) for _ in range(max(1, int(n * rng.choice([0.2, 0.6, 1.0]))))]
    problem = Problem(space, minimize=bool(rng.integers(2)), declared_cost=_declared if rng.random() < 0.1 else None)
    picks = rng.integers(len(params), size=n)
    return History(
        problem,
        [_trial(i, params[pick], float(values[i]), float(costs[i]), space, rng) for i, pick in enumerate(picks)],
    )


def _params(space: ft.Space, rng: np.random.Generator) -> Params:
    """Often at a bound."""
    unit = rng.random((1, space.encoder.dimension))
    at_bound = np.round(unit).clip(0, 1 - 1e-12)
    return space.encoder.decode(space.encoder.from_unit(np.where(rng.random(unit.shape) < 0.2, at_bound, unit)))[0]


def _trial(number: int, params: Params, value: float, cost: float, space: ft.Space, rng: np.random.Generator) -> Trial:
    state = STATES[int(rng.integers(len(STATES)))]
    ended_well = state in (State.DONE, State.PRUNED)
    paid = (Measurement(cost={"training": cost}, value=value if ended_well else None),) if rng.random() < 0.9 else ()
    fidelity = {name: top if rng.random() < 0.9 else 1 for name, top in space.full_fidelity.items()}
    overhead = float(rng.choice([0.0, 1e6]))
    suggestion = Suggestion(params, fidelity, note={"theta": [0.0], "fitted_on": 1} if rng.random() < 0.1 else None)
    made = Trial(number, suggestion, state, value=value if ended_well else None, measurements=paid)
    return replace(made, overhead=overhead)


def _declared(params: Params, fidelity: object) -> float:
    return math.exp(len(str(params)) % 7)


def check_suggestions(number: int) -> None:
    history, rng = random_history(number), np.random.default_rng(number)
    budget = Remaining(cost=float(rng.choice([math.inf, 1.0, 1e-9])), trials=float(rng.choice([math.inf, 3.0])))
    strategies: tuple[Strategy, ...] = (ft.LogEI(initial=1), ft.EIPerCost(initial=1, cooling=bool(rng.integers(2))))
    count = int(rng.choice([1, 1, 1, 3]))
    for strategy in strategies:
        suggestions = strategy.suggest(history, budget, count, Randomness(number))
        assert len(suggestions) == count
        for suggestion in suggestions:
            assert history.problem.space.check(suggestion.params) == suggestion.params
    if history.problem.space.fidelities and number % 2:
        check_fidelities(history, budget, count, number)


def check_fidelities(history: History, budget: Remaining, count: int, number: int) -> None:
    """What `TraceKG` suggests can be run; where nothing is affordable it suggests nothing."""
    strategy = (ft.TraceKG(), ft.TraceKG(zero_avoiding=False, retain=3), ft.TraceKG.paper())[number % 3]
    space = history.problem.space
    suggestions = strategy.suggest(history, budget, count, Randomness(number))
    assert len(suggestions) <= count
    for suggestion in suggestions:
        assert space.check(suggestion.params) == suggestion.params
        assert space.check_fidelity(suggestion.fidelity) == suggestion.fidelity
    best = strategy.recommend(history)
    assert (best is not None) == bool(history.done)


@pytest.mark.parametrize("first", range(0, QUICK, AT_ONCE))
def test_any_history_leads_to_a_valid_suggestion(first: int) -> None:
    for number in range(first, first + AT_ONCE):
        check_suggestions(number)


@pytest.mark.long
@pytest.mark.parametrize("first", range(QUICK, LONG, 100))
def test_ten_thousand_histories_lead_to_valid_suggestions(first: int) -> None:
    for number in range(first, first + 100):
        check_suggestions(number)
