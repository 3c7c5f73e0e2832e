"""What ``adacoord convert`` shows: a progress bar, and what was made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..io.store import Store


@contextmanager
def progress_bar(
    console: Console, quiet: bool
) -> Iterator[Callable[[int, float | None], None] | None]:
    """What ``convert`` calls to have a bar on a terminal; None elsewhere."""
    if quiet or not console.is_terminal:
        yield None
        return
    columns = BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def update(rows: int, done: float | None) -> None:
            total = None if done is None else 1.0
            bar.update(task, description=f"{rows} rows", total=total, completed=done or 0.0)

        yield update


def describe_store(path: Path, store: Store) -> str:
    """One line on a store."""
    n, d = store.shape
    size = sum(entry.stat().st_size for entry in os.scandir(path))
    blocks = store.bounds.size - 1
    kind = f"sparse with {store.nnz} entries" if store.is_sparse else "dense"
    return (
        f"{path}: {n} rows, {d} columns, {kind}, {store.dtype}, {blocks} "
        f"block{'s' * (blocks > 1)}, {size / 1e6:.3g} MB"
    )
