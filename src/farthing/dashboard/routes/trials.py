"""Trials: the table, one of them, its log and the files that it left."""

import io
import os
import re
from contextlib import suppress
from itertools import islice, takewhile
from typing import BinaryIO

from farthing.analysis.export import export
from farthing.analysis.rows import PLAIN_COLUMNS, RowQuery, matching_lines, matching_trials, trial_form, trial_row
from farthing.dashboard.endpoints import STUDY, TRIAL, Download, Endpoint, Input, key_of
from farthing.dashboard.reading import ShownStudies, StudyReader, no_log
from farthing.dashboard.routes.studies import reader_of
from farthing.errors import InvalidArgument, TrialNotFound
from farthing.files.inside import files_inside, open_inside
from farthing.trials import Attempt, History, Json, State, Trial
from farthing.validation import shown, spelled_out

MOST_ROWS = 500
MOST_FILES = 200
LONGEST_LOG = 200_000
"""Bytes at the end of a log that are shown."""

LOG = re.compile(r"attempt-(\d{1,9})\.log")

LARGEST_IMAGE = 20_000_000
IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""The first bytes of pictures. SVG is not among them: it can hold scripts."""

FILTERS = (
    STUDY,
    Input("sort", about="A column: number, value, param.rate …", default="number"),
    Input("order", choices=("up", "down"), default="up"),
    Input("state", "texts", choices=tuple(state.value for state in State)),
    Input("text", about="Found in params, tags, comments and failures.", default=""),
    Input("tag", default=""),
    Input("where", "texts", about="param=text, or param=low..high"),
)


def _query(
    reader: StudyReader, sort: str, order: str, state: list[str], text: str, tag: str, where: list[str]
) -> RowQuery:
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
    return RowQuery(sort, order == "down", tuple(state), text, tag, pairs)


def _numbers(reader: StudyReader, query: RowQuery) -> list[int]:
    return matching_trials(reader.history(), query) if query.needs_trials else matching_lines(reader.lines(), query)


def list_trials(
    studies: ShownStudies,
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
    studies: ShownStudies, study: str, sort: str, order: str, state: list[str], text: str, tag: str, where: list[str]
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
        for trial in trials:
            self._trials.append(trial)


def show_trial(studies: ShownStudies, study: str, number: int) -> dict[str, Json]:
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
        "logs": _logs(reader, trial),
    }


def _trial(reader: StudyReader, number: int) -> Trial:
    found = reader.trials([number])
    if not found:
        raise TrialNotFound(f"A trial's number must be one of those there are, got {number}.")
    return found[0]


def _logs(reader: StudyReader, trial: Trial) -> list[str]:
    """The names of its logs, the latest attempt's last."""
    below = files_inside(reader.files.root, f"{trial.number:06d}") if reader.files.is_ours else ()
    own = takewhile(lambda name: "/" not in name, below)
    found = {int(match[1]): name for name in own if (match := LOG.fullmatch(name))}
    return [found[attempt] for attempt in sorted(found)]


def show_log(studies: ShownStudies, study: str, number: int) -> dict[str, Json]:
    """The end of the log of the latest attempt: as it was kept, or as it grows elsewhere; else of the one before it."""
    reader = reader_of(studies, study)
    trial, files = _trial(reader, number), reader.files
    name = files.log_path(number, trial.attempt).name  # brings it here, if it is elsewhere and may be asked for
    logs = _logs(reader, trial)
    live = None if name in logs else files.read_live_log(Attempt(number, trial.attempt))
    if live is not None:
        begins, end = live
        size = begins + len(end)
    else:
        try:
            with open_inside(files.root, f"{number:06d}/{(name := logs[-1])}") as file:
                size = file.seek(0, io.SEEK_END)
                file.seek(max(0, size - LONGEST_LOG))
                end = file.read(LONGEST_LOG)
        except (OSError, IndexError):
            raise no_log(files, trial) from None
    text = end.decode(errors="backslashreplace")
    return {"name": name, "text": text, "bytes": size, "is_cut": size > len(end)}


def _files(reader: StudyReader, trial: Trial) -> list[dict[str, Json]]:
    """The files of the trial's checkpoint, by their names in it. Links are left out: they may lead anywhere."""
    folder = _checkpoint(reader, trial)
    found = []
    whole = (name for name in files_inside(reader.files.root, folder) if spelled_out(name) == name)
    for name in islice(whole, MOST_FILES):  # a name that is no UTF-8 could not be asked for
        with suppress(OSError), open_inside(reader.files.root, f"{folder}/{name}") as file:
            found.append({"name": name, "bytes": _size(file), "image": _image(file) is not None})
    return found


def _checkpoint(reader: StudyReader, trial: Trial) -> str:
    """Its name below the study's folder; empty if it has none, or if the folder is not the study's own."""
    files = reader.files
    try:
        return files.named(trial.checkpoint or "").relative_to(files.root).as_posix() if files.is_ours else ""
    except InvalidArgument:
        return ""


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _image(file: BinaryIO) -> str | None:
    head = file.read(16)
    file.seek(0)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in IMAGES.items() if head.startswith(start)), None)


def show_file(studies: ShownStudies, study: str, number: int, name: str) -> Download:
    """A picture to look at; anything else to keep, and never to execute."""
    reader = reader_of(studies, study)
    try:
        file = open_inside(reader.files.root, f"{_checkpoint(reader, _trial(reader, number))}/{name}")
    except OSError:
        raise TrialNotFound(f"A file must be one that trial {number} left, got {shown(name)}.") from None
    image = _image(file) if _size(file) <= LARGEST_IMAGE else None
    return Download(name.rpartition("/")[2], image or "application/octet-stream", file, is_shown=image is not None)


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
            Input("offset", "whole", default=0, least=0, most=10**9),
            Input("limit", "whole", default=50, least=1, most=MOST_ROWS),
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
        (STUDY, TRIAL, Input("name", about="Its name in the checkpoint.", default="")),
        answer={"type": "string"},
        media="application/octet-stream",
    ),
)
