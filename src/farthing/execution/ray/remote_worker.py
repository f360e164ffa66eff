"""The coordinator's hold on a worker's place in a Ray cluster, and on the worker that is in it."""

import itertools
import json
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from farthing.errors import WorkError
from farthing.execution.failures import Exit
from farthing.execution.ray import Bundles
from farthing.execution.ray.place import BROKEN, CLOSED, EXITED, MESSAGE
from farthing.execution.wire import BrokenWire, parsed
from farthing.trials import Json

SECONDS_TO_END = 20.0
"""Longest wait for a node to say that a worker has ended; then its place is given up."""
WAKE = 0
_numbers = itertools.count(1)


class Bell:
    """Rings with the number of what has something to say. Ray's threads ring it, the coordinator waits for it."""

    def __init__(self) -> None:
        self._rings: queue.SimpleQueue[int] = queue.SimpleQueue()

    def ring(self, number: int) -> None:
        self._rings.put(number)

    def wait(self, seconds: float) -> set[int]:
        """All numbers that have been rung; waits up to that long for the first."""
        heard: set[int] = set()
        with suppress(queue.Empty):
            heard.add(self._rings.get(timeout=max(0.0, min(seconds, 86_400.0))))
            while True:
                heard.add(self._rings.get_nowait())
        return heard


@dataclass(frozen=True)
class Node:
    """The machine of a place, and the versions that run there."""

    node: str
    host: str
    python: str
    farthing: str
    sees_folder: bool
    pid: int


class RemotePlace:
    """A place that Ray was asked for: it waits for resources, then is ready, and is gone when its actor or node died.

    `group` is its placement group, where it has one. It is unusable where our code cannot run on its node: without
    Farthing, with another one, or in an environment that Ray could not make.
    """

    def __init__(
        self, ray: Any, actor: Any, *, bell: Bell, proof: tuple[str, str], bundles: Bundles, group: Any = None
    ) -> None:
        self.actor = actor
        self.bundles = bundles
        self.group = group
        self.idle_since = time.monotonic()
        self.number = next(_numbers)
        self.node: Node | None = None
        self.why_gone: str | None = None
        self.is_unusable = False
        self._ray = ray
        self._bell = bell
        when_done(actor.describe.remote(*proof), self._on_described)
        when_done(actor.stay.remote(), self._on_end)

    @property
    def is_ready(self) -> bool:
        return self.node is not None and not self.is_gone

    @property
    def is_gone(self) -> bool:
        return self.why_gone is not None

    def give_up(self, why: str) -> None:
        """Ends the actor, and with it all that runs in the place; gives its resources back."""
        self.why_gone = self.why_gone or why
        with suppress(Exception):  # gone already
            self._ray.kill(self.actor, no_restart=True)
        if self.group is not None:
            with suppress(Exception):
                self._ray.util.remove_placement_group(self.group)

    def _on_described(self, answer: bytes | None, error: BaseException | None) -> None:
        if answer is None:
            self.is_unusable = not is_from_ray(error) or "ModuleNotFoundError" in str(error)
            self.why_gone = self.why_gone or reason_of(error)
        else:
            self.node = Node(**json.loads(answer))
        self._bell.ring(self.number)

    def _on_end(self, _: object, error: BaseException | None) -> None:
        self.why_gone = self.why_gone or reason_of(error)
        self._bell.ring(self.number)


class RemoteMailbox:
    """As `wire.Mailbox`: what is posted goes to the worker through its place, and its answer comes back by the bell."""

    has_mail_to_send = False

    def __init__(self, place: RemotePlace, bell: Bell) -> None:
        self.is_closed = False
        self.exit: Exit | None = None
        self.output = ""
        self.sentinel = next(_numbers)
        self._number = next(_numbers)
        self._place = place
        self._bell = bell
        self._answers: deque[bytes] = deque()

    def fileno(self) -> int:
        return self._number

    def post(self, payload: bytes) -> None:
        self.expect(self._place.actor.exchange.remote(payload))

    def expect(self, call: Any) -> None:
        """Takes the answer of this call as the worker's, when it comes."""
        when_done(call, self._on_answer)

    def flush(self) -> None:
        """Ray sends by itself."""

    def messages(self) -> Iterator[Json]:
        while self._answers:
            kind, content = self._answers[0][:1], self._answers.popleft()[1:]
            if kind == MESSAGE:
                yield parsed(content)
            elif kind == EXITED:
                self._end(json.loads(content))
            elif kind == CLOSED:
                self.is_closed = True
            else:
                assert kind == BROKEN
                raise BrokenWire(content.decode(errors="backslashreplace"))

    def _on_answer(self, answer: bytes | None, error: BaseException | None) -> None:
        if answer is not None:
            self._answers.append(answer)
            self._bell.ring(self._number)
        elif not is_from_ray(error):  # our own code failed there
            self._answers.append(BROKEN + reason_of(error).encode())
            self._bell.ring(self._number)

    def _end(self, form: dict[str, Any]) -> None:
        self.is_closed = True
        self.exit, self.output = Exit.of(form["code"]), form["output"]
        self._bell.ring(self.sentinel)


class RemoteWorker:
    """A worker process in a place. It is ended, and replaced, without giving the place up."""

    def __init__(self, ray: Any, place: RemotePlace, bell: Bell, *, start: Callable[[Any], Any]) -> None:
        self.place = place
        self.mailbox = RemoteMailbox(place, bell)
        self._ray = ray
        self.mailbox.expect(start(place.actor))

    @property
    def sentinel(self) -> int:
        return self.mailbox.sentinel

    @property
    def is_usable(self) -> bool:
        return not (self.place.is_gone or self.mailbox.is_closed)

    @property
    def lost_node(self) -> bool:
        return self.place.is_gone

    def end(self) -> Exit:
        if self.mailbox.exit is not None:
            return self.mailbox.exit
        if not self.place.is_gone:
            self._end_there()
        if self.place.is_gone:
            return Exit(f"was lost with its node: {self.place.why_gone}", was_killed=True, lost_node=True)
        return Exit.of(-9)

    def last_output(self) -> str:
        return self.mailbox.output or self.place.why_gone or ""

    def _end_there(self) -> None:
        """Returns when nothing of the worker's group is left; a place that does not answer is given up."""
        try:
            self._ray.get(self.place.actor.end.remote(gently=False), timeout=SECONDS_TO_END)
        except Exception as error:
            self.place.give_up(f"it did not answer ({reason_of(error)})")


def when_done(call: Any, then: Callable[[Any, BaseException | None], None]) -> None:
    """Has `then` called with the result of a Ray call, or with its error, in one of Ray's threads."""

    def done(future: Any) -> None:
        error = future.exception()
        then(None, error) if error is not None else then(future.result(), None)

    call.future().add_done_callback(done)


def is_from_ray(error: BaseException | None) -> bool:
    """Whether Ray lost the actor, rather than our code in it having failed."""
    return isinstance(error, import_module("ray.exceptions").RayActorError)


def reason_of(error: BaseException | None) -> str:
    """The last line of what Ray says, which has the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def check_node(node: Node, *, farthing: str, python: str, folder: str) -> None:
    """Raises `WorkError` for a node whose workers could not do this study's work."""
    if (node.farthing, node.python) != (farthing, python):
        raise WorkError(
            f"Every node must have Farthing {farthing} and Python {python}, got Farthing {node.farthing} and Python "
            f"{node.python} on {node.host}. Install the same there, or send it along: "
            f"ft.RayExecutor(runtime_env={{'pip': ['farthing=={farthing}']}})."
        )
    if not node.sees_folder:
        raise WorkError(
            f"The study's folder must be shared by all nodes, got {folder!r}, which {node.host} does not have. Give a "
            "place that every node sees: ft.Study(..., folder='/a/shared/folder'), or folder='s3://bucket/studies'."
        )
