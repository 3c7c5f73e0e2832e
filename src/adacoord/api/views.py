"""What results look like: pictures (matplotlib), frames (pandas), tables in notebooks (HTML).

Nothing here is imported before it is asked for; what is not installed is named in a sentence.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .monitor import History
    from .path import Path

#: Coefficient paths drawn at the most: the largest ones; others would be a grey band.
MOST_LINES = 200


def _need(module: str, what: str, install: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"{what} needs {module}; install it with {install}") from None


def _axes(ax: Any, what: str) -> Any:
    if ax is not None:
        return ax
    pyplot = _need("matplotlib.pyplot", what, 'pip install "adacoord[plot]"')
    return pyplot.figure(figsize=(6.0, 4.0), layout="constrained").subplots()


def history_frame(history: History) -> Any:
    """A pandas frame, one row for each gap check."""
    pandas = _need("pandas", "History.to_frame", "pip install pandas")
    return pandas.DataFrame({name: getattr(history, name) for name in history.columns})


def plot_history(history: History, label: str, against: str, ax: Any) -> Any:
    """The certified relative gap, on a logarithmic axis, against passes or seconds."""
    if against not in ("passes", "seconds", "operations"):
        raise ValueError(
            f'against={against!r}: the gap is drawn against "passes", "seconds" or "operations"'
        )
    ax = _axes(ax, "Result.plot")
    x, gap = np.asarray(getattr(history, against)), np.asarray(history.relative_gap)
    seen = (gap > 0.0) & np.isfinite(gap)
    ax.plot(x[seen], gap[seen], marker="o", markersize=3, linewidth=1.4, label=label)
    ax.set(yscale="log", xlabel=against, ylabel="certified relative gap")
    switched = history.switched
    if switched is not None and against == "passes":
        ax.axvline(switched.passes, color="0.6", linewidth=0.8, linestyle=":")
        ax.annotate(f" {switched.after}", (switched.passes, gap[seen].max(initial=1.0)))
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_path(path: Path, ax: Any) -> Any:
    """Coefficients against the penalty that changes, strong penalties on the left."""
    ax = _axes(ax, "Path.plot")
    name = "l1" if np.ptp(path.l1) > 0.0 or np.ptp(path.l2) == 0.0 else "l2"
    x = getattr(path, name)
    lines = path.coefs.reshape(len(path), -1)
    size = np.abs(lines).max(axis=0)
    largest = np.argsort(-size, kind="stable")[:MOST_LINES]
    ax.plot(x, lines[:, largest[size[largest] > 0.0]], linewidth=1.0)
    ax.set(xlabel=name, ylabel="coefficient", xscale="log" if x.min() > 0.0 else "linear")
    ax.invert_xaxis()
    worst = float(np.max(path.relative_gap))
    ax.set_title(
        f"{len(path)} points, relative gaps up to {worst:.1e}"
        if np.isfinite(worst)
        else f"{len(path)} points",
        fontsize="medium",
    )
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def table(title: str, rows: dict[str, Any]) -> str:
    """A small HTML table that takes the colours of the page it stands in."""
    style = "text-align:left;font-weight:normal;opacity:.7;padding-right:1em"
    cells = "".join(
        f'<tr><th style="{style}">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(_shown(value))}</td></tr>'
        for name, value in rows.items()
    )
    caption = f'<caption style="text-align:left">{escape(title)}</caption>'
    return f"<table>{caption}<tbody>{cells}</tbody></table>"


def _shown(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return str(value)
