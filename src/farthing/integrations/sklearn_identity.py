"""Names what a search is made of: data by its content, functions and estimators by their code and params."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import cloudpickle
from sklearn.base import BaseEstimator

from farthing.caching.identity import identity_of_data, identity_of_function
from farthing.caching.plain_data import NotPlain
from farthing.caching.users_modules import UnnamedImport
from farthing.errors import InvalidArgument


def identity_of(thing: Any) -> str:
    """The identity of data and functions; other objects count by their pickle, which is only ever hashed."""
    for identity in (identity_of_data, identity_of_function):
        with suppress(NotPlain, UnnamedImport):
            return identity(thing)
    return hashlib.sha256(cloudpickle.dumps(thing)).hexdigest()


def spelled(thing: Any) -> Any:
    """An estimator by its class and params, and those of what it is made of."""
    if isinstance(thing, Mapping):
        return {str(name): spelled(part) for name, part in thing.items()}
    if isinstance(thing, list | tuple):
        return [spelled(part) for part in thing]
    if not isinstance(thing, BaseEstimator):
        return identity_of(thing)
    params = {name: spelled(part) for name, part in thing.get_params(deep=False).items()}
    try:
        code = identity_of_function(type(thing))
    except UnnamedImport:
        raise InvalidArgument(
            f"An estimator's code must name the modules that it imports, got {type(thing).__name__}, which imports a "
            "module by a name that is not in the code. Write the name there."
        ) from None
    return [code, params, getattr(thing, "_sklearn_output_config", None)]


def digest_of(form: Any) -> str:
    return hashlib.sha256(repr(form).encode()).hexdigest()
