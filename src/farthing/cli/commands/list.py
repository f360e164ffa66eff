"""`farthing list`"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from farthing.cli.options import json_option, storage_option
from farthing.cli.tables import aligned

if TYPE_CHECKING:
    from farthing.storage import StudySummary
    from farthing.trials import Json

HEADER = ("study", "aim", "strategy", "trials", "best seen", "cost", "unit", "created")


@click.command("list")
@storage_option
@json_option
def command(storage: str | None, as_json: bool) -> None:
    """List the studies of a storage, with their best values and costs.

    \b
    Example:  farthing list
              farthing list --storage postgresql://me@host/tuning --json
    Next:     farthing show STUDY
    """
    from farthing.cli.storages import address_to_read, opened_storage

    with opened_storage(address_to_read(storage)) as found:
        summaries = found.list_studies()
    click.echo(json.dumps([_form(summary) for summary in summaries]) if as_json else _text(summaries))


def _text(summaries: "Sequence[StudySummary]") -> str:
    return aligned(HEADER, [_cells(summary) for summary in summaries]) if summaries else "No studies yet."


def _cells(summary: "StudySummary") -> list[str]:
    from farthing.analysis.text import short_number

    problem = summary.record.problem
    return [
        summary.record.name,
        problem.aim,
        _strategy(summary) or "",
        str(sum(summary.trials.values())),
        "" if summary.best_value is None else short_number(summary.best_value),
        short_number(summary.cost),
        problem.cost_unit,
        datetime.fromtimestamp(summary.record.created_at).strftime("%Y-%m-%d %H:%M"),
    ]


def _form(summary: "StudySummary") -> "dict[str, Json]":
    problem = summary.record.problem
    return {
        "name": summary.record.name,
        "direction": problem.direction,
        "value": problem.value,
        "aim": problem.aim,
        "strategy": _strategy(summary),
        "trials": {state.value: count for state, count in summary.trials.items()},
        "best_seen": summary.best_value,
        "cost": summary.cost,
        "cost_unit": problem.cost_unit,
        "created_at": summary.record.created_at,
    }


def _strategy(summary: "StudySummary") -> str | None:
    from farthing.session.strategy import class_name

    return class_name(summary.record.strategy) if summary.record.strategy else None
