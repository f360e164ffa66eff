"""A program in any language as work."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from queue import Empty, Queue
from typing import IO, Any, Literal

from farthing.errors import WorkError
from farthing.execution.failures import NO_VALUE, WorkFailed, describe_exit
from farthing.execution.patterns import Patterns
from farthing.execution.results import GRADIENT
from farthing.execution.running_trial import RunningTrial
from farthing.execution.template import Template
from farthing.trials import Problem
from farthing.validation import shown

LONGEST_LINE = 1 << 20
LINES_KEPT = 20
LINES_READ_AHEAD = 1000
OWN_FIELDS = ("resume_dir", "checkpoint_dir", "trial")


_Stream = Literal["output", "errors"]


class Command:
    """A command line with `{fields}` for the chosen values; reports are read from its standard output.

        ft.Command("python train.py --lr {lr} --epochs {epochs} --resume {resume_dir} --save {checkpoint_dir}")

    Fields are the params, the fidelities, `resume_dir`, `checkpoint_dir` and `trial` (its number); `Template` says how
    they are filled in. A line that is a JSON object with the value's name among its keys is a report, as of
    `trial.report`: fidelities and `step` say where it was measured, `cost` is charged, `gradient` has derivatives along
    params, other numbers are metrics. In a space with a trace fidelity, a last line that does not name it is the
    result. Other lines go to the trial's log.

    A program that prints text needs no change: `pattern` has one regular expression or several, whose groups say what
    the text means, as in `pattern=r"epoch (?P<epochs>\\d+) loss (?P<value>\\S+)"`; `Patterns` says how they are read.
    """

    def __init__(self, line: str, *, pattern: str | Sequence[str] | None = None) -> None:
        if not isinstance(line, str):
            raise WorkError(f"A command must be one string, got {shown(line)}. Write it as in a terminal.")
        self._template = Template(line)
        self._patterns = Patterns.of(pattern)

    def __repr__(self) -> str:
        pattern = f", pattern={list(self._patterns.texts)!r}" if self._patterns.texts else ""
        return f"Command({self._template.text!r}{pattern})"

    def check(self, problem: Problem) -> None:
        self._patterns.check(problem)
        chosen = [*problem.space.parameters, *problem.space.fidelities]
        needed = [name for name in chosen if name not in problem.space.retired]
        self._template.check_fields([*chosen, *OWN_FIELDS], needed=needed)
        program = self._template.program
        if program is not None and shutil.which(program, path=_environment()["PATH"]) is None:
            raise WorkError(
                f"A command must start with a program that is there, got {program!r}, which was not found. "
                f"Check the spelling, or give its full path."
            )

    def run(self, trial: RunningTrial) -> object:
        reports, last_errors = _Reports(trial, self._patterns), deque[str](maxlen=LINES_KEPT)
        with _started(self._template.filled(self._fields(trial))) as process, _Output(process) as output:
            for stream, line in output:
                if stream == "errors":
                    last_errors.append(reports.read_error(line))
                else:
                    reports.read(line)
        _check_exit(process, "".join(last_errors))
        reports.require_a_value()
        return reports.result

    def _fields(self, trial: RunningTrial) -> dict[str, object]:
        fields: dict[str, object] = {**trial.params, **trial.fidelity, "trial": trial.number}
        if trial.resume_dir is not None:
            fields["resume_dir"] = trial.resume_dir
        if "checkpoint_dir" in self._template.fields:
            fields["checkpoint_dir"] = trial.checkpoint_dir
        return fields


class _Reports:
    """Turns the lines of a command into reports of its trial."""

    def __init__(self, trial: RunningTrial, patterns: Patterns) -> None:
        self.result: dict[str, Any] | None = None
        self._patterns = patterns.reader(trial.problem)
        self._has_value = trial._job.reported is not None
        self._last_line = ""
        self._trial = trial
        self._named = trial.problem.returned
        self._fidelities = trial.problem.space.fidelities
        self._has_trace = any(fidelity.trace for fidelity in self._fidelities.values())

    def read(self, line: bytes) -> None:
        said = _json_object(line)
        if said is not None and (self._has_values(said) or "cost" in said):
            self._hear(said)
            return
        text = line.decode(errors="backslashreplace")
        sys.stdout.write(text)
        self._read_text(text)

    def read_error(self, line: bytes) -> str:
        """A line of standard error, where many programs log: it is passed on, and patterns are searched for in it."""
        text = line.decode(errors="backslashreplace")
        sys.stderr.write(text)
        self._read_text(text)
        return text

    def _read_text(self, text: str) -> None:
        for line in text.split("\r"):  # a progress bar writes over its own line
            self._last_line = line.strip() or self._last_line
            self._hear(self._patterns.read(line))

    def _hear(self, said: dict[str, Any]) -> None:
        if "cost" in said:
            charge = self._trial._charge_with_report if self._has_values(said) else self._trial.charge
            charge(said.pop("cost"))
        if self._has_values(said):
            self._take(said)

    def _has_values(self, said: dict[str, Any]) -> bool:
        """Whether a value is among what was said; where several are needed, one of them makes it a report."""
        return any(name in said for name in self._named)

    def require_a_value(self) -> None:
        """Raises when the program has ended well and said nothing that is a value."""
        if self._has_value:
            return
        last = f"; its last line was {shown(self._last_line)}" if self._last_line else " and no text at all"
        groups = " and ".join(f"(?P<{name}>…)" for name in ("value", *self._named[1:]))
        raise WorkFailed(
            f"{NO_VALUE}, got no {' and no '.join(map(repr, self._named))}{last}. Print a line of JSON such as "
            f"{json.dumps(dict.fromkeys(self._named, 0.5))}, or give a pattern with a group {groups} that finds it in "
            "the text."
        )

    def _take(self, said: dict[str, Any]) -> None:
        self._has_value = True
        if self.result is not None:
            self._report(self.result)
        is_result = self._has_trace and "step" not in said and not self._fidelities.keys() & said.keys()
        self.result = said if is_result else None
        if not is_result:
            self._report(said)

    def _report(self, said: dict[str, Any]) -> None:
        place = {name: said.pop(name) for name in ("step", *self._fidelities) if name in said}
        value = {name: said.pop(name) for name in self._named if name in said}
        metrics = {name: number for name, number in said.items() if type(number) in (int, float)}
        gradient = None if GRADIENT in metrics else said.get(GRADIENT)
        self._trial.report(value, metrics=metrics, gradient=gradient, **place)


class _Output:
    """The lines of a program's two streams, in the order in which they come; ends when it has closed both.

    Two threads read, so that a program that fills one stream does not wait for us at the other.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._lines: Queue[tuple[_Stream, bytes]] = Queue(maxsize=LINES_READ_AHEAD)
        self._is_wanted = True
        for stream, pipe in (("output", process.stdout), ("errors", process.stderr)):
            threading.Thread(target=self._read, args=(stream, _pipe(pipe)), daemon=True).start()

    def __enter__(self) -> "_Output":
        return self

    def __exit__(self, *_: object) -> None:
        """Lets the threads end: each has at most one more line to put where there is room now."""
        self._is_wanted = False
        with contextlib.suppress(Empty):
            while True:
                self._lines.get_nowait()

    def __iter__(self) -> "Iterator[tuple[_Stream, bytes]]":
        open_streams = 2
        while open_streams:
            stream, line = self._lines.get()
            if line:
                yield stream, line
            else:
                open_streams -= 1

    def _read(self, stream: "_Stream", pipe: IO[bytes]) -> None:
        while self._is_wanted:
            line = pipe.readline(LONGEST_LINE)
            self._lines.put((stream, line))
            if not line:
                return


def _environment() -> dict[str, str]:
    """Ours, with our own interpreter first on the path: `python` means the one that Farthing is installed in."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    return {"PYTHONUNBUFFERED": "1", **os.environ, "PATH": path}


@contextlib.contextmanager
def _started(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """The running program. It stays in our process group, so that it ends with the worker."""
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _check_exit(process: subprocess.Popen[bytes], errors: str) -> None:
    if process.returncode:
        last = errors.strip().rpartition("\n")[2]
        how = describe_exit(process.returncode)
        raise WorkFailed(f"The command {how}{': ' + last if last else ''}", details=errors)


def _json_object(line: bytes) -> dict[str, Any] | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
