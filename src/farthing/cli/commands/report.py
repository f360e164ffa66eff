"""`farthing report`"""

from pathlib import Path

import click

from farthing.cli.options import storage_option, study_argument


@click.command("report")
@study_argument
@storage_option
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: STUDY.html]")
def command(study: str | None, storage: str | None, output: Path | None) -> None:
    """Write a study as one HTML file, with its charts.

    They are those of the dashboard, to mail or to archive. The file asks the network for nothing.

    \b
    Example:  farthing report digits --output digits.html
    Next:     farthing dashboard shows the same, live
    """
    from farthing.cli.storages import address_to_read, opened_study

    with opened_study(study, address_to_read(storage)) as found:
        name = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in found.name)
        target = output or Path(f"{name}.html")
        found.report(target)
    click.echo(f"Wrote {target}, {target.stat().st_size / 1000:.0f} kB.")
