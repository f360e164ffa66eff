"""Pictures of a study, as matplotlib figures. Matplotlib is imported when a picture is drawn."""

from typing import TYPE_CHECKING, Literal, get_args

from farthing.errors import InvalidArgument, MissingExtra
from farthing.validation import did_you_mean, listed, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from farthing.study import Study

__all__ = ["KINDS", "PlotKind", "plot", "require_matplotlib"]

PlotKind = Literal["all", "progress", "curves", "fidelities", "stages", "params", "model", "front"]
KINDS: tuple[PlotKind, ...] = get_args(PlotKind)


def plot(study: "Study", kind: PlotKind = "all", *, of: str | None = None) -> "Figure":
    """The picture of a study; see `Study.plot`."""
    _check(kind)
    if of is not None and kind != "model":
        raise InvalidArgument(
            f"Only a picture of a model is of one value, got of={shown(of)} for {kind!r}. "
            f"Write study.plot('model', of={shown(of)})."
        )
    require_matplotlib()
    import matplotlib

    from farthing.plots.look import STYLE

    with matplotlib.rc_context(STYLE):
        figure = _drawn(study, kind, of=of)
        figure.draw_without_rendering()  # the layout is settled while the style holds
    return figure


def require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            "A picture needs matplotlib, got a Python without it. Run: pip install 'farthing[plot]'."
        ) from error


def _drawn(study: "Study", kind: PlotKind, *, of: str | None) -> "Figure":
    from farthing.plots.figure import panels_figure
    from farthing.plots.model import model_figure
    from farthing.plots.online import is_online, online_figure
    from farthing.plots.population import is_population, population_figure

    if kind == "model":
        return model_figure(study, of=of)
    if is_online(study):
        return online_figure(study)
    if kind == "all" and is_population(study):
        return population_figure(study)
    return panels_figure(study, kind=kind)


def _check(kind: str) -> None:
    if kind not in KINDS:
        raise InvalidArgument(
            f"A picture's kind must be among {listed(KINDS)}, got {shown(kind)}. "
            f"{did_you_mean(kind, KINDS, otherwise='Leave it out for the whole picture.')}"
        )
