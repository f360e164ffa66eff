import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import farthing as ft
from farthing.strategies.multifidelity.basket import Basket, continuing_saves
from farthing.strategies.multifidelity.context import cost_of_runs, told_by_zero
from farthing.strategies.multifidelity.curve_model import fit_curves, observe_curves, retained
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.loss_scale import LogError, LogOdds, loss_scale
from farthing.strategies.multifidelity.runs import runs_of
from farthing.strategies.shared.surrogate import Compression
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)})
TWO = ft.Space(
    {"x": ft.Float(0, 1)},
    fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True), "data": ft.Fidelity(0.1, 1)},
)


def part(
    number: int,
    *,
    x: float = 0.5,
    begun: int = 0,
    to: int,
    source: int | None = None,
    cost: float = 1.0,
    checkpoint: str | None = None,
    state: State = State.DONE,
) -> Trial:
    """A trial that trains x further; its loss is 1/(1 + epoch) + x."""
    points = [Measurement(value=1 / (1 + e) + x, fidelity={"epochs": e}) for e in range(begun + 1, to + 1)]
    paid = Measurement(cost={"training": cost}, charged=True)
    ended = state is State.DONE
    return Trial(
        number,
        Suggestion({"x": x}, {"epochs": to}, resume_from=source),
        state,
        measurements=(*points, paid) if ended else (),
        value=points[-1].value if ended else None,
        checkpoint=checkpoint,
    )


def history(*trials: Trial, space: ft.Space = SPACE) -> History:
    return History(Problem(space), trials)


# ----------------------------------------------------------------------------------------------------------- runs


def test_trials_that_carry_each_other_on_are_one_curve() -> None:
    found = history(
        part(0, to=2), part(1, x=0.1, to=3), part(2, begun=2, to=5, source=0), part(3, begun=5, to=9, source=2)
    )
    first, second = runs_of(found)
    assert [trial.number for trial in first.trials] == [0, 2, 3]
    assert [point.fidelity["epochs"] for point in first.curve] == [*range(1, 10)]
    assert first.last is found[3]
    assert second.last is found[1]
    assert first.reached.tolist() == [9 / 20]


def test_a_curve_enters_at_its_middle_and_its_end() -> None:
    [run] = runs_of(history(part(0, to=4), part(1, begun=4, to=12, source=0)))
    assert [point.fidelity["epochs"] for point in retained([run], 2)[0]] == [6, 12]
    assert [point.fidelity["epochs"] for point in retained([run], 3)[0]] == [4, 8, 12]
    assert [point.fidelity["epochs"] for point in retained([run], 1)[0]] == [12]


def test_the_points_that_a_suggestion_chose_are_kept() -> None:
    trial = part(0, to=10)
    chosen = Suggestion(trial.params, trial.fidelity, note={"retained": [[0.16], [0.5]]})
    [run] = runs_of(history(Trial(0, chosen, State.DONE, measurements=trial.measurements, value=trial.value)))
    assert [point.fidelity["epochs"] for point in retained([run], 2)[0]] == [3, 10]


def test_a_curve_that_is_short_enters_once() -> None:
    [run] = runs_of(history(part(0, to=1)))
    assert len(retained([run], 2)[0]) == 1


def test_failures_stand_in_with_the_worst_loss_where_they_were_to_get() -> None:
    found = history(part(0, to=4), part(1, x=0.9, to=7, state=State.FAILED))
    seen = observe_curves(found, runs_of(found), retain=2)
    assert seen.Z[-1].tolist() == [0.9, 7 / 20]
    assert seen.loss[-1] == pytest.approx(1 / 2 + 0.5)


@pytest.mark.parametrize("paid", [0.0, 0.5, 1.0, 3.0])
def test_what_starting_again_takes_is_seen_from_what_continuations_paid(paid: float) -> None:
    """A run to epoch e of 20 costs 2 + e, 2 of it for starting; continuations pay some of that once more."""
    begun = [part(i, x=i / 10, to=e, cost=2.0 + e) for i, e in enumerate((2, 4, 8, 12, 16, 20))]
    gone_on = [part(6 + i, x=i / 10, begun=e, to=e + 5, source=i, cost=5 + 2 * paid) for i, e in enumerate((2, 4, 8))]
    cost = cost_of_runs(history(*begun, *gone_on), runs_of(history(*begun, *gone_on)))
    X, S, stands = np.array([[0.5]]), np.array([[0.45]]), np.array([[0.4]])
    assert cost(X, S, np.zeros((1, 1)))[0] == pytest.approx(2.0 + 9.0, rel=0.05)
    assert cost(X, S, stands)[0] == pytest.approx(2.0 * paid + 1.0, rel=0.05)


def test_a_continuation_is_priced_with_the_set_up_of_a_start_until_one_was_seen() -> None:
    begun = [part(i, x=i / 10, to=e, cost=2.0 + e) for i, e in enumerate((2, 4, 8, 12, 16, 20))]
    cost = cost_of_runs(history(*begun), runs_of(history(*begun)))
    assert cost(np.array([[0.5]]), np.array([[0.45]]), np.array([[0.4]]))[0] == pytest.approx(2.0 + 1.0, rel=0.05)


# --------------------------------------------------------------------------------------------------------- basket


def test_the_basket_holds_paused_runs_only() -> None:
    found = history(
        part(0, to=3),
        part(1, x=0.2, to=20),
        part(2, x=0.3, to=5),
        part(3, x=0.3, begun=5, to=9, source=2, state=State.RUNNING),
        part(4, x=0.4, to=2, state=State.FAILED),
        part(5, x=0.6, to=4),
    )
    basket = Basket.of(found, runs_of(found), Fidelities(SPACE))
    assert [basket.runs[place].params["x"] for place in basket.places] == [0.5, 0.6]
    assert basket.last_trials == {0, 5}
    assert [basket.runs[place].params["x"] for place in basket.best(np.array([1.0, 2.0]), 1).places] == [0.6]
    assert Basket.of(found, runs_of(found), Fidelities(SPACE), taken={0}).places == (4,)


@pytest.mark.parametrize(("cost", "saves"), [(6.0, True), (10.0, False)])
def test_whether_continuing_saves_is_seen_from_what_it_cost(cost: float, saves: bool) -> None:
    found = history(part(0, to=4, cost=4.0), part(1, begun=4, to=10, source=0, cost=cost))
    assert continuing_saves(found) == saves
    assert continuing_saves(history(part(0, to=4)))


def test_a_study_with_checkpoints_continues_from_those_only() -> None:
    found = history(part(0, to=4, checkpoint="saved"), part(1, x=0.1, to=4))
    basket = Basket.of(found, runs_of(found), Fidelities(SPACE))
    assert [basket.begun(place).tolist() for place in basket.places] == [[0.2], [0.0]]


# --------------------------------------------------------------------------------------------------------- levels


def test_levels_are_geometric_from_two_steps_to_all() -> None:
    levels = (20 * Fidelities(SPACE).grid()[:, 0]).round().astype(int).tolist()
    assert levels[0] == 2
    assert levels[-1] == 20
    assert 4 <= len(levels) <= 10
    assert (20 * Fidelities(SPACE).grid(0.4)[:, 0]).min() >= 8 - 1e-9


def test_a_continuation_keeps_what_is_no_trace() -> None:
    fidelities = Fidelities(TWO)
    further = fidelities.further(fidelities.grid(), np.array([0.25, 0.4]))
    assert np.all(further[:, 1] == 0.4)
    assert np.all(further[:, 0] > 0.25)
    assert fidelities.further(fidelities.grid(), np.array([1.0, 0.4])).shape == (0, 2)


# ----------------------------------------------------------------------------------------------------- loss scale


def test_errors_are_seen_on_a_logarithmic_scale() -> None:
    assert isinstance(loss_scale(np.array([0.1, 0.5, 2.0])), LogError)


@pytest.mark.parametrize(("losses", "whole"), [([-0.9, -0.5, -0.2], 1.0), ([-93.0, -40.0, -60.0], 100.0)])
def test_maximised_shares_are_seen_as_odds(losses: list[float], whole: float) -> None:
    scale = loss_scale(np.array(losses))
    assert isinstance(scale, LogOdds)
    assert scale.whole == whole


def test_low_accuracies_are_told_apart_and_failures_are_not() -> None:
    """Of a thousand classes: what learns fast, what learns slowly, what has diverged, and two trained to the end."""
    fast, slow, diverged, *_ = loss_scale(-np.array([0.155, 0.012, 0.001, 0.02, 0.3, 0.7])).apply(
        -np.array([0.155, 0.012, 0.001])
    )
    assert slow - fast > 0.8, "by the logarithm of the error alone .16"
    assert diverged - slow < 0.2 * (slow - fast)


@pytest.mark.parametrize("losses", [[0.1, 0.5, 2.0], [-0.9, -0.5, -0.2]])
def test_no_prediction_is_better_than_perfect(losses: list[float]) -> None:
    y = np.array(losses)
    assert loss_scale(y).undo(np.array([-50.0]))[0] == (0.0 if y[0] > 0.0 else -1.0)


@pytest.mark.parametrize("losses", [[-3.0, 1.0, 2.0], [1.0, 1.1, 1.2], [-500.0, -20.0], [0.0, 0.0], [7.0], []])
def test_other_losses_are_compressed(losses: list[float]) -> None:
    assert isinstance(loss_scale(np.array(losses)), Compression)


@given(st.one_of(st.lists(st.floats(*ends), min_size=2, max_size=20) for ends in [(1e-3, 1e3), (-0.99, -1e-3)]))
def test_a_loss_comes_back_from_its_scale(losses: list[float]) -> None:
    y = np.array(losses)
    scale = loss_scale(y)
    np.testing.assert_allclose(scale.undo(scale.apply(y)), y, rtol=1e-6, atol=1e-9)
    step = 1e-6 * np.abs(y)
    slopes = 2.0 * step / (scale.apply(y + step) - scale.apply(y - step))
    if not isinstance(scale, Compression):
        np.testing.assert_allclose(scale.slope(scale.apply(y)), slopes, rtol=1e-3)


# ------------------------------------------------------------------------------------------------------ the model


def test_what_zero_tells_about_the_end_is_a_correlation() -> None:
    found = history(*(part(i, x=i / 8, to=4 + i) for i in range(8)))
    model = fit_curves(found, runs_of(found), retain=2, fidelity_kernel="curves")
    assert model is not None
    told = told_by_zero(model.gp, Fidelities(SPACE), np.array([[0.5]]))
    K = model.gp.kernel.evaluate(model.gp.theta, np.array([[0.5, 0.0], [0.5, 1.0]])).K
    assert told == pytest.approx(K[0, 1] ** 2 / (K[0, 0] * K[1, 1]))


def test_a_fit_is_kept_until_there_is_much_more_to_fit() -> None:
    note = {"theta": [0.0] * 8, "fitted_on": 10}
    trials = [part(i, x=i / 12, to=4) for i in range(11)]
    noted = Suggestion(trials[-1].params, trials[-1].fidelity, note=note)
    trials[-1] = Trial(10, noted, State.DONE, measurements=trials[-1].measurements, value=trials[-1].value)
    kept = fit_curves(history(*trials), runs_of(history(*trials)), retain=2, fidelity_kernel="curves")
    assert kept is not None
    assert kept.note() == note
    more = history(*trials, part(11, x=0.95, to=4))
    fitted = fit_curves(more, runs_of(more), retain=2, fidelity_kernel="curves")
    assert fitted is not None
    assert fitted.fitted_on == 12
