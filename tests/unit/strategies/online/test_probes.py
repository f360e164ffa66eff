"""Small probes around the present setting: what they do no harm to, what they find, and what they may cost."""

import json
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.strategies.online import OnlineProblem, PairedProbes
from farthing.strategies.online.forecast import Forecast
from farthing.strategies.online.probes import ProbingPlayer
from farthing.strategies.online.steps import Gradient, Steps
from farthing.strategies.online.strategy import Observation, Play

SPACE = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True), "layers": ft.Int(1, 4), "kind": ft.Choice("a", "b")})
START = {"rate": 0.01, "layers": 2, "kind": "a"}


def problem(rounds: int = 120, *, seed: int = 0, can_undo: bool = False, **settings: Any) -> OnlineProblem:
    initial = [SPACE.check(START)]
    return OnlineProblem(SPACE.encoder, rounds, seed, **{"initial": initial, "can_undo": can_undo, **settings})


def value_at(params: Any, round: int, *, best: float) -> float:
    """Rises in training whatever is played, and is higher the nearer the rate is to the best one."""
    distance = np.log10(params["rate"] / best)
    return float(1.0 - np.exp(-round / 20.0) - 0.1 * distance**2)


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
    assert given.params(player.exploit(120))["rate"] > 2.0 * START["rate"]


def test_a_setting_is_held_for_some_rounds_and_measured_in_the_last_of_them() -> None:
    given = problem()
    plays = played(PairedProbes(hold=6).begin(given), given, best=0.5)
    for first in range(0, 120, 6):
        block = plays[first : first + 6]
        assert len({json.dumps(given.params(play.place)) for play in block}) == 1
        assert not any(play.measure for play in block[:-1])


def test_a_run_makes_about_thirty_decisions() -> None:
    assert [PairedProbes().rounds_held(rounds) for rounds in (10, 100, 900)] == [1, 3, 30]


def test_nothing_is_tried_before_the_value_of_staying_is_known_nor_near_the_end() -> None:
    given = problem()
    plays = played(PairedProbes().begin(given), given, best=START["rate"])
    stays = [np.array_equal(play.place, given.place(START)) for play in plays]
    assert all(stays[:8])
    assert not all(stays[8:12])
    assert all(stays[-30:])


def test_a_probe_is_near_the_present_setting() -> None:
    given = problem()
    player = PairedProbes(step=0.1).begin(given)
    probe = next(play for play in played(player, given, best=START["rate"]) if play.saves)
    row, start = probe.place, given.place(START)
    assert isinstance(row, np.ndarray)
    assert isinstance(start, np.ndarray)
    assert abs(row[0] - start[0]) <= 0.1 + 1e-9
    assert abs(row[1] - start[1]) <= 0.25 + 1e-9, "an integer goes to the next one at most"


def test_probes_that_gain_nothing_become_rarer() -> None:
    given = problem(300)
    plays = played(PairedProbes(hold=1).begin(given), given, best=START["rate"])
    rounds = np.array([round for round, play in enumerate(plays) if play.saves])
    gaps = np.diff(rounds)
    assert gaps[-1] > 3 * gaps[0]


@pytest.mark.parametrize("overhead", [0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("cost", [0.01, 0.1, 1.0, 3.0])
def test_validations_cost_no_more_than_the_overhead(cost: float, overhead: float) -> None:
    """Given the cost, so that the first one too is known before it is taken."""
    given = problem(can_undo=True)
    player = PairedProbes(overhead=overhead, validation_cost=cost).begin(given)
    played(player, given, best=0.5)
    assert player.memory()["spent"] <= overhead * given.rounds


def test_there_are_fewer_validations_the_more_one_costs() -> None:
    counts = []
    for cost in (0.01, 0.1, 1.0, 10.0):
        given = problem()
        plays = played(PairedProbes().begin(given), given, best=0.5, cost=cost)
        counts.append(sum(play.measure for play in plays))
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 1


def harmed(*, can_undo: bool, **settings: Any) -> tuple[ProbingPlayer, Observation]:
    """A player whose probe has just ended far below the forecast, which it does not know yet."""
    given = problem(can_undo=can_undo, **settings)
    player = PairedProbes(validation_cost=0.0).begin(given)
    for round in range(1, given.rounds + 1):
        play = player.decide(round)
        if play.measure:
            is_probe = player.memory()["block"]["kind"] == "probe"
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
    assert player.memory()["spent"] == (4.0 if can_undo else 0.0)
    np.testing.assert_array_equal(player.exploit(120), problem().place(START))


def test_a_value_that_is_infinitely_bad_is_no_more_than_bad() -> None:
    player, observation = harmed(can_undo=False)
    player.observe(Observation(observation.round, observation.place, -1e300))
    assert np.isfinite(player.memory()["gradient"]["gains"]).all()
    for round in range(observation.round + 1, 121):
        play = player.decide(round)
        if play.measure:
            player.observe(Observation(round, play.place, 0.5))


def test_a_player_is_restored_bit_for_bit() -> None:
    given = problem(can_undo=True)
    first, second = PairedProbes().begin(given), PairedProbes().begin(given)
    for round in range(1, 121):
        play = first.decide(round)
        second.restore((), json.loads(json.dumps(first.memory())))
        again = second.decide(round)
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
    assert player.exploit(120) in (1, 2), "both are better than the start"


def test_without_a_start_the_middle_of_the_space_is_played() -> None:
    given = problem(initial=[])
    params = given.params(PairedProbes().begin(given).decide(1).place)
    assert params["rate"] == pytest.approx(np.sqrt(1e-3))
    few = problem(candidates=[SPACE.check({**START, "rate": rate}) for rate in (1e-3, 0.03, 1.0)], initial=[])
    assert PairedProbes().begin(few).decide(1).place == 1


# ------------------------------------------------------------------------------------------------------------- pieces


def test_the_forecast_is_the_last_value_and_a_part_of_its_change() -> None:
    forecast = Forecast()
    forecast.stayed(10, 0.5, block=5)
    assert not forecast.is_ready(10)
    forecast.stayed(15, 0.6, block=5)
    assert forecast.is_ready(15)
    assert forecast.at(20) == pytest.approx(0.6 + 0.7 * 0.1)


def test_one_broken_round_does_not_move_the_deviation() -> None:
    forecast = Forecast()
    for round in range(10):
        forecast.stayed(round, 0.5 + 0.01 * (-1) ** round, block=1)
    usual = forecast.deviation
    forecast.stayed(10, -1e6, block=1)
    assert forecast.deviation < 2.0 * usual


def test_the_gradient_points_where_probes_have_paid() -> None:
    gradient, rng = Gradient(), np.random.default_rng(0)
    for _ in range(10):
        gradient.learn(np.array([0.1, 0.0]), 3.0)
        gradient.learn(np.array([0.0, 0.1]), -3.0)
    draws = np.array([gradient.sampled(2, rng) for _ in range(50)])
    assert (draws[:, 0] > 0).all()
    assert (draws[:, 1] < 0).all()


def test_inactive_parameters_are_no_obstacle() -> None:
    space = ft.Space(
        {"kind": ft.Choice("sgd", "adam"), "momentum": ft.Float(0.0, 0.9, when={"kind": "sgd"}), "rate": ft.Float(0, 1)}
    )
    given = OnlineProblem(space.encoder, 100, 0, initial=[space.check({"kind": "adam", "rate": 0.5})])
    steps, rng = Steps(given), np.random.default_rng(0)
    start = given.place(given.initial[0])
    found = [given.params(steps.towards(Gradient(), start, step=0.1, rng=rng)) for _ in range(40)]
    assert {params["kind"] for params in found} == {"sgd", "adam"}
