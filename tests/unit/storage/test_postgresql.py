"""What is particular to a PostgreSQL server: it can go away."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from farthing.errors import StorageError, TrialFinished
from farthing.space import Float, Space
from farthing.storage import StudyRecord, engines
from farthing.storage.sql import SqlStorage
from farthing.storage.statements import LOCK_STUDY
from farthing.trials import Attempt, Failure, Measurement, Outcome, Problem, State, Suggestion
from tests.postgres import PostgresServer

PROBLEM = Problem(Space({"x": Float(0.0, 1.0)}))
SUGGESTION = Suggestion({"x": 0.5})
DONE = Outcome(State.DONE, value=0.5)
FIRST = Attempt(0, 1)


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """A database of its own, so that ending all its connections disturbs nobody."""
    return postgres.new_database()


@pytest.fixture
def storage(postgres_url: str) -> Iterator[SqlStorage]:
    storage = SqlStorage(postgres_url)
    storage.create_study(StudyRecord("study", PROBLEM))
    storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    yield storage
    storage.close()


def end_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def lost_answer(storage: SqlStorage, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next commit takes effect, and the connection breaks before anybody is told."""
    dialect = storage._database.engine.dialect
    commit = dialect.do_commit

    def commit_and_break(connection: Any) -> None:
        monkeypatch.undo()
        commit(connection)
        end_connections(postgres_url)
        connection.execute("SELECT 1")

    monkeypatch.setattr(dialect, "do_commit", commit_and_break)


def test_the_next_call_connects_again(storage: SqlStorage, postgres_url: str) -> None:
    end_connections(postgres_url)
    storage.record("study", FIRST, [Measurement(0.5)], lease=60)
    end_connections(postgres_url)
    assert len(storage.history("study").trials) == 1
    end_connections(postgres_url)
    assert storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)[0].number == 1


@pytest.mark.usefixtures("lost_answer")
def test_a_measurement_whose_answer_was_lost_is_recorded_once(storage: SqlStorage) -> None:
    storage.record("study", FIRST, [Measurement(0.5)], lease=60)
    assert [point.value for point in storage.history("study").trials[0].measurements] == [0.5]


@pytest.mark.usefixtures("lost_answer")
def test_a_result_whose_answer_was_lost_is_no_second_result(storage: SqlStorage) -> None:
    closed = storage.close_trial("study", FIRST, DONE)
    assert (closed.state, closed.value) == (State.DONE, 0.5)
    assert storage.history("study").trials == [closed]
    with pytest.raises(TrialFinished):
        storage.close_trial("study", FIRST, DONE)


@pytest.mark.usefixtures("lost_answer")
def test_a_retry_whose_answer_was_lost_is_no_second_retry(storage: SqlStorage) -> None:
    closed = storage.close_trial("study", FIRST, Outcome(State.FAILED, failure=Failure("no"), retry=True))
    assert (closed.state, closed.attempt) == (State.PENDING, 2)


@pytest.mark.usefixtures("lost_answer")
def test_an_opened_trial_whose_answer_was_lost_is_opened_once(storage: SqlStorage) -> None:
    (opened,) = storage.open_trials("study", [SUGGESTION], owner="ada", lease=60, expected_trials=1)
    assert storage.history("study").trials[1:] == [opened]


@pytest.mark.usefixtures("lost_answer")
def test_an_enqueued_trial_whose_answer_was_lost_is_enqueued_once(storage: SqlStorage) -> None:
    enqueued = storage.enqueue_trial("study", SUGGESTION, tags=["mine"])
    assert storage.history("study").trials[1:] == [enqueued]


@pytest.mark.usefixtures("lost_answer")
def test_an_added_trial_whose_answer_was_lost_is_added_once(storage: SqlStorage) -> None:
    added = storage.add_trial("study", SUGGESTION, DONE)
    assert storage.history("study").trials[1:] == [added]


@pytest.mark.usefixtures("lost_answer")
def test_a_released_trial_whose_answer_was_lost_is_released_once(storage: SqlStorage) -> None:
    storage.release_trial("study", FIRST)
    assert (storage.history("study").trials[0].state, storage.history("study").trials[0].attempt) == (State.PENDING, 2)


@pytest.mark.usefixtures("lost_answer")
def test_a_dead_owners_trial_is_taken_back_once(storage: SqlStorage) -> None:
    storage.sweep("study", dead=["ada"])
    assert storage.history("study").trials[0].state is State.LOST
    assert storage.history("study").version == 2


@pytest.mark.usefixtures("lost_answer")
def test_an_event_whose_answer_was_lost_is_logged_once(storage: SqlStorage) -> None:
    storage.log_event("study", "evicted", {"stage": 1})
    assert [event.payload for event in storage.history("study").events] == [{"stage": 1}]


@pytest.mark.usefixtures("lost_answer")
def test_a_study_whose_answer_was_lost_is_created_once(storage: SqlStorage) -> None:
    created = storage.create_study(StudyRecord("other", PROBLEM))
    assert storage.load_study("other") == created


@pytest.mark.usefixtures("lost_answer")
def test_a_study_whose_deletion_was_not_answered_is_deleted(storage: SqlStorage) -> None:
    storage.delete_study("study")
    assert storage.list_studies() == []


def test_a_claim_whose_answer_was_lost_is_one_claim(storage: SqlStorage, request: pytest.FixtureRequest) -> None:
    storage.release_trial("study", FIRST)
    request.getfixturevalue("lost_answer")
    claimed = storage.claim_trial("study", owner="bob", lease=60)
    assert claimed is not None
    assert (claimed.number, claimed.attempt, claimed.owner) == (0, 2, "bob")
    assert storage.history("study").trials == [claimed]
    assert storage.claim_trial("study", owner="bob", lease=60) is None


@pytest.mark.usefixtures("lost_answer")
def test_a_run_whose_answer_was_lost_counts_once(storage: SqlStorage) -> None:
    storage.touch_run("study", storage.start_run("study", lease=60))
    assert storage.seconds_run("study") < 60


def test_a_server_that_restarts_has_lost_nothing() -> None:
    with PostgresServer() as server:
        storage = SqlStorage(server.new_database(), patience=0.2)
        storage.create_study(StudyRecord("study", PROBLEM))
        storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
        server.pause()
        with pytest.raises(StorageError, match="must"):
            storage.record("study", FIRST, [Measurement(0.5)], lease=60)
        server.resume()
        storage.record("study", FIRST, [Measurement(0.5)], lease=60)
        assert storage.close_trial("study", FIRST, DONE).value == 0.5
        assert storage.check() == []
        storage.close()


def test_a_process_that_stands_still_in_a_transaction_does_not_hold_up_the_others(
    storage: SqlStorage, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspended coordinator holds the study's lock for as long as the server lets it."""
    monkeypatch.setattr(engines, "IDLE_TIMEOUT", 0.5)
    suspended = engines.writing(engines.make_engine(engines.database_url(postgres_url)))
    with suspended.connect() as connection:
        connection.execute(LOCK_STUDY, {"this_name": "study", "clock": None})
        assert storage.enqueue_trial("study", SUGGESTION).number == 1  # it waited for the lock
        connection.invalidate()
    suspended.dispose()
