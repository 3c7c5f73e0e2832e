"""ACF: its kernel against a naive one, its orders, its stopping rule, and its optima."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC, LinearSVR

import adacoord as ac
from adacoord.auto import rule
from adacoord.auto.rule import choose
from adacoord.kernels.codes import MARGIN
from adacoord.sampling.frequencies import LEAST, schedule, shuffle
from adacoord.solvers.dual import kernels
from adacoord.solvers.dual.acf import ORDERS, PUBLISHED, AdaptiveFrequencies
from adacoord.solvers.newton import size

LOSSES = [
    "hinge",
    "squared_hinge",
    "smooth_hinge",
    "logistic",
    "squared",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "absolute",
    "quantile",
    "log_cosh",
]
CLASSIFIERS = LOSSES[:4]
QUADRATIC_DUALS = [name for name in LOSSES if name not in ("logistic", "log_cosh")]


def make(loss, n=60, d=12, density=0.5, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    A[3] = 0.0
    z = A @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return A, np.where(z > 0, 1.0, -1.0) if loss in CLASSIFIERS else z


def make_solver(problem, seed=0, **options):
    return AdaptiveFrequencies(problem, np.random.Generator(np.random.PCG64(seed)), **options)


# ---- the kernel ------------------------------------------------------------------------------


class Naive:
    """The sweeps in plain Python, on dense rows; it shares only the random order."""

    def __init__(self, problem, solver):
        self.problem, self.solver = problem, solver
        m = problem.matrix
        self.A = np.zeros(m.shape)
        for i in range(problem.n):
            part = slice(int(m.indptr[i]), int(m.indptr[i + 1]))
            at = slice(None) if m.is_dense else m.indices[part]
            self.A[i, at] = m.data[part]
        self.y, self.c = solver.y.copy(), float(solver.c)
        self.p, self.accumulators = solver.p.copy(), solver.accumulators.copy()
        self.word = solver.word.copy()
        self.rows, self.active = solver.rows.copy(), solver.rows.copy()
        self.full, self.learning, self.visits, self.since = solver.rests, False, 0, 0
        self.low, self.high, self.gain, self.mean = -np.inf, np.inf, solver.memory[kernels.GAIN], 0
        self.range = 0.0
        self.w = solver.weight / solver.n_rows

    def x(self):
        return self.problem.penalty.conjugate_gradient(-self.A.T @ (self.w * self.y))

    def slopes(self, i, z):
        """Of the dual in y_i: to the right and to the left, 0 where that way is closed."""
        loss, b, y = self.problem.loss, self.problem.b[i], self.y[i]
        lo, hi = (float(end) for end in loss.domain(np.float64(b)))
        alpha, epsilon = loss.constants[:2]
        right = z - b - alpha * y - (epsilon if y >= 0 else -epsilon)
        left = z - b - alpha * y - (epsilon if y > 0 else -epsilon)
        return right, left, y < hi, y > lo

    def sweep(self):
        problem, s = self.problem, self.solver
        n, rho = self.rows.size, s.rho
        self.c -= rho * float(self.w @ self.y)
        order = np.zeros(2 * n, dtype=np.uint32)
        if self.full:
            order[:n], visits = self.rows, n
            shuffle(order, n, self.word)
            eta = 1 / n
        else:
            visits = (s.plan or schedule)(
                self.active, self.active.size, self.p, self.accumulators, order, self.word
            )
            eta = 1 / self.active.size
        seen, resting, gain = [], set(), 0.0
        for i in order[:visits]:
            z = float(self.A[i] @ self.x()) + self.c
            slope = None
            if problem.loss.code <= MARGIN:
                right, left, can_rise, can_fall = self.slopes(i, z)
                slope = right if can_rise and right > 0 else left if can_fall and left < 0 else 0.0
                seen.append(slope)
                if (
                    s.rests
                    and slope == 0.0
                    and not (can_rise and right >= self.low)
                    and not (can_fall and left <= self.high)
                ):
                    resting.add(int(i))
            old, new = self.y[i], self.y[i]
            if slope != 0.0:
                new = float(problem.loss.dual_prox(z, problem.b[i], old, s.step[i]))
            self.y[i] = new
            self.c -= rho * self.w[i] * (new - old)
            decrease = 0.5 * self.w[i] * (new - old) ** 2 * (1 / s.step[i] + problem.loss.gamma)
            if not s.rests and problem.loss.code <= MARGIN:
                ends = np.array([old, new])
                at = problem.loss.conjugate(ends, np.full(2, problem.b[i]))
                rise = z * (new - old) - (at[1] - at[0]) - (new - old) ** 2 / (2 * s.step[i])
                decrease = self.w[i] * rise
            gain += decrease
            if self.learning:
                factor = math.exp(min(0.2 * (decrease / self.mean - 1), 3.0))
                self.p[i] = min(max(self.p[i] * factor, 0.05), 20.0)
                self.mean = (1 - eta) * self.mean + eta * decrease
        if not self.learning:
            self.mean = gain / visits
            self.learning = s.adapts and gain > 0.25 * self.gain
        self.gain = gain
        self.visits += visits
        full, self.full = self.full, False
        if problem.loss.code <= MARGIN:
            low, high = min(seen), max(seen)
            if full:
                self.range, self.since = high - low, 0
            self.since += visits
            base = self.rows if full else self.active
            self.active = np.array([i for i in base if i not in resting], dtype=np.uint32)
            self.low = low if low < 0 else -np.inf
            self.high = high if high > 0 else np.inf
            self.full = s.rests and (
                high - low <= 0.1 * self.range or self.since >= 20 * n or self.active.size == 0
            )

    def advance(self, passes):
        for k in range(1, passes + 1):
            self.sweep()
            while self.visits < k * self.rows.size:
                self.sweep()


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_kernel_against_a_naive_one(loss, order, storage):
    for l1, intercept, weighted in ((0.0, False, False), (0.0, True, True), (0.02, False, True)):
        A, b = make(loss, n=30, d=7)
        w = np.random.default_rng(1).exponential(1.0, b.size) if weighted else None
        problem = ac.Problem(
            sparse.csr_matrix(A) if storage == "csr" else A,
            b,
            loss,
            l1,
            0.05,
            intercept=intercept,
            sample_weight=w,
        )
        solver = make_solver(problem, order=order)
        naive = Naive(problem, solver)
        naive.advance(6)
        solver.advance(6)
        np.testing.assert_allclose(solver.y, naive.y, atol=1e-9)
        np.testing.assert_allclose(solver.p, naive.p, rtol=1e-5)
        np.testing.assert_allclose(solver.x, naive.x(), atol=1e-8)
        assert solver.intercept == pytest.approx(naive.c, abs=1e-8)
        assert solver.memory[kernels.VISITS] == naive.visits
        assert solver.memory[kernels.SIZE] == naive.active.size
        if order != "hybrid":  # which may find the problem easy
            assert (order == "shrinking") == (solver.p == 1.0).all()


@pytest.mark.parametrize("order", PUBLISHED)
def test_fixed_frequencies_against_naive_ones(order):
    """Section 3 of the paper: any p, and nothing adapts it."""
    A, b = make("hinge", n=30, d=7)
    given = np.random.default_rng(3).lognormal(0.0, 1.0, 30)
    problem = ac.Problem(A, b, "hinge", l2=0.05)
    solver = make_solver(problem, order=order, frequencies=given)
    naive = Naive(problem, solver)
    naive.advance(6)
    solver.advance(6)
    np.testing.assert_allclose(solver.y, naive.y, atol=1e-12)
    np.testing.assert_allclose(solver.p * given.max(), given, rtol=1e-12)
    assert solver.memory[kernels.VISITS] == naive.visits
    scaled = make_solver(problem, order=order, frequencies=(1024.0 * given).tolist())
    scaled.advance(6)
    np.testing.assert_array_equal(scaled.y, solver.y)


@pytest.mark.parametrize("order, given", [*((o, False) for o in ORDERS), ("iid", True)])
def test_passes_add_up_and_state_is_whole(order, given):
    A, b = make("hinge")
    problem = ac.Problem(A, b, "hinge", l2=0.002, intercept=True)
    p = {"frequencies": np.arange(1, 61)} if given else {}
    whole, parts, other = (make_solver(problem, seed, order=order, **p) for seed in (0, 0, 5))
    whole.advance(70)
    for k in (1, 30, 0, 9):
        parts.advance(k)
    other.restore(parts.state())
    for solver in (parts, other):
        solver.advance(30)
        for name in ("x", "y", "p", "intercept", "operations", "passes"):
            np.testing.assert_array_equal(getattr(solver, name), getattr(whole, name), name)


# ---- frequencies and shrinking ---------------------------------------------------------------


def test_symmetric_couplings_keep_frequencies_uniform():
    """The paper's sanity check: Q_ii = 1 and Q_ij = q leave nothing to gain."""
    n, q = 40, 0.3
    A = np.hstack([np.sqrt(1 - q) * np.eye(n), np.full((n, 1), np.sqrt(q))])
    b = np.random.default_rng(0).standard_normal(n)
    logs = []
    for seed in range(20):
        solver = make_solver(ac.Problem(A, b, l2=1e-3), seed, order="frequencies")
        solver.advance(60)
        logs.append(np.log(solver.p / solver.p.mean()))
    assert np.abs(np.mean(logs, axis=0)).max() < 0.35, "a coordinate is preferred throughout"
    assert np.std(logs) < 0.5


def test_rows_at_a_bound_rest_and_sink():
    A, b = make("hinge", n=400, d=20, density=1.0, seed=2)
    problem = ac.Problem(A, b, "hinge", l2=1e-3)
    solver = make_solver(problem, order="frequencies")
    solver.advance(100)
    q = -b * solver.y
    free = (q > 1e-9) & (q < 1 - 1e-9)
    bound = ~free & (np.arange(b.size) != 3)
    assert free.sum() <= 20 and problem.gap(solver.x, solver.y) < 1e-9
    assert np.median(solver.p[bound]) == LEAST < 0.5 * np.median(solver.p[free])
    active = solver.active[: int(solver.memory[kernels.SIZE])]
    assert active.size < 0.2 * b.size or solver.memory[kernels.FULL]


@pytest.mark.parametrize("order", PUBLISHED)
@pytest.mark.parametrize("loss", QUADRATIC_DUALS)
def test_the_decrease_is_that_of_the_dual(loss, order):
    """Algorithm 2's own, at bounds and across kinks as well."""
    A, b = make(loss, n=50, d=6)
    problem = ac.Problem(A, b, loss, l2=0.01)
    solver = make_solver(problem, order=order)
    before, gained = problem.dual(solver.y), 0.0
    for _ in range(8):
        solver.advance(1)
        after, now = problem.dual(solver.y), solver.memory[kernels.GAINED]
        assert now - gained == pytest.approx(after - before, rel=1e-9, abs=1e-12)
        before, gained = after, now


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", QUADRATIC_DUALS)
def test_the_estimate_is_about_the_gap(loss, intercept):
    """That which the last sweep met: what is left after it is hardly ever more."""
    A, b = make(loss, n=300, d=2000, density=0.02)
    problem = ac.Problem(A, b, loss, l2=1 / 300, intercept=intercept)
    solver = make_solver(problem)
    assert solver.estimate == np.inf
    ratios = []
    while solver.passes < 30:
        solver.advance(1)
        primal = problem.primal(solver.x, solver.intercept)
        relative = problem.gap(solver.x, solver.y, solver.intercept) / primal
        if 1e-9 < relative < 1e-2:
            ratios.append(solver.estimate / relative)
    assert min(ratios) > 1.0 and np.median(ratios) < 30.0


def test_a_point_that_may_do_is_looked_at():
    """The first look is due after five passes; it comes as soon as it says something."""
    A, b = make("absolute", n=300, d=2000, density=0.02)
    problem = ac.Problem(A, b, "absolute", l2=0.1, intercept=True)
    result = ac.solve(problem, "acf", tol=1e-3)
    assert result.converged and list(result.history.passes) == [0, result.passes]
    assert 0 < result.passes < 5


def test_newton_steps_have_no_estimate():
    A, b = make("hinge", n=400, d=9, density=1.0, seed=2)
    solver = make_solver(ac.Problem(A, b, "hinge", l2=1e-5))
    while solver.newton is None:
        assert solver.passes < 100
        solver.advance(1)
    assert solver.estimate == np.inf


@pytest.mark.parametrize("order", PUBLISHED)
def test_published_orders_let_no_row_rest(order):
    """Rows at a bound sink to the least frequency, and are still visited."""
    A, b = make("hinge", n=400, d=20, density=1.0, seed=2)
    problem = ac.Problem(A, b, "hinge", l2=1e-3)
    solver = make_solver(problem, order=order)
    assert not solver.may_turn
    solver.advance(100)
    assert solver.memory[kernels.SIZE] == solver.rows.size and not solver.resting.any()
    q = -b * solver.y
    free = (q > 1e-9) & (q < 1 - 1e-9)
    bound = ~free & (np.arange(b.size) != 3)
    assert np.median(solver.p[bound]) == LEAST
    assert np.mean(solver.p[free]) > 5 * np.mean(solver.p[bound])
    assert ac.solve(problem, "acf", order=order, tol=1e-6, max_passes=1000).converged


def test_argmax_leaves_nothing_to_chance():
    A, b = make("hinge", n=80, d=9)
    problem = ac.Problem(A, b, "hinge", l2=1e-3)
    one, other = (ac.solve(problem, "acf", order="argmax", seed=seed) for seed in (1, 2))
    np.testing.assert_array_equal(one.x, other.x)


def test_operations_count_the_entries_of_the_rows_visited():
    A, b = make("hinge", density=1.0)
    solver = make_solver(ac.Problem(A, b, "hinge", l2=0.01), order="frequencies")
    solver.advance(20)
    assert solver.operations == solver.memory[kernels.VISITS] * A.shape[1]
    assert 20 * 59 <= solver.memory[kernels.VISITS] < 22 * 59 + 59


def test_a_good_start_is_taken_up():
    A, b = make("hinge", seed=4)
    problem = ac.Problem(A, b, "hinge", l2=0.001)
    found = ac.solve(problem, "acf", tol=1e-9, max_passes=20_000)
    harder = ac.Problem(A, b, "hinge", l2=0.0005)
    cold, warm = (
        ac.solve(harder, "acf", tol=1e-9, max_passes=50_000, start=s) for s in (None, found)
    )
    assert warm.converged and warm.primal == pytest.approx(cold.primal, rel=1e-8)
    assert ac.solve(problem, "acf", tol=1e-9, start=found).passes == 0


def words(n, d, seed):
    """Rows like those of texts: few entries, in columns by Zipf's law, of unit length."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, d + 1)
    zipf /= zipf.sum()
    A = np.zeros((n, d))
    for row in A:
        np.add.at(row, rng.choice(d, size=rng.integers(5, 40), p=zipf), 1.0)
    A *= -np.log(zipf)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    z = A @ rng.standard_normal(d) + 0.05 * rng.standard_normal(n)
    return sparse.csr_matrix(A), np.where(z > 0, 1.0, -1.0)


def test_frequencies_need_fewer_passes_where_it_is_hard():
    """Large C, as the paper has it; one optimum."""
    A, b = words(1000, 600, seed=2)
    problem = ac.Problem(A, b, "hinge", l2=1 / (1000 * 100))
    found = {o: ac.solve(problem, "acf", order=o, max_passes=50_000) for o in ORDERS}
    found["dcd"] = ac.solve(problem, "dcd", max_passes=50_000)
    assert all(r.converged for r in found.values())
    assert max(r.dual for r in found.values()) <= min(r.primal for r in found.values())
    passes = {name: r.passes for name, r in found.items()}
    assert passes["hybrid"] < 0.8 * passes["shrinking"] < 0.64 * passes["dcd"], passes
    assert passes["frequencies"] < 0.8 * passes["shrinking"], passes


def test_auto(monkeypatch):
    monkeypatch.setattr(size, "SMALL", 0)
    monkeypatch.setattr(rule, "coordinate_time", lambda problem: 0.0)
    A, b = words(100, 400, seed=3)
    tall, c = make("hinge", n=400, d=200, density=1.0)  # too long rows for Newton steps on all
    for problem, name in (
        (ac.Problem(A, b, "hinge", l2=1e-6), "acf"),
        (ac.Problem(A, b, "logistic", l2=1e-6), "acf"),
        (ac.Problem(A, b, "squared", l2=1e-6), "acf"),
        (ac.Problem(A, b, "squared", l2=1), "acf"),
        (ac.Problem(tall, c, "squared", l2=1e-4), "apdc"),
        (ac.Problem(A, b, "hinge", l1=1e-3, l2=1e-6), "newton"),  # an interior point, by rows
        (ac.Problem(A, b, "hinge", l1=1e-3, l2=1e-2), "acf"),
        (ac.Problem(A, b, "hinge", l1=1e-3), "newton"),
        (ac.Problem(A, b, "logistic", l1=1e-3, l2=1e-4), "acf"),
        (ac.Problem(A, b, "logistic", l1=1e-3, l2=1.0), "dcd"),
        (ac.Problem(A, b, "logistic", l1=2.0, l2=1.0), "acf"),
        (ac.Problem(A, b, "logistic", l1=1e-3), "acf"),
        (ac.Problem(tall, c, "hinge", l2=1e-3), "acf"),
        (ac.Problem(tall, c, "smooth_hinge", l2=1e-3), "apdc"),
        (ac.Problem(tall, c, "hinge", l2=1.0), "acf"),
        (ac.Problem(tall[:, :9], c, "hinge", l2=1e-3), "acf"),
        (ac.Problem(np.zeros((2, 2)), [1.0, -1.0], "hinge", l2=1e-3), "acf"),
    ):
        assert choose(problem) == name, problem


# ---- the optimum of others -------------------------------------------------------------------


def others(loss, A, b, C):
    """scikit-learn's coefficients for C."""
    exact = {"fit_intercept": False, "tol": 1e-10, "max_iter": 10**6}
    if loss in ("hinge", "squared_hinge"):
        return LinearSVC(loss=loss, C=C, dual=True, random_state=0, **exact).fit(A, b).coef_[0]
    if loss == "logistic":
        return LogisticRegression(C=C, solver="lbfgs", **exact).fit(A, b).coef_[0]
    if loss == "squared":
        return Ridge(alpha=1 / C, solver="sparse_cg", **exact).fit(A, b).coef_
    return (
        LinearSVR(loss=loss, epsilon=0.1, C=C, dual=True, random_state=0, **exact).fit(A, b).coef_
    )


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
@pytest.mark.parametrize(
    "loss",
    [
        "hinge",
        "squared_hinge",
        "logistic",
        "squared",
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
    ],
)
def test_scikit_learn(loss, C, storage):
    A, b = make(loss, n=200, d=30, seed=6)
    A = sparse.csr_matrix(A) if storage == "csr" else A
    problem = ac.Problem(A, b, loss, l2=1 / (200 * C))
    result = ac.solve(problem, "acf", tol=1e-7, max_passes=100_000)
    theirs = problem.primal(others(loss, A, b, C))
    assert result.converged
    assert result.dual <= theirs * (1 + 1e-12)
    assert result.primal <= theirs * (1 + 1e-6)
    assert theirs == pytest.approx(result.primal, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss, C, passes",
    [("hinge", 1, 30), ("hinge", 100, 90), ("hinge", 1000, 300), ("logistic", 100, 25)],
)
def test_text(loss, C, passes, data):
    """Passes on rcv1.subset: 20, 60, 202 and 15 when this was written."""
    A, b = data("rcv1.subset.binary")
    A = sparse.diags(1 / np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())) @ A
    problem = ac.Problem(A.tocsr(), b, loss, l2=1 / (b.size * C))
    assert ac.solve(problem, "acf", max_passes=passes).converged


# ---- options ---------------------------------------------------------------------------------


def projected_range(problem, x, y):
    """max - min of the projected slopes, for the losses of a margin; without rows of zeros."""
    z, b, y = problem.predict(x)[problem.active], problem.b[problem.active], y[problem.active]
    slope = z - b - problem.loss.constants[0] * y
    lo, hi = problem.loss.domain(b)
    slope[(y >= hi) & (slope > 0)] = 0.0
    slope[(y <= lo) & (slope < 0)] = 0.0
    return slope.max() - slope.min()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("order", ORDERS)
def test_liblinears_rule(loss, order):
    A, b = make(loss, n=300, d=40, seed=7)
    problem = ac.Problem(A, b, loss, l2=1 / 300)
    passes = []
    for eps in (0.1, 0.01, 0.001):
        result = ac.solve(
            problem, "acf", tol=0.0, max_passes=10**5, stop="liblinear", eps=eps, order=order
        )
        assert result.status == "liblinear" and not result.converged
        solver = make_solver(problem, order=order, stop="liblinear", eps=eps)
        solver.advance(10**5)
        assert solver.finished == "liblinear" and solver.passes == result.passes
        # the slopes were measured while y still moved
        assert projected_range(problem, solver.x, solver.y) <= 2 * eps
        other = LinearSVC(
            loss=loss,
            C=1.0,
            dual=True,
            fit_intercept=False,
            tol=eps,
            max_iter=10**6,
            random_state=0,
        ).fit(A, b)
        assert result.primal == pytest.approx(problem.primal(other.coef_[0]), rel=2 * eps)
        passes.append(result.passes)
    assert passes[0] <= passes[1] <= passes[2] and passes[0] < passes[2]


@pytest.mark.parametrize(
    "options, word",
    [
        ({"order": "cyclic"}, "hybrid"),
        ({"order": None}, "hybrid"),
        ({"stop": "gap"}, "liblinear"),
        ({"stop": "liblinear", "eps": 0.0}, "positive"),
        ({"eps": 0.1}, "no stop"),
        ({"stop": "liblinear", "eps": float("nan")}, "positive"),
        ({"stop": "liblinear", "eps": True}, "positive"),
        ({"frequencies": np.ones(60)}, 'order="hybrid".*published, argmax, iid'),
        ({"order": "iid", "frequencies": np.ones(59)}, r"shape \(59,\).*60 in all"),
        ({"order": "iid", "frequencies": 1.0}, r"shape \(\).*60 in all"),
        ({"order": "iid", "frequencies": "uniform"}, "frequencies=str.*60 in all"),
        ({"order": "iid", "frequencies": [[1.0], [1.0, 2.0]]}, "frequencies=list.*60 in all"),
        ({"order": "argmax", "frequencies": np.r_[np.ones(59), 0.0]}, r"\[59\]=0.0.*visited"),
        ({"order": "published", "frequencies": np.full(60, np.nan)}, r"\[0\]=nan.*finite"),
    ],
)
def test_options_that_are_none(options, word):
    A, b = make("hinge")
    with pytest.raises(ValueError, match=word):
        ac.solve(ac.Problem(A, b, "hinge", l2=0.1), "acf", **options)


def test_liblinears_rule_needs_a_loss_it_is_made_for():
    A, b = make("logistic")
    with pytest.raises(ValueError, match=r'stop="liblinear".*"logistic"'):
        ac.solve(ac.Problem(A, b, "logistic", l2=0.1), "acf", stop="liblinear")
