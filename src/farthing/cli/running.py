"""A run of the command line: its options, the run itself, and its end: the best, the bill, and the next commands."""

import json
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from farthing.analysis.best import Best
from farthing.analysis.text import best_lines, found_best, front_text, short_number
from farthing.cli.run_plan import RunPlan, store_plan
from farthing.cli.storages import StorageAddress
from farthing.cli.study_file import make_trackers
from farthing.running.stopping import Stopped, StopReason
from farthing.running.verification import verified
from farthing.session import session_of
from farthing.study import Study
from farthing.trials import Json

EXIT_CODE_INTERRUPTED = 130


@contextmanager
def ending_cleanly_on_sigterm() -> Iterator[None]:
    """Makes SIGTERM what Ctrl-C is: running trials are given back before the program ends."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def end(study: Study, stopped: Stopped, *, address: StorageAddress, as_json: bool, quiet: bool) -> int:
    """Prints how a run ended; returns its exit code."""
    best, is_interrupted = found_best(session_of(study)), stopped.reason is StopReason.INTERRUPTED
    if as_json:
        click.echo(json.dumps(ending_form(study, best, stopped)))
    elif not is_interrupted and not quiet:
        click.echo(ending_text(study, best, stopped, address=address))
    if is_interrupted:
        click.echo(f"Go on with: farthing resume {shlex.quote(study.name)}{address.option}", err=True)
        return EXIT_CODE_INTERRUPTED
    return 0 if best else 1


def ending_form(study: Study, best: Best | None, stopped: Stopped) -> dict[str, Json]:
    return {
        "study": study.name,
        "reason": str(stopped),
        "best": best.to_json() if best else None,
        "ledger": study.ledger.to_json(),
    }


def ending_text(study: Study, best: Best | None, stopped: Stopped, *, address: StorageAddress) -> str:
    found = best_text(study, best) if best else nothing_text(study)
    bill, following = str(study.ledger), next_steps(study, best, address=address)
    parts = [f"{study.name} ended: {stopped}.", found, front_text(best), bill, following]
    return "\n\n".join(part for part in parts if part)


def best_text(study: Study, best: Best) -> str:
    """The best configuration, a line for each parameter."""
    width = max(len(name) for name in best.params)
    lines = [f"  {name:<{width}}  {short_number(value)}" for name, value in best.params.items()]
    return "\n".join([*best_lines(session_of(study), best), *lines])


def is_verified(study: Study, best: Best) -> bool:
    """Whether what is recommended was trained to full fidelity, or is about to be."""
    return verified(study.history, best.params) is not None


def nothing_text(study: Study) -> str:
    """Why there is no best, as far as the trials tell."""
    failures = [trial.failure.reason for trial in study.trials if trial.failure]
    last = f" The last one failed: {failures[-1]}" if failures else ""
    if study.history.learned is not None and not failures:
        return best_text(study, study.best)
    return f"No trial of {len(study.trials)} is done, so there is no best yet.{last}"


def next_steps(study: Study, best: Best | None, *, address: StorageAddress) -> str:
    """Commands worth trying next, ready to be copied."""
    named = f"{shlex.quote(study.name)}{address.option}"
    steps = {
        f"farthing show {named}": "every trial and its learning curve",
        f"farthing plot {named}": "a picture of it",
        f"farthing resume {named} --seconds N": "continue, for N more seconds",
    }
    if best and not is_verified(study, best):
        steps[f"farthing verify {named}"] = "train the best to full fidelity"
    width = max(map(len, steps))
    return "\n".join(["Next:", *(f"  {command:<{width}}  {what}" for command, what in steps.items())])


@dataclass(frozen=True)
class RunOptions:
    """The command line's options for a run; None where there is none."""

    storage: str | None
    workers: int | None
    seconds: float | None
    cost: float | None
    trials: int | None
    inline: bool
    as_json: bool
    quiet: bool
    keep_going: bool = False
    harmless_change: bool = False
    patience: float | None = None
    hard: bool | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that were named."""
        given = {name: getattr(self, name) for name in ("seconds", "cost", "trials", "patience", "hard")}
        return {name: limit for name, limit in given.items() if limit is not None}


def run_study(study: Study, plan: RunPlan, *, address: StorageAddress, options: RunOptions) -> int:
    """Runs it as it is planned and prints how it ended; returns the exit code."""
    store_plan(study, plan)
    with ending_cleanly_on_sigterm():
        stopped = study.run(
            plan.work,
            budget=plan.budget,
            workers=1 if options.inline else plan.workers,
            executor="inline" if options.inline else "processes",
            time_limit=plan.time_limit,
            resources=plan.resources or None,
            retries=plan.retries,
            progress=False if options.quiet else None,
            on_interrupt="return",
            keep_going=options.keep_going,
            harmless_change=options.harmless_change,
            trackers=make_trackers(plan.trackers, folder=plan.work.folder),
        )
    return end(study, stopped, address=address, as_json=options.as_json, quiet=options.quiet)
