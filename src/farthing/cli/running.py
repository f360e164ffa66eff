"""Runs and resumes studies for the command line."""

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from farthing.cli.ending import end
from farthing.cli.run_plan import RunPlan, store_plan, stored_plan
from farthing.cli.storages import StorageAddress, address_to_read, address_to_write, opened_study
from farthing.cli.study_file import read_study_file
from farthing.study import Study


@dataclass(frozen=True)
class RunOptions:
    """What the command line says about a run; None where it says nothing."""

    storage: str | None
    workers: int | None
    seconds: float | None
    cost: float | None
    trials: int | None
    inline: bool
    as_json: bool
    quiet: bool

    @property
    def limits(self) -> dict[str, float]:
        given = {"seconds": self.seconds, "cost": self.cost, "trials": self.trials}
        return {name: limit for name, limit in given.items() if limit is not None}


def start(path: Path, options: RunOptions) -> int:
    """Runs the study of a file; returns the exit code."""
    file = read_study_file(path)
    has_end = file.strategy is not None and file.strategy.has_end
    plan = file.plan.overridden(workers=options.workers, limits=options.limits, has_end=has_end)
    address = address_to_write(options.storage, file.storage)
    with closing(file.create_or_continue(address.place)) as study:
        return _run(study, plan, address=address, options=options)


def resume(name: str | None, options: RunOptions) -> int:
    """Goes on with a study that `start` began; returns the exit code."""
    address = address_to_read(options.storage)
    with opened_study(name, address) as study:
        has_end = study.strategy.has_end
        plan = stored_plan(study).overridden(workers=options.workers, limits=options.limits, has_end=has_end)
        return _run(study, plan, address=address, options=options)


@contextmanager
def ending_cleanly_on_sigterm() -> Iterator[None]:
    """Makes SIGTERM what Ctrl-C is: running trials are given back before the program ends."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(study: Study, plan: RunPlan, *, address: StorageAddress, options: RunOptions) -> int:
    store_plan(study, plan)
    with ending_cleanly_on_sigterm():
        stopped = study.run(
            plan.work,
            budget=plan.budget,
            workers=1 if options.inline else plan.workers,
            executor="inline" if options.inline else "processes",
            time_limit=plan.time_limit,
            retries=plan.retries,
            progress=False if options.quiet else None,
            on_interrupt="return",
        )
    return end(study, stopped, address=address, as_json=options.as_json, quiet=options.quiet)
