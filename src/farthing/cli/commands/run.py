"""`farthing run`"""

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.options import run_options

if TYPE_CHECKING:
    from farthing.cli.running import RunOptions


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--storage",
    metavar="URL|PATH",
    help="The database of the results: a .db file, sqlite:///PATH or postgresql://…  [default: as the file says, else "
    "$FARTHING_STORAGE, else farthing.db in this folder]",
)
@click.option(
    "--learn-from",
    multiple=True,
    metavar="STUDY",
    help="An earlier study whose best configuration is tried first: its name, ADDRESS#NAME in another database, or "
    "all. May be given several times; replaces what the file says.",
)
@run_options
def command(file: Path, learn_from: tuple[str, ...], **options: Any) -> None:
    """Run the study that FILE declares, until its budget is spent.

    \b
    [study]
    name = "digits"
    minimize = "error"
    [budget]
    seconds = 600
    [space]
    lr = {float = [1e-5, 1e-1], log = true}
    [work]
    command = "python train.py --lr {lr}"     # prints {"error": 0.13}

    Paths in [work] start at the file's folder; results go to the folder you are in. A study that was run before
    continues: its budget counts everything spent so far. Ctrl-C ends a run without losing anything.

    \b
    Example:  farthing run study.toml --workers 2 --seconds 600
    Next:     farthing show, farthing plot, farthing resume
    """
    from farthing.cli.running import RunOptions

    sys.exit(start(file, RunOptions(**options), learn_from=learn_from))


def start(path: Path, options: "RunOptions", *, learn_from: tuple[str, ...] = ()) -> int:
    """Runs the study of a file; returns the exit code."""
    from farthing.cli.running import run_study
    from farthing.cli.storages import address_to_write
    from farthing.cli.study_file import read_study_file

    file = read_study_file(path).learning_from(learn_from)
    has_end = file.strategy is not None and file.strategy.has_end
    plan = file.plan.overridden(workers=options.workers, limits=options.limits, has_end=has_end)
    address = address_to_write(options.storage, file.storage)
    with closing(file.create_or_continue(address.place)) as study:
        return run_study(study, plan, address=address, options=options)
