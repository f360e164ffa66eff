"""`farthing resume`"""

import sys
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.options import run_options, storage_option, study_argument, work_options

if TYPE_CHECKING:
    from farthing.cli.running import RunOptions


@click.command("resume")
@study_argument
@storage_option
@work_options
@run_options
def command(study: str | None, *, work: str | None, command: str | None, **options: Any) -> None:
    """Continue a study.

    One that `farthing run` began remembers its work, its workers and its budget. For one that a Python program began,
    name the work. Limits are totals over all runs, so a study whose budget is spent needs a larger one to continue.

    \b
    Example:  farthing resume digits --seconds 1200
              farthing resume from_python --work train.py:train --trials 50
    Next:     farthing show digits, farthing plot digits
    """
    from farthing.cli.running import RunOptions

    sys.exit(resume(study, RunOptions(**options), work=work, line=command))


def resume(name: str | None, options: "RunOptions", *, work: str | None = None, line: str | None = None) -> int:
    """Continues a study; returns the exit code."""
    from farthing.cli.run_plan import stored_plan
    from farthing.cli.running import run_study
    from farthing.cli.storages import address_to_read, opened_study

    address = address_to_read(options.storage)
    with opened_study(name, address, imports=True) as study:
        has_end = study.strategy.has_end
        plan = stored_plan(study, work=work, command=line).overridden(
            workers=options.workers, limits=options.limits, has_end=has_end
        )
        return run_study(study, plan, address=address, options=options)
