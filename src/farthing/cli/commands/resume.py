"""`farthing resume`"""

import sys
from typing import Any

import click

from farthing.cli.options import run_options, storage_option, study_argument


@click.command()
@study_argument
@storage_option
@run_options
def resume(study: str | None, **options: Any) -> None:
    """Go on with a study that `farthing run` began.

    It remembers its work, its workers and its budget. Limits are totals over all runs, so a study whose budget is
    spent needs a larger one to go on.

    \b
    Example:  farthing resume digits --seconds 1200
    Next:     farthing show digits, farthing plot digits
    """
    from farthing.cli.running import RunOptions
    from farthing.cli.running import resume as go_on

    sys.exit(go_on(study, RunOptions(**options)))
