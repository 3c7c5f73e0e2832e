"""Panels of curves as small SVG files, by matplotlib (the extra ``plot``)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..report.plots import COLOURS, DASHES
from .entry import Curve, Panel

#: A curve is thinned to so many points: more are nothing to the eye.
POINTS = 60
#: Colours belong to methods, the same in every figure; those that never meet may share one.
_COLOUR = {
    "SPDC": 0,
    "SDCA": 1,
    "SAG": 2,
    "AFG": 3,
    "L-BFGS": 4,
    "ASDCA": 5,
    "AdaSPDC": 3,
    "weighted SPDC": 4,
    "AIS": 0,
    "LIS": 1,
    "US": 6,
    "θ_t": 0,
    "θ": 1,
    "ρ_t": 0,
}


def draw(rows: list[list[Panel]], path: Path) -> None:
    """Write the panels, laid out as they are given; the ending of ``path`` says of which kind."""
    import matplotlib as mpl

    # the same bytes each time, text as text: small files that diff well
    small: dict[Any, Any] = {
        "font.size": 8,
        "font.sans-serif": ["DejaVu Sans"],
        "svg.fonttype": "none",
        "svg.hashsalt": path.stem,
    }
    with mpl.rc_context(small):
        _draw(rows, path)
    if path.suffix == ".svg":
        path.write_text(compact(path.read_text("utf-8")), "utf-8")


def compact(text: str) -> str:
    """The same picture in about half the bytes: coordinates to a tenth of a point, styles named
    once, no comments, no indentation, no names of groups.
    """
    text = re.sub(r' (d|x|y|transform)="[^"]*"', _rounded, text)
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    styles = Counter(re.findall(r' style="([^"]*)"', text))
    names = {style: f"s{k}" for k, (style, count) in enumerate(styles.most_common()) if count > 2}
    text = re.sub(
        r' style="([^"]*)"', lambda m: f' class="{names[m[1]]}"' if m[1] in names else m[0], text
    )
    sheet = "".join(f".{name}{{{style}}}" for style, name in names.items())
    text = text.replace("</style>", f"{sheet}</style>", 1)
    return re.sub(r"\s*\n\s*", "\n", text)


def _rounded(match: re.Match) -> str:
    return re.sub(r"(\.\d)\d+", r"\1", match[0]).replace("\n", "")


def _draw(rows: list[list[Panel]], path: Path) -> None:
    from matplotlib.figure import Figure

    wide = max(len(row) for row in rows)
    figure = Figure(figsize=(3.0 * wide + 0.6, 2.3 * len(rows) + 0.6), layout="constrained")
    grid = figure.subplots(len(rows), wide, squeeze=False)
    styles = _styles(c.label for row in rows for panel in row for c in panel.curves)
    for axes, row in zip(grid, rows, strict=True):
        for axis in axes[len(row) :]:
            axis.set_visible(False)
        for axis, panel in zip(axes, row, strict=False):
            _panel(axis, panel, styles)
    handles: dict[str, Any] = {}
    for axis in grid.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        # inches that the longest label takes, about: a legend wider than the figure is cut off
        each = 0.5 + 0.055 * max(len(label) for label in handles)
        fit = max(1, int(figure.get_figwidth() / each))
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside lower center",
            ncols=min(len(handles), 2 * wide + 1, fit),
            frameon=False,
            fontsize="small",
            handlelength=3.2,
        )
    kind = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=kind, dpi=110)


def _styles(labels: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and dashes of each label: ``"AIS, practical steps"`` has the colour of ``"AIS"``."""
    parts = {label: label.partition(", ")[::2] for label in labels}
    methods = dict.fromkeys(method for method, _ in parts.values())
    taken = {_COLOUR[method] for method in methods if method in _COLOUR}
    free = [k for k in range(len(COLOURS)) if k not in taken] or [0]
    others = [method for method in methods if method not in _COLOUR]
    number = {m: free[k % len(free)] for k, m in enumerate(others)} | _COLOUR
    variants = ["", *dict.fromkeys(v for _, v in parts.values() if v)]
    return {
        label: (COLOURS[number[m]], DASHES[variants.index(v) % len(DASHES)])
        for label, (m, v) in parts.items()
    }


def _panel(axis, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    for curve in panel.curves:
        colour, dash = styles[curve.label]
        pattern = (0, tuple(float(v) for v in dash.split())) if dash else "-"
        x, y = _thin(curve, panel)
        axis.plot(
            x,
            y,
            color=colour,
            linestyle=pattern,
            linewidth=1.3,
            label=curve.label,
            marker="o" if panel.markers else None,
            markersize=3.0,
        )
    if panel.ylog:
        axis.set_yscale("log")
        _decades(axis.yaxis)
    else:
        axis.ticklabel_format(axis="y", useOffset=False)
    if panel.xlog:
        axis.set_xscale("log")
        _decades(axis.xaxis)
    axis.set_title(panel.title, fontsize="medium")
    axis.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _decades(axis) -> None:
    """No ticks between powers of ten (they are half of a file), unless there are few of those."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    if high < 100.0 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_locator(NullLocator())


def _thin(curve: Curve, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
    kept = np.isfinite(x) & np.isfinite(y)
    if panel.ylog:
        kept &= y > 0.0
    x, y = x[kept], y[kept]
    if x.size > POINTS:
        few = np.unique(np.linspace(0, x.size - 1, POINTS).astype(int))
        x, y = x[few], y[few]
    return x, y
