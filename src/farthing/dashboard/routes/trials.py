"""Trials: the table, one of them, its log and the files that it left."""

import io
from pathlib import Path

from farthing.dashboard.answers import Download
from farthing.dashboard.endpoints import STUDY, TRIAL, Argument, Endpoint
from farthing.dashboard.keys import key_of
from farthing.dashboard.reading import Studies, StudyReader
from farthing.dashboard.routes.studies import reader_of
from farthing.errors import InvalidArgument, TrialNotFound
from farthing.study.exporting import export
from farthing.trials import History, Json, State, Trial
from farthing.validation import shown
from farthing.views.table import PLAIN_COLUMNS, Query, matching_lines, matching_trials
from farthing.views.trial_views import trial_form, trial_row

MOST_ROWS = 500
MOST_FILES = 200
LONGEST_LOG = 200_000
"""Bytes at the end of a log that are shown."""

LARGEST_IMAGE = 20_000_000
IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""What pictures begin with. SVG is not among them: it can hold scripts."""

FILTERS = (
    STUDY,
    Argument("sort", about="A column: number, value, param.rate …", default="number"),
    Argument("order", choices=("up", "down"), default="up"),
    Argument("state", "texts", choices=tuple(state.value for state in State)),
    Argument("text", about="Found in params, tags, comments and failures.", default=""),
    Argument("tag", default=""),
    Argument("where", "texts", about="param=text, or param=low..high"),
)


def _query(
    reader: StudyReader, sort: str, order: str, state: list[str], text: str, tag: str, where: list[str]
) -> Query:
    space = reader.problem.space
    known = [*PLAIN_COLUMNS, *(f"param.{name}" for name in space.parameters)]
    if sort not in [*known, *(f"fidelity.{name}" for name in space.fidelities)]:
        raise InvalidArgument(f"sort must be a column of the table, got {shown(sort)}. Write number or param.NAME.")
    pairs = dict(one.split("=", 1) for one in where if "=" in one)
    unknown = [name for name in pairs if name not in space.parameters]
    if len(pairs) != len(where) or unknown:
        raise InvalidArgument(
            f"where must be PARAM=TEXT of a parameter, got {shown(where)}. Write where=rate=0.1..0.2."
        )
    return Query(sort, order == "down", tuple(state), text, tag, pairs)


def _numbers(reader: StudyReader, query: Query) -> list[int]:
    return matching_trials(reader.history(), query) if query.needs_trials else matching_lines(reader.lines(), query)


def list_trials(
    studies: Studies,
    study: str,
    sort: str,
    order: str,
    state: list[str],
    text: str,
    tag: str,
    where: list[str],
    offset: int,
    limit: int,
) -> dict[str, Json]:
    reader = reader_of(studies, study)
    query = _query(reader, sort, order, state, text, tag, where)
    numbers = reader.remembered(("table", repr(query)), lambda: _numbers(reader, query))
    page = numbers[offset : offset + limit]
    found = {trial.number: trial for trial in reader.trials(page)}
    rows = [trial_row(found[number]) for number in page if number in found]
    return {"trials": rows, "matching": len(numbers), "offset": offset}


def export_trials(
    studies: Studies, study: str, sort: str, order: str, state: list[str], text: str, tag: str, where: list[str]
) -> Download:
    reader = reader_of(studies, study)
    query = _query(reader, sort, order, state, text, tag, where)
    history = reader.history()
    wanted = _numbers(reader, query)
    some = _Some(history, [history[number] for number in wanted])
    written = export(some, None, format="csv")
    return Download(f"{key_of(reader.name)}.csv", "text/csv; charset=utf-8", str(written).encode())


class _Some(History):
    """Some trials in an order of their own, for an export."""

    def __init__(self, history: History, trials: list[Trial]) -> None:
        super().__init__(history.problem, version=history.version)
        self._trials = trials


def show_trial(studies: Studies, study: str, number: int) -> dict[str, Json]:
    reader = reader_of(studies, study)
    trial = _trial(reader, number)
    chain = [trial]
    while (source := chain[-1].resume_from) is not None:
        chain.append(_trial(reader, source))
    space = reader.problem.space
    return {
        **trial_form(trial, chain[::-1], list(space.stages)),
        "study": reader.name,
        "continued_by": [int(n) for n, source in enumerate(reader.lines().resume_from) if source == number][:50],
        "files": _files(reader, trial),
        "logs": [path.name for path in _logs(reader, trial)],
    }


def _trial(reader: StudyReader, number: int) -> Trial:
    found = reader.trials([number])
    if not found:
        raise TrialNotFound(f"A trial's number must be one of those there are, got {number}.")
    return found[0]


def _logs(reader: StudyReader, trial: Trial) -> list[Path]:
    folder = reader.files.log_path(trial.number, trial.attempt).parent
    return sorted(path for path in folder.glob("attempt-*.log") if path.is_file() and not path.is_symlink())


def show_log(studies: Studies, study: str, number: int) -> dict[str, Json]:
    """The end of the log of the latest attempt."""
    reader = reader_of(studies, study)
    logs = _logs(reader, _trial(reader, number))
    if not logs:
        raise TrialNotFound(f"A trial's log is kept when a worker ran it, got none for trial {number}.")
    with logs[-1].open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - LONGEST_LOG))
        text = file.read(LONGEST_LOG).decode(errors="backslashreplace")
    return {"name": logs[-1].name, "text": text, "bytes": size, "is_cut": size > LONGEST_LOG}


def _files(reader: StudyReader, trial: Trial) -> list[dict[str, Json]]:
    return [
        {"name": name, "bytes": path.stat().st_size, "image": _image(path) is not None}
        for name, path in _left(reader, trial).items()
    ]


def _left(reader: StudyReader, trial: Trial) -> dict[str, Path]:
    """The files of the trial's checkpoint, by their names in it. Links are left out: they may lead anywhere."""
    if trial.checkpoint is None:
        return {}
    try:
        folder = reader.files.path(trial.checkpoint)
    except InvalidArgument:
        return {}
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(folder.resolve()):
            found[path.relative_to(folder).as_posix()] = path
        if len(found) >= MOST_FILES:
            break
    return found


def _image(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(16)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in IMAGES.items() if head.startswith(start)), None)


def show_file(studies: Studies, study: str, number: int, name: str) -> Download:
    """A picture to look at; anything else to keep, and never to execute."""
    reader = reader_of(studies, study)
    path = _left(reader, _trial(reader, number)).get(name)
    if path is None:
        raise TrialNotFound(f"A file must be one that trial {number} left, got {shown(name)}.")
    image = _image(path) if path.stat().st_size <= LARGEST_IMAGE else None
    return Download(path.name, image or "application/octet-stream", path, is_shown=image is not None)


TRIAL_ANSWER = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "state": {"type": "string"}, "cost": {"type": "number"}},
    "required": ["number", "state", "cost", "params"],
}
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/studies/{study}/trials",
        list_trials,
        "A page of the table of trials.",
        (
            *FILTERS,
            Argument("offset", "whole", default=0, least=0, most=10**9),
            Argument("limit", "whole", default=50, least=1, most=MOST_ROWS),
        ),
        answer={
            "type": "object",
            "properties": {"trials": {"type": "array", "items": TRIAL_ANSWER}, "matching": {"type": "integer"}},
            "required": ["trials", "matching", "offset"],
        },
    ),
    Endpoint(
        "GET",
        "/api/studies/{study}/trials.csv",
        export_trials,
        "The table as CSV.",
        FILTERS,
        answer={"type": "string"},
        media="text/csv",
    ),
    Endpoint(
        "GET",
        "/api/studies/{study}/trials/{number}",
        show_trial,
        "Everything about a trial.",
        (STUDY, TRIAL),
        answer=TRIAL_ANSWER,
    ),
    Endpoint("GET", "/api/studies/{study}/trials/{number}/log", show_log, "The end of its log.", (STUDY, TRIAL)),
    Endpoint(
        "GET",
        "/api/studies/{study}/trials/{number}/file",
        show_file,
        "A file that the trial left in its checkpoint.",
        (STUDY, TRIAL, Argument("name", about="Its name in the checkpoint.", default="")),
        answer={"type": "string"},
        media="application/octet-stream",
    ),
)
