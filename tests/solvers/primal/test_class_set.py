"""Several classes or targets on working sets: kernels against NumPy, optima against others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import MultiTaskElasticNet

import adacoord as ac
from adacoord.data.matrix import as_matrix
from adacoord.solvers import registry
from adacoord.solvers.primal.class_kernels import (
    EXPONENTIALS,
    class_expand,
    class_sweep,
    dense_row_sweep,
    gram_row_sweep,
    row_sweep,
)
from adacoord.solvers.primal.class_set import ClassWorkingSet

PENALTIES = (
    {"l1": 0.02},
    {"l1": 0.01, "l2": 0.02},
    {"l21": 0.03},
    {"l21": 0.02, "l1": 0.005, "l2": 0.01},
)


@pytest.fixture(autouse=True)
def no_other(monkeypatch):
    """Several targets on tables of many rows are those of test_target_set.py."""
    monkeypatch.setattr(registry, "dense_targets", lambda _: False)


def classes(seed=0, n=60, d=15, K=4, is_sparse=False, **how):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.4
    if is_sparse:
        A = sparse.csr_matrix(np.where(rng.random((n, d)) < 0.4, A, 0.0))
    W = np.zeros((d, K))
    W[: d // 3] = 1.5 * rng.standard_normal((d // 3, K))
    b = np.argmax(A @ W + rng.gumbel(size=(n, K)), axis=1)
    b[:K] = np.arange(K)
    return ac.Problem(A, b, "multinomial", **how)


def targets(seed=0, n=40, d=15, K=3, is_sparse=False, **how):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.4
    if is_sparse:
        A = sparse.csr_matrix(np.where(rng.random((n, d)) < 0.4, A, 0.0))
    W = np.zeros((d, K))
    W[: d // 3] = rng.standard_normal((d // 3, K))
    return ac.Problem(A, A @ W + 0.2 * rng.standard_normal((n, K)) + 1.0, **how)


# --- kernels -------------------------------------------------------------------------------------


def model(seed, simplex):
    """A random model, and its value at any x from the definition."""
    rng = np.random.default_rng(seed)
    n, d, K = 12, 5, 3
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    p = rng.dirichlet(np.ones(K), n)
    w = rng.random(n) / n
    slopes, x = rng.standard_normal((n, K)) * w[:, None], rng.standard_normal((d, K))
    H = [w[i] * (np.diag(p[i]) - np.outer(p[i], p[i]) if simplex else np.eye(K)) for i in range(n)]

    def value(new, l1, l2, threshold=0.0):
        dz = A @ (new - x)
        smooth = np.sum(slopes * dz) + 0.5 * sum(dz[i] @ H[i] @ dz[i] for i in range(n))
        rows = threshold * np.linalg.norm(new, axis=1).sum()
        return smooth + l1 * np.abs(new).sum() + 0.5 * l2 * np.square(new).sum() + rows

    def slopes_at(new):
        dz = A @ (new - x)
        return slopes + np.stack([H[i] @ dz[i] for i in range(n)])

    return A, p, w, slopes, x, value, slopes_at


@pytest.mark.parametrize("scale", [1e-8, 20.0, 1e6])
@pytest.mark.parametrize(
    "n, K", [(1, 2), (7, 3), (EXPONENTIALS // 8 + 3, 8), (3, EXPONENTIALS + 1)]
)
def test_expansion_of_the_losses_of_classes(n, K, scale):
    rng = np.random.default_rng(n)
    z, w, b = scale * rng.standard_normal((n, K)), rng.random(n), rng.integers(K, size=n)
    w[2:4] = 0.0
    loss, y, p = ac.losses.Multinomial(), np.empty((n, K)), np.empty((n, K))
    total = class_expand(z, b, w, y, p)
    expected = loss.derivative(z, b)
    np.testing.assert_allclose(y, expected, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(p, expected + np.eye(K)[b], rtol=1e-13, atol=1e-15)
    assert total == pytest.approx(w @ loss.value(z, b), rel=1e-13)
    z[0, 0] = np.inf  # an overflow is not taken for a decrease
    assert not class_expand(z, b, w, y, p) < np.inf


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_sweep_over_single_coefficients(seed, is_sparse):
    A, p, w, slopes, x, value, slopes_at = model(seed, simplex=True)
    l1, l2 = 0.02, 0.01
    columns = as_matrix(sparse.csr_matrix(A) if is_sparse else A).columns
    squares = np.einsum("ij,i,ik->jk", A * A, w, p * (1.0 - p))
    naive = x.copy()
    for j in (3, 0, 4):
        for k in range(3):
            slope = A[:, j] @ slopes_at(naive)[:, k] + l2 * naive[j, k]
            square = squares[j, k] + l2
            v = naive[j, k] - slope / square
            naive[j, k] = np.sign(v) * max(abs(v) - l1 / square, 0.0)
    new, moved = x.copy(), slopes.copy()
    lowered, *_ = class_sweep(
        *columns.arrays,
        np.array([3, 0, 4]),
        new,
        moved,
        p,
        w,
        squares,
        l1,
        l2,
        np.ones(5),
        0.0,
        0.0,
        np.empty(3),
    )
    np.testing.assert_allclose(new, naive, atol=1e-12)
    np.testing.assert_allclose(moved, slopes_at(new), atol=1e-12)
    assert lowered == pytest.approx(value(x, l1, l2) - value(new, l1, l2), abs=1e-12)


@pytest.mark.parametrize("simplex", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_sweep_over_rows(seed, simplex):
    A, p, w, slopes, x, value, slopes_at = model(seed, simplex)
    l1, l2, threshold = 0.01, 0.02, 0.03
    curvature = w @ (A * A)
    new, moved = x.copy(), slopes.copy()
    lowered, *_ = row_sweep(
        *as_matrix(A).columns.arrays,
        np.array([1, 2, 4]),
        new,
        moved,
        p if simplex else np.empty((0, 3)),
        w,
        curvature,
        np.zeros(5),
        np.zeros(3),
        np.inf,
        np.full(5, threshold),
        l1,
        l2,
        np.ones(5),
        0.0,
        0.0,
        np.empty((2, 3)),
    )
    np.testing.assert_allclose(moved, slopes_at(new), atol=1e-12)
    gained = value(x, l1, l2, threshold) - value(new, l1, l2, threshold)
    if simplex:  # the model of a step is above: at least as much is gained
        assert gained >= lowered - 1e-12
        return
    assert lowered == pytest.approx(gained, abs=1e-12)
    last = 4  # of the last row nothing is left to gain
    for step in 1e-4 * np.random.default_rng(seed).standard_normal((20, 3)):
        other = new.copy()
        other[last] += step
        assert value(other, l1, l2, threshold) >= value(new, l1, l2, threshold) - 1e-14


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_gram_matrices_and_long_vectors_take_the_same_steps(seed, intercept):
    A, _, w, slopes, x, *_ = model(seed, simplex=False)
    sums, mass = (A.T @ w, w.sum()) if intercept else (np.zeros(5), np.inf)
    total = slopes.sum(axis=0) if intercept else np.zeros(3)
    curvature = w @ (A * A) - sums**2 / mass
    order, of_set = np.array([4, 1, 2, 4, 1]), np.array([1, 2, 4])
    place, thresholds = np.array([9, 0, 1, 9, 2]), np.full(5, 0.03)
    q = A[:, of_set].T @ slopes - np.outer(sums[of_set], total / mass)
    part = A[:, of_set] - sums[of_set] / mass
    gram = part.T @ (w[:, None] * part)
    end = (np.ones(5), 0.0, 0.0)
    new, other, sum_one, sum_two = x.copy(), x.copy(), total.copy(), total.copy()
    there = np.ascontiguousarray(q.T)
    one = gram_row_sweep(
        order,
        place,
        new,
        gram,
        there,
        curvature,
        sums,
        sum_one,
        thresholds,
        0.01,
        0.02,
        *end,
        np.empty((6, 3)),
    )
    columns, moved = as_matrix(A).columns, slopes.copy()
    two = row_sweep(
        *columns.arrays,
        order,
        other,
        moved,
        np.empty((0, 3)),
        w,
        curvature,
        sums,
        sum_two,
        mass,
        thresholds,
        0.01,
        0.02,
        *end,
        np.empty((2, 3)),
    )
    np.testing.assert_allclose(new, other, atol=1e-12)
    np.testing.assert_allclose(sum_one, sum_two, atol=1e-12)
    assert one[0] == pytest.approx(two[0], abs=1e-12)
    assert one[3] == two[3]
    np.testing.assert_allclose(there, q.T + (gram @ (new - x)[of_set]).T, atol=1e-12)
    third, sum_three, across = x.copy(), total.copy(), np.ascontiguousarray(slopes.T)
    three = dense_row_sweep(
        columns.colptr,
        columns.data,
        order,
        third,
        across,
        w,
        curvature,
        sums,
        sum_three,
        mass,
        thresholds,
        0.01,
        0.02,
        *end,
        np.empty((2, 3)),
    )
    np.testing.assert_allclose(third, other, atol=1e-12)
    np.testing.assert_allclose(sum_three, sum_two, atol=1e-12)
    np.testing.assert_allclose(across.T, moved, atol=1e-12)
    assert three[:2] == pytest.approx(two[:2], abs=1e-12)
    assert three[3] == two[3]


# --- the solver ----------------------------------------------------------------------------------


def optimum(problem):
    """Of the multinomial loss, by Clarabel from the definition."""
    cp = pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    from adacoord.data.columns import as_scipy

    A, penalty, (d, K) = as_scipy(problem.matrix), problem.penalty, problem.x_shape
    x, c = cp.Variable((d, K)), cp.Variable((1, K))
    z = A @ x + (np.ones((problem.n, 1)) @ c if problem.intercept else 0.0)
    own = cp.sum(cp.multiply(np.eye(K)[problem.b], z), axis=1)
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    cost = w @ (cp.log_sum_exp(z, axis=1) - own) / problem.n
    cost += penalty.l1 * cp.sum(cp.abs(x)) + penalty.l2 / 2 * cp.sum_squares(x)
    if penalty.grouped:
        cost += penalty.l21 * cp.sum(cp.norm2(x, axis=1))
    options = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    return float(cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL", **options))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # of digits that are not compared
@pytest.mark.parametrize("how", PENALTIES)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_optimum_of_classes(how, is_sparse):
    weights = np.random.default_rng(5).random(60) + 0.2
    problem = classes(is_sparse=is_sparse, intercept=True, sample_weight=weights, **how)
    result = ac.solve(problem, tol=1e-10)
    assert result.converged and result.solver == "acf"
    assert result.primal == pytest.approx(optimum(problem), rel=1e-8)


@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("intercept", [False, True])
def test_optimum_of_targets(ratio, intercept):
    problem = targets(l21=0.2 * ratio, l2=0.2 * (1.0 - ratio), intercept=intercept)
    result = ac.solve(problem, tol=1e-12)
    A = np.asarray(problem.matrix._array)
    other = MultiTaskElasticNet(0.2, l1_ratio=ratio, fit_intercept=intercept, tol=1e-12)
    other.set_params(max_iter=100_000).fit(A, problem.b)
    assert result.primal <= problem.primal(other.coef_.T.copy(), other.intercept_) + 1e-10
    np.testing.assert_allclose(result.x, other.coef_.T, atol=1e-6)


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([classes, targets]),
    st.integers(0, 1000),
    st.sampled_from(PENALTIES),
    st.booleans(),
    st.booleans(),
)
def test_gap_bounds_what_is_missing(make, seed, how, intercept, is_sparse):
    problem = make(seed=seed, intercept=intercept, is_sparse=is_sparse, **how)
    best = ac.solve(problem, tol=1e-8, max_passes=5000)
    assert best.relative_gap <= 1e-8
    rng = np.random.default_rng(seed)
    for size in (0.0, 0.1, 1.0):
        x = best.x + size * rng.standard_normal(best.x.shape)
        y = problem.loss.derivative(problem.predict(x, best.intercept), problem.b)
        missing = problem.primal(x, best.intercept) - best.primal
        assert problem.gap(x, y, best.intercept) >= missing - 1e-12


@pytest.mark.parametrize("make", [classes, targets])
@pytest.mark.parametrize("how", [PENALTIES[0], PENALTIES[3]])
def test_state_goes_on_bit_by_bit(make, how):
    problem = make(intercept=True, **how)

    def solver():
        return ClassWorkingSet(problem, np.random.Generator(np.random.PCG64(0)))

    whole = solver()
    whole.advance(9)
    for cut in (1, 2, 4, 7):
        parts, other = solver(), solver()
        parts.advance(cut)
        other.restore(parts.state())
        other.advance(9 - cut)
        assert np.array_equal(whole.x, other.x) and np.array_equal(whole.intercept, other.intercept)


def test_labels_in_another_order():
    """Weights are in the order of the labels, columns in any: it was stuck at a gap of .6."""
    order, w = np.array([3, 0, 1, 2, 5, 4]), np.arange(1.0, 7.0)
    for make in (classes, targets):
        found = ac.solve(make(d=6, l21=0.03, groups=order, group_weights=w), tol=1e-8)
        same = ac.solve(make(d=6, l21=0.03, group_weights=w[order]), tol=1e-8)
        assert found.converged and found.primal == pytest.approx(same.primal, rel=1e-7)


def test_offsets():
    offset = np.random.default_rng(2).standard_normal((60, 4))
    plain = classes(intercept=True, l1=0.02)
    moved = ac.Problem(
        np.asarray(plain.matrix._array), plain.b, "multinomial", l1=0.02, offset=offset
    )
    result = ac.solve(moved, tol=1e-9)
    assert result.converged
    two = targets(l21=0.1, offset=np.ones((40, 3)))
    assert ac.solve(two, tol=1e-9).converged


def test_bad_targets():
    A = np.ones((4, 2))
    with pytest.raises(ValueError, match=r"b has the value nan at position \(1, 0\)"):
        ac.Problem(A, [[1.0, 2.0], [np.nan, 1.0], [0.0, 0.0], [1.0, 1.0]], l21=1.0)
    with pytest.raises(ValueError, match="A has 4 rows"):
        ac.Problem(A, np.ones((3, 2)), l21=1.0)
    with pytest.raises(ValueError, match="several targets l1 and l2 are one number"):
        ac.Problem(A, np.ones((4, 2)), l1=[1.0, 2.0])
    with pytest.raises(ValueError, match='solver="apdc" takes no groups'):
        ac.solve(ac.Problem(A, np.arange(8.0).reshape(4, 2), l21=1.0), "apdc")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_matrix_of_a_smaller_set_is_a_part(weighted, dtype, monkeypatch):
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((40, 9)).astype(dtype), rng.standard_normal((40, 3))
    w = rng.random(40) if weighted else None
    problem = ac.Problem(A, b, l21=0.01, intercept=True, sample_weight=w)
    solver, weight = ClassWorkingSet(problem, rng), np.full(40, 1.0) if w is None else w
    solver._linearise()
    made, dense = [], ClassWorkingSet._dense_set
    monkeypatch.setattr(
        ClassWorkingSet, "_dense_set", lambda self: made.append(self.set.size) or dense(self)
    )
    for size, columns in enumerate((range(9), [1, 4, 8], [4, 8], [4, 5])):
        solver.set = np.array(columns)
        made.clear()
        solver._by_gram()
        assert len(made) == (2 if size in (0, 3) else 1)  # q always wants them
        part = A[:, solver.set] - weight @ A[:, solver.set] / weight.sum()
        right = part.T @ (weight[:, None] * part) / 40
        np.testing.assert_allclose(solver.gram, right, rtol=1e-12, atol=1e-14)


def test_a_set_of_all_that_may_move_is_looked_at_once(monkeypatch):
    """Its minimum is that of all columns: the monitor says so."""
    rng, looks = np.random.default_rng(3), []
    A, b = rng.standard_normal((60, 12)), rng.standard_normal((60, 3))
    look = ClassWorkingSet._look
    monkeypatch.setattr(ClassWorkingSet, "_look", lambda self: looks.append(1) or look(self))
    found = ac.solve(ac.Problem(A, b, l21=0.03, intercept=True), "acf", tol=1e-8)
    assert found.converged and len(looks) == 1
