"""Charts that take the whole history: params, the model, the clock, and what each system has of its own."""

from collections.abc import Callable
from functools import partial
from math import floor, log
from typing import TYPE_CHECKING

from farthing.analysis import charts
from farthing.analysis.charts import parameter_points, timeline
from farthing.analysis.one_value import by_value
from farthing.dashboard.endpoints import STUDY, Endpoint, Input
from farthing.dashboard.reading import GROWTH, ShownStudies, StudyReader
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


def _seen(reader: StudyReader, of: str) -> History:
    """The history of one value, where there are several; by default of the first."""
    history = reader.history()
    return history if history.problem.is_simple else by_value(history, of or history.problem.value, example="")


def show_front(studies: ShownStudies, study: str) -> dict[str, Json]:
    """The front of several objectives and how limits are kept; `why` says why there is none."""
    from farthing.analysis.front import front_form

    reader = reader_of(studies, study)
    if reader.problem.is_simple:
        return {"front": None, "why": f"A front is of several objectives or limits, got {reader.problem.aim}."}
    try:
        found = reader.remembered("front", lambda: front_form(reader.history()), of=_results(reader))
    except NoResult as error:
        return {"front": None, "why": str(error)}
    return {"front": found, "why": ""}


def show_parameters(studies: ShownStudies, study: str, of: str = "") -> dict[str, Json]:
    reader = reader_of(studies, study)
    return reader.remembered(("params", of), lambda: parameter_points(_seen(reader, of), most=MOST_POINTS))  # type: ignore[no-any-return]


def show_timeline(studies: ShownStudies, study: str) -> dict[str, Json]:
    reader = reader_of(studies, study)
    return timeline(reader.lines(), now=reader.storage.now(), most=MOST_BARS)


def show_system(studies: ShownStudies, study: str, of: str = "") -> dict[str, Json]:
    """The charts of the study's own system; an ordinary study has its predictions only."""
    reader = reader_of(studies, study)
    kind = reader.kind
    make = SYSTEMS.get(kind, _nothing)
    if (
        kind == "multifidelity"
        and reader.is_large
        and reader.problem.is_simple
        and isinstance(reader.storage, ReadsOutlines)
    ):
        make = partial(charts.curves, read=partial(reader.storage.trials, reader.name))
    return reader.remembered(("system", of), lambda: {"kind": kind, **make(_seen(reader, of))})  # type: ignore[no-any-return]


def _nothing(history: History) -> dict[str, Json]:
    return {}


def show_model(studies: ShownStudies, study: str, of: str = "") -> dict[str, Json]:
    from farthing.analysis.diagnosis import model_form

    reader = reader_of(studies, study)
    return reader.remembered(("model", of), lambda: model_form(_fitted(reader, of)), of=_results(reader))  # type: ignore[no-any-return]


def show_contour(studies: ShownStudies, study: str, x: str, y: str, of: str = "") -> dict[str, Json]:
    from farthing.analysis.diagnosis import contour

    reader = reader_of(studies, study)

    def make() -> dict[str, Json]:
        return contour(_fitted(reader, of), x, y)

    return reader.remembered(("contour", x, y, of), make, of=_results(reader))  # type: ignore[no-any-return]


def show_outlook(studies: ShownStudies, study: str) -> dict[str, Json]:
    """The gain expected of another stretch of cost; `why` says why nothing is known yet."""
    reader = reader_of(studies, study)

    def make() -> dict[str, Json]:
        from farthing.analysis.outlook import Prospects, outlook_of_some

        lines = reader.lines()
        if len(lines) <= MOST_IN_OUTLOOK or not reader.problem.is_simple:  # which says that there is none
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


def _fitted(reader: StudyReader, of: str) -> "FittedModel":
    from farthing.analysis.diagnosis import for_a_model
    from farthing.analysis.model import model_of

    def make() -> "FittedModel":
        return model_of(for_a_model(_seen(reader, of), most=MOST_IN_MODEL))

    return reader.remembered(("fitted", of), make, of=_results(reader))  # type: ignore[no-any-return]


OF = Input("of", about="Of several objectives and limited quantities the one in question.", default="")

ENDPOINTS = (
    Endpoint("GET", "/api/studies/{study}/front", show_front, "The front, and how limits are kept.", (STUDY,)),
    Endpoint("GET", "/api/studies/{study}/parameters", show_parameters, "Params and values of runs.", (STUDY, OF)),
    Endpoint("GET", "/api/studies/{study}/timeline", show_timeline, "Trials by worker, along the clock.", (STUDY,)),
    Endpoint("GET", "/api/studies/{study}/system", show_system, "What its system has of its own.", (STUDY, OF)),
    Endpoint("GET", "/api/studies/{study}/model", show_model, "Importance and slices by a model.", (STUDY, OF)),
    Endpoint("GET", "/api/studies/{study}/outlook", show_outlook, "What going on is expected to bring.", (STUDY,)),
    Endpoint(
        "GET",
        "/api/studies/{study}/contour",
        show_contour,
        "The expected value over two parameters.",
        (STUDY, Input("x", about="A parameter.", default=""), Input("y", about="Another.", default=""), OF),
    ),
)
