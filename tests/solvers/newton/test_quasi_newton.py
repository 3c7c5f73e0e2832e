"""L-BFGS for several classes: its steps, its preconditioner, and what it is certified to."""

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.auto.rule import choose
from adacoord.data.matrix import principal_axes
from adacoord.solvers.newton import quasi_newton
from adacoord.solvers.newton.class_preconditioner import ClassPreconditioner
from adacoord.solvers.newton.quasi_newton import QuasiNewton, shares

STORAGES = pytest.mark.parametrize(
    "storage", [np.ascontiguousarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix]
)


def clusters(n=300, d=6, classes=7, seed=0, wrong=0.2):
    rng = np.random.default_rng(seed)
    b = np.append(np.arange(classes), rng.integers(classes, size=n - classes))
    A = 2.0 * rng.standard_normal((classes, d))[b] + rng.standard_normal((n, d))
    A *= np.exp(rng.standard_normal(d))
    lies = rng.random(n) < wrong
    b[lies] = rng.integers(classes, size=lies.sum())
    b[:classes] = np.arange(classes)
    return A + 1.0, b, rng.exponential(1.0, n)


def pose(storage=np.asarray, l2=1e-3, intercept=True, weighted=True, **how):
    A, b, w = clusters(**how)
    w = w if weighted else None
    return ac.Problem(storage(A), b, "multinomial", l2=l2, sample_weight=w, intercept=intercept)


def make(problem, start=None):
    return QuasiNewton(problem, np.random.default_rng(0), start)


def naive(problem, x, c):
    """(P, its gradient in x, in c)."""
    A = np.asarray(problem.matrix.dense)
    z = A @ x + c
    w = (np.ones(problem.n) if problem.weights is None else problem.weights) / problem.n
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    rows = np.arange(problem.n)
    value = -w @ np.log(p[rows, problem.b]) + 0.5 * problem.penalty.l2 * np.sum(x * x)
    p[rows, problem.b] -= 1.0
    p *= w[:, None]
    return value, A.T @ p + problem.penalty.l2 * x, p.sum(axis=0) * problem.intercept


@STORAGES
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_losses_at_a_point(storage, intercept, weighted):
    problem = pose(storage, intercept=intercept, weighted=weighted)
    solver = make(problem)
    solver.advance(3)
    value, g, g_c = naive(problem, solver.x, solver.intercept)
    assert solver.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(solver.gradient[:-1], g, atol=1e-13)
    np.testing.assert_allclose(solver.gradient[-1], g_c, atol=1e-13)
    z = problem.predict(solver.x, solver.intercept)
    np.testing.assert_allclose(solver.y, problem.loss.derivative(z, problem.b), atol=1e-14)


@STORAGES
def test_passes_add_up_and_the_state_is_whole(storage):
    problem = pose(storage)
    whole, parts, other = make(problem), make(problem), make(problem)
    whole.advance(40)
    for k in (3, 1, 21, 0, 2):
        parts.advance(k)
    other.restore(parts.state())
    for one in (parts, other):
        one.advance(13)
        for name in ("x", "y", "intercept", "operations", "estimate"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(one, name), err_msg=name)
    _, g, g_c = naive(problem, whole.x, whole.intercept)
    assert np.abs(g).max() < 1e-5 and np.abs(g_c).max() < 1e-5


def test_p_never_rises():
    problem = pose(l2=1e-6, wrong=0.0)
    solver = make(problem)
    last = problem.null_value
    for _ in range(60):
        solver.advance(1)
        value = problem.primal(solver.x, solver.intercept)
        assert value <= last * (1.0 + 1e-12)
        last = value


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("l2", [1.0, 1e-3, 1e-6])
def test_converges_to_what_newton_finds(seed, l2):
    problem = pose(l2=l2, seed=seed)
    found = ac.solve(problem, "lbfgs", tol=1e-10, max_passes=2000)
    best = ac.solve(problem, "newton", tol=1e-12)
    assert found.converged and found.solver == "lbfgs"
    assert found.primal <= best.primal * (1.0 + 1e-9)
    np.testing.assert_allclose(found.x, best.x, atol=1e-3 * np.abs(best.x).max())


def test_classes_without_weight_and_starts():
    A, b, w = clusters()
    w[b == 3] = 0.0
    problem = ac.Problem(A, b, "multinomial", l2=1e-3, sample_weight=w, intercept=True)
    assert np.isfinite(shares(problem)).all()
    found = ac.solve(problem, "lbfgs", tol=1e-6)
    assert found.converged
    again = ac.solve(problem, "lbfgs", tol=1e-6, start=found)
    assert again.converged and again.passes <= 3
    far = type("Far", (), {"x": 1e5 * found.x + 3e4, "intercept": found.intercept, "y": found.y})
    solver = make(problem, far)
    solver.advance(1)
    assert solver.value <= problem.null_value


def test_a_start_that_proves_more_is_kept():
    """The start is looked at where the run ends before ``tol``, and counts then."""
    problem = pose(seed=1)
    good = ac.solve(problem, "newton", tol=1e-12)
    with pytest.warns(ac.ConvergenceWarning):
        result = ac.solve(problem, "lbfgs", tol=0.0, max_passes=1, start=good)
    # rounding is bounded as well as each of the two was asked for
    assert result.relative_gap <= good.relative_gap * (1.0 + 1e-9) + 1e-14
    at_once = ac.solve(problem, "lbfgs", tol=10.0 * good.relative_gap, max_passes=1, start=good)
    assert at_once.converged and at_once.relative_gap <= 10.0 * good.relative_gap


# ---- the preconditioner ------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("by_pairs", [False, True])
def test_blocks_are_the_hessians_of_the_classes(intercept, by_pairs):
    problem = pose(intercept=intercept)
    A = np.asarray(problem.matrix.dense)
    w = problem.weights / problem.n
    M = ClassPreconditioner(problem, w)
    M.by_pairs, M.blocks_price = by_pairs, 0.0
    y = problem.loss.derivative(A @ np.random.default_rng(1).standard_normal((6, 7)), problem.b)
    M.follow(y)
    centred = A - M.centre
    if intercept:
        np.testing.assert_allclose(M.centre, w @ A / w.sum(), rtol=1e-12)
    else:
        assert not M.centre.any()
    p = y.copy()
    p[np.arange(problem.n), problem.b] += 1.0
    for k in range(7):
        H = centred.T @ ((w * p[:, k] * (1.0 - p[:, k]))[:, None] * centred) + 1e-3 * np.eye(6)
        np.testing.assert_allclose(M.inverse[k] @ H, np.eye(6), atol=1e-7)


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_m_is_symmetric_and_definite(intercept, blocks):
    problem = pose(intercept=intercept)
    M = ClassPreconditioner(problem, problem.weights / problem.n)
    M.blocks_price = 0.0 if blocks else np.inf
    M.follow(problem.loss.derivative(np.zeros(problem.y_shape), problem.b))
    assert bool(M.inverse.size) == blocks
    rng = np.random.default_rng(2)
    points = rng.standard_normal((2, 7, 7))
    points[:, -1] *= intercept
    points -= points.mean(axis=2, keepdims=True)
    solved = [M.solve(r) for r in points]
    assert np.sum(points[0] * solved[1]) == pytest.approx(np.sum(points[1] * solved[0]), rel=1e-8)
    assert all(np.sum(r * s) > 0.0 for r, s in zip(points, solved, strict=True))


def test_axes_are_those_of_the_columns():
    A, _, w = clusters(n=5000, d=9)
    means, variances, axes = principal_axes(A, w)
    rows = slice(None, None, 2)  # of 5,000 rows every second is enough
    centred = A[rows] - w[rows] @ A[rows] / w[rows].sum()
    S = centred.T @ (w[rows, None] * centred) / w[rows].sum()
    np.testing.assert_allclose(axes @ np.diag(variances) @ axes.T, S, atol=1e-10 * S.max())
    np.testing.assert_allclose(means, w[rows] @ A[rows] / w[rows].sum())
    plain = principal_axes(A, w, turned=False)
    np.testing.assert_allclose(plain[1], np.diag(S), rtol=1e-10)
    assert plain[2].size == 0


def test_constant_and_zero_columns():
    A, b, _ = clusters()
    A[:, 2], A[:, 4] = 0.0, 7.0
    for l2 in (1e-3, 0.0):
        problem = ac.Problem(A, b, "multinomial", l2=l2, intercept=True)
        for price in (0.0, np.inf):  # with blocks from the start, and with axes alone
            solver = make(problem)
            solver.preconditioner.blocks_price = price
            solver.advance(300)
            assert solver.estimate < 1e-5


# ---- what auto makes of it ---------------------------------------------------------------------


def test_auto_takes_it_for_dense_classes():
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((3000, 20)), np.arange(3000) % 12
    dense = ac.Problem(A, b, "multinomial", l2=1e-3, intercept=True)
    assert choose(dense) == "lbfgs"
    result = ac.solve(dense, tol=1e-6)
    assert result.converged and result.solver == "lbfgs"
    # not without a certificate, and sparse rows are left to conjugate gradients or coordinates
    assert choose(ac.Problem(A, b, "multinomial", intercept=True)) in ("newton", "newton-cg")
    text = sparse.random(3000, 400, 0.02, format="csr", random_state=0)
    assert choose(ac.Problem(text, b, "multinomial", l2=1e-3)) != "lbfgs"


@pytest.mark.parametrize("shape", [(3000, 20, 60), (2000, 40, 5)])
def test_it_takes_fewer_products_than_conjugate_gradients(shape):
    n, d, classes = shape
    A, b, _ = clusters(n=n, d=d, classes=classes, seed=4, wrong=0.1)
    problem = ac.Problem(A, b, "multinomial", l2=1.0 / n, intercept=True)
    for tol in (1e-4, 1e-8):
        ours, theirs = (ac.solve(problem, name, tol=tol) for name in ("lbfgs", "newton-cg"))
        assert ours.converged and theirs.converged
        assert ours.history.operations[-1] < theirs.history.operations[-1]


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_badly_scaled_clusters_converge(C):
    """Conjugate gradients take 825 passes here, and more than 1,000."""
    rng = np.random.default_rng(101)
    b = np.append(np.arange(28), rng.integers(28, size=644))
    A = 3.0 * rng.standard_normal((28, 56))[b] + rng.standard_normal((672, 56))
    A = A * np.exp(3.0 * rng.standard_normal(56)) + 100.0 * rng.standard_normal(56)
    problem = ac.Problem(A, b, "multinomial", l2=1.0 / (672 * C), intercept=True)
    result = ac.solve(problem, tol=1e-4)
    assert result.converged and result.passes <= 600


# ---- float32, far from the optimum -------------------------------------------------------------


@pytest.fixture
def rough(monkeypatch):
    """Float32 for small data, too."""
    monkeypatch.setattr(quasi_newton, "LARGE", 1)


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, np.float32])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_float32_gives_the_losses_at_a_point(rough, storage, intercept, weighted):
    problem = pose(storage, intercept=intercept, weighted=weighted)
    solver = make(problem)
    solver.advance(3)
    assert not solver.exact and solver.y.dtype == np.float32
    value, g, g_c = naive(problem, solver.x, solver.intercept)
    assert solver.value == pytest.approx(value, rel=1e-6)
    spread = np.asarray(problem.matrix.dense).std(axis=0)[:, None]
    np.testing.assert_allclose(solver.gradient[:-1] / spread, g / spread, atol=3e-6)
    np.testing.assert_allclose(solver.gradient[-1], g_c, atol=1e-6)
    assert solver.noise > abs(solver.value - value)


@pytest.mark.parametrize("means, tol", [(0.0, 1e-9), (1e6, 1e-6)])
def test_float32_ends_where_it_can_tell_no_more(rough, means, tol):
    A, b, _ = clusters()
    problem = ac.Problem(A + means * np.arange(6), b, "multinomial", l2=1e-3, intercept=True)
    solver = make(problem)
    solver.advance(60)
    assert solver.exact and solver.y.dtype == np.float64
    assert ac.solve(problem, "lbfgs", tol=tol).converged


def test_float32_has_a_whole_state(rough):
    problem = pose()
    whole, parts, other = make(problem), make(problem), make(problem)
    whole.advance(40)
    parts.advance(2)
    assert not parts.exact
    other.restore(parts.state())
    other.advance(38)
    assert whole.exact and other.exact
    for name in ("x", "y", "intercept", "operations", "estimate"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(other, name), err_msg=name)


def test_rows_too_long_for_float32_are_left_in_float64(rough):
    problem = pose(weighted=False, n=1200)
    A = np.asarray(problem.matrix.dense).copy()
    A[-1] = 1e30  # not among the rows that tell the deviations
    solver = make(ac.Problem(A, problem.b, "multinomial", l2=1e-3, intercept=True))
    solver.advance(1)
    assert solver.exact


def test_it_can_be_looked_at_before_its_first_pass():
    """As the second method of a run is, with its start or without."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 4)), rng.integers(3, size=30)
    problem = ac.Problem(A, b, "multinomial", l2=0.1, intercept=True)
    found = ac.solve(problem, "lbfgs", tol=1e-6)
    for start in (None, found):
        solver = QuasiNewton(problem, np.random.default_rng(1), start)
        gap = problem.gap(solver.x, solver.y, solver.intercept)
        assert np.isfinite(gap) and (start is None or gap <= 1e-5 * found.primal)
