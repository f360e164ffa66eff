"""Spaces as scikit-learn's searches take them: distributions of SciPy, and lists of options, which may be objects."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from farthing.errors import InvalidArgument
from farthing.scalars import as_option
from farthing.space import Choice, Float, Int, Parameter
from farthing.validation import refuse_unknown, shown

EVEN = ("uniform", "randint")
EVEN_LOGARITHM = ("loguniform", "reciprocal")
TAIL = 0.001
"""The share of an unbounded distribution that is left out at each end. A guess."""


@dataclass(frozen=True)
class GivenSpace:
    """The parameters of a search, and of each the options that are objects, by the texts that stand for them."""

    parameters: Mapping[str, Parameter]
    objects: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, given: Mapping[str, Any], estimator: Any) -> "GivenSpace":
        objects = {name: objects_in(each) for name, each in given.items() if isinstance(each, list | tuple)}
        objects = {name: options for name, options in objects.items() if options}
        nested = [f"{name}__{param}" for name, options in objects.items() for param in _params_of(options.values())]
        refuse_unknown(
            given, {*estimator.get_params(), *nested}, what="Parameters of the estimator", error=InvalidArgument
        )
        return cls({name: as_parameter(name, each) for name, each in given.items()}, objects)

    def params(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """The params of a trial as the estimator takes them."""
        return {name: self.objects.get(name, {}).get(value, value) for name, value in chosen.items()}


def put(estimator: Any, params: Mapping[str, Any]) -> Any:
    """A copy of the estimator with these params, of which objects are copies too: what is fitted is not the user's."""
    return clone(estimator).set_params(**{name: clone(value, safe=False) for name, value in params.items()})


def as_parameter(name: str, given: Any) -> Parameter:
    """The space to search; texts stand for options that are objects."""
    if isinstance(given, Float | Int | Choice):
        return given
    if isinstance(given, range) and len(given) > 1 and given.step > 0:
        return Int(given[0], given[-1], step=given.step)
    if isinstance(given, list | tuple | range | np.ndarray):
        return Choice(*dict.fromkeys(_option(option) for option in given))
    if hasattr(given, "ppf") and hasattr(given, "support"):
        return _of_distribution(given)
    raise InvalidArgument(
        f"A parameter must be a Float, an Int, a Choice, a list of options, or a distribution of SciPy, got "
        f"{shown(given)} for {name!r}. Write ft.Choice(0.1, 1, 10), or ft.Float(0.1, 10, log=True)."
    )


def _of_distribution(given: Any) -> Parameter:
    """The range of the distribution; where it is not even, its middle half is where good values are expected."""
    low, high = (
        float(end if np.isfinite(end) else given.ppf(tail))
        for end, tail in zip(given.support(), (TAIL, 1 - TAIL), strict=True)
    )
    name, is_whole = _name(given), not hasattr(given, "pdf")
    even = name in (*EVEN, *EVEN_LOGARITHM)
    guess = None if even else tuple(float(given.ppf(share)) for share in (0.25, 0.75))
    if is_whole:
        return Int(round(low), round(high), guess=None if guess is None else [round(end) for end in guess])
    return Float(low, high, log=name in EVEN_LOGARITHM, guess=guess)


def _name(given: Any) -> str:
    return str(getattr(getattr(given, "dist", given), "name", ""))


def objects_in(options: Iterable[Any]) -> dict[str, Any]:
    """The options that are no plain values, by their texts."""
    return {_text(option): option for option in options if not _is_plain(option)}


def _option(option: Any) -> Any:
    return as_option(option) if _is_plain(option) else _text(option)


def _is_plain(option: Any) -> bool:
    with suppress(TypeError):
        as_option(option)
        return True
    return False


def _text(option: Any) -> str:
    """The same in every process: estimators as they are printed, functions by their names."""
    if isinstance(option, BaseEstimator):
        return " ".join(repr(option).split())
    if isinstance(option, Callable):  # type: ignore[arg-type]
        return str(getattr(option, "__qualname__", type(option).__qualname__))
    return re.sub(r" at 0x[0-9a-f]+", "", repr(option))


def _params_of(options: Iterable[Any]) -> set[str]:
    return {param for option in options if isinstance(option, BaseEstimator) for param in option.get_params()}
