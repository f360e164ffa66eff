"""The program `farthing`: its commands, and what becomes of their errors."""

from typing import Any

import click

from farthing import __version__
from farthing.cli.commands.best import best
from farthing.cli.commands.check import check
from farthing.cli.commands.delete import delete
from farthing.cli.commands.demo import demo
from farthing.cli.commands.export import export
from farthing.cli.commands.list import list_studies
from farthing.cli.commands.plot import plot
from farthing.cli.commands.resume import resume
from farthing.cli.commands.run import run
from farthing.cli.commands.show import show
from farthing.cli.commands.verify import verify
from farthing.errors import FarthingError


class Interrupted(click.ClickException):
    """Ended by Ctrl-C or SIGTERM, with the exit code that shells give for it."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("Interrupted. What was stored is safe.")


class Program(click.Group):
    """Lists its commands in the order of a study's life, and says errors in one line instead of a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

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
    """Tune expensive systems and count what it costs.

    \b
    A first look, in about a minute:   farthing demo
    Tune a program of your own:        farthing run study.toml
    See what came of it:               farthing show

    Every command explains itself: farthing COMMAND --help.
    """


for command in (demo, run, resume, list_studies, show, best, verify, plot, export, check, delete):
    farthing.add_command(command)
