"""Charts that take the whole history: params, the model, the clock, and what each system has of its own."""

from collections.abc import Callable
from functools import partial
from math import floor, log
from typing import TYPE_CHECKING

from farthing.analysis import charts
from farthing.analysis.charts import parameter_points, timeline
from farthing.dashboard.endpoints import STUDY, Argument, Endpoint
from farthing.dashboard.reading import GROWTH, Studies, StudyReader
from farthing.dashboard.routes.studies import reader_of
from farthing.errors import NoResult
from farthing.storage.storage import ReadsOutlines
from farthing.trials import History, Json

if TYPE_CHECKING:
    from farthing.analysis.model import FittedModel

MOST_POINTS = 1_000
MOST_BARS = 2_000
MOST_IN_MODEL = 400
"""Results that a model on a page is fitted to: a second or so of one core."""

MOST_IN_OUTLOOK = 100
"""Runs that the outlook of a page goes by. A limit on time, as `TraceKG` has it."""

SYSTEMS: dict[str, Callable[[History], dict[str, Json]]] = {
    "multifidelity": charts.curves,
    "population": charts.population,
    "online": charts.rounds,
    "pipeline": charts.pipeline,
}


def show_parameters(studies: Studies, study: str) -> dict[str, Json]:
    reader = reader_of(studies, study)
    return reader.remembered("params", lambda: parameter_points(reader.history(), most=MOST_POINTS))  # type: ignore[no-any-return]


def show_timeline(studies: Studies, study: str) -> dict[str, Json]:
    reader = reader_of(studies, study)
    return timeline(reader.lines(), now=reader.storage.now(), most=MOST_BARS)


def show_system(studies: Studies, study: str) -> dict[str, Json]:
    """The charts of the study's own system; an ordinary study has its predictions only."""
    reader = reader_of(studies, study)
    kind = reader.kind
    make = SYSTEMS.get(kind, _nothing)
    if kind == "multifidelity" and reader.is_large and isinstance(reader.storage, ReadsOutlines):
        make = partial(charts.curves, read=partial(reader.storage.trials, reader.name))
    return reader.remembered("system", lambda: {"kind": kind, **make(reader.history())})  # type: ignore[no-any-return]


def _nothing(history: History) -> dict[str, Json]:
    return {}


def show_model(studies: Studies, study: str) -> dict[str, Json]:
    from farthing.analysis.diagnosis import model_form

    reader = reader_of(studies, study)
    return reader.remembered("model", lambda: model_form(_fitted(reader)), of=_results(reader))  # type: ignore[no-any-return]


def show_contour(studies: Studies, study: str, x: str, y: str) -> dict[str, Json]:
    from farthing.analysis.diagnosis import contour

    reader = reader_of(studies, study)

    def make() -> dict[str, Json]:
        return contour(_fitted(reader), x, y)

    return reader.remembered(("contour", x, y), make, of=_results(reader))  # type: ignore[no-any-return]


def show_outlook(studies: Studies, study: str) -> dict[str, Json]:
    """The gain expected of another stretch of cost; `why` says why nothing is known yet."""
    reader = reader_of(studies, study)

    def make() -> dict[str, Json]:
        from farthing.analysis.outlook import Prospects, outlook_of_some

        lines = reader.lines()
        if len(lines) <= MOST_IN_OUTLOOK:
            found = Prospects.of(reader.history()).outlook(None)
        else:
            found = outlook_of_some(lines, reader.problem, reader.trials, most=MOST_IN_OUTLOOK)
        return {"outlook": found.to_json(), "why": ""}

    try:
        return reader.remembered("outlook", make, of=_results(reader))  # type: ignore[no-any-return]
    except NoResult as error:
        return {"outlook": None, "why": str(error)}


def _results(reader: StudyReader) -> float:
    """How many there are; while the study runs it changes each time that they have grown by a tenth."""
    done = reader.lines().counts.get("done", 0)
    if not done:
        raise NoResult("A model needs trials that are done, got none. Run some first.")
    return floor(log(done) / log(GROWTH)) + 0.5 if reader.runs_going() else done


def _fitted(reader: StudyReader) -> "FittedModel":
    from farthing.analysis.diagnosis import for_a_model
    from farthing.analysis.model import model_of

    def make() -> "FittedModel":
        return model_of(for_a_model(reader.history(), most=MOST_IN_MODEL))

    return reader.remembered("fitted", make, of=_results(reader))  # type: ignore[no-any-return]


ENDPOINTS = (
    Endpoint("GET", "/api/studies/{study}/parameters", show_parameters, "Params and values of runs.", (STUDY,)),
    Endpoint("GET", "/api/studies/{study}/timeline", show_timeline, "Trials by worker, along the clock.", (STUDY,)),
    Endpoint("GET", "/api/studies/{study}/system", show_system, "What its system has of its own.", (STUDY,)),
    Endpoint("GET", "/api/studies/{study}/model", show_model, "Importance and slices by a model.", (STUDY,)),
    Endpoint("GET", "/api/studies/{study}/outlook", show_outlook, "What going on is expected to bring.", (STUDY,)),
    Endpoint(
        "GET",
        "/api/studies/{study}/contour",
        show_contour,
        "The expected value over two parameters.",
        (STUDY, Argument("x", about="A parameter.", default=""), Argument("y", about="Another.", default="")),
    ),
)
