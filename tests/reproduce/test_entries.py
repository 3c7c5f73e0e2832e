"""Every entry runs, on small random data in place of the papers', and measures what it judges."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

from adacoord.reproduce import PAPERS, entries, lab, page
from adacoord.reproduce.figures import draw

ENTRIES = entries()


def small(name):
    """Random data of the set's kind in place of the set: sparse, two labels, unequal rows."""
    rng = np.random.default_rng(len(name))
    A = sparse.random(150, 25, 0.4, format="csr", random_state=rng)
    A = sparse.csr_matrix(sparse.diags(np.exp(rng.standard_normal(150))) @ A)
    return A, np.where(A @ rng.standard_normal(25) > 0.0, 1.0, -1.0), []


@pytest.fixture(scope="module")
def shared_lab():
    return lab.Lab(quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_entry(name, shared_lab, monkeypatch, tmp_path):
    monkeypatch.setattr(lab, "_open", small)
    entry = ENTRIES[name]
    findings = entry.run(shared_lab)
    assert {rule.key for rule in entry.rules} == set(findings.measured)
    about = {"command": "", "date": "", "version": "", "seconds": 0.0, "quick": True}
    kept = json.loads(json.dumps(page.record(entry, findings, [], about)))
    assert set(kept["verdicts"].values()) <= {"holds", "holds in part", "does not hold"}
    assert f"### {name}" in page.render([kept], "reproduction")
    if findings.panels:
        draw(findings.panels, tmp_path / "figure.svg")
        assert (tmp_path / "figure.svg").stat().st_size < 400_000
    for table in findings.tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert all(isinstance(cell, str) for row in table.rows for cell in row)


def test_names_are_those_of_the_papers():
    assert {e.paper for e in ENTRIES.values()} <= set(PAPERS)
    assert all(name == e.name for name, e in ENTRIES.items())
