"""The coordinator's hold on one worker process and all that it starts."""

import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from farthing.execution.failures import Exit
from farthing.execution.wire import Mailbox

LONGEST_WAIT = 86_400.0
TAIL_BYTES = 4096
TAIL_LINES = 20
BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from farthing.execution.worker import main; main(*map(int, sys.argv[1:]))"
)


class WorkerProcess:
    """A fresh Python, the leader of a process group of its own.

    It does not import the script that started it, so that script needs no `if __name__ == "__main__":`. `sentinel`
    becomes readable when the process ends. Ending the worker ends its group: every program and process that the work
    started and that did not leave the group (by `setsid`, as daemons do).
    """

    lost_node = False

    def __init__(self, *, lifeline: int, environment: Mapping[str, str]) -> None:
        with ExitStack() as on_failure:
            ours, theirs = socket.socketpair()
            on_failure.enter_context(ours)
            with theirs:
                self._output = on_failure.enter_context(tempfile.TemporaryFile())
                self.sentinel, death = os.pipe()
                on_failure.callback(os.close, self.sentinel)
                on_failure.callback(os.close, death)
                numbers = [str(number) for number in (theirs.fileno(), lifeline, os.getpid())]
                self._process = subprocess.Popen(
                    [sys.executable, "-c", BOOT, *numbers, json.dumps(import_path())],
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._output,
                    pass_fds=(theirs.fileno(), lifeline),
                    start_new_session=True,
                    env=environment,
                )
            on_failure.pop_all()
        self.mailbox = Mailbox(ours)
        threading.Thread(target=_watch, args=(self._process.pid, death), daemon=True).start()

    @property
    def is_usable(self) -> bool:
        """Whether it lives and can be talked to."""
        return not (self.mailbox.is_closed or wait_for_events({self.sentinel: select.POLLIN}, 0.0))

    def kill(self) -> None:
        """Kills all of the group. `end` is still to be called."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # safe: until `wait` the number belongs to our process

    def exit_code(self) -> int:
        """The code of a process that has ended, negative for a signal. `end` is still to be called."""
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        assert found is not None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def end(self) -> Exit:
        """Kills the rest of the group and says how the worker ended."""
        self.kill()
        code = self._process.wait()
        self.mailbox.close()
        self._output.close()
        os.close(self.sentinel)
        return Exit.of(code)

    def last_output(self) -> str:
        """The end of what it printed outside of any job."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - TAIL_BYTES))
        return _last_lines(self._output.read())


def wait_for_events(events: Mapping[int, int], seconds: float) -> set[int]:
    """Those descriptors to which one of their events happened; waits up to that long for the first."""
    poll = select.poll()
    for descriptor, wanted in events.items():
        poll.register(descriptor, wanted)
    return {descriptor for descriptor, _ in poll.poll(math.ceil(1000 * max(0.0, min(seconds, LONGEST_WAIT))))}


def last_lines(path: Path) -> str:
    """The end of a log; empty when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            return _last_lines(log.read())
    except OSError:
        return ""


def _last_lines(output: bytes) -> str:
    return "\n".join(output.decode(errors="backslashreplace").splitlines()[-TAIL_LINES:])


def import_path() -> list[str]:
    """The folders in which this process finds modules; the empty entry is the current folder."""
    return [entry or os.getcwd() for entry in sys.path]


def _watch(pid: int, death: int) -> None:
    """Says that a process has ended, and leaves it to its owner to take the exit code."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    os.close(death)
