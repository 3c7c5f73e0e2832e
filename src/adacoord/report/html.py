"""The report: one HTML file without a single request, light or dark, that fits a phone.

The page is ``page.html`` with ``page.css`` and ``page.js`` in it; the script draws the curves as
SVG from the numbers in the page.  The tables are plain HTML and need no script.
"""

from __future__ import annotations

import json
import math
import platform
from datetime import datetime
from html import escape
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from string import Template

from .. import __version__
from ..problem import Problem
from .plots import COLOURS, style
from .runs import LEVELS, Row, Run, card, summarise


def render(runs: list[Run], problem: Problem, *, title: str, command: str, settings: dict) -> str:
    """The page for these runs; ``command`` is what to type to have them again."""
    rows = summarise(runs)
    labels = [row.label for row in rows]
    folder = resources.files(__package__)
    return Template((folder / "page.html").read_text("utf-8")).substitute(
        title=escape(title),
        style=(folder / "page.css").read_text("utf-8") + _labels(),
        script=(folder / "page.js").read_text("utf-8"),
        data=_data(runs, labels, settings["tol"]),
        verdict=_verdict(rows, settings["tol"]),
        card=_card(problem),
        table=_table(rows, settings["tol"]),
        certificates=_certificates(rows),
        settings=_settings(settings, runs),
        command=escape(command),
        made=f"adacoord {__version__}, {datetime.now():%Y-%m-%d %H:%M}",
    )


def _data(runs: list[Run], labels: list[str], tol: float) -> str:
    curves = []
    for run in runs:
        index, history = labels.index(run.contender.label), run.result.history
        curves.append(
            {
                "label": run.contender.label,
                "seed": run.seed,
                "colour": _colour(index),
                "dash": style(index)[1],
                "passes": history.passes.tolist(),
                "seconds": [_digits(v) for v in history.seconds.tolist()],
                # a gap of 0 has no place on a log scale, and JSON has no inf
                "gap": [
                    _digits(v) if 0.0 < v < math.inf else None
                    for v in history.relative_gap.tolist()
                ],
            }
        )
    text = json.dumps({"tol": tol, "curves": curves}, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # nothing in it can end the script element


def _colour(index: int) -> str:
    """A variable of the style sheet, which has brighter ones for the dark."""
    return f"var(--c{index % len(COLOURS)})"


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _verdict(rows: list[Row], tol: float) -> str:
    """The first sentences: who was first, and what is certain."""
    primal, dual = min(r.primal for r in rows), max(r.dual for r in rows)
    certain = (
        f"The optimal value is <b>{primal:.12g}</b>, proved to within "
        f"{max(primal - dual, 0.0):.2g} by the best points of all runs."
    )
    done = [row for row in rows if row.relative_gap <= tol]
    if not done:
        return f"None reached a relative gap of {tol:g} with every seed. {certain}"
    by_passes, by_seconds = (min(done, key=lambda row: row.total[k]) for k in (0, 1))
    first = (
        f"<b>{escape(by_passes.label)}</b> reached a relative gap of {tol:g} in the fewest passes "
        f"({_passes(by_passes.total[0])})"
    )
    if by_passes is by_seconds:
        first += f" and the least time ({_seconds(by_seconds.total[1])})."
    else:
        first += (
            f", <b>{escape(by_seconds.label)}</b> in the least time "
            f"({_seconds(by_seconds.total[1])})."
        )
    return f"{first} {certain}"


def _seconds(value: float) -> str:
    return f"{1000 * value:.3g} ms" if value < 0.9995 else f"{value:.3g} s"


def _passes(value: float) -> str:
    return f"{value:g}"


def _level(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-")


def _labels() -> str:
    """Names of cells, which page.css shows where there is no room for the heads of the columns."""
    levels = [_level(level) for level in LEVELS]
    names = {
        "levels": [f"{what} to {level}" for what in ("passes", "time") for level in levels]
        + ["in theory", "time a pass"],
        "certificates": ["primal P", "dual D", "gap P − D", "relative gap", "ended"],
    }
    return "".join(
        f'.{table} td:nth-of-type({k}) {{ --label: "{name}"; }}\n'
        for table, cells in names.items()
        for k, name in enumerate(cells, 1)
    )


def _cell(entry, best: float | None, write) -> str:
    if entry is None:
        return '<td class="none" title="not reached">–</td>'
    median, least, most = entry
    text = write(median)
    if least < most:
        text += f"<small>{write(least)}–{write(most)}</small>"
    return f"<td class=best>{text}</td>" if median == best else f"<td>{text}</td>"


def _table(rows: list[Row], tol: float) -> str:
    heads = "".join(f"<th>{_level(level)}</th>" for level in LEVELS)
    out = [
        "<thead><tr><th rowspan=2>solver</th>"
        f"<th colspan={len(LEVELS)}>passes to a relative gap of</th>"
        f"<th colspan={len(LEVELS)}>time to a relative gap of</th>"
        "<th rowspan=2 title='what the theorem of the method promises of its step sizes; a dash "
        f"where there is none'>theory: passes to {tol:g}</th>"
        f"<th rowspan=2>time a pass</th></tr><tr>{heads}{heads}</tr></thead><tbody>"
    ]
    best = [
        [
            min((getattr(r, kind)[k][0] for r in rows if getattr(r, kind)[k]), default=None)
            for k in range(len(LEVELS))
        ]
        for kind in ("passes", "seconds")
    ]
    for index, row in enumerate(rows):
        cells = "".join(_cell(row.passes[k], best[0][k], _passes) for k in range(len(LEVELS)))
        cells += "".join(_cell(row.seconds[k], best[1][k], _seconds) for k in range(len(LEVELS)))
        cells += '<td class="none">–</td>' if row.theory is None else f"<td>{row.theory:,}</td>"
        out.append(f"<tr>{_name(row, index)}{cells}<td>{_seconds(row.seconds_a_pass)}</td></tr>")
    return "".join(out) + "</tbody>"


def _name(row: Row, index: int) -> str:
    line = (
        f"<svg width=22 height=8 aria-hidden=true><line x2=22 y1=4 y2=4 stroke-width=3 "
        f'stroke-dasharray="{style(index)[1]}" style="stroke:{_colour(index)}"/></svg>'
    )
    return f"<th scope=row>{line}{escape(row.label)}</th>"


def _certificates(rows: list[Row]) -> str:
    out = [
        "<thead><tr><th>solver</th><th>primal P</th><th>dual D</th><th>gap P − D</th>"
        "<th>relative gap</th><th>ended</th></tr></thead><tbody>"
    ]
    for index, row in enumerate(rows):
        ended = row.status.replace("_", " ")
        out.append(
            f"<tr>{_name(row, index)}<td>{row.primal:.12g}</td><td>{row.dual:.12g}</td>"
            f"<td>{max(row.primal - row.dual, 0.0):.2e}</td><td>{row.relative_gap:.2e}</td>"
            f"<td>{escape(ended)}</td></tr>"
        )
    return "".join(out) + "</tbody>"


def _terms(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs)


def _card(problem: Problem) -> str:
    facts = card(problem)
    kappa = facts["kappa"]
    penalty = " + ".join(
        [f"{facts['l1']:.4g} |x|₁"] * (facts["l1"] > 0)
        + [f"{facts['l2']:.4g}/2 |x|²"] * (facts["l2"] > 0)
    )
    return _terms(
        [
            ("rows n", f"{facts['n']:,}"),
            ("columns d", f"{facts['d']:,}"),
            ("entries", f"{facts['nnz']:,}"),
            ("density", f"{facts['density']:.3g}"),
            ("loss", escape(str(facts["loss"]))),
            ("penalty", penalty + (", x ≥ 0" if facts["positive"] else "")),
            ("intercept", "yes" if facts["intercept"] else "no"),
            ("λ (l2)", f"{facts['l2']:.4g}"),
            ("R = max |a<sub>i</sub>|", f"{facts['R']:.4g}"),
            ("R̄ = mean |a<sub>i</sub>|", f"{facts['Rbar']:.4g}"),
            ("κ = R²/(λγ)", "∞ (γ or λ is 0)" if kappa is None else f"{kappa:.3g}"),
            ("κ/n", "∞" if kappa is None else f"{kappa / facts['n']:.3g}"),
        ]
    )


def _settings(settings: dict, runs: list[Run]) -> str:
    pairs = [(escape(str(k)), escape(str(v))) for k, v in settings.items() if v is not None]
    pairs.append(("runs", str(len(runs))))
    pairs.append(
        (
            "versions",
            escape(
                ", ".join(
                    [f"adacoord {__version__}", f"Python {platform.python_version()}"]
                    + [
                        f"{name} {found}"
                        for name in ("numpy", "numba")
                        if (found := _version(name))
                    ]
                )
            ),
        )
    )
    pairs.append(("machine", escape(f"{platform.system()} {platform.machine()}")))
    return _terms(pairs)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
