"""Mutated svmlight text: read as a naive parser reads it, or refused where that one refuses it.

The text stands before a page that may not be touched, so that reading a byte too far is a crash.
"""

from __future__ import annotations

import bz2
import ctypes
import gzip
import io
import itertools
import lzma
import math
import mmap
import random
import re
import struct
import sys

import numpy as np
import pytest

from adacoord.io import load_svmlight, svmlight, svmlight_text
from adacoord.io.svmlight_rows import joined

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INDEX = re.compile(rb"([0-9]+):")
TOKEN = re.compile(rb"[^ \t\n\v\f\r]+")


def naive(text, zero_based):
    """Return the rows as (label, {column: value}), or the line, the column and what is wrong."""
    rows = []
    for number, line in enumerate(text.split(b"\n"), 1):
        tokens = [(t.start() + 1, t[0]) for t in TOKEN.finditer(line.partition(b"#")[0])]
        if not tokens:
            continue
        at, label = tokens.pop(0)
        if not NUMBER.fullmatch(label) or math.isinf(float(label)):
            return number, at, "label"
        if tokens and tokens[0][1].startswith(b"qid:"):
            tokens.pop(0)
        row = {}
        for at, token in tokens:
            index = INDEX.match(token)
            if not index:
                return number, at, "whole number as its index"
            if len(index[1]) > 18:
                return number, at, "at most 18 digits"
            column = int(index[1]) - (not zero_based)
            if column < 0:
                return number, at, "zero_based=True"
            if column in row:
                return number, at, "must not appear twice"
            value = token[index.end() :]
            if not NUMBER.fullmatch(value) or math.isinf(float(value)):
                return number, at, "a value must be"
            row[column] = float(value)
        rows.append((float(label), dict(sorted(row.items()))))
    return rows


def guarded_page():
    """Return a function that copies bytes to where the next byte cannot be read."""
    if sys.platform != "linux":
        return lambda text: np.frombuffer(bytearray(text), np.uint8)
    room = 1 << 18
    memory = mmap.mmap(-1, room + mmap.PAGESIZE)
    array = np.frombuffer(memory, np.uint8)
    guard = ctypes.c_void_p(array.ctypes.data + room)
    assert ctypes.CDLL(None).mprotect(guard, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0

    def placed(text):
        place = array[room - len(text) : room]
        place[:] = np.frombuffer(text, np.uint8)
        return place

    return placed


# --- what is fed ------------------------------------------------------------------------------

NUMBERS = [
    *("0", "1", "-1", "+1", "007", "3.", ".5", "0.25", "1e5", "1E-5", "-2.5e+3", "12345678"),
    *("0.000000000000000000000001", "123456789012345678", "1234567890123456789", "9" * 40),
    *("9007199254740993", "1e22", "1e23", "5e-324", "2e-324", "1e-400", "1.7976931348623157e308"),
    *("0.1234567890123456", "-0.12345678901234567", "3.1415926535897932384626433", "1e0000000001"),
    *("4.35", "0e999", "12345678.12345678", "1234567.1e-30", "0" * 30 + "1"),
]
TOKENS = [
    *("1:1", "2:", ":1", "3:x", "0:1", "1:1:1", "-1:1", "1.5:2", "5", "x", "qid:3", "qid:", "qid"),
    *("nan", "1:nan", "1:inf", "-Infinity", "1:1e999", "1e999", "1:-1e309", "1:0x10", "1:1_0"),
    *("2147483647:1", "2147483648:1", "4294967297:1", "999999999999999999:1", "9" * 19 + ":1"),
    *("00000000000000000001:1", "1,2", "#", "# 1:1", "1:1#", "1:1#2:x", "1e", "1:1e+", "+", "1:+"),
    *("1:.", "1:.e5", "1:5.e5", "1:--1", "\u0661:1", "1:\uff11", "\ufeff1", "1:1\xa0", "\u2028"),
    *("1:1e99999999999999999999", "1:1e-99999999999999999999", "1:" + "9" * 400, "7" * 60 + ":1"),
    *("1:0." + "0" * 350 + "1", "1:" + "0" * 50, "12345678:12345678", "123456789:123456789"),
]
BYTES = [bytes([c]) for c in b"0123456789:.+-eE# \t\r\n\v\f\0\x7f\x80\xff\xc3\xa9qid,_x/;"]


def valid_text(rng):
    lines = []
    for _ in range(rng.randrange(1, 6)):
        columns = rng.sample(range(1, 40), rng.choice([0, 1, 2, 3, 6]))
        if rng.random() < 0.7:
            columns.sort()
        tokens = [rng.choice(NUMBERS), *(f"{c}:{rng.choice(NUMBERS)}" for c in columns)]
        if rng.random() < 0.1:
            tokens.insert(1, "qid:7")
        lines.append(
            rng.choice([" ", " ", "  ", "\t"]).join(tokens) + rng.choice(["", "", " #c:1"])
        )
    return rng.choice(["\n", "\n", "\r\n", "\n\n"]).join(lines).encode()


def mutated(rng, text):
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 4])):
        i = rng.randrange(len(text) + 1)
        j = min(len(text), i + rng.choice([1, 1, 2, 5, 20]))
        kind = rng.randrange(9)
        if kind == 0:  # one bit
            bits = bytes([c ^ (1 << rng.randrange(8)) for c in text[i : i + 1]])
            text = text[:i] + bits + text[i + 1 :]
        elif kind == 1:
            text = text[:i] + rng.choice(BYTES) + text[j:]
        elif kind == 2:
            text = text[:i] + rng.choice(BYTES) + text[i:]
        elif kind == 3:
            text = text[:i]
        elif kind == 4:
            text = text[:i] + text[j:]
        elif kind == 5:
            text = text[:j] + text[i:]
        elif kind == 6:
            text = text[:i] + f" {rng.choice(TOKENS)} ".encode() + text[i:]
        elif kind == 7:  # a token of its own, on a line end
            place = text.find(b"\n", i)
            text = text[:place] + f" {rng.choice(TOKENS)}".encode() + text[place:]
        elif rng.random() < 0.05:  # a long line
            text = text[:i] + rng.choice([b" ", b"9", b" 1:1", b"#", b"0", b"\0"]) * 5000 + text[i:]
    return text


# --- what comes back --------------------------------------------------------------------------


def outcome(read, name):
    """Return the rows in the form of ``naive``, or what a ValueError said."""
    try:
        A, b = read()
    except ValueError as error:
        return str(error).removeprefix(f"{name}:")
    assert A.shape[0] == b.size and A.indptr[-1] == A.data.size == A.indices.size
    bounds = itertools.pairwise(A.indptr.tolist())
    columns, values = A.indices.tolist(), A.data.tolist()
    rows = [dict(zip(columns[i:j], values[i:j], strict=True)) for i, j in bounds]
    return list(zip(b.tolist(), rows, strict=True))


def bits(rows):
    flat = [(label, *row.keys(), *row.values()) for label, row in rows]
    return [struct.pack(f"{len(line)}d", *line) for line in flat]


def assert_agrees(found, expected, text):
    if isinstance(expected, tuple):
        line, column, reason = expected
        assert isinstance(found, str) and found.startswith(f"{line}:{column}: "), (text, found)
        assert reason in found and "got " in found, (text, found)
    elif not expected:
        assert isinstance(found, str) and "the file has no rows" in found, (text, found)
    else:
        assert not isinstance(found, str), (text, found)
        assert bits(found) == bits(expected), text


class Matrix:
    """Just what ``outcome`` looks at, for SciPy's constructor takes longer than the parsing."""

    def __init__(self, rows):
        self.shape, self.data = (rows.b.size, rows.width), rows.values
        self.indices, self.indptr = rows.indices, rows.indptr


def fuzz(count, seed, folder, monkeypatch):
    rng, placed = random.Random(seed), guarded_page()
    compress = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    refused = 0
    for k in range(count):
        text, zero_based = mutated(rng, valid_text(rng)), rng.random() < 0.2
        size = rng.choice([1, 20, 1000, 1000, 1000])
        expected = naive(text, zero_based)
        refused += isinstance(expected, tuple)

        def read(text=text, size=size, zero_based=zero_based):
            pieces = svmlight_text._whole_lines(io.BytesIO(text), size)
            pieces = (placed(piece.tobytes()) for piece in pieces)
            rows = joined(svmlight._rows("fuzz", pieces, zero_based, None))
            return Matrix(rows), rows.b

        assert_agrees(outcome(read, "fuzz"), expected, text)
        if k % 500 == 0:  # from a file, on threads
            monkeypatch.setattr(svmlight, "_PIECE", size)
            ending = rng.choice(list(compress))
            path = folder / f"data{ending}"
            path.write_bytes(compress[ending](text))
            found = outcome(
                lambda p=path, z=zero_based: load_svmlight(p, zero_based=z, n_jobs=2), path
            )
            assert_agrees(found, expected, text)
    assert 0.2 < refused / count < 0.9


def test_fuzz_in_short(tmp_path, monkeypatch):
    fuzz(3000, 0, tmp_path, monkeypatch)


@pytest.mark.slow
def test_fuzz_100_000(tmp_path, monkeypatch):
    fuzz(100_000, 1, tmp_path, monkeypatch)
