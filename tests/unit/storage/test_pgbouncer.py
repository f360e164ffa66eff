"""A pool that gives each transaction another connection to the server, shared with other clients."""

import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

import farthing as ft
from farthing.session import session_of
from farthing.space import Float, Space
from farthing.storage import StudyRecord, engines
from farthing.storage.sql import SqlStorage
from farthing.storage.statements import LOCK_STUDY
from farthing.trials import Attempt, Measurement, Outcome, Problem, State, Suggestion
from tests.conftest import started
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer

PROBLEM = Problem(Space({"x": Float(0.0, 1.0)}))
SUGGESTION = Suggestion({"x": 0.5})
POOL = 5


@pytest.fixture(scope="module")
def own_pool(postgres: PostgresServer) -> Iterator[PgBouncer]:
    """One to end, and that keeps its connections."""
    yield from started(PgBouncer(postgres, pool=POOL))


@pytest.fixture
def storage(own_pool: PgBouncer) -> Iterator[SqlStorage]:
    storage = SqlStorage(own_pool.new_database())
    storage.create_study(StudyRecord("study", PROBLEM))
    yield storage
    storage.close()


def engine_of(storage: SqlStorage) -> Engine:
    return storage._database.engine


def connection_of(storage: SqlStorage) -> Any:
    """Psycopg's own."""
    with engine_of(storage).connect() as connection:
        return connection.connection.driver_connection


def do_a_trial(storage: SqlStorage) -> None:
    (trial,) = storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    attempt = Attempt(trial.number, trial.attempt)
    storage.record("study", attempt, [Measurement(0.5)], lease=60)
    storage.close_trial("study", attempt, Outcome(State.DONE, value=0.5))


def test_nothing_is_left_on_a_connection_that_others_get_next(storage: SqlStorage, own_pool: PgBouncer) -> None:
    for _ in range(8):  # more often than psycopg waits before it prepares a statement
        do_a_trial(storage)
        storage.history("study")
    with psycopg.connect(str(engine_of(storage).url.set(drivername="postgresql").render_as_string(False))) as other:
        for _ in range(POOL):
            assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            assert other.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("0",)
            assert other.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)
            other.commit()


def test_statements_are_prepared_only_where_there_is_no_pool(storage: SqlStorage, postgres: PostgresServer) -> None:
    direct = SqlStorage(postgres.new_schema())
    assert connection_of(direct).prepare_threshold == 5
    assert connection_of(storage).prepare_threshold is None
    direct.close()


def test_sixty_programs_share_five_connections(storage: SqlStorage, own_pool: PgBouncer) -> None:
    """Each has connections of its own to the pool; what they do is done once."""
    programs, each = 60, 4
    url = engine_of(storage).url.render_as_string(hide_password=False)
    storage.open_trials("study", [SUGGESTION] * (programs * each), owner=None, lease=60)
    connected, most = threading.Barrier(programs + 1, timeout=600), list[int]()

    def work(_: int) -> list[int]:
        mine, claimed = SqlStorage(url), []
        connected.wait()
        while (trial := mine.claim_trial("study", owner="ada", lease=60)) is not None:
            attempt = Attempt(trial.number, trial.attempt)
            mine.record("study", attempt, [Measurement(0.5)], lease=60)
            mine.close_trial("study", attempt, Outcome(State.DONE, value=0.5))
            claimed.append(trial.number)
        mine.close()
        return claimed

    with ThreadPoolExecutor(programs) as threads:
        ended = [threads.submit(work, number) for number in range(programs)]
        connected.wait()
        clients = own_pool.count_clients()
        while not all(one.done() for one in ended):
            most.append(connections_to(own_pool.server, database=str(engine_of(storage).url.database)))
    assert clients >= programs
    assert max(most) <= POOL
    assert sorted(number for one in ended for number in one.result()) == list(range(programs * each))
    assert {trial.state for trial in storage.history("study").trials} == {State.DONE}
    assert storage.check() == []


def connections_to(server: PostgresServer, *, database: str) -> int:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [database])
        return int(found.fetchone()[0])  # type: ignore[index]


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_what_was_told_as_the_pool_ended_is_stored_once(
    storage: SqlStorage, own_pool: PgBouncer, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trial,) = storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    dialect = engine_of(storage).dialect
    commit = dialect.do_commit

    def commit_and_break(connection: Any) -> None:
        monkeypatch.undo()
        if moment == "after the commit":
            commit(connection)
        own_pool.crash()
        own_pool.resume()
        connection.execute("SELECT 1")

    monkeypatch.setattr(dialect, "do_commit", commit_and_break)
    storage.record("study", Attempt(trial.number, 1), [Measurement(0.5)], lease=60)
    assert [point.value for point in storage.history("study").trials[0].measurements] == [0.5]


def test_a_program_that_stands_still_in_a_transaction_does_not_hold_up_the_others(
    storage: SqlStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "IDLE_TIMEOUT", 0.5)
    suspended = engines.writing(engines.make_engine(engine_of(storage).url))
    with suspended.connect() as connection:
        connection.execute(LOCK_STUDY, {"this_name": "study", "clock": None})
        assert storage.enqueue_trial("study", SUGGESTION).number == 0  # it waited for the lock
        connection.invalidate()
    suspended.dispose()


def test_who_holds_a_connection_reads_by_it_however_few_there_are(postgres: PostgresServer) -> None:
    """If all who lock a study waited for a second connection, nobody would ever give one back."""
    for pool in started(PgBouncer(postgres, pool=1)):
        storage = SqlStorage(pool.new_database())
        storage.create_study(StudyRecord("study", PROBLEM))
        do_a_trial(storage)
        read = list[int]()

        def choose(changes: Any, storage: SqlStorage = storage, read: list[int] = read) -> Any:
            read.append(storage.count_measurements("study"))
            return [SUGGESTION], 0.0

        (opened,) = storage.open_in_turn("study", choose, since=0, owner="ada", lease=60)
        assert (opened.number, read) == (1, [1])
        storage.close()


@pytest.fixture(params=["direct", "pooled"])
def study(request: pytest.FixtureRequest, postgres: PostgresServer) -> Iterator[ft.Study]:
    url = postgres.new_schema() if request.param == "direct" else request.getfixturevalue("pgbouncer_url")
    with ft.Study(ft.Space({"x": ft.Float(0, 1)}), storage=url, minimize="e", strategy="Random") as study:
        yield study


def test_a_trial_takes_twenty_messages_to_the_server_and_back(study: ft.Study) -> None:
    """Of fourteen statements and three transactions, with a pool or without: how long each lasts is sent along."""

    def whole_trial() -> None:
        trial = study.ask()
        trial.report(0.5, step=0)
        study.tell(trial, 0.5)

    for _ in range(12):  # until it is decided how long a trial takes, and statements are prepared where they are
        whole_trial()
    storage = session_of(study).records.storage
    assert isinstance(storage, SqlStorage)
    with tempfile.TemporaryFile("w+") as trace:
        traced = connection_of(storage).pgconn
        traced.trace(trace.fileno())
        whole_trial()
        assert connection_of(storage).pgconn is traced, "all of it went by one connection"
        traced.untrace()
        trace.seek(0)
        lines = [line.split("\t") for line in trace]
    sent = Counter(
        line[3].strip() for line in lines if len(line) > 3 and line[1] == "F"
    )  # a statement has lines of its own
    assert (sent["Sync"], sent["Query"]) == (14, 6)
