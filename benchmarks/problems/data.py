"""Where the tables and surrogates are, and what to say when they are not there."""

import os
from importlib.util import find_spec
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def data_folder() -> Path:
    """$FARTHING_DATA, by default `shared/data` beside the repository."""
    named = os.environ.get("FARTHING_DATA")
    return Path(named) if named else REPOSITORY.parent / "shared" / "data"


def missing_file(relative: str) -> str | None:
    """Why that file of the data folder cannot be read, None when it is there."""
    path = data_folder() / relative
    return None if path.is_file() else f"{path} is not there; set FARTHING_DATA to the folder of benchmark data"


def missing_package(name: str) -> str | None:
    """Why that package cannot be used, None when it is installed."""
    return None if find_spec(name) else f"{name} is not installed; make bench-setup"
