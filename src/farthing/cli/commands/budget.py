"""`farthing budget`"""

import json
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
def command(
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
        form = _form(found)
    click.echo(json.dumps(form) if as_json else _text(form))


def _form(study: "Study") -> "dict[str, Json]":
    from farthing.session import session_of

    budget = study.budget
    left = budget.remaining(study.history, seconds=session_of(study).records.seconds_run()) if budget else None
    limits = budget.to_json() if budget else {}
    rest = {name: max(0.0, getattr(left, name)) for name in (budget.amounts if budget else ())}
    return {"study": study.name, "unit": study.problem.cost_unit, "limits": limits, "left": rest}


def _text(form: "dict[str, Json]") -> str:
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
