"""What a coordinator opens, claims and closes, and what of a strategy's suggestions the budget covers."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from sqlalchemy import Engine, event

import farthing as ft
from farthing.costs import FakeClock, Remaining
from farthing.errors import InvalidArgument, InvalidValue, StaleAttempt
from farthing.extending import Measurement, Randomness
from farthing.session import session_of
from farthing.session.records import MORE_CHOICES, Records
from farthing.storage import MemoryStorage, StudyRecord
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, History, Outcome, Prediction, Problem, State, Suggestion, Trial

CURVES = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
FULL = {"epochs": 9}


@dataclass
class Listed:
    """Suggests what it was given, from the front; keeps how many were asked for."""

    suggestions: Sequence[Suggestion]
    on_suggest: Callable[[], object] = lambda: None
    is_blind: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.counts: list[int] = []

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        self.counts.append(count)
        self.on_suggest()
        return self.suggestions[:count]


def costing(*costs: float, resume_from: int | None = None) -> list[Suggestion]:
    return [
        Suggestion({"x": 0.1 * i}, FULL, predicted_cost=Prediction(cost), resume_from=resume_from)
        for i, cost in enumerate(costs)
    ]


def records_in(storage: MemoryStorage, *, clock: FakeClock | None = None, **settings: object) -> Records:
    problem = Problem(CURVES, **{"cost_unit": "dollars", **settings})  # type: ignore[arg-type]
    record = StudyRecord("study", problem)
    if not storage.list_studies():
        storage.create_study(record)
    return Records(storage, record, lease=60.0, retries=1, clock=clock)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(FakeClock())


@pytest.fixture
def records(storage: MemoryStorage) -> Records:
    return records_in(storage)


def opened(records: Records, strategy: Listed, count: int = 4, **left: float) -> list[float]:
    """What the opened trials are predicted to cost."""
    opening = records.open(strategy, lambda history: (Remaining(**left), count), taken={})  # type: ignore[arg-type]
    return [trial.suggestion.predicted_cost.mean for trial in opening.trials if trial.suggestion.predicted_cost]


def test_each_suggestion_must_fit_what_those_before_it_leave(records: Records) -> None:
    assert opened(records, Listed(costing(4.0, 4.0, 4.0)), cost=10.0) == [4.0, 4.0]


def test_a_suggestion_that_does_not_fit_makes_room_for_a_cheaper_one(records: Records) -> None:
    assert opened(records, Listed(costing(4.0, 7.0, 6.0)), cost=10.0) == [4.0, 6.0]


def test_new_configurations_use_up_trials_and_continuations_do_not(records: Records) -> None:
    assert opened(records, Listed(costing(1.0, 1.0, 1.0)), trials=2) == [1.0, 1.0]
    assert opened(records, Listed(costing(2.0, 2.0, 2.0, resume_from=0)), trials=0) == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(("unit", "expected"), [("seconds", [3.0]), ("dollars", [3.0, 3.0])])
def test_a_cost_in_seconds_must_fit_the_wall_clock(storage: MemoryStorage, unit: str, expected: list[float]) -> None:
    records = records_in(storage, cost_unit=unit)
    fitting, _ = costing(3.0, 3.0)
    too_long = Suggestion({"x": 0.9}, FULL, predicted_cost=Prediction(3.0 if unit == "dollars" else 30.0))
    assert opened(records, Listed([fitting, too_long]), seconds=5.0) == expected


def test_where_nothing_fits_more_is_asked_for_and_as_many_as_asked_are_opened(records: Records) -> None:
    strategy = Listed(costing(50.0, 50.0, 1.0, 2.0, 3.0))
    assert opened(records, strategy, 2, cost=10.0) == [1.0, 2.0]
    assert strategy.counts == [2, 2 + MORE_CHOICES]


def test_what_was_tried_before_is_no_alternative(records: Records) -> None:
    [known, other] = costing(1.0, 2.0)
    assert opened(records, Listed([known]), 1) == [1.0]
    records.refresh()
    expensive = Suggestion({"x": 0.9}, FULL, predicted_cost=Prediction(50.0))
    assert opened(records, Listed([expensive, known, other]), 1, cost=10.0) == [2.0]


def test_the_same_configuration_at_another_fidelity_is_an_alternative(records: Records) -> None:
    known = Suggestion({"x": 0.5}, {"epochs": 3}, predicted_cost=Prediction(1.0))
    longer = Suggestion({"x": 0.5}, FULL, predicted_cost=Prediction(2.0))
    assert opened(records, Listed([known]), 1) == [1.0]
    records.refresh()
    expensive = Suggestion({"x": 0.9}, FULL, predicted_cost=Prediction(50.0))
    assert opened(records, Listed([expensive, longer]), 1, cost=10.0) == [2.0]


def test_what_does_not_fit_is_returned_and_nothing_is_opened(records: Records) -> None:
    strategy = Listed(costing(50.0))
    opening = records.open(strategy, lambda history: (Remaining(cost=10.0), 1), taken={})
    assert opening.trials == []
    assert [suggestion.params for suggestion in opening.uncovered] == [{"x": 0.0}]
    assert len(records.refresh()) == 0


def test_a_strategy_is_not_asked_for_no_trials(records: Records) -> None:
    strategy = Listed(costing(1.0))
    assert records.open(strategy, lambda history: (Remaining(), 0), taken={}).trials == []
    assert strategy.counts == []


def test_more_suggestions_than_asked_are_refused(records: Records) -> None:
    class Generous(Listed):
        def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
            return costing(*[1.0] * (count + 1))

    with pytest.raises(InvalidArgument, match="at most as many trials as asked, got 3 for 2 from Generous"):
        opened(records, Generous([]), 2)


def test_a_history_that_moved_is_read_again_and_the_plan_made_again(storage: MemoryStorage, records: Records) -> None:
    other, lengths = records_in(storage), []

    def overtake() -> None:
        if len(lengths) == 1:
            opened(other, Listed(costing(1.0)), 1)

    def plan(history: History) -> tuple[Remaining, int]:
        lengths.append(len(history))
        return Remaining(), 1

    opening = records.open(Listed(costing(1.0), overtake), plan, taken={})
    assert ([trial.number for trial in opening.trials], lengths) == ([1], [0, 1])


def test_opened_and_claimed_trials_are_held_until_they_end(storage: MemoryStorage, records: Records) -> None:
    storage.enqueue_trial("study", Suggestion({"x": 0.5}, FULL))
    opened(records, Listed(costing(1.0)), 1)
    records.claim(5, taken={})
    assert records.leases.held == [Attempt(0, 1), Attempt(1, 1)]
    records.close(Attempt(0, 1), Outcome(State.DONE, value=0.5))
    records.release(Attempt(1, 1))
    assert records.leases.held == []
    assert [trial.state for trial in records.refresh()] == [State.DONE, State.PENDING]


def test_a_trial_that_could_not_be_closed_is_let_go(storage: MemoryStorage, records: Records) -> None:
    """Otherwise a run would neither work on it nor wait for its lease to end."""
    (trial,) = records.open(Listed(costing(1.0)), lambda history: (Remaining(), 1), taken={}).trials  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        records.close(Attempt(0, 1), Outcome(State.DONE, value=float("nan")))
    assert storage.history("study").trials[0].state is State.RUNNING
    assert not records.holds(trial)
    assert records.leases.held == []


def test_as_many_are_claimed_as_asked_or_the_one_that_is_named(storage: MemoryStorage, records: Records) -> None:
    for _ in range(4):
        storage.enqueue_trial("study", Suggestion({"x": 0.5}, FULL))
    assert records.refresh().waiting == 4
    assert [trial.number for trial in records.claim(1, number=2, taken={})] == [2]
    assert [trial.number for trial in records.claim(2, taken={})] == [0, 1]
    assert [trial.number for trial in records.claim(0, taken={})] == []
    assert [trial.number for trial in records.claim(2, taken={})] == [3]
    assert records.refresh().waiting == 0


def test_reading_brings_what_changed_and_keeps_the_history_where_nothing_did(
    storage: MemoryStorage, records: Records
) -> None:
    before = records.refresh()
    assert records.refresh() is before
    storage.enqueue_trial("study", Suggestion({"x": 0.5}, FULL))
    assert records.history is before
    assert len(records.refresh()) == 1
    assert len(records.history) == 1


def test_suggesting_is_charged_as_overhead(storage: MemoryStorage, records: Records) -> None:
    began = time.perf_counter()
    opened(records, Listed(costing(1.0)), 1)
    assert 0.0 < storage.history("study").trials[0].overhead <= time.perf_counter() - began


def test_settings_are_stored_and_others_stay(tmp_path: Path) -> None:
    storage = SqlStorage(tmp_path / "study.db")
    storage.create_study(StudyRecord("study", Problem(CURVES), settings={"a": 1, "b": 1}))
    records = Records(storage, storage.load_study("study"), lease=60.0, retries=1, closes_storage=True)
    records.remember({"b": 2})
    assert records.settings == storage.load_study("study").settings == {"a": 1, "b": 2}
    assert records.folder == tmp_path / "study.db.files"
    records.let_go()
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]  # SQLite deletes its log with the last connection


def test_the_database_finds_the_best_until_the_history_is_read(tmp_path: Path) -> None:
    storage = SqlStorage(tmp_path / "study.db")
    storage.create_study(StudyRecord("study", Problem(CURVES)))
    records = Records(storage, storage.load_study("study"), lease=60.0, retries=1, closes_storage=True)
    for value in (0.4, 0.2, 0.3):
        records.add(Suggestion({"x": 0.5}, FULL), Outcome(State.DONE, value=value), tags=())
    found = records.leaders()
    assert found is not None
    assert [trial.number for trial in found.lineage] == [1]
    records.refresh()
    assert records.leaders() is None
    records.let_go()


def test_a_trial_that_somebody_else_holds_is_closed_only_by_its_attempt(
    storage: MemoryStorage, records: Records
) -> None:
    opened(records, Listed(costing(1.0)), 1)
    other = records_in(storage)
    with pytest.raises(StaleAttempt):
        other.close(Attempt(0, 2), Outcome(State.DONE, value=0.5))
    assert other.close(Attempt(0, 1), Outcome(State.DONE, value=0.5)).value == 0.5


def test_sweeping_names_the_trials_of_others_whose_lease_has_ended() -> None:
    clock = FakeClock()
    storage = MemoryStorage(clock)
    owner, other = records_in(storage, clock=clock), records_in(storage, clock=clock)
    opened(owner, Listed(costing(1.0)), 1)
    assert other.sweep() == []
    clock.advance(61.0)
    assert owner.sweep() == [], "it renews what it holds"
    assert other.sweep() == [0]
    assert other.refresh()[0].state is State.PENDING


# ------------------------------------------------------------------------------------------- what need not be paid


def declared(storage: MemoryStorage) -> Records:
    return records_in(storage, declared_cost=lambda params, fidelity: fidelity["epochs"])


def ended(records: Records, trial: Trial, *, checkpoint: str | None) -> Trial:
    records.record(Attempt(trial.number, trial.attempt), Measurement(0.5, fidelity=trial.fidelity))
    outcome = Outcome(State.DONE, value=0.5, checkpoint=checkpoint)
    return records.close(Attempt(trial.number, trial.attempt), outcome)


@pytest.mark.parametrize(("checkpoint", "paid"), [("saved", 6.0), (None, 9.0)])
def test_a_continuation_pays_the_difference_where_there_is_a_checkpoint(
    storage: MemoryStorage, checkpoint: str | None, paid: float
) -> None:
    records = declared(storage)
    [first] = records.open(
        Listed([Suggestion({"x": 0.5}, {"epochs": 3})]), lambda history: (Remaining(), 1), taken={}
    ).trials
    ended(records, first, checkpoint=checkpoint)
    records.refresh()
    longer = Suggestion({"x": 0.5}, FULL, resume_from=0)
    [second] = records.open(Listed([longer]), lambda history: (Remaining(), 1), taken={}).trials
    assert ended(records, second, checkpoint=None).cost == paid


def test_an_attempt_again_starts_from_the_last_checkpoint_of_its_trial(storage: MemoryStorage) -> None:
    records = declared(storage)
    [trial] = records.open(Listed([Suggestion({"x": 0.5}, FULL)]), lambda history: (Remaining(), 1), taken={}).trials
    attempt = Attempt(trial.number, trial.attempt)
    records.record(attempt, Measurement(0.5, fidelity={"epochs": 4}))
    storage.save_checkpoint("study", attempt, "saved")
    records.release(attempt)
    [again] = records.claim(1, taken={})
    assert ended(records, again, checkpoint=None).cost == 4.0 + 5.0


@pytest.mark.parametrize("left", ["a report", "a checkpoint"])
def test_an_attempt_again_pays_in_full_unless_it_left_a_report_and_a_checkpoint(
    storage: MemoryStorage, left: str
) -> None:
    records = declared(storage)
    [trial] = records.open(Listed([Suggestion({"x": 0.5}, FULL)]), lambda history: (Remaining(), 1), taken={}).trials
    attempt = Attempt(trial.number, trial.attempt)
    if left == "a report":
        records.record(attempt, Measurement(0.5, fidelity={"epochs": 4}))
    else:
        storage.save_checkpoint("study", attempt, "saved")
    records.release(attempt)
    [again] = records.claim(1, taken={})
    assert ended(records, again, checkpoint=None).points[-1].cost == {"training": 9.0}


def statements_of(function: Callable[[], object]) -> list[str]:
    """The SQL that is executed meanwhile."""
    seen: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        function()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    return seen


def test_trials_of_others_are_swept_once_in_a_tenth_of_a_lease(tmp_path: Path) -> None:
    clock = ft.FakeClock()
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), storage=tmp_path / "study.db", minimize="e", clock=clock)
    records = session_of(study).records
    records.storage.open_trials("study", [Suggestion({"x": 0.5})], owner="somewhere:1:0", lease=60.0)

    whole = statements_of(records.sweep)  # the first looks at once
    assert len(statements_of(records.sweep)) < len(whole), "it only asks whether anything has changed"
    clock.advance(6.0)
    assert len(statements_of(records.sweep)) > 1


def test_a_suggestion_that_follows_from_its_number_is_made_once_however_many_ask(tmp_path: Path) -> None:
    """Two programs that ask at the same time: the one that comes second would have made its suggestion in vain."""
    first = ft.Study(ft.Space({"x": ft.Float(0, 1)}), storage=tmp_path / "study.db", minimize="e", strategy=ft.Sobol())
    second = ft.Study.load("study", tmp_path / "study.db")
    records = session_of(first).records
    records.refresh()
    asked = list[int]()

    def plan(history: History) -> tuple[Remaining, int]:
        asked.append(len(history))
        return Remaining(), 1

    others = second.ask()
    opening = records.open(ft.Sobol(), plan, taken={})

    assert [trial.number for trial in opening.trials] == [others.number + 1]
    assert asked == [1], "it was planned after the other trial was there"


def test_a_trial_that_is_asked_for_and_told_reads_the_study_twice_and_writes_it_three_times(tmp_path: Path) -> None:
    """Each statement is a fifteenth of what a stored trial takes."""
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), storage=tmp_path / "study.db", minimize="e", strategy="Random")

    def whole_trial() -> None:
        trial = study.ask()
        trial.report(0.5, step=0)
        study.tell(trial, 0.5)

    for _ in range(7):  # after five results it is decided how long a trial takes
        whole_trial()
    seen = [statement.split()[0] for statement in statements_of(whole_trial)]
    assert Counter(seen) == {"SELECT": 5, "BEGIN": 3, "UPDATE": 5, "INSERT": 3}
