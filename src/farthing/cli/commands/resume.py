"""`farthing resume`"""

import sys
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.options import run_options, storage_option, study_argument

if TYPE_CHECKING:
    from farthing.cli.running import RunOptions


@click.command("resume")
@study_argument
@storage_option
@run_options
def command(study: str | None, **options: Any) -> None:
    """Go on with a study that `farthing run` began.

    It remembers its work, its workers and its budget. Limits are totals over all runs, so a study whose budget is
    spent needs a larger one to continue.

    \b
    Example:  farthing resume digits --seconds 1200
    Next:     farthing show digits, farthing plot digits
    """
    from farthing.cli.running import RunOptions

    sys.exit(resume(study, RunOptions(**options)))


def resume(name: str | None, options: "RunOptions") -> int:
    """Goes on with a study that `farthing run` began; returns the exit code."""
    from farthing.cli.run_plan import stored_plan
    from farthing.cli.running import run_study
    from farthing.cli.storages import address_to_read, opened_study

    address = address_to_read(options.storage)
    with opened_study(name, address, imports=True) as study:
        has_end = study.strategy.has_end
        plan = stored_plan(study).overridden(workers=options.workers, limits=options.limits, has_end=has_end)
        return run_study(study, plan, address=address, options=options)
