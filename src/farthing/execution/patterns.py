"""Finds values in the text that a program prints, by regular expressions of the user's."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farthing.errors import WorkError
from farthing.trials import Problem
from farthing.validation import shown

VALUE = "value"
ADVICE = "Write pattern='val_loss=(?P<value>[0-9.e+-]+)'."


@dataclass(frozen=True)
class Patterns:
    """Regular expressions, each of which is searched for in every line.

    The group `value`, or one with the value's own name, is the value. With several objectives or limits each has a
    group of its name, and a report is complete once all of them were found. Groups named as a fidelity, or `step`, say
    where it was measured, `cost` is charged, and other groups are metrics. A place or a metric that stands in a line
    without a value belongs to the next value: `epoch 3` may come lines before `loss 0.2`.
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
        groups = [name for expression in self.expressions for name in expression.groupindex]
        for name in problem.returned if self.expressions else ():
            if not ({VALUE, name} if name == problem.value else {name}) & set(groups):
                advice = (
                    ADVICE if problem.is_simple else f"Write a pattern for each, such as '{name}=(?P<{name}>\\S+)'."
                )
                raise WorkError(
                    f"A pattern must have a group for the value {name!r}, got {shown(list(self.texts))}. {advice}"
                )

    def reader(self, problem: Problem) -> "PatternReader":
        return PatternReader(self.expressions, problem)


class PatternReader:
    """Reads the lines of one trial."""

    def __init__(self, expressions: Sequence[re.Pattern[str]], problem: Problem) -> None:
        self._expressions = expressions
        self._value, self._needed = problem.value, problem.returned
        self._whole = {"step", *(name for name, fidelity in problem.space.fidelities.items() if fidelity.integer)}
        self._waiting: dict[str, Any] = {}

    def read(self, line: str) -> dict[str, Any]:
        """The content of the line, in the form of a report's JSON: empty unless it has the value or a cost."""
        found = {name: text for expression in self._expressions for name, text in _groups(expression, line).items()}
        said = {self._name(group): self._number(group, text) for group, text in found.items()}
        now = {"cost": said.pop("cost")} if "cost" in said else {}
        self._waiting |= said
        if said and all(name in self._waiting for name in self._needed):
            now |= self._waiting
            self._waiting = {}
        return now

    def _name(self, group: str) -> str:
        return self._value if group == VALUE and VALUE not in self._needed else group

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
