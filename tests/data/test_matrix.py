"""The row-access layer: every form users have, against NumPy in float64, copied only if needed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from adacoord import Problem
from adacoord.data.matrix import Matrix, as_matrix


def small(n=7, d=5, seed=0):
    """Small whole numbers (exact in every type), a row and a column of zeros among them."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-4, 5, (n, d)) * (rng.random((n, d)) < 0.6)
    A[2] = 0
    A[:, 1] = 0
    return A.astype(np.float64)


def check(matrix: Matrix, expected: np.ndarray, rel=1e-13):
    """dot, tdot, norms and shape against NumPy's float64."""
    n, d = expected.shape
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal(d), rng.standard_normal(n)
    v[0] = 0.0
    assert matrix.shape == (n, d)
    close = {"rel": rel, "abs": rel * (1.0 + np.abs(expected).max())}
    assert matrix.dot(x) == pytest.approx(expected @ x, **close)
    assert matrix.tdot(v) == pytest.approx(expected.T @ v, **close)
    assert matrix.squared_norms == pytest.approx((expected**2).sum(axis=1), rel=rel)
    assert not matrix.dot(np.zeros(d)).any() and not matrix.tdot(np.zeros(n)).any()
    for result in (matrix.dot(x), matrix.tdot(v), matrix.squared_norms):
        assert result.dtype == np.float64
    assert matrix.dot(np.arange(d)) == pytest.approx(expected @ np.arange(d), **close)
    X, V = rng.standard_normal((d, 3)), rng.standard_normal((n, 3))
    assert matrix.dot(X) == pytest.approx(expected @ X, **close)
    assert matrix.tdot(V) == pytest.approx(expected.T @ V, **close)


def frozen_copy(A):
    """What ``A`` holds, to see later that nobody wrote to it."""
    if sparse.issparse(A) and A.format in ("csr", "csc"):
        return [a.copy() for a in (A.indptr, A.indices, A.data)]
    if sparse.issparse(A) and A.format == "coo":
        return [a.copy() for a in (A.row, A.col, A.data)]
    return [np.array(A, copy=True)]


def unchanged(A, before):
    after = frozen_copy(A)
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(before, after, strict=True)
    )


# --- dense --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [np.float64, np.float32, np.float16, np.longdouble, np.int64, np.int32, np.int8, np.bool_],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense(dtype, order):
    A = np.asarray(small(), dtype=dtype, order=order)
    before = frozen_copy(A)
    matrix = as_matrix(A)
    check(matrix, A.astype(np.float64))
    assert unchanged(A, before) and matrix.is_dense and matrix.nnz == A.size
    single = dtype in (np.float32, np.float16)
    assert matrix.dtype == (np.float32 if single else np.float64)
    kept = order == "C" and dtype in (np.float32, np.float64)
    assert np.shares_memory(matrix.data, A) == kept


@pytest.mark.parametrize(
    "make",
    [
        np.ndarray.tolist,
        lambda A: [tuple(row) for row in A],
        lambda A: A.astype(object),
        lambda A: A.astype(np.uint8) * np.uint8(1),
        lambda A: A.astype(">f8"),
        lambda A: np.repeat(A, 2, axis=1)[:, ::2],
        lambda A: A[::-1],
        lambda A: np.asarray(A).T.copy().T,
    ],
    ids=["lists", "tuples", "object", "uint8", "big-endian", "strided", "reversed", "transposed"],
)
def test_other_dense_forms(make):
    A = np.abs(small())
    form = make(A)
    check(as_matrix(form), np.asarray(form, dtype=np.float64))


def test_dense_slice_of_rows_is_not_copied():
    A = small()
    part = A[2:5]
    matrix = as_matrix(part)
    assert np.shares_memory(matrix.data, A)
    check(matrix, part)


@pytest.mark.parametrize("order", ["C", "F"])
def test_several_columns_take_blocks_of_float32(order, monkeypatch):
    """Never all of the data in float64 at once; and no rows are made of what came by columns."""
    monkeypatch.setattr("adacoord.data.matrix.CACHED", 12)
    rng = np.random.default_rng(0)
    A = np.asarray(rng.standard_normal((150, 5)), dtype=np.float32, order=order)
    X, V = rng.standard_normal((5, 3)), rng.standard_normal((150, 3))
    matrix = as_matrix(A)
    assert matrix.dot(X) == pytest.approx(A.astype(float) @ X, rel=1e-13)
    assert matrix.tdot(V) == pytest.approx(A.T.astype(float) @ V, rel=1e-12)
    assert [len(block) for _, block in matrix.dense_blocks(3)] == [64, 64, 22]
    assert order == "C" or "_rows" not in vars(matrix)


def test_wide_sums_are_float64():
    """1e8 and -1e8 cancel in float64; 16777217 does not exist in float32."""
    A = np.array([[1e8, 3.0, -1e8], [16777216.0, 1.0, 0.0]], dtype=np.float32)
    for form in (A, sparse.csr_matrix(A)):
        matrix = as_matrix(form)
        assert matrix.dot(np.ones(3)).tolist() == [3.0, 16777217.0]
        assert matrix.tdot(np.array([1.0, -5.0]))[1] == -2.0
        assert matrix.squared_norms[1] == 16777216.0**2 + 1


# --- sparse -------------------------------------------------------------------------------------

FORMATS = [
    sparse.csr_matrix,
    sparse.csc_matrix,
    sparse.coo_matrix,
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.lil_matrix,
    sparse.dok_matrix,
    sparse.bsr_matrix,
    sparse.dia_matrix,
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.__name__)
def test_sparse_formats(form, dtype):
    dense = small().astype(dtype)
    A = form(dense)
    before = frozen_copy(A) if A.format in ("csr", "csc", "coo") else None
    matrix = as_matrix(A)
    check(matrix, dense.astype(np.float64))
    assert not matrix.is_dense
    assert matrix.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert before is None or unchanged(A, before)
    assert A.toarray().tolist() == dense.tolist()


def as_csr(dense, index_type=np.int32, dtype=np.float64, shuffle=None):
    """CSR built by hand, its rows in any order of columns, with this index type kept."""
    indptr, indices, data = [0], [], []
    for row in dense:
        columns = np.flatnonzero(row)
        if shuffle is not None:
            shuffle.shuffle(columns)
        indices += columns.tolist()
        data += row[columns].tolist()
        indptr.append(len(indices))
    A = sparse.csr_matrix(dense.shape, dtype=dtype)
    A.indptr, A.indices = (np.array(a, dtype=index_type) for a in (indptr, indices))
    A.data = np.array(data, dtype=dtype)
    return A


@pytest.mark.parametrize("shuffled", [False, True], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_csr_is_not_copied(index_type, dtype, shuffled):
    dense = small(40, 9, seed=3)
    A = as_csr(dense, index_type, dtype, np.random.default_rng(0) if shuffled else None)
    assert A.indices.dtype == index_type and bool(A.has_sorted_indices) == (not shuffled)
    before = frozen_copy(A)
    matrix = as_matrix(A)
    assert np.shares_memory(matrix.data, A.data) and np.shares_memory(matrix.indices, A.indices)
    assert matrix.indices.dtype == (np.uint32 if index_type == np.int32 else np.uint64)
    assert matrix.nnz == A.nnz and matrix.row_sizes.tolist() == np.diff(A.indptr).tolist()
    check(matrix, dense)
    assert unchanged(A, before)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_duplicate_entries_are_summed(index_type, dtype):
    A = sparse.csr_matrix((3, 4), dtype=dtype)
    A.indptr = np.array([0, 3, 3, 7], dtype=index_type)
    A.indices = np.array([2, 0, 2, 3, 1, 3, 3], dtype=index_type)
    A.data = np.array([1, 5, 2, 1, 4, -1, 7], dtype=dtype)
    before = frozen_copy(A)
    dense = np.array([[5.0, 0, 3, 0], [0, 0, 0, 0], [0, 4, 0, 7]])
    matrix = as_matrix(A)
    check(matrix, dense)
    assert matrix.squared_norms.tolist() == [34.0, 0.0, 65.0]  # not 1 + 4 + 25, 1 + 16 + 1 + 49
    assert unchanged(A, before), "the caller's duplicates were summed in place"
    coo = sparse.coo_matrix(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    check(as_matrix(coo), np.array([[0.0, 3.0], [4.0, 0.0]]))
    assert coo.nnz == 3


def test_explicit_zeros_and_empty_rows_and_columns():
    A = sparse.csr_matrix(
        (np.array([0.0, 2.0, 0.0]), np.array([0, 3, 1]), np.array([0, 0, 2, 3, 3])), shape=(4, 6)
    )
    matrix = as_matrix(A)
    check(matrix, A.toarray())
    assert matrix.squared_norms.tolist() == [0.0, 4.0, 0.0, 0.0] and A.nnz == 3
    empty = as_matrix(sparse.csr_matrix((3, 2)))
    check(empty, np.zeros((3, 2)))
    assert empty.nnz == 0


@pytest.mark.parametrize("capacity", ["data", "indices", "both"])
def test_extra_capacity_is_ignored(capacity):
    """SciPy lets data and indices be longer than indptr says; what is there is not data."""
    dense = small(6, 4, seed=5)
    A = as_csr(dense)
    if capacity in ("data", "both"):
        A.data = np.concatenate([A.data, [np.nan, np.inf]])
    if capacity in ("indices", "both"):
        A.indices = np.concatenate([A.indices, np.array([10**6, -1, 7], dtype=np.int32)])
    matrix = as_matrix(A)
    check(matrix, dense)
    assert matrix.nnz == int(A.indptr[-1]) == matrix.indices.shape[0]


# What follows runs in a process of its own: misread indices end it.
APART = """
import sys
import numpy as np
from scipy import sparse
from adacoord.data.matrix import as_matrix
dense = np.arange(12.0).reshape(4, 3)
form = sys.argv[1]
A = sparse.csr_matrix(dense).asformat(form if form in ("csc", "coo") else "csr")
if form == "csc":
    A.indices[-1] = 4
elif form == "coo":
    A.row[-1] = 4
else:
    A.indices, A.indptr = A.indices.astype(form), A.indptr.astype(form)
    assert np.allclose(as_matrix(A).dot(np.ones(3)), dense.sum(axis=1))
    sys.exit(0)
try:
    as_matrix(A)
except ValueError as error:
    assert str(error).startswith("A is not a valid "), error
else:
    sys.exit("an index outside the matrix was accepted")
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["i2", "u4", ">i4", ">i8", "csc", "coo"])
def test_assigned_indices(form):
    """SciPy makes sound int32 or int64 indices; assigned ones may be of any type, or broken."""
    run = subprocess.run(
        [sys.executable, "-c", APART, form], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-500:]


def test_slices_of_csr():
    A = as_csr(small(40, 9, seed=3))
    for part in (A[5:20], A[::3], A[:, 2:6], A[[3, 3, 1]]):
        check(as_matrix(part), part.toarray())


# --- read-only and on disk ----------------------------------------------------------------------


def read_only(*arrays):
    for array in arrays:
        array.setflags(write=False)


@pytest.mark.parametrize("form", ["dense", "csr", "unsorted", "duplicates"])
def test_read_only(form):
    dense = small(20, 6, seed=2)
    if form == "dense":
        A = dense.copy()
        read_only(A)
    else:
        A = as_csr(dense, shuffle=np.random.default_rng(0) if form != "csr" else None)
        if form == "duplicates":
            A = sparse.csr_matrix((A.data, A.indices, A.indptr), shape=A.shape)
            row = int(np.flatnonzero(np.diff(A.indptr) > 1)[0])
            k = A.indptr[row]
            A.indices[k] = A.indices[k + 1]
            dense = A.toarray()
        read_only(A.data, A.indices, A.indptr)
    matrix = as_matrix(A)
    check(matrix, dense)
    kept = A if form == "dense" else A.data
    assert np.shares_memory(matrix.data, kept) == (form != "duplicates")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_map(tmp_path, dtype):
    dense = small(20, 6, seed=2)
    files = {}
    csr = sparse.csr_matrix(dense.astype(dtype))
    for name, array in (
        ("dense", dense.astype(dtype)),
        ("data", csr.data),
        ("indices", csr.indices),
        ("indptr", csr.indptr),
    ):
        array.tofile(tmp_path / name)
        files[name] = np.memmap(tmp_path / name, dtype=array.dtype, mode="r", shape=array.shape)
    before = {name: (tmp_path / name).read_bytes() for name in files}
    matrix = as_matrix(files["dense"])
    assert np.shares_memory(matrix.data, files["dense"])
    check(matrix, dense)
    A = sparse.csr_matrix(csr.shape, dtype=dtype)
    A.data, A.indices, A.indptr = files["data"], files["indices"], files["indptr"]
    matrix = as_matrix(A)
    assert np.shares_memory(matrix.data, files["data"])
    assert np.shares_memory(matrix.indices, files["indices"])
    check(matrix, dense)
    assert before == {name: (tmp_path / name).read_bytes() for name in files}


def test_kernels_cannot_write_to_the_data():
    A = small()
    for form in (A, as_csr(A)):
        for array in as_matrix(form).arrays:
            assert array is None or not array.flags.writeable
    assert A.flags.writeable  # the caller's own array stays as it was


# --- laws ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 12),
    seed=st.integers(0, 2**31),
    density=st.sampled_from([0.0, 0.2, 1.0]),
    wide=st.booleans(),
    single=st.booleans(),
)
def test_all_forms_agree(n, d, seed, density, wide, single):
    rng = np.random.default_rng(seed)
    dtype = np.float32 if single else np.float64
    dense = (rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, (n, 1))).astype(dtype)
    dense *= rng.random((n, d)) < density
    csr = as_csr(dense, np.int64 if wide else np.int32, dtype, rng)
    for form in (dense, np.asfortranarray(dense), csr, sparse.csc_matrix(dense)):
        check(as_matrix(form), dense.astype(np.float64), rel=1e-12)


def test_matrix_is_itself():
    matrix = as_matrix(small())
    assert as_matrix(matrix) is matrix


def test_values_agree_across_forms_and_targets_are_copied():
    dense, b = small(), np.arange(7.0)
    x, y = np.arange(1.0, 6.0), np.arange(7.0) - 3
    one = Problem(dense, b, l1=0.1, l2=0.2)
    expected = 0.5 * np.mean((dense @ x - b) ** 2) + 0.1 * 15 + 0.1 * 55
    for form in (dense, as_csr(dense), sparse.coo_array(dense), dense.astype(np.float32)):
        p = Problem(form, b, l1=0.1, l2=0.2)
        assert p.primal(x) == pytest.approx(expected, rel=1e-12)
        assert p.dual(y) == pytest.approx(one.dual(y), rel=1e-12)
    b[:] = 99.0
    assert one.primal(x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asfortranarray, sparse.csc_matrix])
def test_columns_give_the_products_of_rows(form, kind, monkeypatch):
    """Of several vectors, in blocks of rows, and weighted squares: without making the rows."""
    monkeypatch.setattr("adacoord.data.columns.LONG", 16)
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((50, 7)) * (rng.random((50, 7)) < 0.7)).astype(kind)
    matrix, v, w = as_matrix(form(A)), rng.standard_normal((50, 3)), rng.random(50)
    np.testing.assert_allclose(matrix.column_squares(w), w @ A.astype(float) ** 2, rtol=1e-12)
    if matrix.is_dense:
        np.testing.assert_allclose(matrix.tdot(v), A.astype(float).T @ v, rtol=1e-12)
        assert matrix.tdot_depth(3) == 16 + 4
    assert "_rows" not in vars(matrix)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_squares_of_columns(kind):
    rng = np.random.default_rng(8)
    A, w = rng.standard_normal((50, 7)) * (rng.random((50, 7)) < 0.6), rng.random(50)
    m = as_matrix(A if kind == "dense" else sparse.csr_matrix(A))
    np.testing.assert_allclose(m.column_squares(w), w @ A**2, rtol=1e-13)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_some_columns(form, kind, monkeypatch):
    """Those wanted as they are among all, whatever else is held; none is made twice."""
    monkeypatch.setattr("adacoord.data.columns.BLOCK", 16)
    A = small(50, 9, seed=3).astype(kind)
    matrix, whole = as_matrix(form(A)), as_matrix(form(A)).columns
    for wanted, spare in (([], None), ([3, 1], [8]), ([8], None), ([0, 1, 2], [2]), ([1], None)):
        wanted = np.array(wanted, dtype=np.int64)
        found = matrix.some_columns(wanted, spare)
        assert found.has(wanted)
        for j in wanted:
            here, there = (slice(int(c.colptr[j]), int(c.colptr[j + 1])) for c in (found, whole))
            assert (found.data[here] == whole.data[there]).all()
            if found.rows is not None:
                assert (found.rows[here] == whole.rows[there]).all()
                assert found.rows.dtype == whole.rows.dtype
    if not matrix.by_columns:
        assert not found.has(np.array([3])) and found.data.dtype == kind
        assert found.data.size == int(matrix.column_moments[0][:3].sum())
        assert matrix.some_columns(np.array([0, 2])) is found  # and nothing was made
        assert "columns" not in vars(matrix)


@pytest.mark.parametrize(
    "form", [np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix]
)
def test_moments_of_columns(form):
    A, w = small(50, 9, seed=4), np.random.default_rng(5).random(50)
    matrix = as_matrix(form(A))
    counts = np.full(9, 50) if matrix.is_dense else np.count_nonzero(A, axis=0)
    for weight in (np.ones(1), w):
        sizes, squares, sums = matrix.weighted_moments(weight)
        v = np.broadcast_to(weight, 50)
        assert (sizes == counts).all()
        np.testing.assert_allclose(squares, v @ A**2, rtol=1e-13)
        np.testing.assert_allclose(sums, v @ A, rtol=1e-12, atol=1e-12)
    assert (matrix.column_moments[0] == counts).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [np.asfortranarray, sparse.csc_matrix, np.asarray])
@pytest.mark.parametrize("shape", [(7,), (7, 3)])
def test_magnitudes(storage, dtype, shape):
    """|A| |x|, of columns and of rows, for one x and for several."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((9, 7)).astype(dtype)
    A[rng.random(A.shape) < 0.3] = 0.0
    x = rng.standard_normal(shape)
    x[[1, 4]] = 0.0
    found = as_matrix(storage(A)).magnitude_dot(x)
    assert found.dtype == np.float64 and found.shape == (9, *shape[1:])
    np.testing.assert_allclose(found, np.abs(A.astype(np.float64)) @ np.abs(x), rtol=1e-14)


@pytest.mark.parametrize("form", ["long", "short", "sparse", "columns", "float32", "little"])
def test_both_products_are_those_of_each(form):
    """To the last bit, whoever reads A once for both of them."""
    rng = np.random.default_rng(2)
    n, d = (40_000, 5) if form == "short" else (900, 310)
    A = rng.standard_normal((n, d))
    given = {
        "sparse": lambda: sparse.csr_matrix(np.where(rng.random((n, d)) < 0.6, A, 0.0)),
        "columns": lambda: np.asfortranarray(A),
        "float32": lambda: A.astype(np.float32),
        "little": lambda: A[:30],
    }
    matrix = as_matrix(given.get(form, lambda: A)())
    x, v = rng.standard_normal(d), rng.standard_normal(matrix.shape[0])
    v[3] = 0.0
    several = rng.standard_normal((d, 3)), rng.standard_normal((matrix.shape[0], 3))
    for left, right in ((x, v), (np.zeros(d), v), several):
        z, u = matrix.both(left, right)
        np.testing.assert_array_equal(z, matrix.dot(left))
        np.testing.assert_array_equal(u, matrix.tdot(right))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_several_products_lie_as_what_they_are_of(order, dtype, monkeypatch):
    """Each product together, or each row of all, without a copy that turns them."""
    monkeypatch.setattr("adacoord.data.matrix.CACHED", 200)
    rng = np.random.default_rng(3)
    A, X = rng.standard_normal((300, 7)).astype(dtype), rng.standard_normal((7, 3))
    matrix, V = as_matrix(A), rng.standard_normal((300, 3))
    found = matrix.dot(np.asarray(X, order=order))
    assert found.flags.c_contiguous == (order == "C")
    np.testing.assert_allclose(found, A.astype(float) @ X, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        matrix.tdot(np.asarray(V, order=order)), A.astype(float).T @ V, rtol=0, atol=1e-11
    )
    assert not matrix.dot(np.zeros((7, 3), order=order)).any()


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_that_count(order):
    rng = np.random.default_rng(4)
    A = np.asarray(rng.standard_normal((40, 900)), order=order)
    scale = np.repeat([1.0, 1e-3], [30, 870])
    assert as_matrix(A).columns_that_count == pytest.approx(900, rel=0.15)
    assert as_matrix(A * scale).columns_that_count == pytest.approx(30, rel=0.15)
    assert as_matrix(A * scale + 100.0).columns_that_count == pytest.approx(30, rel=0.15)
    assert as_matrix(np.asarray(A.T, order="C")).columns_that_count == 40.0  # nobody asks
    assert as_matrix(sparse.csr_array(A * scale)).columns_that_count == 900.0
    assert as_matrix(np.ones((4, 9))).columns_that_count == 9.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_products_of_several_columns_are_those_of_one_after_the_other(dtype):
    rng = np.random.default_rng(3)
    A = as_matrix(rng.standard_normal((3000, 50)).astype(dtype))  # of more than a block
    x, v = rng.standard_normal((50, 3)), rng.standard_normal((3000, 3))
    z, u = A.both(x, v)
    np.testing.assert_array_equal(z, A.dot(x))
    np.testing.assert_array_equal(u, A.tdot(v))
