"""Studies whose params change while they train, as text: the lanes of a population, and online runs."""

from collections.abc import Iterator, Sequence

from farthing.analysis.best import MeasuredBest
from farthing.analysis.runs import Schedule, curve_axis
from farthing.analysis.text import short_number
from farthing.cli.tables import aligned
from farthing.session import session_of
from farthing.session.strategy import class_name
from farthing.study import Study
from farthing.trials import Measurement, Problem, State, Trial
from farthing.trials.measurement import BAD, played_rounds

MOST_INTERVALS = 60
"""Of a lane; of longer ones the last are shown."""


def population_text(study: Study, best: MeasuredBest | None) -> str:
    """The lanes and the winner's schedule; nothing for a study that is no population."""
    if not study.lineage.is_population:
        return ""
    schedule = [schedule_text(best.schedule)] if best and best.schedule else []
    return "\n\n".join([lanes_text(study, best), *schedule])


def lanes_text(study: Study, best: MeasuredBest | None) -> str:
    lineage = study.lineage
    path = {trial.number for trial in lineage.run_of(best.trial)} if best else set()
    donors = {copy.trial.number: copy.donor for copy in lineage.copies}
    width = max(2, *(len(str(member)) for member in lineage.members)) + 1
    hidden = max(len(own) for own in lineage.members.values()) > MOST_INTERVALS
    rows = [
        [
            str(member),
            "".join(_cell(trial, donors, path, width=width) for trial in own[-MOST_INTERVALS:]),
            _last_value(own),
        ]
        for member, own in lineage.members.items()
    ]
    meaning = (
        f"Along the {curve_axis(study.space)}, an interval a piece; ━ the way of the winner, 2▸ a copy of member 2"
    )
    cut = f", the last {MOST_INTERVALS} intervals" if hidden else ""
    return "\n".join([f"{meaning}{cut}", aligned(["member", "trained", study.problem.value], rows)])


def _cell(trial: Trial, donors: dict[int, int], path: set[int], *, width: int) -> str:
    line = "━" if trial.number in path else "─"
    if trial.state in (State.FAILED, State.LOST, State.PRUNED):
        return "×".rjust(width, line)
    if not trial.is_finished:
        return "…".rjust(width, line)
    begun = f"{donors[trial.number]}▸" if trial.number in donors else ""
    return begun.ljust(width, line)


def _last_value(own: Sequence[Trial]) -> str:
    values = [trial.value for trial in own if trial.value is not None]
    return f"{values[-1]:.6g}" if values else ""


def schedule_text(schedule: Schedule) -> str:
    names = list(dict.fromkeys(name for _, params in schedule for name in params))
    rows = [
        [str(start), *(short_number(params[name]) if name in params else "" for name in names)]
        for start, params in schedule
    ]
    table = aligned([f"from {schedule.fidelity}", *names], rows)
    return f"The winner's schedule, {schedule.steps} {schedule.fidelity} (ft.replay trains by it once more)\n{table}"


# ------------------------------------------------------------
# Online runs: the params in force at the best value of each and at its end.


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
