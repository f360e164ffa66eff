"""Files that commands write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from farthing.errors import InvalidArgument

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESOLUTION = 150
"""Dots per inch of a picture."""


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


def make_folder(path: Path) -> None:
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def save_figure(figure: "Figure", path: Path) -> None:
    """Saves a picture in the format that its name ends in."""
    try:
        with writing(path):
            figure.savefig(path, dpi=RESOLUTION, format=path.suffix.lstrip(".") or "png")
    except ValueError as error:
        raise InvalidArgument(
            f"A picture's name must end in .png, .pdf or .svg, got {path.name!r}. Choose one of these."
        ) from error
