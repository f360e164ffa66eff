"""Commands that ask something of a study, whoever runs it: `farthing budget`, `stop` and `enqueue`."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from farthing.cli.options import json_option, limit_options, storage_option, study_argument

if TYPE_CHECKING:
    from farthing.study import Study
    from farthing.trials import Json


@click.command("budget")
@study_argument
@storage_option
@limit_options
@json_option
def budget(
    study: str | None,
    storage: str | None,
    seconds: float | None,
    cost: float | None,
    trials: int | None,
    patience: float | None,
    hard: bool | None,
    as_json: bool,
) -> None:
    """Show or change the budget of a study, also while it runs.

    Limits are totals over all runs. Those that are named change, the others stay. Every run of the study, on any
    machine, takes the change up within two seconds; a run that has ended goes on with `farthing resume`.

    \b
    Example:  farthing budget digits --cost 50
    Next:     farthing watch digits; farthing resume digits, unless a run is going
    """
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.costs import Budget

    named = {"seconds": seconds, "cost": cost, "trials": trials, "patience": patience, "hard": hard}
    changed = {name: limit for name, limit in named.items() if limit is not None}
    with opened_study(study, address_to_read(storage)) as found:
        if changed:
            before = {} if found.budget is None else found.budget.to_json()
            found.set_budget(Budget(**{**before, **changed}))
        form = _budget_form(found)
    click.echo(json.dumps(form) if as_json else _budget_text(form))


def _budget_form(study: "Study") -> "dict[str, Json]":
    from farthing.session import session_of

    budget = study.budget
    left = budget.remaining(study.history, seconds=session_of(study).records.seconds_run()) if budget else None
    limits = budget.to_json() if budget else {}
    rest = {name: max(0.0, getattr(left, name)) for name in (budget.amounts if budget else ())}
    return {"study": study.name, "unit": study.problem.cost_unit, "limits": limits, "left": rest}


def _budget_text(form: "dict[str, Json]") -> str:
    if not form["limits"]:
        return f"{form['study']} has no budget yet. Set one: --cost, --seconds or --trials."
    units = {"cost": f" {form['unit']}", "seconds": " of wall clock", "trials": ""}
    limits = form["limits"]
    lines = [f"{name:<8} {limits[name]:g}{units[name]}, {left:.4g} left" for name, left in form["left"].items()]
    if "patience" in limits:
        lines.append(f"patience {limits['patience']:g} {form['unit']} without a better value")
    if worth := limits.get("worth"):
        lines.append(f"worth    {worth['value']:g} of the value is worth {worth['per']:g} {form['unit']}")
    if limits.get("hard"):
        lines.append("hard     running trials are ended when a limit is reached")
    return "\n".join(lines)


@click.command("stop")
@study_argument
@storage_option
@json_option
def stop(study: str | None, storage: str | None, as_json: bool) -> None:
    """Ask every run of a study, on any machine, to end.

    They start no trial after two seconds, and end once their running trials have ended. Nothing is lost.

    \b
    Example:  farthing stop digits
    Next:     farthing watch digits, farthing resume digits
    """
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.trials import State

    with opened_study(study, address_to_read(storage)) as found:
        found.request_stop()
        running = sum(trial.state is State.RUNNING for trial in found.history.in_flight)
        name = found.name
    text = f"{name} was asked to stop; {running} trials run, and are finished first."
    click.echo(json.dumps({"study": name, "running": running}) if as_json else text)


@click.command("enqueue")
@click.argument("study")
@click.argument("params", nargs=-1, metavar="NAME=VALUE...")
@storage_option
@json_option
def enqueue(study: str, params: Sequence[str], storage: str | None, as_json: bool) -> None:
    """Put a configuration in line, to be run next.

    Name some or all of the parameters; the strategy proposes the others. A fidelity is named like a parameter. Values
    are read as JSON where they can be, and as text otherwise. The next free worker of STUDY takes it.

    \b
    Example:  farthing enqueue digits lr=0.01 activation=relu
    Next:     farthing resume digits, unless a run is going
    """
    from farthing.analysis.text import short_params
    from farthing.cli.storages import address_to_read, opened_study

    with opened_study(study, address_to_read(storage), imports=True) as found:
        given = dict(map(_pair, params))
        fidelity = {name: given.pop(name) for name in found.space.fidelities if name in given}
        trial = found.enqueue(given, fidelity=fidelity)
    form = {"trial": trial.number, "params": dict(trial.params), "fidelity": dict(trial.fidelity)}
    text = f"Trial {trial.number} waits: {short_params({**trial.params, **trial.fidelity})}"
    click.echo(json.dumps(form) if as_json else text)


def _pair(text: str) -> "tuple[str, Json]":
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"A parameter must be written NAME=VALUE, got {text!r}. Write for example lr=0.01.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
