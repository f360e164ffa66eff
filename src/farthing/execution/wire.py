"""Frames over a socket between the coordinator and a worker: eight bytes of length, then that many bytes.

Messages of a worker are JSON and are never unpickled: work that has gone wrong must not run code in the coordinator.
"""

import json
import socket
import struct
from collections.abc import Iterator
from typing import Any

from farthing.errors import FarthingError
from farthing.trials import Json

HEADER = struct.Struct("!Q")
LARGEST_MESSAGE = 1 << 26
CHUNK = 1 << 16


class BrokenWire(FarthingError):
    """Something came that is no message."""


def to_bytes(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def send(wire: socket.socket, message: Json) -> None:
    """Sends a message and blocks until it is gone: the worker's side."""
    payload = to_bytes(message)
    wire.sendall(HEADER.pack(len(payload)) + payload)


def receive(wire: socket.socket) -> Any:
    """Blocks until a message has come; EOFError when the other side is gone."""
    return json.loads(receive_bytes(wire))


def receive_bytes(wire: socket.socket) -> bytes:
    (length,) = HEADER.unpack(_exactly(wire, HEADER.size))
    return _exactly(wire, length)


def _exactly(wire: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        chunk = wire.recv(min(count - len(received), CHUNK))
        if not chunk:
            raise EOFError
        received += chunk
    return bytes(received)


class Mailbox:
    """The coordinator's side: it never blocks, whatever the worker does or does not do.

    `is_closed` says that the worker will send no more.
    """

    def __init__(self, wire: socket.socket) -> None:
        wire.setblocking(False)
        self._wire = wire
        self.is_closed = False
        self._incoming = bytearray()
        self._outgoing = bytearray()

    def fileno(self) -> int:
        return self._wire.fileno()

    @property
    def has_mail_to_send(self) -> bool:
        return bool(self._outgoing)

    def post(self, payload: bytes) -> None:
        """Takes a frame to send; what does not fit into the socket goes with a later `flush`."""
        self._outgoing += HEADER.pack(len(payload)) + payload
        self.flush()

    def flush(self) -> None:
        try:
            while self._outgoing:
                with memoryview(self._outgoing) as waiting:
                    sent = self._wire.send(waiting[: 1 << 20])
                del self._outgoing[:sent]
        except BlockingIOError:
            return
        except OSError:
            self._outgoing.clear()  # the worker is gone, which its exit will say

    def messages(self) -> Iterator[Json]:
        """All messages that have come so far."""
        return map(parsed, self.payloads())

    def payloads(self) -> Iterator[bytes]:
        """All messages that have come so far, as they were sent."""
        self._fill()
        while (payload := self._next_payload()) is not None:
            yield payload

    def hang_up(self) -> None:
        """Tells the worker that nothing more will come."""
        try:
            self._wire.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        self._wire.close()

    def _fill(self) -> None:
        try:
            while chunk := self._wire.recv(CHUNK):
                self._incoming += chunk
            self.is_closed = True
        except BlockingIOError:
            return
        except OSError:
            self.is_closed = True

    def _next_payload(self) -> bytes | None:
        if len(self._incoming) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._incoming)
        if length > LARGEST_MESSAGE:
            raise BrokenWire(f"A message must be at most {LARGEST_MESSAGE} bytes, got one of {length}. Report less.")
        end = HEADER.size + length
        if len(self._incoming) < end:
            return None
        payload = bytes(self._incoming[HEADER.size : end])
        del self._incoming[:end]
        return payload


def parsed(payload: bytes) -> Json:
    """The message in a frame."""
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise BrokenWire(f"A message must be JSON, got {payload[:20]!r}. Work must leave our socket alone.") from error
