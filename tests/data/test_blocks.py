"""Blocks of rows against the whole matrix: bit for bit with one block, to rounding with several."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.data.blocks import BlockMatrix, _dot, _tdot
from adacoord.data.matrix import as_matrix
from adacoord.linalg.gram import weighted_gram, weighted_moments
from adacoord.linalg.moments import _block_products
from adacoord.parallel.executors import Serial, Threads
from adacoord.solvers.dual.kernels import dual_pass
from adacoord.solvers.dual.rounds import dual_round
from adacoord.solvers.newton.in_blocks import (
    curvature_gram,
    evaluate,
    evaluate_step,
    hessian,
    sample_grams,
    spread,
)
from adacoord.solvers.primal.block_set import set_gram

KINDS = ["dense", "float32", "fortran", "csr", "csc", "long"]


def data(kind, n=60, d=9):
    rng = np.random.default_rng(len(kind))
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    A[5] = 0.0
    if kind == "float32":
        return A.astype(np.float32)
    if kind == "fortran":
        return np.asfortranarray(A)
    if kind in ("csr", "csc"):
        return sparse.csr_matrix(A).asformat(kind)
    if kind == "long":
        csr = sparse.csr_matrix(A)
        csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
        return csr
    return A


def cut(matrix, blocks, executor=None):
    bounds = np.linspace(0, matrix.shape[0], blocks + 1).astype(np.int64)
    return BlockMatrix.of(matrix, executor or Serial(), bounds)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [1, 4, 7])
def test_products(kind, blocks):
    matrix, rng = as_matrix(data(kind)), np.random.default_rng(0)
    parts = cut(matrix, blocks)
    rows = as_matrix(sparse.csr_matrix(data("csr"))) if kind == "csc" else matrix
    assert (parts.shape, parts.dtype, parts.nnz) == (matrix.shape, matrix.dtype, matrix.nnz)
    exact = blocks == 1 and not matrix.by_columns

    def same(a, b):
        if exact:
            assert np.array_equal(a, b)
        else:
            assert np.allclose(a, b, rtol=1e-12, atol=1e-12 if kind != "float32" else 1e-6)

    for shape in ((9,), (9, 3)):
        same(parts.dot(x := rng.standard_normal(shape)), matrix.dot(x))
    for shape in ((60,), (60, 3)):
        same(parts.tdot(v := rng.standard_normal(shape)), matrix.tdot(v))
    same(parts.magnitude_dot(x := rng.standard_normal(9)), matrix.magnitude_dot(x))
    same(parts.column_squares(w := rng.random(60)), rows.column_squares(w))
    same(parts.squared_norms, matrix.squared_norms)
    assert parts.row_sizes.tolist() == matrix.row_sizes.tolist()
    assert parts.zero_rows.tolist() == matrix.zero_rows.tolist()
    if matrix.is_dense:
        same(parts.take(np.array([0, 5, 17, 59])), matrix.take(np.array([0, 5, 17, 59])))
    centre = matrix.tdot(w) / w.sum()
    same(weighted_gram(parts, w, centre), weighted_gram(matrix, w, centre))
    same(weighted_gram(parts, w), weighted_gram(matrix, w))


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("blocks", [1, 5])
def test_functions_of_blocks(kind, blocks):
    """What runs on a block against formulas on the whole array."""
    A = data("dense") if kind == "dense" else data(kind).toarray()
    parts, rng = cut(as_matrix(data(kind)), blocks), np.random.default_rng(1)
    x, w, D = rng.standard_normal(9), rng.random(60), rng.random(60)
    b = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    loss = ac.losses.Logistic()

    def losses_at(x, c):
        """phi', w phi'' and the sums of ``evaluate``."""
        m = b * (A @ x + c)
        y, D = -b / (1 + np.exp(m)), w * np.exp(-m) / (1 + np.exp(-m)) ** 2
        value = np.sum(w * np.log1p(np.exp(-m)))
        return y, D, (value, np.sum(w * y), np.sum(D), A.T @ (w * y), A.T @ D)

    def same(found, expected):
        for one, other in zip(found, expected, strict=True):
            assert np.allclose(one, other, rtol=1e-12, atol=1e-13)

    (_,), without = parts.gather(evaluate, loss, x, 0.3, False, rows=(b, w))
    (y,), sums = parts.gather(evaluate, loss, x, 0.3, True, rows=(b, w))
    assert without[:3] == sums[:3] and (without[3] == sums[3]).all() and without[4].size == 0
    same((y, *sums), (losses_at(x, 0.3)[0], *losses_at(x, 0.3)[2]))

    dx, dc = 0.1 * rng.standard_normal(9), -0.2
    (followed,), (lacking, beyond, *sums) = parts.gather(
        evaluate_step, loss, x, 0.3, x + dx, 0.3 + dc, 0.0, rows=(b, w)
    )
    slopes, bend, _ = losses_at(x, 0.3)
    free = slopes + bend / w * (A @ dx + dc)
    want = -b * np.clip(-b * free, 0.0, 1.0)
    there, _, expected = losses_at(x + dx, 0.3 + dc)
    same((followed, *sums), (want, *expected))
    assert beyond == pytest.approx(np.sum(w * np.abs(free - want)), rel=1e-9, abs=1e-15)
    assert 0.0 < lacking < np.sum(w * (followed - there) ** 2 / 1e-3)

    centre = rng.standard_normal(9) if kind == "dense" else None
    R = A if centre is None else A - centre
    for flat, D_flat in ((0.0, bend), (0.7, 0.7 * w)):
        gram = parts.gather(curvature_gram, loss, x, 0.3, centre, flat, rows=(b, w))[1][0]
        same((gram,), (R.T @ (D_flat[:, None] * R),))

    (av,), (hv, bent) = parts.gather(hessian, x, 0.5, rows=(D,))
    assert np.allclose(av, A @ x + 0.5, rtol=1e-12)
    assert np.allclose(hv, A.T @ (D * (A @ x + 0.5)), rtol=1e-12, atol=1e-14)
    assert bent == pytest.approx(np.sum(D * (A @ x + 0.5)), rel=1e-12)

    centre = rng.standard_normal(9)
    squares, seen = parts.gather(spread, centre, rows=(D,))[1]
    stored = A != 0.0 if kind == "csr" else np.ones_like(A)
    assert np.allclose(squares, np.sum(D[:, None] * stored * (A - centre) ** 2, axis=0))
    if kind == "csr":
        assert np.allclose(seen, D @ stored)

    columns, shift = np.array([4, 0, 7, 2]), np.zeros(4)
    if kind == "dense":
        shift = rng.standard_normal(4)
    raw, sums = parts.gather(set_gram, columns, 1, shift, False, rows=(D,))[1]
    S = A[:, columns] - shift
    assert np.allclose(raw, S.T @ (D[:, None] * S[:, 1:]), rtol=1e-12, atol=1e-13)
    assert np.allclose(sums, D @ S[:, 1:], rtol=1e-12, atol=1e-13)
    # all columns in their order, with one weight for all rows: the squared loss's short way
    raw, sums = parts.gather(
        set_gram, np.arange(9), 0, np.zeros(9), False, rows=(np.full(60, 0.3),)
    )[1]
    assert np.allclose(raw, 0.3 * A.T @ A, rtol=1e-12, atol=1e-13)
    assert np.allclose(sums, 0.3 * A.sum(axis=0), rtol=1e-12, atol=1e-13)

    if kind == "dense":  # rows drawn some times, with a weight for each of two classes
        times, weights = rng.integers(0, 3, 60).astype(float), rng.exponential(1.0, (60, 2))
        grams = parts.gather(sample_grams, shift9 := rng.random(9), rows=(times, weights))[1][0]
        for k in range(2):
            expected = (A - shift9).T @ ((times * weights[:, k])[:, None] * (A - shift9))
            assert np.allclose(grams[k], expected, rtol=1e-12, atol=1e-13)


def same(a, b, exact):
    """Bit for bit, or to 1e-12 of the largest number: tuples of arrays and numbers."""
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            same(left, right, exact)
    elif exact:
        assert np.array_equal(a, b)
    else:
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * max(np.abs(b).max(), 1e-300))


@pytest.mark.parametrize("kind", ["dense", "float32", "csr", "long"])
@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_functions_of_blocks_and_of_the_whole(kind, blocks):
    """Each of them on one block is itself, bit for bit; on several it is to 1e-12."""
    matrix, rng = as_matrix(data(kind)), np.random.default_rng(2)
    parts, exact = cut(matrix, blocks), blocks == 1
    x, X, w, D = (rng.standard_normal(9), rng.standard_normal((9, 3)), *rng.random((2, 60)))
    b = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    loss, zeros = ac.losses.Logistic(), np.zeros(4)
    for function, common, of_rows in (
        (evaluate, (loss, x, 0.3, True), (b, w)),
        (evaluate_step, (loss, x, 0.3, 1.1 * x, 0.2, 0.0), (b, w)),
        (curvature_gram, (loss, x, 0.3, None, 0.0), (b, w)),
        (hessian, (x, 0.5), (D,)),
        (spread, (x,), (D,)),
        (set_gram, (np.array([4, 0, 7, 2]), 1, zeros, False), (D,)),
        (_block_products, (np.zeros(10),), (b, w)),
        (_dot, (X,), ()),
        (_tdot, (), (np.stack([b, w], axis=1),)),
    ):
        found = parts.gather(function, *common, rows=of_rows)
        same(found, matrix.gather(function, *common, rows=of_rows), exact)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_that_stay_in_the_cache(kind, monkeypatch):
    """All rows once, in their order; functions that go through them give the sums of the whole."""
    matrix, rng = as_matrix(data(kind)), np.random.default_rng(3)
    x, b, w = rng.standard_normal(9), np.sign(rng.standard_normal(60)), rng.random(60)
    of_all = [
        (evaluate, (ac.losses.Logistic(), x, 0.3, True)),
        (evaluate_step, (ac.losses.Logistic(), x, 0.3, 1.1 * x, 0.2, 0.0)),
    ]
    expected = [matrix.gather(function, *common, rows=(b, w)) for function, common in of_all]
    monkeypatch.setattr("adacoord.data.matrix.PART", 50)
    parts = list(matrix.in_cache())
    assert (len(parts) == 1) == matrix.by_columns
    assert np.concatenate([np.arange(60)[rows] for rows, _ in parts]).tolist() == list(range(60))
    for rows, part in parts:
        assert np.array_equal(part.dense, matrix.dense[rows])
        assert part.nnz <= 50 or part.shape[0] == 1 or not part.is_dense or matrix.by_columns
    for (function, common), whole in zip(of_all, expected, strict=True):
        same(matrix.gather(function, *common, rows=(b, w)), whole, False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [1, 4])
def test_both_products_in_one_look(kind, blocks):
    matrix, rng = as_matrix(data(kind)), np.random.default_rng(4)
    parts, x, v = cut(matrix, blocks), rng.standard_normal(9), rng.standard_normal(60)
    for point in (x, np.zeros(9), rng.standard_normal((9, 2))):
        z, u = parts.both(point, v)
        assert np.array_equal(z, parts.dot(point)) and np.array_equal(u, parts.tdot(v))


def naive_round(A, l2, sigma, v, order, b, share, y):
    """Ascent on the rows of ``order`` for the squared loss, its curvature seen sigma times."""
    y, u = y.copy(), v.copy()
    for i in order:
        a = A[i]
        step = (a @ u - b[i] - y[i]) / (1.0 + sigma * share[i] * (a @ a) / l2)
        y[i] += step
        u -= sigma * share[i] * step * a / l2
    return y[order], (u - v) / sigma


@pytest.mark.parametrize("kind", ["dense", "csr", "long"])
@pytest.mark.parametrize("blocks", [1, 5])
def test_a_dual_round(kind, blocks):
    """Against the formula on each block; with one block and sigma = 1 the bits of a dual pass."""
    A, rng, l2 = data(kind), np.random.default_rng(4), 0.3
    A = A if kind == "dense" else A.toarray()
    matrix = as_matrix(data(kind))
    parts, sigma = cut(matrix, blocks), 1.0 if blocks == 1 else 2.5
    b, y, v = rng.standard_normal(60), rng.standard_normal(60), rng.standard_normal(9)
    share, norms = (0.5 + rng.random(60)) / 60, matrix.squared_norms / l2
    loss = ac.losses.Squared()
    law, penalty = (loss.code, *loss.constants), (0.0, l2, False)
    orders = []
    for first, last in itertools.pairwise(parts.bounds):
        rows = np.flatnonzero(matrix.squared_norms[first:last] > 0.0)
        orders.append(rng.permutation(rows)[: max(rows.size // 2, 1)].astype(np.uint32))
    found = parts.map(
        dual_round,
        law,
        penalty,
        sigma,
        0.0,
        v,
        0.0,
        each=[(order,) for order in orders],
        rows=(b, share, norms, y),
    )
    for k, (new, dv, balance, change) in enumerate(found):
        rows = slice(parts.bounds[k], parts.bounds[k + 1])
        order, old = orders[k], y[rows][orders[k]]
        want, moved = naive_round(A[rows], l2, sigma, v, order, b[rows], share[rows], y[rows])
        np.testing.assert_allclose(new, want, rtol=0, atol=1e-12)
        np.testing.assert_allclose(dv, moved, rtol=0, atol=1e-12)
        of = share[rows][order]
        assert balance == pytest.approx(np.sum(of * (want - old)), abs=1e-12)
        conjugate = 0.5 * (want**2 - old**2) + b[rows][order] * (want - old)
        assert change == pytest.approx(np.sum(of * conjugate), abs=1e-12)
    if blocks == 1:
        serial, u = y.copy(), v.copy()
        with np.errstate(divide="ignore"):  # of the row of zeros, which is not visited
            step = 1.0 / (share * norms)
        dual_pass(*matrix.arrays, orders[0], b, share, step, serial, u, *law, *penalty, 0.0, 0.0)
        assert np.array_equal(new, serial[orders[0]])
        assert np.array_equal(dv, u - v)


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_for_any_number_of_threads(kind):
    matrix, rng = as_matrix(data(kind)), np.random.default_rng(0)
    v, x = rng.standard_normal(60), rng.standard_normal(9)
    want = cut(matrix, 7)
    for n in (1, 2, 4):
        executor = Threads(n)
        parts = cut(matrix, 7, executor)
        assert np.array_equal(parts.tdot(v), want.tdot(v))
        assert np.array_equal(parts.dot(x), want.dot(x))
        assert np.array_equal(weighted_gram(parts, v * v), weighted_gram(want, v * v))
        gram, sums = weighted_moments(parts, v * v)
        assert np.array_equal(gram, weighted_gram(want, v * v))
        assert np.array_equal(sums, want.tdot(v * v))
        executor.close()


@pytest.mark.parametrize("executor", [Serial(), Threads(3)])
def test_vectors_without_blocks(executor):
    """Sums over rows, and what is written to their parts; no block is loaded for it."""

    def double(factor, v, out):
        out[:] = factor * v
        return float(v.sum()), v.size

    parts = cut(as_matrix(data("dense")), 7, executor)
    parts.pieces = [None] * 7  # nothing to load
    v, out = np.random.default_rng(3).standard_normal(60), np.empty(60)
    total, count = parts.rowwise(double, 2.0, rows=(v, out))
    assert np.array_equal(out, 2.0 * v)
    assert count == 60 and total == pytest.approx(v.sum(), rel=1e-13)
    assert parts.rowwise(double, 2.0, rows=(v, out)) == (total, count)
    executor.close()


def test_pieces_are_views():
    A = np.ones((100, 4))
    parts = BlockMatrix.of(as_matrix(A), Serial(), np.array([0, 30, 100]))
    assert all(np.shares_memory(piece.load().data, A) for piece in parts.pieces)


def test_blocks_travel():
    block = as_matrix(data("csr"))
    other = pickle.loads(pickle.dumps(block))
    assert not other.data.flags.writeable
    assert np.array_equal(other.dot(np.ones(9)), block.dot(np.ones(9)))


class Again:
    """An iterable of pairs that makes them anew each time."""

    def __init__(self, parts):
        self.parts, self.times = parts, 0

    def __iter__(self):
        self.times += 1
        return iter(self.parts)


def pairs(kind="dense"):
    A, rng = data(kind), np.random.default_rng(3)
    b = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    return A, b, [(A[i : i + 25], b[i : i + 25]) for i in range(0, 60, 25)]


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("wrap", [list, Again])
def test_problem_of_pairs(kind, n_jobs, wrap):
    A, b, parts = pairs(kind)
    problem = ac.Problem(wrap(parts), loss="logistic", l2=0.1, intercept=True)
    result = ac.solve(problem, tol=1e-10, n_jobs=n_jobs)
    whole = ac.solve(ac.Problem(A, b, "logistic", l2=0.1, intercept=True), tol=1e-10)
    assert result.converged
    assert np.allclose(result.x, whole.x, atol=1e-4)  # within sqrt(2 gap/l2)
    assert result.primal == pytest.approx(whole.primal, rel=1e-9)


def test_what_is_wrong_with_pairs():
    A, b, parts = pairs()
    with pytest.raises(ValueError, match="block 1 of A has 25 rows and targets of shape"):
        ac.Problem([parts[0], (parts[1][0], b)], loss="logistic", l2=1.0)
    with pytest.raises(ValueError, match="all blocks must be alike"):
        ac.Problem([parts[0], (parts[1][0][:, :3], parts[1][1])], loss="logistic", l2=1.0)
    with pytest.raises(ValueError, match="b=None"):
        ac.Problem(A, loss="logistic", l2=1.0)
    bad = A.copy()
    bad[31, 2] = np.nan
    with pytest.raises(ValueError, match="nan"):
        ac.Problem(Again([parts[0], (bad[25:], b[25:])]), loss="logistic", l2=1.0)
    shrinking = Again(parts)
    problem = ac.Problem(shrinking, loss="logistic", l2=1.0)
    shrinking.parts = parts[:2]
    with pytest.raises(ValueError, match="the same pairs"):
        ac.solve(problem)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute"])
@pytest.mark.parametrize("l1", [0.0, 0.05])
def test_certificates_of_points_on_blocks(loss, l1):
    """Ascent in rounds proves what ascent on rows proves, to a little."""
    A, b, parts = pairs()
    whole = ac.Problem(A, b, loss, l1=l1, l2=0.1, intercept=True)
    best = ac.solve(whole, tol=1e-9)
    blocks = ac.Problem(parts, None, loss, l1=l1, l2=0.1, intercept=True)
    found = ac.certify(blocks, best.x, best.intercept, effort=300)
    assert found.primal == pytest.approx(best.primal, rel=1e-12)
    assert 0.0 <= found.gap <= 1e-3 * best.primal
    nothing = ac.certify(blocks, best.x, best.intercept, effort=0)
    assert nothing.gap >= found.gap


def test_solvers_without_a_form_for_blocks_are_refused():
    _, _, parts = pairs()
    problem = ac.Problem(parts, loss="logistic", l2=1.0)
    with pytest.raises(ValueError, match="blocks of rows"):
        ac.solve(problem, solver="spdc")
    with pytest.raises(ValueError, match="no form for blocks"):
        A, b, _ = pairs()
        ac.solve(ac.Problem(A, b, "logistic", l2=1.0), solver="spd1-vr", n_jobs=2)
    codes = [(X, (y > 0.0).astype(float)) for X, y in parts]
    with pytest.raises(ValueError, match="no method takes this"):
        ac.solve(ac.Problem(codes, loss="multinomial", l1=0.1))
    with pytest.raises(ValueError, match=r"no method takes this.*use l2 > 0"):  # and no box
        ac.solve(ac.Problem(parts, loss="epsilon_insensitive"))


def test_kinks_with_an_l1_are_an_interior_points():
    _, _, parts = pairs()
    A = np.concatenate([X for X, _ in parts])
    b = np.concatenate([y for _, y in parts])
    found = ac.solve(ac.Problem(parts, loss="epsilon_insensitive", l1=0.1), tol=1e-7)
    whole = ac.solve(ac.Problem(A, b, "epsilon_insensitive", l1=0.1), tol=1e-9)
    assert found.converged and found.solver == "newton"
    assert found.primal == pytest.approx(whole.primal, rel=1e-6)
