"""Commands that show studies in a terminal: `farthing list`, `watch`, `show`, `logs` and `best`."""

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import click

from farthing.cli.options import follow_option, import_option, json_option, storage_option, study_argument

if TYPE_CHECKING:
    from farthing.storage import Storage, StudySummary
    from farthing.trials import Json
    from farthing.trials.objectives import MeasuredFront

HEADER = ("study", "aim", "strategy", "trials", "best seen", "cost", "unit", "created")


@click.command("list")
@storage_option
@json_option
def list_studies(storage: str | None, as_json: bool) -> None:
    """List the studies of a storage, with their best values and costs.

    \b
    Example:  farthing list
              farthing list --storage postgresql://me@host/tuning --json
    Next:     farthing show STUDY
    """
    from farthing.cli.storages import address_to_read, opened_storage

    with opened_storage(address_to_read(storage)) as found:
        lines = [(summary, _front(found, summary)) for summary in found.list_studies()]
    click.echo(json.dumps([_form(*line) for line in lines]) if as_json else _text(lines))


def _front(storage: "Storage", summary: "StudySummary") -> "MeasuredFront | None":
    """Of several values or under limits, which the trials must be read for; None of one value, and without results."""
    from farthing.errors import FarthingError
    from farthing.trials import History, State
    from farthing.trials.objectives import MeasuredFront

    record = summary.record
    if record.problem.is_simple or not summary.trials.get(State.DONE):
        return None
    with suppress(FarthingError):  # a study that cannot be read hides no other
        stored = storage.history(record.name)
        return MeasuredFront.of(History(record.problem, stored.trials, events=stored.events))
    return None


def _best_seen(summary: "StudySummary", front: "MeasuredFront | None") -> float | None:
    """The best value within the limits; None where several values have no best."""
    if front is None or summary.record.problem.further:
        return summary.best_value
    return next((trial.value for trial in front.trials), None)


def _text(lines: "Sequence[tuple[StudySummary, MeasuredFront | None]]") -> str:
    from farthing.cli.terminal import aligned

    return aligned(HEADER, [_cells(*line) for line in lines]) if lines else "No studies yet."


def _best_cell(summary: "StudySummary", front: "MeasuredFront | None") -> str:
    from farthing.analysis.text import short_number

    best = _best_seen(summary, front)
    if best is not None:
        return short_number(best)
    if front is None:
        return ""
    return f"front of {len(front.trials)}" if front.trials else "none within limits"


def _cells(summary: "StudySummary", front: "MeasuredFront | None") -> list[str]:
    from farthing.analysis.text import short_number

    problem = summary.record.problem
    return [
        summary.record.name,
        problem.aim,
        _strategy(summary) or "",
        str(sum(summary.trials.values())),
        _best_cell(summary, front),
        short_number(summary.cost),
        problem.cost_unit,
        datetime.fromtimestamp(summary.record.created_at).strftime("%Y-%m-%d %H:%M"),
    ]


def _form(summary: "StudySummary", front: "MeasuredFront | None") -> "dict[str, Json]":
    problem = summary.record.problem
    return {
        "name": summary.record.name,
        "direction": problem.direction,
        "value": problem.value,
        "aim": problem.aim,
        "strategy": _strategy(summary),
        "trials": {state.value: count for state, count in summary.trials.items()},
        "best_seen": _best_seen(summary, front),
        "front": None if front is None else len(front.trials),
        "cost": summary.cost,
        "cost_unit": problem.cost_unit,
        "created_at": summary.record.created_at,
    }


def _strategy(summary: "StudySummary") -> str | None:
    from farthing.session.strategy import class_name

    return class_name(summary.record.strategy) if summary.record.strategy else None


@click.command("watch")
@study_argument
@storage_option
@click.option("--every", default=2.0, show_default=True, type=click.FloatRange(min=0.1), metavar="SECONDS")
@click.option("--once", is_flag=True, help="Print how it stands now, and end.")
def watch(study: str | None, storage: str | None, every: float, once: bool) -> None:
    """Watch a study as it goes, from any machine that reaches its storage.

    Shows the best of the whole study and every trial that runs, of all processes on all machines. Ctrl-C ends the
    watching, not the study. STUDY may be left out if there is only one.

    \b
    Example:  farthing watch digits --storage postgresql://me@host/tuning
    Next:     farthing show digits
    """
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.cli.watch_view import follow, standing_text

    with opened_study(study, address_to_read(storage)) as found:
        if once:
            click.echo(standing_text(found))
            return
        try:
            follow(found, every=every, is_terminal=sys.stdout.isatty())
        except KeyboardInterrupt:
            click.echo("", err=True)


@click.command("show")
@study_argument
@storage_option
@import_option
@follow_option
@click.option("--all", "all_trials", is_flag=True, help="Every trial by number, instead of the best first.")
@click.option("--trial", "number", type=int, metavar="N", help="One trial, with all that was measured.")
@click.option("--log", is_flag=True, help="With --trial: the output of the trial.")
@click.option("--model", "wants_model", is_flag=True, help="Fit a model to the study: which parameters matter.")
@click.option("--of", metavar="VALUE", help="With --model and several objectives: which of them.")
@json_option
def show(
    study: str | None,
    storage: str | None,
    imports: bool,
    follows: bool,
    all_trials: bool,
    number: int | None,
    log: bool,
    wants_model: bool,
    of: str | None,
    as_json: bool,
) -> None:
    """Show a study: its best trials, learning curves and bill.

    STUDY may be left out if there is only one. A study that is running can be shown at any time.

    \b
    Example:  farthing show digits
              farthing show digits --trial 12 --log
              farthing show digits --model
    Next:     farthing plot digits, farthing best digits
    """
    if log and number is None:
        raise click.UsageError("--log needs a trial: farthing show STUDY --trial N --log")
    if wants_model and (all_trials or number is not None):
        raise click.UsageError("--model is about the whole study: leave out --trial and --all")
    if of is not None and not wants_model:
        raise click.UsageError("--of needs --model: farthing show STUDY --model --of VALUE")
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.cli.study_view import study_json, study_text
    from farthing.cli.trial_view import chosen_trial, log_text, trial_json, trial_text

    address = address_to_read(storage)
    with opened_study(study, address, imports=imports) as found:
        if wants_model:
            from farthing.analysis.one_value import value_meant
            from farthing.cli.model_view import model_json, model_text

            of = value_meant(found.problem, of, example=f"--of {found.problem.value}")
            text = model_json(found, of) if as_json else model_text(found, of, address=address)
        elif number is None:
            text = (
                study_json(found)
                if as_json
                else study_text(found, address=address, all_trials=all_trials, follows=follows)
            )
        else:
            write = trial_json if as_json else log_text if log else trial_text
            text = write(found, chosen_trial(found, number), follows=follows)
    click.echo(text)


@click.command("logs")
@click.argument("study")
@click.argument("trial", type=int)
@click.option("-f", "--live", is_flag=True, help="Go on printing until the trial has ended.")
@storage_option
@follow_option
def logs(study: str, trial: int, live: bool, storage: str | None, follows: bool) -> None:
    """Print the output of a trial, also while it runs.

    It is read from the study's folder, so that it is seen on every machine that sees the folder. In an object store the
    end of the log of a running trial appears every ten seconds, and the whole log when the trial has ended. Ctrl-C ends
    the printing, not the trial.

    \b
    Example:  farthing logs digits 12 -f
    Next:     farthing show digits --trial 12, farthing watch digits
    """
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.cli.trial_view import log_pieces

    with opened_study(study, address_to_read(storage)) as found, suppress(KeyboardInterrupt):
        for piece in log_pieces(found, trial, follows=follows, is_live=live):
            click.echo(piece, nl=False)


@click.command("best")
@study_argument
@storage_option
@import_option
@json_option
def best(study: str | None, storage: str | None, imports: bool, as_json: bool) -> None:
    """Print the best configuration found so far.

    STUDY may be left out if there is only one.

    \b
    Example:  farthing best digits
              farthing best digits --json | jq .params
    Next:     farthing plot digits
    """
    from farthing.analysis.text import found_best, front_text
    from farthing.cli.running import best_text
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.session import session_of

    with opened_study(study, address_to_read(storage), imports=imports) as found:
        result = found_best(session_of(found)) or found.best
        text = [best_text(found, result), front_text(result)]
        click.echo(json.dumps(result.to_json()) if as_json else "\n\n".join(part for part in text if part))
