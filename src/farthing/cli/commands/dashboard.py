"""`farthing dashboard`"""

import sys
from pathlib import Path

import click

from farthing.cli.options import follow_option, storage_option


@click.command("dashboard")
@storage_option
@follow_option
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option("--port", default=8017, show_default=True, metavar="N", help="Port to listen on; 0 takes a free one.")
@click.option("--base-path", default="", metavar="/PATH", help="Where a proxy serves it.")
@click.option("--allow-changes", is_flag=True, help="Let pages stop, enqueue, annotate, raise budgets and verify.")
@click.option("--expose", is_flag=True, help="Listen for other machines too; needs TLS or a proxy.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Certificate for TLS.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Its private key.")
@click.option("--behind-proxy", metavar="ORIGIN", help="The proxy that encrypts, such as https://host.example.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="A further name that it is reached by.")
@click.option("--browser/--no-browser", default=None, help="Open the page.  [default: from a terminal]")
def command(
    storage: str | None,
    follows: bool,
    host: str,
    port: int,
    base_path: str,
    allow_changes: bool,
    expose: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: str | None,
    names: tuple[str, ...],
    browser: bool | None,
) -> None:
    """Serve a page about studies and their cost, live.

    It shows what runs, what it has cost and will cost, and whether going on is worth it. It changes nothing unless
    --allow-changes is given. The address that it prints has a secret token: whoever has it may look.

    \b
    Example:  farthing dashboard --storage study.db
    Next:     farthing report STUDY writes the same as one file
    """
    from farthing.cli.storages import address_to_read, opened_storage
    from farthing.dashboard.server import Listening, require_server, serve

    require_server()
    listening = Listening(host, port, base_path.rstrip("/"), expose, tls_cert, tls_key, behind_proxy, names)
    address = address_to_read(storage)

    def say(url: str) -> None:
        click.echo(f"Dashboard of {address}: {url}")
        sys.stdout.flush()
        if browser or (browser is None and sys.stdout.isatty()):
            click.launch(url)

    with opened_storage(address, patience=0.0) as opened:  # a page waits for nobody: it says who is away
        serve(opened, listening, place=str(address), may_change=allow_changes, follows=follows, on_ready=say)
