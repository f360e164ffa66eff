"""How PrefixEI decides, on studies whose stages are measured and cached."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import farthing as ft
from benchmarks.baselines.staged import EEIPU, StagedBO
from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.extending import Prediction
from farthing.space.stages import prefix
from farthing.strategies import Randomness, Strategy
from farthing.trials import History, Measurement, Params, Problem, State, Suggestion, Trial

TWO_STAGES = ft.Space(stages={"first": {"x": ft.Float(0, 1)}, "last": {"y": ft.Float(0, 1), "z": ft.Float(0, 1)}})
DISCRETE = ft.Space(stages={"first": {"k": ft.Choice("a", "b", "c")}, "last": {"y": ft.Float(0, 1)}})


def bowl(params: Params) -> float:
    place = {"a": 0.2, "b": 0.4, "c": 0.9}
    return sum((place.get(value, value) - 0.3) ** 2 for value in params.values())


class Pipe:
    """A study in memory: prefixes are kept, stages cost `prices`."""

    def __init__(self, space: ft.Space, prices: tuple[float, ...], value: Callable[[Params], float] = bowl) -> None:
        self.history = History(Problem(space, cost_unit="cost"))
        self._prices, self._value, self._known = prices, value, set[object]()

    def run(self, strategy: Strategy, steps: int, **left: Any) -> "Pipe":
        for _ in range(steps):
            self.tell(self.ask(strategy, **left)[0])
        return self

    def ask(self, strategy: Strategy, count: int = 1, **left: Any) -> list[Suggestion]:
        return list(strategy.suggest(self.history, Remaining(**left), count, Randomness(1)))

    def tell(self, suggestion: Suggestion) -> None:
        points = [self._stage(suggestion.params, step, price) for step, price in enumerate(self._prices)]
        number = len(self.history)
        trial = Trial(number, suggestion, State.DONE, measurements=tuple(points), value=self._value(suggestion.params))
        self.history = self.history.updated([trial], version=number)

    def leave_running(self, suggestion: Suggestion) -> None:
        trial = Trial(len(self.history), suggestion, State.RUNNING)
        self.history = self.history.updated([trial], version=trial.number)

    def _stage(self, params: Params, step: int, price: float) -> Measurement:
        key = prefix(self.history.problem.space, params, step + 1)
        if key in self._known and step + 1 < len(self._prices):
            return Measurement(step=step, saved={"cache": price})
        self._known.add(key)
        return Measurement(step=step, cost={"stage": price})


def test_most_evaluations_keep_the_dear_stage_and_their_predicted_cost_is_what_they_cost() -> None:
    history = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.PrefixEI(), 25).history
    assert sum(trial.cost for trial in history) < 25 * 11 / 2
    for trial in history[1:]:
        assert trial.suggestion.predicted_cost is not None
        assert trial.suggestion.predicted_cost.mean == pytest.approx(trial.cost)


def test_a_kept_stage_is_kept_to_the_bit() -> None:
    space = ft.Space(stages={"first": {"x": ft.Float(1e-5, 1e-1, log=True)}, "last": {"y": ft.Float(0, 1)}})
    history = Pipe(space, (10.0, 1.0)).run(ft.PrefixEI(), 20).history
    assert len({trial.params["x"] for trial in history}) < 12
    assert [trial.note["kept"] for trial in history[1:]].count(1) >= 8


def test_any_prefix_ever_computed_may_be_gone_back_to() -> None:
    history = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.PrefixEI(), 30).history
    latest = [before.params["x"] == after.params["x"] for before, after in pairwise(history)]
    went_back = [trial.note["kept"] == 1 and not same for trial, same in zip(history[1:], latest, strict=True)]
    assert any(went_back)


def test_renting_ends_in_buying_and_a_forced_purchase_says_so() -> None:
    """A first stage that hardly matters is never worth its price, yet it is bought once that has been rented away."""

    def flat(params: Params) -> float:
        return (params["y"] - 0.3) ** 2 + (params["z"] - 0.6) ** 2 + 1e-6 * params["x"]

    renting = Pipe(TWO_STAGES, (10.0, 1.0), flat).run(ft.PrefixEI(bundle=None, rent_or_buy=None, initial=2), 30)
    buying = Pipe(TWO_STAGES, (10.0, 1.0), flat).run(ft.PrefixEI(bundle=None, rent_or_buy=1.0, initial=2), 30)
    forced = [trial for trial in buying.history if trial.note.get("forced") == 0]
    assert not [trial for trial in renting.history if "forced" in trial.note]
    assert forced
    assert all(trial.cost == 11.0 for trial in forced)
    assert "its price" in forced[0].note["why"]


def test_a_forced_class_leaves_out_prefixes_that_are_there_and_ends_when_all_are() -> None:
    history = Pipe(DISCRETE, (10.0, 1.0)).run(ft.PrefixEI(rent_or_buy=0.2, initial=1), 25).history
    forced = [trial for trial in history if trial.note.get("forced") == 0]
    assert 1 <= len(forced) <= 2
    assert all(trial.cost == 11.0 for trial in forced)
    assert sum(trial.cost == 11.0 for trial in history) == len({trial.params["k"] for trial in history})


def test_what_is_not_affordable_is_not_suggested() -> None:
    pipe = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.PrefixEI(), 6)
    for _ in range(15):
        [suggestion] = pipe.ask(ft.PrefixEI(rent_or_buy=0.1), cost=5.0)
        assert suggestion.predicted_cost is not None
        assert suggestion.predicted_cost.mean == pytest.approx(1.0)
        pipe.tell(suggestion)


def test_where_nothing_is_affordable_the_prediction_tells_so() -> None:
    [suggestion] = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.PrefixEI(), 6).ask(ft.PrefixEI(), cost=0.5)
    assert suggestion.predicted_cost is not None
    assert suggestion.predicted_cost.mean >= 1.0 - 1e-9


def test_workers_share_the_prefixes_of_what_is_in_flight() -> None:
    pipe = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.PrefixEI(), 4)
    [running] = pipe.ask(ft.PrefixEI())
    new = Suggestion({**running.params, "x": 0.123456}, note={})
    pipe.leave_running(new)
    suggestions = pipe.ask(ft.PrefixEI(), count=12)
    assert len({tuple(s.params.values()) for s in suggestions}) == 12
    assert any(s.params["x"] == 0.123456 for s in suggestions)


def test_several_at_once_pay_for_a_new_prefix_once() -> None:
    pipe = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.PrefixEI(), 5)
    known = {trial.params["x"] for trial in pipe.history}
    for suggestion in pipe.ask(ft.PrefixEI(rent_or_buy=0.3), count=10):
        assert suggestion.predicted_cost is not None
        assert suggestion.predicted_cost.mean == pytest.approx(1.0 if suggestion.params["x"] in known else 11.0)
        known.add(suggestion.params["x"])


def test_a_finite_last_stage_is_not_tried_twice_with_the_same_prefix() -> None:
    space = ft.Space(stages={"first": {"x": ft.Float(0, 1)}, "last": {"k": ft.Choice("a", "b")}})
    history = Pipe(space, (3.0, 1.0)).run(ft.PrefixEI(), 20).history
    assert len({tuple(trial.params.values()) for trial in history}) == 20


@pytest.mark.parametrize("effort", ["ordinary", "several"])
def test_a_corner_is_not_tried_twice_with_the_same_prefix(effort: str) -> None:
    """The best of the last stage is its corner, and a climb ends there exactly."""

    def cornered(params: Params) -> float:
        return (params["x"] - 0.3) ** 2 + params["y"] + params["z"]

    history = Pipe(TWO_STAGES, (3.0, 1.0), cornered).run(ft.PrefixEI(), 20, effort=effort).history
    assert len({tuple(trial.params.values()) for trial in history}) == 20


def test_the_design_changes_a_dear_stage_seldom() -> None:
    history = Pipe(TWO_STAGES, (100.0, 1.0)).run(ft.PrefixEI(initial=10), 10).history
    assert len({trial.params["x"] for trial in history}) == 1
    cheap = Pipe(TWO_STAGES, (1.0, 1.0)).run(ft.PrefixEI(initial=10), 10).history
    assert len({trial.params["x"] for trial in cheap}) == 5


@pytest.mark.parametrize("strategy", [ft.PrefixEI(), ft.LaMBO(), StagedBO(), EEIPU()])
def test_without_costs_or_results_nothing_is_predicted_but_something_is_suggested(strategy: Strategy) -> None:
    suggestions = Pipe(TWO_STAGES, (10.0, 1.0)).ask(strategy, count=6)
    assert len({tuple(s.params.values()) for s in suggestions}) == 6
    assert all(s.predicted_cost is None for s in suggestions)


def test_declared_costs_are_predicted_before_anything_has_run() -> None:
    strategy = ft.PrefixEI(costs={"first": 7.0, "last": 2.0})
    assert strategy.suggest(History(Problem(TWO_STAGES)), Remaining(), 1, Randomness(0))[
        0
    ].predicted_cost == Prediction(9.0)


@pytest.mark.parametrize(
    "arguments",
    [{"bundle": ()}, {"bundle": (0,)}, {"bundle": (1.5,)}, {"rent_or_buy": 0}, {"rent_or_buy": -1.0}, {"initial": 0}],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict) -> None:
    with pytest.raises(InvalidArgument):
        ft.PrefixEI(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"depths": "deep"}, {"depths": (0,)}, {"restart": 0}, {"refine": -1}, {"beta": -1.0}, {"loss": "lost"}],
)
def test_lambos_arguments_are_checked(arguments: dict) -> None:
    with pytest.raises(InvalidArgument):
        ft.LaMBO(**arguments)


def test_depths_must_fit_the_stages() -> None:
    with pytest.raises(InvalidArgument, match="each stage but the last"):
        Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.LaMBO(depths=(1, 1)), 6)
    history = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.LaMBO(depths=(3,)), 8).history
    assert history[-1].note["lambo"]["tree"]["depths"] == [3]


def test_unknown_values_and_costs_of_the_baseline_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        StagedBO(value="pi")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        StagedBO(cost="free")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        EEIPU(pool=0)


def test_full_losses_judge_arms_by_all_of_their_regions() -> None:
    lazy = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.LaMBO(), 16).history
    full = Pipe(TWO_STAGES, (10.0, 1.0)).run(ft.LaMBO(loss="full"), 16).history
    assert lazy[-1].note["lambo"]["log_p"] != full[-1].note["lambo"]["log_p"]
    assert math.isclose(sum(math.exp(value) for value in full[-1].note["lambo"]["log_p"]), 1.0)
