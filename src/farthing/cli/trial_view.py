"""One trial as text: what was chosen, measured and paid, and why it failed."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import click

from farthing.analysis.export import trial_form
from farthing.analysis.rows import note_text
from farthing.analysis.text import paid_column, short_number, short_params, short_prediction, value_cells
from farthing.cli.large_view import reader_if_large, run_of
from farthing.cli.storages import not_followed
from farthing.cli.terminal import aligned
from farthing.dashboard.reading import no_log
from farthing.errors import TrialNotFound
from farthing.session import session_of
from farthing.study import Study
from farthing.trials import Attempt, Measurement, Trial
from farthing.trials.prefixes import is_stage, was_cached
from farthing.trials.trial import reason_of

SECONDS_BETWEEN_LOOKS = 1.0
"""How often the log of a trial that runs is read again."""


def chosen_trial(study: Study, number: int) -> Trial:
    """Of a large study only that trial is read."""
    reader = reader_if_large(study)
    found = reader.trials([number]) if reader is not None and number >= 0 else []
    if found:
        return found[0]
    history = study.history
    if not 0 <= number < len(history):
        there = f"0 to {len(history) - 1}" if len(history) else "none yet"
        raise TrialNotFound(f"A trial's number must be one of those there are ({there}), got {number}. Try --all.")
    return history[number]


def trial_text(study: Study, trial: Trial, *, follows: bool) -> str:
    parts = (_facts, _stages, _measurements)
    paragraphs = [*(part(study, trial) for part in parts), _failure(trial), _log_place(study, trial, follows=follows)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def trial_json(study: Study, trial: Trial, *, follows: bool) -> str:
    """The trial as `farthing export --format json` has it, with the place of its log."""
    log = None if _store_to_ask(study, follows=follows) else _log(study, trial)
    return json.dumps(trial_form(study.space, trial) | {"log": str(log) if log is not None and log.is_file() else None})


def log_text(study: Study, trial: Trial, *, follows: bool) -> str:
    """The output of the latest attempt."""
    pieces = log_pieces(study, trial.number, follows=follows, is_live=False)
    return b"".join(pieces).decode(errors="backslashreplace")


def log_pieces(study: Study, number: int, *, follows: bool, is_live: bool) -> Iterator[bytes]:
    """The output of the latest attempt that left any, piece by piece; if live, also what it prints until it ends."""
    if url := _store_to_ask(study, follows=follows):
        raise not_followed(url)
    trial = chosen_trial(study, number)
    attempt, printed, waits = _attempt_of(_log(study, trial)), 0, False
    while True:
        found = study.checkpoints.read_log(Attempt(number, attempt), since=printed)
        if found is None and not waits:
            if trial.is_finished or not is_live:
                raise no_log(study.checkpoints, trial)
            click.echo(f"Waiting. {no_log(study.checkpoints, trial)}", err=True)
        begins, piece = found or (printed, b"")
        if begins > printed:
            yield b"[%d bytes are not shown]\n" % (begins - printed)
        printed, waits = begins + len(piece), True
        if piece:
            yield piece
        elif is_live and attempt < trial.attempt:
            attempt, printed = trial.attempt, 0
        elif not is_live or trial.is_finished:
            return
        else:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            trial = chosen_trial(study, number)


def _facts(study: Study, trial: Trial) -> str:
    costs = ", ".join(f"{kind} {amount:.4g}" for kind, amount in trial.costs.items())
    facts = {
        "params": short_params(trial.params),
        "fidelity": short_params(trial.fidelity),
        **dict(zip(study.problem.named, value_cells(trial, study.problem), strict=True)),
        paid_column(study.problem): f"{trial.cost:.4g} {study.problem.cost_unit}" + (f" ({costs})" if costs else ""),
        "run": _run(study, trial),
        "attempt": "" if trial.attempt == 1 else str(trial.attempt),
        "predicted": _predicted(study, trial),
        "why": reason_of(trial),
        "note": note_text(trial.note),
        "code": "of an older version of the stages" if study.space.stages and study.history.is_outdated(trial) else "",
        "tags": " ".join(trial.tags),
        "comment": trial.comment,
    }
    width = max(map(len, facts))
    lines = [f"  {name:<{width}}  {fact}" for name, fact in facts.items() if fact]
    return "\n".join([f"{study.name}, trial {trial.number}: {trial.state}", *lines])


def _predicted(study: Study, trial: Trial) -> str:
    """The expectations of the strategy when it suggested the trial."""
    value, cost = trial.suggestion.predicted_value, trial.suggestion.predicted_cost
    parts = [
        f"{study.problem.value} {short_prediction(value)}" if value else "",
        f"cost {short_prediction(cost)}" if cost else "",
    ]
    return ", ".join(part for part in parts if part)


def _run(study: Study, trial: Trial) -> str:
    """The chain of trials of which this one is the last so far, where there is one."""
    reader = reader_if_large(study)
    lineage = study.history.lineage(trial.number) if reader is None else run_of(reader, trial.number)
    return "" if len(lineage) == 1 else " → ".join(f"trial {link.number}" for link in lineage)


def _stages(study: Study, trial: Trial) -> str:
    """The cost of each stage of the latest attempt, and whether it was computed."""
    names = list(study.space.stages)
    ended = {point.step or 0: point for point in trial.measurements if _is_stage_of(trial, point, len(names))}
    rows = [[names[step], _how(point), short_number(sum(point.cost.values()))] for step, point in sorted(ended.items())]
    return aligned(["stage", "", "cost"], rows) if rows else ""


def _is_stage_of(trial: Trial, point: Measurement, count: int) -> bool:
    return is_stage(point) and point.attempt == trial.attempt and (point.step or 0) < count


def _how(point: Measurement) -> str:
    return f"loaded, saved {point.saved['cache']:.4g}" if was_cached(point) else "computed"


def _measurements(study: Study, trial: Trial) -> str:
    places = list(study.space.fidelities) or ["step"]
    metrics = sorted({name for point in trial.points for name in point.metrics})
    rows = [_measurement(point, places, metrics) for point in trial.points]
    return aligned([*places, study.problem.value, paid_column(study.problem), *metrics], rows) if rows else ""


def _measurement(point: Measurement, places: list[str], metrics: list[str]) -> list[str]:
    where = {"step": point.step, **point.fidelity}
    cells = [where.get(name) for name in places] + [point.value, sum(point.cost.values())]
    return ["" if cell is None else short_number(cell) for cell in [*cells, *map(point.metrics.get, metrics)]]


def _failure(trial: Trial) -> str:
    if trial.failure is None:
        return ""
    return f"Failed: {trial.failure.reason}\n{trial.failure.traceback}".rstrip()


def _store_to_ask(study: Study, *, follows: bool) -> str | None:
    """The address of the study's files, if that is a store which may not be asked for them."""
    return None if follows else session_of(study).files.url


def _log_place(study: Study, trial: Trial, *, follows: bool) -> str:
    if url := _store_to_ask(study, follows=follows):
        return f"Log: at {url}, if there is one (--follow asks it)"
    path = _log(study, trial)
    return f"Log: {path} (--log prints it)" if path.is_file() else ""


def _log(study: Study, trial: Trial) -> Path:
    """The log of the latest attempt that left one."""
    latest = study.checkpoints.log_path(trial.number, trial.attempt)
    if latest.is_file():
        return latest
    left = [path for path in latest.parent.glob("attempt-*.log") if path.is_file()]
    return max(left, key=_attempt_of, default=latest)


def _attempt_of(log: Path) -> int:
    number = log.stem.removeprefix("attempt-")
    return int(number) if number.isdecimal() else 0
