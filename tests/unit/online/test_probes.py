"""Small probes around the present setting: what they do no harm to, what they find, and what they may cost."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from math import ceil
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.online import OnlineProblem, PairedProbes
from farthing.online.forecast import Forecast, Skill, binomial_deviation, least_deviation
from farthing.online.probes import (
    AFTER_MOVE,
    BETTER,
    ELSEWHERE,
    FROM_GUESS,
    HARMFUL,
    LARGEST_STEP,
    LARGEST_UNCLEAR_STEP,
    PATIENCE,
    SMALLEST_STEP,
    SPREAD,
    SURE,
    UNCLEAR,
    WORSE,
    ProbingPlayer,
)
from farthing.online.steps import SLOPE, Steps
from farthing.online.strategy import Observation, Play

SPACE = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True), "layers": ft.Int(1, 4), "kind": ft.Choice("a", "b")})
START = {"rate": 0.01, "layers": 2, "kind": "a"}


def problem(decisions: int = 30, *, seed: int = 0, can_undo: bool = False, **settings: Any) -> OnlineProblem:
    given = {"initial": [SPACE.check(START)], "can_undo": can_undo, "hold": 4, "overhead": 0.1, **settings}
    return OnlineProblem(SPACE.encoder, decisions, seed, **given)


def value_at(params: Any, round: int, *, best: float) -> float:
    """Rises in training whatever is played, and is higher the nearer the rate is to the best one."""
    distance = np.log10(params["rate"] / best)
    return float(1.0 - np.exp(-round / 5.0) - 0.1 * distance**2)


def played(player: ProbingPlayer, given: OnlineProblem, *, best: float, cost: float | None = None) -> list[Play]:
    plays = []
    for round in range(1, given.rounds + 1):
        plays.append(play := player.decide(round))
        if play.measure:
            value = value_at(given.params(play.place), round, best=best)
            player.observe(Observation(round, play.place, value, cost))
    return plays


@pytest.mark.parametrize("seed", range(5))
def test_a_poor_start_is_left_for_a_better_setting(seed: int) -> None:
    given = problem(seed=seed)
    player = PairedProbes().begin(given)
    played(player, given, best=0.5)
    assert given.params(player.exploit(30))["rate"] > 2.0 * START["rate"]


def test_nothing_is_tried_before_the_value_of_staying_is_known_nor_near_the_end() -> None:
    given = problem()
    plays = played(PairedProbes().begin(given), given, best=START["rate"])
    stays = [np.array_equal(play.place, given.place(START)) for play in plays]
    assert stays[:3] == [True, True, False]
    assert all(stays[-7:])


def test_a_probe_is_near_the_present_setting() -> None:
    given = problem()
    player = PairedProbes(step=0.1).begin(given)
    probe = next(play for play in played(player, given, best=START["rate"]) if play.saves)
    row, start = probe.place, given.place(START)
    assert isinstance(row, np.ndarray)
    assert isinstance(start, np.ndarray)
    assert np.count_nonzero(row != start) == 1, "one param differs"
    assert abs(row[0] - start[0]) <= 0.1 + 1e-9
    assert abs(row[1] - start[1]) <= 0.25 + 1e-9, "an integer goes to the next one at most"


@pytest.mark.parametrize("can_undo", [False, True])
def test_probes_go_farther_where_they_can_be_taken_back(can_undo: bool) -> None:
    given = problem(can_undo=can_undo)
    assert PairedProbes().begin(given).memory()["step"] == (0.2 if can_undo else 0.1)
    assert PairedProbes(step=0.05).begin(given).memory()["step"] == 0.05


@pytest.mark.parametrize("can_undo", [False, True])
def test_probes_go_far_from_a_start_that_is_not_trusted(can_undo: bool) -> None:
    given = problem(can_undo=can_undo, trusted=False)
    player = PairedProbes().begin(given)
    assert player.memory()["step"] == FROM_GUESS > 0.2
    reached = [
        abs(row[0] - given.place(START)[0])  # type: ignore[index]
        for play in played(player, given, best=1.0)
        if isinstance(row := play.place, np.ndarray)
    ]
    assert max(reached) > 0.3, "they go further than they may from a start that is trusted"
    assert PairedProbes(step=0.05).begin(given).memory()["step"] == 0.05


def test_probes_that_gain_nothing_become_rarer() -> None:
    given = problem(300, hold=1)
    plays = played(PairedProbes().begin(given), given, best=START["rate"])
    rounds = np.array([round for round, play in enumerate(plays) if play.saves])
    gaps = np.diff(rounds)
    assert gaps[-1] > 3 * gaps[0]


@pytest.mark.parametrize("overhead", [0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("cost", [0.01, 0.1, 1.0, 3.0])
def test_validations_cost_no_more_than_the_overhead(cost: float, overhead: float) -> None:
    """Given the cost, so that the first one too is known before it is taken."""
    given = problem(can_undo=True, overhead=overhead, validation_cost=cost / 4)
    player = PairedProbes().begin(given)
    played(player, given, best=0.5)
    assert player.spent <= overhead * given.rounds


def test_there_are_fewer_validations_the_more_one_costs() -> None:
    counts = []
    for cost in (0.01, 0.1, 1.0, 10.0):
        given = problem()
        plays = played(PairedProbes().begin(given), given, best=0.5, cost=cost / 4)
        counts.append(sum(play.measure for play in plays))
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 1


def harmed(*, can_undo: bool, **settings: Any) -> tuple[ProbingPlayer, Observation]:
    """A player whose probe has just ended far below the forecast, which it does not know yet."""
    given = problem(can_undo=can_undo, validation_cost=0.0, **settings)
    player = PairedProbes().begin(given)
    for round in range(1, given.rounds + 1):
        play = player.decide(round)
        if play.measure:
            is_probe = player.memory()["kind"] == "probe"
            observation = Observation(round, play.place, -5.0 if is_probe else 0.5 + 0.001 * round)
            if is_probe:
                return player, observation
            player.observe(observation)
    raise AssertionError("no probe")


@pytest.mark.parametrize("can_undo", [False, True])
def test_a_harmful_probe_is_taken_back_where_that_is_possible(can_undo: bool) -> None:
    player, observation = harmed(can_undo=can_undo)
    before = player.memory()
    assert player.undoes(observation) is can_undo
    assert player.memory() == before, "asking changes nothing"
    player.observe(observation)
    assert player.spent == (1.0 if can_undo else 0.0)
    np.testing.assert_array_equal(player.exploit(30), problem().place(START))


@pytest.mark.parametrize("reward", [-1e300, -np.inf])
def test_a_value_that_is_infinitely_bad_is_no_more_than_bad(reward: float) -> None:
    player, observation = harmed(can_undo=False)
    player.observe(Observation(observation.round, observation.place, reward))
    assert np.isfinite(player.memory()["gradient"]["gains"]).all()
    for round in range(observation.round + 1, 31):
        play = player.decide(round)
        if play.measure:
            player.observe(Observation(round, play.place, 0.5))


def test_a_bad_probe_is_taken_back_though_nothing_may_be_spent() -> None:
    player, observation = harmed(can_undo=True, overhead=0.02)
    assert not player.undoes(observation)
    assert player.undoes(Observation(observation.round, observation.place, -np.inf))


def test_a_bad_check_leaves_nothing_to_forecast_from() -> None:
    """The state from before the probe is put back; what was measured since then is of a training that is no more."""
    kinds, player = played_by({"check": [0.5, 0.5, -np.inf, 0.5], "probe": [0.499], "confirm": [0.5]}, can_undo=True)
    assert kinds[:5] == ["check", "check", "probe", "check", "check"]
    assert max(player.memory()["forecast"]["errors"]) < 0.01


def played_by(values: dict[str, list[float]], *, until: int = 30, **settings: Any) -> tuple[list[str], ProbingPlayer]:
    """What a player does in each decision, where those of a kind give these values, the last one for good."""
    given = problem(validation_cost=0.0, **settings)
    player, kinds = PairedProbes().begin(given), []
    for decision in range(1, until + 1):
        play = player.decide(decision)
        kinds.append(kind := player.memory()["kind"])
        if play.measure:
            left = values[kind]
            player.observe(Observation(decision, play.place, left.pop(0) if len(left) > 1 else left[0]))
    return kinds, player


def test_a_gain_that_lasts_is_kept() -> None:
    kinds, player = played_by({"check": [0.5], "probe": [0.6, 0.0], "confirm": [0.6]})
    assert kinds[:4] == ["check", "check", "probe", "confirm"]
    assert player.exploit(30) is not None
    assert not np.array_equal(player.exploit(30), problem().place(START))


def test_a_gain_that_does_not_last_is_given_up() -> None:
    kinds, player = played_by({"check": [0.5], "probe": [0.6, 0.0], "confirm": [0.5]})
    assert kinds[:4] == ["check", "check", "probe", "confirm"]
    np.testing.assert_array_equal(player.exploit(30), problem().place(START))


def test_a_probe_is_compared_with_staying_before_and_after_it() -> None:
    """Against its forecast the probe is worse. Between staying before and after it, which fell, it is better."""
    _, player = played_by({"check": [0.9, 0.92, 0.6], "probe": [0.91], "confirm": [0.0]}, until=4)
    (gain,) = player.memory()["gradient"]["gains"]
    assert gain > 0.0


def test_nothing_is_waited_for_while_staying_loses_more_and_more() -> None:
    probes = []
    for loss in (0.0, 2e-4):
        given = problem(60, validation_cost=0.0)
        player = PairedProbes().begin(given)
        for decision in range(1, 61):
            play = player.decide(decision)
            if play.measure:
                player.observe(Observation(decision, play.place, 0.9 - loss * decision**2))
        probes.append(player.memory()["probes"])
    steady, falling = probes
    assert falling > 1.3 * steady


def test_without_skill_a_probe_must_be_worth_its_price() -> None:
    """Values that jump cannot be predicted. A price of a hundred units over the rounds that are left is too much."""
    jumping = [0.5 + 0.01 * (i % 3) for i in range(30)]
    values = {"check": jumping, "probe": jumping, "confirm": jumping}
    cheap, _ = played_by({kind: list(each) for kind, each in values.items()})
    expensive, player = played_by({kind: list(each) for kind, each in values.items()}, price=100.0)
    assert cheap.count("probe") > 3
    assert expensive.count("probe") == 0
    assert "less than its price" in player.memory()["reason"] or "too late" in player.memory()["reason"]


def test_what_never_changes_shows_no_skill_that_would_pay_a_price() -> None:
    kinds, player = played_by({"check": [0.5], "probe": [0.5], "confirm": [0.5]}, price=100.0)
    assert player.skill == 0.0
    assert "probe" not in kinds


def test_skill_is_measured_against_the_last_value() -> None:
    skill = Skill()
    assert skill.score is None
    for value in (1.0, 2.0, 3.0, 4.0):
        skill.learn(value, predicted=value - 0.25)
    assert skill.score == pytest.approx(0.75)


def test_skill_is_that_of_the_last_predictions_and_nothing_where_these_are_few() -> None:
    skill = Skill()
    scores = []
    for value in range(4):
        skill.learn(float(value), predicted=float(value))
        scores.append(skill.score)
    assert scores == [None, None, None, 1.0], "the first value has none before it to compare with"
    for value in range(4, 40):
        skill.learn(float(value), predicted=value - 2.0)
    assert skill.score == pytest.approx(-1.0), "the first ones are forgotten"


def test_there_is_no_skill_in_predicting_what_never_changes_nor_where_nothing_is_predicted() -> None:
    constant, silent = Skill(), Skill()
    for _ in range(9):
        constant.learn(0.5, predicted=0.4)
        silent.learn(0.5, predicted=None)
    assert (constant.score, silent.score) == (0.0, None)


def test_a_player_is_restored_bit_for_bit() -> None:
    given = problem(can_undo=True)
    first, second = PairedProbes().begin(given), PairedProbes().begin(given)
    for round in range(1, 31):
        second.restore((), json.loads(json.dumps(first.memory())))
        play, again = first.decide(round), second.decide(round)
        assert given.params(again.place) == given.params(play.place)
        assert (again.measure, again.reason) == (play.measure, play.reason)
        if play.measure:
            first.observe(Observation(round, play.place, value_at(given.params(play.place), round, best=0.3)))


def test_other_initial_params_are_tried_before_neighbours() -> None:
    other = SPACE.check({"rate": 0.5, "layers": 4, "kind": "b"})
    given = problem(initial=[SPACE.check(START), other])
    plays = played(PairedProbes().begin(given), given, best=0.5)
    first = next(play.place for play in plays if play.saves)
    np.testing.assert_array_equal(first, given.place(other))


def test_candidates_are_probed_next_to_each_other() -> None:
    ladder = [SPACE.check({**START, "rate": rate}) for rate in (0.001, 0.01, 0.1, 1.0)]
    given = problem(candidates=ladder, initial=[ladder[0]])
    player = PairedProbes().begin(given)
    played(player, given, best=0.1)
    assert player.exploit(30) in (1, 2), "both are better than the start"


def test_without_a_start_the_middle_of_the_space_is_played() -> None:
    given = problem(initial=[])
    params = given.params(PairedProbes().begin(given).decide(1).place)
    assert params["rate"] == pytest.approx(np.sqrt(1e-3))
    few = problem(candidates=[SPACE.check({**START, "rate": rate}) for rate in (1e-3, 0.03, 1.0)], initial=[])
    assert PairedProbes().begin(few).decide(1).place == 1


# ---------------------------------------------------------------------------------------------- one decision at a time


def remembered(value: Callable[[int, Any], float], *, decisions: int = 30, **settings: Any) -> list[Any]:
    """What a player knows in each decision, before its value, which may depend on that; nothing limits its costs."""
    given = problem(decisions, **{"validation_cost": 0.0, "overhead": None, **settings})
    player, memories = PairedProbes().begin(given), []
    for decision in range(1, decisions + 1):
        play = player.decide(decision)
        memories.append(memory := player.memory())
        if play.measure:
            player.observe(Observation(decision, play.place, value(decision, memory)))
    return memories


def started() -> dict[str, Any]:
    """The start as a player keeps it."""
    return dict(problem().params(problem().place(START)))


def steps_after_probes(memories: list[Any]) -> list[float]:
    """The step of each probe, as a multiple of the first one."""
    steps = [memory["step"] for memory in memories if memory["kind"] == "probe"]
    return [step / steps[0] for step in steps]


@pytest.mark.parametrize("can_undo", [False, True])
def test_steps_become_shorter_after_harm_down_to_half_the_first_one(can_undo: bool) -> None:
    memories = remembered(lambda _, now: 0.0 if now["kind"] == "probe" else 0.5, decisions=60, can_undo=can_undo)
    steps = steps_after_probes(memories)
    assert len(steps) > 3
    assert steps == pytest.approx([max(WORSE**k, SMALLEST_STEP) for k in range(len(steps))])


@pytest.mark.parametrize("can_undo", [False, True])
def test_steps_become_longer_where_probes_tell_nothing(can_undo: bool) -> None:
    steps = steps_after_probes(remembered(lambda *_: 0.5, decisions=60, can_undo=can_undo))
    assert len(steps) > 4
    assert steps == pytest.approx([min(UNCLEAR**k, LARGEST_UNCLEAR_STEP[can_undo]) for k in range(len(steps))])


@pytest.mark.parametrize("can_undo", [False, True])
def test_steps_become_longer_after_gains_that_last(can_undo: bool) -> None:
    """Each probe is ten times as good as what was before it."""
    memories = remembered(lambda _, now: 10.0 ** now["probes"], decisions=20, can_undo=can_undo)
    assert [memory["kind"] for memory in memories[:6]] == ["check", "check", "probe", "confirm", "probe", "confirm"]
    steps = steps_after_probes(memories)
    assert steps == pytest.approx([min(BETTER**k, LARGEST_STEP[can_undo]) for k in range(len(steps))])


@pytest.mark.parametrize("decisions", [30, 41])
def test_the_last_quarter_tries_nothing_though_staying_loses_more_and_more(decisions: int) -> None:
    kinds = [memory["kind"] for memory in remembered(lambda t, _: 0.5 - 0.01 * t**2, decisions=decisions)]
    tried = max(decision for decision, kind in enumerate(kinds, start=1) if kind != "stay")
    assert tried == decisions - ceil(decisions / 4) + 1
    assert "stay" not in kinds[:tried]


def test_in_a_short_run_the_last_decision_tries_nothing() -> None:
    kinds = [memory["kind"] for memory in remembered(lambda t, _: 0.5 - 0.01 * t**2, decisions=4)]
    assert kinds == ["check", "check", "probe", "stay"]


def test_where_a_gain_is_lost_again_the_start_is_tried_once() -> None:
    """The first probe gains and is confirmed; then everything falls, whatever is tried."""
    memories = remembered(lambda t, _: 0.5 if t < 3 else 0.6 if t < 5 else 0.6 - 0.02 * (t - 4))
    urgent = [
        memory["place"] == started()
        for memory in memories
        if memory["kind"] == "probe" and Forecast(**memory["forecast"]).has_fallen(HARMFUL)
    ]
    assert urgent[:2] == [True, False]


def test_where_the_start_was_never_left_there_is_nothing_to_return_to() -> None:
    memories = remembered(lambda t, _: 0.5 - 0.01 * t**2)
    probes = [memory["place"] for memory in memories if memory["kind"] == "probe"]
    assert len(probes) > 5
    assert started() not in probes


@pytest.mark.parametrize(
    ("hold", "cost", "measured"),
    [(1, None, [False, True]), (4, None, [True, True]), (1, 0.0, [True, True])],
    ids=["a round to compare with", "the rounds of a hold are enough", "the cost is given"],
)
def test_the_first_validation_is_timed_against_a_round(hold: int, cost: float | None, measured: list[bool]) -> None:
    player = PairedProbes().begin(problem(hold=hold, validation_cost=cost))
    found = []
    for decision in (1, 2):
        found.append((play := player.decide(decision)).measure)
        if play.measure:
            player.observe(Observation(decision, play.place, 0.5))
    assert found == measured


@pytest.mark.parametrize(
    ("cost", "kinds"),
    [(0.8, ["stay"]), (0.6, ["check"]), (0.5, ["check", "check", "probe"])],
    ids=["two do not fit", "two fit", "one fits beside the two that were paid"],
)
def test_a_comparison_begins_where_its_validations_fit_the_allowance(cost: float, kinds: list[str]) -> None:
    """Of 30 decisions and a tenth, 1.55 may be spent in the first and 1.65 by the third. Before the forecast is known
    a comparison takes two validations, from then on one.
    """
    player = PairedProbes().begin(problem(validation_cost=cost))
    found = []
    for decision in range(1, len(kinds) + 1):
        play = player.decide(decision)
        found.append(player.memory()["kind"])
        if play.measure:
            player.observe(Observation(decision, play.place, 0.5))
    assert found == kinds


def test_after_a_wait_one_check_comes_before_the_probe() -> None:
    kinds = [memory["kind"] for memory in remembered(lambda *_: 0.5, decisions=60)]
    after_wait = [i for i in range(1, len(kinds)) if kinds[i - 1] == "stay" and kinds[i] == "check"]
    assert after_wait
    assert all(kinds[i + 1] == "probe" for i in after_wait)


# ------------------------------------------------------------------------------------------------- nothing to be lost


def steps_of(values: Callable[[int], float], **settings: Any) -> list[float]:
    """How far probes went, in steps of that time; all fail."""
    space = ft.Space({"x": ft.Float(0, 1)})
    given = OnlineProblem(space.encoder, 30, initial=[{"x": 0.5}], hold=4, validation_cost=0.0, **settings)
    player, found = PairedProbes(step=0.1).begin(given), []
    for decision in range(1, 16):
        play = player.decide(decision)
        memory = player.memory()
        if memory["kind"] == "probe":
            found.append(abs(memory["place"]["x"] - 0.5) / memory["step"])
        if play.measure:
            below = 0.005 if memory["kind"] == "probe" else 0.0
            player.observe(Observation(decision, play.place, values(decision) - below))
    return found


def test_steps_are_longer_only_where_staying_loses() -> None:
    """A training that has gained nothing may have nothing left to gain: long steps destroyed such networks."""
    nothing, losing = steps_of(lambda decision: 0.9 + 0.01 * (decision % 2)), steps_of(lambda t: 0.9 - 2e-3 * t**2)
    assert nothing == pytest.approx([1.0] * len(nothing))
    assert losing[-1] == pytest.approx(2.0)


# --------------------------------------------------------------------------------------- a start that is not trusted


def guessed(value: Callable[[int, Any], float], **settings: Any) -> list[Any]:
    return remembered(value, trusted=False, **settings)


def test_settings_all_over_the_space_are_tried_first_from_a_guess_and_none_waits() -> None:
    memories = guessed(lambda _, now: 0.4998 if now["kind"] == "probe" else 0.5)
    kinds = [memory["kind"] for memory in memories]
    assert kinds[: 1 + 2 * SPREAD] == ["check", *["check", "probe"] * SPREAD]
    assert kinds[1 + 2 * SPREAD] == "stay", "neighbours wait as ever"
    tried = [problem().place(memory["place"]) for memory in memories if memory["kind"] == "probe"][:SPREAD]
    rates = sorted(row[0] for row in tried if isinstance(row, np.ndarray))
    assert [int(SPREAD * rate) for rate in rates] == list(range(SPREAD)), "one in each part of the range"


def test_among_few_candidates_none_is_tried_first_twice() -> None:
    ladder = [SPACE.check({**START, "rate": rate}) for rate in (0.001, 0.01, 0.1)]
    memories = guessed(lambda _, now: 0.4 if now["kind"] == "probe" else 0.5, candidates=ladder, initial=[ladder[0]])
    first = [memory["place"] for memory in memories if memory["kind"] == "probe"][:2]
    assert sorted(first) == [1, 2]


@pytest.mark.parametrize(("by", "kinds"), [(-0.01, ["probe", "check"]), (0.01, ["probe", "confirm", "probe"])])
def test_of_the_settings_tried_first_from_a_guess_any_gain_counts_that_lasts(by: float, kinds: list[str]) -> None:
    """While a curve is steep its forecast is so unsure that hardly a gain is above it by a deviation."""
    player, observation, forecast = before_probe(trusted=False)
    player.observe(beating(observation, forecast, by=by))
    found = ["probe"]
    for decision in range(4, 3 + len(kinds)):
        play = player.decide(decision)
        found.append(player.memory()["kind"])
        if decision == 4 and by > 0.0:
            confirmed = replace(observation, round=4, place=play.place)
            player.observe(beating(confirmed, forecast, by=by))
    assert found == kinds
    assert (player.memory()["incumbent"] != started()) is (by > 0.0)


def test_neighbours_of_a_guess_must_beat_the_forecast_by_a_deviation() -> None:
    """Half a deviation above it."""

    def value(t: int, now: Any) -> float:
        forecast, is_tried = Forecast(**now["forecast"]), now["kind"] == "probe" and now["probes"] > SPREAD
        return forecast.at(t) + 0.5 * forecast.deviation if is_tried else 0.4998 if now["kind"] == "probe" else 0.5

    memories = guessed(value, decisions=60)
    assert sum(memory["kind"] == "probe" for memory in memories) > SPREAD
    assert "confirm" not in [memory["kind"] for memory in memories]


def test_steps_from_a_guess_become_no_longer_where_probes_tell_nothing() -> None:
    assert max(steps_after_probes(guessed(lambda *_: 0.5, decisions=60))) == pytest.approx(1.0)


def test_a_player_is_restored_from_a_memory_with_more_than_it_needs() -> None:
    player, _, _ = before_probe()
    again = PairedProbes().begin(problem())
    again.restore([], {**player.memory(), "stays": 3, "highest": 0.5})
    assert again.memory() == player.memory()


# ------------------------------------------------------------------------------------------- the size of a validation


def test_a_difference_that_is_chance_on_few_examples_is_no_gain() -> None:
    """One example of 100 more than a forecast that was always right so far: a gain without the size, not with it."""
    values = {"check": [0.5], "probe": [0.51], "confirm": [0.51]}
    sure, _ = played_by({kind: list(own) for kind, own in values.items()}, until=4)
    unsure, player = played_by(values, until=4, validation_size=100)
    assert (sure[3], unsure[3]) == ("confirm", "check")
    assert player.memory()["forecast"]["size"] == 100, "a forecast that begins again knows it too"


@pytest.mark.parametrize(("share", "size"), [(0.5, 100), (0.9, 2000)])
def test_the_deviation_of_a_share_is_binomial(share: float, size: int) -> None:
    rng = np.random.default_rng(0)
    drawn = rng.binomial(size, share, 4000) / size
    # the deviation of 4000 draws is known to 1/√8000 of it
    assert binomial_deviation(share, size) == pytest.approx(float(np.std(drawn)), rel=4.0 / np.sqrt(8000))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_share_of_few_examples_is_certain_nor_finer_than_one_of_them(share: float) -> None:
    assert binomial_deviation(share, 50) > 0.0
    assert least_deviation(share, 50) == 1.0 / 50


def test_the_deviation_of_a_forecast_is_at_least_what_chance_does() -> None:
    forecast = Forecast(size=400)
    for decision in range(1, 6):
        forecast.stayed(decision, 0.5)
    assert forecast.deviation == pytest.approx(binomial_deviation(0.5, 400) / 3.0)
    negative = Forecast(size=400, decision=1, value=-0.1)
    assert negative.deviation == pytest.approx(Forecast(size=400, decision=1, value=0.1).deviation), "an error rate"


# --------------------------------------------------------------------------------------------------------- predictions


def test_nothing_is_predicted_before_there_is_a_forecast() -> None:
    for until in (0, 1):
        _, player = played_by({"check": [0.5]}, until=until)
        assert player.predict(player.exploit(1), until + 1) is None


def test_predictions_of_staying_become_less_sure_as_those_of_a_random_walk() -> None:
    _, player = played_by({"check": [0.5, 0.6]}, until=2)
    forecast = Forecast(**player.memory()["forecast"])
    for decision, ahead in ((2, 1), (3, 1), (4, 2), (11, 9)):
        expected = (forecast.at(decision), np.sqrt(ahead) * forecast.deviation)
        assert player.predict(player.exploit(2), decision) == pytest.approx(expected)


def test_predictions_elsewhere_and_after_a_move_are_less_sure() -> None:
    _, player = played_by({"check": [0.5, 0.6]}, until=2)
    deviation = Forecast(**player.memory()["forecast"]).deviation
    place = np.array(player.exploit(2), dtype=float)
    place[0] += 0.05
    found = player.predict(problem().place(problem().params(place)), 3)
    assert found is not None
    assert found[1] == pytest.approx(deviation * np.sqrt(1.0 + ELSEWHERE + (0.05 * SLOPE) ** 2))
    _, moved = played_by({"check": [0.5, 0.6], "probe": [0.9]}, until=3)
    found = moved.predict(moved.exploit(3), 4)
    assert found is not None
    assert found[1] == pytest.approx(deviation * np.sqrt(1.0 + AFTER_MOVE))


def test_the_skill_is_that_of_predictions_and_bad_values_do_not_count() -> None:
    given = problem(validation_cost=0.0, overhead=None)
    player, skill = PairedProbes().begin(given), Skill()
    for decision in range(1, 16):
        play = player.decide(decision)
        if play.measure:
            value = -np.inf if decision == 9 else value_at(given.params(play.place), decision, best=START["rate"])
            predicted = player.predict(play.place, decision)
            if np.isfinite(value):
                skill.learn(value, predicted=None if predicted is None else predicted[0])
            player.observe(Observation(decision, play.place, value))
        assert player.skill == skill.score
    assert player.skill is not None
    assert player.skill > 0.0, "a smooth rise is predicted better than by its last value"


# --------------------------------------------------------------------------------------------------------------- limits


def before_probe(**settings: Any) -> tuple[ProbingPlayer, Observation, Forecast]:
    """A player that probes in decision 3, after staying gave 0.5 and 0.6, and its forecast of that decision."""
    _, player = played_by({"check": [0.5, 0.6]}, until=2, overhead=None, **settings)
    play = player.decide(3)
    assert player.memory()["kind"] == "probe"
    return player, Observation(3, play.place, 0.0), Forecast(**player.memory()["forecast"])


def beating(observation: Observation, forecast: Forecast, *, by: float) -> Observation:
    """The same with a value that is this many deviations above the forecast, which widens with each decision."""
    ahead = observation.round - 2
    return replace(observation, reward=forecast.at(observation.round) + by * ahead * forecast.deviation)


@pytest.mark.parametrize(("by", "kind"), [(SURE - 0.01, "check"), (SURE + 0.01, "confirm")])
def test_a_probe_must_beat_the_forecast_by_a_deviation(by: float, kind: str) -> None:
    player, observation, forecast = before_probe()
    player.observe(beating(observation, forecast, by=by))
    player.decide(4)
    assert player.memory()["kind"] == kind


@pytest.mark.parametrize(("by", "is_kept"), [(SURE - 0.01, False), (SURE + 0.01, True)])
def test_a_gain_lasts_where_it_beats_what_staying_would_have_given_by_then(by: float, is_kept: bool) -> None:
    player, observation, forecast = before_probe()
    player.observe(replace(observation, reward=9.0))
    confirmed = replace(observation, round=4, place=player.decide(4).place)
    player.observe(beating(confirmed, forecast, by=by))
    assert (player.memory()["incumbent"] != started()) is is_kept
    assert player.memory()["failures"] == (0 if is_kept else 1)
    if not is_kept:
        assert player.memory()["forecast"] == asdict(forecast), "as if it had not been tried"


@pytest.mark.parametrize("decision", [3, 4], ids=["a probe", "its confirmation"])
def test_what_is_taken_back_is_two_deviations_below_and_costs_its_decisions(decision: int) -> None:
    player, observation, forecast = before_probe(can_undo=True)
    if decision == 4:
        player.observe(replace(observation, reward=9.0))
        observation = replace(observation, round=4, place=player.decide(4).place)
    assert not player.undoes(beating(observation, forecast, by=-HARMFUL + 0.01))
    harmful = beating(observation, forecast, by=-HARMFUL - 0.01)
    assert player.undoes(harmful)
    player.observe(harmful)
    assert player.spent == decision - 2
    assert player.memory()["incumbent"] == started()
    assert player.memory()["saved_at"] is None
    stayed = Forecast(**player.memory()["forecast"])
    assert (stayed.decision, stayed.value) == (decision, 0.6), "staying is known as well as before"


def test_a_check_is_not_taken_back_unless_it_is_bad() -> None:
    player, observation, forecast = before_probe(can_undo=True)
    player.observe(beating(observation, forecast, by=0.0))
    check = Observation(4, player.decide(4).place, -1e9)
    assert player.memory()["kind"] == "check"
    assert not player.undoes(check)
    bad = replace(check, reward=-np.inf)
    assert player.undoes(bad)
    player.observe(bad)
    assert player.spent == 2.0, "the probe and the check"
    player.decide(5)
    assert not player.undoes(replace(bad, round=5)), "nothing is saved any more"


def test_a_bad_setting_that_was_moved_to_is_left() -> None:
    """The gain was confirmed; a later check gives no value."""
    values = {"check": [0.5, 0.5, -np.inf, 0.5], "probe": [0.9, 0.5], "confirm": [0.9]}
    _, before = played_by({kind: list(own) for kind, own in values.items()}, until=5, overhead=None)
    kinds, player = played_by(values, until=6, overhead=None)
    assert kinds == ["check", "check", "probe", "confirm", "probe", "check"]
    assert player.memory()["incumbent"] == started()
    assert player.memory()["forecast"]["decision"] is None
    assert player.memory()["step"] == pytest.approx(WORSE * before.memory()["step"]), "as after a probe that was worse"
    assert player.memory()["failures"] == before.memory()["failures"] + 1


def test_the_wait_for_the_next_probe_grows_with_each_failure_in_a_row() -> None:
    kinds = [memory["kind"] for memory in remembered(lambda *_: 0.5, decisions=80)]
    gaps = np.diff([decision for decision, kind in enumerate(kinds) if kind == "probe"])
    assert len(gaps) > 6
    # PATIENCE^k decisions, of which the last is the probe itself: at least one check comes before it
    assert gaps.tolist() == [1 + ceil(PATIENCE**k - 1.0) for k in range(1, len(gaps) + 1)]


def test_a_return_to_the_start_needs_no_more_than_to_be_better() -> None:
    def value(t: int, now: Any) -> float:
        falling = 0.5 if t < 3 else 0.6 if t < 5 else 0.6 - 0.02 * (t - 4)
        forecast = Forecast(**now["forecast"])
        is_return = now["kind"] == "probe" and now["place"] == started()
        return forecast.at(t) + 0.1 * forecast.deviation if is_return else falling

    memories = remembered(value)
    at = next(i for i, now in enumerate(memories) if now["kind"] == "probe" and now["place"] == started())
    assert memories[at + 1]["kind"] == "confirm"


# ----------------------------------------------------------------------------------------------------- gains and prices


def gain_and_price(player: ProbingPlayer) -> list[float]:
    """What the reason of a probe says, to two digits."""
    return [float(each) for each in re.findall(r"(?:gain|price of) ([^ ,]+)", player.memory()["reason"])]


def test_a_probe_of_which_nothing_is_known_may_gain_what_the_prior_says() -> None:
    """E[x₊] = σ/√(2π) of a normal x without a mean; σ is ten deviations of the forecast for each unit of distance."""
    player, observation, forecast = before_probe()
    given = problem()
    distance = float(np.linalg.norm(Steps(given).between(given.place(START), observation.place)))
    expected = SLOPE * distance * forecast.deviation / np.sqrt(2.0 * np.pi)
    assert gain_and_price(player)[0] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("cost", "price"), [(0.0, 0.0), (0.05, 0.0), (0.0, 1.0), (0.05, 1.0)])
def test_the_price_of_a_probe_is_two_validations_of_progress_and_a_share_of_what_was_given(
    cost: float, price: float
) -> None:
    """Staying gained 0.1 in the last decision. Four rounds are left in each of the last 28 decisions."""
    player = PairedProbes().begin(problem(validation_cost=cost, overhead=None, price=price))
    for decision, value in ((1, 0.5), (2, 0.6)):
        player.observe(Observation(decision, player.decide(decision).place, value))
    player.decide(3)
    assert gain_and_price(player)[1] == pytest.approx(2.0 * cost * 0.1 + price / (4 * 28), rel=0.05)


def test_a_run_makes_about_thirty_decisions() -> None:
    assert [PairedProbes().usual_hold(rounds) for rounds in (1, 10, 30, 60, 300, 3000)] == [1, 1, 1, 2, 10, 100]
