"""More entries than 32 bits count: kernels, blocks and solvers reach them, bit for bit.

The entries stand at the end of files with holes, which take no space; nothing reads the rest.
"""

from itertools import chain

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.data.blocks import BlockMatrix
from adacoord.data.matrix import Matrix, as_matrix
from adacoord.data.partition import block_bounds
from adacoord.kernels.rows import magnitudes, matvec, rmatvec
from adacoord.linalg.gram import weighted_gram
from adacoord.parallel.executors import Serial, Threads

#: Where the first entry stands: beyond what int32 and uint32 count.
FAR = 2**32 + 12_345
N, D = 200, 30


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.4)
    return A, np.where(A @ rng.standard_normal(D) + rng.standard_normal(N) > 0.0, 1.0, -1.0)


def far_away(array, path):
    """The array behind a hole of FAR numbers of its type."""
    out = np.memmap(path, array.dtype, "w+", shape=(FAR + array.size,))
    out[FAR:] = array
    return out


@pytest.fixture(scope="module")
def far(rows, tmp_path_factory):
    """CSR rows whose starts begin at FAR."""
    folder, near = tmp_path_factory.mktemp("far"), as_matrix(sparse.csr_matrix(rows[0]))
    indptr, indices, data = near.arrays
    out = Matrix(
        near.shape,
        indptr + np.uint64(FAR),
        far_away(indices, folder / "indices"),
        far_away(data, folder / "data"),
    )
    yield out
    assert sum(file.stat().st_blocks * 512 for file in folder.iterdir()) < 2**24


@pytest.fixture(scope="module")
def near(rows):
    return as_matrix(sparse.csr_matrix(rows[0]))


def cut(matrix, executor):
    out = BlockMatrix.of(matrix, executor, np.array([0, 70, 71, N]))
    out._nnz = int(matrix.indptr[-1] - matrix.indptr[0])  # without the hole
    return out


def test_products(near, far):
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal(D), rng.standard_normal(N)
    assert far.nnz > 2**32
    assert np.array_equal(far.squared_norms, near.squared_norms)
    for ours, theirs in ((far, near), (cut(far, Serial()), cut(near, Serial()))):
        assert np.array_equal(ours.dot(x), theirs.dot(x)) and theirs.dot(x).any()
        assert np.array_equal(ours.tdot(v), theirs.tdot(v)) and theirs.tdot(v).any()
        assert np.array_equal(ours.magnitude_dot(x), theirs.magnitude_dot(x))
        assert np.array_equal(weighted_gram(ours, v * v), weighted_gram(theirs, v * v))


def test_dense_kernels(rows, tmp_path):
    A, rng = np.ascontiguousarray(rows[0]), np.random.default_rng(2)
    starts = np.arange(N + 1, dtype=np.uint64) * np.uint64(D)
    data = far_away(A.ravel(), tmp_path / "data")
    for kernel, size, more in ((matvec, D, 0), (magnitudes, D, 0), (rmatvec, N, 1)):
        at = rng.standard_normal(size)
        outs = np.zeros((2, N + D - size))
        # rmatvec: rows in a block, and where their sums are made
        work = [(N // 3, np.zeros(D))] * more
        kernel(starts, None, A.ravel(), at, *chain(*work), outs[0])
        kernel(starts + np.uint64(FAR), None, data, at, *chain(*work), outs[1])
        assert np.array_equal(outs[0], outs[1]) and outs[0].any()


def test_blocks_are_cut_there(far, near):
    """Bytes before a row are counted in 64 bits."""
    bounds = block_bounds((N, D), 8, far.indptr)
    assert bounds[0] == 0 and bounds[-1] == N and (np.diff(bounds) > 0).all()


@pytest.mark.parametrize(
    ("solver", "loss", "blocks"),
    [
        ("dcd", "hinge", False),
        ("acf", "hinge", False),
        ("spdc", "smooth_hinge", False),
        ("sdca", "logistic", False),
        ("newton-cg", "logistic", False),
        ("newton-cg", "squared", True),
        ("newton", "smooth_hinge", True),
        ("dcd", "hinge", True),
        ("dcd", "logistic", True),
    ],
)
def test_solvers(rows, near, far, solver, loss, blocks):
    found = []
    for matrix in (near, far):
        executor = Threads(2)
        data = cut(matrix, executor) if blocks else matrix
        problem = ac.Problem(data, rows[1], loss, l2=1e-2, intercept=True)
        found.append(ac.solve(problem, solver, tol=1e-8, max_passes=2000))
        executor.close()
    assert all(result.converged for result in found)
    assert np.array_equal(found[0].x, found[1].x) and found[0].intercept == found[1].intercept
