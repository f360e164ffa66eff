"""Several coordinators in one process, of which one goes on at a time: which, is decided at each call of the storage.

The order comes from a seed, so that a fault that depends on it is found in seconds and can be repeated.
"""

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from farthing.costs import FakeClock
from farthing.execution import Ended, InlineExecutor, Job, Listener
from farthing.trials import Attempt


class Turns:
    """Runs functions in threads of their own, one at a time; `pass_on` may let another go on."""

    def __init__(self, seed: object) -> None:
        self._rng = random.Random(str(seed))
        self._gates: dict[threading.Thread, threading.Semaphore] = {}
        self._errors: list[BaseException] = []

    def take(self, tasks: Sequence[Callable[[], object]]) -> list[BaseException]:
        """Runs the tasks to their ends; returns what they raised."""
        threads = [threading.Thread(target=self._follow, args=(task,)) for task in tasks]
        self._gates = {thread: threading.Semaphore(0) for thread in threads}
        for thread in threads:
            thread.start()
        self._open_one()
        for thread in threads:
            thread.join()
        return self._errors

    def pass_on(self) -> None:
        mine = self._gates.get(threading.current_thread())
        if mine is not None:  # the thread that renews leases takes no part
            self._open_one()
            mine.acquire()

    def _follow(self, task: Callable[[], object]) -> None:
        self._gates[threading.current_thread()].acquire()
        try:
            task()
        except BaseException as error:
            self._errors.append(error)
        del self._gates[threading.current_thread()]
        self._open_one()

    def _open_one(self) -> None:
        if self._gates:
            self._rng.choice(list(self._gates.values())).release()


class SharedStorage:
    """A storage that lets another coordinator go on before each of its transactions, no two at the same moment."""

    def __init__(self, storage: Any, turns: Turns, clock: FakeClock) -> None:
        self._storage = storage
        self._turns = turns
        self._clock = clock

    @property
    def folder(self) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)

        def in_turn(*arguments: Any, **named: Any) -> Any:
            self._turns.pass_on()
            self._clock.advance(0.001)
            return method(*arguments, **named)

        return in_turn


class TurnTakingExecutor:
    """Has several jobs at once, like worker processes, and ends them in any order while others go on."""

    works_in_wait = True

    def __init__(self, places: Sequence[InlineExecutor], turns: Turns, *, seed: object) -> None:
        self.workers = len(places)
        self._places = places
        self._turns = turns
        self._rng = random.Random(str(seed))

    @property
    def free(self) -> int:
        return sum(place.free for place in self._places)

    @property
    def running(self) -> tuple[Attempt, ...]:
        return tuple(attempt for place in self._places for attempt in place.running)

    def submit(self, job: Job) -> None:
        next(place for place in self._places if place.free).submit(job)

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        for _ in range(self._rng.randrange(4)):
            self._turns.pass_on()
        busy = [place for place in self._places if place.running]
        return self._rng.choice(busy).wait(listener) if busy else []

    def wake(self) -> None:
        """Nobody sleeps."""

    def close(self) -> None:
        for place in self._places:
            place.close()
