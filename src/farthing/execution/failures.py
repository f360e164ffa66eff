"""Says why an attempt came to nothing: in one line, with the user's part of the traceback behind it."""

import os
import signal
from pathlib import Path
from traceback import TracebackException

from farthing.errors import FarthingError
from farthing.trials import Failure

LONGEST_REASON = 300
LONGEST_TRACEBACK = 10_000
OUR_FOLDERS = tuple(f"{Path(__file__).parents[1] / folder}{os.sep}" for folder in ("execution", "trials", "space"))


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
    report.stack[:] = [frame for frame in report.stack if not frame.filename.startswith(OUR_FOLDERS)]
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
