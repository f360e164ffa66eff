"""A worker: a process that claims and runs trials of a study until it is told to end."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import click

from farthing.cli.file_work import declared_cost
from farthing.cli.run_plan import SETTING, RunPlan, store_plan, stored_plan
from farthing.cli.storages import address_to_read, address_to_write, opened_study
from farthing.cli.study_file import read_study_file
from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.running.stopping import Limits, Stopped, StopReason
from farthing.session import session_of
from farthing.study import Study, run_as_worker
from farthing.validation import refuse_unknown


@dataclass(frozen=True)
class WorkerOptions:
    """The command line's options; None where there is none."""

    storage: str | None
    work: str | None
    command: str | None
    declared_cost: str | None
    workers: int | None
    until_idle: bool
    max_trials: int | None
    hours: float | None
    prices: tuple[str, ...]
    spot: bool
    keep_going: bool
    quiet: bool


class Terminated(KeyboardInterrupt):
    """A signal asked this process to end; running trials are given back on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


def run_worker(name: str, options: WorkerOptions) -> int:
    """Works on the study until it is to end; returns the exit code."""
    with _ending_on_signals(), ExitStack() as opened:
        try:
            study, plan, budget = _found(name, options, opened)
            if not options.quiet:
                click.echo(f"{study.name}: this worker runs trials of {study.strategy!r}.")
            stopped = _run(study, plan, budget, options)
        except Terminated as signalled:
            click.echo("Ended by a signal; its trials were given back.", err=True)
            return signalled.exit_code
        if not options.quiet:
            click.echo(f"{study.name}: this worker ended: {stopped}.")
        return 1 if stopped.reason is StopReason.WORK_FAILS else 0


def _run(study: Study, plan: RunPlan, budget: Budget | None, options: WorkerOptions) -> Stopped:
    limits = Limits.of(
        None, plan.time_limit, retries=plan.retries, strategy=study.strategy, keep_going=options.keep_going
    )
    prices = dict(map(_price, options.prices))
    resources = plan.resources or dict.fromkeys(prices, 1.0)
    refuse_unknown(prices, resources, what="A worker's prices, of resources that a trial holds,", error=InvalidArgument)
    return run_as_worker(
        study,
        plan.work,
        budget=budget,
        workers=options.workers or 1,
        resources=resources or None,
        prices=prices,
        label="spot" if options.spot else None,
        limits=limits.of_a_process(
            most_trials=options.max_trials,
            seconds=None if options.hours is None else 3600.0 * options.hours,
            waits_for_more=not options.until_idle,
        ),
        progress=False if options.quiet else None,
    )


def _price(given: str) -> tuple[str, float]:
    name, _, amount = given.partition("=")
    with suppress(ValueError):
        return name, float(amount)
    raise InvalidArgument(f"A price must be NAME=AMOUNT, got {given!r}. Write for example --price gpu=0.8.")


def _found(name: str, options: WorkerOptions, opened: ExitStack) -> tuple[Study, RunPlan, Budget | None]:
    """The study, how to run it, and the budget that its file gives."""
    if name.endswith(".toml"):
        file = read_study_file(Path(name))
        study = file.create_or_continue(address_to_write(options.storage, file.storage).place)
        opened.callback(study.close)
        if SETTING not in session_of(study).settings:
            store_plan(study, file.plan)
        return study, file.plan, file.plan.budget
    cost = None if options.declared_cost is None else declared_cost(options.declared_cost, folder=Path.cwd())
    study = opened.enter_context(opened_study(name, address_to_read(options.storage), imports=True, cost=cost))
    return study, stored_plan(study, work=options.work, command=options.command), None


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Raises `Terminated` at the first SIGTERM or Ctrl-C. Others are ignored: trials are being given back."""
    came: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        came.append(number)
        if len(came) == 1:
            raise Terminated(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
