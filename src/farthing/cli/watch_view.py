"""How a study stands, over all the processes that work on it, as text that is drawn again and again."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import click

from farthing.analysis.best import best_measured
from farthing.analysis.runs import ranked_runs
from farthing.analysis.text import short_params, short_point, where
from farthing.cli.large_view import reader_if_large, trials_in_flight
from farthing.cli.terminal import aligned
from farthing.dashboard.reading import StudyReader
from farthing.session import session_of
from farthing.study import Study
from farthing.trials import History, State, Trial
from farthing.trials.objectives import MeasuredFront


def standing_text(study: Study) -> str:
    """The title, the best so far, and a row for each trial in flight; all of one moment."""
    reader, now = reader_if_large(study), session_of(study).records.now()
    if reader is not None:
        return _large(study, reader, now=now)
    with session_of(study).records.still() as history:
        counts = Counter(trial.state.value for trial in history)
        parts = _title(study, counts, history.cost), _standing(study, history)
        return _joined(*parts, _in_flight(study, history.in_flight, now=now))


def _standing(study: Study, history: History) -> str:
    """By measured values: a model is not fitted again for every picture."""
    if not study.problem.is_simple:
        return MeasuredFront.of(history).summary(study.problem) or "nothing keeps the limits yet"
    return _best(study, best_measured(history) or next(iter(ranked_runs(history)), None))


def _large(study: Study, reader: StudyReader, *, now: float) -> str:
    """The same of a large study, at the price of its lines."""
    lines = reader.lines()
    (running, count), found = trials_in_flight(reader, lines), lines.best(reader.problem)
    best = next(iter(reader.trials([found])), None) if found is not None else None
    more = f"… and {count - len(running)} more" if count > len(running) else ""
    return _joined(
        _title(study, lines.counts, lines.total), _best(study, best), _in_flight(study, running, now=now), more
    )


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def follow(study: Study, *, every: float, is_terminal: bool) -> None:
    """Draws it again whenever it changed: in place in a terminal, as further lines elsewhere. Ends by Ctrl-C."""
    shown = ""
    while True:
        text = standing_text(study)
        if is_terminal:
            click.clear()
            click.echo(text)
        elif text != shown:
            click.echo(text.splitlines()[0])
        shown = text
        time.sleep(every)


def _title(study: Study, counts: Mapping[str, int], cost: float) -> str:
    states = ", ".join(f"{counts[state]} {state}" for state in State if counts.get(state)) or "no trials yet"
    return f"{study.name}: {states}; {cost:.4g} {study.problem.cost_unit} spent"


def _best(study: Study, found: Trial | None) -> str:
    if found is None or found.value is None:
        return "no result yet"
    at = f" at {short_params(found.fidelity)}" if found.fidelity else ""
    measured = f"best {study.problem.value} measured: {found.value:.6g}{at} (trial {found.number})"
    return f"{measured}  {short_params(found.params)}"


def _in_flight(study: Study, trials: Sequence[Trial], *, now: float) -> str:
    rows = [_row(study, trial, now=now) for trial in trials]
    return aligned(["trial", "state", "where", "since", "progress", "params"], rows) if rows else ""


def _row(study: Study, trial: Trial, *, now: float) -> list[str]:
    last = max([trial.began_at, *(point.time for point in trial.measurements)])
    state, params, since = trial.state.value, short_params(trial.params), f"{max(0.0, now - last):.0f} s"
    if trial.state is State.PENDING:
        return [str(trial.number), state, "", since, "waits for a worker", params]
    progress = short_point(trial, trial.points[-1] if trial.points else None, study.problem)
    return [str(trial.number), state, where(trial.owner or ""), since, progress, params]
