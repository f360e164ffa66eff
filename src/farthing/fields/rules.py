"""Rules of single values: what is allowed, in words, with an example, and as a plain value.

A rule serves the fields of strategies (`farthing.fields`), the keys of study files and the arguments of functions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.errors import InvalidArgument
from farthing.scalars import as_float, as_int, plain
from farthing.validation import shown, spelled_out

if TYPE_CHECKING:
    from farthing.names import Kind

WRONG: Any = object()
"""Returned by `read` for a value that breaks the rule; None may be a value."""


class Rule(ABC):
    """Says what a value must be."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Completes "must be …"."""

    @property
    @abstractmethod
    def example(self) -> str:
        """A value that is allowed, as code."""

    @abstractmethod
    def read(self, given: object) -> Any:
        """The plain value that was given, or WRONG."""

    def checked(
        self,
        given: object,
        *,
        what: str,
        advice: str | None = None,
        error: type[InvalidArgument] = InvalidArgument,
    ) -> Any:
        """The plain value that was given; raises `error` with the rule, what came and what to do."""
        value = self.read(given)
        if value is WRONG:
            remedy = advice or f"Give for example {self.example}."
            raise error(f"{what} must be {self.words}, got {shown(given)}. {remedy}")
        return value


@dataclass(frozen=True)
class Whole(Rule):
    """A whole number within bounds, both of them included. Booleans and 2.0 are none. Errors suggest `usual`."""

    least: int | None = None
    most: int | None = None
    usual: int | None = None

    @property
    def words(self) -> str:
        return "a whole number" + _bounds(self.least, self.most)

    @property
    def example(self) -> str:
        return str(next((number for number in (self.usual, self.least) if number is not None), 1))

    def read(self, given: object) -> Any:
        number = as_int(given)
        return number if number is not None and _is_within(number, self.least, self.most) else WRONG


@dataclass(frozen=True)
class Number(Rule):
    """A finite number within bounds: `least` and `most` are allowed, `above` and `below` are not."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    @property
    def words(self) -> str:
        return "a number" + _bounds(self.least, self.most, self.above, self.below)

    @property
    def example(self) -> str:
        low = self.least if self.least is not None else self.above
        high = self.most if self.most is not None else self.below
        if low is not None and high is not None:
            return f"{(low + high) / 2:g}"
        return f"{low + 1:g}" if low is not None else f"{high - 1:g}" if high is not None else "1.0"

    def read(self, given: object) -> Any:
        number = as_float(given)
        if number is None or not self._allows(number):
            return WRONG
        value = plain(given)
        return value if isinstance(value, (int, float)) else number

    def _allows(self, number: float) -> bool:
        is_open = (self.above is None or number > self.above) and (self.below is None or number < self.below)
        return is_open and _is_within(number, self.least, self.most)


@dataclass(frozen=True)
class Flag(Rule):
    """True or False, and nothing that is merely truthy."""

    @property
    def words(self) -> str:
        return "true or false"

    @property
    def example(self) -> str:
        return "True"

    def read(self, given: object) -> Any:
        value = plain(given)
        return value if isinstance(value, bool) else WRONG


@dataclass(frozen=True)
class Text(Rule):
    """A text of whole characters. Half of one, a lone surrogate, could be written to no file later."""

    @property
    def words(self) -> str:
        return "a text"

    @property
    def example(self) -> str:
        return "'name'"

    def read(self, given: object) -> Any:
        if isinstance(given, str) and spelled_out(given) != given:
            raise InvalidArgument(
                f"A text must be made of whole characters, got {shown(given)}, which has half of one (a surrogate). "
                "Decode what it came from with errors='replace'."
            )
        return given if isinstance(given, str) else WRONG


@dataclass(frozen=True)
class OneOf(Rule):
    """One of some values."""

    options: tuple[object, ...]

    @property
    def words(self) -> str:
        return " or ".join(repr(option) for option in self.options)

    @property
    def example(self) -> str:
        return repr(self.options[0])

    def read(self, given: object) -> Any:
        return next((option for option in self.options if type(given) is type(option) and given == option), WRONG)


@dataclass(frozen=True)
class Either(Rule):
    """Anything that one of several rules allows."""

    rules: tuple[Rule, ...]

    @property
    def words(self) -> str:
        return " or ".join(rule.words for rule in self.rules)

    @property
    def example(self) -> str:
        return self.rules[0].example

    def read(self, given: object) -> Any:
        return next((value for rule in self.rules if (value := rule.read(given)) is not WRONG), WRONG)


@dataclass(frozen=True)
class Several(Rule):
    """A list of at least `fewest` values with one rule for all of them; `as_type` is what it is kept as."""

    rule: Rule
    as_type: type = tuple
    fewest: int = 0

    @property
    def words(self) -> str:
        return f"a list{' that is not empty' if self.fewest else ''}, each {self.rule.words}"

    @property
    def example(self) -> str:
        return f"[{self.rule.example}]"

    def read(self, given: object) -> Any:
        parts = _parts(given)
        if parts is None or len(parts) < self.fewest:
            return WRONG
        values = [self.rule.read(part) for part in parts]
        return WRONG if any(value is WRONG for value in values) else self.as_type(values)


@dataclass(frozen=True)
class Named(Rule):
    """At least `fewest` values by name, with one rule for all of them."""

    rule: Rule
    fewest: int = 0

    @property
    def words(self) -> str:
        return f"a dict{' that is not empty' if self.fewest else ''}, each value {self.rule.words}"

    @property
    def example(self) -> str:
        return f"{{'name': {self.rule.example}}}"

    def read(self, given: object) -> Any:
        if not isinstance(given, Mapping) or len(given) < self.fewest or not all(isinstance(n, str) for n in given):
            return WRONG
        values = {name: self.rule.read(value) for name, value in given.items()}
        return WRONG if any(value is WRONG for value in values.values()) else values


@dataclass(frozen=True)
class SquareMatrix(Rule):
    """A square matrix of numbers, as lists or as an array; kept as it came."""

    @property
    def words(self) -> str:
        return "a square matrix of numbers"

    @property
    def example(self) -> str:
        return "[[1.0, 0.5], [0.5, 1.0]]"

    def read(self, given: object) -> Any:
        rows = [_parts(row) or () for row in _parts(given) or ()]
        is_square = bool(rows) and all(len(row) == len(rows) for row in rows)
        return given if is_square and all(as_float(value) is not None for row in rows for value in row) else WRONG


@dataclass(frozen=True)
class Part(Rule):
    """Something that has a name of its own, such as a query rule: the object, or its JSON."""

    kind: "Kind"

    @property
    def words(self) -> str:
        return self.kind.what

    @property
    def example(self) -> str:
        return self.kind.example_call

    def read(self, given: object) -> Any:
        if isinstance(given, Mapping):
            from farthing.fields.serialization import from_json

            return from_json(given, self.kind)
        return given if self.kind.matches(given) else WRONG


@dataclass(frozen=True)
class Anything(Rule):
    """No rule: for what an annotation does not tell."""

    @property
    def words(self) -> str:
        return "anything"

    @property
    def example(self) -> str:
        return "None"

    def read(self, given: object) -> Any:
        return given


def _parts(given: object) -> Sequence[Any] | None:
    """The values of a list, a tuple or an array; None for anything else."""
    as_list: Callable[[], object] | None = getattr(given, "tolist", None)
    listed = given if as_list is None else as_list()
    return listed if isinstance(listed, (list, tuple)) else None


def _is_within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _bounds(least: float | None, most: float | None, above: float | None = None, below: float | None = None) -> str:
    """In words, with a space before them; empty where there are none."""
    if least is not None and most is not None:
        return f" from {_text(least)} to {_text(most)}"
    bounds = (("≥", least), ("above", above), ("≤", most), ("below", below))
    texts = [f"{sign} {_text(bound)}" for sign, bound in bounds if bound is not None]
    return f" {' and '.join(texts)}" if texts else ""


def _text(bound: float) -> str:
    """Whole bounds in full: 2**63 − 1 is none that may be rounded."""
    return str(bound) if isinstance(bound, int) else f"{bound:g}"
