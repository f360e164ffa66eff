"""`farthing demo`"""

import sys
from pathlib import Path

import click


@click.command("demo")
@click.argument("what", type=click.Choice(["digits", "online", "population", "pipeline"]), default="digits")
@click.option("--seconds", type=click.FloatRange(min=1), default=25.0, show_default=True, help="How long to tune.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-output"),
    show_default=True,
    help="The folder for the database, the checkpoints and the picture.",
)
def command(what: str, seconds: float, output: Path) -> None:
    """Tune a neural network on handwritten digits, in about a minute.

    Two workers train networks for a few epochs each; the most promising for their cost continue, each from its
    checkpoint, and the best is trained to the end. Run again, it starts a second study beside the first, or continues
    one that was interrupted. `farthing demo online` tunes a classifier while it learns, and validates only when it is
    worth it; `farthing demo population` trains eight networks side by side and learns a schedule; `farthing demo
    pipeline` tunes three stages and computes none of them twice.
    Needs scikit-learn and matplotlib: pip install 'farthing[demo]'.

    \b
    Example:  farthing demo --seconds 60
    Next:     farthing show, farthing run --help
    """
    if what == "online":
        from farthing.cli.demo_online import run_online_demo

        sys.exit(run_online_demo(output))
    if what == "population":
        from farthing.cli.demo_population import run_population_demo

        sys.exit(run_population_demo(output))
    if what == "pipeline":
        from farthing.cli.demo_pipeline import run_pipeline_demo

        sys.exit(run_pipeline_demo(output, seconds=seconds))
    from farthing.cli.demo_digits import run_demo

    sys.exit(run_demo(output, seconds=seconds))
