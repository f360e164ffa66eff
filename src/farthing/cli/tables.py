"""Tables of plain text."""

import shutil
import sys
from collections.abc import Sequence

from farthing.scalars import is_number

Row = Sequence[str]


def aligned(header: Row, rows: Sequence[Row]) -> str:
    """Columns two spaces apart, numbers to the right; lines are cut to a terminal's width, not to that of a pipe."""
    table = [list(header), *map(list, rows)]
    columns = [_column(cells) for cells in zip(*table, strict=True)]
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return "\n".join(_cut(line) for line in lines)


def _column(cells: Sequence[str]) -> list[str]:
    width = max(map(len, cells))
    is_numeric = all(is_number(cell) for cell in cells[1:] if cell)
    return [f"{cell:>{width}}" if is_numeric else f"{cell:<{width}}" for cell in cells]


def _cut(line: str) -> str:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else len(line)
    return line if len(line) <= width else line[: width - 1] + "…"
