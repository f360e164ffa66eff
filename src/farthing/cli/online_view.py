"""Online runs as text: the params in force at the best value of each and at its end."""

from collections.abc import Iterator, Sequence

from farthing.analysis.best import MeasuredBest
from farthing.analysis.text import short_number
from farthing.cli.tables import aligned
from farthing.session import session_of
from farthing.session.strategy import class_name
from farthing.study import Study
from farthing.trials import Measurement, Problem, Trial
from farthing.trials.measurement import BAD, played_rounds

ONLINE = "Online"
"""The class in `online/log.py`, which is not imported for its name: the models of online strategies come with it."""
MOST_RUNS = 5
"""The last runs are shown where there are more."""


def is_online(study: Study) -> bool:
    return class_name(session_of(study).strategy.to_json()) == ONLINE


def best_run_text(study: Study, best: MeasuredBest) -> str:
    """The run that ended best. Its params are those of its first round, and not shown here."""
    return f"Best {study.problem.value} at the end of a run: {best.value:.6g} (trial {best.trial.number})"


def online_text(study: Study) -> str:
    """Two lines a run; nothing for a study that is not online."""
    if not is_online(study):
        return ""
    names = list(study.space.parameters)
    rows = [row for trial in list(study.history)[-MOST_RUNS:] for row in _rows(trial, study.problem, names)]
    if not rows:
        return ""
    header = ["trial", "params at", "round", study.problem.value, *names]
    return "\n".join(["Params changed while a run went on (above are those it began with):", aligned(header, rows)])


def _rows(trial: Trial, problem: Problem, names: Sequence[str]) -> Iterator[list[str]]:
    rounds = played_rounds(trial)
    measured = [point for point in rounds if point.value is not None]
    if measured:
        best = min(measured, key=lambda point: problem.sign * (point.value or 0.0))
        yield [str(trial.number), "its best", *_cells(best, names)]
        yield [str(trial.number), "its end" if trial.is_finished else "present", *_cells(rounds[-1], names)]


def _cells(point: Measurement, names: Sequence[str]) -> list[str]:
    params = point.params or {}
    value = "bad" if BAD in point.metrics else "" if point.value is None else f"{point.value:.6g}"
    return [str(point.step), value, *(short_number(params[name]) if name in params else "" for name in names)]
