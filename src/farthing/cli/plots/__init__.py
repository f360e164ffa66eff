"""Pictures of a study. They need matplotlib, which is imported when a picture is drawn."""

from farthing.cli.plots.figure import draw, require_matplotlib

__all__ = ["draw", "require_matplotlib"]
