"""`farthing check`"""

import json
import sys

import click

from farthing.cli.options import json_option, storage_option


@click.command("check")
@storage_option
@json_option
def command(storage: str | None, as_json: bool) -> None:
    """Check that a storage is intact.

    Checks the database itself, and whether the trials in it agree with each other. Ends with exit code 1 if anything
    is wrong.

    \b
    Example:  farthing check --storage digits.db
    Next:     restore a copy of the database if it is damaged
    """
    from farthing.cli.storages import address_to_read, opened_storage

    address = address_to_read(storage)
    with opened_storage(address) as found:
        problems = found.check()
    if as_json:
        click.echo(json.dumps({"storage": str(address), "problems": problems}))
    else:
        click.echo("\n".join(problems) or f"{address} is intact.")
    sys.exit(1 if problems else 0)
