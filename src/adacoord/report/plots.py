"""Gap against passes and against seconds as a picture, by matplotlib (the extra ``plot``)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from .runs import Run

#: Okabe and Ito's colours, which stay apart for colour-blind eyes; then the same, dashed.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
DASHES = ("", "6 3", "2 3")


def style(index: int) -> tuple[str, str]:
    """(colour, dash pattern as SVG has it) of the contender of this number."""
    return COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]


def check(path: Path) -> None:
    """Complain about a picture that cannot be made, before the work."""
    if find_spec("matplotlib") is None:
        raise ValueError(
            f'--plot {path}: pictures need matplotlib; install it with pip install "adacoord[plot]"'
        )
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--plot {path}: the name must end in .png, .svg or .pdf")


def draw(runs: list[Run], tol: float, title: str, path: Path) -> None:
    """Write a picture; the ending of ``path`` (.png, .svg, .pdf) says of which kind."""
    check(path)
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    labels = list(dict.fromkeys(run.contender.label for run in runs))
    for run in runs:
        label, history = run.contender.label, run.result.history
        colour, dash = style(labels.index(label))
        pattern = (0, tuple(float(v) for v in dash.split())) if dash else "-"
        seen = history.relative_gap > 0.0
        for axis, x in zip(axes, (history.passes, history.seconds), strict=True):
            axis.plot(
                x[seen],
                history.relative_gap[seen],
                color=colour,
                linestyle=pattern,
                linewidth=1.6 if run.seed == 0 else 0.7,
                label=label if run.seed == 0 else None,
            )
    for axis, name in zip(axes, ("passes", "seconds"), strict=True):
        axis.set(yscale="log", xlabel=name)
        axis.axhline(tol, color="0.6", linewidth=0.8, linestyle=":")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("certified relative gap")
    axes[1].legend(frameon=False, fontsize="small")
    figure.suptitle(title, fontsize="medium")
    figure.savefig(path, dpi=150)
