"""A picture of an online run: what was measured and what was not, and what was believed after the last measurement."""

from collections.abc import Sequence
from math import ceil, inf
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import NoResult
from farthing.names import BASELINES
from farthing.online import OnlineProblem, online_strategy_from_json
from farthing.online.gp_player import GPPlayer
from farthing.online.log import Online
from farthing.online.strategy import Observation, Place
from farthing.plots.look import ACCENT, MUTED, SHADES, add_legend, set_whole_ticks
from farthing.session import session_of
from farthing.space import Choice
from farthing.study import Study
from farthing.trials import Measurement
from farthing.trials.measurement import BAD, played_rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 80
"""Of a curve of what is believed."""

WIDTH, HEIGHT = 12.0, 2.6
"""Inches of the picture, and of a row of it."""


def is_online(study: Study) -> bool:
    return session_of(study).strategy.is_at_hand and isinstance(study.strategy, Online)


def online_figure(study: Study) -> "Figure":
    """The last run: the value by round, and for each parameter its schedule and the posterior."""
    from farthing.plots.picture import Picture

    rounds = last_run(study)
    names = list(study.space.parameters)
    player = replayed(study, rounds)
    figure = Picture(figsize=(WIDTH, HEIGHT * (1 + len(names))), layout="constrained")
    grid = figure.add_gridspec(1 + len(names), 2, width_ratios=[2, 1])
    _draw_values(figure.add_subplot(grid[0, :]), study, rounds)
    for place, name in enumerate(names, start=1):
        _draw_schedule(figure.add_subplot(grid[place, 0]), study, rounds, name)
        _draw_posterior(figure.add_subplot(grid[place, 1]), study, rounds, name, player=player)
    return figure


def last_run(study: Study) -> list[Measurement]:
    """The rounds of the last run in which anything was measured."""
    runs = [played_rounds(trial) for trial in study.trials if trial.points]
    if not runs:
        raise NoResult(f"A picture needs a round that was measured, got none of {study.name!r}. Start the run first.")
    return runs[-1]


def measured(rounds: Sequence[Measurement]) -> list[Measurement]:
    return [point for point in rounds if point.value is not None]


def neighbours(points: Sequence[Measurement]) -> list[list[Measurement]]:
    """The points in groups of rounds that follow each other."""
    groups: list[list[Measurement]] = []
    for point in points:
        if groups and (groups[-1][-1].step or 0) + 1 == point.step:
            groups[-1].append(point)
        else:
            groups.append([point])
    return groups


def replayed(study: Study, rounds: Sequence[Measurement]) -> GPPlayer | None:
    """The player as it was after the last measurement; None for a strategy without a model, a baseline, or gains."""
    online = study.strategy
    assert isinstance(online, Online)
    if online.strategy["name"] in BASELINES:
        return None
    player = online_strategy_from_json(online.strategy).begin(problem_of(study))
    if not isinstance(player, GPPlayer) or online.reward != "value":
        return None
    for point in rounds:
        assert point.params is not None
        assert point.step is not None
        if point.value is not None or BAD in point.metrics:
            reward = -inf if point.value is None else -study.problem.sign * point.value
            decision = (point.step - 1) // online.hold + 1
            player.observe(Observation(decision, problem_of(study).place(point.params), reward))
    return player


def problem_of(study: Study) -> OnlineProblem:
    online = study.strategy
    assert isinstance(online, Online)
    candidates = None if online.candidates is None else [dict(params) for params in online.candidates]
    return OnlineProblem(
        study.space.encoder,
        ceil(online.rounds / online.hold),
        study.problem.seed,
        candidates=candidates,
        initial=list(online.initial),
        hold=online.hold,
        validation_size=online.validation_size,
        gains=online.reward == "gain",
    )


def _draw_values(axes: Any, study: Study, rounds: Sequence[Measurement]) -> None:
    """Lines join rounds that follow each other: what lies between others was not measured."""
    points = measured(rounds)
    for run in neighbours(points):
        axes.plot([p.step for p in run], [p.value for p in run], "-", color=SHADES[1], linewidth=1)
    axes.plot([p.step for p in points], [p.value for p in points], "o", color=ACCENT, markersize=4)
    bad = [p.step for p in rounds if BAD in p.metrics]
    axes.plot(bad, [0.06] * len(bad), "x", color=ACCENT, markersize=6, transform=axes.get_xaxis_transform())
    silent = [p.step for p in rounds if p.value is None and BAD not in p.metrics]
    axes.plot(silent, [0.02] * len(silent), "|", color=MUTED, markersize=5, transform=axes.get_xaxis_transform())
    title = f"{study.name}: {len(points)} of {len(rounds)} rounds measured (red); the others are marked below"
    axes.set_title(f"{title}, bad ones by a cross" if bad else title)
    axes.set_xlabel("round")
    axes.set_ylabel(study.problem.value)


def _draw_schedule(axes: Any, study: Study, rounds: Sequence[Measurement], name: str) -> None:
    """The choice of each round: filled where it was measured."""
    for is_measured, colour, label in ((False, MUTED, "not measured"), (True, ACCENT, "measured")):
        points = [p for p in rounds if (p.value is not None) is is_measured and name in (p.params or {})]
        values = [_shown(p, name) for p in points]
        axes.plot([p.step for p in points], values, "o", color=colour, markersize=3, label=label)
    _set_scale(axes.yaxis, axes.set_yscale, study, name)
    axes.set_xlabel("round")
    axes.set_ylabel(name)
    set_whole_ticks(axes.xaxis)
    add_legend(axes)


def _draw_posterior(
    axes: Any, study: Study, rounds: Sequence[Measurement], name: str, *, player: GPPlayer | None
) -> None:
    """Mean and two deviations along one parameter, the others at the best known, and where it was measured."""
    axes.set_xlabel(name)
    axes.set_ylabel(study.problem.value)
    points = measured(rounds)
    shades = np.linspace(0.2, 1.0, len(points))
    for point, shade in zip(points, shades, strict=True):
        if name in (point.params or {}):
            axes.plot([_shown(point, name)], [point.value], "o", color=ACCENT, markersize=4, alpha=shade)
    if player is not None:
        _draw_curve(axes, study, name, player=player, round=player.observations[-1].round + 1)
    _set_scale(axes.xaxis, axes.set_xscale, study, name)


def _draw_curve(axes: Any, study: Study, name: str, *, player: GPPlayer, round: int) -> None:
    problem = problem_of(study)
    places, values = _along(study, problem, name, best=problem.params(player.exploit(round)))
    predicted = player.predict(places, round) if places else None
    if predicted is None:
        return
    mean, deviation = -study.problem.sign * predicted[0], predicted[1]
    axes.plot(values, mean, "--", color=SHADES[2], linewidth=1.2)
    axes.fill_between(values, mean - 2 * deviation, mean + 2 * deviation, color=SHADES[0], alpha=0.6, linewidth=0)


def _along(study: Study, problem: OnlineProblem, name: str, *, best: Any) -> tuple[list[Place], list[Any]]:
    """Places that differ from the best in one parameter only, and its values there, in order."""
    encoder = problem.encoder
    if problem.candidates is not None:
        same = [params for params in problem.candidates if {**params, name: None} == {**best, name: None}]
        ordered = sorted(same, key=lambda params: encoder.encode([params])[0][encoder.names.index(name)])
        return [problem.place(params) for params in ordered], [_tick(params[name]) for params in ordered]
    column = encoder.names.index(name)
    if name not in best or column in encoder.categories:
        return [], []
    rows = np.repeat(encoder.encode([best]), POINTS, axis=0)
    rows[:, column] = np.linspace(0.0, 1.0, POINTS)
    snapped = encoder.snap(rows)
    return list(snapped), [_tick(params[name]) for params in encoder.decode(snapped)]


def _shown(point: Measurement, name: str) -> Any:
    assert point.params is not None
    return _tick(point.params[name])


def _tick(value: Any) -> Any:
    return value if type(value) in (int, float) else str(value)


def _set_scale(axis: Any, set_scale: Any, study: Study, name: str) -> None:
    parameter = study.space.parameters[name]
    if not isinstance(parameter, Choice) and parameter.log:
        set_scale("log")
