"""Several objectives and limits: the front, and what was attained for the cost."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from farthing.analysis.front import Attained, Front, FrontPoint, attained_along, keeps_limits
from farthing.plots.look import ACCENT, MUTED, SHADES, add_legend, is_wide, set_plain_ticks
from farthing.trials import History
from farthing.trials.objectives import Bound, Objective, bounds_of, values_of

PALE, LIGHT, MIDDLE, DARK = SHADES
DOMINATED = "#c3cad1"

Pair = tuple[Objective, Objective]


def pairs(front: Front) -> list[Pair]:
    """Every two of the objectives; none where there is one."""
    return list(combinations(front.problem.objectives, 2))


def draw_pair(axes: Any, front: Front, pair: Pair, *, best: FrontPoint) -> None:
    """Two objectives: the front by what models expect, with one standard deviation, and the rest in grey."""
    across, up = pair
    is_kept = [keeps_limits(front.problem, point, {}) for point in front.others]
    groups = (
        ("dominated", [one for one, kept in zip(front.others, is_kept, strict=True) if kept], "o"),
        ("beyond a limit", [one for one, kept in zip(front.others, is_kept, strict=True) if not kept], "x"),
    )
    for label, points, marker in groups:
        if points:
            places = _means(points, across), _means(points, up)
            axes.plot(*places, marker, color=DOMINATED, markersize=4, label=label, zorder=1)
    axes.errorbar(
        _means(front.points, across),
        _means(front.points, up),
        xerr=_deviations(front.points, across),
        yerr=_deviations(front.points, up),
        fmt="o",
        color=DARK,
        ecolor=LIGHT,
        markersize=5,
        elinewidth=1.0,
        label="the front",
        zorder=3,
    )
    if len(front.problem.objectives) == 2:
        ordered = sorted((x, y) for x, y in zip(_means(front.points, across), _means(front.points, up), strict=True))
        corners = {"where": "post" if across.minimize else "pre", "color": LIGHT, "linewidth": 1.0, "zorder": 2}
        axes.step([x for x, _ in ordered], [y for _, y in ordered], **corners)  # the edge of what is dominated
    chosen = [best.predicted[across.name].mean], [best.predicted[up.name].mean]
    axes.plot(
        *chosen, "D", color=ACCENT, markersize=7, markerfacecolor="none", label=f"trial {best.trial.number}", zorder=4
    )
    everything = [*front.points, *front.others]
    for axis, one in ((axes.xaxis, across), (axes.yaxis, up)):
        _set_scale(axes, axis, _means(everything, one))
    for name, bound in bounds_of(front.problem).items():
        if name in (across.name, up.name):
            draw = axes.axvline if name == across.name else axes.axhline
            draw(bound.bound, color=MUTED, linewidth=0.8, linestyle="--")
    axes.set_title(f"{up.name} against {across.name}, as expected")
    axes.set_xlabel(_label(across))
    axes.set_ylabel(_label(up))
    add_legend(axes)


def draw_attained(axes: Any, history: History, steps: Sequence[Attained]) -> None:
    """The measured hypervolume, or of one objective the best that keeps its limits, against the cost of all trials."""
    problem = history.problem
    found = [(step.spent, step.found) for step in steps if step.found is not None]
    axes.step([x for x, _ in found], [y for _, y in found], where="post", color=ACCENT, linewidth=1.8)
    title = "Hypervolume against cost" if problem.further else f"Best {problem.value} within the limits against cost"
    axes.set_xlim(left=0)
    axes.set_title(f"{title}, as measured")
    axes.set_xlabel(f"cost of all trials ({problem.cost_unit})")
    axes.set_ylabel("hypervolume" if problem.further else problem.value)


def draw_limit(axes: Any, history: History, steps: Sequence[Attained], name: str, limit: Bound) -> None:
    """A limited quantity of each result against the cost, grey beyond the limit, with the share that keeps it."""
    problem = history.problem
    known = [(step.spent, values[name]) for step in steps if (values := values_of(problem, step.trial)) is not None]
    kept = [(x, y) for x, y in known if limit.excess(y) <= 0.0]
    beyond = [(x, y) for x, y in known if limit.excess(y) > 0.0]
    axes.plot([x for x, _ in beyond], [y for _, y in beyond], "x", color=DOMINATED, markersize=4, label="beyond it")
    axes.plot([x for x, _ in kept], [y for _, y in kept], "o", color=MIDDLE, markersize=4, label="within it")
    axes.axhline(limit.bound, color=ACCENT, linewidth=1.2, label=f"{name} {limit}")
    _set_scale(axes, axes.yaxis, [limit.bound, *(y for _, y in known)])
    axes.set_xlim(left=0)
    axes.set_title(f"{name} {limit}: kept by {len(kept)} of {len(known)}")
    axes.set_xlabel(f"cost of all trials ({problem.cost_unit})")
    axes.set_ylabel(name)
    add_legend(axes)


def attainment_panels(history: History) -> list[Any]:
    """Panels of what was attained against the cost, and of each limit."""
    steps = attained_along(history)
    first = [lambda axes: draw_attained(axes, history, steps)]
    return [*first, *(_limit_panel(history, steps, name, limit) for name, limit in bounds_of(history.problem).items())]


def _limit_panel(history: History, steps: Sequence[Attained], name: str, limit: Bound) -> Any:
    return lambda axes: draw_limit(axes, history, steps, name, limit)


def _means(points: Sequence[FrontPoint], objective: Objective) -> list[float]:
    return [point.predicted[objective.name].mean for point in points]


def _deviations(points: Sequence[FrontPoint], objective: Objective) -> list[float]:
    return [point.predicted[objective.name].deviation or 0.0 for point in points]


def _label(objective: Objective) -> str:
    return f"{objective.name} ({'less' if objective.minimize else 'more'} is better)"


def _set_scale(axes: Any, axis: Any, numbers: Sequence[float]) -> None:
    if is_wide(numbers):
        (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
        set_plain_ticks(axis, min(numbers), max(numbers))
