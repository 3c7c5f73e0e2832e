"""Newton's method with conjugate gradients: naive references, scipy and scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression, Ridge
from smooth_problems import SMOOTH, as_storage, gradient, make

import adacoord as ac
from adacoord.api.monitor import Monitor
from adacoord.solvers.newton import newton_cg, preconditioner
from adacoord.solvers.newton.expansion import Squares, expansion, shares
from adacoord.solvers.newton.kernels import distance
from adacoord.solvers.newton.newton_cg import NewtonCG
from adacoord.solvers.newton.preconditioner import drawn_times

LOSSES = pytest.mark.parametrize("loss", [*SMOOTH, "multinomial"])
INTERCEPTS = pytest.mark.parametrize("intercept", [False, True])
STORAGES = pytest.mark.parametrize("storage", ["dense", "csr", "fortran", "csc"])


def pose(loss, n=40, d=6, *, storage="dense", seed=0, **kind):
    """Columns of unequal scale and means that are not 0, with weights."""
    rng = np.random.default_rng(seed)
    A, b = make("squared" if loss == "multinomial" else loss, n, d, seed)
    if loss == "multinomial":
        b = np.digitize(A @ rng.standard_normal(d), [-0.5, 0.8])
        b[:3] = 0, 1, 2
    A = A * np.logspace(-1, 1, d)
    if storage == "fortran":
        A = np.asfortranarray(A)
    elif storage == "csc":
        A = sparse.csc_matrix(A)
    w = rng.exponential(1.0, n)
    w[4] = 0.0
    return ac.Problem(as_storage(A, storage), b, loss, sample_weight=w, **kind)


def make_solver(problem, start=None, seed=0):
    return NewtonCG(problem, np.random.Generator(np.random.PCG64(seed)), start)


def dense(problem):
    """[A, 1], with a column of zeros where there is no intercept."""
    last = np.full(problem.n, float(problem.intercept))
    return np.c_[problem.matrix.dense, last]


def naive_hessian(problem, z):
    """The Hessian of P in (x, c), classes outermost, from probabilities and second differences."""
    B, K = dense(problem), problem.n_classes or 1
    w = problem.weights / problem.n
    if problem.loss.blocks:
        P = np.exp(z - logsumexp(z, axis=1, keepdims=True))
        D = P[:, :, None] * np.eye(K) - P[:, :, None] * P[:, None, :]
    else:
        slope = problem.loss.derivative
        D = ((slope(z + 1e-6, problem.b) - slope(z - 1e-6, problem.b)) / 2e-6)[:, None, None]
    H = np.einsum("i,ikl,ip,iq->kplq", w, D, B, B)
    H[:, np.arange(problem.d), :, np.arange(problem.d)] += problem.penalty.l2 * np.eye(K)
    return H.reshape(K * B.shape[1], -1)


@LOSSES
@INTERCEPTS
@STORAGES
def test_products_with_the_hessian(loss, intercept, storage):
    problem = pose(loss, storage=storage, l2=0.1, intercept=intercept)
    rng = np.random.default_rng(1)
    solver = make_solver(problem)
    solver.point[:] = 0.1 * rng.standard_normal(solver.point.shape)
    if not intercept:
        solver.point[-1] = 0.0
    solver._predict()
    v = rng.standard_normal(solver.point.shape)
    v[-1] *= intercept
    av, hv = solver._hessian(v)
    np.testing.assert_allclose(av, dense(problem) @ v, atol=1e-13)
    expected = naive_hessian(problem, solver.z) @ v.T.ravel()
    np.testing.assert_allclose(hv.T.ravel(), expected, rtol=1e-6, atol=1e-8)
    solver._differentiate()
    g, g_c = gradient(problem, solver.x, solver.intercept)
    np.testing.assert_allclose(solver.gradient[:-1], g, rtol=1e-10, atol=1e-13)
    if intercept:
        np.testing.assert_allclose(solver.gradient[-1], g_c, rtol=1e-10, atol=1e-13)


@LOSSES
@INTERCEPTS
@STORAGES
def test_diagonal_preconditioner(loss, intercept, storage):
    """The variances of the columns by the curvature, in the coordinates that centre them."""
    problem = pose(loss, storage=storage, l2=0.1, intercept=intercept)
    solver = make_solver(problem)
    solver.preconditioner.price = np.inf
    _, _, _, curvature = solver._expanded()
    solver.preconditioner.follow(curvature)
    D = naive_diagonal(problem, solver.z)
    rows, classes = D.sum(axis=1), D.sum(axis=0)
    A = problem.matrix.dense
    centre = rows @ A / rows.sum() if intercept else np.zeros(problem.d)
    spread = rows @ np.square(A - centre)
    r = np.random.default_rng(2).standard_normal(solver.point.shape)
    r[-1] *= intercept
    if loss == "multinomial":
        r -= r.mean(axis=1, keepdims=True)
    x = (r[:-1] - np.multiply.outer(centre, r[-1])).reshape(problem.d, -1)
    x = x / (np.outer(spread, classes / classes.sum()) + 0.1)
    c = (r[-1] / classes - centre @ x) * intercept
    expected = np.vstack([x, np.reshape(c, (1, -1))])
    if loss == "multinomial":
        expected -= expected.mean(axis=1, keepdims=True)
    found = solver.preconditioner.solve(r).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def naive_diagonal(problem, z):
    w = problem.weights[:, None] / problem.n
    if problem.loss.blocks:
        P = np.exp(z - logsumexp(z, axis=1, keepdims=True))
        return w * P * (1.0 - P)
    D = make_solver(problem).losses.expand(z)[3]
    return D[:, None]


@pytest.mark.parametrize("loss", ["logistic", "poisson", "multinomial"])
@INTERCEPTS
def test_factor_of_all_rows(loss, intercept):
    """Each class's own Hessian: with one number per row, all of it, and one step is Newton's."""
    problem = pose(loss, l2=0.1, intercept=intercept)
    solver = make_solver(problem)
    M = solver.preconditioner
    M.price, M.rows = 0.0, problem.n
    M.follow(solver._expanded()[3])
    r = np.random.default_rng(2).standard_normal(solver.point.shape)
    r[-1] *= intercept
    if loss != "multinomial":
        kept = slice(None) if intercept else slice(-1)
        H = naive_hessian(problem, solver.z)[kept, kept]
        np.testing.assert_allclose(M.solve(r)[kept], np.linalg.solve(H, r[kept]), rtol=1e-6)
    else:
        D, A = naive_diagonal(problem, solver.z), problem.matrix.dense
        x = np.empty((problem.d, 3))
        for k in range(3):
            H = (A - M.centre).T @ (D[:, [k]] * (A - M.centre)) + 0.1 * np.eye(problem.d)
            x[:, k] = np.linalg.solve(H, r[:-1, k] - M.centre * r[-1, k])
        c = (r[-1] / D.sum(axis=0) - M.centre @ x) * intercept
        expected = np.vstack([x, c])
        expected -= expected.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(M.solve(r), expected, rtol=1e-8, atol=1e-11)


def naive_newton_cg(problem, passes):
    """The same algorithm in plain NumPy: M is the diagonal, and what the pairs make of it."""
    B, w = dense(problem), problem.weights / problem.n
    l2 = np.append(np.full(problem.d, problem.penalty.l2), 0.0)
    slope, value = problem.loss.derivative, problem.loss.value

    def P(x):
        return np.sum(w * value(B @ x, problem.b)) + 0.5 * np.sum(l2 * x * x)

    def grad(x):
        return B.T @ (w * slope(B @ x, problem.b)) + l2 * x

    def lacking(z, dz, D):
        """(what the slopes of the expansion lack at z + dz in D, these slopes, whether inside)."""
        second = D / np.where(w > 0.0, w, 1.0)
        free = slope(z, problem.b) + second * dz
        y, there = problem.into_domain(free), z + dz
        terms = value(there, problem.b) + problem.loss.conjugate(y, problem.b) - y * there
        if problem.loss.name == "logistic":  # to leading order
            q = 1.0 / (1.0 + np.exp(problem.b * there))
            terms = 0.5 * (y + problem.b * q) ** 2 / (q * (1.0 - q))
        cut = np.divide(np.square(free - y), second, out=np.zeros_like(y), where=free != y)
        return np.sum(w * (np.maximum(terms, 0.0) + 0.5 * cut)), y, not cut.any()

    x, pairs, T = np.zeros(problem.d + 1), [], np.eye(problem.d + 1)
    while True:
        behind = np.sum((T.T @ grad(x))[:-1] ** 2)  # by the coordinates of the step before
        D = make_solver(problem).losses.expand(B @ x)[3]
        H = B.T @ (D[:, None] * B) + np.diag(l2)
        T = np.eye(problem.d + 1)  # (dx, dc) = T (dx, dc + m.dx)
        T[-1, :-1] = -(D @ B[:, :-1]) / D.sum()
        M_inverse = T @ np.diag(1.0 / np.diag(T.T @ H @ T)) @ T.T
        for v, hv in pairs:  # the update of BFGS, each time
            V = np.eye(x.size) - np.outer(hv, v) / (v @ hv)
            M_inverse = V.T @ M_inverse @ V + np.outer(v, v) / (v @ hv)
        s, r = np.zeros_like(x), -grad(x)
        v = M_inverse @ r
        rho = r @ v
        while True:
            t = rho / (v @ H @ v)
            pairs = [*pairs, (v, H @ v)]
            s, r = s + t * v, r - t * (H @ v)
            rho, before = r @ M_inverse @ r, rho
            v = M_inverse @ r + rho / before * v
            passes -= 1
            missed, y, inside = lacking(B @ x, B @ s, D)
            gap = missed + np.sum((T.T @ r)[:-1] ** 2) / (2.0 * problem.penalty.l2)
            primal = [P(x + s), P(x)]
            relative = [
                problem.relative_gap(p, p - each)
                for p, each in zip(primal, (gap, behind / (2.0 * problem.penalty.l2)), strict=True)
            ]
            offered = inside and relative[0] < relative[1]
            if passes == 0 and offered:
                return x + s, y
            if rho <= newton_cg.LINEAR * missed:
                break
            if passes == 0:
                return x, slope(B @ x, problem.b)
        # here t = 1 is always accepted
        assert P(x + s) <= P(x) and abs(grad(x + s) @ s) <= 0.5 * abs(grad(x) @ s)
        x = x + s
        if passes == 0:
            return x, slope(B @ x, problem.b)


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared_hinge"])
def test_it_makes_the_naive_steps(loss, monkeypatch):
    monkeypatch.setattr(preconditioner, "MOVED", -1.0)  # always
    problem = pose(loss, 60, 8, l2=0.05, intercept=True)
    for passes in (1, 3, 6, 10):
        solver = make_solver(problem)
        solver.preconditioner.price = np.inf
        solver.advance(passes)
        x, y = naive_newton_cg(problem, passes)
        np.testing.assert_allclose(solver.x, x[:-1], rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(solver.y, y, rtol=1e-7, atol=1e-9)
        assert solver.intercept == pytest.approx(x[-1], rel=1e-7, abs=1e-10)


@INTERCEPTS
def test_squared_is_conjugate_gradients(intercept):
    """At most d + 1 steps, and the best point of the Krylov space at each."""
    problem = pose("squared", 50, 7, l2=0.01, intercept=intercept)
    solver = make_solver(problem)
    solver.preconditioner.price = np.inf
    values = []
    for _ in range(8):
        solver.advance(1)
        values.append(problem.primal(solver.x, solver.intercept))
        np.testing.assert_allclose(
            solver.y, problem.loss.derivative(solver.z, problem.b), rtol=1e-12
        )
    assert np.all(np.diff(values) <= 1e-15)
    kept = slice(None) if intercept else slice(-1)
    B, w = dense(problem)[:, kept], problem.weights / problem.n
    H = B.T @ (w[:, None] * B) + 0.01 * np.diag(np.arange(B.shape[1]) < 7).astype(float)
    best = np.linalg.solve(H, B.T @ (w * problem.b))
    np.testing.assert_allclose(solver.point[kept], best, rtol=1e-8, atol=1e-10)


def test_residuals_are_computed_anew():
    """Conjugate gradients on an ill-conditioned system end at the optimum, not near it."""
    rng = np.random.default_rng(3)
    Q, R = (np.linalg.qr(rng.standard_normal((60, 60)))[0] for _ in range(2))
    problem = ac.Problem(Q @ np.diag(np.logspace(0, -3, 60)) @ R, rng.standard_normal(60), l2=1e-8)
    solver = make_solver(problem)
    solver.preconditioner.price = np.inf
    solver.advance(1000)
    assert problem.gap(solver.x, solver.y) < 1e-12
    np.testing.assert_allclose(solver.z, problem.predict(solver.x), rtol=0, atol=1e-12)
    solver = make_solver(problem)
    solver.preconditioner.price = np.inf
    spent = [solver.advance(1) or solver.operations for _ in range(300)]
    more = np.diff(spent) // problem.matrix.nnz
    assert (more == 2).sum() == 297
    np.testing.assert_array_equal(np.flatnonzero(more == 4), [127, 255])


# ---- the solver's promises ---------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "smooth_hinge", "poisson", "multinomial"])
@pytest.mark.parametrize("price", [0.5, 6.0, np.inf])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_passes_add_up_and_state_continues(loss, price, storage):
    """As in test_steppers.py, for losses with an outer loop; the factor is part of the state."""
    problem = pose(loss, 60, 5, storage=storage, l2=1e-4, intercept=True)

    def solver(seed=0):
        made = make_solver(problem, seed=seed)
        made.preconditioner.price = made.preconditioner.price if storage == "csr" else price
        made.preconditioner.rows = 20
        return made

    whole, parts = solver(), solver()
    whole.advance(45)
    for k in (3, 1, 27, 0, 2):
        parts.advance(k)
    other = solver(seed=1)
    state = parts.state()
    for key, value in state.items():
        assert np.asarray(value).dtype.kind in "biuf", key
    other.restore(state)
    other.advance(12)
    parts.advance(12)
    for name in ("x", "y", "z", "intercept", "passes", "operations", "estimate"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name), err_msg=name)
        np.testing.assert_array_equal(getattr(whole, name), getattr(other, name), err_msg=name)
    if price < np.inf and storage == "dense":
        assert whole.preconditioner.factor.size > 0


@LOSSES
@INTERCEPTS
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_estimate_is_the_gap(loss, intercept, storage):
    """Near the optimum, but for what the balance of y takes."""
    problem = pose(loss, 200, 6, storage=storage, l2=1e-3, intercept=intercept)
    solver = make_solver(problem)
    solver.preconditioner.price = np.inf
    looked = 0
    for _ in range(60):
        solver.advance(1)
        if (1e-9 if intercept else 1e-10) < solver.estimate < 1e-3:
            gap = problem.gap(solver.x, solver.y, solver.intercept)
            primal = problem.primal(solver.x, solver.intercept)
            share = solver.estimate / problem.relative_gap(primal, primal - gap)
            if loss in ("smooth_hinge", "squared_hinge", "huber"):  # more, where ends cut y
                share = min(share, 1.0)
            assert 0.25 < share < 4.0 if intercept else share == pytest.approx(1.0, rel=1e-3)
            looked += 1
    assert looked >= 1


@LOSSES
@INTERCEPTS
@STORAGES
def test_it_finds_the_optimum(loss, intercept, storage):
    problem = pose(loss, 80, 7, storage=storage, l2=1e-3, intercept=intercept)
    result = ac.solve(problem, "newton-cg", tol=1e-12, max_passes=500)
    assert result.solver == "newton-cg" and result.converged
    g, g_c = gradient(problem, result.x, result.intercept)
    assert np.max(np.abs(g)) < 1e-6
    if intercept:
        assert np.max(np.abs(g_c)) < 1e-6


@given(
    st.sampled_from(["logistic", "squared", "poisson", "huber", "multinomial"]),
    st.integers(0, 10**6),
    st.integers(2, 40),
    st.integers(1, 30),
    st.booleans(),
    st.sampled_from([1.0, 1e-3, 1e-6]),
    st.sampled_from([0.0, 3.0]),
)
@settings(max_examples=60, deadline=None)
def test_any_shape_scale_and_mean(loss, seed, n, d, intercept, l2, spread):
    rng = np.random.default_rng(seed)
    scale = np.exp(spread * rng.standard_normal(d))
    A = (rng.standard_normal((n, d)) + spread * rng.standard_normal(d)) * scale
    b = {
        "logistic": np.where(np.arange(n) % 2, 1.0, -1.0),
        "poisson": rng.poisson(2.0, n).astype(float),
        "multinomial": np.arange(n) % min(n, 3),
    }.get(loss, rng.standard_normal(n))
    problem = ac.Problem(A, b, loss, l2=l2, intercept=intercept)
    # classes that next to no penalty keeps from being told apart for ever: auto takes others there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # P* = 3e-12 P(0): next to it, rounding is more than tol
        primal = ac.solve(problem, tol=1e-5).primal
    assume(primal > 1e-8 * abs(problem.null_value) or loss == "poisson")
    result = ac.solve(problem, "newton-cg", tol=1e-5, max_passes=20_000)
    assert result.converged
    # counts of nothing but zeros have P* = 0 at no point: the scale is that of tol, with its floor
    gap = problem.gap(result.x, result.y, result.intercept)
    assert problem.relative_gap(result.primal, result.primal - gap) <= 1.1e-5


# ---- against others ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_against_sklearn(n_classes, dtype):
    rng = np.random.default_rng(5)
    A = (rng.standard_normal((600, 12)) + 2.0).astype(dtype)
    Z = (A - 2.0) @ rng.standard_normal((12, n_classes)) + rng.gumbel(size=(600, n_classes))
    b = Z.argmax(axis=1)
    w = rng.exponential(1.0, 600)
    other = LogisticRegression(C=0.3, solver="newton-cholesky", tol=1e-12, max_iter=500)
    other.fit(A.astype(np.float64), b, sample_weight=w)
    loss, targets = ("logistic", 2.0 * b - 1.0) if n_classes == 2 else ("multinomial", b)
    problem = ac.Problem(A, targets, loss, l2=1.0 / (0.3 * 600), sample_weight=w, intercept=True)
    for name in ("newton-cg", "lbfgs"):
        result = ac.solve(problem, name, tol=1e-12)
        np.testing.assert_allclose(result.x.T.reshape(-1, 12), other.coef_, atol=2e-6)
        centred = result.intercept - np.mean(result.intercept) * (n_classes > 2)
        np.testing.assert_allclose(
            centred, other.intercept_ if n_classes > 2 else other.intercept_[0], atol=1e-5
        )


def test_ridge_against_sklearn():
    rng = np.random.default_rng(6)
    A = sparse.random(400, 30, 0.2, format="csr", random_state=1)
    b = A @ rng.standard_normal(30) + 5.0 + rng.standard_normal(400)
    other = Ridge(alpha=0.7, tol=1e-12).fit(A.toarray(), b)
    result = ac.solve(ac.Problem(A, b, l2=0.7 / 400, intercept=True), "newton-cg", tol=1e-13)
    np.testing.assert_allclose(result.x, other.coef_, atol=1e-7)
    assert result.intercept == pytest.approx(other.intercept_, abs=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "smooth_hinge"])
def test_against_scipy(loss):
    problem = pose(loss, 300, 10, l2=1e-3)
    w = problem.weights / problem.n

    def value(x):
        z = problem.matrix.dense @ x
        slopes = problem.matrix.dense.T @ (w * problem.loss.derivative(z, problem.b))
        return w @ problem.loss.value(z, problem.b) + 5e-4 * x @ x, slopes + 1e-3 * x

    best = minimize(value, np.zeros(10), jac=True, method="BFGS", options={"gtol": 1e-9})
    result = ac.solve(problem, "newton-cg", tol=1e-13)
    np.testing.assert_allclose(result.x, best.x, rtol=1e-5, atol=1e-7)


@LOSSES
def test_without_a_penalty(loss):
    problem = pose(loss, 200, 4, intercept=True)
    result = ac.solve(problem, "newton-cg", tol=1e-8, max_passes=2000)
    assert result.status == "stationary, no certificate"
    g, g_c = gradient(problem, result.x, result.intercept)
    assert np.max(np.abs(g)) < 1e-6 and np.max(np.abs(g_c)) < 1e-6


def test_separable_classes_have_no_minimum():
    A = np.random.default_rng(1).standard_normal((40, 3))
    with pytest.warns(ac.ConvergenceWarning, match="no minimum"):
        result = ac.solve(ac.Problem(A, np.sign(A[:, 0]), "logistic"), "newton-cg")
    assert result.status == "no minimum"


@pytest.mark.parametrize("name", ["newton-cg", "lbfgs"])
def test_many_noisy_classes(name):
    """The classes of 1,500 x 10 rows are noise: 100 of them, and few rows for each."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((1500, 10))
    b = rng.integers(0, 100, 1500)
    problem = ac.Problem(A, b, "multinomial", l2=1.0 / 1500, intercept=True)
    result = ac.solve(problem, name, tol=1e-6, max_passes=300)
    assert result.converged
    assert result.passes <= (30 if name == "newton-cg" else 120)


def test_columns_in_any_unit_take_the_same_passes():
    """The diagonal follows the scales of the columns, the centre their means."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((400, 30))
    b = np.where(A @ rng.standard_normal(30) + rng.standard_normal(400) > 0, 1.0, -1.0)
    passes = []
    for scale, shift in ((1.0, 0.0), (np.logspace(-3, 3, 30), 0.0), (1.0, 1e4)):
        problem = ac.Problem(A * scale + shift, b, "logistic", l2=1e-9, intercept=True)
        solver = make_solver(problem)
        solver.preconditioner.price = np.inf
        values = []
        for _ in range(60):
            solver.advance(1)
            values.append(problem.primal(solver.x, solver.intercept))
        passes.append(int(np.argmax(np.array(values) < values[-1] + 1e-7)))
    assert max(passes) <= passes[0] + 2


def test_a_start_worse_than_zero_is_left():
    problem = pose("poisson", 40, 6, l2=0.1, intercept=True)
    found = ac.solve(problem, "newton-cg", tol=1e-9)
    far = make_solver(
        problem, type("Far", (), {"x": 300.0 + found.x, "intercept": 0.0, "y": found.y})
    )
    assert not far.x.any() and np.isfinite(far.z).all()
    near = make_solver(problem, found)
    np.testing.assert_array_equal(near.x, found.x)


def test_wide_data_take_no_factor_and_many_classes_no_gigabytes():
    rng = np.random.default_rng(9)
    wide = ac.Problem(sparse.random(30, 5000, 0.01, format="csr"), rng.standard_normal(30), l2=0.1)
    assert make_solver(wide).preconditioner.price == np.inf
    A, b = rng.standard_normal((2000, 400)), np.arange(2000) % 1000
    assert make_solver(ac.Problem(A, b, "multinomial", l2=1.0)).preconditioner.price == np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ac.solve(wide, "newton-cg").converged


@pytest.mark.parametrize(
    ("loss", "n", "d", "most"), [("logistic", 3000, 400, 17), ("poisson", 3000, 150, 12)]
)
def test_pairs_and_slopes_of_the_expansion_save_passes(loss, n, d, most):
    """Without them: 23 and 15."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    z = 0.5 * A[:, :20] @ rng.standard_normal(20)
    b = np.where(z + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    if loss == "poisson":
        b = rng.poisson(np.exp(np.clip(0.2 * z, -3.0, 3.0))).astype(float)
    problem = ac.Problem(A, b, loss, l2=1e-4, intercept=True)
    result = ac.solve(problem, "newton-cg", tol=1e-4)
    assert result.converged and result.passes <= most


def test_a_look_takes_one_product_each_way(monkeypatch):
    """Poisson's too: its slopes have no bound, but the predictions are known by then."""
    problem = pose("poisson", 300, 6, l2=1e-3, intercept=True)
    point, asked = ac.solve(problem, "newton-cg", tol=1e-2), []
    for name in ("dot", "tdot", "magnitude_dot"):
        method = getattr(type(problem.matrix), name)

        def counted(self, v, name=name, method=method):
            asked.append(name)
            return method(self, v)

        monkeypatch.setattr(type(problem.matrix), name, counted)
    monitor = Monitor(problem, tol=1e-4, max_passes=10)
    monitor._look(point.x, point.intercept, point.y)
    assert monitor.x.any()
    assert sorted(asked) == ["dot", "tdot"]


@pytest.mark.parametrize("loss", ["logistic", "poisson", "squared_hinge", "huber", "log_cosh"])
def test_what_the_slopes_of_the_expansion_lack(loss):
    """Against P, phi' and phi* of the classes, a short way from z; rows without weight are none."""
    problem = pose(loss, 60, 5)
    rng = np.random.default_rng(0)
    losses = newton_cg.expansion(problem)
    z, dz = rng.standard_normal(60), 1e-2 * rng.standard_normal(60)
    z[4] = dz[4] = 500.0  # of weight 0
    _, y, _, D = losses.expand(z)
    value, lacking, cut, slopes = losses.follow(z, dz, y, D)
    w, there, b = losses.w, z + dz, problem.b
    kept = w > 0.0
    values = problem.loss.value(there, b)[kept]
    assert value == pytest.approx(np.sum(w[kept] * values), rel=1e-12)
    free = (y + np.divide(D, w, out=np.zeros_like(D), where=kept) * dz)[kept]
    np.testing.assert_allclose(slopes[kept], free, rtol=1e-12, atol=1e-14)
    exact = values + problem.loss.conjugate(slopes, b)[kept] - slopes[kept] * there[kept]
    assert lacking == pytest.approx(np.sum(w[kept] * exact), rel=0.05, abs=1e-12)
    assert cut == 0.0
    _, y_there, _, D_there = losses.expand(there)
    known, cut, the_same = losses.follow_known(z, dz, y, D, y_there, D_there)
    np.testing.assert_allclose(the_same[kept], slopes[kept], rtol=1e-14)
    assert known == pytest.approx(lacking, rel=0.05, abs=1e-12) and cut == 0.0


@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma"])
def test_slopes_of_an_expansion_end_where_the_conjugates_do(loss):
    """A long way from z, by what is known there as by what is evaluated there."""
    problem = pose(loss, 60, 5)
    rng = np.random.default_rng(1)
    losses = newton_cg.expansion(problem)
    z, dz = rng.standard_normal(60), 4.0 * rng.standard_normal(60)
    _, y, _, D = losses.expand(z)
    _, y_there, _, D_there = losses.expand(z + dz)
    _, lacking, cut, slopes = losses.follow(z, dz, y, D)
    known, cut_known, the_same = losses.follow_known(z, dz, y, D, y_there, D_there)
    kept = losses.w > 0.0
    np.testing.assert_allclose(the_same[kept], slopes[kept], rtol=1e-14)
    assert known == pytest.approx(lacking, rel=1e-9)
    assert cut_known == pytest.approx(cut, rel=1e-12) and cut > 0.0


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_callback_is_told_now_and_then(loss):
    """It gets its looks, and they change nothing; a look after every pass would cost as much."""
    problem = pose(loss, 60, 12, l2=1e-6, intercept=True)
    told = []
    watched = ac.solve(problem, "newton-cg", tol=1e-9, callback=told.append)
    alone = ac.solve(problem, "newton-cg", tol=1e-9)
    assert watched.passes == alone.passes > 10
    np.testing.assert_array_equal(watched.x, alone.x)
    passes = np.array([0, *watched.history.passes])
    assert np.diff(passes)[:-1].min() >= 5
    assert len(told) >= len(passes) - 2 >= 1


def test_slopes_of_squares_in_place():
    problem = pose("squared")
    once, again = np.random.default_rng(0).standard_normal((2, problem.n))
    squares = Squares(problem, shares(problem))
    squares.expand(once)
    for found, want in zip(squares.expand(again), expansion(problem).expand(again), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-13)


def test_draws_of_rows():
    """As often as their shares say, a row without one never; the distance of two curvatures."""
    rng = np.random.default_rng(0)
    share = np.array([0.0, 1.0, 2.0, 0.0, 5.0, 0.0])
    times = drawn_times(100_000, share, rng)
    np.testing.assert_allclose(times, share > 0.0, rtol=0.02)
    assert (times[share == 0.0] == 0.0).all()
    drawn = times * 100_000 * share / share.sum()
    np.testing.assert_allclose(drawn, np.rint(drawn), atol=1e-6)
    assert drawn.sum() == pytest.approx(100_000)
    a, b = rng.random(1001), rng.random(1001)
    assert distance(a, b, 2.0, 3.0) == pytest.approx(np.abs(2.0 * a - 3.0 * b).sum(), rel=1e-12)
