"""Pictures of a study, as matplotlib figures. Matplotlib is imported when a picture is drawn."""

from farthing.plots.kinds import KINDS, PlotKind, plot, require_matplotlib

__all__ = ["KINDS", "PlotKind", "plot", "require_matplotlib"]
