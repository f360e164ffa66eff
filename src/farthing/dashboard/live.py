"""Tells pages which studies have changed: one stream for each page, and one look at the storage for all of them."""

import asyncio
import json
import secrets
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from farthing.dashboard.endpoints import key_of
from farthing.errors import StorageError

Result = TypeVar("Result")
Versions = dict[str, int]

SECONDS_TO_ANSWER = 5.0
"""A look at the versions takes milliseconds, also of thousands of studies."""


class Pulse:
    """Looks at the versions of all studies, in a thread; one look at a time, for all who ask meanwhile."""

    def __init__(
        self,
        versions: Callable[[], Versions],
        *,
        seconds: float = SECONDS_TO_ANSWER,
        every: float = SECONDS_TO_ANSWER,
    ) -> None:
        self._versions = versions
        self._seconds = seconds
        self._every = every
        self._look: asyncio.Task[Versions] | None = None
        self._began = 0.0

    async def versions(self) -> Versions:
        """Raises `StorageError` if the storage does not answer in time."""
        if self._look is None or self._look.done():
            self._look, self._began = _begun(self._versions), time.monotonic()
        look, left = self._look, max(0.0, self._began + self._seconds - time.monotonic())
        if not (await asyncio.wait([look], timeout=left))[0]:
            raise StorageError(
                f"A storage must answer within {self._seconds:g} seconds, got no answer. What was asked for may still "
                "happen. The page goes on by itself once the storage answers."
            )
        return look.result()

    async def beside(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, in a thread, however long it takes, unless a look finds that the storage is away.

        A thread cannot be ended: it ends when the storage answers or breaks off.
        """
        if self._look is not None and not self._look.done():
            await self.versions()
        task = _begun(work)
        while not (await asyncio.wait([task], timeout=self._every))[0]:
            await self.versions()
        return task.result()


def _begun(work: Callable[[], Result]) -> "asyncio.Task[Result]":
    task = asyncio.get_running_loop().create_task(run_in_threadpool(work))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be there to hear of it
    return task


# ------------------------------------------------------------
# The streams of pages.

SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_BETWEEN_SIGNS = 15.0
MOST_READERS = 64
MOST_REMEMBERED = 10_000
"""Studies whose last change is remembered for readers that come back."""


class ChangeFeed:
    """Numbers every change that it sees. A reader that comes back with its last number gets what it missed."""

    def __init__(
        self, versions: Callable[[], Awaitable[dict[str, int]]], *, every: float = SECONDS_BETWEEN_LOOKS
    ) -> None:
        self._versions = versions
        self._every = every
        self._boot = secrets.token_hex(4)
        self._number = 0
        self._known: dict[str, int] | None = None
        self._changed_at: dict[str, int] = {}
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.readers = 0
        self.failure: str | None = None

    @property
    def is_full(self) -> bool:
        return self.readers >= MOST_READERS

    def stream(self, last_id: str | None) -> AsyncIterator[bytes]:
        """Events for one reader, while it listens. It holds no queue: who is slow gets the sum of what happened.

        It counts from now on, before its first event is asked for: readers that come at once are counted, too.
        """
        return self._events(last_id, _Seat(self))

    async def _events(self, last_id: str | None, seat: "_Seat") -> AsyncIterator[bytes]:
        self._start()
        seen = self._seen(last_id)
        yield b"retry: 1000\n\n"
        while True:
            if seen is None or self._number > seen:
                yield self._event(seen)
                seen = self._number
            try:
                async with self._changed:
                    await asyncio.wait_for(self._wait_after(seen), SECONDS_BETWEEN_SIGNS)
            except TimeoutError:
                yield b": still here\n\n"

    def leave(self) -> None:
        self.readers -= 1
        if not self.readers:
            self.stop()

    async def _wait_after(self, seen: int) -> None:
        await self._changed.wait_for(lambda: self._number > seen)

    def _seen(self, last_id: str | None) -> int | None:
        boot, _, number = (last_id or "").partition("-")
        if boot != self._boot or not number.isdecimal() or int(number) > self._number:
            return None
        return int(number)

    def _event(self, seen: int | None) -> bytes:
        """The changes after that number; everything, for a reader that has seen nothing of this server."""
        studies = None
        if seen is not None:
            known = self._known or {}
            names = [name for name, at in self._changed_at.items() if at > seen]
            studies = {key_of(name): known.get(name) for name in names}
        data = json.dumps({"studies": studies, "failure": self.failure})
        return f"id: {self._boot}-{self._number}\nevent: changed\ndata: {data}\n\n".encode()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look_again_and_again())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _look_again_and_again(self) -> None:
        while True:
            try:
                versions, failure = await self._versions(), None
            except Exception as error:  # the storage is away: pages say so, and go on once it is back
                versions, failure = self._known or {}, type(error).__name__
            await self._note(versions, failure)
            await asyncio.sleep(self._every)

    async def _note(self, versions: dict[str, int], failure: str | None) -> None:
        known = self._known
        names = [] if known is None else [n for n in {*known, *versions} if known.get(n) != versions.get(n)]
        self._known = versions
        if not names and failure == self.failure:
            return
        self.failure = failure
        self._number += 1
        for name in names:
            self._changed_at.pop(name, None)
            self._changed_at[name] = self._number
        while len(self._changed_at) > MOST_REMEMBERED:
            self._changed_at.pop(next(iter(self._changed_at)))
        async with self._changed:
            self._changed.notify_all()


class _Seat:
    """Is taken as long as the stream of a reader exists, whether or not it was ever asked for an event."""

    def __init__(self, changes: ChangeFeed) -> None:
        changes.readers += 1
        weakref.finalize(self, changes.leave)
