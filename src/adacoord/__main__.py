"""``python -m adacoord`` is the command line."""

from .command.cli import main

main()
