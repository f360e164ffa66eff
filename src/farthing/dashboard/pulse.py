"""Whether the storage answers: what a page asks for is not waited for while it does not."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

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
