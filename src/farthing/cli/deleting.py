"""Deletes a study with its files."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from farthing.execution.durable import names_in, remove, size_of
from farthing.execution.folder_mark import MARK
from farthing.execution.stage_cache import FOLDER
from farthing.storage import Storage
from farthing.study import Study
from farthing.study.views import short_bytes
from farthing.trials import State


@dataclass(frozen=True)
class Deleted:
    """What became of a study's files: bytes that were freed, or the folder that was left as it is."""

    freed: int = 0
    left: Path | None = None

    def __str__(self) -> str:
        if self.left is None:
            return f"{short_bytes(self.freed)} of files are freed."
        return f"{str(self.left)!r} does not carry its mark, so nothing in it was deleted. Look at it yourself."


def losses(study: Study) -> str:
    """What would be deleted, in words."""
    history = study.history
    running = sum(trial.state is State.RUNNING for trial in history)
    still = f", {running} of them running now" if running else ""
    return f"{study.name} with its {len(history)} trials{still}, {history.cost:.4g} {study.problem.cost_unit} of work,"


def delete_study(storage: Storage, study: Study) -> Deleted:
    """Deletes the study, then its checkpoints and logs, where their folder carries its mark."""
    files = study.checkpoints
    root, is_ours = files.root, files.is_ours
    storage.delete_study(study.name)
    if is_ours:
        return Deleted(freed=_delete_files(root))
    return Deleted(left=root) if names_in(root) else Deleted()


def _delete_files(root: Path) -> int:
    """Deletes the folders of the trials and of the stages, and the one they are in if there is nothing else in it."""
    freed = size_of(root)
    for name in names_in(root):
        if name.isdecimal() or name == FOLDER:
            remove(root / name)
    (root / MARK).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        root.rmdir()
    return freed
