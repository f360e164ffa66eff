"""Prints the identities of the stages in a folder's modules, as JSON; test_stage_identity.py runs it.

Of each: at first, again, after its objects were copied and pickled, and after the stage ran.
"""

import copy
import importlib
import json
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import numpy as np

from farthing.caching.identity import identity_of_function


def identities(module: ModuleType) -> list[str]:
    found = [identity_of_function(module.stage), identity_of_function(module.stage)]
    for thing in list(vars(module).values()):
        with suppress(Exception):
            copy.deepcopy(thing)
        with suppress(Exception):
            pickle.dumps(thing)
    found.append(identity_of_function(module.stage))
    module.stage(np.arange(1.0, 6.0), a=1.5)
    return [*found, identity_of_function(module.stage)]


def _told(name: str) -> list[str]:
    """The identities, or why there are none: it must not hide those of other modules."""
    try:
        return identities(importlib.import_module(name))
    except Exception as error:
        return [f"{type(error).__name__} in {name}", repr(error)]


def main(folder: str, order: str) -> None:
    sys.path.insert(0, folder)
    names = sorted(path.stem for path in Path(folder).glob("kind_*.py"))
    names = names if order == "forward" else names[::-1]
    found = {name: _told(name) for name in names}
    print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
