"""Says why an attempt came to nothing: in one line, with the user's part of the traceback behind it."""

import errno
import os
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path
from traceback import TracebackException

from farthing.errors import FarthingError
from farthing.trials import Failure, Params
from farthing.trials.measurement import IS_NOT_FINITE

LONGEST_REASON = 300
LONGEST_TRACEBACK = 10_000
PLACE = re.compile(r'File "([^"]+)", line (\d+)')
NO_ROOM = re.compile(rf"OSError: \[Errno ({errno.ENOSPC}|{errno.EDQUOT})\]")
VARIES = re.compile(r"(?<!exited with code )(?<!\S)\S*[\d/\\]\S*")
"""Words that differ from trial to trial though the mistake is one: those with numbers, addresses and paths."""
NO_VALUE = "A command must print its value"
"""How the failure of a program begins that ended well and said nothing that is a value."""
COMMANDS = ("The command exited", NO_VALUE)
"""How the failure of a program begins that ended by itself."""
OUT_OF_MEMORY = ("MemoryError", "OutOfMemoryError")
"""Exceptions that some params raise and others do not: they say little about the work."""
OUR_FILES = tuple(
    f"{Path(__file__).parents[1]}{os.sep}{place}"
    for place in (f"execution{os.sep}", f"trials{os.sep}", f"space{os.sep}", "validation.py")
)


class WorkFailed(FarthingError):
    """The work ran and failed in a way that is no Python exception; `details` takes the place of a traceback."""

    def __init__(self, reason: str, *, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


def failure_of(error: BaseException) -> Failure:
    """The record of an exception that the work raised."""
    if isinstance(error, WorkFailed):
        return Failure(_shortened(str(error)), error.details)
    return Failure(_reason(error), _traceback(error))


@dataclass(frozen=True)
class Cause:
    """A mistake in the work: failures are alike if their causes are equal, whatever the message of the exception.

    `may_be_the_params`: params can cause it too, if they are all of one kind, as rates that are too large.
    """

    exception: str
    place: tuple[str, ...]
    text: str = field(compare=False)
    may_be_the_params: bool = False


def cause_of(failure: Failure, params: Params) -> Cause | None:
    """The exception and the line of the work that raised it, or what a command said.

    None where the machine, the time limit or the params may be the cause: a kill, no memory.
    """
    exception = failure.reason.partition(":")[0]
    if exception in OUT_OF_MEMORY:
        return None
    if IS_NOT_FINITE in failure.reason:
        return Cause(IS_NOT_FINITE, (), failure.reason, may_be_the_params=True)
    if places := PLACE.findall(failure.traceback):
        text = f"{failure.reason.rstrip('.')} ({Path(places[-1][0]).name}, line {places[-1][1]})"
        return Cause(_without_what_varies(exception, params), places[-1], text)
    if failure.reason.startswith(NO_VALUE):
        return Cause(NO_VALUE, (), failure.reason)
    is_said = bool(failure.traceback) or failure.reason.startswith(COMMANDS)
    return Cause(_without_what_varies(failure.reason, params), (), failure.reason) if is_said else None


def _without_what_varies(text: str, params: Params) -> str:
    for chosen in params.values():
        text = re.sub(rf"\b{re.escape(str(chosen))}\b", "", text)
    return VARIES.sub("", text)


def is_for_want_of_room(failure: Failure) -> bool:
    """Whether a disk was full, or a quota used up: any other trial would have failed there too."""
    return NO_ROOM.match(failure.reason) is not None


@dataclass(frozen=True)
class Exit:
    """How a worker ended: in words that complete "The work …", and whether a signal that we did not send killed it.

    `lost_node` says that the machine it was on went away with it.
    """

    words: str
    was_killed: bool
    lost_node: bool = False

    @classmethod
    def of(cls, code: int) -> "Exit":
        """`code` is as in `subprocess`, negative for a signal."""
        return cls(describe_exit(code), was_killed=code < 0)


def describe_exit(code: int) -> str:
    """How a process ended, in words: `code` is as in `subprocess`, negative for a signal."""
    if code >= 0:
        return f"exited with code {code}"
    name = _signal_name(-code)
    if -code == signal.SIGKILL:
        return f"was killed by {name}: out of memory, or killed from outside"
    return f"died of {name}"


def _reason(error: BaseException) -> str:
    try:
        lines = str(error).split("\n")
    except Exception:
        lines = ["(its message could not be made)"]
    name, message = type(error).__name__, lines[0].strip()
    if isinstance(error, FarthingError) and message:
        return _shortened(message)
    return _shortened(f"{name}: {message}" if message else name)


def _traceback(error: BaseException) -> str:
    report = TracebackException.from_exception(error)
    _keep_user_frames(report)
    return _cut_middle("".join(report.format()))


def _keep_user_frames(report: TracebackException) -> None:
    """Leaves out our own frames, in the exception and in all that it came from."""
    report.stack[:] = [frame for frame in report.stack if not frame.filename.startswith(OUR_FILES)]
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if other is not None:
            _keep_user_frames(other)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"


def _cut_middle(text: str) -> str:
    """The beginning says where it was called from, the end what went wrong; the middle can go."""
    half = LONGEST_TRACEBACK // 2
    return text if len(text) <= LONGEST_TRACEBACK else f"{text[:half]}\n  ...\n{text[-half:]}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
