"""The online tuner: two calls, a state that can be carried on, and a run that is a stored trial."""

import json
import math
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, InvalidValue, NoSuggestion, StorageError, StudyMismatch
from farthing.rules import Bernoulli, Capped, Every, ExpectedRegret
from farthing.storage import MemoryStorage, open_storage
from farthing.strategies.online import CEGPUCB, online_strategy_from_json
from farthing.strategies.online.bandits import EXP3S, UCB1, EpsilonGreedy, GPBandit, RestartedGPUCB, Softmax
from farthing.study import Study
from farthing.study.online import Online, OnlineTuner, played_rounds
from farthing.trials import State

ARMS = ft.Space({"arm": ft.Choice("a", "b", "c")})
VALUES = {"a": 0.1, "b": 0.9, "c": 0.5}
KNOWN = CEGPUCB(kernel="independent", noise=0.01, forgetting=0.01, scale=1.0)


def tuner(**changes: Any) -> OnlineTuner:
    settings = {"rounds": 30, "strategy": KNOWN, "maximize": "accuracy", **changes}
    return OnlineTuner(ARMS, **settings)


def play(online: OnlineTuner, rounds: int | None = None) -> list[tuple[str, bool]]:
    played = []
    for _ in range(rounds or online.rounds):
        decision = online.decide()
        played.append((decision.params["arm"], decision.measure))
        if decision.measure:
            online.observe(VALUES[decision.params["arm"]])
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
    for _ in range(60):
        decision = online.decide()
        if decision.measure:
            online.observe((decision.params["x"] - 0.3) ** 2)
    assert online.best["x"] == pytest.approx(0.3, abs=0.1)
    assert online.summary["skipped"] > 20


# ---- errors leave everything as it was ---------------------------------------------------------------------------


def test_observing_without_a_decision_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Call decide"):
        tuner().observe(0.5)


def test_observing_twice_is_refused_and_changes_nothing() -> None:
    online = tuner()
    online.decide()
    online.observe(0.5)
    before = online.state_dict()
    with pytest.raises(InvalidArgument, match="second for round 1"):
        online.observe(0.7)
    assert online.state_dict() == before


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "good", None, True])
def test_a_value_that_is_no_finite_number_is_refused_and_the_round_stays_open(value: Any) -> None:
    online = tuner()
    online.decide()
    before = online.state_dict()
    with pytest.raises(InvalidValue):
        online.observe(value)
    assert online.state_dict() == before
    online.observe(0.5)


def test_a_negative_cost_is_refused() -> None:
    online = tuner()
    online.decide()
    before = online.state_dict()
    with pytest.raises(InvalidValue):
        online.observe(0.5, cost=-1.0)
    assert online.state_dict() == before


def test_deciding_before_the_measurement_it_asked_for_is_refused() -> None:
    online = tuner()
    online.decide()
    with pytest.raises(InvalidArgument, match="must be observed"):
        online.decide()


def test_there_are_no_rounds_after_the_last() -> None:
    online = tuner(rounds=2)
    play(online)
    with pytest.raises(InvalidArgument, match="2 rounds"):
        online.decide()


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"reward": "profit"},
        {"candidates": [{"arm": "a"}, {"arm": "a"}]},
        {"candidates": [{"arm": "a"}]},
        {"candidates": [{"arm": "z"}, {"arm": "a"}]},
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        tuner(**wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CEGPUCB(kernel="cubic"),
        lambda: CEGPUCB(forgetting=1.0),
        lambda: CEGPUCB(beta=-1.0),
        lambda: CEGPUCB(noise=0.0),
        lambda: CEGPUCB(silent="loud"),  # type: ignore[arg-type]
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


def test_timing_charges_the_seconds_of_the_validation() -> None:
    clock = ft.FakeClock()
    online = tuner(clock=clock)
    decision = online.decide()
    with decision.timing():
        clock.advance(3.0)
    with decision.timing():
        clock.advance(0.5)
    online.observe(0.5)
    assert online.summary["paid"] == 3.5


def test_a_measurement_costs_one_unless_told() -> None:
    online = tuner()
    online.decide()
    online.observe(0.5)
    online.decide()
    online.observe(0.5, cost=4.0)
    assert online.summary["paid"] == 5.0


def test_a_gain_from_two_measurements_is_charged_twice() -> None:
    online = tuner(reward="gain", strategy=replace(KNOWN, rule=Every(3)))
    decision = online.decide()
    assert decision.measure_before
    online.observe(0.6, before=0.5)
    assert online.summary["paid"] == 2.0
    assert online._run.player.observations[-1].reward == pytest.approx(0.1)


def test_a_gain_without_its_baseline_is_shared_among_the_rounds_since_the_last_measurement() -> None:
    online = tuner(reward="gain", strategy=replace(KNOWN, rule=Every(3)))
    online.decide()
    online.observe(0.6, before=0.5)
    for _ in range(3):
        decision = online.decide()
    assert decision.measure
    online.observe(0.9)
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
    online.decide()
    before = online.state_dict()
    with pytest.raises(InvalidArgument, match="seed"):
        online.load_state_dict(tuner(seed=2).state_dict())
    with pytest.raises(InvalidArgument, match="format"):
        online.load_state_dict({"format": 7})
    assert online.state_dict() == before


# ---- storage -----------------------------------------------------------------------------------------------------


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
    for _ in range(5):
        decision = online.decide()
        if decision.measure:
            online.observe(0.5)
    (trial,) = open_storage(url).history("online").trials
    assert len(trial.measurements) == 5
    assert trial.state is State.RUNNING


def test_timed_runs_are_kept_in_seconds() -> None:
    storage, clock = MemoryStorage(), ft.FakeClock()
    online = tuner(storage=storage, clock=clock, rounds=1)
    decision = online.decide()
    with decision.timing():
        clock.advance(2.0)
    online.observe(0.5)
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
    assert trial.costs == {"failed": 5.0, "validation": 3.0}, "what the first attempt paid is not forgotten"


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
    killed.decide()
    killed.observe(0.6, before=0.5)
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
    online.close()
    for call in (online.decide, lambda: online.observe(0.5)):
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
    assert online.decide() == unhurt.decide()
    before = online.state_dict()
    with full_disk(), pytest.raises(StorageError):
        online.observe(0.5)
    assert online.state_dict() == before
    online.observe(0.5)
    unhurt.observe(0.5)
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
        online.decide()
    assert online.round == 2
    assert online.decide().round == 3
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
        online.decide()
        online.observe(0.5)
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
    while online.round < rounds:
        decision = online.decide()
        training.train(**decision.params)
        clock.advance(10.0)
        if decision.measure:
            clock.advance(2.0)
            online.observe(training.level)
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
        decision = online.decide()
        online.load_state_dict(online.state_dict())
        training.train(**decision.params)
        if decision.measure:
            online.observe(training.level)
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
def test_validations_are_timed_and_take_no_more_than_the_overhead(seconds: float, share: float) -> None:
    """Rounds take 10 seconds. What a validation costs is known after the first, which all of these can pay."""
    clock = ft.FakeClock()
    strategy = ft.PairedProbes(overhead=share)
    online = OnlineTuner(RATES, rounds=60, strategy=strategy, initial={"rate": 0.01}, clock=clock, cost_unit="seconds")
    for _ in range(60):
        decision = online.decide()
        clock.advance(10.0)
        if decision.measure:
            clock.advance(seconds)
            online.observe(0.5, cost=seconds)
    assert 0 < online.summary["paid"] <= share * 600.0
