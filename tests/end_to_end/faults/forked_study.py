"""A study that is used on both sides of a fork; test_forks.py runs each of its scenes in a program of its own."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable

import farthing as ft
from farthing.session import session_of

SPACE = ft.Space({"x": ft.Float(0, 1)})
LONG_LEASE = 3600.0


def study_in(storage: str | None, *, lease: float = LONG_LEASE) -> ft.Study:
    return ft.Study(SPACE, minimize="error", storage=storage, strategy=ft.Random(), name="forked", lease=lease, seed=0)


def used(study: ft.Study) -> ft.Study:
    """The study, with a lease thread and a connection to the database."""
    study.tell(study.ask(), 0.5)
    return study


def work(trial: ft.RunningTrial) -> float:
    return float(trial.params["x"])


class Child:
    """A forked process that does something, says so, and ends when it is let go."""

    def __init__(self, act: Callable[[], object], after: Callable[[], object] = lambda: None) -> None:
        news, self._ours = os.pipe()
        theirs, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._live(act, after, theirs)
        os.close(self._ours)
        os.close(theirs)
        self._news = news

    def _live(self, act: Callable[[], object], after: Callable[[], object], theirs: int) -> None:
        os.close(self._go)
        try:
            os.write(self._ours, repr(act()).encode())
            os.read(theirs, 1)
            after()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def said(self) -> str:
        return os.read(self._news, 1000).decode()

    def end(self) -> None:
        os.write(self._go, b"!")
        _, status = os.waitpid(self.pid, 0)
        assert status == 0, status


def owner_is_the_child(storage: str) -> None:
    study = used(study_in(storage))

    def ask() -> tuple[int, bool, int]:
        trial = study.ask()
        return (
            trial.number,
            f":{os.getpid()}:" in str(study.trials[trial.number].owner),
            len(session_of(study).records.leases.held),
        )

    child = Child(ask, lambda: study.tell(1, 0.25))
    assert child.said() == "(1, True, 1)"
    assert study.ask().number == 2
    child.end()
    assert study.trials[1].value == 0.25


def leases_are_renewed_in_the_child(storage: str) -> None:
    study = used(study_in(storage, lease=2.0))

    def ask_and_wait() -> str:
        trial = study.ask()
        first = lease_of(study, trial)
        while lease_of(study, trial) in (first, None):  # None once the lease has ended
            time.sleep(0.05)
        return "renewed"

    child = Child(ask_and_wait)
    assert child.said() == "'renewed'"
    child.end()


def lease_of(study: ft.Study, trial: ft.RunningTrial) -> float | None:
    return study.trials[trial.number].lease_until


def the_parent_keeps_its_own_trials(storage: str) -> None:
    study = used(study_in(storage))
    mine = study.ask()
    child = Child(lambda: [session_of(study).records.leases.held, study.ask().number])
    assert child.said() == f"[[], {mine.number + 1}]"
    assert [attempt.number for attempt in session_of(study).records.leases.held] == [mine.number]
    child.end()
    study.tell(mine, 0.5)


def a_living_child_of_a_dead_parent_keeps_its_trial(storage: str) -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        study = used(study_in(storage))
        if os.fork() == 0:
            work_as_an_orphan(study, storage, writer)
        os.read(reader, 1)
        os._exit(0)
    os.waitpid(parent, 0)
    assert os.read(reader, 1) == b"t"
    assert study_in(storage).trials[1].value == 0.25


def work_as_an_orphan(study: ft.Study, storage: str, writer: int) -> None:
    trial, parent = study.ask(), os.getppid()
    os.write(writer, b"a")
    while os.getppid() == parent:
        time.sleep(0.01)
    next_number = study_in(storage).ask().number
    study.tell(trial, 0.25)
    os.write(writer, b"t" if next_number == 2 else b"x")
    os._exit(0)


def a_dead_childs_trial_is_offered_at_once(storage: str) -> None:
    study = used(study_in(storage))
    child = Child(lambda: study.ask().number)
    assert child.said() == "1"
    child.end()
    again = study.ask()
    assert (again.number, again.attempt) == (1, 2)


def children_run_together(storage: str) -> None:
    study = used(study_in(storage))
    budget = ft.Budget(trials=13)
    children = [Child(lambda: str(study.run(work, budget=budget, workers=2))) for _ in range(3)]
    assert {child.said() for child in children} == {"'the budget is spent'"}
    for child in children:
        child.end()
    assert study.run(work, budget=budget).reason is ft.StopReason.BUDGET_SPENT
    assert [(str(trial.state), trial.attempt) for trial in study.trials] == [("done", 1)] * 13


def forks_in_the_midst_of_transactions(storage: str) -> None:
    study = used(study_in(storage))
    is_over = threading.Event()
    threads = [threading.Thread(target=keep_adding, args=(study, is_over)) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = [Child(lambda: [study.tell(study.ask(), 0.25).number for _ in range(3)] and "told") for _ in range(10)]
    said = {child.said() for child in children}
    is_over.set()
    for thread in threads:
        thread.join()
    assert said == {"'told'"}
    for child in children:
        child.end()
    assert sum(trial.value == 0.25 for trial in study.trials) == 30
    assert session_of(study).records.storage.check() == []


def keep_adding(study: ft.Study, is_over: threading.Event) -> None:
    while not is_over.is_set():
        study.add({"x": 0.5}, 0.5)


def forks_in_the_midst_of_work_in_memory(storage: None = None) -> None:
    """The storage lives on in each process, by itself."""
    study = used(study_in(storage))
    is_over = threading.Event()
    threads = [threading.Thread(target=keep_reading, args=(study, is_over)) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = [Child(lambda: study.tell(study.ask(), 0.25).number) for _ in range(20)]
    said = [child.said() for child in children]
    is_over.set()
    for thread in threads:
        thread.join()
    assert said == ["1"] * 20
    for child in children:
        child.end()
    assert study.tell(study.ask(), 0.5).number == 1


def keep_reading(study: ft.Study, is_over: threading.Event) -> None:
    while not is_over.is_set():
        study.annotate(0, comment="still here")
        assert session_of(study).records.storage.check() == []


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
