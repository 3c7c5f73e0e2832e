"""Groups of columns on working sets: kernels against NumPy, optima against Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adacoord as ac
from adacoord.data.matrix import as_matrix
from adacoord.solvers.primal import group_kernels, group_set
from adacoord.solvers.primal.group_kernels import (
    TURNED,
    by_rows,
    diagonalise,
    group_add,
    group_dots,
    group_gram,
    group_minimum,
    spectral_minimum,
)
from adacoord.solvers.primal.group_set import GroupWorkingSet

LOG_LINKS = ("poisson", "gamma", "tweedie")
CONVEX_PROGRAMS = ("squared", "logistic", "huber", "squared_hinge", *LOG_LINKS)
LOSSES = ("smooth_hinge", "log_cosh", *CONVEX_PROGRAMS)


def make(loss, *, n=60, d=24, seed=0, is_sparse=False, **how):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.3
    if is_sparse:
        A = sparse.csr_matrix(np.where(rng.random((n, d)) < 0.4, A, 0.0))
    x = np.zeros(d)
    x[: d // 4] = rng.standard_normal(d // 4)
    z = A @ x + 0.3 * rng.standard_normal(n) + 0.5
    b = np.where(z > 0.5, 1.0, -1.0) if ac.losses.LOSSES[loss].task == "classification" else z
    b = np.exp(0.5 * z) if loss in LOG_LINKS else b
    return ac.Problem(A, b, loss, groups=rng.integers(0, d // 3, d), **how)


# --- kernels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("one_curvature", [False, True])
def test_gram_matrices_of_groups(is_sparse, one_curvature):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((15, 7)) * (rng.random((15, 7)) < 0.6)
    A[:, 4] = 2.0  # constant: nothing is left of it
    h = np.full(1, 0.7) if one_curvature else rng.random(15) + 0.1
    rows = np.full(15, 0.7) if one_curvature else h
    members, pointers = np.array([0, 3, 5, 1, 2, 4, 6]), np.array([0, 3, 5, 6, 7])
    sums, mass = A.T @ rows, rows.sum()
    centred = A - sums / mass
    columns = as_matrix(sparse.csr_matrix(A) if is_sparse else A).columns
    starts, blocks, bounds = np.array([0, 9, 13, -1]), np.zeros(14), np.zeros(4)
    column = np.zeros(15)
    how = pointers, members, h, sums, mass, starts, blocks, bounds, column, np.empty(3)
    touched = [group_gram(*columns.arrays, g, *how) for g in range(4)]
    sizes = columns.sizes[members]
    # a column of the first for itself and each one before, of the last once
    pairs = [1, 2, 3, 1, 2, 1, 1]
    counted = np.bincount([0, 0, 0, 1, 1, 2, 3], np.multiply(pairs, sizes))
    np.testing.assert_array_equal(touched, counted)
    for g in range(3):
        part = centred[:, members[pointers[g] : pointers[g + 1]]]
        expected = part.T @ (rows[:, None] * part)
        found = blocks[starts[g] : starts[g] + expected.size].reshape(expected.shape)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert bounds[g] >= np.linalg.eigvalsh(expected).max() - 1e-12
    assert bounds[2] == 0.0
    assert bounds[3] == pytest.approx(centred[:, 6] @ (rows * centred[:, 6]))
    if is_sparse:
        assert not column.any()


@pytest.mark.parametrize("size", [1, 4, 7, 9])
@pytest.mark.parametrize("one_curvature", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_products_with_the_columns_of_a_group(is_sparse, one_curvature, size):
    rng = np.random.default_rng(size)
    A = rng.standard_normal((37, 12)) * (rng.random((37, 12)) < 0.6)
    arrays = as_matrix(sparse.csr_matrix(A) if is_sparse else A).columns.arrays
    columns, v = rng.permutation(12), rng.standard_normal(37)
    chosen, dots = columns[2 : 2 + size], np.full(size + 1, 7.0)
    group_dots(*arrays, columns, 2, size, v, dots)
    np.testing.assert_allclose(dots[:size], A[:, chosen].T @ v, atol=1e-12)
    assert dots[size] == 7.0
    h = np.full(1, 0.7) if one_curvature else rng.random(37)
    steps, slopes = rng.standard_normal(12), v.copy()
    touched = group_add(*arrays, chosen, size, steps, h, slopes)
    np.testing.assert_allclose(slopes, v + h * (A[:, chosen] @ steps[:size]), atol=1e-12)
    assert touched == (np.count_nonzero(A[:, chosen]) if is_sparse else 37 * size)


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(0, 10_000), st.sampled_from([0.0, 0.1]))
def test_minimum_of_a_group(size, seed, l1):
    """Against plain proximal gradients, many of them."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size + 2, size))
    B = root.T @ root
    x, g = rng.standard_normal(size) * (rng.random() < 0.7), 3.0 * rng.standard_normal(size)
    l2, threshold = 0.3 * rng.random(), rng.random()
    bound = np.abs(B).sum(axis=1).max()

    def value(t):
        step = t - x
        smooth = g @ step + 0.5 * step @ B @ step + 0.5 * l2 * t @ t
        return smooth + l1 * np.abs(t).sum() + threshold * np.linalg.norm(t)

    best, L = x.copy(), bound + l2
    for _ in range(20_000):
        v = best - (g + B @ (best - x) + l2 * best) / L
        v = np.sign(v) * np.maximum(np.abs(v) - l1 / L, 0.0)
        norm = np.linalg.norm(v)
        new = v * max(1.0 - threshold / L / norm, 0.0) if norm > 0.0 else v
        moved, best = np.abs(new - best).max(), new
        if moved <= 1e-15:
            break
    at, slope, r = x.copy(), g.copy(), np.empty(size)
    for _ in range(1000):  # a visit takes so many steps and no more
        v = np.empty(size)
        how = B.ravel().copy(), 0, bound, l1, l2, threshold
        gain, steps = group_minimum(at, slope, size, *how, v, r)
        assert 0 < steps <= group_kernels.STEPS
        assert gain == pytest.approx(value(at) - value(v), abs=1e-10 * (1.0 + abs(value(at))))
        assert gain >= -1e-12 * (1.0 + abs(value(at)))
        slope = slope + B @ (v - at)
        moved, at = np.abs(v - at).max(), v
        if moved <= 1e-14:
            break
    assert value(at) <= value(best) + 1e-9 * (1.0 + abs(value(best)))
    if l1 == 0.0:  # at once, from eigenvectors
        values, vectors = np.linalg.eigh(B)
        how = vectors.T.ravel(), 0, values, 0, l2, threshold
        gain = spectral_minimum(x, g, size, *how, v, r, np.empty(size))
        assert gain == pytest.approx(value(x) - value(v), abs=1e-10 * (1.0 + abs(value(x))))
        assert value(v) <= value(best) + 1e-9 * (1.0 + abs(value(best)))
        assert v.any() == (np.linalg.norm(g - B @ x) > threshold)


def test_minimum_of_a_group_without_curvature():
    """Directions that the loss does not see: g has no part there, but for rounding."""
    rng = np.random.default_rng(1)
    root = rng.standard_normal((2, 4))
    values, vectors = np.linalg.eigh(root.T @ root)
    values, g = np.maximum(values, 0.0), root.T @ np.array([2.0, -1.0])
    x, v, room = rng.standard_normal(4), np.empty(4), np.empty((2, 4))
    for at in (np.zeros(4), x):
        spectral_minimum(at, g, 4, vectors.T.ravel(), 0, values, 0, 0.0, 0.1, v, *room)
        slope = g + root.T @ (root @ (v - at))
        np.testing.assert_allclose(slope, -0.1 * v / np.linalg.norm(v), atol=1e-10)
    spectral_minimum(x, g, 4, np.eye(4).ravel(), 0, np.zeros(4), 0, 0.0, 0.1, v, *room)
    assert np.isfinite(v).all()  # of a loss without a curvature there is no minimum


# --- the solver ----------------------------------------------------------------------------------


def optimum(problem: ac.Problem) -> float:
    """By Clarabel, from the definition."""
    cp = pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    from adacoord.data.columns import as_scipy

    A, b, penalty = as_scipy(problem.matrix), problem.b, problem.penalty
    x, c = cp.Variable(problem.d), cp.Variable()
    z = A @ x + (c if problem.intercept else 0.0)
    if problem.offset is not None:
        z = z + problem.offset
    losses = {
        "squared": lambda: cp.square(z - b) / 2,
        "logistic": lambda: cp.logistic(-cp.multiply(b, z)),
        "huber": lambda: cp.huber(z - b, 1.35) / 2,
        "squared_hinge": lambda: cp.square(cp.pos(1 - cp.multiply(b, z))),
        "poisson": lambda: cp.exp(z) - cp.multiply(b, z),
        "gamma": lambda: z + cp.multiply(b, cp.exp(-z)),
        "tweedie": lambda: 2 * cp.multiply(b, cp.exp(-z / 2)) + 2 * cp.exp(z / 2),  # p = 1.5
    }[problem.loss.name]()
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    cost = w @ losses / problem.n + penalty.l1 * cp.norm1(x) + penalty.l2 / 2 * cp.sum_squares(x)
    for g, weight in enumerate(penalty.weights):
        cost += penalty.l21 * weight * cp.norm2(x[np.flatnonzero(penalty.index == g)])
    options = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    return float(cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL", **options))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # of digits that are not compared
@pytest.mark.parametrize("loss", CONVEX_PROGRAMS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_optimum(loss, intercept, l1):
    rng = np.random.default_rng(1)
    problem = make(
        loss,
        l21=0.05,
        l1=l1,
        l2=0.01 * intercept,
        intercept=intercept,
        sample_weight=rng.random(60) + 0.5,
        offset=0.1 * rng.standard_normal(60),
        is_sparse=l1 > 0.0,
    )
    result = ac.solve(problem, tol=1e-10)
    assert result.converged and result.solver == "acf"
    assert result.primal == pytest.approx(optimum(problem), rel=1e-8)


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(LOSSES),
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.03]),
    st.sampled_from([0.0, 0.1]),
    st.booleans(),
    st.booleans(),
)
def test_gap_bounds_what_is_missing(loss, seed, l1, l2, intercept, is_sparse):
    """gap >= P - P* at every check of a run, and of a point from anywhere."""
    how = {"l21": 0.05, "l1": l1, "l2": l2, "intercept": intercept, "is_sparse": is_sparse}
    problem = make(loss, n=30, d=12, seed=seed, **how)
    best = ac.solve(problem, tol=1e-9)
    assert best.relative_gap <= 1e-9
    rng = np.random.default_rng(seed)
    for size in (0.0, 0.1, 1.0):
        x = best.x + size * rng.standard_normal(12)
        y = problem.loss.derivative(problem.predict(x, best.intercept), problem.b)
        missing = problem.primal(x, best.intercept) - best.primal
        assert problem.gap(x, y, best.intercept) >= missing - 1e-12
    first = ac.solve(problem, tol=1e-2)
    assert first.gap >= first.primal - best.primal - 1e-12
    assert best.dual <= first.primal


def test_whole_groups_are_zero():
    problem = make("squared", l21=0.2)
    x = ac.solve(problem, tol=1e-10).x
    by_group = [np.count_nonzero(x[problem.penalty.index == g]) for g in range(8)]
    sizes = np.bincount(problem.penalty.index, minlength=8)
    assert all(found in (0, size) for found, size in zip(by_group, sizes, strict=True))
    assert 0 < np.count_nonzero(x) < x.size


def test_groups_of_one_column_are_the_lasso():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((50, 80)), rng.standard_normal(50)
    groups = ac.Problem(A, b, l21=0.1, groups=np.arange(80), intercept=True)
    lasso = ac.Problem(A, b, l1=0.1, intercept=True)
    x = [ac.solve(p, tol=1e-12).x for p in (groups, lasso)]
    np.testing.assert_allclose(*x, atol=1e-9)


def test_labels_may_be_anything_in_any_order():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((50, 6)), rng.standard_normal(50)
    names = ac.Problem(A, b, l21=0.1, groups=["b", "a", "b", "a", "c", "b"])
    numbers = ac.Problem(A, b, l21=0.1, groups=[7, -1, 7, -1, 9, 7])
    assert np.array_equal(ac.solve(names).x, ac.solve(numbers).x)


def test_groups_too_large_for_a_gram_matrix(monkeypatch):
    monkeypatch.setattr("adacoord.solvers.primal.group_set.MOST", 5)
    problem = make("squared", l21=0.05)
    found = ac.solve(problem, tol=1e-9)
    monkeypatch.undo()
    assert found.converged
    assert found.primal == pytest.approx(ac.solve(problem, tol=1e-9).primal, rel=1e-8)


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(0, 10_000), st.booleans())
def test_diagonalise(size, seed, short):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((size // 2 if short else 2 * size, size)) * rng.random(size)
    B = root.T @ root
    numbers, values = np.append(7.0, B.ravel()), np.full(size + 2, 7.0)
    diagonalise(numbers, 1, size, values, 2, np.empty(size * size))
    V, values = numbers[1:].reshape(size, size), values[2:]
    assert numbers[0] == 7.0 and (values >= 0.0).all()
    np.testing.assert_allclose(V @ V.T, np.eye(size), atol=1e-12)
    left = V @ B @ V.T - np.diag(values)
    limit = group_kernels.ALIKE * np.sqrt(np.outer(values, values))
    assert (np.abs(left) <= limit + 1e-12 * np.trace(B)).all()


@pytest.mark.parametrize("intercept", [False, True])
def test_groups_turn_to_their_eigenvectors(intercept, monkeypatch):
    problem, other = (make("squared", l21=0.05, l1=l1, intercept=intercept) for l1 in (0.0, 0.01))
    by_steps = ac.solve(problem, "acf", tol=1e-12)
    monkeypatch.setattr(group_set, "EIGEN", 0)
    solvers, begin = [], GroupWorkingSet._no_turns
    monkeypatch.setattr(GroupWorkingSet, "_no_turns", lambda s: (solvers.append(s), begin(s)))
    found = ac.solve(problem, "acf", tol=1e-12)
    np.testing.assert_allclose(found.x, by_steps.x, atol=1e-9)
    there, sizes = solvers[-1]._support(), np.diff(solvers[-1].pointers)
    assert (solvers[-1].built[there & (sizes > 1)] == TURNED).all()
    ac.solve(other, "acf", tol=1e-12)
    assert not (solvers[-1].built == TURNED).any()  # with an l1 there is no such equation


def turning(monkeypatch, turns=True):
    """Every model on a Gram matrix, or none."""
    monkeypatch.setattr(GroupWorkingSet, "_gram_pays", lambda self, columns, moving: turns)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_sweeps_on_a_gram_matrix(is_sparse, intercept, single, monkeypatch):
    """A model on it goes the way of the model on the data, and says what that says."""
    rng = np.random.default_rng(7)
    weight = rng.integers(0, 3, 60).astype(float)
    how = {"l21": 0.02, "l1": 0.01 if single else 0.0, "intercept": intercept}
    problem = make("squared", is_sparse=is_sparse, sample_weight=weight, **how)
    solvers = []
    for turns in (False, True):
        solver = GroupWorkingSet(problem, np.random.default_rng(0))
        turning(monkeypatch, False)
        while solver.models == 0 or solver.phase != group_set.MODEL:
            solver._look() if solver.phase == 0 else (
                solver._build() if solver.phase == group_set.MODEL else solver._sweep(0)
            )
        solver.set = np.arange(solver.bounds.size)
        turning(monkeypatch, turns)
        solver.models = 0
        solver._build()
        assert solver.on_gram == turns
        solver._visits(0)
        solvers.append(solver)
    plain, other = solvers
    asked = other._members(other.set)
    assert asked.size == other.gram_of.size > 0
    np.testing.assert_allclose(other.point, plain.point, atol=1e-12)
    np.testing.assert_allclose(other.last, plain.last, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(other.q, plain._slopes_of(other.gram_of), atol=1e-12)
    for solver in solvers:
        solver._finish(solver._set_columns(), solver.before)
    assert not other.on_gram and other.c == pytest.approx(plain.c, abs=1e-12)
    np.testing.assert_allclose(other.z, plain.z, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_gram_matrices_of_sets_grow(is_sparse, order, dtype):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((50, 16)) * (rng.random((50, 16)) < 0.6)
    A = sparse.csr_matrix(A.astype(dtype)) if is_sparse else np.asarray(A, dtype, order=order)
    weight = rng.random(50)
    problem = ac.Problem(
        A, rng.standard_normal(50), l21=0.1, groups=np.arange(16) // 2, intercept=True,
        sample_weight=weight,
    )  # fmt: skip
    solver = GroupWorkingSet(problem, rng)
    solver.mass, dense = solver.row_weight.sum(), problem.matrix.dense.astype(float)
    centred = dense - solver.row_weight @ dense / solver.mass
    for wanted in ([4, 5, 0, 1], [0, 1, 4, 5, 9, 8], [8, 9], [2, 3, 8, 9, 10, 11, 12, 13, 15, 14]):
        solver.columns = problem.matrix.some_columns(np.arange(16))
        solver._make_gram(np.array(wanted))
        there = solver.gram_of
        assert set(wanted) <= set(there.tolist())
        expected = centred[:, there].T @ (solver.row_weight[:, None] * centred[:, there])
        np.testing.assert_allclose(solver.gram, expected, atol=1e-7 if dtype == "f4" else 1e-13)
        assert solver._gram_price(np.array(wanted)) == 0.0
    assert 4 not in solver.gram_of  # what nobody asks for goes when others come


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_optima_by_gram_matrices(is_sparse, l1, monkeypatch):
    problem = make("squared", n=80, d=60, is_sparse=is_sparse, l21=0.02, l1=l1, intercept=True)
    turning(monkeypatch, False)
    expected = ac.solve(problem, "acf", tol=1e-11)
    turning(monkeypatch)
    found = ac.solve(problem, "acf", tol=1e-11)
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=1e-10)


@pytest.mark.parametrize("mean", [0.0, 1e2, 1e5])
def test_no_products_of_what_means_leave_nothing_of(mean):
    rng = np.random.default_rng(1)
    A = np.asfortranarray(rng.standard_normal((400, 8)))
    A[:, 3] += mean
    A[:, 6] = 1e5  # constant: it is out anyway
    problem = ac.Problem(A, A[:, 0], l21=0.01, groups=np.arange(8) // 2, intercept=True)
    solver = GroupWorkingSet(problem, rng)
    solver.operations, columns = 10**9, np.arange(8)
    assert solver.phase == 0 and not solver._gram_pays(columns, columns)  # no model yet
    solver.phase = group_set.MODEL
    assert solver._gram_pays(columns, columns) == (mean < 1e5)
    never = solver._dear == np.iinfo(np.int64).max
    assert never.tolist() == [False, mean == 1e5, False, False]


def test_no_minimum_in_this_arithmetic():
    """Eigenvectors that are not those of a group: it goes back to its Gram matrix."""
    rng = np.random.default_rng(1)
    A = np.asfortranarray(rng.standard_normal((50, 4)))
    solver = GroupWorkingSet(ac.Problem(A, A @ np.ones(4), l21=0.1, groups=np.zeros(4, int)), rng)
    solver.set, solver.built[:] = np.array([0]), TURNED
    solver._linearise()
    solver.blocks[:], solver.spectrum[:] = np.eye(4).ravel(), np.nan
    solver._visit(solver.set, 0.0)
    assert solver.built[0] == group_kernels.UNKNOWN and not solver.point.any()
    solver._visit(solver.set, 0.0)
    assert solver.built[0] == group_kernels.MADE and solver.point.all()


def test_columns_and_support_of_groups_in_any_order():
    rng = np.random.default_rng(4)
    A, labels = rng.standard_normal((20, 30)), rng.permutation(np.arange(30) % 7)
    solver = GroupWorkingSet(ac.Problem(A, A[:, 0], l21=0.1, groups=labels), rng)
    index = solver.problem.penalty.index
    for units in (np.array([], dtype=np.int64), np.array([5]), np.array([6, 0, 3])):
        wanted = [j for g in units for j in np.flatnonzero(index == g)]
        assert solver._members(units).tolist() == wanted
    solver.point[:] = np.where(index == 2, 1e-200, 0.0)  # whose square is 0
    assert np.flatnonzero(solver._support()).tolist() == [2]


def correlated(loss, is_sparse, **how):
    """Columns that have most in common: sweeps crawl."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((200, 12)) + 4.0 * rng.standard_normal((200, 1))
    if is_sparse:
        A = sparse.csr_matrix(np.where(rng.random(A.shape) < 0.7, A, 0.0))
    z = A @ np.repeat(rng.standard_normal(4), 3) + rng.standard_normal(200)
    b = np.where(z > 0.0, 1.0, -1.0) if loss == "logistic" else z
    return ac.Problem(A, b, loss, groups=np.arange(12) // 3, **how)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_newton_where_sweeps_crawl(loss, is_sparse, monkeypatch):
    weight = np.random.default_rng(5).integers(0, 3, 200).astype(float)
    how = {"l21": 1e-3, "l1": 1e-4, "intercept": True, "sample_weight": weight}
    problem = correlated(loss, is_sparse, **how)
    supports, make_gram = [], GroupWorkingSet._support_gram

    def noted(self, support):
        gram = make_gram(self, support)
        part, h = problem.matrix.dense[:, support], np.broadcast_to(self.h, 200)
        centred = part - h @ part / h.sum()
        np.testing.assert_allclose(gram, centred.T @ (h[:, None] * centred), atol=1e-10)
        supports.append(support)
        return gram

    monkeypatch.setattr(GroupWorkingSet, "_support_gram", noted)
    monkeypatch.setattr(group_set, "STEPS", 0)
    monkeypatch.setattr(group_set, "SLOW", 0.1)
    with_newton = ac.solve(problem, "acf", tol=1e-10, max_passes=10**5)
    assert with_newton.converged and supports
    monkeypatch.setattr(GroupWorkingSet, "_newton", lambda self: None)
    without = ac.solve(problem, "acf", tol=1e-10, max_passes=10**5)
    assert with_newton.primal == pytest.approx(without.primal, rel=1e-9)
    if not is_sparse:  # 28 for 260, 127 for 167
        assert with_newton.passes < without.passes


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_state_goes_on_bit_by_bit(loss, is_sparse):
    problem = correlated(loss, is_sparse, l21=1e-3, intercept=True)

    def solver():
        return GroupWorkingSet(problem, np.random.Generator(np.random.PCG64(0)))

    whole = solver()
    whole.advance(40)
    for cut in (1, 4, 7, 12, 30):
        parts, other = solver(), solver()
        parts.advance(cut)
        other.restore(parts.state())
        other.advance(40 - cut)
        assert np.array_equal(whole.x, other.x) and whole.intercept == other.intercept
        assert whole.operations == other.operations


def test_certify_takes_groups_and_path_says_what_to_do():
    problem = make("squared", l21=0.05, intercept=True)
    best = ac.solve(problem, tol=1e-10)
    assert ac.certify(problem, best.x, best.intercept).relative_gap <= 1e-6
    assert ac.certify(problem, 0.9 * best.x, best.intercept, effort=20).gap < 0.1 * best.primal
    with pytest.raises(ValueError, match="a path goes over l1 and l2, not over groups"):
        ac.path(problem)


def test_columns_by_rows():
    rng = np.random.default_rng(0)
    A = sparse.random_array((30, 12), density=0.2, rng=rng, format="csc")
    columns, chosen = as_matrix(A).columns, np.array([7, 0, 11, 4])
    part = A[:, chosen]
    ends, places = np.zeros(32, dtype=np.uint64), np.empty(part.nnz, dtype=np.uint32)
    values = np.empty(part.nnz)
    by_rows(*columns.arrays, chosen, ends, places, values)
    rows = sparse.csr_array((values, places.astype(int), ends[:-1].astype(int)), shape=part.shape)
    np.testing.assert_array_equal(rows.toarray(), part.toarray())
