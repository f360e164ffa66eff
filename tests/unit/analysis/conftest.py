"""Views are made of the same study that the command line is tested with."""

from tests.unit.cli.conftest import digits, farthing, folder

__all__ = ["digits", "farthing", "folder"]
