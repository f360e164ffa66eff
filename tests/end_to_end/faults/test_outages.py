"""A PostgreSQL server that goes away for a while is waited for; nothing is lost, and nothing is done twice."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

import farthing as ft
from farthing.errors import StorageError
from farthing.storage.sql import SqlStorage
from farthing.testing.postgres import PostgresServer
from farthing.trials import State
from tests.conftest import started

SPACE = ft.Space({"x": ft.Float(0, 1)})
PATIENCE = 600.0
"""Ten times what a busy machine needs to start a server."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One that keeps what it was told, also when it crashes."""
    yield from started(PostgresServer())


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
    assert study._storage.check() == []


@pytest.mark.parametrize("end", [PostgresServer.pause, PostgresServer.crash], ids=["restart", "crash"])
@pytest.mark.parametrize("executor", ["inline", "processes"])
@pytest.mark.parametrize("seconds", [1.0, pytest.param(5.0, marks=pytest.mark.long)])
def test_a_run_goes_on_when_the_server_is_back(
    server: PostgresServer,
    end: Callable[[PostgresServer], None],
    executor: str,
    seconds: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = study_at(server.new_database())
    back = threading.Timer(seconds, server.resume)

    def interrupt(study: ft.Study, trial: ft.Trial) -> None:
        if trial.number == 2:
            end(server)
            back.start()

    with caplog.at_level(logging.WARNING, logger="farthing"):
        reason = study.run(work, budget=ft.Budget(trials=6), callbacks=[interrupt], executor=executor)
    back.join()
    assert reason == "the budget is spent"
    assert any("does not answer; waiting for up to 600 s" in message for message in caplog.messages)
    assert any("answers again" in message for message in caplog.messages)
    assert_whole(study, trials=6)
    study.close()


@pytest.mark.parametrize("times", [3, pytest.param(30, marks=pytest.mark.long)])
def test_crashes_at_any_moment_lose_and_repeat_nothing(server: PostgresServer, times: int) -> None:
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

    crasher = threading.Thread(target=crash_again_and_again)
    crasher.start()
    study.run(
        work,
        budget=ft.Budget(trials=1_000_000),
        callbacks=[lambda study, trial: acknowledged.append((trial.number, trial.value))],
        executor="inline",
    )
    crasher.join()
    assert_whole(study, trials=len(study.trials))
    assert acknowledged == [(trial.number, trial.value) for trial in study.trials]
    study.close()


def test_connections_that_are_ended_under_load_are_made_again(server: PostgresServer) -> None:
    url = server.new_database()
    study = study_at(url)
    is_over = threading.Event()
    ended: list[int] = []

    def end_connections() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not is_over.wait(0.01):
                found = connection.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                ).fetchone()
                ended.append(found[0] if found else 0)

    ender = threading.Thread(target=end_connections)
    ender.start()
    try:
        study.run(work, budget=ft.Budget(trials=40), executor="inline")
    finally:
        is_over.set()
        ender.join()
    assert sum(ended) > 0
    assert_whole(study, trials=40)
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
    assert study.run(work, budget=ft.Budget(trials=6), executor="inline") == "the budget is spent"
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
