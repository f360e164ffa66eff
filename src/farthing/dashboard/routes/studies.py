"""Studies: the list, and one at a glance."""

from collections.abc import Collection
from functools import partial

from farthing.analysis.best import Best, best_of, kept_recommendation, learned_best
from farthing.analysis.lines import progress, trend
from farthing.analysis.overview import (
    MOST_IN_FLIGHT,
    latest_failures,
    overview,
    predictions,
    problem_form,
)
from farthing.analysis.sampling import steady_places
from farthing.costs import Ledger
from farthing.dashboard.endpoints import STUDY, Endpoint, Input, key_of, name_of
from farthing.dashboard.reading import Row, ShownStudies, StudyReader
from farthing.errors import InvalidArgument, NoResult
from farthing.session.strategy import ChosenStrategy, class_name
from farthing.storage.storage import ReadsOutlines, StudySummary
from farthing.storage.storage import best as best_value
from farthing.trials import Json, State
from farthing.validation import spelled_out

MOST_COMPARED = 8
MOST_PREDICTIONS = 300
MOST_BILLED_AT_ONCE = 500
"""Trials. Of a study with more, the page asks for the bill after it is drawn: that takes every trial."""


def list_studies(studies: ShownStudies) -> dict[str, Json]:
    rows, unreadable = studies.rows(partial(_rows_of, studies), _row_of)
    return {
        "storage": studies.place,
        "may_change": studies.may_change,
        "studies": rows,
        "unreadable": [spelled_out(name) for name in unreadable],
    }


def _rows_of(studies: ShownStudies, names: Collection[str]) -> dict[str, Row]:
    return {
        summary.record.name: _row(summary, _results(studies, summary.record.name))
        for summary in studies.storage.list_studies()
        if summary.record.name in names
    }


def _results(studies: ShownStudies, name: str) -> list[float]:
    if isinstance(studies.storage, ReadsOutlines):
        return studies.storage.results(name)
    return [trial.value for trial in studies.reader(name).history().done if trial.value is not None]


def _row_of(reader: StudyReader) -> Row:
    """The same as by `_rows_of`, from lines."""
    lines, record = reader.lines(), reader.record
    values = lines.results
    summary = StudySummary(
        record=record,
        trials={State(state): count for state, count in lines.counts.items()},
        best_value=best_value(record.problem, values),
        cost=lines.total,
    )
    return _row(summary, values)


def _row(summary: StudySummary, results: list[float]) -> Row:
    record = summary.record
    return {
        "key": key_of(record.name),
        "name": record.name,
        "value": record.problem.value,
        "minimize": record.problem.minimize,
        "aim": record.problem.aim,
        "is_simple": record.problem.is_simple,
        "cost_unit": record.problem.cost_unit,
        "strategy": class_name(record.strategy),
        "created_at": record.created_at,
        "counts": {state.value: count for state, count in summary.trials.items() if count},
        "is_running": bool(summary.trials.get(State.RUNNING)),
        "best": summary.best_value,
        "spent": summary.cost,
        "trend": trend(results, record.problem) if record.problem.is_simple else [],
    }


def reader_of(studies: ShownStudies, key: str) -> StudyReader:
    return studies.reader(name_of(key))


def show_study(studies: ShownStudies, study: str) -> dict[str, Json]:
    reader = reader_of(studies, study)
    version, runs = reader.version(), reader.runs_going()
    return reader.remembered("study", lambda: _study(studies, reader, runs), of=(version, runs))  # type: ignore[no-any-return]


def _study(studies: ShownStudies, reader: StudyReader, runs: int) -> dict[str, Json]:
    record, problem, lines = reader.record, reader.problem, reader.lines()
    in_flight = [int(lines.number[place]) for place in lines.in_flight()][:MOST_IN_FLIGHT]
    failed = latest_failures(lines)
    trials = {trial.number: trial for trial in reader.trials(sorted({*in_flight, *failed}))}
    return {
        "key": key_of(record.name),
        "name": record.name,
        "kind": reader.kind,
        "strategy": class_name(record.strategy),
        "created_at": record.created_at,
        "storage": studies.place,
        "may_change": studies.may_change,
        "is_large": reader.is_large,
        "is_to_stop": reader.is_to_stop,
        "runs": runs,
        **problem_form(problem),
        **overview(
            lines,
            problem,
            in_flight=[trials[number] for number in in_flight if number in trials],
            failed=[trials[number] for number in failed if number in trials],
            seconds=reader.seconds_run(),
            budget=reader.budget,
            ledger=Ledger.of(reader.history()) if _is_short(reader) else None,
        ),
    }


def _is_short(reader: StudyReader) -> bool:
    return not reader.is_large and len(reader.lines()) <= MOST_BILLED_AT_ONCE


def show_best(studies: ShownStudies, study: str) -> dict[str, Json]:
    """The answer of `study.best`; `why` says why there is none yet."""
    reader = reader_of(studies, study)
    return reader.remembered("best", lambda: _best(reader))  # type: ignore[no-any-return]


def _best(reader: StudyReader) -> dict[str, Json]:
    found: Best | None
    try:
        found = kept_recommendation(reader) or best_of(reader, ChosenStrategy(None, reader.record).get_if_at_hand())
    except NoResult as error:
        found = learned_best(reader.history())
        if found is None:
            return {"best": None, "why": str(error)}
    return {"best": {**found.to_json(), "is_full": found.is_full, "words": found.lines()}, "why": ""}


def show_bill(studies: ShownStudies, study: str) -> dict[str, Json]:
    reader = reader_of(studies, study)
    return reader.remembered("bill", lambda: Ledger.of(reader.history()).to_json())  # type: ignore[no-any-return]


def show_predictions(studies: ShownStudies, study: str) -> dict[str, Json]:
    """Of some finished trials; of many, an even choice."""
    reader = reader_of(studies, study)

    def make() -> Json:
        lines = reader.lines()
        ended = lines.number[lines.order]
        chosen = ended[steady_places(ended.size, MOST_PREDICTIONS)].tolist()
        return {"predictions": predictions(reader.finished(chosen), lines)}

    return reader.remembered("predictions", make)  # type: ignore[no-any-return]


def compare_studies(studies: ShownStudies, study: list[str]) -> dict[str, Json]:
    if len(study) > MOST_COMPARED:
        raise InvalidArgument(f"At most {MOST_COMPARED} studies are compared at once, got {len(study)}. Choose fewer.")
    found = []
    for key in study:
        reader = reader_of(studies, key)
        problem, lines = reader.problem, reader.lines()
        if not problem.is_simple:
            raise InvalidArgument(
                f"Studies are compared by one value without limits, got {reader.name!r}: {problem.aim}. "
                "Leave it out, and look at its own page."
            )
        best = lines.best(problem)
        found.append(
            {
                "key": key,
                "name": reader.name,
                "value": problem.value,
                "minimize": problem.minimize,
                "cost_unit": problem.cost_unit,
                "strategy": class_name(reader.record.strategy),
                "spent": lines.total,
                "counts": lines.counts,
                "best": None if best is None else float(lines.value[lines.number.tolist().index(best)]),
                "progress": progress(lines, problem, most=400),
            }
        )
    return {"studies": found}


ENDPOINTS = (
    Endpoint("GET", "/api/studies", list_studies, "The studies of the storage, a line each."),
    Endpoint("GET", "/api/studies/{study}", show_study, "One study at a glance.", (STUDY,)),
    Endpoint("GET", "/api/studies/{study}/best", show_best, "What the study recommends.", (STUDY,)),
    Endpoint("GET", "/api/studies/{study}/bill", show_bill, "What was spent and saved, by kind.", (STUDY,)),
    Endpoint(
        "GET", "/api/studies/{study}/predictions", show_predictions, "What was expected, beside what came.", (STUDY,)
    ),
    Endpoint(
        "GET",
        "/api/compare",
        compare_studies,
        "Several studies, each its best value against its cost.",
        (Input("study", "texts", "The key of a study; up to eight of them.", default=None),),
    ),
)
