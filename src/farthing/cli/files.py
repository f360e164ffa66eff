"""Files that commands write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farthing.errors import InvalidArgument


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Says in one line why a file could not be written."""
    try:
        yield
    except OSError as error:
        raise InvalidArgument(
            f"An output must be a file that can be written, got {str(path)!r}: {error.strerror or error}. "
            "Create its folder, or choose another place."
        ) from error
