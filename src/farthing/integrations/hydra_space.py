"""Hydra's override syntax as a space, and the params of a trial as overrides."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import (
    ChoiceSweep,
    IntervalSweep,
    Override,
    Quote,
    QuotedString,
    RangeSweep,
    Transformer,
)
from hydra.errors import HydraException

from farthing.errors import InvalidArgument, InvalidSpace
from farthing.space import Choice, Fidelity, Float, Int, Space
from farthing.space.parameters import Parameter
from farthing.space.serialization import read_fidelities, read_parameters
from farthing.space.space_validation import INSIDE_NAMES, RESERVED
from farthing.validation import listed, shown

TRACE = "trace"


@dataclass(frozen=True)
class HydraSpace:
    """A space, the override of each of its names (`+optimizer.lr`), and the overrides that stay the same.

    `spelled` has how Hydra writes the options of a choice, where that is not how Python shows them.
    """

    space: Space
    keys: Mapping[str, str]
    spelled: Mapping[str, Mapping[Any, str]]
    constant: tuple[str, ...]

    @classmethod
    def of(cls, params: Mapping[str, Any], fidelities: Mapping[str, Any], arguments: Sequence[str]) -> "HydraSpace":
        """The space of `hydra.sweeper.params` and `hydra.sweeper.fidelities`; what the command line says comes first.

        A value is Hydra's syntax, or a table as in a study file: `{float: [0, 1], when: {optimizer: sgd}}`.
        """
        given = {_bare(key): (key, _declared(key, value)) for key, value in params.items()}
        given |= {_bare(key): (key, one) for one in _parsed(arguments) for key in [one.get_key_element()]}
        amounts = {_bare(key): (key, _declared(key, value)) for key, value in fidelities.items()}
        if twice := sorted(given.keys() & amounts.keys()):
            raise InvalidArgument(
                f"A key must be a parameter or a fidelity, got both for {twice[0]!r}. Leave it out of one of them."
            )
        swept = {
            key: one for key, (_, one) in given.items() if not isinstance(one, Override) or one.is_sweep_override()
        }
        names = _usable_names(swept, inside=INSIDE_NAMES) | _usable_names(amounts)
        space = Space(
            {names[key]: _parameter(key, one, names) for key, one in swept.items()},
            fidelities={names[key]: _fidelity(key, one) for key, (_, one) in amounts.items()},
        )
        return cls(
            space,
            keys={names[key]: whole for key, (whole, _) in (given | amounts).items() if key in names},
            spelled={names[key]: _spelled(one) for key, one in swept.items() if isinstance(one, Override)},
            constant=tuple(one.input_line for key, (_, one) in given.items() if key not in swept),
        )

    def overrides(self, params: Mapping[str, Any], fidelity: Mapping[str, float]) -> list[str]:
        """The overrides of a job; an inactive parameter has none."""
        chosen = [f"{self.keys[name]}={self._written(name, value)}" for name, value in params.items()]
        amounts = [f"{self.keys[name]}={_written(amount)}" for name, amount in fidelity.items()]
        return [*self.constant, *chosen, *amounts]

    def by_key(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Params or a fidelity by their keys in the configuration, tuples as lists."""
        return {
            _bare(self.keys[name]): list(value) if isinstance(value, tuple) else value for name, value in values.items()
        }

    def _written(self, name: str, value: Any) -> str:
        return self.spelled.get(name, {}).get(value) or _written(value)


def quoted(text: str) -> str:
    """The text as a value of an override."""
    return str(QuotedString(text, Quote.single).with_quotes())


def _written(value: Any) -> str:
    """A value as Hydra reads it again."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{','.join(map(_written, value))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


# ------------------------------------------------------------
# Reading what was given.


def _declared(key: str, value: Any) -> Any:
    """A table as it is, or the override that anything else stands for."""
    if isinstance(value, Mapping):
        return dict(value)
    return _parsed([f"{key}={value if isinstance(value, str) else Transformer.str(value)}"])[0]


def _parsed(arguments: Sequence[str]) -> list[Override]:
    try:
        found: list[Override] = OverridesParser.create().parse_overrides(list(arguments))
    except HydraException as error:
        raise InvalidArgument(
            f"Params of a sweep must be overrides that Hydra reads, got {shown(list(arguments))}: {error}. "
            "Write for example 'lr=tag(log, interval(0.0001, 0.1))'."
        ) from error
    return found


def _bare(key: str) -> str:
    return key.lstrip("+")


def _usable_names(keys: Iterable[str], *, inside: str = "") -> dict[str, str]:
    """For each key a name that a space takes, which is mostly the same; those characters may be inside of it."""
    found: dict[str, str] = {}
    for key in keys:
        name = re.sub(rf"[^\w{re.escape(inside)}]|^(?=\d)", "_", key)
        while name in found.values() or name in RESERVED:
            name += "_"
        found[key] = name
    return found


def _parameter(key: str, one: Any, names: Mapping[str, str]) -> Parameter:
    if not isinstance(one, Override):
        when = {names.get(parent, parent): values for parent, values in (one.get("when") or {}).items()}
        return read_parameters({key: {**one, "when": when} if when else one})[key]
    match one.value():
        case ChoiceSweep() as choice:
            _check_tags(one, choice.tags, ("ordered",))
            return Choice(*map(_option, choice.list), ordered="ordered" in choice.tags)
        case RangeSweep() as values:
            _check_tags(one, values.tags, ("log",))
            return _of_range(values)
        case IntervalSweep(start=start, end=end) as interval:
            _check_tags(one, interval.tags, ("log",))
            kind = Int if isinstance(start, int) and isinstance(end, int) else Float
            return kind(start, end, log="log" in interval.tags)
    raise InvalidArgument(
        f"A parameter of a sweep must be choice(…), range(…) or interval(…), got {shown(one.input_line)}. "
        "Write the names out that a glob stands for: 'db=choice(mysql, postgres)'."
    )


def _check_tags(override: Override, given: Sequence[str], known: Sequence[str]) -> None:
    if others := sorted(set(given) - set(known)):
        raise InvalidArgument(
            f"The tag of a parameter must be {listed(known)} here, got {others[0]!r} in {shown(override.input_line)}. "
            "Leave it out."
        )


def _of_range(values: RangeSweep) -> Parameter:
    """The values that Hydra's range has: its stop is not among them."""
    start, stop, step = (Decimal(str(one)) for one in (values.start, values.stop, values.step))
    last = math.ceil((stop - start) / step) - 1 if step else -1
    if last < 0:
        raise InvalidSpace(
            f"A range must have a value, got range({values.start}, {values.stop}, {values.step}). "
            "Its stop is not among them: range(1, 4) is 1, 2, 3."
        )
    ends = sorted([start, start + step * last])
    if last == 0:
        return Choice(values.start)
    log = "log" in values.tags
    if all(isinstance(one, int) for one in (values.start, values.stop, values.step)):
        return Int(int(ends[0]), int(ends[1]), step=int(abs(step)), log=log)
    return Float(float(ends[0]), float(ends[1]), step=float(abs(step)), log=log)


def _fidelity(key: str, one: Any) -> Fidelity:
    if not isinstance(one, Override):
        return read_fidelities({key: one})[key]
    match one.value():
        case IntervalSweep(start=start, end=end, tags=tags):
            _check_tags(one, tags, (TRACE,))
            is_whole = isinstance(start, int) and isinstance(end, int)
            return Fidelity(start, end, integer=is_whole, trace=TRACE in tags)
    raise InvalidArgument(
        f"A fidelity of a sweep must be an interval, got {shown(one.input_line)}. Write 'epochs: int(interval(1, 27))' "
        "or 'epochs: {int: [1, 27]}'."
    )


def _option(element: Any) -> Any:
    """The option that an element of a choice stands for: lists and mappings by how Hydra writes them."""
    if isinstance(element, QuotedString):
        return element.text
    return Transformer.str(element) if isinstance(element, (list, dict)) else element


def _spelled(override: Override) -> dict[Any, str]:
    found = override.value()
    return {_option(one): str(Transformer.str(one)) for one in found.list} if isinstance(found, ChoiceSweep) else {}
