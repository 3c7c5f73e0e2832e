"""read_chunks: the rows of load_svmlight, some at a time, and its errors."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from adacoord.io import load_svmlight
from adacoord.io.svmlight import read_chunks

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture(scope="module")
def text():
    """500 lines of any length, with comments, blank lines, unsorted rows, no last newline."""
    rng = np.random.default_rng(0)
    lines = ["# header 1:x"]
    for row in range(500):
        columns = rng.choice(500, rng.integers(0, 30), replace=False) + 1
        values = rng.standard_normal(columns.size)
        tokens = [
            f"{column}:{value!r}" for column, value in zip(columns, values.tolist(), strict=True)
        ]
        lines.append(" ".join([str(row % 3 - 1), *tokens]))
        lines += [["# 1:1"], [""], []][row % 3]
    return "\n".join(lines).encode()


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("chunk_bytes", [1, 100, 4096, 70_001, 1 << 25])
def test_chunks_make_the_whole(tmp_path, text, ending, chunk_bytes):
    path = tmp_path / f"data.svm{ending}"
    path.write_bytes(COMPRESS[ending](text))
    A, b = load_svmlight(path)
    chunks = list(read_chunks(path, n_features=A.shape[1], chunk_bytes=chunk_bytes))
    assert (len(chunks) > 1) == (chunk_bytes < len(text))
    for part, labels in chunks:
        assert type(part) is sp.csr_matrix and part.shape == (labels.size, A.shape[1])
        assert labels.size > 0 and part.has_canonical_format
        assert part.indices.dtype == part.indptr.dtype == np.int32
    whole = sp.vstack([part for part, _ in chunks], "csr")
    for ours, theirs in ((whole.data, A.data), (whole.indices, A.indices)):
        assert ours.tobytes() == theirs.tobytes()
    assert whole.indptr.tolist() == A.indptr.tolist()
    assert np.concatenate([labels for _, labels in chunks]).tobytes() == b.tobytes()


def test_each_chunk_has_its_own_width_and_index_type(tmp_path):
    wide = 2**31 + 5
    path = tmp_path / "data.svm"
    path.write_text(f"1 2:1\n2 {wide}:1\n3 #{'x' * 99}\n")
    parts = [A for A, _ in read_chunks(path, chunk_bytes=1)]
    assert [A.shape for A in parts] == [(1, 2), (1, wide), (1, 1)]
    assert [A.indices.dtype for A in parts] == [np.int32, np.int64, np.int32]
    assert [A.indptr.dtype for A in parts] == [np.int32, np.int64, np.int32]


def message(call):
    with pytest.raises(ValueError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("chunk_bytes", [1, 30, 1000])
@pytest.mark.parametrize(
    "bad", ["x", "1 0:1", "1 1:1e999", "1e999 2:2", "1 3:1 2:1 3:1", "1 1:x", "1 9:9 9:9"]
)
def test_errors_are_those_of_the_whole_file(tmp_path, chunk_bytes, bad):
    """Also where a line further on has another fault, which stands in another chunk or not."""
    path = tmp_path / "data.svm"
    for after in ("", "1 1:1\nabc\n", "1 2:1 1:1 2:1\n", "1 1:1e999\n"):
        path.write_text("# 1\n\n1 1:1 2:1\n" * 3 + bad + "\n" + after)
        whole = message(lambda: load_svmlight(path))
        assert whole.startswith(f"{path}:10:")
        assert whole == message(lambda: list(read_chunks(path, chunk_bytes=chunk_bytes)))


def test_a_chunk_comes_before_the_error_of_the_next(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\nx\n")
    chunks = read_chunks(path, chunk_bytes=1)
    assert next(chunks)[1].tolist() == [1.0]
    assert message(lambda: next(chunks)).startswith(f"{path}:2:1: a line must start")


def test_n_features_too_small(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n1 7:1\n1 9:1\n")
    chunks = read_chunks(path, 3, chunk_bytes=1)
    assert next(chunks)[0].shape == (1, 3)
    assert message(lambda: next(chunks)) == (
        f"n_features=3: {path} has at least 7 columns; pass n_features=7 or more, or None"
    )


def test_no_rows(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("# nothing\n\n# here\n")
    assert "the file has no rows" in message(lambda: list(read_chunks(path, chunk_bytes=1)))


@pytest.mark.parametrize("name", ["n_features", "chunk_bytes"])
def test_not_a_count(tmp_path, name):
    """Said when it is called, not when the first chunk is asked for."""
    with pytest.raises(ValueError, match=rf"^{name}=0: it must be a whole number of at least 1"):
        read_chunks(tmp_path / "data.svm", **{name: 0})


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_damage_explains_what_is_wrong_in_the_text(tmp_path, ending):
    """A checksum that fails at the end of the file matters more than a bad token before it."""
    content = bytearray(COMPRESS[ending](b"1 1:1\nx\n" + b"1 1:1\n" * 100))
    path = tmp_path / f"data{ending}"
    path.write_bytes(content)
    assert message(lambda: list(read_chunks(path, chunk_bytes=1))).startswith(f"{path}:2:1:")
    path.write_bytes(content[:-6])
    assert "truncated or corrupt" in message(lambda: list(read_chunks(path, chunk_bytes=1)))


def test_memory_is_that_of_a_chunk(tmp_path):
    """A file that load_svmlight takes for a zip bomb is read, chunk after chunk."""
    line = b"1" + b" 1:1" + b" " * 2000 + b"\n"
    path = tmp_path / "data.svm.gz"
    path.write_bytes(gzip.compress(line * 10_000))
    assert "max_bytes=10000000" in message(lambda: load_svmlight(path, max_bytes=10_000_000))
    sum(1 for _ in read_chunks(path, chunk_bytes=1 << 20))
    tracemalloc.start()
    try:
        assert sum(b.size for _, b in read_chunks(path, chunk_bytes=1 << 20)) == 10_000
        assert tracemalloc.get_traced_memory()[1] < 6 << 20
    finally:
        tracemalloc.stop()


def test_the_file_is_closed_when_the_reader_is_left(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n" * 100)
    chunks = read_chunks(path, chunk_bytes=1)
    next(chunks)
    chunks.close()  # ResourceWarning is an error here
