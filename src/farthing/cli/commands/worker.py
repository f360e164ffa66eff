"""`farthing worker`"""

import sys
from typing import Any

import click

from farthing.cli.options import storage_option, work_options


@click.command("worker")
@click.argument("study", metavar="STUDY|FILE.toml")
@storage_option
@work_options
@click.option("--declared-cost", metavar="FILE.py:FUNCTION", help="The declared cost of a study that a program began.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Number of trials to run at once.")
@click.option("--until-idle", is_flag=True, help="End when the study has nothing left to run.")
@click.option("--max-trials", type=click.IntRange(min=1), metavar="N", help="Start at most this many trials here.")
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), metavar="H", help="Start no trial after H hours.")
@click.option("--price", "prices", multiple=True, metavar="NAME=AMOUNT", help="What a resource costs here.")
@click.option("--spot", is_flag=True, help="Show what is paid here as spot on the bill, and the rest as on-demand.")
@click.option("--keep-going", is_flag=True, help="Go on even if the first trials all fail in the same way.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(study: str, **options: Any) -> None:
    """Run trials of a study beside other workers, on any machine.

    Start as many as you like, under any scheduler: each claims trials from the storage, and one of them at a time
    suggests for all. The work comes from the study file, or is named by --work or --command, and is looked up in this
    folder. A study that was begun by a program with a declared cost needs --declared-cost too: without it, this worker
    runs what others suggest.

    Without --until-idle it waits for more work when the budget is spent. SIGTERM, which schedulers send before they
    take a machine away, gives the running trial back at once, for another worker; it ends with code 143.

    In a study with prices, --price gives those of this machine, for the same time as the study's. If the study file
    does not say what a trial holds, it holds one of each resource that is priced here.

    \b
    Example:  farthing worker study.toml --storage postgresql://host/db --until-idle
              farthing worker digits --work train.py:train --hours 3.5
              farthing worker digits --work train.py:train --price gpu=0.8 --spot
    Next:     farthing watch, farthing budget, farthing stop
    """
    from farthing.cli.working import WorkerOptions, run_worker

    sys.exit(run_worker(study, WorkerOptions(**options)))
