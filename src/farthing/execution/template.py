"""The arguments of a command, with fields to be filled in for each trial."""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from string import Formatter

from farthing.errors import WorkError
from farthing.validation import did_you_mean, listed


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
