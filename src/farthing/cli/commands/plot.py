"""`farthing plot`"""

from pathlib import Path

import click

from farthing.cli.options import import_option, storage_option, study_argument
from farthing.plots.kinds import KINDS, PlotKind


@click.command("plot")
@study_argument
@storage_option
@import_option
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="A .png, .pdf or .svg.  [default: STUDY.png]"
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="all",
    show_default=True,
    help="progress: the best value against what was spent. curves: learning curves. fidelities: how far each "
    "configuration was trained. stages: what each stage of a pipeline cost, and what came from the cache. params: the "
    "value against each parameter. model: a model of the study, and how far to trust it.",
)
def command(study: str | None, storage: str | None, imports: bool, output: Path | None, kind: PlotKind) -> None:
    """Draw a study: value against cost, curves, parameters.

    The picture has the best value against what was spent, learning curves, how far each configuration was trained, and
    the value against each parameter.
    Of a pipeline it has what each stage cost and what the cache saved; of an online run what was believed, and where it
    was asked for; of a population a lane for each member, the copies, and the winner's schedule.
    STUDY may be left out where there is only one. Needs matplotlib: pip install 'farthing[plot]'.

    \b
    Example:  farthing plot digits --output digits.png
    Next:     farthing resume digits --seconds 1200, if the best still falls
    """
    from farthing.cli.files import save_figure
    from farthing.cli.storages import address_to_read, opened_study

    with opened_study(study, address_to_read(storage), imports=imports) as found:
        path = output or Path(f"{found.name.replace('/', '-')}.png")
        save_figure(found.plot(kind), path)
    click.echo(f"Wrote {path}")
