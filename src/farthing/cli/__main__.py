"""`python -m farthing.cli` does what `farthing` does."""

from farthing.cli import main

main()
