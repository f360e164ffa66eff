"""A PostgreSQL server that goes away for a while is waited for; nothing is lost, and nothing is done twice."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import make_url

import farthing as ft
from farthing.errors import StorageError
from farthing.session import session_of
from farthing.storage.sql import SqlStorage
from farthing.trials import State
from tests.conftest import started
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer

SPACE = ft.Space({"x": ft.Float(0, 1)})
PATIENCE = 600.0
"""Ten times what a busy machine needs to start a server."""


@pytest.fixture(scope="module")
def caretaker() -> Iterator[ThreadPoolExecutor]:
    """A thread that outlives the servers that it starts: they are told to die with the thread that started them."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        yield threads


@pytest.fixture(scope="module")
def server(caretaker: ThreadPoolExecutor) -> Iterator[PostgresServer]:
    """One that keeps what it was told, also when it crashes."""
    yield from started(PostgresServer())


@pytest.fixture(scope="module")
def pool(server: PostgresServer, caretaker: ThreadPoolExecutor) -> Iterator[PgBouncer]:
    """In front of it."""
    yield from started(PgBouncer(server, pool=3, server_idle_timeout=1))


def study_at(url: str, **options: object) -> ft.Study:
    return ft.Study(SPACE, minimize="error", storage=url, strategy=ft.Random(), lease=PATIENCE, seed=0, **options)


def work(trial):
    for step in range(1, 4):
        trial.report(trial.params["x"] + step, step=step)
    return trial.params["x"]


def assert_whole(study: ft.Study, *, trials: int) -> None:
    """Every trial has run once, and has each of its reports once."""
    assert [(trial.number, trial.state, trial.attempt) for trial in study.trials] == [
        (number, State.DONE, 1) for number in range(trials)
    ]
    for trial in study.trials:
        assert [point.sequence for point in trial.measurements] == [0, 1, 2, 3]
    assert session_of(study).records.storage.check() == []


@pytest.mark.parametrize("end", [PostgresServer.pause, PostgresServer.crash], ids=["restart", "crash"])
@pytest.mark.parametrize("executor", ["inline", "processes"])
@pytest.mark.parametrize("seconds", [1.0, pytest.param(5.0, marks=pytest.mark.long)])
def test_a_run_goes_on_when_the_server_is_back(
    server: PostgresServer,
    caretaker: ThreadPoolExecutor,
    end: Callable[[PostgresServer], None],
    executor: str,
    seconds: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = study_at(server.new_database())
    returns = []

    def come_back() -> None:
        time.sleep(seconds)
        server.resume()

    def interrupt(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number == 2:
            end(server)
            returns.append(caretaker.submit(come_back))

    with caplog.at_level(logging.WARNING, logger="farthing"):
        stopped = study.run(work, budget=ft.Budget(trials=6), callbacks=[interrupt], executor=executor)
    returns[0].result()
    assert stopped.reason is ft.StopReason.BUDGET_SPENT
    assert any("does not answer; waiting for up to 600 s" in message for message in caplog.messages)
    assert any("answers again" in message for message in caplog.messages)
    assert_whole(study, trials=6)
    study.close()


@pytest.mark.parametrize("times", [3, pytest.param(30, marks=pytest.mark.long)])
def test_crashes_at_any_moment_lose_and_repeat_nothing(
    server: PostgresServer, caretaker: ThreadPoolExecutor, times: int
) -> None:
    url = server.new_database()
    study = study_at(url)
    acknowledged: list[tuple[int, float | None]] = []
    dice = random.Random(0)

    def crash_again_and_again() -> None:
        for _ in range(times):
            time.sleep(dice.uniform(0.1, 0.6))
            server.crash()
            server.resume()
        study.stop()

    crashes = caretaker.submit(crash_again_and_again)
    study.run(
        work,
        budget=ft.Budget(trials=1_000_000),
        callbacks=[lambda study, trial: acknowledged.append((trial.number, trial.value))],
        executor="inline",
    )
    crashes.result()
    assert_whole(study, trials=len(study.trials))
    assert acknowledged == [(trial.number, trial.value) for trial in study.trials]
    study.close()


@pytest.mark.parametrize("end", [PostgresServer.pause, PostgresServer.crash], ids=["restart", "crash"])
def test_a_run_by_way_of_a_pool_goes_on_when_the_server_is_back(
    server: PostgresServer, pool: PgBouncer, caretaker: ThreadPoolExecutor, end: Callable[[PostgresServer], None]
) -> None:
    study = study_at(pool.new_database())
    returns = []

    def interrupt(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number == 2:
            end(server)
            returns.append(caretaker.submit(server.resume))

    stopped = study.run(work, budget=ft.Budget(trials=6), callbacks=[interrupt], executor="inline")
    returns[0].result()
    assert stopped.reason is ft.StopReason.BUDGET_SPENT
    assert_whole(study, trials=6)
    study.close()


@pytest.mark.parametrize("times", [3, pytest.param(30, marks=pytest.mark.long)])
def test_a_pool_and_a_server_that_crash_at_any_moment_lose_and_repeat_nothing(
    server: PostgresServer, pool: PgBouncer, caretaker: ThreadPoolExecutor, times: int
) -> None:
    study = study_at(pool.new_database())
    acknowledged: list[tuple[int, float | None]] = []
    dice = random.Random(0)

    def crash_again_and_again() -> None:
        for _ in range(times):
            for one in (pool, server):
                time.sleep(dice.uniform(0.1, 0.6))
                one.crash()
                one.resume()
        study.stop()

    crashes = caretaker.submit(crash_again_and_again)
    study.run(
        work,
        budget=ft.Budget(trials=1_000_000),
        callbacks=[lambda study, trial: acknowledged.append((trial.number, trial.value))],
        executor="inline",
    )
    crashes.result()
    assert_whole(study, trials=len(study.trials))
    assert acknowledged == [(trial.number, trial.value) for trial in study.trials]
    study.close()


def test_connections_that_are_ended_under_load_are_made_again(server: PostgresServer) -> None:
    url = server.new_database()
    study = study_at(url)

    def end_connections() -> None:
        ended = 0
        with psycopg.connect(url, autocommit=True) as connection:
            while ended < 5:
                time.sleep(0.2)  # long enough for some trials to end in between
                ended += connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                ).rowcount
        study.stop()

    ender = threading.Thread(target=end_connections)
    study.run(
        work,
        budget=ft.Budget(trials=1_000_000),
        callbacks=[lambda study, trial: ender.start() if trial.number == 0 else None],
        executor="inline",
    )
    ender.join()
    assert_whole(study, trials=len(study.trials))
    study.close()


def test_a_server_that_stays_away_ends_the_run_and_loses_nothing(server: PostgresServer) -> None:
    url = server.new_database()
    study = ft.Study(SPACE, minimize="error", storage=SqlStorage(url, patience=0.5), strategy=ft.Random())

    def end(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number == 2:
            server.pause()

    with pytest.raises(StorageError, match="PostgreSQL storage must"):
        study.run(work, budget=ft.Budget(trials=6), callbacks=[end], executor="inline")
    server.resume()
    stopped = study.run(work, budget=ft.Budget(trials=6), executor="inline")
    assert stopped.reason is ft.StopReason.BUDGET_SPENT
    assert_whole(study, trials=6)
    study.close()


def test_an_address_where_nobody_answers_is_refused_at_once(server: PostgresServer) -> None:
    url = server.new_database()
    server.pause()
    began = time.monotonic()
    with pytest.raises(StorageError, match="must accept the connection"):
        SqlStorage(url, patience=PATIENCE)
    assert time.monotonic() - began < PATIENCE / 2
    server.resume()


def test_who_may_only_select_reads_everything(server: PostgresServer) -> None:
    url = server.new_database()
    study = study_at(url)
    study.run(work, budget=ft.Budget(trials=3), executor="inline")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reads'")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    reader = ft.Study.load("study", make_url(url).set(username="reader", password="reads").render_as_string(False))
    assert list(reader.trials) == list(study.trials)
    assert reader.best.value == study.best.value
    assert session_of(reader).records.storage.list_studies() == session_of(study).records.storage.list_studies()
    assert session_of(reader).records.storage.check() == []
    with pytest.raises(StorageError, match="Use a user who may"):
        reader.ask(budget=ft.Budget(trials=4))
    reader.close()
    study.close()
