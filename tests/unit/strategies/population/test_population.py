"""Populations: who is replaced by whom, what failures do, what survives a restart."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.errors import InvalidArgument, NoSuggestion
from farthing.extending import Strategy
from farthing.strategies import Randomness
from farthing.strategies.population.pbt import multiplied, perturbed
from farthing.strategies.population.strategy import MOST_REPEATS, replaced_count, select
from farthing.trials import History, State, Trial

STEPS = {"steps": ft.Fidelity(1, 6, integer=True, trace=True)}
SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities=STEPS)


def study(strategy: Strategy, space: ft.Space = SPACE, **how: Any) -> ft.Study:
    return ft.Study(space, minimize="error", strategy=strategy, cost_unit="cost", seed=1, **how)


def finish(study: ft.Study, *, at_once: int = 100, until: int = 10**6) -> None:
    """Tells errors that fall with every step, faster for small x."""
    while len(study.trials) < until and (asked := study.ask(count=min(at_once, until - len(study.trials)))):
        for trial in asked:
            study.tell(trial, trial.params["x"] - trial.fidelity["steps"], cost=1.0)


# ---- selection -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "count"), [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3), (16, 4), (64, 16)])
def test_a_quarter_is_replaced_rounded_up_but_never_more_than_half(size: int, count: int) -> None:
    assert replaced_count(size, 0.25) == count


def test_the_worst_are_replaced_by_the_best() -> None:
    chosen = select({0: 0.3, 1: 0.1, 2: 0.9, 3: 0.5, 4: 0.7, 5: 0.2, 6: 0.8, 7: 0.4}, 0.25)
    assert chosen.replaced == (2, 6)
    assert chosen.donors == (1, 5)


def test_whoever_failed_is_replaced_also_beyond_the_quantile() -> None:
    chosen = select({0: math.inf, 1: 0.1, 2: math.inf, 3: math.inf}, 0.25)
    assert chosen.replaced == (0, 2, 3)
    assert chosen.donors == (1,)


def test_where_all_failed_there_is_nobody_to_copy() -> None:
    assert select({0: math.inf, 1: math.inf}, 0.25).donors == ()


def test_a_single_member_is_never_replaced() -> None:
    assert select({0: 0.5}, 0.25).replaced == ()


# ---- the loop --------------------------------------------------------------------------------------------------------


def test_asked_again_while_an_interval_trains_there_is_nothing_to_do() -> None:
    running = study(ft.PB2(population=3, interval=2))
    running.ask(count=3)
    with pytest.raises(NoSuggestion, match="waits for trials in flight"):
        running.ask()


def test_a_space_without_fidelities_is_given_steps() -> None:
    plain = ft.Space({"x": ft.Float(0, 1)})
    shaped = ft.PB2(population=4, interval=10, steps=100).shaped(plain)
    assert shaped.fidelities == {"steps": ft.Fidelity(1, 100, integer=True, trace=True)}
    assert ft.PB2(population=4, interval=10, steps=100).shaped(shaped) is shaped
    assert ft.Random().shaped(plain) is plain


def test_a_member_that_failed_becomes_a_copy() -> None:
    running = study(ft.Clone(population=4, interval=2))
    for trial in running.ask(count=4):
        if trial.number == 0:
            running.tell(trial, failure="diverged")
        else:
            running.tell(trial, float(trial.number), cost=1.0)
    [copy] = [trial for trial in running.ask(count=4) if running.trials[trial.number].note["member"] == 0]
    assert running.trials[copy.number].resume_from == 1


def test_a_first_interval_that_all_failed_is_begun_anew_with_other_params() -> None:
    running = study(ft.PB2(population=3, interval=2))
    first = running.ask(count=3)
    for trial in first:
        running.tell(trial, failure="out of memory")
    again = running.ask(count=3)
    assert [running.trials[trial.number].note["repeat"] for trial in again] == [1, 1, 1]
    assert all(running.trials[trial.number].resume_from is None for trial in again)
    assert {trial.params["x"] for trial in again}.isdisjoint(trial.params["x"] for trial in first)


def test_a_later_interval_that_all_failed_is_trained_again_from_where_it_began() -> None:
    """With the same params at first, for it is rather the machine that failed; then with others; then not at all."""
    running = study(ft.PB2(population=3, interval=2))
    finish(running, until=3)
    tried: list[dict[int, tuple[int | None, float]]] = []
    while asked := running.ask(count=3):
        opened = [running.history[trial.number] for trial in asked]
        tried.append({trial.note["member"]: (trial.resume_from, trial.params["x"]) for trial in opened})
        for trial in asked:
            running.tell(trial, failure="disk full")
    assert len(tried) == 1 + MOST_REPEATS
    assert tried[1] == tried[0]
    assert all(tried[2][member][0] == tried[0][member][0] for member in range(3))
    assert all(tried[2][member][1] != tried[0][member][1] for member in range(3))
    assert running.best.trial.note["interval"] == 1


def test_what_a_repeated_interval_began_with_is_kept_until_everybody_has_begun_it_again() -> None:
    """Found by exploring: the first to repeat it succeeded before the last had begun."""
    strategy = ft.Clone(population=2, interval=2)
    running = study(strategy)
    running.tell(running.ask(), failure="lost")
    running.tell(running.ask(), 1.0, cost=1.0)
    for trial in (running.ask(), running.ask()):
        running.tell(trial, failure="lost")
    running.tell(running.ask(), 0.5, cost=1.0)
    kept = strategy.resumable(running.history)
    running.ask()
    assert running.trials[-1].resume_from in kept


def test_in_async_mode_nobody_waits_and_donors_are_copied_at_the_same_interval() -> None:
    running = study(ft.PBT(population=4, interval=1, mode="async", quantile=0.5))
    slow = running.ask()
    for _ in range(3 * 6):
        trial = running.ask()
        running.tell(trial, trial.params["x"] - trial.fidelity["steps"], cost=1.0)
    with pytest.raises(NoSuggestion):
        running.ask()
    assert all(t.state is State.DONE for t in running.trials if t.number != slow.number)
    running.tell(slow, 100.0, cost=1.0)
    number = running.ask().number
    copy = running.trials[number]
    assert copy.note["donor"] is not None
    assert running.trials[copy.resume_from or 0].note["interval"] == 1
    assert copy.note["interval"] == 2


def test_a_population_goes_on_with_those_whom_the_budget_let_begin() -> None:
    running = study(ft.PBT(population=6, interval=3))
    budget = ft.Budget(trials=4)
    while asked := running.ask(count=6, budget=budget):
        for trial in asked:
            running.tell(trial, trial.params["x"], cost=1.0)
    assert len(running.trials) == 4 * 2


def test_only_what_may_be_resumed_is_kept() -> None:
    """At the end of an interval all of it; while the next one trains, what runs has its sources already."""
    strategy = ft.PBT(population=4, interval=2)
    running = study(strategy)
    finish(running, until=4)
    assert strategy.resumable(running.history) == {0, 1, 2, 3}
    asked = running.ask(count=4)
    sources = {running.trials[trial.number].resume_from for trial in asked}
    assert strategy.resumable(running.history) == sources  # should all of it fail, it begins there again
    running.tell(asked[0], 0.0, cost=1.0)
    assert strategy.resumable(running.history) == {asked[0].number}
    finish(running)
    assert strategy.resumable(running.history) == {asked[0].number}  # the others of that interval were never told


class Counted(History):
    """Counts how often all of it is read."""

    readings = 0

    def __iter__(self) -> Iterator[Trial]:
        self.readings += 1
        return super().__iter__()


def test_a_history_is_read_once_for_all_that_is_asked_of_it() -> None:
    strategy, running = ft.PBT(population=4, interval=2), study(ft.PBT(population=4, interval=2))
    finish(running, until=8)
    history = Counted(running.history.problem, running.trials)
    strategy.suggest(history, Remaining(), 4, Randomness(0))
    strategy.resumable(history), strategy.recommendable(history)
    assert history.readings == 1


def test_results_from_elsewhere_are_no_members() -> None:
    running = study(ft.PB2(population=3, interval=2))
    running.add({"x": 0.5}, -100.0)
    finish(running)
    assert len(running.trials) == 1 + 3 * 3
    assert running.best.trial.number != 0


# ---- restarts: what Ray Tune's users lost --------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [ft.PB2(population=5, interval=1), ft.PBT(population=5, interval=1, mode="async")])
def test_a_study_that_is_reopened_keeps_its_strategy_and_goes_on_alike(strategy: Strategy, tmp_path: Path) -> None:
    unbroken = study(strategy)
    finish(unbroken, at_once=1)
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    for until in range(7, 200, 7):
        again = study(strategy, storage=storage) if until == 7 else ft.Study.load("study", storage)
        finish(again, at_once=1, until=until)
        again.close()
    restored = ft.Study.load("study", storage)
    assert restored.strategy == strategy
    assert [(t.params, t.note) for t in restored.trials] == [(t.params, t.note) for t in unbroken.trials]
    restored.close()


# ---- PBT -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "value", "smaller", "larger"),
    [
        (ft.Float(0, 10), 5.0, 4.0, 6.0),
        (ft.Float(0, 10), 9.0, 7.2, 10.0),
        (ft.Float(1e-4, 1e-1, log=True), 1e-4, 1e-4, 1.2e-4),
        (ft.Float(0, 1, step=0.25), 0.5, 0.25, 0.75),
        (ft.Int(1, 100), 50, 40, 60),
        (ft.Int(1, 100), 2, 1, 3),
        (ft.Int(1, 100), 100, 80, 100),
        (ft.Int(16, 64, step=16), 32, 16, 48),
        (ft.Choice("s", "m", "l", ordered=True), "m", "s", "l"),
        (ft.Choice("s", "m", "l", ordered=True), "l", "m", "l"),
        (ft.Choice("adam", "sgd"), "sgd", "sgd", "sgd"),
    ],
)
def test_a_value_is_multiplied_within_its_bounds(parameter: Any, value: Any, smaller: Any, larger: Any) -> None:
    found = (multiplied(parameter, value, 0.8), multiplied(parameter, value, 1.2))
    assert found == (pytest.approx((smaller, larger)) if isinstance(value, float) else (smaller, larger))


def test_a_parameter_is_drawn_anew_with_the_given_probability() -> None:
    space = ft.Space({"x": ft.Float(0, 1)})
    drawn = [perturbed(space, {"x": 0.5}, 0.25, Randomness(0).at("draw", k))["x"] for k in range(4000)]
    kept = [x for x in drawn if x in (0.4, 0.6)]
    assert len(kept) / 4000 == pytest.approx(0.75, abs=0.03)  # four standard errors
    assert kept.count(0.4) / len(kept) == pytest.approx(0.5, abs=0.04)


def test_what_a_new_category_activates_is_drawn() -> None:
    space = ft.Space({"kind": ft.Choice("a", "b"), "depth": ft.Int(1, 9, when={"kind": "b"})})
    found = [perturbed(space, {"kind": "a"}, 0.9, Randomness(0).at("draw", k)) for k in range(200)]
    assert all(space.check(params) == params for params in found)
    assert {params["depth"] for params in found if params["kind"] == "b"} == set(range(1, 10))


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"population": 0, "interval": 1}, "population must be a whole number ≥ 1, got 0"),
        ({"population": 4, "interval": 0}, "interval must be a whole number ≥ 1, got 0"),
        (
            {"population": 4, "interval": 1, "quantile": 0.7},
            "quantile must be a number above 0 and ≤ 0.5",
        ),
        ({"population": 4, "interval": 1, "mode": "fast"}, "mode must be 'sync' or 'async', got 'fast'"),
        ({"population": 4, "interval": 1, "box": 0.0}, "box must be a number above 0 and ≤ 2"),
        ({"population": 4, "interval": 1, "beta": -1.0}, "beta must be a number ≥ 0"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        ft.PB2(**arguments)


def test_a_probability_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="resample must be a number from 0 to 1, got 25"):
        ft.PBT(population=4, interval=1, resample=25)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval": 7}, "between the least 'steps', 1, and all of it, 6, got 7"),
        ({"interval": 1, "steps": 9}, "must be within its trace fidelity, got 9 for 'steps' up to 6"),
    ],
)
def test_intervals_that_do_not_fit_the_fidelity_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        study(ft.PBT(population=4, **arguments)).ask()


def test_a_space_without_a_trace_is_refused_with_what_to_do() -> None:
    plain = ft.Space({"x": ft.Float(0, 1)})
    with pytest.raises(InvalidArgument, match=r"one trace fidelity, got 0 of them.*Give steps="):
        study(ft.PB2(population=4, interval=1), plain).ask()


def test_random_search_trains_whole_runs_on_the_same_space() -> None:
    history = study(ft.Random()).history
    assert [s.fidelity for s in ft.Random().suggest(history, Remaining(), 2, Randomness(0))] == [{"steps": 6}] * 2
