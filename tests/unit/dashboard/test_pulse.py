"""A storage that does not answer is noticed, and so is its return."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from farthing.dashboard.live import Pulse
from farthing.errors import StorageError

SHORT = 0.01
"""Seconds. Nothing below depends on how long they are: what hangs does so until it is let go."""


class Hanging:
    """A storage that answers once it may."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.looks = 0

    def versions(self) -> dict[str, int]:
        self.looks += 1
        self.may_answer.wait()
        return {"study": self.looks}


def with_hanging(scene: Callable[[Pulse, Hanging], Awaitable[Any]]) -> None:
    storage = Hanging()

    async def played() -> None:
        try:
            await scene(Pulse(storage.versions, seconds=SHORT, every=SHORT), storage)
        finally:
            storage.may_answer.set()

    asyncio.run(played())


def test_one_look_serves_all_who_ask_while_the_storage_hangs() -> None:
    async def scene(pulse: Pulse, storage: Hanging) -> None:
        for _ in range(3):
            with pytest.raises(StorageError, match="got no answer"):
                await pulse.versions()
        assert storage.looks == 1

    with_hanging(scene)


def test_what_is_asked_while_the_storage_hangs_is_not_begun() -> None:
    async def scene(pulse: Pulse, storage: Hanging) -> None:
        begun: list[int] = []
        with pytest.raises(StorageError):
            await pulse.versions()
        with pytest.raises(StorageError):
            await pulse.beside(lambda: begun.append(1))
        assert begun == []

    with_hanging(scene)


def test_work_that_hangs_with_the_storage_is_let_go_of() -> None:
    async def scene(pulse: Pulse, storage: Hanging) -> None:
        with pytest.raises(StorageError, match="got no answer"):
            await pulse.beside(storage.may_answer.wait)

    with_hanging(scene)


def test_work_that_takes_long_is_waited_for_while_the_storage_answers() -> None:
    looked = threading.Event()

    def versions() -> dict[str, int]:
        looked.set()
        return {}

    def work() -> str:
        looked.wait()
        return "done"

    async def played() -> str:
        return await Pulse(versions, seconds=600.0, every=SHORT).beside(work)

    assert asyncio.run(played()) == "done"


def test_it_goes_on_once_the_storage_answers() -> None:
    async def scene(pulse: Pulse, storage: Hanging) -> None:
        with pytest.raises(StorageError):
            await pulse.versions()
        storage.may_answer.set()
        found: dict[str, int] = {}
        while not found:
            with suppress(StorageError):  # an answer may take longer than that on a busy machine
                found = await pulse.versions()
        assert found["study"] == storage.looks

    with_hanging(scene)
