"""The program `farthing`: its commands, and what becomes of their errors."""

from importlib import import_module
from typing import Any

import click

from farthing import __version__
from farthing.errors import FarthingError

COMMANDS = {
    "demo": "Tune a neural network on handwritten digits, in about a minute.",
    "run": "Run the study that FILE declares, until its budget is spent.",
    "resume": "Continue a study.",
    "worker": "Run trials of a study beside other workers, on any machine.",
    "budget": "Show or change the budget of a study, also while it runs.",
    "stop": "Ask every run of a study, on any machine, to end.",
    "enqueue": "Put a configuration in line, to be run next.",
    "list": "List the studies of a storage, with their best values and costs.",
    "watch": "Watch a study as it goes, from any machine that reaches its storage.",
    "show": "Show a study: its best trials, learning curves and bill.",
    "logs": "Print the output of a trial, also while it runs.",
    "best": "Print the best configuration found so far.",
    "verify": "Train the recommended configuration to full fidelity.",
    "dashboard": "Serve a page about studies and their cost, live.",
    "mcp": "Let agents run studies: a server of the Model Context Protocol.",
    "report": "Write a study as one HTML file, with its charts.",
    "plot": "Draw a study: value against cost, curves, parameters.",
    "import": "Bring a study of another tuner here, with its trials, curves and costs.",
    "export": "Write a study's trials as CSV or JSON, or as an Optuna study.",
    "cache": "List, verify and prune the kept outputs of a pipeline's stages.",
    "check": "Check that a storage is intact.",
    "delete": "Delete a study for good, with its trials, checkpoints and logs.",
}
"""In the order of a study's life."""

PLACES = {
    "runs": ("demo", "run", "resume", "worker", "verify"),
    "requests": ("budget", "stop", "enqueue"),
    "views": ("list", "watch", "show", "logs", "best"),
    "exchange": ("dashboard", "mcp", "report", "plot", "import", "export"),
    "upkeep": ("cache", "check", "delete"),
}
"""The modules of the commands, each of which is imported when one of its commands is called."""


class Interrupted(click.ClickException):
    """Ended by Ctrl-C or SIGTERM, with the exit code that shells give for it."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("Interrupted. All stored results are safe.")


class Program(click.Group):
    """Knows its commands without importing them, and says errors in one line instead of a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for place, names in PLACES.items():
            if cmd_name in names:
                there = vars(import_module(f"farthing.cli.commands.{place}")).values()
                return next(one for one in there if isinstance(one, click.Command) and one.name == cmd_name)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.params["debug"]:
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except FarthingError as error:
            raise click.ClickException(_in_one_line(error)) from error
        except KeyboardInterrupt:
            raise Interrupted from None
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            raise click.ClickException(_fault(error)) from error


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _fault(error: Exception) -> str:
    return (
        f"A command must end with a result or a reason, got {type(error).__name__}: {_in_one_line(error)}. "
        "This is a fault of Farthing: run `farthing --debug …` for the traceback and report it."
    )


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="farthing")
def farthing(debug: bool) -> None:
    """Tune expensive systems and count the cost.

    \b
    A first look, in about a minute:   farthing demo
    Tune a program of your own:        farthing run study.toml
    See the results:                   farthing show

    Every command explains itself: farthing COMMAND --help.
    """
