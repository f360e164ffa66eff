"""Commands that run trials: `farthing demo`, `run`, `resume`, `worker` and `verify`."""

import json
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.options import (
    resume_options,
    run_options,
    storage_option,
    study_argument,
    verify_options,
    work_options,
)

if TYPE_CHECKING:
    from farthing.analysis.best import Best
    from farthing.study import Study
    from farthing.trials import Json, Trial

EXAMPLES = {"online": "2_online_stream", "population": "3_population_digits", "pipeline": "4_pipeline_digits"}
"""The programs in the repository that show what other demos once did."""


@click.command("demo")
@click.argument("what", required=False)
@click.option("--seconds", type=click.FloatRange(min=1), default=25.0, show_default=True, help="How long to tune.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    show_default=True,
    help="The folder for the database, the checkpoints and the picture.",
)
def demo(what: str | None, seconds: float, output: Path) -> None:
    """Tune a neural network on handwritten digits, in about a minute.

    Two workers train networks for a few epochs each; the most promising for their cost continue, each from its
    checkpoint, and the best is trained to the end. Run again, it starts a second study beside the first, or continues
    one that was interrupted. Needs scikit-learn and matplotlib: pip install 'farthing[demo]'.

    \b
    Example:  farthing demo --seconds 60
    Next:     farthing show, farthing run --help
    """
    if what in EXAMPLES:
        raise click.UsageError(f"The demo of this is a program now, got {what!r}. Run examples/{EXAMPLES[what]}.py.")
    if what not in (None, "digits"):
        raise click.UsageError(f"There is one demo, got {what!r}. Write farthing demo.")
    from farthing.cli.demo_digits import run_demo

    sys.exit(run_demo(output, seconds=seconds))


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--storage",
    metavar="URL|PATH",
    help="The database of the results: a .db file, sqlite:///PATH or postgresql://…  [default: as the file says, else "
    "$FARTHING_STORAGE, else farthing.db in this folder]",
)
@click.option(
    "--learn-from",
    multiple=True,
    metavar="STUDY",
    help="An earlier study whose best configuration is tried first: its name, ADDRESS#NAME in another database, or "
    "all. May be given several times; replaces what the file says.",
)
@run_options
def run(file: Path, learn_from: tuple[str, ...], **options: Any) -> None:
    """Run the study that FILE declares, until its budget is spent.

    \b
    [study]
    name = "digits"
    minimize = "error"
    [budget]
    seconds = 600
    [space]
    lr = {float = [1e-5, 1e-1], log = true}
    [work]
    command = "python train.py --lr {lr}"     # prints {"error": 0.13}

    Paths in [work] start at the file's folder; results go to the folder you are in. A study that was run before
    continues: its budget counts everything spent so far. Ctrl-C ends a run without losing anything.

    \b
    Example:  farthing run study.toml --workers 2 --seconds 600
    Next:     farthing show, farthing plot, farthing resume
    """
    from farthing.cli.running import RunOptions, run_study
    from farthing.cli.storages import address_to_write
    from farthing.cli.study_file import read_study_file

    said, declared = RunOptions(**options), read_study_file(file).learning_from(learn_from)
    has_end = declared.strategy is not None and declared.strategy.has_end
    plan = declared.plan.overridden(workers=said.workers, limits=said.limits, has_end=has_end)
    address = address_to_write(said.storage, declared.storage)
    with closing(declared.create_or_continue(address.place)) as study:
        sys.exit(run_study(study, plan, address=address, options=said))


@click.command("resume")
@study_argument
@storage_option
@work_options
@resume_options
def resume(study: str | None, *, work: str | None, command: str | None, **options: Any) -> None:
    """Continue a study.

    One that `farthing run` began remembers its work, its workers and its budget. For one that a Python program began,
    name the work. Limits are what may be spent from now on: --seconds 20 goes on for twenty more seconds. Without any,
    the study goes on with the rest of its budget.

    \b
    Example:  farthing resume digits --seconds 600
              farthing resume from_python --work train.py:train --trials 50
    Next:     farthing show digits, farthing plot digits
    """
    from farthing.cli.run_plan import stored_plan
    from farthing.cli.running import RunOptions, run_study
    from farthing.cli.storages import address_to_read, opened_study

    said = RunOptions(**options)
    address = address_to_read(said.storage)
    with opened_study(study, address, imports=True) as found:
        has_end = found.strategy.has_end
        before = stored_plan(found, work=work, command=command)
        limits, changes = _in_all(found, said.limits, before.limits)
        plan = before.overridden(workers=said.workers, limits=limits, has_end=has_end)
        if changes and not said.quiet:
            click.echo("\n".join(changes), err=True)
        sys.exit(run_study(found, plan, address=address, options=said))


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
def worker(study: str, **options: Any) -> None:
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


@click.command("verify")
@study_argument
@storage_option
@work_options
@verify_options
def verify(
    study: str | None,
    *,
    work: str | None,
    command: str | None,
    measured: bool,
    top: int | None,
    repeats: int | None,
    **options: Any,
) -> None:
    """Train the recommended configuration to full fidelity.

    A recommendation may have been predicted from a short run. This continues that run, from its checkpoint if
    it left one, and records it as a trial like any other. A configuration trained to the end is not trained again,
    unless --repeats asks for more. With --top or --repeats, prints the mean and the spread of each configuration.
    For a study that a Python program began, name the work. The limits count all that the study has spent.

    \b
    Example:  farthing verify digits
              farthing verify digits --top 3 --repeats 2
    Next:     farthing best digits, farthing show digits --trial N
    """
    from farthing.cli.run_plan import stored_plan
    from farthing.cli.running import RunOptions, ending_cleanly_on_sigterm
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.costs import Budget
    from farthing.running.verification import Verification
    from farthing.trials import Trial

    said = RunOptions(trials=None, **options)
    with opened_study(study, address_to_read(said.storage), imports=True) as found:
        plan = stored_plan(found, work=work, command=command)
        best = found.best
        with ending_cleanly_on_sigterm():
            result: Trial | Verification = found.verify(
                plan.work,
                measured=measured,
                top=top,
                repeats=repeats,
                workers=1 if said.inline else said.workers or 1,
                budget=Budget(**said.limits) if said.limits else None,
                executor="inline" if said.inline else "processes",
                time_limit=None if said.inline else plan.time_limit,
                retries=plan.retries,
                progress=False if said.quiet else None,
            )
        if isinstance(result, Verification):
            text = json.dumps(result.to_json()) if said.as_json else repr(result)
        elif said.as_json:
            text = json.dumps(_verified_form(found, best, result))
        else:
            text = _verified_text(found, best, result)
    if said.as_json or not said.quiet:
        click.echo(text)


def _verified_form(study: "Study", best: "Best", trial: "Trial") -> "dict[str, Json]":
    return {
        "study": study.name,
        "trial": trial.number,
        "value": trial.value,
        "cost": trial.cost,
        "params": dict(trial.params),
        "predicted": best.to_json()["predicted"],
        "files": _files(study, trial),
        "best": study.best.to_json(),
    }


def _verified_text(study: "Study", best: "Best", trial: "Trial") -> str:
    from farthing.analysis.text import short_params, short_prediction

    predicted = f", predicted {short_prediction(best.predicted)}" if best.predicted else ""
    at = f" at {short_params(trial.fidelity)}" if trial.fidelity else ""
    lines = [
        f"{study.problem.value} {trial.value:.6g}{at} (trial {trial.number}{predicted})",
        short_params(trial.params),
    ]
    if files := _files(study, trial):
        lines.append(f"Its files: {files}")
    now = study.best
    if now.trial is not None and now.params != trial.params:
        lines.append(f"Another configuration is recommended now, that of trial {now.trial.number}: farthing best")
    return "\n".join(lines)


def _files(study: "Study", trial: "Trial") -> str | None:
    return str(study.checkpoints.path(trial.checkpoint)) if trial.checkpoint else None
