"""`farthing verify`"""

from typing import Any

import click

from farthing.cli.options import storage_option, study_argument, verify_options


@click.command()
@study_argument
@storage_option
@verify_options
def verify(study: str | None, **options: Any) -> None:
    """Train the recommended configuration to full fidelity.

    What a study recommends may have been predicted from a short run. This goes on with it, from its checkpoint where
    it left one, and records it as a trial like any other. What was trained to the end already is not trained again.
    STUDY must have been begun by `farthing run`; the limits count all that it has spent.

    \b
    Example:  farthing verify digits
    Next:     farthing best digits, farthing show digits --trial N
    """
    from farthing.cli.running import RunOptions
    from farthing.cli.verifying import verify as train

    said = RunOptions(workers=None, trials=None, **options)
    text = train(study, said)
    if said.as_json or not said.quiet:
        click.echo(text)
