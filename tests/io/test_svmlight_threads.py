"""load_svmlight on several threads: the arrays and the errors of one."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from adacoord.io import load_svmlight, svmlight
from adacoord.io.svmlight import read_chunks

JOBS = [None, 1, 2, 3, 8]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(svmlight, "_PIECE", 300)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Numbers of every length, those left to Python among them; unsorted rows; comments."""
    rng = np.random.default_rng(1)
    lines = []
    for row in range(600):
        columns = rng.choice(10**6, rng.integers(0, 20), replace=False)
        values = rng.standard_normal(columns.size) * 10.0 ** rng.integers(-300, 300, columns.size)
        digits = rng.integers(0, 25, columns.size)
        tokens = [f"{c + 1}:{v:.{k}e}" for c, v, k in zip(columns, values, digits, strict=True)]
        lines.append(" ".join([repr(rng.standard_normal()), *tokens]))
        if row % 7 == 0:
            lines.append("# 1:1" * (row % 60))
    path = tmp_path_factory.mktemp("threads") / "data.svm"
    path.write_text("\n".join(lines))
    return path


def bits(A, b):
    arrays = (A.data, A.indices, A.indptr, b)
    return A.shape, [(array.dtype, array.tobytes()) for array in arrays]


def test_same_bits(path):
    one, *others = [bits(*load_svmlight(path, n_jobs=n_jobs)) for n_jobs in JOBS]
    assert all(other == one for other in others)
    one, *others = [
        [bits(*chunk) for chunk in read_chunks(path, chunk_bytes=5000, n_jobs=n_jobs)]
        for n_jobs in JOBS
    ]
    assert len(one) > 10 and all(other == one for other in others)


def test_one_wide_index_widens_all(tmp_path):
    path = tmp_path / "data.svm"
    lines = ["1 1:1 2:2"] * 1000
    lines[700] = f"1 3:1 {2**40}:1"
    path.write_text("\n".join(lines))
    for n_jobs in JOBS:
        A, _ = load_svmlight(path, n_jobs=n_jobs)
        assert A.indices.dtype == A.indptr.dtype == np.int64 and A.shape == (1000, 2**40)
        assert A.indices[1400:1404].tolist() == [2, 2**40 - 1, 0, 1]


@pytest.mark.parametrize("seed", range(8))
def test_the_first_fault_is_the_one_that_is_named(path, tmp_path, seed):
    """Several faults of several kinds in different pieces: every number of threads says one."""
    rng = np.random.default_rng(seed)
    lines = path.read_text().split("\n")
    faults = ["x", "1 0:1", "1 1:1e999", "1e999", "1 2:1 1:1 2:1", "1 1:x", "1 3:3 3:4", "1 5"]
    faults.append(f"1 {10**18}:1")
    where = sorted(rng.choice(len(lines), 4, replace=False).tolist())
    for line in where:
        lines[line] = faults[rng.integers(len(faults))]
    bad = tmp_path / "bad.svm"
    bad.write_text("\n".join(lines))
    said = set()
    for n_jobs in JOBS:
        with pytest.raises(ValueError) as caught:
            load_svmlight(bad, n_jobs=n_jobs)
        said.add(str(caught.value))
    assert len(said) == 1 and said.pop().startswith(f"{bad}:{where[0] + 1}:")


def test_no_thread_stays(path, tmp_path):
    before = threading.active_count()
    load_svmlight(path, n_jobs=3)
    chunks = read_chunks(path, chunk_bytes=1000, n_jobs=3)
    next(chunks)
    chunks.close()
    bad = tmp_path / "bad.svm"
    bad.write_text("x\n" * 10_000)
    with pytest.raises(ValueError) as caught:
        load_svmlight(bad, n_jobs=3)
    assert threading.active_count() == before and caught.value.__traceback__ is not None


@pytest.mark.parametrize("n_jobs", [0, -1, 1.5])
def test_not_a_count(path, n_jobs):
    for read in (load_svmlight, read_chunks):
        with pytest.raises(ValueError, match=rf"^n_jobs={n_jobs}: it must be a whole number of"):
            read(path, n_jobs=n_jobs)


def test_memory_does_not_grow_with_the_file_when_the_reader_is_ahead(tmp_path, monkeypatch):
    """Pieces wait for those before them; so many, and no more, are read ahead of the first."""
    path = tmp_path / "data.svm"
    path.write_text("1 1:1\n" * 10_000)
    read = []

    def counted(*args):
        for piece in svmlight_pieces(*args):
            read.append(piece.size)
            yield piece

    svmlight_pieces = svmlight.pieces
    monkeypatch.setattr(svmlight, "pieces", counted)
    chunks = read_chunks(path, chunk_bytes=300, n_jobs=2)
    next(chunks)
    assert len(read) <= 6
    chunks.close()
