"""``python -m adacoord`` is the command line."""

from .cli import main

main()
