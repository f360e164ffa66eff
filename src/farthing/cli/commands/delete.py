"""`farthing delete`"""

import contextlib
from dataclasses import dataclass
from pathlib import Path
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
        deleted = delete_study(place, found)
    click.echo(f"Deleted {study}; {deleted}")


@dataclass(frozen=True)
class Deleted:
    """What became of a study's files: bytes that were freed, or the folder that was left as it is."""

    freed: int = 0
    left: Path | None = None

    def __str__(self) -> str:
        from farthing.study.views import short_bytes

        if self.left is None:
            return f"{short_bytes(self.freed)} of files are freed."
        return f"{str(self.left)!r} does not carry its mark, so nothing in it was deleted. Look at it yourself."


def losses(study: "Study") -> str:
    """What would be deleted, in words."""
    from farthing.trials import State

    history = study.history
    running = sum(trial.state is State.RUNNING for trial in history)
    still = f", {running} of them running now" if running else ""
    return f"{study.name} with its {len(history)} trials{still}, {history.cost:.4g} {study.problem.cost_unit} of work,"


def delete_study(storage: "Storage", study: "Study") -> Deleted:
    """Deletes the study, then its checkpoints and logs, where their folder carries its mark."""
    from farthing.files.durable import names_in

    files = study.checkpoints
    root, is_ours = files.root, files.is_ours
    storage.delete_study(study.name)
    if is_ours:
        return Deleted(freed=_delete_files(root))
    return Deleted(left=root) if names_in(root) else Deleted()


def _delete_files(root: Path) -> int:
    """Deletes the folders of the trials and of the stages, and the one they are in if there is nothing else in it."""
    from farthing.caching.stage_cache import FOLDER
    from farthing.execution.folder_mark import MARK
    from farthing.files.durable import names_in, remove, size_of

    freed = size_of(root)
    for name in names_in(root):
        if name.isdecimal() or name == FOLDER:
            remove(root / name)
    (root / MARK).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        root.rmdir()
    return freed
