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
    help="progress: the best value against the cost. curves: learning curves. fidelities: how far each "
    "configuration was trained. stages: the cost of each stage of a pipeline, and its loads. params: the "
    "value against each parameter. model: a model of the study, and how far to trust it. front: several objectives "
    "against each other, and how limits are kept.",
)
@click.option("--of", metavar="VALUE", help="With --kind model and several objectives: which of them.")
def command(
    study: str | None, storage: str | None, imports: bool, output: Path | None, kind: PlotKind, of: str | None
) -> None:
    """Draw a study: value against cost, curves, parameters.

    The picture has the best value against the cost, learning curves, how far each configuration was trained, and
    the value against each parameter.
    For a pipeline it has the cost of each stage and the savings of the cache; for an online run the model's estimates
    and the measured rounds; for a population a lane for each member, the copies, and the winner's schedule.
    STUDY may be left out if there is only one. Needs matplotlib: pip install 'farthing[plot]'.

    \b
    Example:  farthing plot digits --output digits.png
    Next:     farthing resume digits --seconds 1200, if the best still falls
    """
    from farthing.analysis.one_value import value_meant
    from farthing.cli.files import save_figure
    from farthing.cli.storages import address_to_read, opened_study

    with opened_study(study, address_to_read(storage), imports=imports) as found:
        if kind == "model":
            of = value_meant(found.problem, of, example=f"--of {found.problem.value}")
        path = output or Path(f"{found.name.replace('/', '-')}.png")
        save_figure(found.plot(kind, of=of), path)
    click.echo(f"Wrote {path}")
