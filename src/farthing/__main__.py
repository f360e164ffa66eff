"""`python -m farthing` does what `farthing` does."""

from farthing.cli import main

main()
