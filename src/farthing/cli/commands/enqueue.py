"""`farthing enqueue`"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from farthing.cli.options import json_option, storage_option

if TYPE_CHECKING:
    from farthing.trials import Json


@click.command("enqueue")
@click.argument("study")
@click.argument("params", nargs=-1, metavar="NAME=VALUE...")
@storage_option
@json_option
def command(study: str, params: Sequence[str], storage: str | None, as_json: bool) -> None:
    """Put a configuration in line, to be run next.

    Name some or all of the parameters; the strategy proposes the others. A fidelity is named like a parameter. Values
    are read as JSON where they can be, and as text otherwise. The next free worker of STUDY takes it.

    \b
    Example:  farthing enqueue digits lr=0.01 activation=relu
    Next:     farthing resume digits, unless a run is going
    """
    from farthing.analysis.text import short_params
    from farthing.cli.storages import address_to_read, opened_study

    with opened_study(study, address_to_read(storage), imports=True) as found:
        given = dict(map(_pair, params))
        fidelity = {name: given.pop(name) for name in found.space.fidelities if name in given}
        trial = found.enqueue(given, fidelity=fidelity)
    form = {"trial": trial.number, "params": dict(trial.params), "fidelity": dict(trial.fidelity)}
    text = f"Trial {trial.number} waits: {short_params({**trial.params, **trial.fidelity})}"
    click.echo(json.dumps(form) if as_json else text)


def _pair(text: str) -> "tuple[str, Json]":
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"A parameter must be written NAME=VALUE, got {text!r}. Write for example lr=0.01.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
