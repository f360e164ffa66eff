"""The command line. Nothing heavy is imported before a command needs it, so that `farthing --help` answers at once."""

import io
import signal
import sys
from types import FrameType


def main() -> None:
    """Runs the program `farthing`. A worker heeds SIGTERM from here on: its imports take a good part of a second."""
    if "worker" in sys.argv[1:3]:
        signal.signal(signal.SIGTERM, _end)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # what a terminal cannot write is spelled out, as in a log
    from farthing.cli.app import farthing

    farthing.main(prog_name="farthing")


def _end(number: int, _: FrameType | None) -> None:
    sys.stderr.write("Ended by a signal, before it took a trial.\n")
    sys.exit(128 + number)
