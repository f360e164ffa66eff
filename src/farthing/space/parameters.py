"""The three kinds of parameter. Each is a frozen value that refuses, at construction, what cannot be meant.

The encoder uses `count` values (None for a continuum), `value_at(index)` and `index_of(value)`.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

from farthing.errors import InvalidParams, InvalidSpace
from farthing.scalars import GRID_TOLERANCE, ROUNDING, Option, Scalar, as_float, as_option, as_scalar, as_whole, clipped
from farthing.space import validation
from farthing.validation import did_you_mean, listed, shown

# ------------------------------------------------------------
# Conditions: a parameter that is active only while its parents have certain values.


Condition: TypeAlias = dict[str, tuple[Option, ...]]
"""For every parent the values under which the parameter is active; empty when it always is."""

When: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]] | None
"""How a user writes a condition."""


def read_condition(when: When) -> Condition:
    """The condition a user wrote, with every value or sequence of values as a tuple."""
    if when is None:
        return {}
    if not isinstance(when, Mapping):
        raise InvalidSpace(
            f"when= must map the names of parents to values, got {shown(when)}. "
            "Write it like when={'optimizer': 'sgd'}."
        )
    return {_parent_name(parent): _values(parent, values) for parent, values in when.items()}


def is_active(when: Condition, chosen: Mapping[str, Any]) -> bool:
    """Whether every parent is among the chosen (that is, active itself) and has one of its values."""
    return not when or all(parent in chosen and chosen[parent] in values for parent, values in when.items())


def _parent_name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidSpace(f"when= must name its parents by strings, got {shown(name)}. Use the parameter's name.")
    return name


def _values(parent: str, values: object) -> tuple[Scalar, ...]:
    several = values if isinstance(values, Sequence) and not isinstance(values, str) else (values,)
    try:
        result = tuple(as_scalar(value) for value in several)
    except TypeError:
        result = ()
    if not result:
        raise InvalidSpace(
            f"when= must give a parent one or more values, got {shown(values)} for {parent!r}. "
            "Write one value or a list of them: strings, finite numbers, booleans or None."
        )
    return result


# ------------------------------------------------------------
# Parameters.


FINEST_STEP = 1e-9
"""Of a Float, relative to its larger bound: values closer together cannot be told from rounding errors."""

End: TypeAlias = Literal["low", "high"]


@dataclass(frozen=True, init=False, repr=False)
class Float:
    """A real number in [low, high].

    `log` searches its logarithm. `step` allows only low, low + step, …, high, computed in decimal, so that
    `Float(0, 1, step=0.1)` holds 0.3 and not 0.30000000000000004. `when` makes the parameter conditional. `guess` is
    where you expect good values, a number or a pair (low, high): the search begins there, and leaves as results say so.
    `cheap` is the end, "low" or "high", at which trials cost least: a few starts are made near it.
    """

    low: float
    high: float
    log: bool
    step: float | None
    when: Condition = field(hash=False)
    guess: float | tuple[float, float] | None
    cheap: End | None

    can_be_parent: ClassVar[bool] = False

    def __init__(
        self,
        low: float,
        high: float,
        *,
        log: bool = False,
        step: float | None = None,
        when: When = None,
        guess: float | Sequence[float] | None = None,
        cheap: End | None = None,
    ) -> None:
        validation.store(
            self,
            low=validation.read_float(low, what="The low of a Float"),
            high=validation.read_float(high, what="The high of a Float"),
            log=validation.read_flag(log, what="log="),
            step=None if step is None else validation.read_float(step, what="The step of a Float"),
            when=read_condition(when),
            guess=None,
            cheap=_read_end(cheap),
        )
        validation.check_bounds(self)
        if self.log:
            validation.check_logarithm(self)
        if self.step is not None:
            self._check_step(self.step)
        validation.store(self, guess=_read_guess(self, guess))

    def __repr__(self) -> str:
        return validation.call_text(self, self.low, self.high, **self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments that differ from their defaults."""
        return validation.differing(
            log=(self.log, False),
            step=(self.step, None),
            when=(self.when, {}),
            guess=(self.guess, None),
            cheap=(self.cheap, None),
        )

    @property
    def guessed_values(self) -> tuple[float, float]:
        """The ends of the guess, which are equal for a number."""
        assert self.guess is not None, "ask only where there is a guess"
        return self.guess if isinstance(self.guess, tuple) else (self.guess, self.guess)

    @property
    def cheap_values(self) -> tuple[float, ...]:
        """The bound at which trials cost least, if it was declared."""
        return () if self.cheap is None else (self.low if self.cheap == "low" else self.high,)

    @property
    def count(self) -> int | None:
        """The number of values, if there is a step."""
        return None if self.step is None else self.index_of(self.high) + 1

    def index_of(self, value: float) -> int:
        """The index of the nearest value of the grid, from 0. Only with a step."""
        assert self.step is not None
        return round((value - self.low) / self.step)

    def value_at(self, index: int) -> float:
        """The value of the grid with this index, both bounds to the bit. Only with a step."""
        start, stride, scale = self._decimal_grid
        return self.high if index == self._last else (start + stride * index) / scale

    def check(self, value: object, *, name: str) -> float:
        """The canonical value; InvalidParams when the parameter cannot take it."""
        number = as_float(value)
        if number is None:
            raise InvalidParams(f"{name} must be a finite number, got {shown(value)}. Give it as a float.")
        within = clipped(number, self.low, self.high, slack=0.0 if self.log else ROUNDING * (self.high - self.low))
        if within is None:
            raise validation.outside(self, value, name=name)
        return within if self.step is None else self._snapped(within, step=self.step, name=name)

    @cached_property
    def _last(self) -> int:
        return self.index_of(self.high)

    @cached_property
    def _decimal_grid(self) -> tuple[int, int, int]:
        """Integers (start, stride, scale) with value i = (start + i·stride) / scale, which Python rounds correctly."""
        low, step = Fraction(repr(self.low)), Fraction(repr(self.step))
        scale = math.lcm(low.denominator, step.denominator)
        return int(low * scale), int(step * scale), scale

    def _snapped(self, number: float, *, step: float, name: str) -> float:
        nearest = self.value_at(self.index_of(number))
        if not _agree(number, nearest, step=step):
            raise validation.off_grid(number, step=step, nearest=nearest, name=name)
        return nearest

    def _check_step(self, step: float) -> None:
        if self.log:
            raise validation.step_on_logarithm(self)
        finest = FINEST_STEP * max(abs(self.low), abs(self.high))
        if step < finest or step <= 0:
            raise InvalidSpace(
                f"The step of a Float must be positive and at least 1e-9 of its bounds, got {self!r}. "
                "Choose a coarser step, or none."
            )
        if not _agree(self.low + self._last * step, self.high, step=step):
            raise validation.misfit(self)


@dataclass(frozen=True, init=False, repr=False)
class Int:
    """An integer among low, low + step, …, high; both bounds are included.

    `log` searches its logarithm. `when` makes the parameter conditional. `guess` is where you expect good values, a
    number or a pair (low, high). `cheap` is the end, "low" or "high", at which trials cost least.
    """

    low: int
    high: int
    log: bool
    step: int
    when: Condition = field(hash=False)
    guess: int | tuple[int, int] | None
    cheap: End | None

    can_be_parent: ClassVar[bool] = True

    def __init__(
        self,
        low: int,
        high: int,
        *,
        log: bool = False,
        step: int = 1,
        when: When = None,
        guess: int | Sequence[int] | None = None,
        cheap: End | None = None,
    ) -> None:
        validation.store(
            self,
            low=validation.read_int(low, what="The low of an Int"),
            high=validation.read_int(high, what="The high of an Int"),
            log=validation.read_flag(log, what="log="),
            step=validation.read_int(step, what="The step of an Int"),
            when=read_condition(when),
            guess=None,
            cheap=_read_end(cheap),
        )
        validation.check_bounds(self)
        if self.log:
            validation.check_logarithm(self)
        self._check_step()
        validation.store(self, guess=_read_guess(self, guess))

    def __repr__(self) -> str:
        return validation.call_text(self, self.low, self.high, **self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments that differ from their defaults."""
        return validation.differing(
            log=(self.log, False),
            step=(self.step, 1),
            when=(self.when, {}),
            guess=(self.guess, None),
            cheap=(self.cheap, None),
        )

    @property
    def guessed_values(self) -> tuple[int, int]:
        """The ends of the guess, which are equal for a number."""
        assert self.guess is not None, "ask only where there is a guess"
        return self.guess if isinstance(self.guess, tuple) else (self.guess, self.guess)

    @property
    def cheap_values(self) -> tuple[int, ...]:
        """The bound at which trials cost least, if it was declared."""
        return () if self.cheap is None else (self.low if self.cheap == "low" else self.high,)

    @property
    def count(self) -> int:
        """The number of values."""
        return self.index_of(self.high) + 1

    def index_of(self, value: int) -> int:
        """The index of the value, from 0."""
        return (value - self.low) // self.step

    def value_at(self, index: int) -> int:
        """The value with this index."""
        return self.low + self.step * index

    def check(self, value: object, *, name: str) -> int:
        """The canonical value; InvalidParams when the parameter cannot take it."""
        number = as_whole(value)
        if number is None:
            raise InvalidParams(f"{name} must be a whole number, got {shown(value)}. Give it as an int.")
        if not self.low <= number <= self.high:
            raise validation.outside(self, value, name=name)
        nearest = self.value_at(round((number - self.low) / self.step))
        if number != nearest:
            raise validation.off_grid(number, step=self.step, nearest=nearest, name=name)
        return number

    def _check_step(self) -> None:
        if self.step < 1:
            raise InvalidSpace(f"The step of an Int must be at least 1, got {self!r}. Choose a positive step.")
        if self.log and self.step != 1:
            raise validation.step_on_logarithm(self)
        if (self.high - self.low) % self.step:
            raise validation.misfit(self)


@dataclass(frozen=True, init=False, repr=False)
class Choice:
    """One of the options: strings, finite numbers, booleans, None, or tuples of these.

    `ordered` says that neighbours resemble each other, as in `Choice("small", "medium", "large", ordered=True)`.
    Options are told apart by Python's `==`, so 1, 1.0 and True are the same option. `when` makes the parameter
    conditional. `guess` is the option that you expect to be good, or a list of several; for the option None write
    [None]. `cheap` is in the same way the option with which trials cost least.
    """

    options: tuple[Option, ...]
    ordered: bool
    when: Condition = field(hash=False)
    guess: tuple[Option, ...] | None
    cheap: tuple[Option, ...] | None

    can_be_parent: ClassVar[bool] = True

    def __init__(
        self,
        *options: Option,
        ordered: bool = False,
        when: When = None,
        guess: Option | list[Option] = None,
        cheap: Option | list[Option] = None,
    ) -> None:
        validation.store(
            self,
            options=tuple(_option(option) for option in options),
            ordered=validation.read_flag(ordered, what="ordered="),
            when=read_condition(when),
            guess=None,
            cheap=None,
        )
        self._check_options()
        validation.store(self, guess=self._read_options(guess, "guess="), cheap=self._read_options(cheap, "cheap="))

    def __repr__(self) -> str:
        return validation.call_text(self, *self.options, **self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments that differ from their defaults."""
        guess = None if self.guess is None else list(self.guess)
        cheap = None if self.cheap is None else list(self.cheap)
        return validation.differing(
            ordered=(self.ordered, False), when=(self.when, {}), guess=(guess, None), cheap=(cheap, None)
        )

    @property
    def guessed_values(self) -> tuple[Option, ...]:
        return self.guess or ()

    @property
    def cheap_values(self) -> tuple[Option, ...]:
        return self.cheap or ()

    @property
    def count(self) -> int:
        """The number of options."""
        return len(self.options)

    def index_of(self, value: Option) -> int:
        """The index of the option, from 0; InvalidParams when it is none."""
        try:
            return self._indices[value]
        except (KeyError, TypeError):
            raise InvalidParams(
                f"A choice must be one of {listed(self.options)}, got {shown(value)}. Choose one of the options."
            ) from None

    def value_at(self, index: int) -> Option:
        """The option with this index."""
        return self.options[index]

    def check(self, value: object, *, name: str) -> Option:
        """The option as it was declared; InvalidParams when it is none."""
        try:
            return self.value_at(self.index_of(as_option(value)))
        except (InvalidParams, TypeError):
            raise InvalidParams(
                f"{name} must be one of {listed(self.options)}, got {shown(value)}. "
                + did_you_mean(value, self.options, otherwise="Choose one of the options.")
            ) from None

    def _read_options(self, given: Option | list[Option], name: str) -> tuple[Option, ...] | None:
        several = given if isinstance(given, list) else [] if given is None else [given]
        try:
            return tuple(self.check(option, name=name) for option in several) or None
        except InvalidParams as error:
            raise InvalidSpace(str(error)) from None

    @cached_property
    def _indices(self) -> dict[Option, int]:
        return {option: index for index, option in enumerate(self.options)}

    def _check_options(self) -> None:
        if len(self.options) == 1 and isinstance(self.options[0], tuple):
            raise InvalidSpace(
                f"A Choice of tuples must have several, got one: {self!r}. Unpack options: Choice(*options)."
            )
        if not self.options:
            raise InvalidSpace("A Choice must have at least one option, got none. Write it like Choice('a', 'b').")
        for index, option in enumerate(self.options):
            if self.options.index(option) < index:
                raise InvalidSpace(
                    f"The options of a Choice must differ, got {shown(option)} twice (1, 1.0 and True are equal). "
                    "Drop one, or write them as strings."
                )


Parameter: TypeAlias = Float | Int | Choice


def with_condition(parameter: Parameter, when: Condition) -> Parameter:
    """The same parameter under another condition."""
    result = copy.copy(parameter)
    validation.store(result, when=when)
    return result


def _read_guess(parameter: Float | Int, guess: object) -> Any:
    """A value of the parameter, or two in their order."""
    if guess is None:
        return None
    ends = list(guess) if isinstance(guess, (list, tuple)) else [guess]
    try:
        values = [parameter.check(end, name="guess=") for end in ends]
    except InvalidParams as error:
        raise InvalidSpace(str(error)) from None
    if len(values) not in (1, 2) or values != sorted(values):
        raise InvalidSpace(f"A guess must be a number or a pair (low, high), got {shown(guess)}. Write guess=(1, 3).")
    return values[0] if len(values) == 1 else tuple(values)


def _read_end(cheap: object) -> Any:
    if cheap is not None and cheap not in ("low", "high"):
        raise InvalidSpace(
            f'The cheap end of a number must be "low" or "high", got {shown(cheap)}. '
            "Name the end at which trials cost least, or leave cheap= out."
        )
    return cheap


def _agree(number: float, other: float, *, step: float) -> bool:
    return math.isclose(number, other, rel_tol=ROUNDING, abs_tol=GRID_TOLERANCE * step)


def _option(value: object) -> Option:
    try:
        if isinstance(value, list):
            raise TypeError("most often a list of options that was not unpacked")
        return as_option(value)
    except TypeError:
        raise InvalidSpace(
            f"The options of a Choice must be strings, finite numbers, booleans, None or tuples, got {shown(value)}. "
            "Pass a list as Choice(*options); give anything else a name and look it up in the work."
        ) from None
