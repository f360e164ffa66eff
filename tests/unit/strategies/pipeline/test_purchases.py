"""What is cached, what was bought, and what stages cost, all read from a history."""

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.space.stages import prefix_key
from farthing.strategies.pipeline.purchases import Layout, Purchase, due_class, meters, purchases_of
from farthing.strategies.pipeline.stage_costs import price_stages
from farthing.trials import Event, History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space(stages={"a": {"x": ft.Float(0, 1)}, "b": {"k": ft.Choice("p", "q")}, "c": {"y": ft.Float(0, 1)}})
LAYOUT = Layout(SPACE)
RAN, KEPT = "ran", "kept"


def trial(
    number: int, x: float, k: str, *stages: str, state: State = State.DONE, cost: float = 0.0, note=None
) -> Trial:
    prices = (40.0, 10.0, 1.0)
    points = [
        Measurement(step=step, cost={"stage": prices[step]}, time=float(number))
        if stage == RAN
        else Measurement(step=step, saved={"cache": prices[step]}, time=float(number))
        for step, stage in enumerate(stages)
    ]
    if cost:
        points.append(Measurement(cost={"training": cost}))
    params = SPACE.check({"x": x, "k": k, "y": 0.5})
    value = 1.0 if state is State.DONE else None
    return Trial(number, Suggestion(params, note=note), state, measurements=tuple(points), value=value)


def history(*trials: Trial, events: tuple[Event, ...] = ()) -> History:
    return History(Problem(SPACE, cost_unit="cost"), trials, events=events)


def kept_by(past: History, x: float, k: str) -> int:
    return purchases_of(past, LAYOUT).kept(LAYOUT, SPACE.check({"x": x, "k": k, "y": 0.1}))


def test_every_stage_that_ran_is_there_to_be_kept_but_the_last_is_always_paid() -> None:
    past = history(trial(0, 0.1, "p", RAN, RAN, RAN))
    assert [kept_by(past, 0.1, "p"), kept_by(past, 0.1, "q"), kept_by(past, 0.2, "p")] == [2, 1, 0]


def test_a_trial_that_failed_in_its_second_stage_leaves_its_first() -> None:
    past = history(trial(0, 0.1, "p", RAN, state=State.FAILED))
    assert kept_by(past, 0.1, "p") == 1


def test_a_failure_without_a_word_about_stages_leaves_nothing() -> None:
    assert kept_by(history(trial(0, 0.1, "p", state=State.FAILED)), 0.1, "p") == 0


def test_what_is_in_flight_is_about_to_be_there() -> None:
    assert kept_by(history(trial(0, 0.1, "p", state=State.RUNNING)), 0.1, "p") == 2


def test_a_told_result_without_stages_counts_as_having_computed_them_all() -> None:
    assert kept_by(history(trial(0, 0.1, "p", cost=5.0)), 0.1, "p") == 2


def test_what_was_evicted_is_gone_until_it_is_computed_again() -> None:
    first = trial(0, 0.1, "p", RAN, RAN, RAN)
    key = prefix_key(SPACE, first.params, 2)
    evicted = Event("stage evicted", {"prefix": key, "length": 2, "why": "limit"}, time=0.5)
    assert kept_by(history(first, events=(evicted,)), 0.1, "p") == 1
    assert kept_by(history(first, trial(1, 0.1, "p", KEPT, RAN, RAN), events=(evicted,)), 0.1, "p") == 2


def test_purchases_say_what_was_kept_and_paid() -> None:
    past = history(trial(0, 0.1, "p", RAN, RAN, RAN), trial(1, 0.1, "q", KEPT, RAN, RAN, note={"forced": 1}))
    first, second = purchases_of(past, LAYOUT).made
    assert (first.kept, first.cost, first.forced) == (0, 51.0, None)
    assert (second.kept, second.cost, second.forced) == (1, 11.0, 1)


# ------------------------------------------------------------------------------------------------------ meters


def bought(*kinds: int) -> list[Purchase]:
    return [Purchase({}, kept) for kept in kinds]


def test_a_purchase_sets_back_the_meters_of_its_class_and_of_cheaper_ones() -> None:
    assert meters(bought(0, 2, 2), [51.0, 1.0, 1.0], 3) == [2.0, 2.0, 0.0]
    assert meters(bought(0, 2, 2, 1), [51.0, 1.0, 1.0, 11.0], 3) == [13.0, 0.0, 0.0]
    assert meters(bought(0, 2, 2, 1, 0), [51.0, 1.0, 1.0, 11.0, 51.0], 3) == [0.0, 0.0, 0.0]


def test_a_forced_purchase_sets_back_its_meter_whatever_it_came_to() -> None:
    assert meters([Purchase({}, 0), Purchase({}, 2), Purchase({}, 2, forced=0)], [51.0, 1.0, 1.0], 3) == [0.0, 0.0, 0.0]


def test_the_dearest_class_that_is_due_is_bought_and_what_has_no_price_is_not() -> None:
    assert due_class([51.0, 11.0, 0.0], [51.0, 11.0, 1.0], 1.0) == 0
    assert due_class([50.0, 11.0, 0.0], [51.0, 11.0, 1.0], 1.0) == 1
    assert due_class([51.0, 11.0, 0.0], [None, 11.0, 1.0], 1.0) == 1
    assert due_class([50.0, 10.0, 0.0], [51.0, 11.0, 1.0], 1.0) is None
    assert due_class([26.0, 0.0, 0.0], [51.0, 11.0, 1.0], 0.5) == 0


# ------------------------------------------------------------------------------------------------- stage costs


def costs_of(past: History, declared: object = "learn") -> np.ndarray:
    stages = price_stages(past, LAYOUT, purchases_of(past, LAYOUT), declared)  # type: ignore[arg-type]
    return stages.costs.costs(SPACE.encoder.encode([{"x": 0.5, "k": "p", "y": 0.5}]))[0]


def test_costs_are_learnt_from_the_stages_that_ran() -> None:
    past = history(trial(0, 0.1, "p", RAN, RAN, RAN), trial(1, 0.1, "q", KEPT, RAN, RAN))
    np.testing.assert_allclose(costs_of(past), [40.0, 10.0, 1.0])


def test_a_stage_whose_cost_depends_on_its_parameters_is_learnt_as_a_function_of_them() -> None:
    def ran(number: int, x: float) -> Trial:
        made = trial(number, x, "p", RAN, RAN, RAN)
        first = Measurement(step=0, cost={"stage": float(np.exp(3 * x))})
        return Trial(number, made.suggestion, State.DONE, measurements=(first, *made.measurements[1:]), value=1.0)

    past = history(*(ran(i, x) for i, x in enumerate(np.linspace(0, 1, 9).tolist())))
    assert costs_of(past)[0] == pytest.approx(np.exp(1.5), rel=0.05)
    np.testing.assert_allclose(costs_of(past)[1:], [10.0, 1.0])


def test_totals_are_split_among_the_stages_that_were_paid() -> None:
    past = history(trial(0, 0.1, "p", cost=51.0), trial(1, 0.1, "q", cost=11.0), trial(2, 0.1, "p", cost=1.0))
    np.testing.assert_allclose(costs_of(past), [40.0, 10.0, 1.0], rtol=0.03)


def test_one_total_alone_is_shared_equally() -> None:
    np.testing.assert_allclose(costs_of(history(trial(0, 0.1, "p", cost=30.0))), [10.0, 10.0, 10.0], rtol=1e-6)


def test_declared_costs_are_taken_as_they_are_and_must_name_every_stage() -> None:
    declared = {"a": 4.0, "b": 2.0, "c": 1.0}
    np.testing.assert_allclose(costs_of(history(), declared), [4.0, 2.0, 1.0])
    with pytest.raises(InvalidArgument, match="Every stage needs a cost"):
        costs_of(history(), {"a": 4.0, "b": 2.0})
    with pytest.raises(InvalidArgument, match="'d'"):
        costs_of(history(), {**declared, "d": 1.0})


@pytest.mark.parametrize("costs", ["free", {}, {"a": 0.0}, {"a": True}, {"a": "dear"}])
def test_costs_that_are_none_are_refused(costs: object) -> None:
    with pytest.raises(InvalidArgument):
        ft.PrefixEI(costs=costs)  # type: ignore[arg-type]
