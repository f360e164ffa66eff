"""The options that several commands have."""

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

study_argument = click.argument("study", required=False)

storage_option = click.option(
    "--storage",
    metavar="URL|PATH",
    help="The database: a .db file, sqlite:///PATH or postgresql://…  [default: $FARTHING_STORAGE, "
    "else the only Farthing database in this folder]",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program to read.")

import_option = click.option(
    "--import",
    "imports",
    is_flag=True,
    help="Import the strategy of your own that the database names, and ask it. Only for a database that you trust.",
)

follow_option = click.option(
    "--follow",
    "follows",
    is_flag=True,
    help="Ask the object store that the database names for the study's files. Only for a database that you trust.",
)

_workers = click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Number of trials to run at once.")
_seconds = click.option("--seconds", type=float, metavar="LIMIT", help="Most seconds of wall clock, over all runs.")
_cost = click.option("--cost", type=float, metavar="LIMIT", help="Most cost of all trials, in the study's unit.")
_trials = click.option("--trials", type=int, metavar="LIMIT", help="Most configurations to try, over all runs.")
_patience = click.option(
    "--patience", type=float, metavar="COST", help="Stop once this much cost has brought nothing better."
)


def _refuse_budget(context: click.Context, option: click.Parameter, given: str | None) -> None:
    if given is not None:
        raise click.UsageError(
            f"A budget names its unit, got --budget {given}. "
            f"Write --trials {given}, --cost {given} or --seconds {given}."
        )


_budget = click.option("--budget", hidden=True, expose_value=False, callback=_refuse_budget)
_hard = click.option(
    "--hard/--soft", default=None, help="Whether running trials are ended too when a limit is reached."
)
_inline = click.option("--inline", is_flag=True, help="Run trials in this process, one at a time, for debugging.")
_keep_going = click.option(
    "--keep-going", is_flag=True, help="Spend the budget even if the first trials all fail in the same way."
)
_harmless = click.option(
    "--harmless-change", is_flag=True, help="Of a pipeline: the last change of its code left values as they were."
)
_quiet = click.option("--quiet", is_flag=True, help="Print nothing but errors (and the JSON, with --json).")


_work = click.option("--work", metavar="FILE.py:FUNCTION", help="The work, of a study that a Python program began.")
_command = click.option("--command", metavar="LINE", help="The same for a program: a command line with {fields}.")


def work_options(command: Command) -> Command:
    """Options that name the work of a study whose storage does not."""
    return _with(command, _work, _command)


def run_options(command: Command) -> Command:
    """Options of `run`; the limits replace those of the study."""
    limits = (_seconds, _cost, _trials, _patience, _hard, _budget)
    return _with(command, _workers, *limits, _inline, _keep_going, _harmless, json_option, _quiet)


def resume_options(command: Command) -> Command:
    """Options of `resume`; the limits are added to what was spent."""
    limits = (
        click.option("--seconds", type=float, metavar="MORE", help="Seconds of wall clock to go on for."),
        click.option("--cost", type=float, metavar="MORE", help="Cost to spend from now on, in the study's unit."),
        click.option("--trials", type=int, metavar="MORE", help="Configurations to try from now on."),
        *(_patience, _hard, _budget),
    )
    return _with(command, _workers, *limits, _inline, _keep_going, _harmless, json_option, _quiet)


def limit_options(command: Command) -> Command:
    """The limits of a budget."""
    return _with(command, _seconds, _cost, _trials, _patience, _hard)


_measured = click.option("--measured", is_flag=True, help="By measured values instead of what the model recommends.")
_top = click.option("--top", type=click.IntRange(min=1), metavar="N", help="Number of configurations to train.")
_repeats = click.option("--repeats", type=click.IntRange(min=1), metavar="N", help="Full trainings of each, in all.")


def verify_options(command: Command) -> Command:
    """The options for a run of the trials that verify."""
    limits = (_seconds, _cost, _hard)
    return _with(command, _measured, _top, _repeats, _workers, *limits, _inline, json_option, _quiet)


def _with(command: Command, *options: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
