"""Coroutines as work: many at once, ended in time, and what blocks the loop is named."""

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, Pruned, WorkError
from farthing.execution import Checkpoints, Ended, Job
from farthing.execution.coroutines import SECONDS_TO_LEAVE, AsyncExecutor
from farthing.trials import Attempt, Problem, State

SPACE = ft.Space({"lr": ft.Float(0.0, 1.0)})
PROBLEM = Problem(SPACE, value="error")


class Listener:
    def __init__(self) -> None:
        self.news: list[Any] = []
        self.threads: set[int] = set()

    def on_news(self, attempt: Attempt, news: Any) -> None:
        self.news.append((attempt, news))
        self.threads.add(threading.get_ident())


@pytest.fixture
def start(tmp_path: Path):
    started: list[AsyncExecutor] = []

    def make(work: Any, workers: int = 4) -> AsyncExecutor:
        started.append(AsyncExecutor(work, PROBLEM, workers=workers, checkpoints=Checkpoints(tmp_path / "files")))
        return started[-1]

    yield make
    for executor in started:
        executor.close()


def job(number: int = 0, **settings: Any) -> Job:
    return Job(Attempt(number, 1), {"lr": 0.5}, {}, **settings)


def all_ended(executor: AsyncExecutor, listener: Listener | None = None, seconds: float = 60.0) -> dict[int, Ended]:
    """By number; waits for all that run."""
    found: dict[int, Ended] = {}
    until = time.monotonic() + seconds
    while executor.running and time.monotonic() < until:
        found |= {one.attempt.number: one for one in executor.wait(listener or Listener(), timeout=1.0)}
    assert not executor.running
    return found


def test_many_wait_at_the_same_time_in_one_loop(start) -> None:
    inside, most, loops = 0, 0, set()

    async def work(trial: Any) -> float:
        nonlocal inside, most
        inside, most = inside + 1, max(most, inside + 1)
        loops.add(asyncio.get_running_loop())
        while most < 32:
            await asyncio.sleep(0.001)
        inside -= 1
        return float(trial.number)

    executor = start(work, workers=32)
    for number in range(32):
        executor.submit(job(number))
    assert executor.free == 0
    ended = all_ended(executor)
    assert {number: one.outcome.value for number, one in ended.items() if one.outcome} == {i: i for i in range(32)}
    assert (most, len(loops)) == (32, 1)


def test_reports_go_to_the_listener_in_the_thread_that_waits(start) -> None:
    async def work(trial: Any) -> float:
        trial.report(0.7)
        await asyncio.to_thread(trial.report, 0.6)  # from a thread of the work's own
        return 0.5

    executor, listener = start(work), Listener()
    executor.submit(job())
    all_ended(executor, listener)
    assert [news.value for _, news in listener.news] == [0.7, 0.6]
    assert listener.threads == {threading.get_ident()}


def test_work_past_its_time_limit_is_cancelled_and_may_clean_up(start) -> None:
    cleaned = []

    async def work(trial: Any) -> float:
        try:
            await asyncio.sleep(60.0)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(trial.number)
        return 0.5

    executor = start(work)
    executor.submit(job(3, time_limit=0.2))
    outcome = all_ended(executor)[3].outcome
    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.reason == "The work ran past its time limit of 0.2 s"
    assert cleaned == [3]


def test_work_that_will_not_be_cancelled_is_let_go_of(start) -> None:
    over = asyncio.Event()

    async def work(trial: Any) -> float:
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), 60.0)
            except asyncio.CancelledError:
                trial.params["deaf"] = True
        trial.report(0.1)
        return 0.5

    executor, listener = start(work), Listener()
    executor.submit(job(time_limit=0.1))
    outcome = all_ended(executor, listener, seconds=SECONDS_TO_LEAVE + 30.0)[0].outcome
    assert outcome is not None
    assert outcome.state is State.FAILED
    assert executor.free == 4
    executor._loop.call_soon_threadsafe(over.set)
    assert executor.wait(listener, timeout=0.5) == []
    assert listener.news == [], "what it says later is not heard"


def test_a_result_after_the_time_limit_does_not_count(start) -> None:
    async def work(trial: Any) -> float:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            return 0.5
        return 0.1

    executor = start(work)
    executor.submit(job(time_limit=0.1))
    outcome = all_ended(executor)[0].outcome
    assert outcome is not None
    assert outcome.state is State.FAILED


def test_at_the_end_of_a_hard_budget_work_keeps_the_value_that_it_has(start) -> None:
    async def work(trial: Any) -> float:
        trial.report(0.75)
        await asyncio.sleep(60.0)
        return 0.5

    executor = start(work)
    executor.submit(job(seconds_left=0.2))
    outcome = all_ended(executor)[0].outcome
    assert outcome is not None
    assert (outcome.state, outcome.value) == (State.PRUNED, 0.75)


def test_a_cancellation_of_the_works_own_is_a_failure(start) -> None:
    async def work(trial: Any) -> float:
        raise asyncio.CancelledError

    executor = start(work)
    executor.submit(job())
    outcome = all_ended(executor)[0].outcome
    assert outcome is not None
    assert outcome.failure is not None
    assert outcome.failure.reason.startswith("CancelledError")


def test_closing_cancels_what_runs_and_answers_whoever_reports(start) -> None:
    left, begun = [], threading.Event()

    async def work(trial: Any) -> float:
        begun.set()
        try:
            await asyncio.sleep(60.0)
        finally:
            left.append(trial.number)
            trial.report(0.5)  # nobody listens any more, and nobody waits for an answer for ever
        return 0.5

    executor = start(work)
    executor.submit(job(1))
    assert begun.wait(30.0)
    began = time.monotonic()
    executor.close()
    assert left == [1]
    assert time.monotonic() - began < 30.0
    assert not executor._thread.is_alive()


def test_work_that_blocks_the_loop_is_named_with_its_line(start, caplog: pytest.LogCaptureFixture) -> None:
    async def work(trial: Any) -> float:
        if trial.number == 7:
            time.sleep(2.5)
        return 0.5

    executor = start(work)
    with caplog.at_level(logging.WARNING, "farthing"):
        executor.submit(job(7))
        executor.submit(job(8))
        all_ended(executor)
    [said] = [record.getMessage() for record in caplog.records]
    blocking = work.__code__.co_firstlineno + 2
    assert f"trial 7 blocks it at test_coroutines.py, line {blocking}" in said
    assert "await asyncio.to_thread" in said


def test_work_that_only_waits_is_not_said_to_block(start, caplog: pytest.LogCaptureFixture) -> None:
    async def work(trial: Any) -> float:
        await asyncio.sleep(2.5)
        return 0.5

    executor = start(work)
    with caplog.at_level(logging.WARNING, "farthing"):
        executor.submit(job())
        all_ended(executor)
    assert not caplog.records


def test_only_coroutines_run_in_the_loop_and_only_there(start) -> None:
    with pytest.raises(WorkError, match=r"must be a coroutine function, async def work\(trial\), got <function"):
        start(lambda trial: 0.5)
    with pytest.raises(WorkError, match="got Command"):
        start(ft.Command("echo {lr}"))

    async def fetch() -> float:
        return 0.5

    with pytest.raises(WorkError, match=r"must take one argument, the trial, got fetch\(\)"):
        start(fetch)

    async def work(trial: Any) -> float:
        return 0.5

    study = ft.Study(SPACE, minimize="error")
    for executor in ("processes", "inline"):
        with pytest.raises(WorkError, match="executor='async'"):
            study.run(work, budget=ft.Budget(trials=1), executor=executor)


class Client:
    async def __call__(self, trial: Any) -> float:
        return float(trial.params["lr"])


def test_an_object_with_a_coroutine_is_work_too(start) -> None:
    executor = start(Client())
    executor.submit(job())
    outcome = all_ended(executor)[0].outcome
    assert outcome is not None
    assert outcome.value == 0.5


def test_a_full_executor_takes_no_more(start) -> None:
    async def work(trial: Any) -> float:
        await asyncio.sleep(60.0)
        return 0.5

    executor = start(work, workers=1)
    executor.submit(job(0))
    with pytest.raises(InvalidArgument, match="free worker"):
        executor.submit(job(1))


def test_a_study_of_coroutines_is_billed_retried_and_ends_within_its_budget() -> None:
    tries: list[int] = []

    async def ask(trial: Any) -> float:
        tries.append(trial.number)
        await asyncio.sleep(0.01)
        trial.charge(0.5)
        if trial.number == 3 and trial.attempt == 1:
            raise ConnectionError("the service was busy")
        if trial.number == 5:
            raise Pruned
        trial.report(1.0 - float(trial.params["lr"]))
        return 1.0 - float(trial.params["lr"])

    study = ft.Study(SPACE, minimize="error", cost_unit="dollars", strategy="Random", seed=0)
    study.run(ask, budget=ft.Budget(cost=10.0, hard=True), executor="async", workers=8, retries=1)
    assert tries.count(3) == 2
    assert study.ledger.total == pytest.approx(0.5 * len(tries))
    assert study.ledger.total <= 10.0 + 8 * 0.5, "what ran as the budget was spent"
    assert {trial.number for trial in study.trials if trial.state is State.PRUNED} >= {5}
    assert study.best.value < 0.3
