"""`farthing list`"""

import click

from farthing.cli.options import json_option, storage_option


@click.command("list")
@storage_option
@json_option
def list_studies(storage: str | None, as_json: bool) -> None:
    """List the studies of a storage, with their best values and costs.

    \b
    Example:  farthing list
              farthing list --storage postgresql://me@host/tuning --json
    Next:     farthing show STUDY
    """
    from farthing.cli.listing import listing_json, listing_text
    from farthing.cli.storages import address_to_read, opened_storage

    with opened_storage(address_to_read(storage)) as found:
        summaries = found.list_studies()
    click.echo(listing_json(summaries) if as_json else listing_text(summaries))
