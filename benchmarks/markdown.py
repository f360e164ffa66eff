"""Sections and tables in Markdown that read well as plain text too."""

from collections.abc import Sequence


def section(title: str, *parts: str, level: int = 3) -> str:
    return "\n\n".join([f"{'#' * level} {title}", *parts])


def table(rows: Sequence[Sequence[str]]) -> str:
    """Cells padded to their column; the first row is the heading, the first column is to the left."""
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    rule = [("-" * width if column == 0 else "-" * (width - 1) + ":") for column, width in enumerate(widths)]
    return "\n".join(_line(row, widths) for row in [rows[0], rule, *rows[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return f"| {' | '.join(cells)} |"
