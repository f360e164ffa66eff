"""The studies of a storage, a line each."""

import json
from collections.abc import Sequence
from datetime import datetime

from farthing.cli.tables import aligned
from farthing.storage import StudySummary
from farthing.study.stored_strategy import class_name
from farthing.study.views import short_number
from farthing.trials import Json

HEADER = ("study", "aim", "strategy", "trials", "best seen", "cost", "unit", "created")


def listing_text(summaries: Sequence[StudySummary]) -> str:
    return aligned(HEADER, [_cells(summary) for summary in summaries]) if summaries else "No studies yet."


def listing_json(summaries: Sequence[StudySummary]) -> str:
    return json.dumps([_form(summary) for summary in summaries])


def _cells(summary: StudySummary) -> list[str]:
    problem = summary.record.problem
    return [
        summary.record.name,
        f"{problem.direction} {problem.value}",
        _strategy(summary) or "",
        str(sum(summary.trials.values())),
        "" if summary.best_value is None else short_number(summary.best_value),
        short_number(summary.cost),
        problem.cost_unit,
        datetime.fromtimestamp(summary.record.created_at).strftime("%Y-%m-%d %H:%M"),
    ]


def _form(summary: StudySummary) -> dict[str, Json]:
    problem = summary.record.problem
    return {
        "name": summary.record.name,
        "direction": problem.direction,
        "value": problem.value,
        "strategy": _strategy(summary),
        "trials": {state.value: count for state, count in summary.trials.items()},
        "best_seen": summary.best_value,
        "cost": summary.cost,
        "cost_unit": problem.cost_unit,
        "created_at": summary.record.created_at,
    }


def _strategy(summary: StudySummary) -> str | None:
    return class_name(summary.record.strategy) if summary.record.strategy else None
