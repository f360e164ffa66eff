"""The online tuner: one loop, a state that can be continued, and a run that is a stored trial."""

import json
import math
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from benchmarks.baselines.bandits import EXP3S, UCB1, EpsilonGreedy, GPBandit, RestartedGPUCB, Softmax
from farthing.errors import InvalidArgument, InvalidValue, NoSuggestion, StorageError, StudyMismatch
from farthing.online import CEGPUCB, online_strategy_from_json
from farthing.online.log import Online
from farthing.online.tuner import OnlineTuner
from farthing.rules import Bernoulli, Capped, Every, ExpectedRegret
from farthing.storage import MemoryStorage, open_storage
from farthing.study import Study
from farthing.trials import State
from farthing.trials.measurement import played_rounds

ARMS = ft.Space({"arm": ft.Choice("a", "b", "c")})
VALUES = {"a": 0.1, "b": 0.9, "c": 0.5}
KNOWN = CEGPUCB(kernel="independent", noise=0.01, forgetting=0.01, scale=1.0)


def tuner(**changes: Any) -> OnlineTuner:
    """Without a bound on overhead: it goes by the clock, which must not decide here."""
    settings = {"rounds": 30, "strategy": KNOWN, "maximize": "accuracy", "overhead": None, **changes}
    return OnlineTuner(ARMS, **settings)


def play(online: OnlineTuner, rounds: int | None = None) -> list[tuple[str, bool]]:
    played = []
    for decision in islice(online, rounds or online.rounds):
        played.append((decision.params["arm"], decision.measure))
        if decision.measure:
            decision.observe(VALUES[decision.params["arm"]])
    return played


def test_a_small_space_is_enumerated_and_its_best_arm_is_played() -> None:
    online = tuner()
    played = play(online)
    assert played[0][1], "the first round is always measured"
    assert [arm for arm, measured in played if not measured][-5:] == ["b"] * 5
    assert online.best == {"arm": "b"}
    assert online.summary["validations"] + online.summary["skipped"] == 30


def test_minimizing_finds_the_smallest() -> None:
    online = tuner(maximize=None, minimize="loss")
    play(online)
    assert online.best == {"arm": "a"}


def test_initial_params_are_measured_first_in_their_order() -> None:
    played = play(tuner(initial=[{"arm": "c"}, {"arm": "a"}]))
    assert played[:2] == [("c", True), ("a", True)]


def test_what_is_learnt_needs_no_hyperparameters() -> None:
    space = ft.Space({"x": ft.Float(0, 1)})
    online = OnlineTuner(space, rounds=60, minimize="loss", seed=1)
    for decision in online:
        if decision.measure:
            decision.observe((decision.params["x"] - 0.3) ** 2)
    assert online.best["x"] == pytest.approx(0.3, abs=0.1)
    assert online.summary["skipped"] > 20


# ---- one way in --------------------------------------------------------------------------------------------------


def test_a_function_is_called_only_in_rounds_that_are_measured() -> None:
    online, called = tuner(strategy=replace(KNOWN, rule=Every(3))), []
    for decision in online:
        decision.observe(lambda: called.append(decision.round) or 0.5)  # noqa: B023
    assert called == list(range(1, 31, 3))
    assert online.summary["validations"] == 10


def test_the_loop_goes_on_where_it_was_left() -> None:
    online = tuner(rounds=9, strategy=replace(KNOWN, rule=Every(3)))
    for decision in online:
        decision.observe(lambda: 0.5)
        if decision.round == 4:
            break
    assert [decision.round for decision in online if decision.observe(lambda: 0.5) is None] == [5, 6, 7, 8, 9]
    assert list(online) == []


def test_a_last_round_that_was_not_to_be_measured_takes_no_value() -> None:
    online = tuner(rounds=2, strategy=replace(KNOWN, rule=Every(2)))
    next(online).observe(0.5)
    with pytest.raises(InvalidArgument, match="ends with its last round"):
        next(online).observe(0.5)


def test_an_earlier_decision_cannot_be_observed_any_more() -> None:
    online = tuner(strategy=replace(KNOWN, rule=Every(3)))
    first = next(online)
    first.observe(0.5)
    second = next(online)
    next(online)
    before = online.state_dict()
    with pytest.raises(InvalidArgument, match="for round 2 where round 3 is played"):
        second.observe(0.7)
    assert online.state_dict() == before


def test_a_decision_without_its_tuner_says_so() -> None:
    with pytest.raises(InvalidArgument, match="for decision in tuner"):
        ft.Decision({"arm": "a"}, True, "made by hand").observe(0.5)


def test_observing_twice_is_refused_and_changes_nothing() -> None:
    online = tuner()
    decision = next(online)
    decision.observe(0.5)
    before = online.state_dict()
    with pytest.raises(InvalidArgument, match="second for round 1"):
        decision.observe(0.7)
    assert online.state_dict() == before


@pytest.mark.parametrize("value", ["good", None, True, [0.5, 0.6]])
def test_a_value_that_is_no_number_is_refused_and_the_round_stays_open(value: Any) -> None:
    online = tuner()
    decision = next(online)
    before = online.state_dict()
    for given in (value, lambda: value):
        with pytest.raises(InvalidValue):
            decision.observe(given)
        assert online.state_dict() == before
    decision.observe(0.5)


def test_a_negative_cost_is_refused() -> None:
    online = tuner()
    decision = next(online)
    before = online.state_dict()
    with pytest.raises(InvalidValue):
        decision.observe(0.5, cost=-1.0)
    assert online.state_dict() == before


def test_the_next_round_needs_the_measurement_that_was_asked_for() -> None:
    online = tuner(rounds=1)
    next(online)
    with pytest.raises(InvalidArgument, match="must be observed"):
        next(online)


def test_the_loop_ends_after_the_last_round() -> None:
    online = tuner(rounds=2)
    play(online)
    assert list(online) == []


# ---- bad rounds --------------------------------------------------------------------------------------------------


def failing() -> float:
    raise RuntimeError("the validation crashed")


BAD_VALUES = {"nan": math.nan, "infinity": math.inf, "minus infinity": -math.inf, "a crash": failing}
SEVERAL = {
    "learnt": CEGPUCB(kernel="independent"),
    "known": KNOWN,
    "arms": EXP3S(rule=Bernoulli(0.5)),
    "in blocks": RestartedGPUCB(kernel="independent", forgetting=0.01, block=8, scale=1.0, noise=0.01),
    "probes": ft.PairedProbes(),
}


def played_with_bad_rounds(online: OnlineTuner, bad: Any, *, rounds: int = 30) -> list[tuple[str, bool]]:
    """Arm c is bad whenever it is measured, and so is every arm at first."""
    played = []
    for decision in islice(online, rounds):
        played.append((decision.params["arm"], decision.measure))
        is_bad = decision.params["arm"] == "c" or decision.round == 1
        if decision.measure:
            decision.observe(bad if is_bad else VALUES[decision.params["arm"]])
    return played


@pytest.mark.parametrize("bad", BAD_VALUES.values(), ids=BAD_VALUES)
@pytest.mark.parametrize("strategy", SEVERAL.values(), ids=SEVERAL)
def test_a_bad_round_is_an_observation_and_the_run_goes_on(strategy: Any, bad: Any) -> None:
    online = tuner(strategy=strategy, validation_cost=0.01, cost_unit="validations")
    assert len(played_with_bad_rounds(online, bad)) == 30
    assert online.summary["validations"] + online.summary["skipped"] == 30


def test_an_arm_that_is_always_bad_is_not_played() -> None:
    online = tuner(strategy=CEGPUCB(kernel="independent"))
    played = played_with_bad_rounds(online, math.nan)
    assert online.summary["bad"] > 0
    assert online.best == {"arm": "b"}
    assert [arm for arm, measured in played[10:] if not measured].count("c") == 0


@pytest.mark.parametrize("strategy", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("killed_after", [1, 2, 5, 17])
def test_bad_rounds_are_stored_and_played_again(strategy: Any, killed_after: int) -> None:
    settings = {"strategy": strategy, "validation_cost": 0.01, "hold": 1}
    unbroken = tuner(**settings)
    whole = played_with_bad_rounds(unbroken, math.nan)
    clock = ft.FakeClock()
    storage = MemoryStorage(clock=clock)
    killed = tuner(storage=storage, **settings)
    played_with_bad_rounds(killed, math.nan, rounds=killed_after)
    state = json.loads(json.dumps(killed.state_dict()))
    clock.advance(3600.0)
    carried_on = tuner(storage=storage, **settings)
    durable = carried_on.round
    assert played_with_bad_rounds(carried_on, math.nan) == whole[durable:]
    loaded = tuner(**settings)
    loaded.load_state_dict(state)
    assert played_with_bad_rounds(loaded, math.nan) == whole[killed_after:]
    assert carried_on.summary == loaded.summary == unbroken.summary


def step_of(online: OnlineTuner) -> float:
    player: Any = online._run.player
    return float(player.memory()["step"])


def test_a_run_begins_with_a_guess_that_is_not_trusted() -> None:
    rates = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True)})
    trusting = OnlineTuner(rates, rounds=30, initial={"rate": 0.01})
    guessing = OnlineTuner(rates, rounds=30, guess={"rate": 0.01})
    assert next(trusting).params == next(guessing).params
    assert step_of(guessing) == pytest.approx(3.0 * step_of(trusting))
    with pytest.raises(InvalidArgument, match="got others for trusted"):
        guessing.load_state_dict(trusting.state_dict())


def test_a_state_of_before_there_were_guesses_is_one_of_a_trusted_start() -> None:
    whole = tuner(initial={"arm": "a"})
    played = play(whole)
    begun = tuner(initial={"arm": "a"})
    assert play(begun, 7) == played[:7]
    state = json.loads(json.dumps(begun.state_dict()))
    del state["settings"]["trusted"]
    later = tuner(initial={"arm": "a"})
    later.load_state_dict(state)
    assert play(later) == played[7:]


def test_a_start_that_nobody_gave_is_a_guess() -> None:
    rates = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True)})
    alone = OnlineTuner(rates, rounds=30)
    assert step_of(alone) == step_of(OnlineTuner(rates, rounds=30, guess={"rate": 0.01}))
    state = json.loads(json.dumps(alone.state_dict()))
    assert state["settings"]["trusted"] is False
    state["settings"]["trusted"] = True  # as earlier versions wrote
    OnlineTuner(rates, rounds=30).load_state_dict(state)


def test_a_run_begins_in_one_way() -> None:
    with pytest.raises(InvalidArgument, match=r"got initial=\{'arm': 'a'\} and guess=\{'arm': 'b'\}\. Keep initial="):
        tuner(initial={"arm": "a"}, guess={"arm": "b"})


def test_where_rounds_leave_nothing_behind_a_model_of_all_params_decides_and_overhead_has_no_bound() -> None:
    arms = OnlineTuner(ARMS, rounds=40, maximize="reward", stateless=True)
    assert arms.strategy == CEGPUCB()
    assert arms.hold == 1
    for decision in arms:
        decision.observe(lambda at=decision.params["arm"]: VALUES[at])  # a function, whose time would be bounded else
    assert arms.best == {"arm": "b"}
    assert arms.state_dict()["settings"]["overhead"] is None
    assert OnlineTuner(ARMS, rounds=40, stateless=True, overhead=0.2).state_dict()["settings"]["overhead"] == 0.2
    assert OnlineTuner(ARMS, rounds=40).state_dict()["settings"]["overhead"] == 0.1


def test_a_strategy_that_is_given_decides_also_where_rounds_leave_nothing_behind() -> None:
    assert OnlineTuner(ARMS, rounds=40, stateless=True, strategy=KNOWN).strategy == KNOWN


def test_what_leaves_nothing_behind_has_nothing_to_restore() -> None:
    with pytest.raises(InvalidArgument, match=r"stateless=True says that there is nothing to take back, got save="):
        OnlineTuner(ARMS, rounds=40, stateless=True, save=lambda: 1, restore=lambda saved: None)
    with pytest.raises(InvalidArgument, match="stateless must be true or false, got 'yes'"):
        OnlineTuner(ARMS, rounds=40, stateless="yes")  # type: ignore[arg-type]


def test_a_crash_of_a_validation_is_logged_with_its_round(caplog: pytest.LogCaptureFixture) -> None:
    next(tuner()).observe(failing)
    assert "could not be measured in round 1" in caplog.text
    assert "the validation crashed" in caplog.text


def test_stopping_a_validation_by_hand_is_no_observation() -> None:
    def stopped() -> float:
        raise KeyboardInterrupt

    online = tuner()
    decision = next(online)
    with pytest.raises(KeyboardInterrupt):
        decision.observe(stopped)
    assert online.summary["validations"] == 0
    decision.observe(0.5)


# ---- wrong arguments ---------------------------------------------------------------------------------------------


def test_limits_are_refused_with_where_they_belong() -> None:
    with pytest.raises(InvalidArgument, match=r"has no argument 'constraints'. Limits belong to a study of whole runs"):
        OnlineTuner(ARMS, rounds=10, constraints={"memory": ft.AtMost(1.0)})  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"reward": "profit"},
        {"candidates": [{"arm": "a"}, {"arm": "a"}]},
        {"candidates": [{"arm": "a"}]},
        {"candidates": [{"arm": "z"}, {"arm": "a"}]},
        {"hold": 0},
        {"hold": 2.5},
        {"overhead": 1.5},
        {"overhead": "10%"},
        {"price": -0.1},
        {"price": 0.1, "strategy": CEGPUCB(rule=Every(2))},
        {"validation_cost": -1.0},
        {"validation_size": 1},
        {"validation_size": 99.5},
        {"validation_size": 100},
        {"validation_size": 100, "strategy": ft.PairedProbes(), "reward": "gain"},
        {"strategy": CEGPUCB.paper(rewards="gains")},
        {"cost_unit": ""},
        {"cost_unit": 3},
        {"strategy": "PairedProbe"},
        {"strategy": ft.PairedProbes},
        {"strategy": ft.Random()},
        {"strategy": Every(5)},
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        tuner(**wrong)


@pytest.mark.parametrize("strategy", [ft.PairedProbes(), CEGPUCB()], ids=["probes", "model"])
@pytest.mark.parametrize("value", [93.0, -0.2])
def test_with_a_size_a_value_that_is_no_share_is_refused_and_can_be_given_again(strategy: Any, value: float) -> None:
    online = tuner(strategy=strategy, validation_size=400, validation_cost=0.0)
    decision = next(each for each in online if each.measure)
    with pytest.raises(InvalidArgument, match=r"Give 0\.93 and not 93"):
        decision.observe(value)
    decision.observe(0.93)
    assert online.summary["validations"] == 1


@pytest.mark.parametrize("strategy", [ft.PairedProbes(), CEGPUCB()], ids=["probes", "model"])
def test_what_the_tuner_is_told_of_the_size_and_the_price_is_part_of_its_state(strategy: Any) -> None:
    settings = {"strategy": strategy, "validation_size": 400, "price": 0.5, "validation_cost": 0.0}
    online = tuner(**settings)
    for decision in online:
        decision.observe(0.5 if decision.measure else lambda: 0.5)
        if decision.round == 12:
            break
    state = online.state_dict()
    again = tuner(**settings)
    again.load_state_dict(state)
    assert again.round == 12
    with pytest.raises(InvalidArgument, match="validation_size"):
        tuner(**{**settings, "validation_size": 500}).load_state_dict(state)


def test_a_state_from_before_an_argument_was_there_is_continued() -> None:
    online = tuner(strategy=CEGPUCB())
    for decision in online:
        decision.observe(0.5)
        if decision.round == 3:
            break
    state = online.state_dict()
    del state["settings"]["validation_size"]
    del state["settings"]["strategy"]["arguments"]["climbs"]
    again = tuner(strategy=CEGPUCB())
    again.load_state_dict(state)
    assert again.round == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: CEGPUCB(kernel="cubic"),
        lambda: CEGPUCB(forgetting=1.0),
        lambda: CEGPUCB(beta=-1.0),
        lambda: CEGPUCB(noise=0.0),
        lambda: CEGPUCB(silent="loud"),  # type: ignore[arg-type]
        lambda: CEGPUCB(rule=Every),  # type: ignore[arg-type]
        lambda: CEGPUCB(rule="every"),  # type: ignore[arg-type]
        lambda: CEGPUCB(rule=ft.Random()),  # type: ignore[arg-type]
        lambda: ft.PairedProbes(step=0.0),
        lambda: ExpectedRegret(-0.1),
        lambda: Bernoulli(1.5),
        lambda: Every(0),
        lambda: Capped(Every(1), 0),
    ],
)
def test_wrong_settings_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()


# ---- costs and rewards -------------------------------------------------------------------------------------------


def test_a_function_is_charged_its_seconds() -> None:
    clock = ft.FakeClock()
    online = tuner(clock=clock)
    next(online).observe(lambda: clock.advance(3.5) or 0.5)
    assert online.summary["paid"] == 3.5


def test_a_value_costs_one_unless_told() -> None:
    online = tuner()
    next(online).observe(0.5)
    next(online).observe(0.5, cost=4.0)
    assert online.summary["paid"] == 5.0


@pytest.mark.parametrize(
    ("settings", "unit"), [({"cost_unit": "seconds"}, "seconds"), ({"cost_unit": "dollars"}, "dollars")]
)
def test_a_value_that_does_not_say_what_it_cost_is_refused_where_the_unit_needs_it(
    settings: dict[str, Any], unit: str
) -> None:
    online = tuner(**settings)
    decision = next(online)
    with pytest.raises(InvalidArgument, match=f"cost {unit}, got a value in round 1"):
        decision.observe(0.5)
    decision.observe(0.5, cost=2.0)
    assert online.summary["paid"] == 2.0


def test_units_are_not_mixed_in_a_run() -> None:
    clock = ft.FakeClock()
    seconds, counted = tuner(clock=clock), tuner(clock=clock)
    next(seconds).observe(lambda: clock.advance(3.0) or 0.5)
    with pytest.raises(InvalidArgument, match="cost seconds, got a value in round 2"):
        next(seconds).observe(0.5)
    next(counted).observe(0.5)
    next(counted).observe(lambda: clock.advance(3.0) or 0.5)
    assert counted.summary["paid"] == 2.0


def test_a_gain_from_two_measurements_is_charged_twice() -> None:
    online = tuner(reward="gain", strategy=replace(KNOWN, rule=Every(3)))
    decision = next(online)
    assert decision.measure_before
    decision.observe_before(0.5)
    decision.observe(0.6)
    assert online.summary["paid"] == 2.0
    assert online._run.player.observations[-1].reward == pytest.approx(0.1)


def test_a_function_measures_before_a_round_only_where_that_is_needed() -> None:
    online, clock, called = tuner(reward="gain", strategy=replace(KNOWN, rule=Every(3))), ft.FakeClock(), []
    online._clock = clock
    for decision in islice(online, 6):
        decision.observe_before(lambda: called.append(decision.round) or clock.advance(1.0) or 0.5)  # noqa: B023
        decision.observe(lambda: clock.advance(2.0) or 0.6)
    assert called == [1, 4]
    assert online.summary["paid"] == 6.0


def test_only_a_gain_has_a_value_before_its_round() -> None:
    with pytest.raises(InvalidArgument, match="reward='gain'"):
        next(tuner()).observe_before(0.5)


def test_a_gain_without_its_baseline_is_shared_among_the_rounds_since_the_last_measurement() -> None:
    online = tuner(reward="gain", strategy=replace(KNOWN, rule=Every(3)))
    decision = next(online)
    decision.observe_before(0.5)
    decision.observe(0.6)
    decision = list(islice(online, 3))[-1]
    assert decision.measure
    decision.observe(0.9)
    assert online._run.player.observations[-1].reward == pytest.approx(0.1)


# ---- continuing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strategy",
    [
        GPBandit(kernel="independent", acquisition="ei", rule=Bernoulli(0.5)),
        RestartedGPUCB(kernel="independent", forgetting=0.01, block=8, scale=1.0, noise=0.01),
        UCB1(rule=Bernoulli(0.5)),
        EpsilonGreedy(rule=Every(2)),
        Softmax(rule=Bernoulli(0.5)),
        EXP3S(rule=Bernoulli(0.5)),
    ],
)
def test_every_baseline_continues_from_its_state(strategy: Any) -> None:
    whole = tuner(strategy=strategy, seed=2)
    first = play(whole, rounds=13)
    carried_on = tuner(strategy=strategy, seed=2)
    carried_on.load_state_dict(json.loads(json.dumps(whole.state_dict())))
    assert play(whole, rounds=17) == play(carried_on, rounds=17)
    assert len(first) == 13


def test_a_state_of_another_tuner_is_refused_and_nothing_changes() -> None:
    online = tuner(seed=1)
    next(online)
    before = online.state_dict()
    with pytest.raises(InvalidArgument, match="seed"):
        online.load_state_dict(tuner(seed=2).state_dict())
    with pytest.raises(InvalidArgument, match="format"):
        online.load_state_dict({"format": 7})
    assert online.state_dict() == before


# ---- storage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [30, 7])
def test_a_run_that_is_started_again_after_its_end_says_so_and_begins_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rounds: int
) -> None:
    url = f"sqlite:///{tmp_path}/online.db"
    online = tuner(storage=url)
    play(online, rounds=rounds)
    if rounds < 30:
        online.close()
    assert not caplog.records
    again = tuner(storage=url)
    assert [record.getMessage() for record in caplog.records] == [
        f"The online run 'online' has ended, after {rounds} of 30 rounds: there is nothing to play. Give another name= "
        "to begin anew."
    ]
    assert list(again) == []
    again.close()
    assert (again.round, again.best, again.summary) == (online.round, online.best, online.summary)
    storage = open_storage(url)
    (trial,) = storage.history("online").trials
    assert (trial.state, trial.attempt, storage.check()) == (State.DONE, 1, [])
    storage.close()


def test_a_run_is_one_trial_whose_rounds_are_measurements() -> None:
    storage = MemoryStorage()
    online = tuner(storage=storage, name="arms")
    played = play(online)
    study = Study.load("arms", storage)
    (trial,) = study.trials
    assert trial.state is State.DONE
    assert [point.params["arm"] for point in trial.measurements if point.params] == [arm for arm, _ in played]
    assert [point.value is not None for point in trial.measurements] == [measured for _, measured in played]
    assert [point.step for point in trial.measurements] == list(range(1, 31))
    assert study.ledger.spent == {"validation": online.summary["paid"]}
    assert study.ledger.saved == {"skipped validations": online.summary["saved"]}
    assert study.ledger.unit == "validations"
    assert study.best.value == trial.points[-1].value


def test_an_observation_is_durable_when_observe_returns(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'online.db'}"
    online = tuner(storage=url, strategy=replace(KNOWN, rule=Every(4)))
    for decision in islice(online, 5):
        if decision.measure:
            decision.observe(0.5)
    (trial,) = open_storage(url).history("online").trials
    assert len(trial.measurements) == 5
    assert trial.state is State.RUNNING


def test_timed_runs_are_kept_in_seconds() -> None:
    storage, clock = MemoryStorage(), ft.FakeClock()
    online = tuner(storage=storage, clock=clock, rounds=1)
    next(online).observe(lambda: clock.advance(2.0) or 0.5)
    assert str(Study.load("online", storage).ledger.unit) == "seconds"


def test_closing_early_ends_the_trial() -> None:
    storage = MemoryStorage()
    online = tuner(storage=storage)
    play(online, rounds=10)
    online.close()
    (trial,) = storage.history("online").trials
    assert trial.state is State.DONE
    assert len(trial.measurements) == 10


def test_another_space_under_the_same_name_is_refused() -> None:
    storage = MemoryStorage()
    play(tuner(storage=storage, rounds=1), rounds=1)
    with pytest.raises(StudyMismatch, match="space"):
        OnlineTuner(ft.Space({"x": ft.Float(0, 1)}), rounds=3, maximize="accuracy", storage=storage)


def test_other_settings_under_the_same_name_are_refused() -> None:
    storage = MemoryStorage()
    play(tuner(storage=storage, rounds=2))
    with pytest.raises(StudyMismatch, match="others for strategy, rounds"):
        tuner(storage=storage, rounds=3, strategy=replace(KNOWN, rule=Every(2)))


def test_a_stored_online_study_has_nothing_to_ask_for() -> None:
    storage = MemoryStorage()
    play(tuner(storage=storage))
    with pytest.raises(NoSuggestion, match="OnlineTuner"):
        Study.load("online", storage).ask()


def test_a_run_that_was_killed_is_carried_on_in_the_same_trial() -> None:
    clock = ft.FakeClock()
    storage = MemoryStorage(clock=clock)
    strategy = replace(KNOWN, rule=Every(2))
    killed = tuner(storage=storage, strategy=strategy, rounds=12)
    play(killed, rounds=6)
    checkpoint = json.loads(json.dumps(killed.state_dict()))
    play(killed, rounds=3)  # lost with the process: the checkpoint is older
    clock.advance(3600.0)
    carried_on = tuner(storage=storage, strategy=strategy, rounds=12)
    carried_on.load_state_dict(checkpoint)
    assert carried_on.round == 6
    play(carried_on, rounds=6)
    (trial,) = storage.history("online").trials
    assert (trial.state, trial.attempt) == (State.DONE, 2)
    assert [point.step for point in trial.points] == [1, 3, 5, 7, 9, 11]
    assert trial.costs == {"failed": 2.0, "validation": 6.0}, "two rounds were lost, the others were used"


RESUMED = {
    "known": KNOWN,
    "learnt": CEGPUCB(kernel="independent"),
    "coins": replace(KNOWN, rule=Bernoulli(0.4)),
    "without a model": EXP3S(rule=Bernoulli(0.5)),
    "in blocks": RestartedGPUCB(kernel="independent", forgetting=0.01, block=8, scale=1.0, noise=0.01),
}


@pytest.mark.parametrize("strategy", RESUMED.values(), ids=RESUMED)
@pytest.mark.parametrize("killed_after", [1, 4, 13, 29])
def test_a_new_tuner_of_the_same_name_carries_on_where_the_killed_one_was(strategy: Any, killed_after: int) -> None:
    unbroken = play(tuner(strategy=strategy))
    clock = ft.FakeClock()
    storage = MemoryStorage(clock=clock)
    play(tuner(storage=storage, strategy=strategy), rounds=killed_after)
    clock.advance(3600.0)
    carried_on = tuner(storage=storage, strategy=strategy)
    durable = max(round for round, (_, measured) in enumerate(unbroken[:killed_after], start=1) if measured)
    assert carried_on.round == durable
    assert play(carried_on, rounds=30 - durable) == unbroken[durable:]
    whole = tuner(strategy=strategy)
    play(whole)
    assert carried_on.summary == whole.summary


def test_a_gain_is_carried_on_with_the_value_before_it() -> None:
    clock = ft.FakeClock()
    storage = MemoryStorage(clock=clock)
    settings = {"reward": "gain", "strategy": replace(KNOWN, rule=Every(3)), "storage": storage}
    killed = tuner(**settings)
    decision = next(killed)
    decision.observe_before(0.5)
    decision.observe(0.6)
    clock.advance(3600.0)
    carried_on = tuner(**settings)
    assert carried_on.state_dict() == killed.state_dict()


def test_going_back_undoes_the_rounds_that_came_after() -> None:
    storage = MemoryStorage()
    online = tuner(storage=storage, strategy=replace(KNOWN, rule=Every(2)), rounds=12)
    play(online, rounds=3)
    early = online.state_dict()
    play(online, rounds=6)
    online.load_state_dict(early)
    play(online, rounds=2)
    (trial,) = storage.history("online").trials
    rounds = played_rounds(trial)
    assert [point.step for point in rounds] == [1, 2, 3, 4, 5]
    assert [point.sequence for point in rounds] == [0, 1, 2, 9, 10]


def test_a_closed_run_takes_no_more_rounds() -> None:
    online = tuner(storage=MemoryStorage())
    play(online, rounds=3)
    decision = next(online)
    online.close()
    for call in (lambda: next(online), lambda: decision.observe(0.5)):
        with pytest.raises(InvalidArgument, match="closed"):
            call()


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can be written to: what SQLite finds on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("rounds_before", [0, 4])
def test_an_observation_that_cannot_be_written_has_not_happened(tmp_path: Path, rounds_before: int) -> None:
    url = f"sqlite:///{tmp_path / 'online.db'}"
    settings = {"strategy": replace(KNOWN, rule=Every(2)), "rounds": 8}
    online, unhurt = tuner(storage=url, **settings), tuner(**settings)
    if rounds_before:
        play(online, rounds=rounds_before)
        play(unhurt, rounds=rounds_before)
    decision, other = next(online), next(unhurt)
    assert decision == other
    before = online.state_dict()
    with full_disk(), pytest.raises(StorageError):
        decision.observe(0.5)
    assert online.state_dict() == before
    decision.observe(0.5)
    other.observe(0.5)
    assert play(online, rounds=7 - rounds_before) == play(unhurt, rounds=7 - rounds_before)
    assert online.state_dict() == unhurt.state_dict()
    storage = open_storage(url)
    (trial,) = storage.history("online").trials
    assert [point.step for point in trial.measurements] == list(range(1, 9))
    assert (trial.state, storage.check()) == (State.DONE, [])
    storage.close()


def test_the_last_silent_round_that_cannot_be_written_can_be_decided_again(tmp_path: Path) -> None:
    online = tuner(storage=f"sqlite:///{tmp_path / 'online.db'}", strategy=replace(KNOWN, rule=Every(3)), rounds=3)
    play(online, rounds=2)
    with full_disk(), pytest.raises(StorageError):
        next(online)
    assert online.round == 2
    assert next(online).round == 3
    assert online.summary["skipped"] == 2


def test_silent_rounds_are_written_together_with_the_observation_that_ends_them() -> None:
    storage = MemoryStorage()
    online = tuner(storage=storage, strategy=replace(KNOWN, rule=Every(10)))
    play(online, rounds=10)
    before = storage.history("online").version
    play(online, rounds=1)
    assert storage.history("online").version == before + 1
    (trial,) = storage.history("online").trials
    assert len(trial.measurements) == 11


def test_two_tuners_at_once_have_trials_of_their_own() -> None:
    storage = MemoryStorage()
    first, second = tuner(storage=storage), tuner(storage=storage)
    for online in (first, second):
        next(online).observe(0.5)
    assert [trial.number for trial in storage.history("online").trials] == [0, 1]


def test_a_tuned_run_knows_rules_by_their_stored_names() -> None:
    storage = MemoryStorage()
    play(tuner(storage=storage, strategy=replace(KNOWN, rule=Capped(Every(3), 4))))
    stored = Study.load("online", storage).strategy
    assert isinstance(stored, Online)
    assert online_strategy_from_json(stored.strategy) == replace(KNOWN, rule=Capped(Every(3), 4))


# ---- trainings that can be put back ------------------------------------------------------------------------------


RATES = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True)})


class Training:
    """A level that grows a little in each round, and is ruined by a rate other than the first one."""

    def __init__(self) -> None:
        self.level, self.restored = 0.5, 0

    def train(self, rate: float) -> None:
        self.level += 0.001 if rate == pytest.approx(0.01) else -1.0

    def save(self) -> float:
        return self.level

    def restore(self, saved: float) -> None:
        self.level, self.restored = saved, self.restored + 1


def trained(training: Training, *, can_undo: bool, rounds: int = 60, **settings: Any) -> OnlineTuner:
    undoing = {"save": training.save, "restore": training.restore} if can_undo else {}
    clock = ft.FakeClock()
    online = OnlineTuner(RATES, rounds=60, initial={"rate": 0.01}, clock=clock, **{**undoing, **settings})
    for decision in islice(online, rounds):
        training.train(**decision.params)
        clock.advance(10.0)
        if decision.measure:
            clock.advance(2.0)
            decision.observe(training.level)
    return online


def test_a_probe_that_does_harm_is_taken_back() -> None:
    spoilt, saved = Training(), Training()
    trained(spoilt, can_undo=False)
    online = trained(saved, can_undo=True)
    assert saved.restored >= 1
    assert online.summary["undone"] == 2 * saved.restored
    assert saved.level > spoilt.level + 1.0


def test_the_ledger_has_what_was_taken_back() -> None:
    """A validation costs 1 and a fifth of a round, so that the two rounds of a probe cost 10."""
    storage = MemoryStorage()
    trained(Training(), can_undo=True, storage=storage)
    points = played_rounds(storage.history("online").trials[0])
    undone = [point for point in points if point.metrics.get("rounds taken back")]
    assert undone
    for point in undone:
        assert point.metrics["validation in rounds"] == pytest.approx(0.2)
        assert point.cost == {"validation": 1.0, "overhead": pytest.approx(10.0)}


def test_a_state_remembers_what_was_taken_back() -> None:
    first = trained(Training(), can_undo=True, rounds=31)
    again = OnlineTuner(RATES, rounds=60, initial={"rate": 0.01}, save=lambda: 0, restore=lambda saved: 0)
    again.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert again.summary == first.summary
    assert again.summary["undone"] > 0


def test_a_state_without_anything_saved_says_so(caplog: pytest.LogCaptureFixture) -> None:
    training = Training()
    online = OnlineTuner(RATES, rounds=60, initial={"rate": 0.01}, save=training.save, restore=training.restore)
    while online.summary["undone"] == 0:
        decision = next(online)
        online.load_state_dict(online.state_dict())
        decision = next(online) if decision.measure else decision
        training.train(**decision.params)
        if decision.measure:
            decision.observe(training.level)
    assert training.restored == 0
    assert "are not taken back" in caplog.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"save": lambda: 0}, "must be given together, got only save"),
        ({"restore": lambda saved: 0}, "must be given together, got only restore"),
        ({"save": 3, "restore": lambda saved: 0}, "save must be a function, got 3"),
    ],
)
def test_saving_and_restoring_go_together(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        tuner(**given)


def test_whether_probes_can_be_taken_back_is_a_setting_of_the_run() -> None:
    with pytest.raises(InvalidArgument, match="others for can_undo"):
        tuner(save=lambda: 0, restore=lambda saved: 0).load_state_dict(tuner().state_dict())


@pytest.mark.parametrize(("seconds", "share"), [(0.1, 0.1), (10.0, 0.1), (40.0, 0.1), (40.0, 0.3)])
@pytest.mark.parametrize("strategy", [None, CEGPUCB(), CEGPUCB(rule=Every(1))], ids=["probes", "learnt", "always"])
def test_validations_are_timed_and_take_no_more_than_the_overhead(strategy: Any, seconds: float, share: float) -> None:
    """Rounds take 10 seconds. What a validation costs is known after the first, which all of these can pay."""
    clock = ft.FakeClock()
    online = OnlineTuner(RATES, rounds=60, strategy=strategy, initial={"rate": 0.01}, clock=clock, overhead=share)
    for decision in online:
        clock.advance(10.0)
        decision.observe(lambda: clock.advance(seconds) or 0.5)
    assert 0 < online.summary["paid"] <= share * 600.0


def test_without_an_overhead_nothing_is_bounded() -> None:
    clock = ft.FakeClock()
    online = OnlineTuner(RATES, rounds=20, strategy=CEGPUCB(rule=Every(1)), clock=clock, overhead=None)
    for decision in online:
        clock.advance(10.0)
        decision.observe(lambda: clock.advance(30.0) or 0.5)
    assert online.summary["validations"] == 20


@pytest.mark.parametrize("strategy", [ft.PairedProbes(), CEGPUCB(rule=Every(2))], ids=["probes", "known"])
def test_a_setting_is_held_and_measured_in_the_last_of_its_rounds(strategy: Any) -> None:
    online = OnlineTuner(RATES, rounds=50, strategy=strategy, initial={"rate": 0.01}, hold=6)
    played = []
    for decision in online:
        played.append((decision.params["rate"], decision.measure))
        decision.observe(lambda: 0.5)
    for first in range(0, 50, 6):
        held = played[first : first + 6]
        assert len({rate for rate, _ in held}) == 1
        assert not any(measured for _, measured in held[:-1])


def test_a_run_makes_about_thirty_decisions_unless_told() -> None:
    held = [OnlineTuner(RATES, rounds=rounds).hold for rounds in (10, 100, 900)]
    assert held == [1, 3, 30]
    assert OnlineTuner(RATES, rounds=900, strategy=CEGPUCB()).hold == 1


def test_a_bad_probe_is_taken_back_whatever_that_costs() -> None:
    training, bad = Training(), 0
    online = OnlineTuner(
        RATES, rounds=60, initial={"rate": 0.01}, save=training.save, restore=training.restore, overhead=0.02,
        validation_cost=0.01,
    )  # fmt: skip
    for decision in online:
        training.train(**decision.params)
        if decision.measure:
            is_bad = training.level < 0.0
            bad += is_bad
            decision.observe(math.nan if is_bad else training.level)
    assert bad == training.restored > 0
    assert training.level > 0.5


def test_a_tuner_says_where_it_is_and_has_a_bill() -> None:
    online = ft.OnlineTuner(
        ft.Space({"lr": ft.Float(0, 1)}), rounds=9, initial={"lr": 0.5}, maximize="accuracy", seed=0
    )
    assert repr(online) == "OnlineTuner(maximize='accuracy', round 0 of 9, 0 validations, 0 skipped)"
    assert online.ledger.total == 0
    for decision in online:
        if decision.measure:
            decision.observe(0.5)
    summary = online.summary
    counts = f"{summary['validations']} validations, {summary['skipped']} skipped"
    assert repr(online) == f"OnlineTuner(maximize='accuracy', round 9 of 9, {counts})"
    assert (online.ledger.unit, online.ledger.total) == ("validations", summary["paid"])
    assert sum(online.ledger.saved.values()) == summary["saved"]
