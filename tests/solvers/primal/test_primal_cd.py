"""Primal coordinate descent and working sets: kernels against naive ones, optima against peers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression

import adacoord as ac
from adacoord.auto.rule import choose_large
from adacoord.data.matrix import as_matrix
from adacoord.kernels.columns import both_moments, column_dots, combine, moments
from adacoord.problem.column_penalty import ColumnPenalty
from adacoord.problem.losses import LOSSES, get_loss
from adacoord.sampling.frequencies import LEAST, MOST, schedule
from adacoord.solvers.newton.support import support_newton, support_solve
from adacoord.solvers.primal import working_set
from adacoord.solvers.primal.group_set import GroupWorkingSet
from adacoord.solvers.primal.kernels import linearise, sweep, sweeps
from adacoord.solvers.primal.primal_cd import CoordinateDescent
from adacoord.solvers.registry import SOLVERS

SMOOTH = [name for name, cls in LOSSES.items() if cls().gamma > 0.0]
STORAGES = pytest.mark.parametrize("storage", ["dense", "csc"])
METHODS = pytest.mark.parametrize("name", ["cd", "acf"])


def as_storage(A, storage, dtype=np.float64):
    kinds = {
        "dense": np.asarray,
        "csc": sparse.csc_matrix,
        "csr": sparse.csr_matrix,
        "fortran": np.asfortranarray,
    }
    return kinds[storage](A.astype(dtype))


def make(n, d, seed=0, density=0.6, task="regression"):
    """Correlated columns, a column of zeros, a duplicated one, a row of zeros."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    A *= rng.random((n, d)) < density
    A[:, 1] = 0.0
    A[:, 3] = A[:, 2]
    A[4] = 0.0
    z = A @ (rng.standard_normal(d) * (rng.random(d) < 0.3)) + 0.4 + 0.5 * rng.standard_normal(n)
    if task == "classification":
        z = np.where(z > np.median(z), 1.0, -1.0)
    return A, z


# ---- kernels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", ["dense", "csr", "csc", "fortran"])
def test_columns(storage, dtype):
    A, _ = make(23, 11)
    A = A.astype(dtype).astype(np.float64)
    matrix = as_matrix(as_storage(A, storage, dtype))
    arrays = matrix.columns.arrays
    rng = np.random.default_rng(1)
    some, v, h = np.array([7, 0, 3, 1]), rng.standard_normal(23), rng.random(23)
    out = np.empty(4)
    column_dots(*arrays, some, v, out)
    np.testing.assert_allclose(out, A[:, some].T @ v, rtol=1e-13, atol=1e-14)
    out = v.copy()
    touched = combine(*arrays, some, np.array([1.0, 0.0, 2.0, -3.0]), out)
    np.testing.assert_allclose(out, v + A[:, some] @ [1, 0, 2, -3], rtol=1e-13, atol=1e-14)
    visited = matrix.columns.sizes[some[[0, 2, 3]]].sum()
    assert touched == visited
    for weight in (h, h[:1]):
        squares, sums = np.full(11, np.nan), np.full(11, np.nan)
        moments(*arrays, some, weight, squares, sums)
        full = np.broadcast_to(weight, 23)
        np.testing.assert_allclose(squares[some], full @ A[:, some] ** 2, rtol=1e-12)
        np.testing.assert_allclose(sums[some], full @ A[:, some], rtol=1e-12, atol=1e-14)
        assert np.isnan(np.delete(squares, some)).all()
    norms, squares, sums = np.zeros(23), np.full(11, np.nan), np.full(11, np.nan)
    both_moments(*arrays, norms, squares, sums)
    np.testing.assert_allclose(norms, (A**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(squares, (A**2).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(sums, A.sum(axis=0), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(matrix.squared_norms, norms, rtol=1e-12)
    for found, right in zip(matrix.column_moments[1:], (squares, sums), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-13)


def model(n=30, d=12, intercept=True, seed=0):
    """A quadratic model: (A, its columns, x, slopes, h, squares, sums, total, mass)."""
    rng = np.random.default_rng(seed)
    A, _ = make(n, d, seed)
    columns = as_matrix(sparse.csc_matrix(A)).columns
    x, slopes, h = rng.standard_normal(d), rng.standard_normal(n) / n, rng.random(n) / n
    x[::3] = 0.0
    squares, sums = np.empty(d), np.empty(d)
    moments(*columns.arrays, np.arange(d), h, squares, sums)
    if not intercept:
        sums[:] = 0.0
    return (
        A,
        columns.arrays,
        x,
        slopes,
        h,
        squares,
        sums,
        slopes.sum(),
        h.sum() if intercept else np.inf,
    )


def model_value(A, slopes, h, intercept, x0, x, l1, l2):
    """M of the kernels' docstring at x, at its best intercept, written down."""
    dz = A @ (x - x0)
    if intercept:
        dz = dz - np.sum(slopes + h * dz) / h.sum()
    return slopes @ dz + 0.5 * h @ dz**2 + l1 * np.abs(x).sum() + 0.5 * l2 * x @ x


@pytest.mark.parametrize("l2", [0.0, 1e-6, 1.0])
def test_constant_columns_stay_at_zero(l2):
    """Their slopes are rounding; divided by a small l2 that once grew to 1e25 in ten sweeps."""
    rng, n = np.random.default_rng(0), 240
    data = np.repeat([222451.2454919307, 690375.960682851, 1029.0708166970867], n)
    rows, colptr = np.tile(np.arange(n, dtype=np.uint32), 3), np.arange(4, dtype=np.uint64) * n
    h = (rng.random(n) + 0.1) / n
    squares, sums, x = np.zeros(3), np.zeros(3), np.zeros(3)
    moments(colptr, rows, data, np.arange(3), h, squares, sums)
    slopes = h * (-1e6 + 1e-5 * rng.standard_normal(n))
    total, mass = slopes.sum(), h.sum()
    for _ in range(10):
        total, *_ = sweep(
            colptr, rows, data, np.arange(3), x, slopes, h, squares, sums, total, mass, 6e-8, l2,
            False, np.ones(3), 0.0, 0.0,
        )  # fmt: skip
    assert not x.any()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_sweep_minimises_each_coordinate(intercept, positive):
    A, arrays, x, slopes, h, squares, sums, total, mass = model(intercept=intercept)
    x = np.abs(x) if positive else x
    l1, l2 = 0.02, 0.03
    x0, s0, expected = x.copy(), slopes.copy(), x.copy()
    for j in range(x.size):  # ternary search: convex in one variable

        def f(v, j=j):
            w = expected.copy()
            w[j] = v
            return model_value(A, s0, h, intercept, x0, w, l1, l2)

        low, high = (0.0 if positive else -100.0), 100.0
        for _ in range(200):
            a, b = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, b) if f(a) < f(b) else (a, high)
        expected[j] = low
    total, lowered, touched, *_ = sweep(
        *arrays,
        np.arange(x.size),
        x,
        slopes,
        h,
        squares,
        sums,
        total,
        mass,
        l1,
        l2,
        positive,
        np.empty(0),
        0.0,
        0.0,
    )
    np.testing.assert_allclose(x, expected, atol=1e-6)
    start, end = (model_value(A, s0, h, intercept, x0, v, l1, l2) for v in (x0, x))
    assert lowered == pytest.approx(start - end, rel=1e-9)
    np.testing.assert_allclose(slopes, s0 + h * (A @ (x - x0)), atol=1e-14)
    if intercept:
        assert total == pytest.approx(slopes.sum(), abs=1e-13)
    sizes = (A != 0).sum(axis=0)
    assert touched == sizes.sum() + sizes[x != x0].sum()


def test_sweeps_by_frequency_lower_the_model_by_what_it_says():
    A, arrays, x, slopes, h, squares, sums, total, mass = model()
    x0, s0, some = x.copy(), slopes.copy(), np.array([0, 2, 5, 6, 9, 11])
    frequency, accumulator = np.ones(12), np.linspace(0, 0.9, 12)
    order, state, average = np.empty(25, dtype=np.int64), np.array([7], dtype=np.uint64), 0.0
    gained = 0.0
    for k in range(60):
        visits = schedule(some, 6, frequency, accumulator, order, state)
        total, lowered, _, average, _ = sweep(
            *arrays,
            order[:visits],
            x,
            slopes,
            h,
            squares,
            sums,
            total,
            mass,
            0.03,
            0.01,
            False,
            frequency,
            average,
            1 / 6 if k else 0.0,
        )
        average = average if k else lowered / 6
        assert lowered >= 0.0
        gained += lowered
    start, end = (model_value(A, s0, h, True, x0, v, 0.03, 0.01) for v in (x0, x))
    assert gained == pytest.approx(start - end, rel=1e-9)
    rest = np.setdiff1d(np.arange(12), some)
    np.testing.assert_array_equal(x[rest], x0[rest])
    assert (frequency[rest] == 1.0).all() and (frequency[some] != 1.0).all()
    # nothing moves a coordinate at 0 with slack: it sinks to the slowest rate, and not below
    assert frequency.min() >= LEAST and frequency.max() <= MOST
    g = A[:, some].T @ slopes - sums[some] * total / mass + 0.01 * x[some]
    idle = some[(x[some] == 0.0) & (np.abs(g) < 0.027)]
    assert idle.size and (frequency[idle] == LEAST).all()


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("most, enough, room", [(7, 0.0, 10**9), (50, 0.01, 10**9), (50, 0.0, 400)])
def test_sweeps_in_one_call_are_sweeps_in_turn(learning, most, enough, room):
    _, arrays, x, slopes, h, squares, sums, total, mass = model()
    some = np.array([0, 2, 5, 6, 9, 11])
    order, penalty = np.empty(25, dtype=np.int64), (0.03, 0.01, False)

    def start():
        frequency, accumulator = np.ones(12), np.linspace(0, 0.9, 12)
        return x.copy(), slopes.copy(), frequency, accumulator, np.array([7], dtype=np.uint64)

    def inputs(x, slopes, total):
        return x, slopes, h, squares, sums, total, mass, *penalty

    x1, s1, frequency, accumulator, state = start()
    t1, average, first, learns, touched, count, work = total, 0.1, 0.0, learning, 0, 0, 0
    while count < most:
        visits = schedule(some, 6, frequency, accumulator, order, state)
        t1, lowered, entries, average, flips = sweep(
            *arrays,
            order[:visits],
            *inputs(x1, s1, t1),
            frequency,
            average,
            1 / 6 if learns else 0.0,
        )
        average, learns = average if learns else lowered / 6, True
        count, touched, work = count + 1, touched + entries, work + max(entries, 30)
        first = first or lowered
        if lowered <= enough * first or work >= room:
            break
    assert count > 1 and (count < most or most == 7)
    expected = t1, lowered, touched, average, flips, first, count
    x2, s2, *rest = start()
    adapted = rest[0], rest[1], order, rest[2]
    found = sweeps(
        *arrays, some, *inputs(x2, s2, total), *adapted, 0.1, learning, 0.0, most, enough, room
    )
    assert found == expected
    np.testing.assert_array_equal(x2, x1)
    np.testing.assert_array_equal(s2, s1)
    np.testing.assert_array_equal(rest[0], frequency)


def test_schedule_meets_the_frequencies():
    """To within one visit over any number of sweeps, and never twice as long in waiting."""
    rng = np.random.default_rng(0)
    columns = np.array([3, 1, 8, 5, 0, 9])
    frequency = np.exp(rng.uniform(np.log(LEAST), np.log(MOST), 10))
    accumulator = rng.random(10)
    share = frequency[columns] * 6 / frequency[columns].sum()
    order, state = np.empty(21, dtype=np.int64), np.array([1], dtype=np.uint64)
    visits, orders = np.zeros(10), []
    for k in range(1, 500):
        size = schedule(columns, 6, frequency, accumulator, order, state)
        np.add.at(visits, order[:size], 1)
        orders.append(tuple(order[:size]))
        assert np.all(np.abs(visits[columns] - k * share) <= 1.0 + 1e-9)
    assert visits[[2, 4, 6, 7]].sum() == 0
    assert len(set(orders)) > 100  # shuffled


@pytest.mark.parametrize("intercept", [False, True])
def test_newton_step_is_the_solution_where_no_sign_changes(intercept):
    A, arrays, x, slopes, h, squares, sums, total, mass = model(intercept=intercept, d=10)
    x[3] = 0.0  # the twin of column 2
    x[:] = 100.0 * x
    support = np.flatnonzero(x * (squares > 0.0))
    x0, s0, l1, l2 = x.copy(), slopes.copy(), 0.001, 0.01
    B = A[:, support]
    if intercept:
        B = B - h @ B / h.sum()
    Q = B.T @ (h[:, None] * B) + l2 * np.eye(support.size)
    # a target near x0: choose slopes so that the minimiser keeps all signs
    d = 0.3 * np.random.default_rng(1).uniform(-1, 1, support.size) * x[support]
    slopes += np.linalg.pinv(B.T) @ (
        -Q @ d - (B.T @ slopes + l2 * x[support] + l1 * np.sign(x[support]))
    )
    if intercept:
        slopes -= slopes.sum() * h / h.sum()
    s0, total = slopes.copy(), slopes.sum()
    total, _ = support_newton(
        *arrays,
        support,
        x,
        slopes,
        h,
        squares,
        sums,
        total,
        mass,
        l1,
        l2,
        1e-26,
        500,
        *np.empty((3, 30)),
    )
    np.testing.assert_allclose(x[support], x0[support] + d, rtol=1e-7)
    np.testing.assert_allclose(slopes, s0 + h * (A @ (x - x0)), atol=1e-9)
    assert total == pytest.approx(slopes.sum(), abs=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_newton_step_never_raises_the_model(seed):
    """Signs would change here: some coordinates stop at 0."""
    A, arrays, x, slopes, h, squares, sums, total, mass = model(seed=seed)
    x *= 0.1
    support = np.flatnonzero(x * (squares > 0.0))
    x0, s0 = x.copy(), slopes.copy()
    before = model_value(A, s0, h, True, x0, x0, 0.01, 0.0)
    support_newton(
        *arrays,
        support,
        x,
        slopes,
        h,
        squares,
        sums,
        total,
        mass,
        0.01,
        0.0,
        1e-4,
        50,
        *np.empty((3, 30)),
    )
    assert model_value(A, s0, h, True, x0, x, 0.01, 0.0) < before
    assert np.all(x * x0 >= 0.0)
    np.testing.assert_allclose(slopes, s0 + h * (A @ (x - x0)), atol=1e-12)


@pytest.mark.parametrize("name", [*SMOOTH, "poisson", "gamma", "tweedie"])
def test_model_of_a_loss(name):
    A, b = make(30, 12, task="classification")
    b = np.exp(b) if LOSSES[name].log_link else b
    rng = np.random.default_rng(0)
    w = rng.random(30)
    solver = CoordinateDescent(
        ac.Problem(A, b, loss=name, l1=0.1, sample_weight=w, intercept=True), rng
    )
    loss, z = solver.problem.loss, rng.standard_normal(30)
    solver.z = z
    shares = w / 30
    assert solver._loss() == pytest.approx(np.sum(shares * loss.value(z, b)))
    np.testing.assert_allclose(solver._derivative(), loss.derivative(z, b), rtol=1e-12)
    solver._linearise()
    slopes, h = solver.slopes, solver.h
    np.testing.assert_allclose(slopes, shares * loss.derivative(z, b), rtol=1e-12)
    assert solver.total == pytest.approx(slopes.sum()) and solver.mass == pytest.approx(h.sum())
    ahead = loss.derivative(z + 1e-6, b) - loss.derivative(z - 1e-6, b)
    floor = 1e-6 * np.abs(slopes) if loss.steep else 1e-6 * shares / loss.gamma
    np.testing.assert_allclose(h, np.maximum(shares * ahead / 2e-6, floor), rtol=1e-5, atol=1e-9)
    solver.cautious = True
    solver._linearise()
    floor = np.abs(slopes) if loss.steep else shares / loss.gamma
    np.testing.assert_allclose(solver.h, np.maximum(h, floor), rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.7])
def test_linearise_has_floors_and_leaves_a_shared_curvature_alone(share):
    rng = np.random.default_rng(1)
    p, bend, w = rng.standard_normal(9), rng.random(9), rng.random(9)
    slopes, h = np.empty(9), np.empty(9)
    total, mass = linearise(p, bend, w, 0.5, share, slopes, h)
    expected = [max(bend[i], 0.5 * w[i], share * abs(p[i])) for i in range(9)]
    np.testing.assert_array_equal(h, expected)
    np.testing.assert_array_equal(slopes, p)
    assert total == pytest.approx(p.sum()) and mass == pytest.approx(h.sum())
    one = np.full(1, 0.25)
    assert linearise(p, bend, w, 0.5, share, slopes, one) == (total, 9 * 0.25)
    assert one[0] == 0.25


# ---- optima ------------------------------------------------------------------------------------


@METHODS
@pytest.mark.parametrize("storage", ["dense", "csr", "csc", "fortran"])
@pytest.mark.parametrize("shape", [(60, 20), (20, 60)])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_elastic_nets(name, storage, shape, positive, intercept):
    A, b = make(*shape, seed=1)
    w = np.random.default_rng(2).exponential(1.0, b.size)
    w *= b.size / w.sum()  # scikit-learn rescales them so
    data = as_storage(A, storage)
    largest = ac.Problem(data, b, intercept=intercept, sample_weight=w).l1_max()
    for share in (0.5, 0.1, 0.01):
        for l2 in (0.0, 0.05):
            l1 = share * largest
            problem = ac.Problem(
                data, b, l1=l1, l2=l2, positive=positive, intercept=intercept, sample_weight=w
            )
            result = ac.solve(problem, name, tol=1e-9, max_passes=200_000)
            other = ElasticNet(
                alpha=l1 + l2,
                l1_ratio=l1 / (l1 + l2),
                tol=1e-10,
                max_iter=10**6,
                positive=positive,
                fit_intercept=intercept,
            )
            other.fit(A, b, sample_weight=w)
            c = float(other.intercept_) if intercept else 0.0
            assert result.primal == pytest.approx(problem.primal(other.coef_, c), rel=1e-7)
            assert result.x[1] == 0.0  # the column of zeros


@pytest.mark.slow
@METHODS
@STORAGES
@pytest.mark.parametrize("shape", [(60, 20), (30, 80)])
@pytest.mark.parametrize("intercept", [False, True])
def test_l1_logistic(name, storage, shape, intercept):
    A, b = make(*shape, seed=3, task="classification")
    data = as_storage(A, storage)
    largest = ac.Problem(data, b, "logistic", intercept=intercept).l1_max()
    for share in (0.5, 0.1, 0.03):
        problem = ac.Problem(data, b, "logistic", l1=share * largest, intercept=intercept)
        result = ac.solve(problem, name, tol=1e-9, max_passes=200_000)
        other = LogisticRegression(  # saga: its intercept is not penalised
            l1_ratio=1.0,
            C=1 / (b.size * share * largest),
            solver="saga",
            tol=1e-9,
            max_iter=10**6,
            fit_intercept=intercept,
        ).fit(A, b)
        c = float(other.intercept_[0]) if intercept else 0.0
        best = problem.primal(other.coef_[0], c)
        assert result.primal == pytest.approx(best, rel=1e-6) and result.dual <= best


@METHODS
@STORAGES
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("penalty", [(0.02, 0.0), (0.01, 0.05), (0.0, 0.02)], ids=str)
def test_every_smooth_loss(name, storage, loss, penalty):
    """The certificate is the judge, and an independent method finds the same value."""
    task = "classification" if get_loss(loss).task == "classification" else "regression"
    A, b = make(50, 30, seed=4, task=task)
    w = np.random.default_rng(5).exponential(1.0, 50)
    w[7] = 0.0
    problem = ac.Problem(as_storage(A, storage), b, loss, *penalty, intercept=True, sample_weight=w)
    result = ac.solve(problem, name, tol=1e-7, max_passes=100_000)
    other = ac.solve(problem, "apdc", tol=1e-6, max_passes=200_000)
    assert result.converged and other.converged
    assert result.primal == pytest.approx(other.primal, rel=2e-6)


@METHODS
@STORAGES
def test_float32(name, storage):
    A, b = make(60, 20, seed=6)
    single = as_storage(A, storage, np.float32)
    problem = ac.Problem(single, b, l1=0.05)
    assert problem.matrix.columns.data.dtype == np.float32
    result = ac.solve(problem, name, tol=1e-9, max_passes=10_000)  # vectors are float64
    A = A.astype(np.float32).astype(np.float64)
    other = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(A, b)
    assert result.primal == pytest.approx(problem.primal(other.coef_), rel=1e-8)


@METHODS
def test_constant_columns_and_an_intercept(name):
    """A column of ones is the intercept's own kind: x_j is 0, also from a start where it is not."""
    A, b = make(40, 10, seed=7)
    A[:, 5] = 3.0
    problem = ac.Problem(A, b, l1=0.02, intercept=True)
    result = ac.solve(problem, name, tol=1e-10, max_passes=10_000)
    assert result.x[5] == 0.0
    other = Lasso(alpha=0.02, tol=1e-12, max_iter=10**6).fit(A, b)
    assert result.primal == pytest.approx(problem.primal(other.coef_, float(other.intercept_)))
    result.x[5], result.x[1] = 2.0, -1.0
    again = ac.solve(problem, name, tol=1e-10, max_passes=10_000, start=result)
    assert again.x[5] == again.x[1] == 0.0 and again.converged


@METHODS
def test_beyond_l1_max(name):
    A, b = make(30, 50, seed=8)
    problem = ac.Problem(A, b, intercept=True)
    for factor in (1.0, 1.5):
        result = ac.solve(problem.with_penalty(factor * problem.l1_max()), name, tol=1e-9)
        assert result.converged and np.abs(result.x).max() < 1e-9
        assert result.intercept == pytest.approx(b.mean())


def test_highly_correlated_columns():
    """Where conjugate gradients on the support take over from the sweeps."""
    rng = np.random.default_rng(9)
    A = rng.standard_normal((60, 400)) + 3.0 * rng.standard_normal((60, 1))
    b = A[:, :5].sum(axis=1) + rng.standard_normal(60)
    problem = ac.Problem(A, b)
    problem = problem.with_penalty(problem.l1_max() / 1000)
    working_sets = ac.solve(problem, "acf", tol=1e-7, max_passes=2000)
    cyclic = ac.solve(problem, "cd", tol=1e-7, max_passes=20_000)
    assert working_sets.primal == pytest.approx(cyclic.primal, rel=1e-6)
    assert working_sets.history.operations[-1] < 0.2 * cyclic.history.operations[-1]


def naive_frequencies(A, b, l1, l2, passes, solver):
    """Squared loss, no intercept: Algorithm 2 step by step on residuals; shares only the order."""
    n, d = A.shape
    x, p, mean, visits = np.zeros(d), np.ones(d), 0.0, 0
    accumulators, word = solver.accumulators.copy(), solver.word.copy()
    order = np.empty(2 * d, dtype=np.int64)

    def objective(j, v):
        w = x.copy()
        w[j] = v
        return np.sum((A @ w - b) ** 2) / (2 * n) + l1 * np.abs(w).sum() + l2 / 2 * w @ w

    for k in range(passes):
        size = solver.plan(np.arange(d), d, p, accumulators, order, word)
        gains = []
        for j in order[:size]:
            square = A[:, j] @ A[:, j] / n + l2
            g = A[:, j] @ (A @ x - b) / n + l2 * x[j]
            z = square * x[j] - g
            new = np.sign(z) * max(abs(z) - l1, 0.0) / square if square else 0.0
            gain = objective(j, x[j]) - objective(j, new)
            x[j] = new
            gains.append(gain)
            if k:
                p[j] = np.clip(p[j] * np.exp(min(0.2 * (gain / mean - 1), 3.0)), 1 / 20, 20.0)
                mean += (gain - mean) / d
        mean = mean if k else np.mean(gains)
        visits += size
    return x, p, visits


@STORAGES
@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("order", ["frequencies", "argmax", "iid"])
def test_frequencies_over_all_columns_against_naive_ones(order, storage, l2):
    A, b = make(25, 14, seed=13)
    problem = ac.Problem(as_storage(A, storage), b, l1=0.05, l2=l2)
    solver = SOLVERS["cd"].load()(problem, np.random.default_rng(2), order=order)
    x, p, visits = naive_frequencies(A, b, 0.05, l2, 8, solver)
    solver.advance(8)
    np.testing.assert_allclose(solver.x, x, atol=1e-9)
    np.testing.assert_allclose(solver.frequency, p, rtol=1e-6)
    assert solver.visits == visits and p.min() < 0.35 and p.max() > 1.15 * p.min()


def test_frequencies_save_work_on_texts():
    """Columns by Zipf's law, of which few matter: the claim of the paper's Table 3."""
    rng = np.random.default_rng(14)
    zipf = 1 / np.arange(1, 2001)
    A = (rng.random((400, 2000)) < 0.4 * zipf / zipf[0] + 0.002) * -np.log(zipf / zipf.sum())
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = np.where(A @ rng.standard_normal(2000) > 0.0, 1.0, -1.0)
    problem = ac.Problem(sparse.csc_matrix(A), b)
    problem = problem.with_penalty(problem.l1_max() / 50)
    cyclic, adaptive = (
        ac.solve(problem, "cd", order=o, tol=1e-6, max_passes=50_000)
        for o in ("cyclic", "frequencies")
    )
    assert adaptive.primal == pytest.approx(cyclic.primal, rel=2e-6)
    assert adaptive.passes < 0.4 * cyclic.passes  # 556 against 2449 when this was written
    assert adaptive.history.operations[-1] < 0.8 * cyclic.history.operations[-1]


def test_an_order_that_is_none():
    A, b = make(20, 10)
    for wrong in ("hybrid", None, ["cyclic"]):
        with pytest.raises(ValueError, match=r"order=.*cyclic, frequencies, argmax, iid"):
            ac.solve(ac.Problem(A, b, l1=0.1), "cd", order=wrong)


def test_auto_takes_working_sets_where_there_is_an_l1():
    """Unless the data are small."""
    A, b = make(30, 20, seed=10)
    assert choose_large(ac.Problem(A, b, l1=0.1)) == "acf"
    assert choose_large(ac.Problem(A, b, l1=0.1, l2=0.1)) == "acf"
    assert choose_large(ac.Problem(A, b, l2=0.1)) != "acf"
    assert choose_large(ac.Problem(A, b, "absolute", l1=0.1)) != "acf"


@pytest.mark.parametrize("loss", ["hinge", "absolute", "quantile"])
def test_losses_with_kinks_are_refused(loss):
    A, b = make(30, 20, task="classification")
    with pytest.raises(ValueError, match=f'loss="{loss}": solver="cd" needs a smooth loss'):
        ac.solve(ac.Problem(A, b, loss, l1=0.1), "cd")
    with pytest.raises(ValueError, match='solver="acf" needs a strongly convex penalty'):
        ac.solve(ac.Problem(A, b, loss, l1=0.1), "acf")  # which is dual ascent for such losses


def test_an_estimate_is_not_believed(monkeypatch):
    """A solver that claims to be there is looked at more often, and stops no sooner."""
    A, b = make(60, 40, seed=11)
    problem = ac.Problem(A, b, l1=0.01)
    honest = ac.solve(problem, "acf", tol=1e-9)
    monkeypatch.setattr(
        SOLVERS["acf"].columns.load(),
        "estimate",
        property(lambda s: 0.0, lambda s, v: 0),
        raising=False,
    )
    liar = ac.solve(problem, "acf", tol=1e-9)
    assert liar.converged and liar.relative_gap <= 1e-9
    assert liar.passes <= honest.passes and liar.history.passes.size > honest.history.passes.size
    assert (np.diff(liar.history.passes) == 1).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_direct_solution_on_a_small_support(seed, intercept):
    """It ends where the gradient is 0, or at a coordinate that reached 0; and below the start."""
    A, arrays, x, slopes, h, squares, sums, total, mass = model(seed=seed, intercept=intercept)
    x *= 0.3
    x[3] = x[2]  # twins: a singular matrix
    support = np.flatnonzero(x)
    x0, s0, l1, l2 = x.copy(), slopes.copy(), 0.01, 0.0
    total, touched = support_solve(
        *arrays, support, x, slopes, h, squares, sums, total, mass, l1, l2, 50, *np.empty((2, 30))
    )
    before, after = (model_value(A, s0, h, intercept, x0, v, l1, l2) for v in (x0, x))
    assert after < before
    assert np.all(x * x0 >= 0.0) and np.all(x[x0 == 0.0] == 0.0)
    np.testing.assert_allclose(slopes, s0 + h * (A @ (x - x0)), atol=1e-12)
    if intercept:
        assert total == pytest.approx(slopes.sum(), abs=1e-12)
    left = np.flatnonzero(x * (squares > 0.0))
    g = A[:, left].T @ slopes - sums[left] * (total / mass) + l1 * np.sign(x[left])
    np.testing.assert_allclose(g, 0.0, atol=1e-10)
    assert touched > 0


@pytest.mark.parametrize(
    "loss, l2",
    [
        ("squared", 0.0),
        ("squared", 0.1),
        ("logistic", 0.0),
        ("squared_hinge", 0.0),
        ("huber", 0.02),
    ],
)
@pytest.mark.parametrize("intercept", [False, True])
def test_screening_is_safe(loss, l2, intercept):
    """No column of the solution's support is ever out of reach of a set as large as can be."""
    task = "classification" if get_loss(loss).task == "classification" else "regression"
    A, b = make(40, 150, seed=12, task=task)
    w = np.random.default_rng(1).exponential(1.0, 40)
    problem = ac.Problem(A, b, loss, l2=l2, intercept=intercept, sample_weight=w)
    problem = problem.with_penalty(l1=0.2 * problem.l1_max())
    best = ac.solve(problem, "cd", tol=1e-11, max_passes=100_000)
    needed = np.flatnonzero(np.abs(best.x) > 1e-7)
    solver = SOLVERS["acf"].columns.load()(problem, np.random.default_rng(0))
    sizes = []

    def choose(pulled, slack, support, size, gap, real=solver._choose):
        left = solver.left
        real(pulled, slack, np.zeros_like(support), problem.d, gap)
        sizes.append(solver.set.size)
        assert np.isin(needed, solver.set).all()
        solver.left = left
        real(pulled, slack, support, size, gap)

    solver._choose = choose
    solver.advance(80)
    assert needed.size <= min(sizes) < 75 < sizes[0]  # and it does screen


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
@pytest.mark.parametrize("room", [np.inf, 0.3])
@pytest.mark.parametrize("loss, l2", [("squared", 0.0), ("logistic", 0.0), ("logistic", 0.02)])
def test_looks_leave_out_what_is_screened(loss, l2, room, storage, monkeypatch):
    """The gap of what is left is that of all, for less work; a restart gives the same bits."""
    monkeypatch.setattr(working_set, "SMALLEST", 10)
    if room < np.inf:
        monkeypatch.setattr(working_set, "SMALL_DATA", 0)
        monkeypatch.setattr(working_set, "ROOM", room)
    task = "classification" if loss == "logistic" else "regression"
    A, b = make(80, 300, seed=6, density=0.3, task=task)
    w = np.random.default_rng(1).exponential(1.0, 80)
    how = {"l2": l2, "intercept": True, "sample_weight": w}
    problem = ac.Problem(as_storage(A, storage), b, loss, **how)
    problem = problem.with_penalty(l1=0.4 * problem.l1_max())

    def started(narrows=True):
        solver = working_set.WorkingSetDescent(problem, np.random.default_rng(0))
        solver.narrows = narrows
        return solver

    best = ac.solve(problem, "cd", tol=1e-11, max_passes=100_000)
    needed = np.flatnonzero(np.abs(best.x) > 1e-7)
    solver, whole, sizes = started(), started(narrows=False), []
    for _ in range(40):
        restarted = started()
        restarted.restore(solver.state())
        restarted.advance(1)
        solver.advance(1)
        assert (restarted.x == solver.x).all() and (restarted.y == solver.y).all()
        sizes.append(solver.left.size)
        assert not sizes[-1] or np.isin(needed, solver.left).all()
        whole.advance(1)
    assert whole.left.size == 0 and 0 < sizes[-1] < 60
    assert solver.estimate < 1e-9
    gap = problem.relative_gap(*problem.judge(solver.x, solver.y, solver.intercept, 1e-12))
    assert gap <= solver.estimate + 1e-12
    np.testing.assert_allclose(solver.x, whole.x, atol=1e-6)


def test_what_violates_its_constraint_is_in_the_next_set():
    """However much more the support does so, by which y is scaled."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 400)) * np.where(np.arange(400) < 390, 1.0, 0.05)
    A[:, 390:] += 0.5 * A[:, :1]
    problem = ac.Problem(A, 20.0 * A[:, 0] + A[:, 395] + rng.standard_normal(60), l1=0.01)
    solver = SOLVERS["acf"].columns.load()(problem, np.random.default_rng(0))
    missed = []

    def choose(pulled, slack, support, size, gap, real=solver._choose):
        real(pulled, slack, support, size, gap)
        worst = np.argsort(pulled / solver.norms)[: solver.set.size - np.count_nonzero(support)]
        missed.append(np.setdiff1d(worst[pulled[worst] < 0.0], solver.set).size)

    solver._choose = choose
    solver.advance(30)
    assert len(missed) > 2 and not any(missed)


@METHODS
@pytest.mark.parametrize("loss", ["huber", "squared_epsilon_insensitive"])
def test_one_row_of_a_curved_loss(name, loss):
    """Its curvature is not taken for one that all rows share."""
    problem = ac.Problem(np.array([[1.0, 2.0]]), [2.0], loss, l1=0.1)
    best = ac.solve(problem, "apdc", tol=1e-9, max_passes=10_000)
    assert ac.solve(problem, name, tol=1e-9).primal == pytest.approx(best.primal, rel=1e-8)


# --- weights and bounds of each column -----------------------------------------------------------


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_weights_that_are_all_the_same_give_the_bits_of_one(name):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 9))
    b = np.where(np.arange(60) % 2, 1.0, -1.0)
    one = ac.Problem(A, b, name, l1=0.02, l2=0.1, intercept=True)
    each = ac.Problem(A, b, name, l1=0.02, l2=0.1, intercept=True)
    full = (np.full(9, v) for v in (0.02, 0.1, -np.inf, np.inf, 1.0))
    each.penalty = ColumnPenalty(*full)
    x = []
    for problem in (one, each):
        solver = CoordinateDescent(problem, np.random.default_rng(0))
        solver.advance(5)
        x.append(solver.x)
    np.testing.assert_array_equal(x[0], x[1])


@pytest.mark.parametrize("name", ["squared", "huber", "logistic", "squared_hinge"])
def test_bounds_weights_and_offsets(name):
    """The optimum of Newton's method, which another library confirms (test_bounded)."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((80, 7))
    b = np.where(np.arange(80) % 2, 1.0, -1.0)
    problem = ac.Problem(
        A,
        b,
        name,
        l1=[0.0, 0.0, 0.1, 0.02, 0.0, 0.3, 0.01],
        l2=[0.1, 0.1, 0.0, 0.0, 0.1, 0.2, 0.0],
        lower=[-np.inf, 0.05, -0.01, -np.inf, -np.inf, -1.0, -np.inf],
        upper=[0.0, 1.0, 0.01, np.inf, np.inf, 1.0, 0.02],
        offset=0.3 * rng.standard_normal(80),
        intercept=True,
    )
    found = ac.solve(problem, "cd", tol=1e-9, max_passes=3000)
    best = ac.solve(problem, "newton", tol=1e-12)
    assert found.converged and found.solver == "cd"
    np.testing.assert_allclose(found.x, best.x, atol=1e-5)


@pytest.mark.parametrize("groups", [None, np.arange(300) // 3])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_rows_are_not_copied_into_columns(storage, loss, groups, monkeypatch):
    """Columns of the sets alone; the bits do not hang on what else is held, nor on a restart."""
    monkeypatch.setattr(working_set, "SMALL_DATA", 0)
    monkeypatch.setattr(working_set, "ROOM", 0.05)
    monkeypatch.setattr(working_set, "SMALLEST", 10)
    task = "classification" if loss == "logistic" else "regression"
    A, b = make(80, 300, seed=6, density=0.3, task=task)
    level = 0.4 * ac.Problem(A, b, loss, l1=1.0, intercept=True).l1_max()

    def posed(storage):
        grouped = {"l1": level} if groups is None else {"l21": level, "groups": groups}
        return ac.Problem(as_storage(A, storage), b, loss, intercept=True, **grouped)

    def started(problem):
        kind = working_set.WorkingSetDescent if groups is None else GroupWorkingSet
        return kind(problem, np.random.default_rng(0))

    problem = posed(storage)
    whole = started(problem)
    held, turns = [], []
    for _ in range(30):
        before = whole.columns
        whole.advance(1)
        held.append(whole.columns.data.size / problem.matrix.nnz)
        turns.append(whole.columns is not before)
    assert "columns" not in vars(problem.matrix) and 0.0 < max(held) < 0.6
    assert sum(turns) > 1
    restarted = started(problem)  # while the matrix holds the last columns of the other
    restarted.advance(3)
    state = restarted.state()
    restarted = started(posed(storage))
    restarted.restore(state)
    restarted.advance(27)
    assert (restarted.x == whole.x).all() and (restarted.y == whole.y).all()
    best = ac.solve(posed("csc"), "acf", tol=1e-9)
    mine = ac.solve(posed(storage), "acf", tol=1e-9)
    assert mine.converged
    assert mine.primal == pytest.approx(best.primal, rel=2e-9)
