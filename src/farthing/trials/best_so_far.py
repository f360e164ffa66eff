"""Runs that are worth the best point of their curve, and that may stop by themselves when it no longer improves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from farthing.trials.measurement import Measurement
from farthing.trials.problem import Problem
from farthing.trials.trial import Outcome, State, Trial


def with_best_so_far(problem: Problem, outcome: Outcome, *, before: Iterable[float | None] = ()) -> Outcome:
    """The outcome with the best value among its own and those `before` it on the same run."""
    if not problem.best_so_far or outcome.value is None:
        return outcome
    own = [outcome.value, *(point.value for point in outcome.measurements)]
    seen = [value for value in [*before, *own] if value is not None]
    return replace(outcome, value=min(seen, key=lambda value: problem.sign * value))


def stops_early(
    problem: Problem, wanted: Mapping[str, float], points: Sequence[Measurement], *, is_continued: bool
) -> bool:
    """Whether work ended by itself before it had done the amounts `wanted`, by the points that it measured.

    It did if the amount that is left is larger than every step between two of its reports: work that reports
    every fifth epoch may well end with the second of the next five.
    """
    return any(
        _stops_short([point.fidelity[name] for point in points if name in point.fidelity], wanted[name], is_continued)
        for name in problem.best_so_far
        if name in wanted
    )


def ended_early(problem: Problem, trial: Trial) -> bool:
    """Whether the work of a trial stopped by itself, before its amount was done."""
    if not problem.best_so_far or trial.state is not State.DONE:
        return False
    return stops_early(problem, trial.fidelity, trial.points, is_continued=trial.resume_from is not None)


def fidelity_known(problem: Problem, trial: Trial) -> Mapping[str, float]:
    """The fidelity at which the trial's value holds: its own, with the full trace if it stopped by itself."""
    if not ended_early(problem, trial):
        return trial.fidelity
    full = problem.space.full_fidelity
    return {**trial.fidelity, **{name: full[name] for name in problem.best_so_far}}


def _stops_short(places: Sequence[float], wanted: float, is_continued: bool) -> bool:
    steps = [after - before for before, after in pairwise(places if is_continued else [0.0, *places])]
    return bool(places and steps) and wanted - places[-1] > max(steps)
