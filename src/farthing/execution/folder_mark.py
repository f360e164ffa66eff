"""The mark of a folder: whose files are in it."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from farthing.errors import InvalidArgument
from farthing.files.durable import names_in

MARK = ".farthing-study.json"


@dataclass(frozen=True)
class Mark:
    """`identity` is the study's own in all databases and on all machines; `study` is its name, for people."""

    identity: str
    study: str


def mark_of(folder: Path) -> Mark | None:
    """The mark that a folder carries, if any. One that cannot be read belongs to no study."""
    try:
        text = (folder / MARK).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return Mark("", "unknown")
    try:
        form = json.loads(text)
        return Mark(str(form["identity"]), str(form["study"]))
    except (ValueError, KeyError, TypeError):
        return Mark("", "unknown")


def is_free(folder: Path) -> bool:
    """Whether the folder is missing, or empty but for a mark that a killed program had not finished."""
    return all(name.startswith(f"{MARK}.") for name in names_in(folder))


def carries(folder: Path, mark: Mark) -> bool:
    found = mark_of(folder)
    return found is not None and found.identity == mark.identity


def claim(folder: Path, mark: Mark) -> None:
    """Makes the folder, where there is none, and marks it; refuses one that carries another mark."""
    folder.mkdir(parents=True, exist_ok=True)
    if mark_of(folder) is None:
        _write(folder, mark)
    require_not_anothers(folder, mark)


def require_not_anothers(folder: Path, mark: Mark) -> None:
    found = mark_of(folder)
    if found is not None and found.identity != mark.identity:
        raise InvalidArgument(
            f"A study's folder must be its own, got {str(folder)!r}, whose mark says that it belongs to the study "
            f"{found.study!r} of the same or another database. Give another place: folder=…; or, if its files are "
            "not needed, delete it."
        )


def _write(folder: Path, mark: Mark) -> None:
    """Puts the mark there whole and once: of several who try at the same moment one succeeds."""
    text = json.dumps(asdict(mark))
    draft = folder / f"{MARK}.{uuid4().hex}"
    draft.write_text(text, encoding="utf-8")
    try:
        os.link(draft, folder / MARK)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        with suppress(FileExistsError), open(folder / MARK, "x", encoding="utf-8") as file:
            file.write(text)
    finally:
        draft.unlink()
