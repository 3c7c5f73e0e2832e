"""Where the commands print, and how they end."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from ..io.standard import STANDARD

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

CLOSED_PIPE, BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 1, 2, 3, 130


def say(text: str, console: Console | None = None) -> None:
    """A line as it is, however long."""
    (console or out).print(text, markup=False, soft_wrap=True)


def console_beside(json: bool, **files: Path | None) -> Console:
    """Where text for people goes: standard output, unless a file is written there.

    ``files`` are options of the command line, and so named in the error.
    """
    taken = [option for option, path in files.items() if str(path) == STANDARD]
    taken += ["json"] * json
    if len(taken) > 1:
        raise ValueError(
            f"--{taken[0]} and --{taken[1]} both go to standard output; name a file for one"
        )
    return err if taken else out
