"""A program in any language as work."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import IO, Any

from farthing.errors import WorkError
from farthing.execution.failures import WorkFailed, describe_exit
from farthing.execution.results import GRADIENT
from farthing.execution.running_trial import RunningTrial
from farthing.execution.template import Template
from farthing.trials import Problem
from farthing.validation import shown

LONGEST_LINE = 1 << 20
LINES_KEPT = 20
OWN_FIELDS = ("resume_dir", "checkpoint_dir", "trial")


class Command:
    """A command line with `{fields}` for the chosen values; reports are read from its standard output.

        ft.Command("python train.py --lr {lr} --epochs {epochs} --resume {resume_dir} --save {checkpoint_dir}")

    Fields are the params, the fidelities, `resume_dir`, `checkpoint_dir` and `trial` (its number); `Template` says how
    they are filled in. A line that is a JSON object with the value's name among its keys is a report, as of
    `trial.report`: fidelities and `step` say where it was measured, `cost` is charged, `gradient` has derivatives along
    params, other numbers are metrics. In a space with a trace fidelity, a last line that does not name it is the
    result. Other lines go to the trial's log.
    """

    def __init__(self, line: str) -> None:
        if not isinstance(line, str):
            raise WorkError(f"A command must be one string, got {shown(line)}. Write it as in a terminal.")
        self._template = Template(line)

    def __repr__(self) -> str:
        return f"Command({self._template.text!r})"

    def check(self, problem: Problem) -> None:
        chosen = [*problem.space.parameters, *problem.space.fidelities]
        self._template.check_fields([*chosen, *OWN_FIELDS], needed=chosen)
        program = self._template.program
        if program is not None and shutil.which(program, path=_environment()["PATH"]) is None:
            raise WorkError(
                f"A command must start with a program that is there, got {program!r}, which was not found. "
                f"Check the spelling, or give its full path."
            )

    def run(self, trial: RunningTrial) -> object:
        with _started(self._template.filled(self._fields(trial))) as process:
            last_errors = _LastLines(_pipe(process.stderr))
            reports = _Reports(trial)
            for line in _lines(_pipe(process.stdout)):
                reports.read(line)
            errors = last_errors.text()
        _check_exit(process, errors)
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

    def __init__(self, trial: RunningTrial) -> None:
        self.result: dict[str, Any] | None = None
        self._trial = trial
        self._value = trial.problem.value
        self._fidelities = trial.problem.space.fidelities
        self._has_trace = any(fidelity.trace for fidelity in self._fidelities.values())

    def read(self, line: bytes) -> None:
        said = _json_object(line)
        if said is None or not (self._value in said or "cost" in said):
            sys.stdout.write(line.decode(errors="backslashreplace"))
            return
        if "cost" in said:
            self._trial.charge(said.pop("cost"))
        if self._value in said:
            self._take(said)

    def _take(self, said: dict[str, Any]) -> None:
        if self.result is not None:
            self._report(self.result)
        is_result = self._has_trace and "step" not in said and not self._fidelities.keys() & said.keys()
        self.result = said if is_result else None
        if not is_result:
            self._report(said)

    def _report(self, said: dict[str, Any]) -> None:
        place = {name: said.pop(name) for name in ("step", *self._fidelities) if name in said}
        value = said.pop(self._value)
        metrics = {name: number for name, number in said.items() if type(number) in (int, float)}
        gradient = None if GRADIENT in metrics else said.get(GRADIENT)
        self._trial.report(value, metrics=metrics, gradient=gradient, **place)


class _LastLines:
    """Passes a program's standard error on to our own and keeps the last lines of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """The last lines, once the program has closed its end."""
        self._thread.join()
        return "".join(self._lines)

    def _read(self) -> None:
        for line in _lines(self._stream):
            text = line.decode(errors="backslashreplace")
            self._lines.append(text)
            sys.stderr.write(text)


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


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Lines as they come; one that never ends comes in pieces."""
    return iter(lambda: stream.readline(LONGEST_LINE), b"")


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
