"""`farthing logs`"""

from contextlib import suppress

import click

from farthing.cli.options import follow_option, storage_option


@click.command("logs")
@click.argument("study")
@click.argument("trial", type=int)
@click.option("-f", "--live", is_flag=True, help="Go on printing until the trial has ended.")
@storage_option
@follow_option
def command(study: str, trial: int, live: bool, storage: str | None, follows: bool) -> None:
    """Print the output of a trial, also while it runs.

    It is read from the study's folder, so that it is seen on every machine that sees the folder. In an object store the
    end of the log of a running trial appears every ten seconds, and the whole log when the trial has ended. Ctrl-C ends
    the printing, not the trial.

    \b
    Example:  farthing logs digits 12 -f
    Next:     farthing show digits --trial 12, farthing watch digits
    """
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.cli.trial_view import log_pieces

    with opened_study(study, address_to_read(storage)) as found, suppress(KeyboardInterrupt):
        for piece in log_pieces(found, trial, follows=follows, is_live=live):
            click.echo(piece, nl=False)
