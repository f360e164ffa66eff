"""`farthing demo`"""

import sys
from pathlib import Path

import click

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
def command(what: str | None, seconds: float, output: Path) -> None:
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
