"""Long studies: which runs and points are modelled."""

import numpy as np
import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.strategies import Randomness
from farthing.strategies.multifidelity.context import MOST_COMPARED, POINTS_IN_HASTE, read_context
from farthing.strategies.multifidelity.curve_model import observe_curves
from farthing.strategies.multifidelity.runs import MOST_POINTS, active_runs, runs_of, shares_better
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 32, integer=True, trace=True)})
BEST = 17


def error(x: float, epochs: float) -> float:
    return 0.1 + abs(x - 0.3) + 1.0 / epochs


def trial(number: int, x: float, epochs: int, state: State = State.DONE) -> Trial:
    suggestion = Suggestion({"x": x}, {"epochs": epochs})
    if state is not State.DONE:
        return Trial(number, suggestion, state)
    curve = tuple(
        Measurement(value=error(x, e), fidelity={"epochs": e}, cost={"training": 1.0}) for e in range(1, epochs + 1)
    )
    return Trial(number, suggestion, state, value=curve[-1].value, measurements=curve)


def study(runs: int) -> History:
    """Short runs and full ones by turns, on both sides of the best of them, a short one, and one in flight."""
    x = np.random.default_rng(0).uniform(0.1, 1.0, runs)
    x[x < 0.35] -= 0.1
    x[BEST] = 0.3
    trials = [trial(i, float(x[i]), 4 if i % 3 else 32) for i in range(runs)]
    return History(Problem(SPACE), [*trials, trial(runs, 0.5, 8, State.RUNNING)])


def test_few_runs_are_modelled_with_all_their_points() -> None:
    history = study(99)
    runs = runs_of(history)
    assert active_runs(history, runs, retain=4) == runs


@pytest.mark.parametrize("runs", [101, 250, 900])
def test_of_many_runs_the_model_has_a_bounded_number_of_points(runs: int) -> None:
    history = study(runs)
    active = active_runs(history, runs_of(history), retain=4)
    assert len(observe_curves(history, active, retain=4).loss) <= MOST_POINTS
    assert len(observe_curves(history, active, retain=4).loss) >= 0.9 * MOST_POINTS, "less than there is time for"
    assert active[-1].is_running, "what is in flight counts"
    [best] = [run for run in active if run.trials[0].number == BEST]
    assert not best.is_end_only
    assert [run.trials[0].number for run in active] == sorted(run.trials[0].number for run in active)


def test_a_short_run_is_compared_with_short_ones() -> None:
    """Its loss is above that of every full run, and yet it is the best of its length."""
    history = study(400)
    runs = runs_of(history)
    shares = shares_better(runs)
    assert shares[BEST] == 0.0
    assert error(0.3, 4) > min(history.loss(full.value or 0.0) for full in history.done)
    assert shares[-1] == 1.0, "nothing is known of what is in flight"
    worst = max((i for i in range(400) if i % 3), key=lambda i: history[i].params["x"])
    assert shares[worst] > 0.9


def test_suggestions_of_a_long_study_compare_a_bounded_number_of_runs_and_continue_the_best() -> None:
    history = study(300)
    context = read_context(ft.TraceKG(), history, Randomness(0), ())
    assert context is not None
    assert context.model.gp.n <= MOST_POINTS
    assert len(context.basket.places) == MOST_COMPARED
    assert len(context.recommendable) == MOST_COMPARED
    assert BEST in {context.runs[place].trials[0].number for place in context.basket.places}
    [suggestion] = ft.TraceKG().suggest(history, Remaining(), 1, Randomness(0))
    assert suggestion.params["x"] == pytest.approx(0.3, abs=0.15)
    best = ft.TraceKG().recommend(history.updated([trial(301, 0.3, 32)], version=1))
    assert best is not None
    assert best.params == {"x": 0.3}


def test_in_haste_the_model_has_fewer_points_and_the_best_run_among_them() -> None:
    """A fit takes the cube of their number, and all workers wait for it."""
    history = study(300)
    context = read_context(ft.TraceKG(), history, Randomness(0), (), effort="several")
    assert context is not None
    assert 0.9 * POINTS_IN_HASTE <= context.model.gp.n <= POINTS_IN_HASTE
    [best] = [run for run in context.runs if run.trials[0].number == BEST]
    assert not best.is_end_only
