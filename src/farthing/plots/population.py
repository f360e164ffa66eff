"""A picture of a population: a lane for each member, an arrow for each copy, and the schedule of the winner."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from farthing.analysis.best import MeasuredBest
from farthing.analysis.runs import Copy, Lineage, curve_axis
from farthing.analysis.text import found_best
from farthing.errors import NoResult
from farthing.plots.look import (
    ACCENT,
    FAILED,
    INK,
    MUTED,
    SHADES,
    add_legend,
    is_failed,
    set_plain_ticks,
    set_value_axis,
    set_whole_ticks,
)
from farthing.session import session_of
from farthing.session.strategy import class_name
from farthing.space import Choice
from farthing.study import Study
from farthing.trials import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, TITLE_HEIGHT, LANE_HEIGHT, LANES_MARGIN, CURVES_HEIGHT, SMALL_HEIGHT = 12.0, 0.6, 0.34, 0.9, 2.9, 2.2
"""Inches."""

MOST_COLUMNS = 4
"""Of small panels in a row."""

LANE, WINNERS_LANE = 5.0, 11.0
"""Widths of a lane, and of the winner's way behind it, in points."""

ARROWS_APART = 0.006
"""Of the width of the picture."""


def is_population(study: Study) -> bool:
    return study.lineage.is_population


def population_figure(study: Study) -> "Figure":
    """The copies, the values along the steps, and every parameter's schedule."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from farthing.plots.picture import Picture

    best = found_best(session_of(study))
    if best is None:
        raise NoResult(f"A picture needs a trial that is done, got none of {study.name!r}. Run the study first.")
    picture = _Picture(study, best)
    names = list(study.space.parameters)
    rows = math.ceil(len(names) / MOST_COLUMNS)
    heights = [LANES_MARGIN + LANE_HEIGHT * len(picture.lineage), CURVES_HEIGHT, *[SMALL_HEIGHT] * rows]
    total = TITLE_HEIGHT + sum(heights)
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, sum(heights) / total), w_pad=0.08, h_pad=0.08)
    figure = Picture(figsize=(WIDTH, total), layout=layout)
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    lanes = figure.add_subplot(grid[0])
    picture.draw_lanes(lanes)
    picture.draw_curves(figure.add_subplot(grid[1], sharex=lanes))
    picture.draw_schedules(figure, [grid[2 + row] for row in range(rows)], names, beside=lanes)
    picture.add_title(figure)
    return figure


class _Picture:
    """The panels of one study, all along the same steps."""

    def __init__(self, study: Study, best: MeasuredBest) -> None:
        self.study, self.best = study, best
        self.history = study.history
        self.lineage: Lineage = study.lineage
        self.trace = curve_axis(study.space)
        self.path = self.lineage.run_of(best.trial)
        self.on_path = {trial.number for trial in self.path}
        self.end = max(self._end(trial) for trial in self.history)

    def draw_schedules(self, figure: Any, rows: Sequence[Any], names: Sequence[str], *, beside: Any) -> None:
        """A panel for each parameter, in rows; places that are left over stay empty."""
        columns = math.ceil(len(names) / len(rows))
        places = [place for row in rows for place in row.subgridspec(1, columns)]
        for place, name in zip(places, names, strict=False):
            self.draw_schedule(figure.add_subplot(place, sharex=beside), name)
        for place in places[len(names) :]:
            figure.add_subplot(place).set_axis_off()

    def draw_lanes(self, axes: Any) -> None:
        colours = self._colours()
        lanes = {member: place for place, member in enumerate(self.lineage.members)}
        for member, own in self.lineage.members.items():
            for trial in own:
                self._draw_interval(axes, trial, lanes[member], colours)
        for copy, step in self._placed_copies():
            self._draw_copy(axes, lanes[copy.donor], lanes[copy.member], step=step, trial=copy.trial)
        axes.set_yticks(range(len(lanes)), [str(member) for member in lanes])
        axes.set_ylim(len(lanes) - 0.4, -0.6)
        axes.set_xlim(-0.01 * self.end, 1.01 * self.end)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_ylabel("member")
        axes.set_title("Members, darker where they did better; an arrow is a copy, red the way of the winner")
        axes.tick_params(labelbottom=False)

    def draw_curves(self, axes: Any) -> None:
        for own in self.lineage.members.values():
            for part in self._runs(own):
                axes.plot(*self._points(part), color=SHADES[1], linewidth=0.9, marker=".", markersize=3)
        axes.plot(
            *self._points(self.path), color=ACCENT, linewidth=2.0, label=f"the winner, trial {self.best.trial.number}"
        )
        values = [point.value for trial in self.history for point in trial.points if point.value is not None]
        set_value_axis(axes, values, self.history)
        axes.set_ylabel(self.study.problem.value)
        axes.set_title(f"{self.study.problem.value} along the {self.trace}")
        axes.set_xlabel(self.trace)
        set_whole_ticks(axes.xaxis)
        add_legend(axes)

    def draw_schedule(self, axes: Any, name: str) -> None:
        """The values of one parameter over the steps: of all members, and of the winner."""
        for trial in self.history:
            if name in trial.params:
                self._draw_value(axes, trial, name, color=SHADES[1], linewidth=1.0, alpha=0.8)
        steps, values = self._staircase(name)
        axes.plot(steps, values, color=ACCENT, linewidth=2.0, zorder=4)
        parameter = self.study.space.parameters[name]
        if isinstance(parameter, Choice):
            axes.set_yticks(range(len(parameter.options)), [str(option) for option in parameter.options])
            axes.set_ylim(-0.4, len(parameter.options) - 0.6)
        elif parameter.log:
            axes.set_yscale("log")
            set_plain_ticks(axes.yaxis, parameter.low, parameter.high)
            axes.set_ylim(parameter.low * 0.9, parameter.high / 0.9)
        else:
            margin = 0.04 * (parameter.high - parameter.low)
            axes.set_ylim(parameter.low - margin, parameter.high + margin)
        axes.set_title(name)
        axes.set_xlabel(self.trace)

    def add_title(self, figure: Any) -> None:
        ledger, height = self.study.ledger, figure.get_size_inches()[1]
        found = f"{self.study.problem.value} {self.best.value:.4g}"
        title = f"{self.study.name}: {found} after {ledger.total:.4g} {ledger.unit}"
        strategy = class_name(session_of(self.study).strategy.to_json())
        told = (
            f"{strategy}, {len(self.lineage)} members, {len(self.lineage.copies)} copies; "
            f"the winner is member {self.lineage.member_of(self.best.trial)}, trained through "
            f"{len({self.lineage.member_of(trial) for trial in self.path})} of them"
        )
        figure.text(0.1 / WIDTH, 1 - 0.1 / height, title, va="top", fontsize=13, fontweight="bold")
        figure.text(0.1 / WIDTH, 1 - 0.38 / height, told, va="top", fontsize=9, color=MUTED)

    # ---- pieces -----------------------------------------------------------------------------------------------------

    def _draw_interval(self, axes: Any, trial: Trial, lane: int, colours: dict[int, Any]) -> None:
        gap = 0.003 * self.end
        start, end = self._start(trial) + gap, self._end(trial) - gap
        if is_failed(trial):
            axes.plot([start, end], [lane, lane], color=FAILED, linewidth=1.0, linestyle=":")
            axes.plot([(start + end) / 2], [lane], "x", color=FAILED, markersize=5, markeredgewidth=1.2)
            return
        if trial.number in self.on_path:
            axes.plot(
                [start, end], [lane, lane], color=ACCENT, linewidth=WINNERS_LANE, solid_capstyle="butt", alpha=0.9
            )
        colour = colours.get(trial.number, "white")
        axes.plot([start, end], [lane, lane], color=colour, linewidth=LANE, solid_capstyle="butt", zorder=3)

    def _placed_copies(self) -> list[tuple[Copy, float]]:
        """Copies that were made at one step stand side by side, so that no arrow hides another."""
        at: dict[float, list[Copy]] = {}
        for copy in self.lineage.copies:
            at.setdefault(self._start(copy.trial), []).append(copy)
        return [
            (copy, step + ARROWS_APART * self.end * (place - (len(own) - 1) / 2))
            for step, own in at.items()
            for place, copy in enumerate(own)
        ]

    def _draw_copy(self, axes: Any, donor: int, member: int, *, step: float, trial: Trial) -> None:
        is_winners = trial.number in self.on_path
        axes.annotate(
            "",
            xy=(step, member),
            xytext=(step, donor),
            arrowprops={
                "arrowstyle": "-|>,head_width=0.18,head_length=0.32",
                "color": ACCENT if is_winners else INK,
                "linewidth": 1.6 if is_winners else 0.8,
                "alpha": 1.0 if is_winners else 0.55,
                "shrinkA": 3,
                "shrinkB": 3,
            },
            zorder=5,
        )

    def _colours(self) -> dict[int, Any]:
        """By how well a trial did among those that ended at the same step."""
        from matplotlib.colors import LinearSegmentedColormap

        shades = LinearSegmentedColormap.from_list("farthing", SHADES)
        ends: dict[float, list[Trial]] = {}
        for trial in self.history:
            if trial.value is not None:
                ends.setdefault(self._end(trial), []).append(trial)
        found = {}
        for own in ends.values():
            ranked = sorted(own, key=lambda trial: -self.history.loss(trial.value or 0.0))
            for place, trial in enumerate(ranked):
                found[trial.number] = shades(place / max(1, len(ranked) - 1))
        return found

    def _runs(self, own: Sequence[Trial]) -> list[list[Trial]]:
        """A member's trials, cut where it became a copy."""
        runs: list[list[Trial]] = []
        for trial in own:
            if runs and trial.resume_from == runs[-1][-1].number:
                runs[-1].append(trial)
            else:
                runs.append([trial])
        return runs

    def _points(self, trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
        found = {
            point.fidelity.get(self.trace, 0.0): point.value
            for trial in trials
            for point in trial.points
            if point.value is not None
        }
        return list(found), list(found.values())

    def _staircase(self, name: str) -> tuple[list[float], list[float]]:
        steps: list[float] = []
        values: list[float] = []
        for trial in self.path:
            if name in trial.params:
                steps += [self._start(trial), self._end(trial)]
                values += [self._height(trial, name)] * 2
        return steps, values

    def _draw_value(self, axes: Any, trial: Trial, name: str, **look: Any) -> None:
        axes.plot([self._start(trial), self._end(trial)], [self._height(trial, name)] * 2, **look)

    def _height(self, trial: Trial, name: str) -> float:
        parameter = self.study.space.parameters[name]
        value = trial.params[name]
        return parameter.index_of(value) if isinstance(parameter, Choice) else float(value)

    def _start(self, trial: Trial) -> float:
        return 0.0 if trial.resume_from is None else self._end(self.history[trial.resume_from])

    def _end(self, trial: Trial) -> float:
        return float(trial.fidelity.get(self.trace, 0.0))
