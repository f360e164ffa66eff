"""Common to `run`, `resume` and `verify`: the options of a run, and the run itself."""

from dataclasses import dataclass
from typing import Any

from farthing.cli.ending import end, ending_cleanly_on_sigterm
from farthing.cli.run_plan import RunPlan, store_plan
from farthing.cli.storages import StorageAddress
from farthing.cli.study_file import make_trackers
from farthing.study import Study


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
