"""`farthing mcp`"""

import click

from farthing.cli.options import storage_option


@click.command("mcp")
@storage_option
@click.option("--most", type=float, metavar="AMOUNT", help="What all studies of agents may cost together.")
@click.option("--http", is_flag=True, help="Serve HTTP on this machine instead of standard input and output.")
@click.option("--port", default=8018, show_default=True, metavar="N", help="Port for --http; 0 takes a free one.")
def command(storage: str | None, most: float | None, http: bool, port: int) -> None:
    """Let agents run studies: a server of the Model Context Protocol.

    Agents create studies with a space and a hard budget, ask what to try, tell what came out, and read the bill. They
    cannot raise a budget, and nothing that they send is executed. With --http, whoever asks needs the token:
    $FARTHING_MCP_TOKEN, or one that is printed.

    \b
    Example:  claude mcp add farthing -- farthing mcp --storage agents.db --most 20
    Next:     farthing dashboard --storage agents.db, to look on
    """
    from farthing.cli.storages import address_to_write, opened_storage
    from farthing.dashboard.server import token_to_use
    from farthing.integrations.mcp import Desk, serve_http, server_of

    address = address_to_write(storage, None)
    with opened_storage(address) as opened:
        server = server_of(Desk(opened, most))
        if not http:
            server.run("stdio")
            return
        token = token_to_use("FARTHING_MCP_TOKEN")

        def say(url: str) -> None:
            click.echo(f"Studies of {address} for agents: {url}\nAuthorization: Bearer {token}", err=True)

        serve_http(server, port=port, token=token, on_ready=say)
