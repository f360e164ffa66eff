"""`farthing watch`"""

import sys

import click

from farthing.cli.options import storage_option, study_argument


@click.command("watch")
@study_argument
@storage_option
@click.option("--every", default=2.0, show_default=True, type=click.FloatRange(min=0.1), metavar="SECONDS")
@click.option("--once", is_flag=True, help="Print how it stands now, and end.")
def command(study: str | None, storage: str | None, every: float, once: bool) -> None:
    """Watch a study as it goes, from any machine that reaches its storage.

    Shows the best of the whole study and every trial that runs, of all processes on all machines. Ctrl-C ends the
    watching, not the study. STUDY may be left out if there is only one.

    \b
    Example:  farthing watch digits --storage postgresql://me@host/tuning
    Next:     farthing show digits
    """
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.cli.watch_view import follow, standing_text

    with opened_study(study, address_to_read(storage)) as found:
        if once:
            click.echo(standing_text(found))
            return
        try:
            follow(found, every=every, is_terminal=sys.stdout.isatty())
        except KeyboardInterrupt:
            click.echo("", err=True)
