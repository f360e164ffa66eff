"""Work that is a program of its own: its arguments, the process, and the values in what it prints."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, Queue
from string import Formatter
from typing import IO, Any, Literal

from farthing.errors import WorkError
from farthing.execution.failures import NO_VALUE, WorkFailed, describe_exit
from farthing.execution.running_trial import RunningTrial
from farthing.space.space_validation import as_identifier
from farthing.trials import Problem
from farthing.trials.objectives import GRADIENT
from farthing.validation import did_you_mean, listed, shown

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
        reports.read_end()
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

    def __init__(self, trial: RunningTrial, patterns: "Patterns") -> None:
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
            for said in self._patterns.read(line):
                self._hear(said)

    def read_end(self) -> None:
        """The program has ended: what it printed last is a report too."""
        for said in self._patterns.rest():
            self._hear(said)

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
        groups = {name: group for group, name in values_by_group(self._trial.problem).items()}
        wanted = " and ".join(f"(?P<{groups.get(name, name)}>…)" for name in self._named)
        raise WorkFailed(
            f"{NO_VALUE}, got no {' and no '.join(map(repr, self._named))}{last}. Print a line of JSON such as "
            f"{json.dumps(dict.fromkeys(self._named, 0.5))}, or give a pattern with a group {wanted} that finds it in "
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


# ------------------------------------------------------------
# The arguments, with fields to be filled in for each trial.


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of an argument: text as it is, or a field with its format."""

    text: str
    is_field: bool = False
    spec: str = ""

    def filled(self, fields: Mapping[str, object]) -> str:
        if not self.is_field:
            return self.text
        return format(fields[self.text], self.spec) if self.text in fields else ""


@dataclass(frozen=True, slots=True)
class _Argument:
    parts: tuple[_Part, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(part.text for part in self.parts if part.is_field)

    @property
    def is_flag(self) -> bool:
        return not self.fields and self.parts[:1] != () and self.parts[0].text.startswith("-")

    @property
    def is_one_field(self) -> bool:
        return len(self.parts) == 1 and self.parts[0].is_field

    @property
    def is_flag_with_field(self) -> bool:
        """`--flag={field}`"""
        first = self.parts[0].text if self.parts else ""
        return len(self.parts) == 2 and bool(self.fields) and first.startswith("-") and first.endswith("=")

    def filled(self, fields: Mapping[str, object]) -> str:
        return "".join(part.filled(fields) for part in self.parts)


class Template:
    """A command line split like a shell would, never run by one: a value is always one argument.

    `{name}` and `{name:.3g}` are fields; braces that are meant are doubled. A field without a value (an inactive
    parameter, `{resume_dir}` of a fresh trial) is empty; where it is all of an argument, or all that follows
    `--flag=`, the argument is left out, together with a `--flag` directly before it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._arguments = [_parse(argument) for argument in shlex.split(text)]
        except ValueError as error:
            raise WorkError(f"A command must be a well-formed command line, got {text!r}: {error}. Fix it.") from error
        if not self._arguments:
            raise WorkError(
                "A command must name a program, got an empty line. Write ft.Command('python train.py ...')."
            )

    @property
    def program(self) -> str | None:
        """The program to be run; None when a field decides it."""
        first = self._arguments[0]
        return None if first.fields else first.filled({})

    @property
    def fields(self) -> list[str]:
        return [field for argument in self._arguments for field in argument.fields]

    def check_fields(self, known: Collection[str], *, needed: Collection[str]) -> None:
        """Raises when a field is unknown or a needed one is not used."""
        for field in self.fields:
            if field not in known:
                raise WorkError(
                    f"A command's fields must be among {listed(known)}, got {{{field}}}. "
                    f"{did_you_mean(field, known, otherwise='Double the braces if they are meant.')}"
                )
        for name in needed:
            if name not in self.fields:
                raise WorkError(
                    f"A command must pass on all params and fidelities, got {self.text!r} without {{{name}}}. "
                    f"Add for example --{name} {{{name}}}."
                )

    def filled(self, fields: Mapping[str, object]) -> list[str]:
        """The arguments for one trial. A field that `fields` lacks has no value."""
        line: list[str] = []
        flag_is_last = False
        for argument in self._arguments:
            absent = not any(field in fields for field in argument.fields)
            if absent and argument.is_one_field:
                del line[len(line) - flag_is_last :]
            elif not (absent and argument.is_flag_with_field):
                line.append(argument.filled(fields))
            flag_is_last = argument.is_flag
        return line


def _parse(argument: str) -> _Argument:
    parts: list[_Part] = []
    for text, field, spec, conversion in Formatter().parse(argument):
        if field == "" or conversion:
            raise ValueError(f"a field has a name and perhaps a format, like {{lr:.3g}}, in {argument!r}")
        if text:
            parts.append(_Part(text))
        if field is not None:
            parts.append(_Part(field, is_field=True, spec=spec or ""))
    return _Argument(tuple(parts))


# ------------------------------------------------------------
# The values in the text that it prints, found by regular expressions of the user's.

VALUE = "value"
ADVICE = "Write pattern='val_loss=(?P<value>[0-9.e+-]+)'."


@dataclass(frozen=True)
class Patterns:
    """Regular expressions, each of which is searched for in every line.

    The group `value`, or one with the value's own name, is the value. With several objectives or limits each has a
    group of its name, `val_loss` for `val/loss`, and a report is complete once all of them were found; `PatternReader`
    says what holds for those that are printed less often. Groups named as a fidelity, or `step`, say where it was
    measured, `cost` is charged, and other groups are metrics. A place or a metric that stands in a line without a value
    belongs to the next value: `epoch 3` may come lines before `loss 0.2`.
    """

    expressions: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, given: str | Sequence[str] | None) -> "Patterns":
        if given is None:
            return cls()
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise WorkError(f"A pattern must be a text or a list of texts, got {shown(given)}. {ADVICE}")
        return cls(tuple(_compiled(text) for text in texts))

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(expression.pattern for expression in self.expressions)

    def check(self, problem: Problem) -> None:
        values = values_by_group(problem)
        found = {values.get(group) for expression in self.expressions for group in expression.groupindex}
        for name in problem.returned if self.expressions else ():
            if name not in found:
                raise WorkError(
                    f"A pattern must have a group for the value {name!r}, got {shown(list(self.texts))}. "
                    f"{_advice(name, problem)}"
                )

    def reader(self, problem: Problem) -> "PatternReader":
        return PatternReader(self.expressions, problem)


def values_by_group(problem: Problem) -> dict[str, str]:
    """Which value each group finds. The first value has two: `value`, which comes last, and one of its name."""
    values = {as_identifier(name): name for name in problem.returned}
    values |= {name: name for name in problem.returned if name in values}
    return values if VALUE in values else {**values, VALUE: problem.value}


def _advice(name: str, problem: Problem) -> str:
    if problem.is_simple:
        return ADVICE
    group = as_identifier(name)
    if values_by_group(problem)[group] != name:
        return f"Rename it: {group!r} is the group of another value."
    return f"Write a pattern for each, such as '{name}=(?P<{group}>\\S+)'."


class PatternReader:
    """Reads the lines of one trial.

    Of several values each holds until it is printed again. A report waits for all of them, except for one that was
    printed once while another came twice: the size of a model, say. It is complete at the latest where a value comes
    a second time, where another epoch or step begins, and where the program ends.
    """

    def __init__(self, expressions: Sequence[re.Pattern[str]], problem: Problem) -> None:
        self._expressions = expressions
        self._named, self._needed = values_by_group(problem), frozenset(problem.returned)
        fidelities = problem.space.fidelities
        self._places = {"step", *fidelities}
        self._whole = {"step", *(name for name, fidelity in fidelities.items() if fidelity.integer)}
        self._values: dict[str, Any] = {}
        self._waiting: dict[str, Any] = {}
        self._once, self._again = set[str](), set[str]()

    def read(self, line: str) -> Iterator[dict[str, Any]]:
        """What the line completes, in the form of a report's JSON: what was measured before it, its own, or a cost."""
        found = {name: text for expression in self._expressions for name, text in _groups(expression, line).items()}
        said = {self._named.get(group, group): self._number(group, text) for group, text in found.items()}
        now = {"cost": said.pop("cost")} if "cost" in said else {}
        if self._begins_anew(said):
            yield from self.rest()
        values = {name: said[name] for name in self._needed & said.keys()}
        self._again |= values.keys() & self._values.keys()
        self._once -= self._again
        self._values |= values
        self._waiting |= said
        if values and self._needed == self._once | (self._waiting.keys() & self._needed):
            now |= self._complete()
        if now:
            yield now

    def rest(self) -> Iterator[dict[str, Any]]:
        """The values since the last report, with those that hold on; nothing while one of them is unknown."""
        new = self._needed & self._waiting.keys()
        if new and self._values.keys() == self._needed:
            self._once |= self._needed - new - self._again
            yield self._complete()

    def _begins_anew(self, said: Mapping[str, Any]) -> bool:
        """Whether a value comes a second time, or another place, so that what waits is from before."""
        return any(
            name in self._needed or (name in self._places and said[name] != self._waiting[name])
            for name in said.keys() & self._waiting.keys()
        )

    def _complete(self) -> dict[str, Any]:
        whole, self._waiting = self._values | self._waiting, {}
        return whole

    def _number(self, group: str, text: str) -> float | int:
        try:
            return int(text) if group in self._whole else float(text)
        except ValueError:
            kind = "a whole number" if group in self._whole else "a number"
            raise WorkError(
                f"The group {group!r} of a pattern must match {kind}, got {shown(text)}. Match only its digits."
            ) from None


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise WorkError(f"A pattern must be a regular expression, got {shown(text)}: {error}. {ADVICE}") from None


def _groups(expression: re.Pattern[str], line: str) -> dict[str, str]:
    match = expression.search(line)
    return {name: text for name, text in match.groupdict().items() if text is not None} if match else {}
