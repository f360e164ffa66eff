"""Deletes a study with its files."""

import contextlib
from pathlib import Path
from shutil import rmtree

from farthing.execution import Checkpoints
from farthing.execution.stage_cache import FOLDER
from farthing.storage import Storage
from farthing.study import Study
from farthing.trials import State


def losses(study: Study) -> str:
    """What would be deleted, in words."""
    history = study.history
    running = sum(trial.state is State.RUNNING for trial in history)
    still = f", {running} of them running now" if running else ""
    return f"{study.name} with its {len(history)} trials{still}, {history.cost:.4g} {study.problem.cost_unit} of work,"


def delete_study(storage: Storage, study: Study) -> int:
    """Deletes the study, then its checkpoints and logs; returns the bytes that are freed."""
    folder = study.settings.get("folder")
    storage.delete_study(study.name)
    return _delete_files(Path(folder)) if folder else 0


def _delete_files(root: Path) -> int:
    """Deletes the folders of the trials and of the stages, and the one they are in if there is nothing else in it."""
    freed = Checkpoints(root).disk_use()
    rmtree(root / FOLDER, ignore_errors=True)
    for folder in root.glob("[0-9]*"):
        if folder.name.isdecimal():
            rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        root.rmdir()
    return freed
