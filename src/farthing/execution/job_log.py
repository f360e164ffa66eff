"""Sends all that a process prints to the log of the job it runs."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


class JobLog:
    """Redirects the descriptors of standard output and error, so that C libraries and child programs are heard too."""

    def __init__(self) -> None:
        self._between_jobs = os.dup(2)
        self._c_library = ctypes.CDLL(None)

    @contextmanager
    def writing_to(self, path: Path) -> Iterator[None]:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        self._point_to(descriptor)
        os.close(descriptor)
        sys.stdout, sys.stderr = _open_stream(sys.stdout, 1), _open_stream(sys.stderr, 2)
        try:
            yield
        finally:
            self._flush()
            self._point_to(self._between_jobs)

    def _point_to(self, descriptor: int) -> None:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # work may have closed or replaced them
                stream.flush()
        self._c_library.fflush(None)


def _open_stream(stream: TextIO | None, descriptor: int) -> TextIO:
    """The stream as it is, or a new one where work has closed it or it is not written line by line yet."""
    if stream is not None and not stream.closed and getattr(stream, "line_buffering", True):
        return stream
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
