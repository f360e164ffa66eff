"""PB2 (Parker-Holder, Nguyen, Roberts, 2020): its equations, its rules, and what of it is read otherwise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.acquisition.acquisition import with_columns
from farthing.acquisition.confidence_bound import ConfidenceBound, pb2_beta
from farthing.costs import Remaining
from farthing.extending import Randomness, Strategy
from farthing.models.fitting import HyperparameterPosterior, fit
from farthing.models.gp import condition
from farthing.models.kernels import SE, Constant
from farthing.models.linalg import Array
from farthing.strategies.population.members import Members
from farthing.strategies.population.model import (
    MOST_ROWS,
    Picking,
    chance_of_better,
    fit_changes,
    kernel_over,
    observed_changes,
)
from farthing.strategies.population.strategy import Replacement, RunningParams
from farthing.trials import History, Problem, State, Suggestion, Trial

STEPS = {"steps": ft.Fidelity(1, 10, integer=True, trace=True)}
SPACE = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)}, fidelities=STEPS)


def gain(params: Mapping[str, Any], interval: int) -> float:
    return float(1.0 - (params["x"] - 0.7) ** 2 - (params["y"] - 0.1 * interval) ** 2)


def train(
    strategy: Strategy, *, space: ft.Space = SPACE, at_once: int = 100, until: int = 10**6, gain: Any = gain
) -> History:
    """A whole run; scores are sums of gains, so that a change is the gain of the interval."""
    history = History(Problem(space, value="score", minimize=False, seed=3))
    while True:
        suggestions = strategy.suggest(history, Remaining(), at_once, Randomness(3))[: until - len(history)]
        if not suggestions:
            return history
        history = history.updated(
            [ended(history, number, each, gain) for number, each in enumerate(suggestions, start=len(history))],
            version=history.version + 1,
        )


def ended(history: History, number: int, suggestion: Suggestion, gain: Any = gain) -> Trial:
    before = 0.0 if suggestion.resume_from is None else history[suggestion.resume_from].value
    assert before is not None
    return Trial(number, suggestion, State.DONE, value=before + gain(suggestion.params, suggestion.note["interval"]))


def choices(history: History) -> list[tuple[Any, ...]]:
    return [(t.note["interval"], t.note["member"], t.note["donor"], tuple(t.params.items())) for t in history]


def kernel_theta(omega: float) -> Array:
    return np.array([0.0, math.log(0.3), math.log(omega / (1.0 - omega))])


# ---------------------------------------------------------------------------------------------- the time kernel, Eq. 4


def data(n: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((n, 2)), np.repeat(np.arange(1, n // 4 + 2), 4)[:n]])
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1]


def test_without_forgetting_the_model_is_a_plain_process() -> None:
    X, y = data(12)
    new = with_columns(np.random.default_rng(1).random((5, 2)), 4.0)
    timed = condition(kernel_over(SPACE.encoder), kernel_theta(1e-14), X, y, noise=0.01).predict(new)
    plain = condition(Constant() * SE((0, 1), ard=False), kernel_theta(0.5)[:2], X, y, noise=0.01).predict(new)
    np.testing.assert_allclose(timed[0], plain[0], atol=1e-10)
    np.testing.assert_allclose(timed[1], plain[1], atol=1e-10)


def test_with_complete_forgetting_the_next_interval_is_the_prior() -> None:
    X, y = data(12)
    new = with_columns(np.random.default_rng(1).random((5, 2)), 4.0)
    process = condition(kernel_over(SPACE.encoder), kernel_theta(1.0 - 1e-14), X, y, noise=0.01, m=0.25)
    mean, variance = process.predict(new)
    np.testing.assert_allclose(mean, 0.25, atol=1e-6)
    np.testing.assert_allclose(variance, 1.0, atol=1e-6)


def test_time_counts_whole_intervals_and_members_of_one_interval_share_it() -> None:
    X = np.array([[0.5, 0.5, 3.0], [0.5, 0.5, 3.0], [0.5, 0.5, 7.0]])
    K = kernel_over(SPACE.encoder).evaluate(kernel_theta(0.2), X).K
    assert K[0, 1] == pytest.approx(1.0)
    assert K[0, 2] == pytest.approx(0.8**2)  # (1 − ω)^{4/2}


# ----------------------------------------------------------------------------------------------------- the bound, Eq. 5


def test_the_bound_adds_the_root_of_beta_times_the_deviation() -> None:
    X, y = data(12)
    process = condition(kernel_over(SPACE.encoder), kernel_theta(0.1), X, y, noise=0.01)
    new = with_columns(np.random.default_rng(1).random((5, 2)), 4.0)
    mean, variance = process.predict(new)
    np.testing.assert_allclose(ConfidenceBound(process, beta=4.0)(new), -mean + 2.0 * np.sqrt(variance))


def test_beta_is_floored_where_the_schedule_is_negative() -> None:
    assert [pb2_beta(1), pb2_beta(2)] == [0.2, 0.2]
    assert pb2_beta(10) == pytest.approx(0.2 + math.log(4.0))


def test_pending_points_shrink_the_variance_and_leave_the_mean() -> None:
    history = train(ft.PB2(population=4, interval=1), until=24)
    model = fit_changes(observed_changes(Members(history, 4), before=7), Members(history, 4))
    pending = model.rows([{"x": 0.2, "y": 0.3}, {"x": 0.9, "y": 0.4}], [7, 7])
    new = with_columns(np.random.default_rng(1).random((20, 2)), 7.0)
    (mean, variance), (later_mean, later_variance) = (
        model.gp.predict(new),
        model.gp.kriging_believer(pending).predict(new),
    )
    np.testing.assert_allclose(later_mean, mean, atol=1e-9)
    assert (later_variance < variance).all()


def test_pending_points_never_depend_on_labels() -> None:
    """What those who run will return cannot matter: with other values of trials in flight the choice is the same."""
    strategy = ft.PB2(population=8, interval=1, mode="async")
    history = train(strategy, until=60)
    flying = [replace(trial, state=State.RUNNING, value=None) if trial.number >= 56 else trial for trial in history]
    labelled = [replace(trial, value=123.0) if trial.state is State.RUNNING else trial for trial in flying]
    first, second = (
        strategy.suggest(History(history.problem, trials), Remaining(), 8, Randomness(3))
        for trials in (flying, labelled)
    )
    assert first
    assert first == second


@pytest.mark.parametrize("strategy", [ft.PB2(population=12, interval=2), ft.PB2.paper(population=12, interval=2)])
def test_no_two_members_of_an_interval_train_with_the_same_params(strategy: ft.PB2) -> None:
    history = train(strategy)
    for interval in range(1, 6):
        own = [tuple(trial.params.items()) for trial in history if trial.note["interval"] == interval]
        assert len(set(own)) == 12


def test_picks_of_a_batch_differ_even_where_the_best_is_a_corner() -> None:
    corner = train(ft.PB2(population=8, interval=2), gain=lambda params, _: params["x"] + params["y"])
    for interval in range(2, 6):
        own = [tuple(trial.params.items()) for trial in corner if trial.note["interval"] == interval]
        assert len(set(own)) == 8


# ------------------------------------------------------------------------------------------------------- what y is


def test_a_change_is_measured_from_where_the_interval_began() -> None:
    """After cloning that is the donor's score, and the params are those in force during the interval."""
    history = train(ft.PB2(population=4, interval=1))
    changes = observed_changes(Members(history, 4), before=None)
    later = sorted(
        (t for t in history if t.resume_from is not None), key=lambda t: (t.note["interval"], t.note["member"])
    )
    assert changes.count == len(later) == 36
    assert any(trial.note["donor"] is not None for trial in later)
    np.testing.assert_allclose(changes.change, [-gain(t.params, t.note["interval"]) for t in later], atol=1e-12)
    np.testing.assert_array_equal(changes.X[:, -1], [t.note["interval"] for t in later])
    np.testing.assert_array_equal(changes.X[:, :-1], SPACE.encoder.encode([t.params for t in later]))


def test_only_the_latest_rows_are_modelled() -> None:
    space = ft.Space(
        {"x": ft.Float(0, 1), "y": ft.Float(0, 1)}, fidelities={"s": ft.Fidelity(1, 40, integer=True, trace=True)}
    )
    history = train(ft.Clone(population=8, interval=1), space=space)
    changes = observed_changes(Members(history, 8), before=None)
    assert changes.count == MOST_ROWS
    assert changes.X[:, -1].min() == 40 - MOST_ROWS // 8


def test_a_clone_resumes_its_donor_with_params_of_its_own() -> None:
    history = train(ft.PB2(population=4, interval=1))
    clones = [trial for trial in history if trial.note["donor"] is not None]
    assert len(clones) == 9  # one of four at every interval after the first
    for clone in clones:
        source = history[clone.resume_from or 0]
        assert source.note["member"] == clone.note["donor"] != clone.note["member"]
        assert source.note["interval"] == clone.note["interval"] - 1
        assert clone.params != source.params


def test_those_who_go_on_keep_their_params() -> None:
    history = train(ft.PB2(population=4, interval=1))
    for trial in history:
        if trial.resume_from is not None and trial.note["donor"] is None:
            assert trial.params == history[trial.resume_from].params


def test_after_the_first_interval_there_is_nothing_to_learn_from_yet() -> None:
    """Replaced members are drawn afresh: copying the donor's params unchanged would collapse the population."""
    history = train(ft.PB2(population=4, interval=1), until=8)
    [clone] = [trial for trial in history if trial.note["donor"] is not None]
    assert "theta" not in clone.note
    assert clone.params not in [trial.params for trial in history[:4]]


def test_there_is_no_decision_after_the_last_interval() -> None:
    strategy = ft.PB2(population=4, interval=1)
    history = train(strategy)
    assert len(history) == 4 * 10
    assert strategy.suggest(history, Remaining(), 4, Randomness(3)) == []


def test_a_last_interval_may_be_shorter() -> None:
    history = train(ft.PB2(population=4, interval=4))
    assert sorted({trial.fidelity["steps"] for trial in history}) == [4, 8, 10]


# ------------------------------------------------------------------------------------------------------- the default's


def test_a_donor_that_is_clearly_best_is_hardly_ever_left() -> None:
    X = np.column_stack([np.linspace(0.0, 1.0, 21), np.full(21, 0.5), np.ones(21)])
    theta = kernel_theta(0.01)
    process = condition(kernel_over(SPACE.encoder), theta, X, 3.0 * np.abs(X[:, 0] - 0.5), noise=1e-3)
    others = with_columns(np.column_stack([np.random.default_rng(0).random(128), np.full(128, 0.5)]), 2.0)
    assert chance_of_better(process, others, np.array([0.5, 0.5, 2.0])) < 0.05
    nothing = condition(kernel_over(SPACE.encoder), theta, X[:0], np.zeros(0), noise=1e-3)
    assert chance_of_better(nothing, others, np.array([0.5, 0.5, 2.0])) == pytest.approx(0.5)


def test_the_chance_is_that_of_the_joint_posterior() -> None:
    """Against draws from the joint posterior: the standard error of 20,000 of them is below 0.002."""
    X, y = data(12)
    process = condition(kernel_over(SPACE.encoder), kernel_theta(0.1), X, y, noise=0.05)
    others = with_columns(np.random.default_rng(1).random((16, 2)), 4.0)
    x = np.array([0.4, 0.6, 4.0])
    drawn = process.sample(np.vstack([others, x]), 20_000, rng=np.random.default_rng(2))
    simulated = float(np.mean(drawn[:, :-1] < drawn[:, -1:]))
    assert chance_of_better(process, others, x) == pytest.approx(simulated, abs=0.01)


def test_picks_of_the_model_stay_in_the_box_around_the_donor() -> None:
    history = train(ft.PB2(population=8, interval=1, box=0.2))
    picked = [trial for trial in history if trial.note.get("choice") == "model"]
    assert picked
    for trial in picked:
        source = history[trial.resume_from or 0]
        assert all(abs(trial.params[name] - source.params[name]) <= 0.1 + 1e-12 for name in ("x", "y"))


def test_a_category_that_the_donor_has_is_kept_by_most_candidates() -> None:
    from farthing.acquisition.maximize import TrustRegion
    from farthing.strategies.shared.modelling import domain_of

    space = ft.Space({"x": ft.Float(0, 1), "kind": ft.Choice("a", "b", "c", "d")})
    near = TrustRegion(domain_of(space.encoder), np.array([0.5, 2.0]), side=0.4)
    rows = near.candidates(4000, rng=np.random.default_rng(0))
    assert np.mean(rows[:, 1] == 2.0) == pytest.approx(0.8 + 0.2 / 4, abs=0.03)
    assert set(rows[:, 1]) == {0.0, 1.0, 2.0, 3.0}


# ------------------------------------------------------------------------------------------------------------- spaces


@pytest.mark.parametrize("strategy", [ft.PB2(population=6, interval=1), ft.PB2.paper(population=6, interval=1)])
def test_the_upper_bound_of_an_integer_is_reached(strategy: ft.PB2) -> None:
    space = ft.Space({"n": ft.Int(1, 40), "m": ft.Int(0, 3)}, fidelities=STEPS)
    history = train(strategy, space=space, gain=lambda params, _: params["n"] / 40 + params["m"])
    chosen = [trial.params for trial in history if trial.note.get("choice")]
    assert {"n": 40, "m": 3} in chosen


@pytest.mark.parametrize("strategy", [ft.PB2(population=6, interval=1), ft.PB2.paper(population=6, interval=1)])
def test_a_log_parameter_is_its_logarithm_searched_by_hand(strategy: ft.PB2) -> None:
    declared = ft.Space({"x": ft.Float(1e-6, 1e-1, log=True)}, fidelities=STEPS)
    by_hand = ft.Space({"x": ft.Float(-6.0, -1.0)}, fidelities=STEPS)
    left = train(strategy, space=declared, gain=lambda params, _: -abs(math.log10(params["x"]) + 3.0))
    right = train(strategy, space=by_hand, gain=lambda params, _: -abs(params["x"] + 3.0))
    exponents = [math.log10(trial.params["x"]) for trial in left]
    np.testing.assert_allclose(exponents, [trial.params["x"] for trial in right], atol=1e-5)


def test_categories_and_conditions_are_part_of_the_model() -> None:
    space = ft.Space(
        {"kind": ft.Choice("a", "b"), "depth": ft.Float(0, 1, when={"kind": "b"}), "x": ft.Float(0, 1)},
        fidelities=STEPS,
    )

    def score(params: Mapping[str, Any], interval: int) -> float:
        return float((params["kind"] == "b") * (1.0 + params.get("depth", 0.0)) + params["x"])

    history = train(ft.PB2(population=8, interval=1), space=space, gain=score)
    assert all(("depth" in trial.params) == (trial.params["kind"] == "b") for trial in history)
    last = [trial.params for trial in history if trial.note["interval"] == 10]
    assert sum(params["kind"] == "b" for params in last) >= 7
    changes = observed_changes(Members(history, 8), before=None)
    model = fit_changes(changes, Members(history, 8))
    rows = model.rows([{"kind": "a", "x": 0.5}, {"kind": "b", "depth": 0.5, "x": 0.5}], [10, 10])
    a, b = model.gp.mean(rows)
    assert b < a  # losses: b is known to gain more


# ------------------------------------------------------------------------------------------------------------ workers


@pytest.mark.parametrize(
    "strategy",
    [ft.PB2(population=6, interval=2), ft.PB2.paper(population=6, interval=2), ft.PBT(population=6, interval=1)],
)
def test_with_one_worker_and_with_many_the_schedule_is_the_same(strategy: Strategy) -> None:
    expected = choices(train(strategy, at_once=6))
    assert choices(train(strategy, at_once=1)) == expected
    assert choices(train(strategy, at_once=4)) == expected


def test_the_whole_batch_comes_from_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is asked for bit by bit: the rest of the batch rides in the note of its first pick."""
    from farthing.strategies.population import model

    fits: list[Any] = []

    def fit(posterior: HyperparameterPosterior, *, warm_start: Array | None) -> Array:
        fits.append(warm_start)
        return posterior.priors.mean

    monkeypatch.setattr(model, "fit", fit)
    train(ft.PB2(population=8, interval=1), at_once=1)
    assert len(fits) == 8  # intervals 3 to 10


def test_a_fit_starts_from_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from farthing.strategies.population import model

    starts: list[Any] = []

    def noting(posterior: HyperparameterPosterior, *, warm_start: Array | None) -> Array:
        starts.append(warm_start)
        return fit(posterior, warm_start=warm_start)

    monkeypatch.setattr(model, "fit", noting)
    history = train(ft.PB2(population=4, interval=1), until=20)
    noted = [trial.note["theta"] for trial in history if "theta" in trial.note]
    assert starts[0] is None
    np.testing.assert_array_equal(starts[1], noted[0])


# --------------------------------------------------------------------------------------------------------- the result


def test_the_final_best_agent_is_recommended_and_the_best_ever_is_beside_it() -> None:
    strategy = ft.PB2(population=4, interval=1)
    history = train(strategy, gain=lambda params, interval: params["x"] - 0.5 * (interval > 8))
    found = strategy.recommend(history)
    assert found is not None
    assert found.best_ever is not None
    last = [trial for trial in history if trial.note["interval"] == 10]
    assert found.trial.value == max(trial.value or 0.0 for trial in last)
    assert found.best_ever.value == max(trial.value or 0.0 for trial in history)
    assert len(history.lineage(found.trial.number)) == 10


def test_the_paper_needs_no_other_argument() -> None:
    assert ft.PB2.paper(population=4, interval=5) == ft.PB2(population=4, interval=5, box=None)


def picks(
    replaced: Sequence[Replacement],
    running: Sequence[RunningParams],
    history: History,
    *,
    beta: float | None = None,
    box: float | None = None,
) -> list[Mapping[str, Any]]:
    members = Members(history, 4)
    model = fit_changes(observed_changes(members, before=None), members)
    found = Picking(members, model, 7, beta=beta, box=box).picks(replaced, running, Randomness(0))
    return [pick.params for pick in found]


@pytest.mark.parametrize(("box", "beta"), [(None, 0.2 + math.log(0.4 * 7)), (1.0, 4.0)], ids=["the paper", "a box"])
def test_picks_are_those_of_the_usual_beta(box: float | None, beta: float) -> None:
    """β_t = 0.2 + log 0.4t at t = 7; in a box it is 4."""
    history = train(ft.PB2.paper(population=4, interval=1), until=24)
    replaced = [Replacement(0, 1, history[20])]
    usual = picks(replaced, [], history, box=box)
    assert usual == picks(replaced, [], history, beta=beta, box=box)
    assert usual != picks(replaced, [], history, beta=beta + 0.5, box=box)


def test_a_pick_keeps_away_from_what_is_running() -> None:
    """The paper's batch: with a point pending at the first pick, the second one is elsewhere."""
    history = train(ft.PB2.paper(population=4, interval=1), until=24)
    source = history[20]
    [alone] = picks([Replacement(0, 1, source)], [], history)
    [moved] = picks([Replacement(0, 1, source)], [RunningParams(alone, 7)], history)
    assert moved != alone
