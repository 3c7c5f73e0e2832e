"""Files and chunks of all kinds become stores, in bounded memory."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.io import arrays, converting, save_svmlight

needs_pyarrow = pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs pyarrow")


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(params=[2**23, 64])
def chunk_bytes(request, monkeypatch):
    """Chunks of the usual size, and of a row or two."""
    for module in (arrays, converting):
        monkeypatch.setattr(module, "CHUNK_BYTES", request.param)
    return request.param


def make(n=50, d=6, density=0.4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    X[:, -1] = np.arange(n) + 1.0
    return X, rng.standard_normal(n)


def check(store, X, y):
    store.verify()
    parts = [store.read(k) for k in range(store.bounds.size - 1)]
    dense = np.concatenate([p.toarray() if sparse.issparse(p) else p for p in parts])
    expected = X.toarray() if sparse.issparse(X) else X
    assert dense.dtype == store.dtype
    np.testing.assert_array_equal(dense, expected)
    np.testing.assert_array_equal(store.targets, y)
    assert store.is_sparse == sparse.issparse(X)
    if store.is_sparse:
        assert store.nnz == X.nnz


# Pairs.


def test_pairs(tmp_path):
    X, y = make()
    A = sparse.csr_matrix(X)
    check(ac.io.convert([(X, y)], tmp_path / "a"), X, y)
    check(ac.io.convert(iter([(A[:20], y[:20]), (A[20:], y[20:])]), tmp_path / "b"), A, y)
    check(ac.io.convert([(X.tolist(), y.tolist())], tmp_path / "c"), X, y)
    pandas = pytest.importorskip("pandas")
    check(ac.io.convert([(pandas.DataFrame(X), pandas.Series(y))], tmp_path / "d"), X, y)


def test_pairs_that_are_none(tmp_path):
    X, y = make()
    for source in ((X, y), [X], [(X, y, y)], [3], (X[:2], y[:2]), [(y, X)]):
        with pytest.raises(ValueError, match=r"give \[\(A, b\)\] for arrays"):
            ac.io.convert(source, tmp_path / "s")
    with pytest.raises(ValueError, match="6 columns after rows of 5"):
        ac.io.convert([(sparse.csr_matrix(X[:, 1:]), y), (sparse.csr_matrix(X), y)], tmp_path / "s")
    with pytest.raises(ValueError, match="target='y': pairs have no use for it"):
        ac.io.convert([(X, y)], tmp_path / "s", target="y")
    assert os.listdir(tmp_path) == []


# svmlight text.


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
def test_svmlight(tmp_path, ending, chunk_bytes):
    X, y = make()
    A = sparse.csr_matrix(X)
    save_svmlight(tmp_path / f"a.svm{ending}", A, y)
    seen = []
    store = ac.io.convert(
        tmp_path / f"a.svm{ending}", tmp_path / "s", progress=lambda *args: seen.append(args)
    )
    check(store, A, y)
    rows, done = zip(*seen, strict=True)
    assert rows[-1] == 50 and list(rows) == sorted(rows)
    assert done[-1] is None if ending else 0.5 < done[-1] <= 1.0  # lines are not cut


def test_svmlight_options(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:2 3:1\n2 1:1\n")
    store = ac.io.convert(tmp_path / "a.svm", tmp_path / "s", zero_based=True, n_features=9)
    check(store, sparse.csr_matrix(([2.0, 1, 1], [0, 3, 1], [0, 2, 3]), (2, 9)), [1, 2])
    with pytest.raises(ValueError, match=r"a.svm:1:3: indices start at 1"):
        ac.io.convert(tmp_path / "a.svm", tmp_path / "t")
    with pytest.raises(ValueError, match=r"n_features=2: .*4 columns"):
        ac.io.convert(tmp_path / "a.svm", tmp_path / "t", zero_based=True, n_features=2)
    with pytest.raises(ValueError, match="target='y': svmlight files have no use"):
        ac.io.convert(tmp_path / "a.svm", tmp_path / "t", target="y")
    with pytest.raises(FileNotFoundError):
        ac.io.convert(tmp_path / "b.svm", tmp_path / "t")
    (tmp_path / "empty.svm").touch()
    with pytest.raises(ValueError, match=r"empty.svm: the file has no rows"):
        ac.io.convert(tmp_path / "empty.svm", tmp_path / "t")
    assert sorted(os.listdir(tmp_path)) == ["a.svm", "empty.svm", "s"]


def test_threads_make_the_same_store(tmp_path):
    X, y = make(500)
    save_svmlight(tmp_path / "a.svm", X, y)
    for n_jobs in (None, 1, 3):
        store = ac.io.convert(tmp_path / "a.svm", tmp_path / "s", n_jobs=n_jobs, force=True)
        check(store, sparse.csr_matrix(X), y)
    with pytest.raises(ValueError, match=r"n_jobs=0: "):
        ac.io.convert(tmp_path / "a.svm", tmp_path / "t", n_jobs=0)


def test_one_valued_text_carries_one_value(tmp_path):
    (tmp_path / "a.svm").write_text("1 2:1 3:1\n0 1:1\n" * 100)
    store = ac.io.convert(tmp_path / "a.svm", tmp_path / "s")
    assert (tmp_path / "s" / "values.npy").stat().st_size == 136
    check(store, sparse.csr_matrix(np.tile([[0.0, 1, 1], [1, 0, 0]], (100, 1))), [1, 0] * 100)


# .npy and .npz.


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "i2", "?"])
def test_npy(tmp_path, order, dtype, chunk_bytes):
    X, y = make()
    X = np.asarray(X.astype(dtype), order=order)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y[:, None])
    store = ac.io.convert(tmp_path / "X.npy", tmp_path / "s", target=tmp_path / "y.npy")
    assert store.dtype == (np.float32 if dtype == "f4" else np.float64)
    check(store, X.astype(float), y)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_npz(tmp_path, kind, compressed, index, chunk_bytes):
    X, y = make()
    X[10:15] = 0
    A = kind(X)
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    sparse.save_npz(tmp_path / "A.npz", A, compressed=compressed)
    np.save(tmp_path / "y.npy", y)
    seen = []
    store = ac.io.convert(
        tmp_path / "A.npz",
        tmp_path / "s",
        target=tmp_path / "y.npy",
        progress=lambda *args: seen.append(args),
    )
    check(store, A, y)
    assert seen[-1] == (50, 1.0)
    if chunk_bytes < 100:
        assert len(seen) > 10


def test_more_row_starts_than_are_looked_at_together(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_STARTS", 7)
    X, y = make()
    sparse.save_npz(tmp_path / "A.npz", sparse.csr_matrix(X))
    np.save(tmp_path / "y.npy", y)
    store = ac.io.convert(tmp_path / "A.npz", tmp_path / "s", target=tmp_path / "y.npy")
    check(store, sparse.csr_matrix(X), y)


def test_arrays_that_are_refused(tmp_path):
    X, y = make()
    A = sparse.csr_matrix(X)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "short.npy", y[1:])
    np.save(tmp_path / "cube.npy", X[None])
    np.save(tmp_path / "texts.npy", X.astype(str))
    np.save(tmp_path / "objects.npy", X.astype(object), allow_pickle=True)
    np.savez(tmp_path / "dense.npz", X=X)
    sparse.save_npz(tmp_path / "A.npz", A)
    sparse.save_npz(tmp_path / "csc.npz", A.tocsc())
    (tmp_path / "text.npy").write_text("1,2\n")
    (tmp_path / "text.npz").write_text("1,2\n")
    broken = A.copy()
    broken.indices[0] = 9
    sparse.save_npz(tmp_path / "broken.npz", broken)
    before = sorted(os.listdir(tmp_path))
    for name, target, message in (
        ("X.npy", None, r"holds no targets; name the .npy file"),
        ("A.npz", None, r"holds no targets; name the .npy file"),
        ("X.npy", "short.npy", r"short.npy: the targets have shape \(49,\), and .*X.npy has 50"),
        ("A.npz", "short.npy", r"short.npy: the targets have shape \(49,\), and .*A.npz has 50"),
        ("cube.npy", "y.npy", r"cube.npy: .* must have two dimensions"),
        ("texts.npy", "y.npy", r"X has dtype <U"),
        ("objects.npy", "y.npy", r"objects.npy: the array has dtype object"),
        ("text.npy", "y.npy", r"text.npy: this cannot be read as a .npy array"),
        ("X.npy", "text.npy", r"text.npy: this cannot be read as a .npy array"),
        ("X.npy", "A.npz", r"A.npz: this cannot be read as a .npy array"),
        ("text.npz", "y.npy", r"text.npz: the file is truncated or corrupt"),
        ("dense.npz", "y.npy", r"dense.npz: there is no format.npy in it.*save_npz"),
        ("csc.npz", "y.npy", r"csc.npz: the matrix has format 'csc'.*tocsr"),
        ("broken.npz", "y.npy", r"not a valid CSR matrix"),
    ):
        with pytest.raises(ValueError, match=message):
            ac.io.convert(tmp_path / name, tmp_path / "s", target=target and str(tmp_path / target))
    for option in ({"zero_based": True}, {"n_features": 3}, {"n_jobs": 2}):
        with pytest.raises(ValueError, match=r".npy files have no use"):
            ac.io.convert(tmp_path / "X.npy", tmp_path / "s", target="y", **option)
    with pytest.raises(FileNotFoundError):
        ac.io.convert(tmp_path / "X.npy", tmp_path / "s", target="none.npy")
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("name", ["X.npy", "A.npz"])
def test_truncated_arrays(tmp_path, name):
    X, y = make(9, 3)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    sparse.save_npz(tmp_path / "A.npz", sparse.csr_matrix(X))
    for path in (tmp_path / name, tmp_path / "y.npy"):
        whole = path.read_bytes()
        for size in reversed(range(0, len(whole), 7)):
            os.truncate(path, size)
            with pytest.raises(ValueError, match=f"{path.name}: "):
                ac.io.convert(tmp_path / name, tmp_path / "s", target=tmp_path / "y.npy")
        path.write_bytes(whole)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("compressed", [True, False])
def test_flipped_bits_of_npz_files(tmp_path, compressed):
    """Zip files have checksums: what they hold comes out unchanged, or not at all."""
    X, y = make(9, 3)
    A = sparse.csr_matrix(X)
    np.save(tmp_path / "y.npy", y)
    sparse.save_npz(tmp_path / "A.npz", A, compressed=compressed)
    whole = (tmp_path / "A.npz").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for bit in rng.permutation(8 * len(whole))[:300].tolist():
        with (tmp_path / "A.npz").open("r+b") as file:
            file.seek(bit // 8)
            file.write(bytes([whole[bit // 8] ^ (1 << bit % 8)]))
        try:
            store = ac.io.convert(
                tmp_path / "A.npz", tmp_path / "s", target=tmp_path / "y.npy", force=True
            )
            check(store, A, y)
        except ValueError as error:
            refused += 1
            assert "npz" in str(error) or "not a valid CSR" in str(error)
        with (tmp_path / "A.npz").open("r+b") as file:
            file.seek(bit // 8)
            file.write(whole[bit // 8 : bit // 8 + 1])
    assert refused > 100


def test_row_starts_that_lie(tmp_path):
    np.save(tmp_path / "y.npy", np.zeros(3))
    rising = r"A.npz: the row starts after row 0 do not rise from 0 to 4"
    for indptr, message in (
        ([0, 2, 1, 4], rising),
        ([0, 1, 2, 9], rising),
        ([-1, 1, 2, 4], rising),
        ([1, 1, 2, 4], rising),
        ([0, 2**62, 2**62, 4], rising),
        ([0.0, 1.0, 2.0, 4.0], r"A.npz: .*not whole numbers"),
        ([0, 1, 2], r"A.npz: indptr.npy: the file ends before"),
    ):
        with zipfile.ZipFile(tmp_path / "A.npz", "w") as archive:
            for name, array in {
                "format": np.array(b"csr"),
                "shape": np.array([3, 2]),
                "indptr": np.array(indptr),
                "indices": np.array([0, 1, 0, 1]),
                "data": np.ones(4),
            }.items():
                content = io.BytesIO()
                np.save(content, array)
                archive.writestr(f"{name}.npy", content.getvalue())
        with pytest.raises(ValueError, match=message):
            ac.io.convert(tmp_path / "A.npz", tmp_path / "s", target=tmp_path / "y.npy")


# Tables.


@needs_pyarrow
def test_parquet(tmp_path):
    import pyarrow
    from pyarrow import parquet

    X, y = make()
    columns = {f"c{j}": X[:, j] for j in range(6)}
    parquet.write_table(
        pyarrow.table({**columns, "y": y}), tmp_path / "a.parquet", row_group_size=7
    )
    seen = []
    store = ac.io.convert(
        tmp_path / "a.parquet",
        tmp_path / "s",
        target="y",
        progress=lambda *args: seen.append(args),
    )
    check(store, X, y)
    assert seen[-1] == (50, 1.0)
    narrow = {name: column.astype(np.float32) for name, column in columns.items()}
    flags = (y > 0).astype(bool)
    parquet.write_table(pyarrow.table({"y": flags, **narrow}), tmp_path / "b.pq")
    store = ac.io.convert(tmp_path / "b.pq", tmp_path / "t", target="y")
    assert store.dtype == np.float32
    check(store, X.astype(np.float32), flags)
    mixed = pyarrow.table({"a": np.arange(3), "b": [True, False, True], "y": [1, 2, 3]})
    parquet.write_table(mixed, tmp_path / "c.pq")
    check(
        ac.io.convert(tmp_path / "c.pq", tmp_path / "u", target="y"),
        np.array([[0, 1], [1, 0], [2, 1.0]]),
        [1, 2, 3],
    )


def test_csv(tmp_path, monkeypatch):
    from adacoord.io import csv_table

    X, y = make(4000, 3)
    rows = [f"{p!r},{q!r},{int(r)}" for p, q, r in X.tolist()]
    rows = ["a,b,c,y", *map("{},{!r}".format, rows, y.tolist())]
    text = "\n".join(rows) + "\n"
    monkeypatch.setattr(csv_table, "_PIECE", 2**12)
    monkeypatch.setattr(csv_table, "_VALUES", 2**10)
    (tmp_path / "a.csv").write_text(text)
    seen = []
    store = ac.io.convert(
        tmp_path / "a.csv", tmp_path / "s", target="y", progress=lambda *args: seen.append(args)
    )
    check(store, X, y)
    assert len(seen) == 16 and seen[-1] == (4000, 1.0)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    check(ac.io.convert(tmp_path / "a.csv.gz", tmp_path / "t", target="y"), X, y)
    # whole numbers in the first block, others later
    (tmp_path / "b.csv").write_text("a,y\n" + "1,1\n" * 4000 + "0.5,2\n")
    store = ac.io.convert(tmp_path / "b.csv", tmp_path / "u", target="y")
    assert store.shape == (4001, 1) and store.targets[-1] == 2


@needs_pyarrow
def test_tables_that_are_refused(tmp_path):
    import pyarrow
    from pyarrow import parquet

    tables = {
        "text": {"a": ["x", "y"], "y": [1, 2]},
        "missing": {"a": [1, None], "y": [1, 2]},
        "hole": {"a": [1.0, 2.0], "y": [None, 2]},
        "nan": {"a": [1.0, float("nan")], "y": [1, 2]},
        "good": {"a": [1.0, 2.0], "y": [1, 2]},
        "single": {"y": [1, 2]},
        "none": {"a": pyarrow.array([], pyarrow.int8()), "y": pyarrow.array([], pyarrow.int8())},
    }
    for name, columns in tables.items():
        parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    (tmp_path / "svm.parquet").write_text("1 1:2\n")
    for name, message in {
        "text.parquet": "text.parquet: the column 'a' has type string.*encode it",
        "missing.parquet": "missing.parquet: the column 'a' has no value in row 1 ",
        "hole.parquet": "hole.parquet: the column 'y' has no value in row 0 ",
        "nan.parquet": "X has the value nan in row 1 ",
        "single.parquet": "no column but the target",
        "none.parquet": "no rows",
        "svm.parquet": "svm.parquet: the table cannot be read",
    }.items():
        with pytest.raises(ValueError, match=message):
            ac.io.convert(tmp_path / name, tmp_path / "s", target="y")
    for target in (None, "z"):
        with pytest.raises(ValueError, match=f"target={target!r}: name the column .*'a', 'y'"):
            ac.io.convert(tmp_path / "good.parquet", tmp_path / "s", target=target)
    with pytest.raises(FileNotFoundError):
        ac.io.convert(tmp_path / "gone.parquet", tmp_path / "s", target="y")
    whole = (tmp_path / "good.parquet").read_bytes()
    for size in range(0, len(whole), 50):
        (tmp_path / "cut.parquet").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cut.parquet: the table cannot be read"):
            ac.io.convert(tmp_path / "cut.parquet", tmp_path / "s", target="y")
    assert not (tmp_path / "s").exists()


def test_tables_without_pyarrow(tmp_path, monkeypatch):
    from adacoord.io import tables

    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    (tmp_path / "a.csv").write_text("a,y\n1,2\n")
    assert ac.io.convert(tmp_path / "a.csv", tmp_path / "s", target="y").shape == (1, 1)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r'pip install "adacoord\[tables\]", or save the table as'):
        ac.io.convert(tmp_path / "a.parquet", tmp_path / "t", target="y")


# Memory.


def write_large(path, n, d):
    """Rows of numbers, 2 to 10 bytes of the file for each of their 8 in memory."""
    rng = np.random.default_rng(0)
    kind = path.name.partition(".")[2]
    if kind == "npy":
        np.save(path, rng.standard_normal((n, d)))
    elif kind == "npz":
        sparse.save_npz(path, sparse.csr_matrix(rng.standard_normal((n, d))), compressed=False)
    elif kind == "parquet":
        import pyarrow
        from pyarrow import parquet

        columns = {f"c{j}": rng.standard_normal(n) for j in range(d)}
        parquet.write_table(pyarrow.table({**columns, "y": np.arange(n) % 2}), path)
    else:
        rows = rng.standard_normal((500, d)).tolist()
        if kind == "csv":
            head = ",".join([*(f"c{j}" for j in range(d)), "y"]) + "\n"
            lines = [",".join([*map("{:.6f}".format, row), "1"]) for row in rows]
        else:
            head = ""
            lines = ["1 " + " ".join(map("{}:{:.6f}".format, range(1, d + 1), row)) for row in rows]
        text = ("\n".join(lines) + "\n").encode()
        with gzip.open(path, "wb", 1) if kind == "svm.gz" else path.open("wb") as file:
            file.write(head.encode())
            for _ in range(n // 500):
                file.write(text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svm", "svm.gz", "npy", "npz", "csv", "parquet"])
def test_memory_is_bounded(tmp_path, kind):
    """160 MB of numbers, and less than that beyond what a tiny conversion takes."""
    if not os.path.exists("/proc/self/status"):
        pytest.skip("needs the peak of a process's memory")
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    n, d = 1_000_000, 20
    write_large(tmp_path / f"data.{kind}", n, d)
    np.save(tmp_path / "targets.npy", np.ones(n))
    target = {
        "npy": str(tmp_path / "targets.npy"),
        "npz": str(tmp_path / "targets.npy"),
        "csv": "y",
        "parquet": "y",
    }.get(kind)
    code = """
import re, sys
import adacoord as ac
def peak():  # of this process; what resource.getrusage tells may be of the one that started it
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
source, store, target = sys.argv[1], sys.argv[2], sys.argv[3] or None
if source.endswith("parquet"):
    import pyarrow.parquet  # 40 MB
ac.io.convert([([[1.0]], [1.0])], store + ".tiny")
before = peak()
made = ac.io.convert(source, store, target=target)
print(made.shape[0], peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / f"data.{kind}", tmp_path / "s", target or ""],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    rows, taken = map(int, done.stdout.split())
    print(f"{kind}: {taken / 1024:.0f} MB")
    assert rows == n and taken < 150 * 1024
