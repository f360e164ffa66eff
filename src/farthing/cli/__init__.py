"""The command line. Nothing heavy is imported before a command needs it, so that `farthing --help` answers at once."""


def main() -> None:
    """Runs the program `farthing`."""
    from farthing.cli.app import farthing

    farthing.main(prog_name="farthing")
