"""Panels of curves as small SVG files, by matplotlib (the extra ``plot``)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..report.plots import style
from .entry import Curve, Panel

#: A curve is thinned to so many points: more are nothing to the eye.
POINTS = 60
#: Colours belong to labels, the same in every figure.
_ORDER = (
    "SPDC", "SDCA", "SAG", "AFG", "L-BFGS", "ASDCA", "weighted SPDC", "AdaSPDC", "US", "LIS",
    "AIS", "ACF", "uniform", "APDC",
)


def draw(rows: list[list[Panel]], path: Path) -> None:
    """Write the panels, laid out as they are given; the ending of ``path`` says of which kind."""
    import matplotlib as mpl

    # the same bytes each time, text as text: small files that diff well
    small = {"font.size": 8, "font.sans-serif": ["DejaVu Sans"], "svg.fonttype": "none",
             "svg.hashsalt": path.stem}
    with mpl.rc_context(small):
        _draw(rows, path)
    if path.suffix == ".svg":
        text = re.sub(r' (d|x|y|transform)="[^"]*"', _rounded, path.read_text("utf-8"))
        path.write_text(text, "utf-8")


def _rounded(match: re.Match) -> str:
    """Coordinates to a tenth of a point: a third of the bytes less."""
    return re.sub(r"(\.\d)\d+", r"\1", match[0]).replace("\n", "")


def _draw(rows: list[list[Panel]], path: Path) -> None:
    from matplotlib.figure import Figure

    wide = max(len(row) for row in rows)
    figure = Figure(figsize=(3.0 * wide + 0.6, 2.3 * len(rows) + 0.6), layout="constrained")
    grid = figure.subplots(len(rows), wide, squeeze=False)
    labels = _labels(rows)
    pairs = {c.of for row in rows for panel in row for c in panel.curves}
    for axes, row in zip(grid, rows, strict=True):
        for axis in axes[len(row):]:
            axis.set_visible(False)
        for axis, panel in zip(axes, row, strict=False):
            _panel(axis, panel, labels, pairs)
    handles = {}
    for axis in grid.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        # inches that the longest label takes, about: a legend wider than the figure is cut off
        each = 0.5 + 0.055 * max(len(label) for label in handles)
        fit = max(1, int(figure.get_figwidth() / each))
        figure.legend(handles.values(), handles.keys(), loc="outside lower center",
                      ncols=min(len(handles), 2 * wide + 1, fit), frameon=False,
                      fontsize="small", handlelength=3.2)
    kind = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=kind, dpi=110)


def _labels(rows: list[list[Panel]]) -> list[str]:
    seen = dict.fromkeys(c.of or c.label for row in rows for panel in row for c in panel.curves)
    known = _ORDER if any(label in _ORDER for label in seen) else ()
    return [*known, *(label for label in seen if label not in known)]


def _panel(axis, panel: Panel, labels: list[str], pairs: set[str]) -> None:
    for curve in panel.curves:
        colour, dash = style(labels.index(curve.of or curve.label))
        if curve.of or curve.label in pairs:
            dash = "4 2" if curve.of else ""
        pattern = (0, tuple(float(v) for v in dash.split())) if dash else "-"
        x, y = _thin(curve, panel)
        axis.plot(x, y, color=colour, linestyle=pattern, linewidth=1.3, label=curve.label,
                  marker="o" if panel.markers else None, markersize=3.0)
    if panel.ylog:
        axis.set_yscale("log")
    if panel.xlog:
        axis.set_xscale("log")
        axis.xaxis.minorticks_off()  # a third of a small panel's bytes
    axis.set_title(panel.title, fontsize="medium")
    axis.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


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
