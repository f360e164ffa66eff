"""Declarations as JSON, `{"name": …, "arguments": {…}}`, and back: one writer and one reader for all kinds."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from farthing.errors import InvalidArgument
from farthing.fields.declaration import Declaration, arguments_of
from farthing.names import KINDS, Kind, find_class, name_of
from farthing.validation import refuse_non_mapping, refuse_unknown, shown


def to_json(thing: Any) -> Any:
    """A declaration with its arguments, those that are declarations likewise; other values as plain JSON."""
    if is_dataclass(thing) and not isinstance(thing, type):
        arguments = {field.name: to_json(getattr(thing, field.name)) for field in fields(thing)}
        return {"name": name_of(type(thing)), "arguments": arguments}
    if isinstance(thing, Mapping):
        return {name: to_json(value) for name, value in thing.items()}
    if (as_list := getattr(thing, "tolist", None)) is not None:
        return as_list()
    return [to_json(part) for part in thing] if isinstance(thing, (list, tuple)) else thing


def from_json(form: object, kind: Kind) -> Any:
    """The object that `to_json` wrote or a study file names."""
    if not isinstance(form, Mapping) or not isinstance(form.get("name"), str):
        raise InvalidArgument(
            f"{kind.what.capitalize()} must be named, got {shown(form)}. Write name = {kind.example!r}."
        )
    cls, arguments = _declared_class(form["name"], kind), form.get("arguments") or {}
    refuse_non_mapping(arguments, what=f"Arguments of {form['name']}", error=InvalidArgument)
    if (former := _of_former(cls, arguments)) is not None:
        return former
    arguments = without_former(cls, arguments)
    known = [argument.name for argument in arguments_of(cls)]
    refuse_unknown(arguments, known, what=f"Arguments of {form['name']}", error=InvalidArgument)
    return cls(**arguments)


def without_former(cls: type[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Stored arguments without those that a class had once, where they say what it does anyway."""
    former = cls.former if issubclass(cls, Declaration) else {}
    return {name: value for name, value in arguments.items() if name not in former or value != former[name]}


def _of_former(cls: type[Any], arguments: Mapping[str, Any]) -> Any:
    """The object that stands now for stored arguments that a class had once; None where there are none."""
    if not issubclass(cls, Declaration) or not set(cls.former) & set(without_former(cls, arguments)):
        return None
    return cls.of_former(arguments)


def _declared_class(name: str, kind: Kind) -> type[Any]:
    cls = find_class(name, kind)
    if not is_dataclass(cls):
        raise InvalidArgument(f"{kind.what.capitalize()} must be a dataclass to be stored, got {name!r}. Make it one.")
    return cls


def as_one(given: object, kind: Kind) -> Any:
    """The strategy given as `strategy=`: the object itself, or one by its name with its default arguments."""
    if isinstance(given, str):
        return find_class(given, kind)()
    if kind.matches(given):
        return given
    raise InvalidArgument(f"strategy= must be {kind.what} or its name, got {_described(given)}. {_remedy(given, kind)}")


def _described(given: object) -> str:
    if isinstance(given, type):
        return f"the class {given.__name__}"
    other = next((f"{other.what}, " for other in KINDS if other.matches(given)), "")
    return f"{other}{shown(given)}"


def _remedy(given: object, kind: Kind) -> str:
    if isinstance(given, type) and callable(getattr(given, kind.method, None)):
        return f"Make one of it: {given.__name__}(…)."
    if other := next((other for other in KINDS if other.matches(given)), None):
        return f"Give it to {other.used_by} instead."
    return f"Write for example {kind.example_call}."
