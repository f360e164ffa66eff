"""Commands between studies and others: `farthing dashboard`, `mcp`, `report`, `plot`, `import` and `export`."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from farthing.cli.options import follow_option, import_option, json_option, storage_option, study_argument
from farthing.errors import InvalidArgument
from farthing.plots import KINDS, PlotKind

if TYPE_CHECKING:
    from farthing.study import Study


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
def dashboard(
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


@click.command("mcp")
@storage_option
@click.option("--most", type=float, metavar="AMOUNT", help="What all studies of agents may cost together.")
@click.option("--http", is_flag=True, help="Serve HTTP on this machine instead of standard input and output.")
@click.option("--port", default=8018, show_default=True, metavar="N", help="Port for --http; 0 takes a free one.")
def mcp(storage: str | None, most: float | None, http: bool, port: int) -> None:
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


@click.command("report")
@study_argument
@storage_option
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: STUDY.html]")
def report(study: str | None, storage: str | None, output: Path | None) -> None:
    """Write a study as one HTML file, with its charts.

    They are those of the dashboard, to mail or to archive. The file asks the network for nothing.

    \b
    Example:  farthing report digits --output digits.html
    Next:     farthing dashboard shows the same, live
    """
    from farthing.cli.storages import address_to_read, opened_study

    with opened_study(study, address_to_read(storage)) as found:
        name = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in found.name)
        target = output or Path(f"{name}.html")
        found.report(target)
    click.echo(f"Wrote {target}, {target.stat().st_size / 1000:.0f} kB.")


@click.command("plot")
@study_argument
@storage_option
@import_option
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="A .png, .pdf or .svg.  [default: STUDY.png]"
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="all",
    show_default=True,
    help="progress: the best value against the cost. curves: learning curves. fidelities: how far each "
    "configuration was trained. stages: the cost of each stage of a pipeline, and its loads. params: the "
    "value against each parameter. model: a model of the study, and how far to trust it. front: several objectives "
    "against each other, and how limits are kept.",
)
@click.option("--of", metavar="VALUE", help="With --kind model and several objectives: which of them.")
def plot(
    study: str | None, storage: str | None, imports: bool, output: Path | None, kind: PlotKind, of: str | None
) -> None:
    """Draw a study: value against cost, curves, parameters.

    The picture has the best value against the cost, learning curves, how far each configuration was trained, and
    the value against each parameter.
    For a pipeline it has the cost of each stage and the savings of the cache; for an online run the model's estimates
    and the measured rounds; for a population a lane for each member, the copies, and the winner's schedule.
    STUDY may be left out if there is only one. Needs matplotlib: pip install 'farthing[plot]'.

    \b
    Example:  farthing plot digits --output digits.png
    Next:     farthing resume digits --seconds 1200, if the best still falls
    """
    from farthing.analysis.one_value import value_meant
    from farthing.cli.files import save_figure
    from farthing.cli.storages import address_to_read, opened_study

    with opened_study(study, address_to_read(storage), imports=imports) as found:
        if kind == "model":
            of = value_meant(found.problem, of, example=f"--of {found.problem.value}")
        path = output or Path(f"{found.name.replace('/', '-')}.png")
        save_figure(found.plot(kind, of=of), path)
    click.echo(f"Wrote {path}")


@click.group("import")
def import_from_others() -> None:
    """Bring a study of another tuner here, with its trials, curves and costs.

    \b
    Example:  farthing import optuna sqlite:///optuna.db --study digits
    Next:     farthing show digits
    """


@import_from_others.command("optuna")
@click.argument("url")
@click.option("--study", required=True, metavar="NAME", help="The study's name in Optuna.")
@click.option("--name", metavar="NAME", help="Its name here.  [default: the same]")
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="NAME",
    help="The name of its value; of several objectives once for each.  [default: value]",
)
@storage_option
@json_option
def import_optuna(
    url: str, study: str, name: str | None, values: tuple[str, ...], storage: str | None, as_json: bool
) -> None:
    """Import the Optuna study NAME from the storage URL.

    Params, intermediate values, and durations as costs. Pruned trials become short runs. Needs the extra
    farthing[optuna].

    \b
    Example:  farthing import optuna sqlite:///optuna.db --study digits
    Next:     farthing show digits
              farthing resume digits --work train.py:train --trials 20
    """
    from farthing.cli.storages import address_to_write

    address = address_to_write(storage, None)
    integration, _ = _optuna()
    imported = integration.import_study(
        url, study_name=study, storage=address.place, name=name, value=values or "value"
    )
    with imported as found:
        form = {"study": found.name, "trials": len(found.trials), "cost": found.history.cost}
        text = f"Imported {len(found.trials)} trials into {found.name!r} in {address}."
        click.echo(json.dumps(form) if as_json else f"{text}\nNext: farthing show {found.name}{address.option}")


def _optuna() -> tuple[Any, Any]:
    """The integration, and Optuna itself, which it needs."""
    integration = import_module("farthing.integrations.optuna")
    optuna = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return integration, optuna


@click.command("export")
@study_argument
@storage_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json"]),
    help="csv has a row for each trial, json everything.  [default: as the file's name ends, else csv]",
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="The file to write; else standard output."
)
@click.option("--optuna", metavar="URL", help="Write an Optuna study of the same name into this storage instead.")
def export(
    study: str | None,
    storage: str | None,
    form: Literal["csv", "json"] | None,
    output: Path | None,
    optuna: str | None,
) -> None:
    """Write a study's trials as CSV or JSON, or as an Optuna study.

    STUDY may be left out if there is only one.

    \b
    Example:  farthing export digits --output digits.csv
              farthing export digits --format json | jq '.trials | length'
              farthing export digits --optuna sqlite:///optuna.db
    Next:     pandas.read_csv("digits.csv")
    """
    from farthing.cli.files import writing
    from farthing.cli.storages import address_to_read, opened_study

    if optuna is not None and (form is not None or output is not None):
        raise click.UsageError("--optuna writes a storage of Optuna's, so it goes with neither --format nor --output.")
    with opened_study(study, address_to_read(storage)) as found:
        if optuna is not None:
            click.echo(f"Wrote the Optuna study {_exported(found, optuna)!r} to {optuna}", err=True)
            return
        if output is None:
            found.export(sys.stdout, format=form)
            return
        with writing(output):
            found.export(output, format=form)
    click.echo(f"Wrote {output}", err=True)


def _exported(study: "Study", url: str) -> str:
    """Writes the study into the Optuna storage with that URL, under its own name, and returns that."""
    integration, optuna = _optuna()
    try:
        exported = integration.export_study(study, url)
    except optuna.exceptions.DuplicatedStudyError as error:
        raise InvalidArgument(
            f"An exported study must be new in Optuna, got {study.name!r}, which is there. Export to another storage."
        ) from error
    return str(exported.study_name)
