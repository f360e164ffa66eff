"""`farthing export`"""

import sys
from pathlib import Path
from typing import Literal

import click

from farthing.cli.options import storage_option, study_argument


@click.command("export")
@study_argument
@storage_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json"]),
    help="csv has a row for each trial, json everything.  [default: as the file's name ends, else csv]",
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="The file to write; else standard output."
)
@click.option("--optuna", metavar="URL", help="Write an Optuna study of the same name into this storage instead.")
def command(
    study: str | None,
    storage: str | None,
    form: Literal["csv", "json"] | None,
    output: Path | None,
    optuna: str | None,
) -> None:
    """Write a study's trials as CSV or JSON, or as an Optuna study.

    STUDY may be left out if there is only one.

    \b
    Example:  farthing export digits --output digits.csv
              farthing export digits --format json | jq '.trials | length'
              farthing export digits --optuna sqlite:///optuna.db
    Next:     pandas.read_csv("digits.csv")
    """
    from farthing.cli.files import writing
    from farthing.cli.storages import address_to_read, opened_study

    if optuna is not None and (form is not None or output is not None):
        raise click.UsageError("--optuna writes a storage of Optuna's, so it goes with neither --format nor --output.")
    with opened_study(study, address_to_read(storage)) as found:
        if optuna is not None:
            from farthing.integrations.optuna_command import export_to

            click.echo(f"Wrote the Optuna study {export_to(found, optuna)!r} to {optuna}", err=True)
            return
        if output is None:
            found.export(sys.stdout, format=form)
            return
        with writing(output):
            found.export(output, format=form)
    click.echo(f"Wrote {output}", err=True)
