"""Counts and positions beyond 2**31: 64 bits all the way through the svmlight reader."""

from __future__ import annotations

import numpy as np
import pytest
from numba import types

from adacoord.io import svmlight_kernel as kernel
from adacoord.io.svmlight_rows import Rows, index_type_of, joined, parse


def as_text(content):
    return np.frombuffer(bytearray(content), np.uint8)


def test_row_pointers_of_more_entries_than_an_int32_counts():
    """Pieces that say they hold 2**30 entries each; the entries themselves are left out."""
    none = np.empty(0)
    pieces = [
        Rows(np.ones(2), np.array([0, 5, 2**30]), none.astype(np.int32), none, 7, 2)
        for _ in range(4)
    ]
    whole = joined(pieces)
    assert whole.indptr.dtype == np.int64
    ends = [start + end for start in range(0, 2**32, 2**30) for end in (5, 2**30)]
    assert whole.indptr.tolist() == [0, *ends]


@pytest.mark.parametrize(
    ("entries", "shape", "bits"),
    [
        (2**31 - 1, (9, 9), 32),
        (2**31, (9, 9), 64),
        (9, (9, 2**31 - 1), 32),
        (9, (9, 2**31), 64),
        (9, (2**31, 9), 64),
    ],
)
def test_index_type(entries, shape, bits):
    assert index_type_of(entries, shape) == np.dtype(f"int{bits}")


def test_the_kernel_counts_in_64_bits():
    for width in (1, 2**40):  # both types of indices
        assert isinstance(parse(as_text(b"1 %d:1\n" % width), False), Rows)
    compiled = list(kernel.parse.overloads.values())
    assert len(compiled) >= 2
    for overload in compiled:
        *counts, ordered = overload.signature.return_type
        assert ordered == types.boolean and set(counts) == {types.int64}


@pytest.mark.slow
def test_positions_beyond_int32():
    """A comment of 2**31 zero bytes, which take no memory before they are written to."""
    row = b"\n1 2:12345678901234567890 3:5\n"
    text = np.zeros(2**31 + len(row), np.uint8)
    text[0], text[-len(row) :] = ord("#"), as_text(row)
    rows = parse(text, False)
    assert isinstance(rows, Rows) and rows.values.tolist() == [12345678901234567890.0, 5.0]
    assert rows.lines == 2 and rows.indices.tolist() == [1, 2]
    text[-2] = ord("x")
    b, indptr, values, indices = np.empty(2), np.empty(3, np.int64), np.empty(2), np.empty(2, int)
    found = kernel.parse(text, 1, 2**62, b, indptr, indices, values, np.empty((4, 3), np.int64))
    assert found[:2] == (kernel.BAD_VALUE, text.size - 4)
