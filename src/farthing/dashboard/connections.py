"""Connections, before anybody knows whose they are: how long one may keep the server waiting, and how many may at once.

A connection *stalls* while its request is not whole, while encryption is not agreed on, and while its reader takes
nothing of the answer. It may stall for `PATIENCE` seconds. Only a few may stall at the same time: beyond that, the
address with the most of them loses the one that has stalled for longest. So whoever sends a whole request is answered,
however many others do not, also from the same address.
"""

import asyncio
import ssl
import time
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 20.0
"""Seconds. A guess: a browser on a bad line sends a request in one, and takes 64 kB of an answer in ten."""

MOST_STALLED = 64
"""Connections that wait for their next request stall, too: browsers keep up to six of them."""


class WatchedConnection(H11Protocol):
    """One connection of uvicorn's that is cut when it stalls for too long.

    With `tls` it is encrypted from here: asyncio would tell us of it only after both sides have agreed on that.
    """

    def __init__(self, *arguments: Any, tls: ssl.SSLContext | None = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._tls = tls
        self._early: bytes | None = None
        self._greeting: asyncio.Task[None] | None = None
        self.stalled_at: float | None = None
        self._is_full = False
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()
        if self._tls is not None:
            self._early = b""
            self._greeting = self.loop.create_task(self._greet(transport, self._tls))

    async def _greet(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        try:
            encrypted = await self.loop.start_tls(transport, self, tls, server_side=True)
        except OSError:  # they do not agree, or hang up
            encrypted = None
        early, self._early = self._early, None
        if encrypted is None or transport.is_closing():
            self.connection_lost(None)
            return
        super().connection_made(encrypted)
        if early:
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        if self._early is not None:  # the first words may come with the last of the greeting
            self._early += data
            return
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._is_full = True
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_full = False
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._go_on()

    @property
    def _is_asked(self) -> bool:
        """Whether there is a whole request that is not answered yet."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _look(self) -> None:
        if self._is_asked and not self._is_full:
            self._go_on()
        elif self.stalled_at is None:
            self._stall()

    def _stall(self) -> None:
        self.stalled_at = time.monotonic()
        self._limit = self.loop.call_later(PATIENCE, lambda: self.transport.abort())
        self.loop.call_soon(self.loop.call_soon, self._make_room)  # what has come already is read first

    def _make_room(self) -> None:
        stalled = [one for one in self.connections if isinstance(one, WatchedConnection) and one.is_stalled]
        if len(stalled) > MOST_STALLED:
            ((crowd, _),) = Counter(one.address for one in stalled).most_common(1)
            oldest = min((one for one in stalled if one.address == crowd), key=lambda one: one.stalled_at or 0.0)
            oldest.transport.close()  # after what was written to it; for that it still has its time

    @property
    def is_stalled(self) -> bool:
        return self.stalled_at is not None and not self.transport.is_closing()

    def _go_on(self) -> None:
        self.stalled_at = None
        if self._limit is not None:
            self._limit.cancel()

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""
