"""The committed results: of a full run, whole, and what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from adacoord.reproduce import entries, page

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = [
    json.loads((DOCS / "reproduction" / f"{name}.json").read_text("utf-8")) for name in entries()
]


def test_every_entry_was_run_in_full():
    assert all(not record["quick"] for record in RECORDS)
    assert all(record["rules"] for record in RECORDS)


def test_the_page_is_made_from_the_records():
    assert (DOCS / "reproduction.md").read_text("utf-8") == page.render(RECORDS, "reproduction")


def test_records_follow_the_rules_of_the_code():
    for record, entry in zip(RECORDS, entries().values(), strict=True):
        assert [r["text"] for r in record["rules"]] == [r.text for r in entry.rules]
        assert [r["bound"] for r in record["rules"]] == [r.bound for r in entry.rules]
        assert record["claim"] == entry.claim


def test_verdicts_follow_from_what_was_measured():
    for record in RECORDS:
        for variant, verdict in record["verdicts"].items():
            met = [rule["holds"] for rule in record["rules"] if rule["variant"] == variant]
            words = "holds" if all(met) else "holds in part" if any(met) else "does not hold"
            assert verdict == words, record["name"]


def test_notes_are_short_and_defend_what_does_not_hold():
    for record in RECORDS:
        assert len(set(record["remarks"])) == len(record["remarks"]) <= 5, record["name"]
        if "does not hold" in record["verdicts"].values():
            tried = [text for text in record["remarks"] if text.startswith("Set-ups tried")]
            assert tried, record["name"]


def test_tables_have_as_many_cells_in_every_row():
    """A bar within a cell, as in max |a|, must not end it."""
    text = (DOCS / "reproduction.md").read_text("utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) > 25
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table


def test_figures_are_there_and_small():
    text = (DOCS / "reproduction.md").read_text("utf-8")
    figures = re.findall(r"\]\((reproduction/[\w-]+\.svg)\)", text)
    assert len(figures) >= 12
    assert all((DOCS / figure).stat().st_size < 200_000 for figure in figures)
