"""What fits take of memory, beside the data they are given (``benchmarks/memory.py``)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import memory

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/clear_refs").exists(), reason="needs a process's peak that starts anew"
    ),
]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LinearSVC", "dense"),
        ("LinearSVC", "csr"),
        ("LogisticRegression", "dense"),
        ("LogisticRegression", "csr"),
        ("Lasso", "dense"),
        ("Lasso", "csr"),
        ("Lasso", "csc"),
        ("Ridge", "csr"),
    ],
)
def test_no_second_copy_of_the_data(name, kind):
    found = memory.child("held", name, kind, 120.0)
    assert found["peak"] <= found["allowed"], found
    assert found["given"] > 1e8


@pytest.mark.parametrize(
    ("row", "megabytes"), [("newton", 400.0), ("lasso", 240.0), ("hinge", 240.0)]
)
def test_a_store_of_four_times_the_memory(row, megabytes, tmp_path, monkeypatch):
    """A quarter of the store's size, beyond what the interpreter has, is all that may be had."""
    monkeypatch.setattr("adacoord.data.partition.BLOCK_BYTES", 2**22)
    store = memory.make_store(tmp_path / "store", megabytes, row)
    memory.make_store(tmp_path / "small", 4.0, row)
    size, (n, d) = memory.bytes_of(tmp_path / "store"), store.shape
    found = memory.child("stored", row, tmp_path / "store", tmp_path / "small", f"+{size // 4}")
    assert found["converged"] and found["gap"] <= 1e-4
    blocks = 2 * size / (store.bounds.size - 1)
    assert found["peak"] - found["base"] <= blocks + memory.STORED[row].vectors * 8 * (n + 4 * d)
