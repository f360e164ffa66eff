"""`farthing delete`"""

import click

from farthing.cli.options import storage_option


@click.command()
@click.argument("study")
@storage_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(study: str, storage: str | None, yes: bool) -> None:
    """Delete a study for good, with its trials, checkpoints and logs.

    \b
    Example:  farthing delete digits
    Next:     farthing list
    """
    from farthing.cli.deleting import delete_study, losses
    from farthing.cli.storages import address_to_read, opened_storage, opened_study

    address = address_to_read(storage)
    with opened_study(study, address) as found, opened_storage(address) as place:
        if not yes:
            click.confirm(f"Delete {losses(found)} for good?", abort=True)
        deleted = delete_study(place, found)
    click.echo(f"Deleted {study}; {deleted}")
