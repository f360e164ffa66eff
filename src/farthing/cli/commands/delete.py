"""`farthing delete`"""

import contextlib
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import click

from farthing.cli.options import storage_option

if TYPE_CHECKING:
    from farthing.storage import Storage
    from farthing.study import Study


@click.command("delete")
@click.argument("study")
@storage_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(study: str, storage: str | None, yes: bool) -> None:
    """Delete a study for good, with its trials, checkpoints and logs.

    \b
    Example:  farthing delete digits
    Next:     farthing list
    """
    from farthing.cli.storages import address_to_read, opened_storage, opened_study

    address = address_to_read(storage)
    with opened_study(study, address) as found, opened_storage(address) as place:
        if not yes:
            click.confirm(f"Delete {losses(found)} for good?", abort=True)
        freed = delete_study(place, found)
    click.echo(f"Deleted {study}; {freed / 1e6:.1f} MB of files are freed.")


def losses(study: "Study") -> str:
    """What would be deleted, in words."""
    from farthing.trials import State

    history = study.history
    running = sum(trial.state is State.RUNNING for trial in history)
    still = f", {running} of them running now" if running else ""
    return f"{study.name} with its {len(history)} trials{still}, {history.cost:.4g} {study.problem.cost_unit} of work,"


def delete_study(storage: "Storage", study: "Study") -> int:
    """Deletes the study, then its checkpoints and logs; returns the bytes that are freed."""
    folder = study.settings.get("folder")
    storage.delete_study(study.name)
    return _delete_files(Path(folder)) if folder else 0


def _delete_files(root: Path) -> int:
    """Deletes the folders of the trials and of the stages, and the one they are in if there is nothing else in it."""
    from farthing.caching.stage_cache import FOLDER
    from farthing.execution import Checkpoints

    freed = Checkpoints(root).disk_use()
    rmtree(root / FOLDER, ignore_errors=True)
    for folder in root.glob("[0-9]*"):
        if folder.name.isdecimal():
            rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        root.rmdir()
    return freed
