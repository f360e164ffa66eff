"""A population as text: a lane for each member, and the schedule of the winner."""

from collections.abc import Sequence

from farthing.analysis.best import MeasuredBest
from farthing.analysis.runs import Schedule, curve_axis
from farthing.analysis.text import short_number
from farthing.cli.tables import aligned
from farthing.study import Study
from farthing.trials import State, Trial

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
