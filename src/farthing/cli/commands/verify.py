"""`farthing verify`"""

import json
from typing import TYPE_CHECKING, Any

import click

from farthing.cli.options import storage_option, study_argument, verify_options, work_options

if TYPE_CHECKING:
    from farthing.analysis.best import Best
    from farthing.cli.running import RunOptions
    from farthing.study import Study
    from farthing.trials import Json, Trial


@click.command("verify")
@study_argument
@storage_option
@work_options
@verify_options
def command(
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
    from farthing.cli.running import RunOptions

    said = RunOptions(trials=None, **options)
    text = verify(study, said, measured=measured, top=top, repeats=repeats, work=work, line=command)
    if said.as_json or not said.quiet:
        click.echo(text)


def verify(
    name: str | None,
    options: "RunOptions",
    *,
    measured: bool = False,
    top: int | None = None,
    repeats: int | None = None,
    work: str | None = None,
    line: str | None = None,
) -> str:
    """Trains the recommendation of a study; returns the result as text."""
    from farthing.cli.ending import ending_cleanly_on_sigterm
    from farthing.cli.run_plan import stored_plan
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.costs import Budget
    from farthing.running.verification import Verification
    from farthing.trials import Trial

    limits = options.limits
    with opened_study(name, address_to_read(options.storage), imports=True) as study:
        plan = stored_plan(study, work=work, command=line)
        best = study.best
        with ending_cleanly_on_sigterm():
            found: Trial | Verification = study.verify(
                plan.work,
                measured=measured,
                top=top,
                repeats=repeats,
                workers=1 if options.inline else options.workers or 1,
                budget=Budget(**limits) if limits else None,
                executor="inline" if options.inline else "processes",
                time_limit=None if options.inline else plan.time_limit,
                retries=plan.retries,
                progress=False if options.quiet else None,
            )
        if isinstance(found, Verification):
            return json.dumps(found.to_json()) if options.as_json else repr(found)
        return json.dumps(_form(study, best, found)) if options.as_json else _text(study, best, found)


def _form(study: "Study", best: "Best", trial: "Trial") -> "dict[str, Json]":
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


def _text(study: "Study", best: "Best", trial: "Trial") -> str:
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
