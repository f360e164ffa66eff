"""`farthing best`"""

import json

import click

from farthing.cli.options import import_option, json_option, storage_option, study_argument


@click.command("best")
@study_argument
@storage_option
@import_option
@json_option
def command(study: str | None, storage: str | None, imports: bool, as_json: bool) -> None:
    """Print the best configuration found so far.

    STUDY may be left out if there is only one.

    \b
    Example:  farthing best digits
              farthing best digits --json | jq .params
    Next:     farthing plot digits
    """
    from farthing.analysis.text import found_best, front_text
    from farthing.cli.ending import best_text
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.session import session_of

    with opened_study(study, address_to_read(storage), imports=imports) as found:
        result = found_best(session_of(found)) or found.best
        text = [best_text(found, result), front_text(result)]
        click.echo(json.dumps(result.to_json()) if as_json else "\n\n".join(part for part in text if part))
