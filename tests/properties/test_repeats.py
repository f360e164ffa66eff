"""Nothing is bought twice: equal params are one configuration, whoever suggests.

An exact repeat is a suggestion whose params were trained before, or are being trained, to the same fidelity, or along
a trace beyond it. It is allowed only if every configuration of a finite space was tried; its note then says so.
"""

import math

import numpy as np
import pytest

import farthing as ft
from benchmarks.baselines.curve_guided import BOCA, FreezeThawEI
from farthing.costs import Remaining
from farthing.strategies import Randomness, Strategy
from farthing.trials import History, Measurement, Params, Problem, State, Suggestion, Trial

SIZE = ft.Fidelity(20, 126, integer=True)
PLAIN = ft.Space({"x": ft.Float(0, 1)}, fidelities={"rows": SIZE})
QUICK, AT_ONCE, LONG = 60, 20, 1000
VALUES = {"a": 1.0, "b": 0.5, "c": 2.0}
SPACES = (
    PLAIN,
    ft.Space({"n": ft.Int(1, 6), "c": ft.Choice("a", "b", "c")}, fidelities={"rows": SIZE}),
    ft.Space({"n": ft.Int(1, 40)}, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)}),
    ft.Space(
        {"x": ft.Float(1e-4, 1, log=True), "n": ft.Int(1, 4)},
        fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True), "data": ft.Fidelity(0.1, 1.0)},
    ),
)
FLAT = (
    ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)}),
    ft.Space({"n": ft.Int(1, 8), "b": ft.Choice(True, False)}),
)


def trial(
    number: int, params: Params, fidelity: dict[str, float], value: float, state: State = State.DONE, **more: int
) -> Trial:
    done = state is State.DONE
    paid = (Measurement(value=value, cost={"training": math.prod(fidelity.values()) or 1.0}),) if done else ()
    return Trial(number, Suggestion(params, fidelity, **more), state, value=value if done else None, measurements=paid)


def is_repeat(history: History, suggestion: Suggestion) -> bool:
    """Whether a trial with equal params gave, or is about to give, what is suggested."""
    fidelities = history.problem.space.fidelities
    return any(
        one.params == suggestion.params
        and one.state in (State.DONE, State.RUNNING, State.PENDING)
        and all(
            one.fidelity[name] >= amount if fidelities[name].trace else one.fidelity[name] == amount
            for name, amount in suggestion.fidelity.items()
        )
        for one in history
    )


def strategies_with_fidelities() -> tuple[Strategy, ...]:
    return (
        ft.TraceKG(),
        ft.TraceKG(floor=None),
        ft.TraceKG.paper(),
        BOCA(),
        FreezeThawEI(),
        ft.BOHB(),
        ft.ASHA(),
    )


# ------------------------------------------------------------------------------------------------------ one history


def twice(others: int = 6) -> History:
    """The best params were run to 20 rows and to 126: two trials, one configuration."""
    found = [trial(0, {"x": 0.3}, {"rows": 20}, 0.2), trial(1, {"x": 0.3}, {"rows": 126}, 0.1)]
    for i in range(others):
        found.append(trial(len(found), {"x": 0.6 + 0.05 * i}, {"rows": 20}, 0.5 + 0.05 * i))
    return History(Problem(PLAIN), found)


@pytest.mark.parametrize("seed", range(4))
def test_equal_params_run_to_20_and_to_126_are_one_configuration(seed: int) -> None:
    from farthing.strategies.multifidelity.context import read_context
    from farthing.strategies.multifidelity.screening import offered

    history = twice()
    context = read_context(ft.TraceKG(), history, Randomness(seed), ())
    assert context is not None
    candidates = offered(context, may_be_new=True)
    best = np.isclose(candidates.X[:, 0], 0.3)
    assert not best.any(), "it was trained to the end: there is nothing left to buy of it"


def test_a_configuration_that_was_run_to_20_only_may_have_more() -> None:
    from farthing.strategies.multifidelity.context import read_context
    from farthing.strategies.multifidelity.screening import offered

    history = History(Problem(PLAIN), [one for one in twice() if one.number != 1])
    context = read_context(ft.TraceKG(), history, Randomness(0), ())
    assert context is not None
    candidates = offered(context, may_be_new=True)
    assert candidates.S[np.isclose(candidates.X[:, 0], 0.3)].max() == 1.0


def test_more_of_a_configuration_has_its_params_to_the_bit_and_is_not_called_new() -> None:
    """Decoding an encoded value may change its last bit; then equal params would not be equal."""
    space = ft.Space({"x": ft.Float(1e-5, 1.0, log=True)}, fidelities={"rows": SIZE})
    rng = np.random.default_rng(0)
    tried = [trial(i, {"x": float(10 ** rng.uniform(-5, 0))}, {"rows": 20}, float(i)) for i in range(8)]
    history = History(Problem(space), tried)
    for seed in range(10):
        for suggestion in ft.TraceKG().suggest(history, Remaining(), 4, Randomness(seed)):
            if any(math.isclose(suggestion.params["x"], one.params["x"], rel_tol=1e-9) for one in tried):
                assert suggestion.params in [one.params for one in tried]
                assert isinstance(suggestion.note, dict)
                assert "again with more" in suggestion.note["why"]


def test_a_run_is_not_carried_on_to_where_its_twin_has_been() -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)})
    found = [trial(0, {"x": 0.3}, {"epochs": 3}, 0.2), trial(1, {"x": 0.3}, {"epochs": 27}, 0.1)]
    found += [trial(2 + i, {"x": 0.6 + 0.05 * i}, {"epochs": 27}, 0.5) for i in range(5)]
    history = History(Problem(space), found)
    for strategy in (ft.TraceKG(), ft.TraceKG.paper(), BOCA(), FreezeThawEI()):
        for suggestion in strategy.suggest(history, Remaining(), 2, Randomness(0)):
            assert suggestion.resume_from != 0


def test_once_every_configuration_was_tried_the_note_says_that_one_is_measured_again() -> None:
    space = ft.Space({"c": ft.Choice("a", "b")})
    history = History(Problem(space), [trial(i, {"c": c}, {}, float(i)) for i, c in enumerate("ab")])
    [again] = ft.LogEI(initial=1).suggest(history, Remaining(), 1, Randomness(0))
    assert isinstance(again.note, dict)
    assert "again" in again.note["why"]


# ----------------------------------------------------------------------------------------------------------- fuzzed


def random_history(space: ft.Space, number: int) -> History:
    """Params that come back, at fidelities of a few amounts; a quarter of the trials are in flight."""
    rng = np.random.default_rng([77, number])
    n = int(rng.integers(6, 16))
    drawn = space.encoder.decode(space.encoder.from_unit(np.round(rng.random((n, space.encoder.dimension)), 1)))
    found = []
    for i in range(n):
        params = drawn[int(rng.integers(max(1, n // 2)))]
        fidelity = {name: float(rng.choice([one.low, one.high])) for name, one in space.fidelities.items()}
        fidelity = dict(space.check_fidelity(fidelity)) if fidelity else {}
        state = State.RUNNING if i > 5 and rng.random() < 0.25 else State.DONE
        found.append(trial(i, params, fidelity, float(rng.normal()), state))
    return History(Problem(space), found)


def is_exhausted(history: History) -> bool:
    """Whether a finite space has no configuration left that was not tried."""
    counts = [parameter.count for parameter in history.problem.space.parameters.values()]
    if any(count is None for count in counts):
        return False
    tried = {tuple(one.params.items()) for one in history}
    return len(tried) + 4 >= math.prod(count for count in counts if count is not None)


def check_no_repeat(number: int) -> None:
    if number % 3:
        space, strategies = SPACES[number % len(SPACES)], strategies_with_fidelities()
        strategy = strategies[number % len(strategies)]
    else:
        space = FLAT[number % len(FLAT)]
        strategy = (ft.LogEI(initial=2), ft.EIPerCost(initial=2), ft.Random())[number // 3 % 3]
    history = random_history(space, number)
    if is_exhausted(history):
        return
    for suggestion in strategy.suggest(history, Remaining(), 1 + number % 2, Randomness(number)):
        assert not is_repeat(history, suggestion), (number, strategy, suggestion)


@pytest.mark.parametrize("first", range(0, QUICK, AT_ONCE))
def test_no_suggestion_repeats_what_a_history_has(first: int) -> None:
    for number in range(first, first + AT_ONCE):
        check_no_repeat(number)


@pytest.mark.long
@pytest.mark.parametrize("first", range(QUICK, LONG, AT_ONCE))
def test_no_suggestion_repeats_what_a_thousand_histories_have(first: int) -> None:
    for number in range(first, min(LONG, first + AT_ONCE)):
        check_no_repeat(number)


@pytest.mark.parametrize("space", [SPACES[0], SPACES[1]], ids=["continuous", "finite"])
def test_a_study_without_noise_buys_nothing_twice(space: ft.Space) -> None:
    """The default of a study with a fidelity that has no trace."""

    def work(trial: ft.RunningTrial) -> float:
        trial.charge(trial.fidelity["rows"] / 126)
        return sum(abs(VALUES.get(v, v) - 0.3) for v in trial.params.values()) + 10 / trial.fidelity["rows"]

    study = ft.Study(space, minimize="error", noise=False, seed=1, cost_unit="full runs")
    study.run(work, budget=ft.Budget(trials=14), executor="inline", progress=False)
    bought = [(tuple(one.params.items()), one.fidelity["rows"]) for one in study.trials]
    assert len(set(bought)) == len(bought)
