"""`farthing resume`"""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.options import resume_options, storage_option, study_argument, work_options

if TYPE_CHECKING:
    from farthing.cli.running import RunOptions
    from farthing.study import Study


@click.command("resume")
@study_argument
@storage_option
@work_options
@resume_options
def command(study: str | None, *, work: str | None, command: str | None, **options: Any) -> None:
    """Continue a study.

    One that `farthing run` began remembers its work, its workers and its budget. For one that a Python program began,
    name the work. Limits are what may be spent from now on: --seconds 20 goes on for twenty more seconds. Without any,
    the study goes on with the rest of its budget.

    \b
    Example:  farthing resume digits --seconds 600
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
        before = stored_plan(study, work=work, command=line)
        limits, changes = _in_all(study, options.limits, before.limits)
        plan = before.overridden(workers=options.workers, limits=limits, has_end=has_end)
        if changes and not options.quiet:
            click.echo("\n".join(changes), err=True)
        return run_study(study, plan, address=address, options=options)


def _in_all(study: "Study", more: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The limits of the whole study that leave so much more than was spent, and what is said about them."""
    from farthing.costs import Budget
    from farthing.session import session_of

    spent = Budget.spent(study.history, seconds=session_of(study).records.seconds_run())
    amounts = {name: more[name] for name in spent if name in more}
    if amounts:
        Budget(**amounts)  # refuses what is no limit
    limits, changes = dict(more), list[str]()
    for name, amount in amounts.items():
        limits[name] = spent[name] + amount
        was = f"; it was {before[name]:g}" if name in before else ""
        changes.append(f"{name} {limits[name]:.4g} in all: {spent[name]:.4g} spent and {amount:g} more{was}")
    return limits, changes
