"""The page of results: one section an entry, made from the JSON files that the runs left.

A run of one entry rewrites its JSON file and its figure; the page is then made again from all
files of the folder, so it always shows what was run, when and how.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from . import PAPERS
from .entry import PRINTED, Entry, Findings

#: Which rules are younger than a first look at what they judge.
CHANGED = (
    "Rules were written before their entries ran, with these exceptions, changed after a first "
    "look (no bound was loosened): spdc-fig1 (ratios of passes, one a rival, in place of digits "
    "against the best one), spdc-table1 (passes divided by the logarithm, smaller eps), ada-fig2 "
    "and ada-fig3 (the worst lambda of each set in place of the worst of all), ais-fig4 to "
    "ais-fig6 and ais-table3 (AIS against each rival at the level both reach, in place of one "
    "level that all reach; longer runs), ais-fig3 and ais-table1 (a variant from the second pass "
    "on: rho_t is 0 where all maps are equal, as at the start), ais-fig5 (a wider grid of steps)."
)


def record(entry: Entry, findings: Findings, remarks: list[str], run: dict) -> dict:
    """What is kept of a run: plain values only."""
    return {
        "name": entry.name,
        "title": entry.title,
        "claim": entry.claim,
        **run,
        "verdicts": {v: entry.verdict(findings.measured, v) for v in entry.variants},
        "rules": [
            {
                "text": r.text,
                "bound": r.bound,
                "variant": r.variant,
                "measured": _number(findings.measured[r.key]),
                "holds": r.holds(findings.measured[r.key]),
            }
            for r in entry.rules
        ],
        "tables": [
            {"title": t.title, "columns": t.columns, "rows": t.rows} for t in findings.tables
        ],
        "remarks": [*remarks, *findings.remarks],
        "figure": bool(findings.panels),
    }


def missing(entry: Entry, reason: str, run: dict) -> dict:
    """What is kept of an entry whose data are not at hand."""
    return {
        "name": entry.name,
        "title": entry.title,
        "claim": entry.claim,
        **run,
        "verdicts": {PRINTED: "not run"},
        "rules": [],
        "tables": [],
        "remarks": [reason],
        "figure": False,
    }


def write(folder: Path, order: list[str]) -> Path:
    """Make ``reproduction.md`` beside ``folder`` from the records in it."""
    records = [
        json.loads(file.read_text("utf-8"))
        for name in order
        if (file := folder / f"{name}.json").exists()
    ]
    path = folder.with_suffix(".md")
    path.write_text(render(records, folder.name), "utf-8")
    return path


def render(records: list[dict], folder: str) -> str:
    """The page."""
    lines = [
        "# The papers' experiments, run again",
        "",
        "`adacoord reproduce` runs each figure and table of the four papers on the data at hand "
        "and judges the paper's claim by rules that stand in the code (`src/adacoord/reproduce/`) "
        "with their bounds: all met is **holds**, some **holds in part**, none **does not hold**. "
        "Where the print has an error or leaves open what was run, the other way is run too. P* is "
        "the value of a solution with a certified gap; a pass is n row visits, or as many entries "
        "touched as A has.",
        "",
        CHANGED,
        "",
        "| entry | what | as printed | otherwise |",
        "|---|---|---|---|",
    ]
    for r in records:
        other = "; ".join(
            f"{variant}: {verdict}"
            for variant, verdict in r["verdicts"].items()
            if variant != PRINTED
        )
        lines.append(
            f"| [{r['name']}](#{r['name']}) | {r['title']} | {r['verdicts'][PRINTED]} | {other} |"
        )
    for paper, citation in PAPERS.items():
        mine = [r for r in records if r["name"].split("-")[0] == paper]
        if mine:
            lines += ["", f"## {citation}"]
        for r in mine:
            lines += _section(r, folder)
    return "\n".join(lines) + "\n"


def _section(r: dict, folder: str) -> list[str]:
    verdicts = "; ".join(
        f"**{verdict}**" + (f" ({variant})" if len(r["verdicts"]) > 1 else "")
        for variant, verdict in r["verdicts"].items()
    )
    lines = [
        "",
        f"### {r['name']}",
        "",
        f"{r['title']}. Claim: {r['claim']}",
        "",
        f"Verdict: {verdicts}.",
    ]
    if r["figure"]:
        lines += ["", f"![{r['name']}]({folder}/{r['name']}.svg)"]
    if r["rules"]:
        lines += ["", "| rule | bound | measured | |", "|---|---|---|---|"]
        several = len({rule["variant"] for rule in r["rules"]}) > 1
        for rule in r["rules"]:
            text = rule["text"] + (f" ({rule['variant']})" if several else "")
            lines.append(
                f"| {text} | {rule['bound']} | {show(rule['measured'])} | "
                f"{'met' if rule['holds'] else 'not met'} |"
            )
    for table in r["tables"]:
        lines += [
            "",
            table["title"],
            "",
            "| " + " | ".join(table["columns"]) + " |",
            "|---" * len(table["columns"]) + "|",
        ]
        lines += ["| " + " | ".join(row) + " |" for row in table["rows"]]
    lines += ["", *(f"- {text}" for text in r["remarks"])] if r["remarks"] else []
    lines += ["", f"`{r['command']}`, {r['date']}, adacoord {r['version']}, {r['seconds']:.0f} s."]
    return lines


def show(value: float | str) -> str:
    """A measured number, as tables have it."""
    return value if isinstance(value, str) else f"{value:.3g}"


def _number(value: float) -> float | str:
    """JSON has neither inf nor NaN."""
    value = float(value)
    if math.isnan(value):
        return "not measured"
    return value if math.isfinite(value) else "never"
