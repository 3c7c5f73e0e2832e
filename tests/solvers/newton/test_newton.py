"""Newton's method against closed forms, scipy and scikit-learn, on both sides of the data."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import reference
from scipy import sparse
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression, Ridge
from smooth_problems import SMOOTH, STORAGES, as_storage, gradient, make

import adacoord as ac
from adacoord import losses
from adacoord.auto.rule import choose
from adacoord.data.matrix import as_matrix
from adacoord.kernels.gram import sparse_gram
from adacoord.linalg.cholesky import Cholesky
from adacoord.solvers.newton import newton
from adacoord.solvers.newton import size as newton_size
from adacoord.solvers.newton.expansion import Blocks, Scalars
from adacoord.solvers.registry import SOLVERS


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    """What is small is left to :mod:`test_small`."""
    monkeypatch.setattr(newton_size, "SMALL", 0)


def make_solver(problem, start=None):
    return newton.Newton(problem, np.random.Generator(np.random.PCG64(0)), start)


# ---- the kernels -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*SMOOTH, "multinomial"])
def test_line(loss):
    """P along a line, its slope and its curvature, by finite differences."""
    rng = np.random.default_rng(1)
    n = 30
    w = rng.exponential(1.0, n)
    w[3] = 0.0
    loss = losses.get_loss(loss)
    shape = (n, 3) if loss.blocks else (n,)
    z, dz = rng.standard_normal(shape), rng.standard_normal(shape)
    b = {
        "classification": np.where(rng.random(n) < 0.5, 1.0, -1.0),
        "regression": rng.standard_normal(n),
        "multiclass": np.arange(n) % 3,
        "count": rng.poisson(2.0, n).astype(float),
        "positive": rng.gamma(2.0, 1.0, n),
    }[loss.task]

    problem = SimpleNamespace(loss=loss, b=b, n=n, matrix=as_matrix(np.ones((n, 1))))
    rows = (Blocks if loss.blocks else Scalars)(problem, w)

    def along(t):
        return rows.along(z, dz, t)

    for t in (0.0, 0.7):
        value, slope, bend = along(t)
        at, y, p, _ = rows.expand(z + t * dz)
        assert at == pytest.approx(value, rel=1e-14)
        np.testing.assert_allclose(y, loss.derivative(z + t * dz, b), rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(p, (w * y.T).T)
        assert value == pytest.approx(np.sum(w * loss.value(z + t * dz, b)), rel=1e-13)
        h = 1e-6
        low, high = along(t - h), along(t + h)
        assert slope == pytest.approx((high[0] - low[0]) / (2 * h), rel=1e-7)
        assert bend == pytest.approx((high[1] - low[1]) / (2 * h), rel=1e-6)


def test_softmax_keeps_the_digits_of_small_losses():
    z = np.array([[50.0, 0.0, -1.0], [0.0, 50.0, -1.0], [800.0, -800.0, 0.0]])
    b = np.array([0, 0, 1])
    for i in range(3):
        row = Blocks(SimpleNamespace(b=b[[i]], n=1), np.ones(1))
        value = losses.Multinomial().value(z[[i]], b[[i]])[0]
        assert row.expand(z[[i]])[0] == pytest.approx(value, rel=1e-14)
    y = Blocks(SimpleNamespace(b=b, n=3), np.ones(3)).expand(z)[1]
    np.testing.assert_allclose(y, losses.Multinomial().derivative(z, b), rtol=1e-14)
    assert 0.0 < -y[0, 0] < 1e-20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_gram(dtype):
    rng = np.random.default_rng(2)
    A = sparse.random(40, 12, 0.3, format="csr", random_state=3, dtype=dtype)
    for i in range(40):  # columns in any order
        part = slice(A.indptr[i], A.indptr[i + 1])
        order = rng.permutation(part.stop - part.start)
        A.indices[part], A.data[part] = A.indices[part][order], A.data[part][order]
    D = rng.exponential(1.0, 40) * (rng.random(40) < 0.7)
    matrix = ac.Problem(A, np.zeros(40)).matrix
    H = np.zeros((12, 12))
    sparse_gram(*matrix.arrays, D, H)
    dense = A.toarray().astype(np.float64)
    np.testing.assert_allclose(H, dense.T @ (D[:, None] * dense), rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(H, H.T)


def test_cholesky_of_a_singular_matrix():
    """A ridge, as small as it takes; a consistent system is then solved to that ridge."""
    rng = np.random.default_rng(4)
    F = rng.standard_normal((6, 3)) * np.array([1e-3, 1.0, 1e3])
    H = F @ F.T
    x = Cholesky(H.copy()).solve(H @ np.arange(6.0))
    np.testing.assert_allclose(H @ x, H @ np.arange(6.0), rtol=1e-6)
    zero = Cholesky(np.zeros((2, 2)))
    np.testing.assert_array_equal(zero.solve(np.zeros(2)), 0.0)
    H = F.T @ F + np.eye(3)
    np.testing.assert_allclose(Cholesky(H.copy()).solve(H @ np.ones(3)), 1.0, rtol=1e-12)


def naive_hessian(problem, x, c):
    """By central differences of the gradient, in (x, c)."""
    flat = np.r_[x.ravel(), np.ravel(c)] if problem.intercept else x.ravel()

    def at(v):
        cut = v[x.size :].reshape(np.shape(c)) if problem.intercept else problem.no_intercept
        cut = float(cut) if np.ndim(cut) == 0 else cut
        g, g_c = gradient(problem, v[: x.size].reshape(x.shape), cut)
        return np.r_[g.ravel(), np.ravel(g_c)] if problem.intercept else g.ravel()

    h = 1e-5
    columns = [(at(flat + h * e) - at(flat - h * e)) / (2 * h) for e in np.eye(flat.size)]
    return np.array(columns), at(flat)


@STORAGES
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(25, 6), (6, 9)])
@pytest.mark.parametrize("loss", [*SMOOTH, "multinomial"])
def test_step_solves_newtons_equations(loss, shape, intercept, storage):
    """H step = -gradient, with both by finite differences, at a point that is not special."""
    rng = np.random.default_rng(5)
    n, d = shape
    A, b = make("squared" if loss == "multinomial" else loss, n, d)
    if loss == "multinomial":
        b = np.arange(n) % 3
    problem = ac.Problem(
        as_storage(A, storage),
        b,
        loss,
        l2=0.1,
        intercept=intercept,
        sample_weight=rng.exponential(1.0, n),
    )
    solver = make_solver(problem)
    solver.t = 0.3 * rng.standard_normal(solver.t.shape)
    solver.c = problem.no_intercept
    x = solver.x
    H, g = naive_hessian(problem, x, problem.no_intercept)
    at = solver._at(solver.t, solver.c)
    solver.system.factorise(at.curvature)
    gradient = solver.system.gradient(solver.t, at.p)
    dt, dc = solver.system.step(solver.t, gradient, np.sum(at.p, axis=0))
    slope = solver._slope(at, solver.t, dt, dc, solver.system.predict(dt))
    step = solver.system.x(dt).ravel()
    step = np.r_[step, np.ravel(dc)] if intercept else step
    np.testing.assert_allclose(H @ step, -g, rtol=1e-5, atol=1e-6 * np.abs(g).max())
    assert slope == pytest.approx(g @ step, rel=1e-5)


@pytest.mark.parametrize("shape", [(900, 300), (300, 900)])
@pytest.mark.parametrize("loss", ["logistic", "poisson", "squared"])
def test_slopes_of_the_expansion_close_the_gap(loss, shape):
    """Of the point after a step, without the gradient there."""
    A, b = make(loss, *shape)
    problem = ac.Problem(A, b, loss, l2=1e-4, intercept=True)
    solver, looked = make_solver(problem), 0
    for _ in range(15):
        solver.advance(1)
        if 1e-11 < solver.estimate < 1e-3:
            gap = problem.gap(solver.x, solver.y, solver.intercept)
            primal = problem.primal(solver.x, solver.intercept)
            relative = problem.relative_gap(primal, primal - gap)
            assert 0.5 < solver.estimate / relative < 4.0  # logistic: to leading order
            looked += 1
    assert looked or loss == "squared" or shape[0] < shape[1]
    assert problem.gap(solver.x, solver.y, solver.intercept) < 1e-11


# ---- optima ------------------------------------------------------------------------------------


@STORAGES
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(60, 12), (20, 35)])
@pytest.mark.parametrize("loss", SMOOTH)
def test_optimum(loss, shape, intercept, weighted, storage):
    """Against L-BFGS of scipy in value, and by the gradient (strong convexity) in x."""
    A, b = make(loss, *shape)
    w = None
    if weighted:
        w = np.random.default_rng(1).exponential(1.0, b.size)
        w[[3, 7]] = 0.0
        A[7] = A[9] = 0.0
    l2 = 0.03
    problem = ac.Problem(
        as_storage(A, storage), b, loss, l2=l2, intercept=intercept, sample_weight=w
    )
    # Poisson's P is what its terms leave: 2.5e-13 of it is what can be proved
    tol = 1e-12 if loss == "poisson" else 1e-13
    result = ac.solve(problem, "newton", tol=tol, max_passes=60)
    assert result.converged and result.relative_gap <= tol
    best, x, c = reference.smooth_optimum(
        A, b, loss, (0.0, l2, False), np.ones(b.size) if w is None else w, intercept=intercept
    )
    assert result.primal == pytest.approx(best, rel=1e-9)
    assert result.dual <= best * (1 + 1e-12)
    np.testing.assert_allclose(result.x, x, rtol=0, atol=1e-4)
    assert result.intercept == pytest.approx(c, abs=1e-4)
    polished = make_solver(problem)
    polished.advance(result.passes + 2)
    g, g_c = gradient(problem, polished.x, polished.intercept)
    # |x - x*| <= |gradient|/l2
    assert np.linalg.norm(g) / l2 < 1e-9 and (not intercept or abs(g_c) < 1e-9)
    assert (
        problem.relative_gap(
            problem.primal(polished.x, polished.intercept),
            problem._dual(*problem.feasible_dual(polished.y)),
        )
        < 1e-14
    )


@STORAGES
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(80, 12), (20, 40)])
def test_ridge_is_exact(shape, intercept, dtype, storage):
    """The normal equations of the smaller side, solved to rounding; scikit-learn agrees."""
    A, b = make("squared", *shape)
    A = A.astype(dtype)
    n, d = shape
    w = np.random.default_rng(2).exponential(1.0, n)
    for l2 in (1.0, 1e-4):
        problem = ac.Problem(as_storage(A, storage), b, l2=l2, intercept=intercept, sample_weight=w)
        result = ac.solve(problem, "newton", tol=1e-13, max_passes=20)
        B = A.astype(np.float64)
        mean_a, mean_b = (w @ B / w.sum(), w @ b / w.sum()) if intercept else (0.0, 0.0)
        root = np.sqrt(w / n)[:, None]
        stacked = np.vstack([root * (B - mean_a), np.sqrt(l2) * np.eye(d)])
        x = np.linalg.lstsq(stacked, np.r_[root[:, 0] * (b - mean_b), np.zeros(d)], rcond=None)[0]
        np.testing.assert_allclose(result.x, x, rtol=0, atol=1e-9 * abs(x).max())
        other = Ridge(alpha=n * l2, fit_intercept=intercept, solver="svd")
        other.fit(B, b, sample_weight=w)
        np.testing.assert_allclose(result.x, other.coef_, rtol=0, atol=1e-9 * abs(x).max())
        assert result.intercept == pytest.approx(float(other.intercept_), abs=1e-9)


@STORAGES
@pytest.mark.parametrize("shape", [(80, 12), (20, 40)])
def test_logistic_regression_of_scikit_learn(shape, storage):
    A, b = make("logistic", *shape)
    w = np.random.default_rng(2).exponential(1.0, b.size)
    for C in (0.1, 10.0):
        problem = ac.Problem(
            as_storage(A, storage),
            b,
            "logistic",
            l2=1 / (b.size * C),
            sample_weight=w,
            intercept=True,
        )
        result = ac.solve(problem, "newton", tol=1e-13, max_passes=30)
        other = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-13, max_iter=100)
        other.fit(A, b, sample_weight=w)
        np.testing.assert_allclose(result.x, other.coef_[0], rtol=0, atol=1e-9)
        assert result.intercept == pytest.approx(other.intercept_[0], abs=1e-9)


@STORAGES
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(70, 8), (15, 20)])
def test_multinomial(shape, intercept, classes, storage):
    rng = np.random.default_rng(6)
    n, d = shape
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) + 0.2
    b = np.r_[np.arange(classes), rng.integers(classes, size=n - classes)]
    w = rng.exponential(1.0, n)
    problem = ac.Problem(
        as_storage(A, storage), b, "multinomial", l2=0.02, sample_weight=w, intercept=intercept
    )
    result = ac.solve(problem, "newton", tol=1e-13, max_passes=30)
    assert result.converged
    polished = make_solver(problem)
    polished.advance(result.passes + 2)
    if classes > 2:  # scikit-learn has another model for two
        other = LogisticRegression(
            C=1 / (n * 0.02),
            solver="newton-cholesky",
            tol=1e-13,
            fit_intercept=intercept,
            max_iter=200,
        )
        other.fit(A, b, sample_weight=w)
        np.testing.assert_allclose(polished.x, other.coef_.T, rtol=0, atol=1e-8)
        c = other.intercept_ - other.intercept_.mean()
        np.testing.assert_allclose(polished.intercept, c, rtol=0, atol=1e-8)

    z = A @ result.x + result.intercept
    values = logsumexp(z, axis=1) - z[np.arange(n), b]
    own = w @ values / n + 0.01 * np.sum(result.x**2)
    assert result.primal == pytest.approx(own, rel=1e-12)
    np.testing.assert_allclose(result.x.sum(axis=1), 0.0, atol=1e-12)
    g, g_c = gradient(problem, polished.x, polished.intercept)
    assert np.abs(g).max() < 1e-12 and (not intercept or np.abs(g_c).max() < 1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
def test_badly_scaled_columns(loss):
    """Steps do not depend on the units: the same number of them over 12 orders of magnitude."""
    A, b = make(loss, 60, 6)
    scale = 10.0 ** np.array([-6, -3, 0, 1, 3, 6])
    # l2 so small that it plays no part: the solutions are then those of each other's units
    plain = ac.solve(ac.Problem(A, b, loss, l2=1e-14, intercept=True), "newton", tol=1e-6)
    scaled = ac.solve(
        ac.Problem(A * scale, b, loss, l2=1e-14, intercept=True), "newton", tol=1e-3, max_passes=100
    )
    assert plain.converged and scaled.passes <= plain.passes + 3
    assert scaled.primal == pytest.approx(plain.primal, rel=1e-3)


@STORAGES
def test_columns_far_from_zero(storage):
    """Means of 1e6: eliminating the intercept must not cancel the columns away."""
    A, b = make("logistic", 60, 4)
    A = np.where(A == 0.0, 0.1, A) + 1e6 * np.array([1.0, -1.0, 0.0, 2.0])
    problem = ac.Problem(as_storage(A, storage), b, "logistic", l2=0.01, intercept=True)
    result = ac.solve(problem, "newton", tol=1e-8, max_passes=100)
    centred = ac.Problem(A - A.mean(axis=0), b, "logistic", l2=0.01, intercept=True)
    other = ac.solve(centred, "newton", tol=1e-12)
    np.testing.assert_allclose(result.x, other.x, atol=1e-4)


# ---- odd data ----------------------------------------------------------------------------------


@STORAGES
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [*SMOOTH, "multinomial"])
def test_odd_columns_and_rows(loss, intercept, storage):
    """A constant column, a column twice, a column of zeros, a row of zeros, a row of weight 0."""
    A, b = make("squared" if loss == "multinomial" else loss, 40, 6)
    b = np.arange(40) % 3 if loss == "multinomial" else b
    A[:, 2], A[:, 3] = A[:, 0], 0.0
    A[4] = 0.0
    A[:, 1] = 1.0 if intercept else A[:, 1]
    w = np.ones(40)
    w[5] = 0.0
    problem = ac.Problem(
        as_storage(A, storage), b, loss, l2=1e-3, intercept=intercept, sample_weight=w
    )
    result = ac.solve(problem, "newton", tol=1e-11, max_passes=50)
    assert result.converged and np.isfinite(result.x).all()
    np.testing.assert_allclose(result.x[0], result.x[2], rtol=1e-6)
    np.testing.assert_allclose(result.x[3], 0.0, atol=1e-12)
    if intercept:
        np.testing.assert_allclose(result.x[1], 0.0, atol=1e-8)


@STORAGES
@pytest.mark.parametrize("intercept", [False, True])
def test_one_row(intercept, storage):
    A = as_storage(np.array([[3.0, 4.0]]), storage)
    result = ac.solve(ac.Problem(A, [2.0], l2=0.5, intercept=intercept), "newton", tol=1e-12)
    # min (5s - 2)^2/2 + s^2/4 along a/|a|, or 0 where the intercept does it all
    expected = np.array([0.6, 0.8]) * (0.0 if intercept else 10 / 25.5)
    np.testing.assert_allclose(result.x, expected, atol=1e-12)
    assert result.intercept == pytest.approx(2.0 if intercept else 0.0, abs=1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
def test_strong_and_weak_penalties(loss):
    for shape in ((50, 8), (10, 15)):
        A, b = make(loss, *shape)
        for l2 in (1e6, 1.0, 1e-6, 1e-10):
            problem = ac.Problem(A, b, loss, l2=l2, intercept=True)
            result = ac.solve(problem, "newton", tol=1e-8, max_passes=200)
            assert result.converged, (shape, l2)


def test_huge_predictions_do_not_overflow():
    """A first Poisson step of exp(1e4): the line search shortens it."""
    A = np.array([[100.0], [1.0], [50.0]])
    b = np.array([0.0, 1000.0, 1.0])
    result = ac.solve(
        ac.Problem(A, b, "poisson", l2=1e-6, intercept=True), "newton", tol=1e-8, max_passes=200
    )
    assert result.converged and np.isfinite(result.x).all()


# ---- the registry ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"l1": 0.1, "l2": 0.1}, 'l1=0.1: solver="newton" takes no penalty but l2.*"apdc"'),
        ({"l2": 0.1, "positive": True}, 'positive=True: solver="newton" takes no penalty but l2'),
    ],
)
def test_refusals(arguments, message):
    problem = ac.Problem(np.eye(2), [1.0, -1.0], **arguments)
    with pytest.raises(ValueError, match=message):
        ac.solve(problem, "newton")


def test_absurd_sizes_are_refused():
    A = sparse.eye(20_000, 30_000, format="csr")
    b = np.where(np.arange(20_000) % 2, 1.0, -1.0)
    problem = ac.Problem(A, b, "logistic", l2=0.1)
    with pytest.raises(ValueError, match=r'20000 x 20000 numbers \(3 GB\); use solver="auto"'):
        ac.solve(problem, "newton")
    assert choose(problem) != "newton"
    assert choose(ac.Problem(A, b, "logistic")) == "newton-cg"
    with pytest.raises(ValueError, match=r'30000 x 30000 numbers .*use solver="auto"'):
        ac.solve(ac.Problem(A, b, "logistic"), "newton")
    targets = ac.Problem(A, np.arange(20_000) % 3, "poisson")
    with pytest.raises(ValueError, match=r'30000 x 30000 numbers .*use solver="auto"'):
        ac.solve(targets, "newton")
    classes = ac.Problem(A[:50, :9_000].toarray(), np.arange(50) % 3, "multinomial", l2=0.1)
    assert newton_size.system_size(classes) == 18_000 and newton_size.too_large(classes)


def test_without_a_penalty_the_others_name_newton():
    problem = ac.Problem(np.eye(2), [1.0, -1.0])
    for name in set(SOLVERS) - {"newton", "newton-cg", "lbfgs"}:
        with pytest.raises(ValueError, match=r'no duality gap.*l2=1e-8, or use solver="newton"'):
            ac.solve(problem, name)


# ---- the stepper -------------------------------------------------------------------------------


def test_one_factorisation_for_the_squared_loss():
    A, b = make("squared", 40, 6)
    solver = make_solver(ac.Problem(A, b, l2=0.1, intercept=True))
    count, take = [], solver.system.take
    solver.system.take = lambda *system: count.append(1) or take(*system)
    counts = []
    for _ in range(3):
        solver.advance(1)
        counts.append(solver.operations)
    gram = 40 * 6 * 7 // 2 + 6**3 // 6
    assert len(count) == 1 and counts == [2 * 240 + gram, 4 * 240 + gram, 6 * 240 + gram]


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(80, 5), (200, 60), (20, 30)])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("mean", [0.0, 30.0])
def test_a_system_and_its_gradient_from_rows_that_are_read_once(storage, shape, intercept, mean):
    """Few columns, more, and more columns than rows: what both by themselves say."""
    rng = np.random.default_rng(7)
    A, D, r = rng.standard_normal(shape) + mean, rng.random(shape[0]), rng.standard_normal(shape[0])
    problem = ac.Problem(storage(A), r, l2=0.1, intercept=intercept)
    once, twice = newton.smaller_side(problem), newton.smaller_side(problem)
    t = rng.standard_normal(min(shape))
    found = once.both(D, t, r)
    twice.factorise(D)
    expected = twice.gradient(t, D * r)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    steps = [system.step(t, expected, float(D @ r)) for system in (once, twice)]
    np.testing.assert_allclose(steps[0][0], steps[1][0], rtol=1e-8, atol=1e-10)
    assert steps[0][1] == pytest.approx(steps[1][1], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_judge_makes_the_slopes_of_its_predictions(intercept, monkeypatch):
    """Least squares read A once for the step, and once each for the predictions and A'y."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((40_000, 8))
    b = A @ np.ones(8) + rng.standard_normal(40_000)
    problem = ac.Problem(A, b, l2=1e-4, intercept=intercept)
    calls = []
    for name in ("dot", "tdot"):
        product = getattr(type(problem.matrix), name)
        monkeypatch.setattr(
            type(problem.matrix),
            name,
            lambda m, v, name=name, product=product: (
                calls.append(name) if v.any() else None,
                product(m, v),
            )[1],
        )
    result = ac.solve(problem, "newton")
    assert calls == ["dot", "tdot"] and result.converged and result.passes == 1
    slopes = problem.predict(result.x, result.intercept) - problem.b
    np.testing.assert_allclose(result.y, slopes, rtol=0, atol=1e-11)
    solver = make_solver(problem)
    solver.advance(1)
    np.testing.assert_allclose(solver.y, slopes, rtol=0, atol=1e-11)  # for who asks


def test_flat_losses_have_a_way_down():
    """All rows on the linear part of the smoothed hinge: no curvature for the intercept."""
    A, b = make("smooth_hinge", 30, 4)
    for shape in ((30, 4), (4, 30)):
        A, b = make("smooth_hinge", *shape)
        problem = ac.Problem(A, b, losses.SmoothHinge(0.01), l2=1e-3, intercept=True)
        start = ac.solve(problem, "newton", tol=1e-10, max_passes=100)
        assert start.converged
        far = ac.Result(
            **{**vars(start), "x": 0.0 * start.x, "intercept": 50.0, "y": 0.0 * start.y}
        )
        again = ac.solve(problem, "newton", tol=1e-10, max_passes=100, start=far)
        assert again.primal == pytest.approx(start.primal, rel=1e-9)


def test_blas_gets_its_threads_back():
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    seen = []
    A, b = make("logistic", 40, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ac.solve(ac.Problem(A, b, "logistic", l2=0.1), "newton", callback=lambda p: None)
    assert threads() == before
    from adacoord.linalg.blas import one_thread

    with one_thread(), one_thread():
        seen.append(threads())
    assert threads() == before and set(seen[0]) == {1}


# ---- what auto takes ---------------------------------------------------------------------------


def test_auto_takes_newton_where_a_side_is_small(monkeypatch):
    A, b = make("logistic", 2000, 6)
    for loss in ("logistic", "squared_hinge", "smooth_hinge"):
        assert choose(ac.Problem(A, b, loss, l2=1e-5)) in ("newton", "newton-cg")
    assert choose(ac.Problem(A, b, "squared", l2=1e-5)) == "newton"  # one factorisation
    # badly scaled columns: the coordinate methods' passes grow with the largest
    scaled = ac.Problem(A * [1e-3, 1.0, 1.0, 1e3, 1.0, 1.0], b, "logistic", l2=0.01)
    assert choose(scaled) in ("newton", "newton-cg") and ac.solve(scaled).converged
    for other in ({"l1": 0.1}, {"positive": True}):
        assert choose(ac.Problem(A, b, "logistic", l2=0.01, **other)) not in ("newton", "newton-cg")
    assert choose(ac.Problem(A, b, "hinge", l2=1e-5)) == "newton"  # dense, and few columns
    assert (
        choose(ac.Problem(sparse.csr_array(A), b, "hinge", l2=1e-5)) == "acf"
    )  # which turns to it


def test_auto_leaves_large_systems_to_the_others():
    """2000 rows of 5 entries in 2000 columns: 40 Gflop of factorisations for 10,000 entries."""
    rng = np.random.default_rng(8)
    columns = rng.integers(2000, size=(2000, 5)).ravel()
    A = sparse.csr_matrix((rng.standard_normal(10_000), (np.repeat(np.arange(2000), 5), columns)))
    b = np.where(rng.random(2000) < 0.5, 1.0, -1.0)
    assert choose(ac.Problem(A, b, "logistic", l2=1.0)) != "newton"
    assert choose(ac.Problem(A, b, "logistic")) == "newton-cg"


def test_size_of_the_system():
    A = np.ones((5, 9))
    b = np.array([0.0, 1.0, 2.0, 0.0, 1.0])
    assert newton_size.system_size(ac.Problem(A, b, l2=0.1)) == 5
    assert newton_size.system_size(ac.Problem(A, b)) == 9  # x = A'v needs l2
    assert newton_size.system_size(ac.Problem(A.T, np.ones(9), l2=0.1)) == 5
    assert newton_size.system_size(ac.Problem(A, b, "multinomial", l2=0.1, intercept=True)) == 20


def test_a_start_that_overflows_is_not_taken():
    A = np.random.default_rng(0).standard_normal((50, 5))
    b = 1000.0 + np.arange(50)
    far = ac.solve(ac.Problem(A, b, "squared", l2=1e-3, intercept=True))  # c = 1000: e^c = inf
    problem = ac.Problem(A, b, "poisson", l2=1e-3, intercept=True)
    assert ac.solve(problem, "newton", start=far).primal == pytest.approx(
        ac.solve(problem, "newton").primal, rel=1e-6
    )


# ---- least squares of float32 data -------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-4, 1e-12])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e22])
def test_a_first_step_of_float32(tol, size):
    """Where it is not enough, or float32 cannot hold the products, float64 goes on."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((400, 30))
    A = A @ (np.eye(30) + rng.standard_normal((30, 30)))
    b = A @ rng.standard_normal(30) + rng.standard_normal(400) + 5.0
    A, l2 = (size * A).astype(np.float32), 1e-3 * size**2
    problem = ac.Problem(A, b, l2=l2, intercept=True)
    result = ac.solve(problem, "newton", tol=tol)
    assert result.converged and result.passes <= 4
    exact = ac.solve(ac.Problem(A.astype(float), b, l2=l2, intercept=True), "newton", tol=1e-12)
    assert result.primal - exact.primal <= tol * exact.primal


def test_a_start_that_is_enough_costs_no_gram_matrix(monkeypatch):
    rng = np.random.default_rng(9)
    A, b = rng.standard_normal((20, 60)), rng.standard_normal(20)
    problem = ac.Problem(A, b, l2=0.1, intercept=True)
    best = ac.solve(problem, "newton", tol=1e-10)
    monkeypatch.setattr(
        newton.smaller_side(problem).__class__, "K", property(lambda _: pytest.fail("K was made"))
    )
    again = ac.solve(problem, "newton", tol=1e-8, start=best)
    assert again.passes == 0 and again.converged
    np.testing.assert_array_equal(again.x, best.x)
