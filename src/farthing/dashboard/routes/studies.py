"""Studies: the list, and one at a glance."""

from farthing.costs import Ledger
from farthing.dashboard.endpoints import STUDY, Argument, Endpoint
from farthing.dashboard.keys import key_of, name_of
from farthing.dashboard.reading import Studies, StudyReader
from farthing.errors import InvalidArgument
from farthing.storage.storage import ReadsOutlines, StudySummary
from farthing.study.stored_strategy import class_name
from farthing.trials import Json, State
from farthing.views.overview import (
    MOST_IN_FLIGHT,
    latest_failures,
    overview,
    predictions,
    problem_form,
)
from farthing.views.progress import progress, trend
from farthing.views.sampling import thinned

MOST_COMPARED = 8
MOST_PREDICTIONS = 300


def list_studies(studies: Studies) -> dict[str, Json]:
    versions = studies.versions()
    lines = [
        _line(studies, summary, versions.get(summary.record.name, 0)) for summary in studies.storage.list_studies()
    ]
    return {"storage": studies.place, "may_change": studies.may_change, "studies": lines}


def _line(studies: Studies, summary: StudySummary, version: int) -> dict[str, Json]:
    record = summary.record

    def values() -> Json:
        if isinstance(studies.storage, ReadsOutlines):
            return trend(studies.storage.results(record.name), record.problem)
        history = studies.reader(record.name).history()
        return trend([trial.value for trial in history.done if trial.value is not None], record.problem)

    return {
        "key": key_of(record.name),
        "name": record.name,
        "version": version,
        "value": record.problem.value,
        "minimize": record.problem.minimize,
        "cost_unit": record.problem.cost_unit,
        "strategy": class_name(record.strategy),
        "created_at": record.created_at,
        "counts": {state.value: count for state, count in summary.trials.items() if count},
        "is_running": bool(summary.trials.get(State.RUNNING)),
        "best": summary.best_value,
        "spent": summary.cost,
        "trend": studies.trend_of(record.name, version, values),
    }


def reader_of(studies: Studies, key: str) -> StudyReader:
    return studies.reader(name_of(key))


def show_study(studies: Studies, study: str) -> dict[str, Json]:
    reader = reader_of(studies, study)
    return reader.remembered("study", lambda: _study(studies, reader))  # type: ignore[no-any-return]


def _study(studies: Studies, reader: StudyReader) -> dict[str, Json]:
    record, problem, lines = reader.record, reader.problem, reader.lines()
    best = lines.best(problem)
    in_flight = [int(lines.number[place]) for place in lines.in_flight()][:MOST_IN_FLIGHT]
    failed = latest_failures(lines)
    wanted = [*in_flight, *failed, *([] if best is None else [best])]
    trials = {trial.number: trial for trial in reader.trials(sorted(set(wanted)))}
    return {
        "key": key_of(record.name),
        "name": record.name,
        "kind": reader.kind,
        "strategy": class_name(record.strategy),
        "created_at": record.created_at,
        "may_change": studies.may_change,
        "is_large": reader.is_large,
        "is_to_stop": reader.is_to_stop,
        **problem_form(problem),
        **overview(
            lines,
            problem,
            in_flight=[trials[number] for number in in_flight if number in trials],
            failed=[trials[number] for number in failed if number in trials],
            best=None if best is None else trials.get(best),
            seconds=reader.seconds_run(),
            budget=reader.budget,
            ledger=None if reader.is_large else Ledger.of(reader.history()),
        ),
    }


def show_bill(studies: Studies, study: str) -> dict[str, Json]:
    reader = reader_of(studies, study)
    return reader.remembered("bill", lambda: Ledger.of(reader.history()).to_json())  # type: ignore[no-any-return]


def show_predictions(studies: Studies, study: str) -> dict[str, Json]:
    """Of some finished trials; of many, an even choice."""
    reader = reader_of(studies, study)

    def make() -> Json:
        lines = reader.lines()
        order = lines.in_order_of_ending()
        spent = dict(zip(lines.number[order].tolist(), lines.cost[order].cumsum().tolist(), strict=True))
        shown = thinned(list(spent), MOST_PREDICTIONS)
        return {"predictions": predictions(reader.trials(shown), spent)}

    return reader.remembered("predictions", make)  # type: ignore[no-any-return]


def compare_studies(studies: Studies, study: list[str]) -> dict[str, Json]:
    if len(study) > MOST_COMPARED:
        raise InvalidArgument(f"At most {MOST_COMPARED} studies are compared at once, got {len(study)}. Choose fewer.")
    found = []
    for key in study:
        reader = reader_of(studies, key)
        problem, lines = reader.problem, reader.lines()
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
    Endpoint("GET", "/api/studies/{study}/bill", show_bill, "What was spent and saved, by kind.", (STUDY,)),
    Endpoint(
        "GET", "/api/studies/{study}/predictions", show_predictions, "What was expected, beside what came.", (STUDY,)
    ),
    Endpoint(
        "GET",
        "/api/compare",
        compare_studies,
        "Several studies, each its best value against its cost.",
        (Argument("study", "texts", "The key of a study; up to eight of them.", default=None),),
    ),
)
