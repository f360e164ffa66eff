import json
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

import farthing as ft
from farthing.costs import Budget, Remaining
from farthing.errors import InvalidArgument
from farthing.strategies import Randomness
from farthing.strategies.multifidelity.curve_model import fit_curves
from farthing.strategies.multifidelity.runs import runs_of
from farthing.trials import Failure, History, Measurement, Params, Problem, State, Suggestion, Trial

EPOCHS = ft.Fidelity(1, 27, integer=True, trace=True)
PARAMS: dict[str, ft.Float | ft.Int | ft.Choice] = {
    "rate": ft.Float(1e-4, 1.0, log=True),
    "width": ft.Int(1, 8),
    "kind": ft.Choice("plain", "gated"),
    "gate": ft.Float(0, 1, when={"kind": "gated"}),
}
CURVES = ft.Space(PARAMS, fidelities={"epochs": EPOCHS})
CURVES_AND_DATA = ft.Space(PARAMS, fidelities={"epochs": EPOCHS, "data": ft.Fidelity(0.1, 1.0)})
DATA = ft.Space(PARAMS, fidelities={"data": ft.Fidelity(0.1, 1.0)})
SPACES = (CURVES, CURVES_AND_DATA, DATA)
STRATEGIES = (
    ft.TraceKG(),
    ft.TraceKG.paper(samples=2),
    ft.TraceKG.paper(samples=1, zero_avoiding=False, retain=1),
    ft.TraceKG(fidelity_kernel="matern"),
)


def error(params: Params, fidelity: Mapping[str, float]) -> float:
    """Falls with training and with data; the best rate is 0.03."""
    misfit = (math.log10(params["rate"]) + 1.5) ** 2 / 4 + 0.05 * abs(params["width"] - 5)
    misfit += 0.1 if params["kind"] == "plain" else 0.2 * (params["gate"] - 0.3) ** 2
    return float(0.05 + misfit + 0.5 / fidelity.get("epochs", 27) + 0.3 * (1.0 - fidelity.get("data", 1.0)))


def work(params: Params, fidelity: Mapping[str, float]) -> float:
    return float(fidelity.get("epochs", 1) * fidelity.get("data", 1.0) * (1.0 + params["width"]))


def run(
    strategy: ft.TraceKG,
    space: ft.Space = CURVES,
    *,
    trials: int,
    cost: Callable[..., float] = work,
    budget: Budget | None = None,
    saves: bool = True,
    minimize: bool = True,
) -> History:
    """A study told curve by curve; a continuation pays the difference, or everything where nothing was kept."""
    history = History(Problem(space, minimize=minimize))
    sign = 1.0 if minimize else -1.0
    while len(history) < trials:
        left = Remaining() if budget is None else budget.remaining(history, seconds=0.0)
        for suggestion in strategy.suggest(history, left, 1, Randomness(0)):
            begun = {} if suggestion.resume_from is None else history[suggestion.resume_from].fidelity
            paid = cost(suggestion.params, suggestion.fidelity)
            paid -= cost(suggestion.params, begun) if begun and saves else 0.0
            history = history.updated([told(len(history), suggestion, paid, begun, sign)], version=len(history))
            break
        else:
            return history
    return history


def told(number: int, suggestion: Suggestion, paid: float, begun: Mapping[str, float], sign: float) -> Trial:
    last = int(suggestion.fidelity.get("epochs", 1))
    points = [
        Measurement(value=sign * error(suggestion.params, at), fidelity=at)
        for epoch in range(int(begun.get("epochs", 0)) + 1, last + 1)
        for at in [{**suggestion.fidelity, "epochs": epoch} if "epochs" in suggestion.fidelity else suggestion.fidelity]
    ]
    end = Measurement(value=points[-1].value, fidelity=suggestion.fidelity, cost={"training": paid}, charged=True)
    return Trial(number, suggestion, State.DONE, measurements=(*points[:-1], end), value=end.value)


def suggest(
    strategy: ft.TraceKG, history: History, count: int = 1, *, budget: Remaining | None = None
) -> Sequence[Suggestion]:
    return strategy.suggest(history, budget or Remaining(), count, Randomness(0))


# ------------------------------------------------------------------------------------------------------ behaviour


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_search_suggests_what_can_be_run_on_every_kind_of_space(strategy: ft.TraceKG, space: ft.Space) -> None:
    history = run(strategy, space, trials=9)
    for trial in history:
        assert space.check(trial.params) == trial.params
        assert space.check_fidelity(trial.fidelity) == trial.fidelity
        assert json.loads(json.dumps(trial.note)) == trial.note
    best = strategy.recommend(history)
    assert best is not None
    assert best.predicted is not None
    assert space.check(best.params) == best.params


def test_it_finds_a_good_configuration_for_the_price_of_a_few_full_trainings() -> None:
    full = work({"width": 4.5}, {"epochs": 27})
    history = run(ft.TraceKG(), trials=200, budget=Budget(cost=6 * full))
    best = ft.TraceKG().recommend(history)
    assert best is not None
    random = np.median([error(params, {}) for params in drawn(200)])
    lowest = 0.05 + 0.5 / 27
    assert error(best.params, {}) - lowest < 0.2 * (random - lowest)
    assert history.cost <= 6 * full * 1.1  # a prediction may be a little low


def drawn(count: int) -> list[Params]:
    return list(CURVES.encoder.decode_unit(np.random.default_rng(0).random((count, 4))))


def test_runs_are_carried_on_from_where_they_stopped() -> None:
    history = run(ft.TraceKG(), trials=40)
    continued = [trial for trial in history if trial.resume_from is not None]
    assert len(continued) >= 5
    for trial in continued:
        source = history[trial.resume_from or 0]
        assert trial.params == source.params
        assert trial.fidelity["epochs"] > source.fidelity["epochs"]
    sources = [trial.resume_from for trial in continued]
    assert len(sources) == len(set(sources)), "a run goes on from its end, which is no longer one afterwards"


def test_the_predicted_cost_of_a_continuation_is_that_of_its_new_part() -> None:
    history = run(ft.TraceKG(), trials=40)
    late = [trial for trial in history[20:] if trial.suggestion.predicted_cost]
    ratios = [trial.suggestion.predicted_cost.mean / trial.cost for trial in late if trial.suggestion.predicted_cost]
    assert 0.7 < np.median(ratios) < 1.4


def test_where_continuing_saves_nothing_it_is_priced_in_full() -> None:
    history = run(ft.TraceKG(), trials=40, saves=False)
    late = [trial for trial in history[25:] if trial.resume_from is not None and trial.suggestion.predicted_cost]
    for trial in late:
        assert trial.suggestion.predicted_cost is not None
        assert trial.suggestion.predicted_cost.mean == pytest.approx(trial.cost, rel=0.5)


def test_a_run_in_flight_is_not_offered_again_and_batches_hold_different_evaluations() -> None:
    history = run(ft.TraceKG(), trials=20)
    for strategy in (ft.TraceKG(), ft.TraceKG.paper()):
        batch = suggest(strategy, history, 4)
        assert len({json.dumps([one.params, one.fidelity]) for one in batch}) == 4
        sources = [one.resume_from for one in batch if one.resume_from is not None]
        assert len(sources) == len(set(sources))
    running = [Trial(20 + i, one, State.RUNNING) for i, one in enumerate(suggest(ft.TraceKG(), history, 4))]
    taken = {one.suggestion.resume_from for one in running} - {None}
    later = suggest(ft.TraceKG(), history.updated(running, version=99), 4)
    assert not taken & {one.resume_from for one in later}


def test_nothing_is_suggested_that_costs_more_than_is_left() -> None:
    history = run(ft.TraceKG(), trials=15)
    for left in (200.0, 20.0, 5.0, 0.5, 1e-3):
        batch = suggest(ft.TraceKG(), history, 3, budget=Remaining(cost=left))
        assert sum(one.predicted_cost.mean for one in batch if one.predicted_cost) <= left


def test_it_begins_with_short_looks_and_more_of_the_best_third_of_them() -> None:
    starts = [trial for trial in run(ft.TraceKG(), trials=16) if "theta" not in trial.note]
    looks = [trial for trial in starts if trial.resume_from is None]
    assert len(looks) == 8
    assert {trial.fidelity["epochs"] for trial in looks} == {1}
    continued = [trial for trial in starts if trial.resume_from is not None]
    assert len(continued) >= 2
    assert all(trial.fidelity["epochs"] > 1 for trial in continued)


def test_elsewhere_the_start_takes_at_most_half_of_the_budget() -> None:
    """Where a fidelity is no trace, nothing can be continued: starts have one size."""
    sizes = ft.Space({"rate": ft.Float(0, 1)}, fidelities={"data": ft.Fidelity(0.1, 1.0)})
    done = [
        Trial(
            0,
            Suggestion({"rate": 0.5}, {"data": 0.13}, note={"why": "a start: nothing is known yet"}),
            State.DONE,
            value=1.0,
            measurements=(Measurement(value=1.0, cost={"training": 80.0}, charged=True, fidelity={"data": 0.13}),),
        )
    ]
    history = History(Problem(sizes), done)
    left = Budget(cost=200.0).remaining(history, seconds=0.0)
    [dear] = ft.TraceKG().suggest(history, left, 1, Randomness(0))
    [cheap] = ft.TraceKG().suggest(history, Remaining(cost=1e6), 1, Randomness(0))
    assert "theta" in dear.note
    assert cheap.note["why"].startswith("a start")


def test_a_declared_cost_is_used_as_it_is() -> None:
    history = run(ft.TraceKG(), trials=12)
    declared = History(Problem(CURVES, declared_cost=work), list(history))
    [one] = suggest(ft.TraceKG(), declared)
    assert one.predicted_cost is not None
    assert one.predicted_cost.mean == pytest.approx(work(one.params, one.fidelity)), "no checkpoint, so all is paid"


def test_failures_are_avoided_and_do_not_stop_it() -> None:
    history = run(ft.TraceKG(), trials=12)
    failed = [
        Trial(12 + i, Suggestion({"rate": 0.9, "width": 8, "kind": "plain"}, {"epochs": 9}), State.FAILED)
        for i in range(4)
    ]
    [one] = suggest(ft.TraceKG(), history.updated(failed, version=99))
    assert one.params["rate"] < 0.5


def diverging(history: History, run: int) -> History:
    """The history with one more trial: the run was continued, and its value was no number."""
    further = Suggestion(history[run].params, {**history[run].fidelity, "epochs": 27}, resume_from=run)
    return history.updated([Trial(len(history), further, State.FAILED, failure=Failure("value is nan"))], version=999)


def test_a_run_that_diverged_later_is_neither_recommended_nor_continued() -> None:
    history = run(ft.TraceKG(), trials=12)
    best = ft.TraceKG().recommend(history)
    assert best is not None
    assert best.trial is not None
    chain = {trial.number for trial in history if trial.params == best.params}
    broken = diverging(history, best.trial.number)
    after = ft.TraceKG().recommend(broken)
    assert after is not None
    assert after.params != best.params
    assert best.params not in [one.params for one in after.ranking]
    assert all(one.resume_from not in chain for one in suggest(ft.TraceKG(), broken, 4))


@pytest.mark.parametrize(("epochs", "is_recommended"), [(2, False), (27, True)])
def test_another_run_of_a_configuration_that_diverged_must_have_come_as_far(epochs: int, is_recommended: bool) -> None:
    history = run(ft.TraceKG(), trials=12)
    best = ft.TraceKG().recommend(history)
    assert best is not None
    assert best.trial is not None
    broken = diverging(history, best.trial.number)
    fidelity = {"epochs": epochs}
    again = Trial(len(broken), Suggestion(best.params, fidelity), State.DONE, value=error(best.params, fidelity))
    after = ft.TraceKG().recommend(broken.updated([again], version=9999))
    assert after is not None
    assert (best.params in [one.params for one in after.ranking]) == is_recommended


def test_where_every_run_diverged_one_is_recommended_all_the_same() -> None:
    history = run(ft.TraceKG(), trials=1)
    best = ft.TraceKG().recommend(diverging(history, 0))
    assert best is not None
    assert best.params == history[0].params


def test_values_that_are_maximised_are_understood() -> None:
    history = run(ft.TraceKG(), trials=25, minimize=False)
    best = ft.TraceKG().recommend(history)
    assert best is not None
    assert best.predicted is not None
    assert best.predicted.mean == pytest.approx(-error(best.params, {}), abs=0.3)
    assert best.predicted.mean < 0.0


def test_the_note_says_why() -> None:
    history = run(ft.TraceKG(), trials=15)
    note = history[-1].note
    assert note["form"] in ("taKG", "taKG0")
    assert note["information_per_cost"] >= 0.0
    assert "epochs" in note["why"]


def test_the_form_depends_on_whether_cost_and_information_vanish_together() -> None:
    """A start that costs as much as the rest is no temptation."""
    fixed = run(ft.TraceKG(), trials=14, cost=lambda params, fidelity: 100.0 + fidelity["epochs"])
    assert fixed[-1].note["form"] == "taKG"
    assert run(ft.TraceKG(), trials=14)[-1].note["form"] == "taKG0"


def test_the_same_history_gives_the_same_suggestion() -> None:
    history = run(ft.TraceKG.paper(), trials=12)
    assert suggest(ft.TraceKG.paper(), history, 2) == suggest(ft.TraceKG.paper(), history, 2)


# ------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"zero_avoiding": "yes"}, "zero_avoiding must be true or false or 'auto'"),
        ({"retain": 0}, "retain must be a whole number ≥ 1"),
        ({"floor": 2.0}, "floor must be a number from 0 to 1"),
        ({"batch_cost": "mean"}, "batch_cost must be 'max' or 'sum'"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        ft.TraceKG(**arguments)  # type: ignore[arg-type]


def test_a_space_without_fidelities_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least one fidelity"):
        suggest(ft.TraceKG(), History(Problem(ft.Space(PARAMS))))


# ------------------------------------------------------------------------------------------------------- gradients

SLOPED = ft.Space(
    {"rate": ft.Float(1e-3, 1.0, log=True), "shift": ft.Float(-2, 2)}, fidelities={"data": ft.Fidelity(0.1, 1)}
)


def bowl(params: Params, fidelity: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """A loss and its gradient, in the params' own units."""
    x, y = math.log(params["rate"]) + 3.0, params["shift"] - 0.5
    loss = 1.0 + x**2 + 0.5 * y**2 + 0.3 * (1.0 - fidelity["data"])
    return loss, {"rate": 2.0 * x / params["rate"], "shift": y}


def sloped_history(*, slopes: bool, trials: int = 6) -> History:
    history = History(Problem(SLOPED))
    for number in range(trials):
        [one] = suggest(ft.TraceKG(), history)
        value, gradient = bowl(one.params, one.fidelity)
        point = Measurement(
            value=value, fidelity=one.fidelity, gradient=gradient if slopes else None, cost={"training": 1.0}
        )
        made = Trial(number, one, State.DONE, measurements=(point,), value=value)
        history = history.updated([made], version=number)
    return history


def test_slopes_enter_the_model_in_its_own_units() -> None:
    history = sloped_history(slopes=True)
    model = fit_curves(history, runs_of(history), retain=2, fidelity_kernel="curves")
    assert model is not None
    assert model.sloped_columns == (0, 1)
    encoder, step = SLOPED.encoder, 1e-6
    X = encoder.encode([trial.params for trial in history])
    for j in (0, 1):
        moved = X.copy()
        moved[:, j] += step
        there = [bowl(params, trial.fidelity)[0] for params, trial in zip(encoder.decode(moved), history, strict=True)]
        here = [bowl(trial.params, trial.fidelity)[0] for trial in history]
        seen = [model.standard.apply(model.scale.apply(np.array(losses))) for losses in (here, there)]
        slopes = model.gp.y[model.gp.along == j]
        np.testing.assert_allclose(slopes, (seen[1] - seen[0]) / step, rtol=1e-3, atol=1e-3)


def test_with_slopes_the_same_trials_tell_more() -> None:
    rows = np.hstack([np.random.default_rng(0).random((200, 2)), np.ones((200, 1))])
    truth = np.array([bowl(params, {"data": 1.0})[0] for params in SLOPED.encoder.decode(rows[:, :2])])

    def misfit(slopes: bool) -> float:
        history = sloped_history(slopes=slopes, trials=5)
        model = fit_curves(history, runs_of(history), retain=2, fidelity_kernel="curves")
        assert model is not None
        expected = model.standard.apply(model.scale.apply(truth))
        return float(np.sqrt(np.mean((model.gp.mean(rows) - expected) ** 2)))

    assert misfit(slopes=True) < 0.7 * misfit(slopes=False)


def test_the_ascent_takes_slopes_into_account() -> None:
    [one] = suggest(ft.TraceKG.paper(), sloped_history(slopes=True))
    assert SLOPED.check(one.params) == one.params


@pytest.mark.parametrize(("epochs", "recommended"), [(4, 0.6), (14, 0.6), (18, 0.5)])
def test_along_a_trace_the_best_measured_run_is_recommended_whatever_is_predicted(
    epochs: int, recommended: float
) -> None:
    """Accuracies: a run between two good ones is predicted to become better than both, and is after 18 of 20 epochs."""
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)})
    ends = {0.2: 0.5, 0.4: 0.68, 0.6: 0.7, 0.8: 0.5}
    full = [_trained(number, x, to=20, end=end) for number, (x, end) in enumerate(ends.items())]
    history = History(Problem(space, minimize=False), [*full, _trained(len(full), 0.5, to=epochs, end=0.8)])
    best = ft.TraceKG().recommend(history)
    assert best is not None
    by_model = max(best.ranking, key=lambda one: one.predicted.mean if one.predicted else 0.0)
    assert by_model.params == {"x": 0.5}
    assert best.params == {"x": recommended}


@pytest.mark.parametrize(("carried_on_rise", "recommended"), [(True, 0.4), (False, 0.8)])
def test_a_lucky_beginning_is_weighed_with_how_others_went_on_from_there(
    carried_on_rise: bool, recommended: float
) -> None:
    """The error of the first questions: those that began as well as the last one end at 0.2 or more, or stayed."""
    ends = {0.2: 0.25, 0.4: 0.2, 0.6: 0.3}
    rise = 0.15 if carried_on_rise else 0.0
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)})
    full = [_on_a_line(number, x, end - rise, end, to=20) for number, (x, end) in enumerate(ends.items())]
    history = History(Problem(space), [*full, _on_a_line(len(full), 0.8, 0.1, 0.1, to=2)])
    best = ft.TraceKG().recommend(history)
    assert best is not None
    assert best.params == {"x": recommended}
    assert [one.params["x"] for one in best.ranking][1] == (0.2 if carried_on_rise else 0.4)


def _on_a_line(number: int, x: float, begin: float, end: float, *, to: int) -> Trial:
    """Flat for two epochs."""
    values = [begin + (end - begin) * max(0, epoch - 2) / 18 for epoch in range(1, to + 1)]
    points = tuple(Measurement(value=value, fidelity={"epochs": epoch}) for epoch, value in enumerate(values, 1))
    return Trial(number, Suggestion({"x": x}, {"epochs": to}), State.DONE, measurements=points, value=points[-1].value)


def _trained(number: int, x: float, *, to: int, end: float) -> Trial:
    points = tuple(Measurement(value=end * epoch / 20, fidelity={"epochs": epoch}) for epoch in range(1, to + 1))
    suggestion = Suggestion({"x": x}, {"epochs": to})
    return Trial(number, suggestion, State.DONE, measurements=points, value=points[-1].value)
