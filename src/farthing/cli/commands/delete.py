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
    from farthing.cli.deleting import losses
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.study import delete_study

    address = address_to_read(storage)
    with opened_study(study, address) as found:
        if not yes:
            click.confirm(f"Delete {losses(found)} for good?", abort=True)
    freed = delete_study(study, address.place)
    click.echo(f"Deleted {study}; {freed / 1e6:.1f} MB of files are freed.")
