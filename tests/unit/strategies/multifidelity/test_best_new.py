"""Where to begin: the maximum of expected improvement at full fidelity."""

import numpy as np

import farthing as ft
from farthing.acquisition.acquisition import FixedFeatures, PosteriorMean
from farthing.acquisition.expected_improvement import LogExpectedImprovement
from farthing.strategies import Randomness
from farthing.strategies.multifidelity.context import MOST_PENDING, CurveContext, read_context
from farthing.strategies.multifidelity.screening import best_new, offered
from farthing.trials import History, Measurement, Params, Problem, State, Suggestion, Trial

EPOCHS = ft.Fidelity(1, 27, integer=True, trace=True)
NUMBERS = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)}, fidelities={"epochs": EPOCHS})
CHOICES = ft.Space({"kind": ft.Choice("a", "b", "c"), "size": ft.Int(1, 4)}, fidelities={"epochs": EPOCHS})


def slope(params: Params, epochs: float) -> float:
    """Lowest in the corner (1, 1)."""
    return float(2.0 - params["x"] - params["y"] + 1.0 / epochs)


def context_of(space: ft.Space, many: list[Params], losses: list[float], *, running: int = 0) -> CurveContext:
    """All of them trained for nine epochs; the last `running` are not done yet."""
    ended = len(many) - running
    trials = [
        Trial(
            number,
            Suggestion(params, {"epochs": 9}),
            State.DONE if number < ended else State.RUNNING,
            measurements=(Measurement(cost={"training": 9.0}, charged=True),) if number < ended else (),
            value=loss if number < ended else None,
        )
        for number, (params, loss) in enumerate(zip(many, losses, strict=True))
    ]
    found = read_context(ft.TraceKG(), History(Problem(space), trials), Randomness(0), ())
    assert found is not None
    return found


def on_a_slope(count: int = 12, **options: int) -> CurveContext:
    drawn = NUMBERS.encoder.decode_unit(np.random.default_rng(0).random((count, 2)))
    return context_of(NUMBERS, drawn, [slope(params, 9) for params in drawn], **options)


def test_a_border_is_reached_where_the_best_lies_on_it() -> None:
    np.testing.assert_allclose(best_new(on_a_slope()), [[1.0, 1.0]], atol=1e-6)


def test_a_corner_that_was_begun_is_not_begun_again() -> None:
    corner = {"x": 1.0, "y": 1.0}
    known = [*NUMBERS.encoder.decode_unit(np.random.default_rng(0).random((11, 2))), corner]
    context = context_of(NUMBERS, known, [slope(params, 9) for params in known])
    assert not context.bought.knows(best_new(context)).any()


def test_nothing_that_is_drawn_promises_more() -> None:
    context = on_a_slope()
    gp = context.processes[0][0]
    improvement = LogExpectedImprovement(gp, float(context.mean(context.seen).min()))
    drawn = np.random.default_rng(1).random((2000, 2))
    best = improvement(context.at_full(best_new(context)))[0]
    assert best >= improvement(context.at_full(drawn)).max() - 1e-6


def test_what_is_in_flight_is_not_begun_again() -> None:
    context = on_a_slope(running=3)
    assert len(context.processes[0]) > 1
    gap = np.abs(best_new(context) - context.pending.X).max(axis=1)
    assert gap.min() > 1e-3


def test_results_are_drawn_for_the_latest_in_flight_only() -> None:
    few, many = (
        on_a_slope(MOST_PENDING + 20, running=MOST_PENDING),
        on_a_slope(MOST_PENDING + 60, running=MOST_PENDING + 40),
    )
    assert len(many.pending) == MOST_PENDING + 40
    assert many._pending_rows.shape == few._pending_rows.shape
    np.testing.assert_array_equal(many._pending_rows[-1, :2], many.pending.X[-1])


def test_of_few_configurations_one_that_was_not_begun_is_chosen() -> None:
    every = [{"kind": kind, "size": size} for kind in "abc" for size in range(1, 5)]
    begun, left = every[:-1], every[-1]
    context = context_of(CHOICES, begun, [float(i) for i in range(len(begun))], running=2)
    assert CHOICES.encoder.decode(best_new(context)) == [left]


def test_it_is_offered_at_every_level_beside_the_paused_runs() -> None:
    context = on_a_slope()
    candidates = offered(context, may_be_new=True)
    new = candidates.picked(candidates.source < 0)
    assert len(new) == len(context.grid)
    assert np.unique(new.X, axis=0).shape == (1, 2)
    assert set(candidates.source.tolist()) == {-1, *range(12)}
    assert not np.any(offered(context, may_be_new=False).source < 0)


def test_at_full_fidelity_has_the_slopes_of_differences() -> None:
    context = on_a_slope()
    gp = context.processes[0][0]
    X, step = np.random.default_rng(2).random((5, 2)), 1e-5
    for acquisition in (PosteriorMean(gp, sign=-1.0), LogExpectedImprovement(gp, 0.0)):
        at_full = FixedFeatures(acquisition, (1.0,))
        value, gradient = at_full.value_and_gradient(X)
        np.testing.assert_allclose(value, acquisition(np.hstack([X, np.ones((5, 1))])))
        for j in range(2):
            move = step * np.eye(2)[j]
            np.testing.assert_allclose(
                gradient[:, j], (at_full(X + move) - at_full(X - move)) / (2 * step), rtol=1e-4, atol=1e-6
            )
