"""The end of a budget: comparing the runs at hand, within what is left."""

from dataclasses import replace
from math import inf

import pytest

import farthing as ft
from farthing.costs import Budget, Remaining
from farthing.strategies import Randomness
from farthing.strategies.multifidelity.context import CurveContext, read_context
from farthing.strategies.multifidelity.finishing import (
    LEAST_DOUBT,
    NOTE,
    WHY,
    Contest,
    Means,
    doubt,
    finishing,
    is_ending,
)
from farthing.strategies.multifidelity.handover import BEGINNING, RESERVE, is_reserve
from farthing.strategies.multifidelity.runs import runs_of
from farthing.strategies.multifidelity.screening import LONGEST_LOOK, STRIDE, offered, without_leaps
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)})
SIZES = ft.Space({"x": ft.Float(0, 1)}, fidelities={"data": ft.Fidelity(0.1, 1.0)})


def loss(x: float, epoch: float) -> float:
    return 0.2 + (x - 0.37) ** 2 + 1.0 / (1.0 + epoch)


def trained(number: int, x: float, *, to: int, begun: int = 0, resume_from: int | None = None) -> Trial:
    """A trial that reported every epoch; an epoch costs 1."""
    points = [Measurement(value=loss(x, epoch), fidelity={"epochs": epoch}) for epoch in range(begun + 1, to + 1)]
    last = replace(points[-1], cost={"training": float(to - begun)}, charged=True)
    suggestion = Suggestion({"x": x}, {"epochs": to}, resume_from=resume_from)
    return Trial(number, suggestion, State.DONE, measurements=(*points[:-1], last), value=last.value)


def history(*reached: int) -> History:
    """Runs of evenly spread params, each trained so far."""
    count = len(reached)
    return History(Problem(SPACE), [trained(i, (i + 0.5) / count, to=to) for i, to in enumerate(reached)])


def context(of: History) -> CurveContext:
    found = read_context(ft.TraceKG(), of, Randomness(0), [])
    assert found is not None
    return found


def left_of(of: History, *, cost: float) -> Remaining:
    return Budget(cost=cost).remaining(of, seconds=0.0)


def test_comparing_begins_when_the_reserve_is_left() -> None:
    """A training costs 20, and nothing is kept of the first ones."""
    runs = history(*[8] * 10)
    whole = (runs.cost - RESERVE * BEGINNING * 20) / (1 - RESERVE)
    assert not is_ending(context(runs), left_of(runs, cost=1.01 * whole), trusts_model=False)
    assert is_ending(context(runs), left_of(runs, cost=0.99 * whole), trusts_model=False)


def test_of_a_budget_of_two_trainings_nothing_is_kept() -> None:
    runs = history(*[2] * 19)
    assert not is_ending(context(runs), left_of(runs, cost=BEGINNING * 20), trusts_model=False)
    assert not is_reserve(runs, runs_of(runs), left_of(runs, cost=runs.cost + 0.01))


def test_seconds_are_left_to_every_worker() -> None:
    """A training takes 20 seconds, and 22 are left after 80: three workers can pay for more of them than one."""
    runs = [replace(trial, opened_at=0.0, finished_at=80.0) for trial in history(*[8] * 10)]
    busy = [Trial(10 + i, Suggestion({"x": 0.01 * i}, {"epochs": 2}), State.RUNNING) for i in range(2)]
    alone, beside = (History(Problem(SPACE, cost_unit="seconds"), trials) for trials in (runs, [*runs, *busy]))
    assert not is_reserve(alone, runs_of(alone), Remaining(seconds=22.0))
    assert is_reserve(beside, runs_of(beside), Remaining(seconds=22.0))


def test_a_model_that_is_sure_is_asked_to_the_end_and_comparing_goes_on_once_it_began() -> None:
    """Long curves without noise: the model knows which run is best."""
    runs = history(*[18] * 10)
    assert doubt(context(history(*[2] * 10))) >= LEAST_DOUBT, "after a tenth it does not"
    ending = left_of(runs, cost=1.4 * runs.cost)
    assert doubt(context(runs)) < LEAST_DOUBT
    assert not is_ending(context(runs), ending, trusts_model=True)
    compared = replace(runs[9], suggestion=replace(runs[9].suggestion, note={NOTE: True}))
    begun = History(runs.problem, [*runs[:9], compared])
    assert is_ending(context(begun), ending, trusts_model=True)


def test_it_begins_when_no_configuration_is_left_and_never_without_a_budget() -> None:
    runs = history(*[2] * 10)
    assert is_ending(context(runs), Remaining(trials=0.0), trusts_model=False)
    assert not is_ending(context(runs), Remaining(trials=1.0), trusts_model=False)
    assert not is_ending(context(runs), Remaining(), trusts_model=False)


@pytest.mark.parametrize("left", [3.0, 7.0, 15.0, 40.0])
def test_all_of_a_plan_fits_what_is_left_and_more_money_compares_more_runs(left: float) -> None:
    contest = Contest(context(history(*[2] * 12)), trusts_model=True)
    plan = contest.largest_plan(Means(left))
    assert plan
    assert sum(step.price for step in plan) <= left
    more = contest.largest_plan(Means(4 * left))
    assert more is not None
    assert len({step.run for step in more}) >= len({step.run for step in plan})


@pytest.mark.parametrize("seconds", [17.0, 19.0, 25.0, 40.0])
def test_a_plan_ends_in_time_so_that_the_best_run_is_complete(seconds: float) -> None:
    """An epoch takes a second, and three workers do not make one training shorter."""
    contest = Contest(context(history(2, 2, 4, 2, 8, 2, 2, 4, 2)), trusts_model=False)
    means = Means(3 * seconds, longest=seconds, workers=3)
    plan = contest.largest_plan(means)
    assert plan
    assert means.cover(plan)
    assert plan[-1].level == 1.0
    assert not Means(3 * seconds, longest=0.9 * max(step.price for step in plan), workers=3).cover(plan)


def test_with_too_little_time_for_a_complete_run_the_best_goes_on() -> None:
    contest = Contest(context(history(2, 2, 4, 2, 8, 2, 2, 4, 2)), trusts_model=False)
    means = Means(15.0, longest=5.0, workers=3)
    plan = contest.largest_plan(means)
    assert plan
    assert means.cover(plan)
    assert max(step.level for step in plan) < 1.0, "the run with 8 epochs has too far to go"


def test_idle_workers_train_the_next_best_runs_from_the_highest_rung_down() -> None:
    runs = history(2, 2, 4, 2, 8, 2, 2, 4, 2)
    contest = Contest(context(runs), trusts_model=False)
    plan = contest.largest_plan(Means(45.0, longest=15.0, workers=3))
    assert plan is not None
    found = contest.beyond(plan, Means(45.0, longest=15.0, workers=3))
    assert not {step.run for step in found} & {step.run for step in plan}
    levels = [step.level for step in found]
    assert levels == sorted(levels, reverse=True)
    lowest = [runs[step.run].value or 9.0 for step in found if step.level == levels[-1]]
    assert lowest == sorted(lowest)


def test_the_lowest_rung_comes_first_and_half_of_each_goes_on() -> None:
    plan = Contest(context(history(*[2] * 16)), trusts_model=True).largest_plan(Means(inf))
    assert plan is not None
    levels = [step.level for step in plan]
    assert levels == sorted(levels)
    counts = [levels.count(level) for level in dict.fromkeys(levels)]
    assert counts == [8, 4, 2, 1][: len(counts)]
    assert counts[0] == 8


def test_the_best_runs_are_compared_by_measured_values_where_the_model_is_not_trusted() -> None:
    runs = history(*[2] * 12)
    plan = Contest(context(runs), trusts_model=False).largest_plan(Means(4.0))
    assert plan is not None
    by_loss = sorted(range(12), key=lambda number: runs[number].value or 9.0)
    assert {step.run for step in plan} <= set(by_loss[:3])


def test_a_study_that_has_compared_everything_ends_without_configurations_and_explores_with_them() -> None:
    complete = history(*[20] * 4)
    assert finishing(context(complete), Remaining(trials=0.0), 1, trusts_model=True) == []
    ending = left_of(complete, cost=1.2 * complete.cost)
    assert finishing(context(complete), ending, 1, trusts_model=False) is None


def test_what_cannot_be_paid_is_not_begun() -> None:
    runs = history(*[8] * 10)
    assert finishing(context(runs), Remaining(cost=0.3), 1, trusts_model=False) == []


def test_several_workers_continue_different_runs_and_none_that_is_in_training() -> None:
    runs = history(*[4] * 40)
    ending = left_of(runs, cost=1.3 * runs.cost)
    chosen = finishing(context(runs), ending, 3, trusts_model=False)
    assert chosen is not None
    places = [int(choice.candidate.source[0]) for choice in chosen]
    assert len(set(places)) == len(places) == 3
    assert all(choice.reason == WHY for choice in chosen)
    further = Trial(40, Suggestion(runs[places[0]].params, {"epochs": 8}, resume_from=places[0]), State.RUNNING)
    busy = runs.updated([further], version=1)
    again = finishing(context(busy), ending, 3, trusts_model=False)
    assert again is not None
    assert places[0] not in {int(choice.candidate.source[0]) for choice in again}


def sized(number: int, x: float, data: float) -> Trial:
    point = Measurement(value=loss(x, 20 * data), fidelity={"data": data}, cost={"training": data}, charged=True)
    return Trial(number, Suggestion({"x": x}, {"data": data}), State.DONE, measurements=(point,), value=point.value)


def test_a_fidelity_that_is_no_trace_is_not_compared_so() -> None:
    points = [sized(i, i / 6, 0.2) for i in range(6)]
    assert not is_ending(context(History(Problem(SIZES), points)), Remaining(trials=0.0), trusts_model=False)


def test_a_configuration_begins_again_with_at_most_three_times_the_data_and_a_new_one_is_looked_at() -> None:
    here = context(History(Problem(SIZES), [sized(i, i / 6, 0.15 if i else 0.25) for i in range(6)]))
    every = offered(here, may_be_new=True)
    kept = without_leaps(here, every)
    is_known = here.bought.knows(kept.X)
    most = {x.tobytes(): STRIDE * float(here.bought.most(x)[0]) for x in kept.X[is_known]}
    assert every.S.max() == 1.0, "a full training was there to be left out"
    assert all(s <= most[x.tobytes()] + 1e-9 for x, [s] in zip(kept.X[is_known], kept.S[is_known], strict=True))
    assert max(kept.S[is_known, 0]) > 0.3
    assert kept.S[~is_known, 0].max() <= LONGEST_LOOK + 1e-9


def test_a_budget_of_trials_costs_a_fraction_of_full_trainings() -> None:
    found = History(Problem(SPACE))
    strategy = ft.TraceKG()
    while True:
        budget = Budget(trials=12).remaining(found, seconds=0.0)
        suggestions = strategy.suggest(found, budget, 1, Randomness(0))
        if not suggestions:
            break
        one = suggestions[0]
        begun = 0 if one.resume_from is None else int(found[one.resume_from].fidelity["epochs"])
        told = trained(len(found), one.params["x"], to=int(one.fidelity["epochs"]), begun=begun)
        found = found.updated([replace(told, suggestion=one)], version=len(found))
    assert found.configurations == 12
    assert found.cost <= 0.4 * 12 * 20
    best = strategy.recommend(found)
    assert best is not None
    assert found.reach(best.trial) == 1.0
    assert best.trial.value == pytest.approx(loss(0.37, 20), abs=0.02)


def test_no_leaps_are_offered_before_runs_have_come_as_far() -> None:
    here = context(history(2, 2, 2, 2, 2, 2, 5, 8))
    kept = without_leaps(here, offered(here, may_be_new=True))
    new = kept.source < 0
    assert kept.S[new, 0].max() <= LONGEST_LOOK + 1e-9
    reached = kept.begun[~new, 0]
    assert (kept.S[~new, 0] <= STRIDE * reached + 1e-9).all()
    best_of_the_short = min(range(6), key=lambda number: here.history[number].value or 9.0)
    short = {int(place) for place in kept.source[~new] if float(here.runs[int(place)].reached[0]) == 0.1}
    assert best_of_the_short in short
    assert len(short) <= 3


def test_a_worker_that_would_be_idle_trains_the_next_best_run() -> None:
    """The only promotion of a small plan is in training: another worker does not wait for it."""
    runs = history(*[4] * 20)
    ending = left_of(runs, cost=1.1 * runs.cost)
    here = finishing(context(runs), ending, 1, trusts_model=False)
    assert here
    place = int(here[0].candidate.source[0])
    further = Trial(20, Suggestion(runs[place].params, {"epochs": 20}, resume_from=place), State.RUNNING)
    busy = runs.updated([further], version=1)
    other = finishing(context(busy), replace(ending, cost=4.5), 1, trusts_model=False)
    assert other
    assert int(other[0].candidate.source[0]) != place
    assert other[0].cost <= 4.5
