"""`farthing stop`"""

import json

import click

from farthing.cli.options import json_option, storage_option, study_argument


@click.command("stop")
@study_argument
@storage_option
@json_option
def command(study: str | None, storage: str | None, as_json: bool) -> None:
    """Ask every run of a study, on any machine, to end.

    They start no trial after two seconds, and end once their running trials have ended. Nothing is lost.

    \b
    Example:  farthing stop digits
    Next:     farthing watch digits, farthing resume digits
    """
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.trials import State

    with opened_study(study, address_to_read(storage)) as found:
        found.request_stop()
        running = sum(trial.state is State.RUNNING for trial in found.history.in_flight)
        name = found.name
    text = f"{name} was asked to stop; {running} trials run, and are finished first."
    click.echo(json.dumps({"study": name, "running": running}) if as_json else text)
