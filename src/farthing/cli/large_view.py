"""A large study as text: sums of its lines, and the few trials that are shown. Nothing else is read."""

import shlex

import numpy as np

from farthing.analysis.lines import Lines
from farthing.analysis.overview import latest_failures
from farthing.analysis.runs import Curve, curve_axis, points_along
from farthing.analysis.text import short_number
from farthing.cli.storages import StorageAddress
from farthing.cli.terminal import chart
from farthing.dashboard.reading import StudyReader
from farthing.session import session_of
from farthing.storage.storage import ReadsOutlines
from farthing.study import Study
from farthing.trials import History, Problem, Trial
from farthing.trials.trial import THETA

MOST_IN_FLIGHT = 10
"""More trials that run are only counted."""


def reader_if_large(study: Study) -> StudyReader | None:
    """None for a study that is read whole, as most are: what depends on the measurements of all trials can be shown."""
    records = session_of(study).records
    reader = StudyReader(records.storage, records.name)
    is_alike = reader.kind in ("plain", "multifidelity") and not reader.is_extended and reader.problem.is_simple
    return reader if reader.is_large and is_alike else None


def best_runs(reader: StudyReader, lines: Lines, *, most: int) -> tuple[list[Trial], int]:
    """The last trials of the best runs, what went furthest first, and how many runs there are."""
    ended = np.flatnonzero(np.isfinite(lines.finished_at) & np.isfinite(lines.value))
    continued = {lines.resume_from[place] for place in ended.tolist()}
    last = np.array([place for place in ended.tolist() if place not in continued], dtype=int)
    ranked = np.lexsort((reader.problem.sign * lines.value[last], -lines.reach(reader.problem, last)))
    numbers = [int(number) for number in lines.number[last[ranked[:most]]]]
    found = {trial.number: trial for trial in reader.trials(numbers)}
    return [found[number] for number in numbers if number in found], int(last.size)


def trials_in_flight(reader: StudyReader, lines: Lines) -> tuple[list[Trial], int]:
    """The first of them, and how many there are."""
    numbers = [int(number) for number in lines.number[lines.in_flight()]]
    return reader.trials(numbers[:MOST_IN_FLIGHT]), len(numbers)


def run_of(reader: StudyReader, number: int) -> list[Trial]:
    """The chain of trials that ends with that one, the oldest first; empty if there is no such trial."""
    chain = reader.trials([number])
    while chain and (parent := chain[0].resume_from) is not None:
        chain = [*reader.trials([parent]), *chain]
    return chain


def history_of_none(reader: StudyReader) -> History:
    """The study without its trials: what its problem and its events say."""
    return History(reader.problem, events=reader.events())


def chart_of(reader: StudyReader, best: list[Trial]) -> str:
    """The curves of the best runs."""
    axis = curve_axis(reader.problem.space)
    runs = [tuple(run_of(reader, trial.number)) for trial in best]
    curves = [Curve(run, axis, points_along(run, axis=axis)) for run in runs]
    if not any(len(curve.points) > 1 for curve in curves):
        return ""
    return chart(curves, curves[0], axis=axis, value=reader.problem.value)


def bill(lines: Lines, problem: Problem) -> str:
    """Only its sums: the rest takes every measurement."""
    failed = f", {short_number(lines.failed_cost)} of it for trials without a result" if lines.failed_cost else ""
    return f"spent    {lines.total:.4g} {problem.cost_unit}{failed}  (by kind: study.ledger)"


def count_by_model(reader: StudyReader) -> int:
    storage = reader.storage
    assert isinstance(storage, ReadsOutlines), "a large study is one whose storage counts its measurements"
    return storage.count_noted(reader.name, THETA)


def next_steps(study: Study, lines: Lines, *, address: StorageAddress) -> str:
    named = f"{shlex.quote(study.name)}{address.option}"
    failed = [f"farthing show {named} --trial {number} --log  (why it failed)" for number in latest_failures(lines)[:1]]
    return "Next: " + ", ".join([*failed, f"farthing dashboard{address.option}"])
