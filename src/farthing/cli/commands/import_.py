"""`farthing import optuna`"""

import json

import click

from farthing.cli.options import json_option, storage_option


@click.group("import")
def command() -> None:
    """Bring a study of another tuner here, with its trials, curves and costs.

    \b
    Example:  farthing import optuna sqlite:///optuna.db --study digits
    Next:     farthing show digits
    """


@command.command("optuna")
@click.argument("url")
@click.option("--study", required=True, metavar="NAME", help="The study's name in Optuna.")
@click.option("--name", metavar="NAME", help="Its name here.  [default: the same]")
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="NAME",
    help="The name of its value; of several objectives once for each.  [default: value]",
)
@storage_option
@json_option
def import_optuna(
    url: str, study: str, name: str | None, values: tuple[str, ...], storage: str | None, as_json: bool
) -> None:
    """Import the Optuna study NAME from the storage URL.

    Params, intermediate values, and durations as costs. Pruned trials become short runs. Needs the extra
    farthing[optuna].

    \b
    Example:  farthing import optuna sqlite:///optuna.db --study digits
    Next:     farthing show digits
              farthing resume digits --work train.py:train --trials 20
    """
    from farthing.cli.storages import address_to_write
    from farthing.integrations.optuna_command import import_from

    address = address_to_write(storage, None)
    with import_from(url, study_name=study, storage=address.place, name=name, values=values) as found:
        form = {"study": found.name, "trials": len(found.trials), "cost": found.history.cost}
        text = f"Imported {len(found.trials)} trials into {found.name!r} in {address}."
        click.echo(json.dumps(form) if as_json else f"{text}\nNext: farthing show {found.name}{address.option}")
