"""Classes that declare their arguments once: each field carries its rule, from which everything else follows."""

import inspect
import logging
from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from farthing.errors import InvalidArgument
from farthing.fields.rules import Anything, Either, Flag, Named, Number, OneOf, Rule, Several, Text, Whole
from farthing.validation import listed, refuse_unknown, shown

log = logging.getLogger(__name__)

RULE = "rule"
OF_TYPE: dict[object, Rule] = {bool: Flag(), int: Whole(), float: Number(), str: Text(), NoneType: OneOf((None,))}

# --------------------------------------------------------------------------------------------------------------- fields


def ruled(rule: Rule, default: Any = MISSING, *, default_factory: Callable[[], Any] | None = None) -> Any:
    """A dataclass field with a rule. In an annotation such as `float | None` it stands for the number."""
    if default_factory is not None:
        return field(default_factory=default_factory, metadata={RULE: rule})
    return field(default=default, metadata={RULE: rule})


def whole(default: Any, *, least: int | None = None, most: int | None = None) -> Any:
    """A whole number."""
    return ruled(Whole(least, most), default)


def number(
    default: Any,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """A finite number; `least` and `most` are allowed, `above` and `below` are not."""
    return ruled(Number(least, most, above, below), default)


def positive(default: Any) -> Any:
    """A number above 0."""
    return ruled(Number(above=0.0), default)


def share(default: Any) -> Any:
    """A number from 0 to 1: a share or a probability."""
    return ruled(Number(0.0, 1.0), default)


# --------------------------------------------------------------------------------------------------------- declarations


class DeclarationType(ABCMeta):
    """Makes a call with wrong arguments an error of the family, as wrong values are."""

    if not TYPE_CHECKING:

        def __call__(cls, *arguments, **named):
            try:
                return super().__call__(*arguments, **named)
            except TypeError:
                _refuse_wrong_call(cls, arguments, named)
                raise

        @property
        def __signature__(cls):
            signature = inspect.signature(cls.__init__)
            return signature.replace(parameters=list(signature.parameters.values())[1:])


class Declaration(metaclass=DeclarationType):
    """Base of frozen dataclasses whose fields carry rules. The rules are checked as soon as one is made.

    A field's rule comes from its annotation: `int`, `float`, `bool`, `str`, `Literal[…]`, `… | None`, sequences and
    mappings of these. `whole`, `number`, `positive` and `share` add bounds; a field without a default has its rule in
    the annotation, `Annotated[int, Whole(least=1)]`. NumPy's numbers become plain ones.
    """

    former: ClassVar[Mapping[str, Any]] = {}
    """Arguments that stored ones may still have, and the value of each that says what is done now."""

    @classmethod
    def of_former(cls, arguments: Mapping[str, Any]) -> Any:
        """The object that stands now for stored arguments of which a former one has another value; the log says it."""
        gone = [name for name in cls.former if name in arguments and arguments[name] != cls.former[name]]
        names = " and ".join(gone)
        log.warning("%s has no %s any more, which was stored: it goes on without.", cls.__name__, names)
        return cls(**{name: value for name, value in arguments.items() if name not in cls.former})

    def __post_init__(self) -> None:
        for argument in arguments_of(type(self)):
            given = getattr(self, argument.name)
            value = argument.read(given, owner=type(self).__name__)
            if value is not given:
                object.__setattr__(self, argument.name, value)


@dataclass(frozen=True)
class Argument:
    """A field as its users know it."""

    name: str
    rule: Rule
    field: Field[Any]

    @property
    def is_required(self) -> bool:
        return self.field.default is MISSING and self.field.default_factory is MISSING

    @property
    def default(self) -> Any:
        """Of an argument that is not required."""
        factory = self.field.default_factory
        return self.field.default if factory is MISSING else factory()

    def read(self, given: object, *, owner: str) -> Any:
        return self.rule.checked(given, what=f"{owner}'s {self.name}", advice=self.advice)

    @property
    def advice(self) -> str:
        if self.is_required:
            return f"Write {self.name}={self.rule.example}."
        return (
            f"Write {self.name}={self.rule.example}, or leave it out."
            if self.default is None
            else f"Leave it out for {shown(self.default)}."
        )


def arguments_of(cls: Any) -> tuple[Argument, ...]:
    """The arguments that a declaration has."""
    return _arguments_of(cls)


@cache
def _arguments_of(cls: Any) -> tuple[Argument, ...]:
    annotations = _annotations(cls)
    return tuple(
        Argument(each.name, rule_of(annotations.get(each.name, Any), each.metadata.get(RULE)), each)
        for each in fields(cls)
        if each.init
    )


def _annotations(cls: type[Any]) -> Mapping[str, Any]:
    """As types. A user's class may name some that exist for type checkers only: then no annotation is a rule."""
    try:
        return get_type_hints(cls, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def rule_of(annotation: Any, given: Rule | None = None) -> Rule:
    """The rule that an annotation says; `given` is the rule of the numbers in it, or of a type that says none."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return next((part for part in parts[1:] if isinstance(part, Rule)), None) or rule_of(parts[0], given)
    if origin in (Union, UnionType):
        return Either(tuple(rule_of(part, given) for part in parts))
    if origin is Literal:
        return OneOf(parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Named(rule_of(parts[1], given))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _rule_of_sequence(origin, parts, given)
    if annotation in (int, float) or annotation not in OF_TYPE:
        return given or OF_TYPE.get(annotation, Anything())
    return OF_TYPE[annotation]


def _rule_of_sequence(origin: type, parts: tuple[Any, ...], given: Rule | None) -> Rule:
    if origin is tuple and parts[1:] != (...,):
        return Anything()
    return Several(rule_of(parts[0], given), list if origin is list else tuple)


# ---------------------------------------------------------------------------------------------------------- wrong calls


def _refuse_wrong_call(cls: type[Any], arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Raises where the arguments do not fit the signature; what else raised a TypeError is not ours."""
    signature = inspect.signature(cls)
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        _refuse(cls, signature, arguments, named)


def _refuse(cls: type[Any], signature: inspect.Signature, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    name, parameters = cls.__name__, list(signature.parameters.values())
    refuse_unknown(named, signature.parameters, what=f"Arguments of {name}", error=InvalidArgument)
    in_order = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(arguments) > len(in_order):
        _refuse_unnamed(cls, arguments[len(in_order)], [each.name for each in parameters], taken=in_order)
    if twice := [each for each in in_order[: len(arguments)] if each in named]:
        raise InvalidArgument(f"{name} takes {twice[0]} once, got it twice. Leave out {twice[0]}=.")
    given = {*in_order[: len(arguments)], *named}
    missing = [each.name for each in parameters if each.default is each.empty and each.name not in given]
    call = ", ".join(f"{each.name}={each.rule.example}" for each in arguments_of(cls) if each.is_required)
    raise InvalidArgument(
        f"{name} must be given {' and '.join(missing)}, got {listed(sorted(given)) or 'no arguments'}. "
        f"Write for example {name}({call})."
    )


def _refuse_unnamed(cls: type[Any], given: object, names: list[str], *, taken: list[str]) -> None:
    left = [each for each in names if each not in taken]
    if not left:
        rule = f"{cls.__name__} takes {len(taken)} arguments" if taken else f"{cls.__name__} takes no arguments"
        raise InvalidArgument(f"{rule}, got {shown(given)} beside them. Leave it out.")
    ways = " or ".join(f"{cls.__name__}({each}={shown(given)})" for each in left)
    raise InvalidArgument(f"Arguments of {cls.__name__} must be keywords, got {shown(given)}. Write {ways}.")
