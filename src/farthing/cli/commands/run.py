"""`farthing run`"""

import sys
from pathlib import Path
from typing import Any

import click

from farthing.cli.options import run_options


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--storage",
    metavar="URL|PATH",
    help="Where results are kept: a .db file, sqlite:///PATH or postgresql://…  [default: as the file says, else "
    "$FARTHING_STORAGE, else farthing.db in this folder]",
)
@run_options
def run(file: Path, **options: Any) -> None:
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
    goes on: its budget counts everything spent so far. Ctrl-C ends a run without losing anything.

    \b
    Example:  farthing run study.toml --workers 2 --seconds 600
    Next:     farthing show, farthing plot, farthing resume
    """
    from farthing.cli.running import RunOptions, start

    sys.exit(start(file, RunOptions(**options)))
