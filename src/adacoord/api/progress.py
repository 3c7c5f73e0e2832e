"""The line a verbose solve shows: passes, gap, rate, and the time it will take to ``tol``."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..kernels.compiling import on_compilation
from .monitor import Progress


class ProgressLine:
    """A context manager whose ``update`` is the monitor's ``show``.

    On a terminal one line is rewritten in place; elsewhere only the last state is printed.
    """

    def __init__(self, solver: str, tol: float, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.solver, self.tol = solver, tol
        self._seen: list[tuple[float, float, int]] = []  # log10 gap, seconds, passes
        self._text = Text(f"{solver}  starting")
        self._live: Live | None = None
        self._stack = ExitStack()

    def __enter__(self) -> ProgressLine:
        self._stack.enter_context(
            on_compilation(lambda: self.console.print("Compiling kernels (the first run only)."))
        )
        if self.console.is_terminal:
            self._live = self._stack.enter_context(
                Live(self._text, console=self.console, refresh_per_second=8, transient=True)
            )
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.__exit__(*exc)
        self.console.print(self._text)

    def update(self, progress: Progress) -> None:
        """Show the state of a gap check."""
        gap = progress.relative_gap
        if 0.0 < gap < math.inf:
            self._seen.append((math.log10(gap), progress.seconds, progress.passes))
        switched = progress.switched
        self._text = Text(
            (f"{switched.before} -> {switched.after}" if switched else self.solver)
            + f"  pass {progress.passes}  "
            + (
                "no certificate"
                if math.isnan(gap)
                else f"gap {gap:.2e} -> {self.tol:.0e}{self._forecast(gap)}"
            )
            + f"  {progress.seconds:.1f} s"
        )
        if self._live:
            self._live.update(self._text)

    def _forecast(self, gap: float) -> str:
        """Rate and time to go, from the later half of what was seen (the rate settles)."""
        if gap <= self.tol:
            return "  converged"
        half = self._seen[max(len(self._seen) // 2 - 1, 0) :]
        if len(half) < 2 or half[-1][0] >= half[0][0] or self.tol <= 0.0:
            return ""
        digits = half[0][0] - half[-1][0]
        seconds, passes = half[-1][1] - half[0][1], half[-1][2] - half[0][2]
        missing = half[-1][0] - math.log10(self.tol)
        return (
            f"  {passes / digits:.3g} passes a digit"
            f"  about {missing * seconds / digits:.0f} s to go"
        )
