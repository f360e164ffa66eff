import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.strategies import Randomness, Strategy
from farthing.strategies.shared.cost_model import DeclaredCost, FullCost, LearntCost, full_cost
from farthing.strategies.shared.effort import share_left
from farthing.strategies.shared.modelling import observe
from farthing.trials import History, Measurement, Params, Problem, State, Suggestion, Trial

SQUARE = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})
GRID = ft.Space({"a": ft.Int(0, 3), "b": ft.Choice("p", "q", "r"), "c": ft.Choice(1, 2, ordered=True)})


def trial(
    number: int, params: Params, value: float | None = 0.0, *, cost: float = 1.0, state: State = State.DONE
) -> Trial:
    paid = (Measurement(cost={"training": cost}, value=value, charged=True),) if cost else ()
    return Trial(number, Suggestion(params), state, value=value, measurements=paid)


def history(
    trials: Sequence[Trial], space: ft.Space = SQUARE, declared_cost: Callable[..., float] | None = None
) -> History:
    return History(Problem(space, declared_cost=declared_cost), trials)


def suggest(
    strategy: Strategy, history: History, count: int = 1, *, budget: Remaining | None = None
) -> list[Suggestion]:
    return list(strategy.suggest(history, budget or Remaining(), count, Randomness(0)))


def spread_over_square(
    n: int, value: Callable[..., float], cost: Callable[..., float] = lambda x, y: 1.0
) -> list[Trial]:
    points = np.random.default_rng(0).random((n, 2))
    return [trial(i, {"x": x, "y": y}, value(x, y), cost=cost(x, y)) for i, (x, y) in enumerate(points.tolist())]


def branin(x: float, y: float) -> float:
    a, b = 15 * x - 5, 15 * y
    valley = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10)


# ------------------------------------------------------------------------------------------------------- LogEI


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_log_ei_reaches_the_minimum_of_branin_within_thirty_evaluations(seed: int) -> None:
    study = ft.Study(SQUARE, minimize="loss", strategy=ft.LogEI(), seed=seed)
    for _ in range(30):
        asked = study.ask()
        study.tell(asked, branin(**asked.params), cost=1.0)
    assert study.best.value < 0.397887 + 0.02  # ten other seeds ended within 0.005; random search ends near 1


def test_the_first_configurations_fill_the_space() -> None:
    first = suggest(ft.LogEI(initial=8), history([]), 8)
    assert all(suggestion.note is None for suggestion in first)
    assert {int(4 * suggestion.params["x"]) for suggestion in first} == {0, 1, 2, 3}


def test_an_initial_design_needs_a_configuration() -> None:
    with pytest.raises(InvalidArgument, match="initial must be a whole number ≥ 1"):
        ft.LogEI(initial=0)


def test_what_failed_enters_as_the_worst_loss() -> None:
    seen = observe(
        history(
            [
                trial(0, {"x": 0.1, "y": 0.1}, 3.0),
                trial(1, {"x": 0.2, "y": 0.1}, 7.0),
                trial(2, {"x": 0.3, "y": 0.1}, None, state=State.FAILED),
                trial(3, {"x": 0.4, "y": 0.1}, None, state=State.RUNNING),
            ]
        )
    )
    np.testing.assert_array_equal(seen.loss, [3.0, 7.0, 7.0])
    assert np.isnan(seen.cost[2])
    assert seen.pending.shape == (1, 2)


def test_values_are_maximised_where_that_is_asked_for() -> None:
    space = ft.Space({"x": ft.Float(0, 1)})
    study = ft.Study(space, maximize="gain", strategy=ft.LogEI(), seed=0)
    for _ in range(12):
        asked = study.ask()
        study.tell(asked, -((asked.params["x"] - 0.7) ** 2), cost=1.0)
    assert study.best.params["x"] == pytest.approx(0.7, abs=0.02)  # where the gain is within 0.0004 of its best


def test_pending_trials_are_not_repeated() -> None:
    done = spread_over_square(12, branin)
    [best] = suggest(ft.LogEI(), history(done))
    pending = trial(12, best.params, None, cost=0.0, state=State.RUNNING)
    [other] = suggest(ft.LogEI(), history([*done, pending]))
    distance = math.dist(best.params.values(), other.params.values())
    assert distance > 0.01, "the same place was asked for again while its answer was on the way"


def test_a_batch_has_no_repeats_in_a_discrete_space() -> None:
    done = [trial(0, {"a": 0, "b": "p", "c": 1}, 1.0), trial(1, {"a": 1, "b": "p", "c": 1}, 0.5)]
    batch = suggest(ft.LogEI(initial=1), history(done, GRID), 22)
    assert len({tuple(suggestion.params.values()) for suggestion in batch}) == 22


def test_a_discrete_space_is_exhausted_before_anything_repeats() -> None:
    study = ft.Study(GRID, minimize="loss", strategy=ft.LogEI(initial=10), seed=0)
    for _ in range(24):
        asked = study.ask()
        study.tell(asked, asked.params["a"] + 0.1 * asked.params["c"], cost=1.0)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 24
    study.ask()  # what is exhausted may repeat, and says nothing


def test_predictions_are_in_the_units_of_the_value() -> None:
    [suggestion] = suggest(ft.LogEI(), history(spread_over_square(40, lambda x, y: 1000 + 5 * x)))
    assert suggestion.predicted_value is not None
    assert suggestion.predicted_value.mean == pytest.approx(1000 + 5 * suggestion.params["x"], abs=0.2)
    assert suggestion.predicted_value.deviation is not None
    assert 0.0 < suggestion.predicted_value.deviation < 1.0  # a tenth of what the prior, spread over five, would say


def test_a_fit_starts_from_the_one_noted_in_the_history() -> None:
    done = spread_over_square(12, branin)
    [first] = suggest(ft.LogEI(), history(done))
    noted = Trial(12, first, State.DONE, value=1.0)
    [second] = suggest(ft.LogEI(), history([*done, noted]))
    assert first.note["fitted_on"] == 12
    assert second.note["fitted_on"] == 13
    assert len(first.note["theta"]) == len(second.note["theta"]) == 4  # scale, two lengthscales, noise


# -------------------------------------------------------------------------------------- when suggesting is dear


def measured(number: int, *, seconds: float, overhead: float, note: object = None) -> Trial:
    points = np.random.default_rng(number).random(2).tolist()
    return Trial(
        number,
        Suggestion({"x": points[0], "y": points[1]}, note=note),
        State.DONE,
        value=points[0],
        measurements=(Measurement(cost={"training": seconds}, value=points[0]),),
        overhead=overhead,
    )


def test_a_dear_suggestion_keeps_a_recent_fit() -> None:
    quick = [measured(i, seconds=0.001, overhead=0.2) for i in range(20)]
    [first] = suggest(ft.LogEI(), history(quick), budget=Remaining(effort="frugal"))
    later = measured(20, seconds=0.001, overhead=0.1, note=first.note)
    [second] = suggest(ft.LogEI(), history([*quick, later]), budget=Remaining(effort="frugal"))
    assert second.note == first.note


# --------------------------------------------------------------------------------------------------- EIPerCost


def test_the_cheaper_of_two_equal_configurations_is_preferred() -> None:
    """The loss is symmetric about x = ½, and the right half costs a hundred times as much as the left."""
    cost = {True: 100.0, False: 1.0}
    done = spread_over_square(
        30, lambda x, y: (abs(x - 0.5) - 0.25) ** 2 + (y - 0.5) ** 2, cost=lambda x, y: cost[x > 0.5]
    )
    chosen = suggest(ft.EIPerCost(cooling=False), history(done), 4)
    assert all(suggestion.params["x"] < 0.5 for suggestion in chosen)
    assert chosen[0].predicted_cost is not None
    assert chosen[0].predicted_cost.mean < 10.0


def test_equal_costs_make_it_log_ei() -> None:
    done = history(spread_over_square(15, branin))
    assert [s.params for s in suggest(ft.EIPerCost(), done)] == [s.params for s in suggest(ft.LogEI(), done)]


def modelled(found: History) -> FullCost:
    costs = full_cost(found, observe(found).loss)
    assert costs is not None
    return costs


def test_a_declared_cost_takes_the_place_of_the_learnt_one() -> None:
    done = spread_over_square(15, branin, cost=lambda x, y: math.exp(2 * x))
    learnt, declared = history(done), history(done, declared_cost=lambda params, fidelity: math.exp(2 * params["y"]))
    assert isinstance(modelled(learnt).model, LearntCost)
    assert isinstance(modelled(declared).model, DeclaredCost)
    [suggestion] = suggest(ft.EIPerCost(), declared)
    assert suggestion.predicted_cost is not None
    assert suggestion.predicted_cost.mean == pytest.approx(math.exp(2 * suggestion.params["y"]))


def test_slopes_of_a_declared_cost_are_those_of_its_logarithm() -> None:
    problem = history([], declared_cost=lambda params, _: math.exp(2 * params["y"])).problem
    declared = FullCost(DeclaredCost(problem, np.zeros((0, 2))))
    X = np.array([[0.2, 0.3], [0.9, 1.0]])
    log_cost, gradient = declared.value_and_gradient(X)
    np.testing.assert_allclose(log_cost, 2 * X[:, 1])
    np.testing.assert_allclose(gradient, [[0.0, 2.0], [0.0, 2.0]], atol=1e-8)


def test_a_declared_cost_is_asked_for_once_for_each_configuration() -> None:
    asked: list[tuple[float, ...]] = []

    def declared(params: Params, fidelity: object) -> float:
        asked.append(tuple(params.values()))
        return math.exp(float(params["y"]))

    suggest(ft.EIPerCost(), history(spread_over_square(15, branin), declared_cost=declared), budget=Remaining(cost=9.0))
    assert len(asked) == len(set(asked))
    assert len(asked) < 1000  # 512 and 136 rows are screened, and the rest climbs; asking for all of them took 1400


def test_few_or_equal_costs_are_no_model() -> None:
    few = history(spread_over_square(2, branin, cost=lambda x, y: math.exp(x)))
    equal = history(spread_over_square(20, branin, cost=lambda x, y: 1.0 + 0.01 * x))
    assert full_cost(few, observe(few).loss) is None
    assert full_cost(equal, observe(equal).loss) is None


def noisy_cost(deviation: float, seed: int = 0) -> Callable[..., float]:
    """A cost that has nothing to do with the parameters, as the seconds of work that takes none."""
    draws = np.random.default_rng(seed)
    return lambda *args, **params: math.exp(deviation * draws.standard_normal())


@pytest.mark.parametrize("deviation", [0.05, 0.3, 1.0])
def test_costs_that_cannot_be_predicted_do_not_steer(deviation: float) -> None:
    noisy = history(spread_over_square(30, branin, cost=noisy_cost(deviation)))
    assert [s.params for s in suggest(ft.EIPerCost(), noisy)] == [s.params for s in suggest(ft.LogEI(), noisy)]


def test_costs_that_can_be_predicted_steer() -> None:
    varied = history(spread_over_square(12, branin, cost=lambda x, y: math.exp(x)))
    assert modelled(varied).steers


def test_a_cost_model_is_noted_whether_it_steers_or_not() -> None:
    """Else it would be fitted from nothing again at every suggestion."""
    [suggestion] = suggest(ft.EIPerCost(), history(spread_over_square(30, branin, cost=noisy_cost(0.3))))
    assert len(suggestion.note["cost_theta"]) == 4


def in_six_dimensions(n: int, cost: Callable[..., float], declared_cost: Callable[..., float] | None = None) -> History:
    space = ft.Space({name: ft.Float(0, 1) for name in "abcdef"})
    points = [dict(zip("abcdef", row, strict=True)) for row in np.random.default_rng(0).random((n, 6)).tolist()]
    return history(
        [trial(i, params, sum(params.values()), cost=cost(**params)) for i, params in enumerate(points)],
        space,
        declared_cost,
    )


def is_of_the_design(suggestion: Suggestion) -> bool:
    return suggestion.note is None


def test_the_initial_design_ends_once_costs_are_seen_to_steer() -> None:
    varied = in_six_dimensions(7, lambda **params: math.exp(8 * params["a"]))
    assert not is_of_the_design(suggest(ft.EIPerCost(), varied)[0])
    assert is_of_the_design(suggest(ft.EIPerCost(initial=8), varied)[0]), "a design that was asked for is kept"


@pytest.mark.parametrize("n", range(1, 8))
@pytest.mark.parametrize("cost", [lambda **_: 1.0, noisy_cost(0.05), noisy_cost(0.3, seed=1)])
def test_the_initial_design_is_whole_where_costs_do_not_steer(n: int, cost: Callable[..., float]) -> None:
    assert is_of_the_design(suggest(ft.EIPerCost(), in_six_dimensions(n, cost))[0])


@pytest.mark.parametrize(("factor", "is_whole"), [(0.1, True), (5.0, False)])
def test_the_initial_design_is_whole_where_a_declared_cost_hardly_varies(factor: float, is_whole: bool) -> None:
    declared = in_six_dimensions(
        4, lambda **_: 1.0, declared_cost=lambda params, fidelity: math.exp(factor * params["a"])
    )
    assert is_of_the_design(suggest(ft.EIPerCost(), declared)[0]) == is_whole


def test_the_exponent_falls_with_what_is_left_of_the_budget() -> None:
    spent = history([trial(i, {"x": 0.1 * i, "y": 0.1}, cost=1.0) for i in range(4)])
    shares = [share_left(spent, Remaining(cost=left)) for left in (12.0, 4.0, 1.0, 0.0, -1.0)]
    assert shares == [0.75, 0.5, 0.2, 0.0, 0.0]
    assert share_left(spent, Remaining(trials=4)) == 0.5
    assert share_left(spent, Remaining(cost=12.0, trials=1)) == 0.2, "the limit nearest to its end counts"
    assert share_left(spent, Remaining()) == 1.0


def test_wall_clock_is_counted_from_the_first_trial_to_the_last_event() -> None:
    made = [replace(trial(i, {"x": 0.1, "y": 0.1}, cost=100.0), opened_at=50.0 + i) for i in range(3)]
    ended = replace(made[1], finished_at=60.0)
    assert share_left(history([made[0], ended, made[2]]), Remaining(seconds=30.0)) == 0.75
    assert share_left(history([]), Remaining(seconds=30.0)) == 1.0


def test_cooling_buys_dearer_configurations_at_the_end() -> None:
    """Branin has three equal minima; the cost tells them apart."""
    done = history(spread_over_square(20, branin, cost=lambda x, y: math.exp(6 * x)))
    early, late = (
        suggest(ft.EIPerCost(), done, budget=Remaining(trials=left))[0] for left in (1e6 * len(done), 1e-3 * len(done))
    )
    assert early.predicted_cost is not None
    assert late.predicted_cost is not None
    assert early.predicted_cost.mean < 0.5 * late.predicted_cost.mean


def test_the_last_of_a_budget_is_spent_on_what_it_still_buys() -> None:
    space = ft.Space({"x": ft.Float(0, 1)})
    study = ft.Study(
        space,
        minimize="error",
        strategy=ft.EIPerCost(),
        cost=lambda params, fidelity: 1.0 + 20.0 * params["x"],
        cost_unit="dollars",
    )
    study.run(lambda trial: 1.0 - trial.params["x"], budget=ft.Budget(cost=60), executor="inline")
    assert 60 - 2 <= study.ledger.total <= 60, "money was left that would have bought a cheap trial"


@pytest.mark.parametrize("deviation", [0.1, 0.3])
def test_noise_is_taken_for_noise(deviation: float) -> None:
    """With lengthscales short enough every measurement is a peak of its own; that mode must not win."""
    space = ft.Space({"strong": ft.Float(0.01, 100, log=True), "weak": ft.Float(0, 1)})
    study = ft.Study(space, minimize="error", strategy=ft.Sobol())
    noise = np.random.default_rng(0)
    for trial in study.ask(count=64):
        value = np.log10(trial.params["strong"]) ** 2 + 0.05 * trial.params["weak"]
        study.tell(trial, value + deviation * noise.standard_normal())
    diagnosis = study.diagnose()
    assert diagnosis.importance["weak"] < 0.05
    assert deviation / 2 < diagnosis.noise < deviation * 2


# ---------------------------------------------------------------------------------------------------- branches

FORKED = ft.Space(
    {
        "branch": ft.Choice("shallow", "deep"),
        "s": ft.Float(0, 1, when={"branch": "shallow"}),
        "d": ft.Float(0, 1, when={"branch": "deep"}),
    }
)


def forked(*, stalled: bool) -> History:
    """Two bad looks into one branch, and a search of the other that found its minimum long ago, or is on its way."""
    deep: list[tuple[Params, float]] = [({"branch": "deep", "d": d}, 1.2) for d in (0.1, 0.9)]
    gaps = sorted(0.5 - 0.04 * i for i in range(12))
    gaps = gaps if stalled else gaps[::-1]
    shallow: list[tuple[Params, float]] = [
        ({"branch": "shallow", "s": 0.5 + (-1) ** i * gap}, 0.4 + gap**2) for i, gap in enumerate(gaps)
    ]
    return history([trial(i, params, value) for i, (params, value) in enumerate([*deep, *shallow])], FORKED)


@pytest.mark.parametrize("strategy", [ft.LogEI(), ft.EIPerCost()])
def test_a_stalled_search_looks_into_a_branch_that_looked_bad(strategy: Strategy) -> None:
    [elsewhere] = suggest(strategy, forked(stalled=True))
    assert elsewhere.params["branch"] == "deep"
    assert "stalled" in elsewhere.note["why"]
    [going_on] = suggest(strategy, forked(stalled=False))
    assert going_on.params["branch"] == "shallow"
    assert "why" not in going_on.note


def test_a_space_without_branches_has_nothing_else_to_look_into() -> None:
    values = [0.0, *np.linspace(0.1, 1.0, 30).tolist()]
    [going_on] = suggest(ft.LogEI(), history([trial(i, {"x": v, "y": 0.5}, v) for i, v in enumerate(values)]))
    assert "why" not in going_on.note
