"""The comparators: naive references for SAG, ASDCA and AFG, and the rates of the textbooks."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scipy import sparse
from scipy.optimize import minimize

import adacoord as ac
from adacoord.solvers.baselines import row_kernels
from adacoord.solvers.registry import SOLVERS

STORAGES = pytest.mark.parametrize("storage", ["dense", "csr"])
PENALTIES = {
    "l2": (0.0, 0.003, False),
    "l1+l2": (0.01, 0.003, False),
    "positive": (0.004, 0.003, True),
}
GAMMA = {
    "squared": 1.0,
    "smooth_hinge": 1.0,
    "squared_hinge": 0.5,
    "logistic": 4.0,
    "huber": 1.0,
    "log_cosh": 1.0,
}
LOSSES = pytest.mark.parametrize("loss", GAMMA)


def make(loss, seed=0, n=40, d=12):
    """Sparse rows of very different lengths, one of zeros, and weights, one of them zero."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3) * rng.exponential(1.0, (n, 1))
    A[4] = 0.0
    z = A @ rng.standard_normal(d) + 0.3 + 0.5 * rng.standard_normal(n)
    w = rng.exponential(1.0, n)
    w[9] = 0.0
    return A, z if loss in ("squared", "huber") else np.where(z > 0, 1.0, -1.0), w


def make_solver(
    name,
    A,
    b,
    loss,
    penalty,
    storage="dense",
    *,
    w=None,
    intercept=False,
    seed=0,
    start=None,
    **options,
):
    l1, l2, positive = penalty
    problem = ac.Problem(
        sparse.csr_matrix(A) if storage == "csr" else A,
        b,
        loss,
        l1,
        l2,
        positive=positive,
        sample_weight=w,
        intercept=intercept,
    )
    rng = np.random.Generator(np.random.PCG64(seed))
    return SOLVERS[name].load()(problem, rng, start, **options)


def visited(A, w, intercept):
    """(rows that count, their weights W at the places of all rows, feature of the intercept)."""
    keep = (w > 0) & (intercept | A.any(axis=1))
    N = keep.sum()
    beta = np.sqrt(np.mean((A[keep] ** 2).sum(axis=1))) if intercept else 0.0
    return np.flatnonzero(keep), w * N / w.size, beta


def ridge(n, d, lam, seed=0):
    """Singular values from 1 to 1e-6, evenly on a log scale: f alone is hardly strongly convex."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((n, d)))
    V, _ = np.linalg.qr(rng.standard_normal((d, d)))
    A = np.sqrt(n) * (U * np.logspace(0, -6, d)) @ V.T
    b = A @ V.T @ rng.standard_normal(d) + rng.standard_normal(n)
    return A, b, np.linalg.solve(A.T @ A / n + lam * np.eye(d), A.T @ b / n)


# ---- SAG -----------------------------------------------------------------------------------------


def naive_sag(A, b, loss, penalty, w, order, rows, W, beta, tau):
    """The definition: the table of gradients is kept, and averaged anew at every step."""
    N, d = rows.size, A.shape[1]
    features = np.hstack([A, np.full((b.size, 1), beta)])
    x, y = np.zeros(d + 1), np.zeros(b.size)
    for i in order:
        y[i] = reference.loss_slope(loss, features[i] @ x, b[i])
        u = (W[rows] * y[rows]) @ features[rows] / N
        x[:d], x[d] = reference.prox(x[:d], u[:d], tau, penalty), x[d] - tau * u[d]
    return x[:d], beta * x[d], y


@pytest.mark.slow
@STORAGES
@LOSSES
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("intercept", [False, True])
def test_sag_makes_the_naive_steps(loss, penalty, intercept, storage):
    """Lagged updates change nothing, across the re-synchronisation at pass 32."""
    A, b, w = make(loss)
    rows, W, beta = visited(A, w, intercept)
    norms = W[rows] * ((A[rows] ** 2).sum(axis=1) + beta**2)
    R = np.sqrt(norms.max())
    for step, lipschitz, passes in ((1.0, "slope", 35), (1 / 16, "slope", 7), (1 / 4, "norm", 7)):
        solver = make_solver(
            "sag",
            A,
            b,
            loss,
            PENALTIES[penalty],
            storage,
            w=w,
            seed=3,
            intercept=intercept,
            step=step,
            lipschitz=lipschitz,
        )
        rng = np.random.Generator(np.random.PCG64(3))
        order = np.concatenate(
            [rows[rng.integers(rows.size, size=rows.size)] for _ in range(passes)]
        )
        x, c, y = naive_sag(
            A,
            b,
            loss,
            PENALTIES[penalty],
            w,
            order,
            rows,
            W,
            beta,
            step * GAMMA[loss] / (R if lipschitz == "norm" else R * R),
        )
        solver.advance(passes)
        np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-10)
        np.testing.assert_allclose(solver.y[rows], y[rows], rtol=0, atol=1e-10)
        assert solver.intercept == pytest.approx(c, abs=1e-10)


def test_sag_touches_only_the_entries_of_its_rows():
    A, b, _ = make("logistic")
    solver = make_solver("sag", A, b, "logistic", PENALTIES["l1+l2"], "csr", seed=5)
    rng = np.random.Generator(np.random.PCG64(5))
    order = solver.rows[rng.integers(solver.rows.size, size=solver.rows.size)]
    solver.advance(1)
    assert solver.operations == np.count_nonzero(A[order])


@pytest.mark.parametrize("step", [1 / 16, 1.0])
def test_sag_is_linear(step):
    """Schmidt et al., Theorem 1: P - P* falls by 1 - min(mu/(16 L), 1/(8 n)) a step, or faster."""
    rng = np.random.default_rng(1)
    n, lam = 200, 1e-3
    A = rng.standard_normal((n, 20))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = A @ rng.standard_normal(20) + rng.standard_normal(n)
    best = reference.smooth_optimum(A, b, "squared", (0.0, lam, False))[0]
    L = 1.0 + lam
    proved = n * -np.log1p(-min(lam / (16 * L), 1 / (8 * n)))
    solver = make_solver("sag", A, b, "squared", (0.0, lam, False), step=step)
    passes, errors = [], []
    for _ in range(40):
        solver.advance(10)
        error = solver.problem.primal(solver.x) - best
        if error < 1e-12:
            break
        passes.append(solver.passes)
        errors.append(np.log(error))
    half = len(passes) // 4  # beyond the first, sublinear part
    slope, offset = np.polyfit(passes[half:], errors[half:], 1)
    residual = np.array(errors[half:]) - np.polyval([slope, offset], passes[half:])
    assert -slope >= proved
    assert np.std(residual) < 0.1 * (errors[half] - errors[-1])  # a straight line


@pytest.mark.parametrize("step", [0.0, -1.0, 1.5, np.nan, "1/L", True])
def test_bad_steps(step):
    A, b, _ = make("squared")
    with pytest.raises(ValueError, match=r"step=.*units of 1/L"):
        ac.solve(ac.Problem(A, b, l2=0.1), "sag", step=step)


def test_what_the_lipschitz_constant_of_sag_may_be():
    A, b, _ = make("squared")
    with pytest.raises(ValueError, match=r"lipschitz='max': sag takes \"slope\" .* or \"norm\""):
        ac.solve(ac.Problem(A, b, l2=0.1), "sag", lipschitz="max")


# ---- ASDCA ---------------------------------------------------------------------------------------


def naive_asdca(A, b, loss, penalty, W, rows, beta, passes, seed):
    """Shalev-Shwartz and Zhang's procedure, each x from its y anew; (x, c, y, outer steps)."""
    l1, l2, positive = penalty
    rng = np.random.Generator(np.random.PCG64(seed))
    N, d, gamma = rows.size, A.shape[1], GAMMA[loss]
    F = np.hstack([A, np.full((b.size, 1), beta)])
    kappa = np.max(W[rows] * (F[rows] ** 2).sum(axis=1)) / (gamma * N) - l2
    eta = np.sqrt(l2 / 2 / (l2 / 2 + kappa))
    y, center, last = np.zeros(b.size), np.zeros(d + 1), np.zeros(d + 1)

    def primal(y):
        v = kappa * center - (W[rows] * y[rows]) @ F[rows] / N
        v[:d] = reference.prox(0.0, -v[:d], np.inf, (l1, l2 + kappa, positive))
        v[d] /= kappa
        return v

    # at y = 0, x = 0 the gap is P(0) - D(0) = mean phi(0) + mean phi*(0)
    mean = (W[rows] * reference.loss_value(loss, np.zeros(N), b[rows])).sum() / N
    xi, t = (1 + eta**-2) * mean, 1
    first, inner = xi, 0
    for _ in range(passes):
        for i in rows[rng.integers(N, size=N)]:
            reach = A[i] @ A[i] / (l2 + kappa) + beta**2 / kappa
            y[i] = reference.dual_prox(loss, F[i] @ primal(y), b[i], y[i], N / (W[i] * reach))
        x, inner = primal(y), inner + 1
        z = F[rows] @ x
        terms = reference.loss_value(loss, z, b[rows]) - y[rows] * z
        conj = [reference.loss_conjugate(loss, v, c) for v, c in zip(y[rows], b[rows], strict=True)]
        if (W[rows] * (terms + conj)).sum() / N <= eta / (2 * (1 + eta**-2)) * xi:
            center, last = x + (1 - eta) / (1 + eta) * (x - last), x
            t += 1
            xi, inner = (1 - eta / 2) ** (t - 1) * first, 0
    x = primal(y)
    return x[:d], beta * x[d], y, t - 1


@STORAGES
@pytest.mark.parametrize("loss", ["squared", "smooth_hinge", "logistic"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("intercept", [False, True])
def test_asdca_makes_the_naive_steps(loss, penalty, intercept, storage):
    A, b, w = make(loss, seed=1)
    w[4] = 0.0  # a row of zeros has a gap of its own, which P(0) - D(0) would count
    rows, W, beta = visited(A, w, intercept)
    l1, _, positive = PENALTIES[penalty]
    penalty = l1, 1e-4, positive
    solver = make_solver("asdca", A, b, loss, penalty, storage, w=w, seed=2, intercept=intercept)
    assert solver.kappa > 0
    gap = solver.problem.gap(np.zeros(12), np.zeros(b.size))
    assert solver.target == pytest.approx(0.5 * solver.eta * gap)
    x, c, y, steps = naive_asdca(A, b, loss, penalty, W, rows, beta, 40, 2)
    solver.advance(40)
    assert steps >= 4
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(solver.y[rows], y[rows], rtol=0, atol=1e-10)
    assert solver.intercept == pytest.approx(c, abs=1e-10)


def test_asdca_is_sdca_where_the_problem_is_well_conditioned():
    """l2 > R^2/(10 n gamma): outside the specification of the accelerated method."""
    A, b, _ = make("smooth_hinge", seed=1)
    edge = np.max((A**2).sum(axis=1)) / (10 * b.size)
    for l2, accelerated in ((1.01 * edge, False), (0.99 * edge, True)):
        one, other = (
            make_solver(name, A, b, "smooth_hinge", (0.0, l2, False)) for name in ("asdca", "sdca")
        )
        one.advance(20)
        other.advance(20)
        assert (one.kappa > 0) == accelerated
        assert np.array_equal(one.x, other.x) == (not accelerated)


def ill_conditioned(lam):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((300, 40)) / np.arange(1, 41)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    return A, A @ np.ones(40) + rng.standard_normal(300), (0.0, lam, False)


def test_asdca_keeps_the_bound_of_its_theorem():
    """P(x_t) - P* <= (1 - eta/2)^(t-1) (1 + eta^-2) (P(0) - D(0)), in O(log) passes a step."""
    A, b, penalty = ill_conditioned(1e-5)
    best = reference.smooth_optimum(A, b, "squared", penalty)[0]
    solver = make_solver("asdca", A, b, "squared", penalty)
    bound = (1 + solver.eta**-2) * solver.target / (solver.eta / 2)
    steps = 0
    while steps < 200:
        solver.advance(1)
        if solver.inner == 0:  # an outer step is just done
            steps += 1
            bound *= 1 - solver.eta / 2
            assert solver.problem.primal(solver.last) - best <= bound
    # theory: (N + R^2/((l2 + kappa) gamma)) log(...)/N = 2 log(...) passes an outer step
    assert solver.passes <= steps * 2 * np.log(solver.eta**-3)


def test_asdca_against_sdca_on_an_ill_conditioned_problem():
    passes = {}
    for name in ("sdca", "asdca"):
        A, b, penalty = ill_conditioned(1e-6)
        result = ac.solve(ac.Problem(A, b, l2=penalty[1]), name, tol=1e-6, max_passes=10**6)
        passes[name] = result.passes
    assert passes["asdca"] < passes["sdca"] / 5, passes


# ---- full gradients ------------------------------------------------------------------------------


def naive_afg(A, b, loss, penalty, iterations):
    """Nesterov's scheme (2.2.8) with fresh products and the line search as printed."""
    n, d = A.shape
    l2 = penalty[1]
    M = np.mean((A**2).sum(axis=1)) / GAMMA[loss] / min(n, d)
    x = v = np.zeros(d)
    gamma, trials = M + l2, 0

    def f(x):
        return np.mean(reference.loss_value(loss, A @ x, b))

    for _ in range(iterations):
        while True:
            trials += 1
            L = M + l2
            alpha = max(np.roots([L, gamma - l2, -gamma]))
            after = L * alpha**2
            q = (alpha * gamma * v + after * x) / (gamma + alpha * l2)
            slope = A.T @ reference.loss_slope(loss, A @ q, b) / n
            new = reference.prox(q, slope, 1 / M, penalty)
            if f(new) <= f(q) + slope @ (new - q) + M / 2 * (new - q) @ (new - q) + 1e-14:
                break
            M *= 2
        # (1-alpha) gamma v + alpha l2 q - alpha G over gamma+, G the gradient mapping
        v = ((1 - alpha) * gamma * v + alpha * l2 * q - alpha * L * (q - new)) / after
        x, gamma, M = new, after, 0.9 * M
    return x, trials


@STORAGES
@LOSSES
@pytest.mark.parametrize("penalty", [*PENALTIES, "l1"])
def test_afg_makes_the_naive_steps(loss, penalty, storage):
    A, b, _ = make(loss, seed=4)
    penalty = {**PENALTIES, "l1": (0.02, 0.0, False)}[penalty]
    x, trials = naive_afg(A, b, loss, penalty, 30)
    solver = make_solver("afg", A, b, loss, penalty, storage)
    solver.advance(2 * trials)
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-8)
    assert solver.operations == 2 * trials * solver.problem.matrix.nnz


def passes_to(name, lam, tol=1e-9, **options):
    A, b, x = ridge(200, 40, lam)
    result = ac.solve(ac.Problem(A, b, l2=lam), name, tol=tol, max_passes=10**6, **options)
    assert result.converged
    np.testing.assert_allclose(result.x, x, atol=np.sqrt(2 * result.gap / lam))
    return result.passes


@pytest.mark.parametrize("name", ["afg", "pdhg"])
def test_accelerated_methods_take_the_root_of_the_condition_number(name):
    """kappa = |A|^2/(n lambda) = 1e2, 1e4, 1e6: ten times the passes for a hundred times that."""
    passes = [passes_to(name, lam) for lam in (1e-2, 1e-4, 1e-6)]
    assert 4 < passes[1] / passes[0] < 20 and 4 < passes[2] / passes[1] < 20, passes


def test_pdhg_falls_at_the_rate_of_its_theorem():
    """Chambolle and Pock, Theorem 3: by theta an iteration, in the norm of the two steps."""
    lam = 1e-4
    A, b, x = ridge(200, 40, lam)
    y = A @ x - b
    solver = make_solver("pdhg", A, b, "squared", (0.0, lam, False))
    largest = np.linalg.norm(A, 2)
    mu = 2 * np.sqrt(200 * lam) / largest
    assert 1 / (1 + mu) <= solver.theta <= 1 / (1 + 0.95 * mu)  # |A| to 5 %, from above
    assert solver.tau * solver.s <= 200 / largest**2

    def distance():
        return np.sum((solver.x - x) ** 2) / (2 * solver.tau) + np.sum((solver.y - y) ** 2) / (
            2 * 200 * solver.s
        )

    start = distance()
    for k in range(1, 60):
        solver.advance(20)
        rate = solver.theta ** (10 * k)
        assert distance() <= 2.0 * start * rate + 1e-20
    assert distance() >= start * rate**3  # and the step sizes are not more cautious than need be


def test_lbfgs_takes_no_more_gradients_than_scipys():
    """The line search is nearly exact, since a trial costs no entry of A."""
    rng = np.random.default_rng(6)
    A = rng.standard_normal((500, 60)) * np.logspace(0, -2, 60)
    b = np.where(A @ rng.standard_normal(60) + 0.3 * rng.standard_normal(500) > 0, 1.0, -1.0)
    lam, gradients = 1e-5, [0]

    def value(x):
        gradients[0] += 1
        return (
            reference.objective(A, b, "logistic", (0, lam, False), x),
            A.T @ reference.loss_slope("logistic", A @ x, b) / 500 + lam * x,
        )

    best = reference.smooth_optimum(A, b, "logistic", (0.0, lam, False))[0]

    def stop(x):
        if value(x)[0] - best <= 1e-8 * best:
            raise StopIteration

    minimize(
        value,
        np.zeros(60),
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxcor": 30, "ftol": 0, "gtol": 0, "maxiter": 10**4},
    )
    solver = make_solver("lbfgs", A, b, "logistic", (0.0, lam, False))
    while solver.problem.primal(solver.x) - best > 1e-8 * best:
        solver.advance(2)
        assert solver.passes <= 1.5 * 2 * gradients[0], gradients


def test_lbfgs_ends_on_a_quadratic_of_fewer_columns_than_its_memory():
    """With the memory of all steps and an exact line search it is conjugate gradients."""
    rng = np.random.default_rng(7)
    A, b = rng.standard_normal((50, 8)), rng.standard_normal(50)
    solver = make_solver("lbfgs", A, b, "squared", (0.0, 1e-3, False))
    solver.advance(2 * 14)
    x = np.linalg.solve(A.T @ A / 50 + 1e-3 * np.eye(8), A.T @ b / 50)
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", [{"l1": 0.1}, {"l2": 0.1, "positive": True}])
def test_lbfgs_takes_l2_alone(kind):
    A, b, _ = make("squared")
    with pytest.raises(ValueError, match=r'solver="lbfgs" takes no penalty but l2; use solver='):
        ac.solve(ac.Problem(A, b, **kind), "lbfgs")


@pytest.mark.parametrize("loss", [*GAMMA, "squared_epsilon_insensitive"])
def test_row_kernels(loss):
    """Against the formulas of the reference, at joints and far out too."""
    rng = np.random.default_rng(9)
    z = np.concatenate([3.0 * rng.standard_normal(300), [0.0, 1.0, -1.0, 700.0, -700.0]])
    b = np.where(rng.random(z.size) < 0.5, 1.0, -1.0)
    share, new, c = rng.random(z.size), z + rng.standard_normal(z.size), 0.3
    kind = ac.losses.get_loss(loss)
    code = kind.code, *kind.constants
    out = np.empty_like(z)
    row_kernels.slopes(*code, z, c, b, out)
    slope = reference.loss_slope(loss, z + c, b)
    np.testing.assert_allclose(out, slope, rtol=1e-13, atol=1e-300)
    excess, bend, value = row_kernels.model_error(*code, z, c, new, -c, b, share)
    before, after = (reference.loss_value(loss, v, b) for v in (z + c, new - c))
    assert value == pytest.approx(np.sum(share * before), rel=1e-12)
    assert excess == pytest.approx(np.sum(share * (after - before - slope * (new - z))), rel=1e-9)
    change = reference.loss_slope(loss, new - c, b) - slope
    assert bend == pytest.approx(0.5 * np.sum(share * change * (new - z)), rel=1e-12)


@LOSSES
def test_best_intercept(loss):
    A, b, w = make(loss, seed=8)
    solver = make_solver("afg", A, b, loss, PENALTIES["l2"], w=w, intercept=True)
    z = 3.0 * A.sum(axis=1)
    for near in (0.0, 5.0, -1e3):
        c = solver._best_intercept(z, near)
        assert abs(np.mean(w * reference.loss_slope(loss, z + c, b))) < 1e-14
    solver = make_solver("afg", A, b, loss, PENALTIES["l2"])
    assert solver._best_intercept(z, 0.0) == 0.0


@pytest.mark.parametrize("name", ["asdca", "sag", "afg", "lbfgs", "pdhg"])
def test_hinge_is_refused(name):
    A, b, _ = make("smooth_hinge")
    with pytest.raises(ValueError, match=f'solver="{name}" needs a smooth loss'):
        ac.solve(ac.Problem(A, b, "hinge", l2=0.1), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["asdca", "sag", "afg", "lbfgs", "pdhg"])
def test_float32(name):
    A, b, _ = make("logistic", seed=2)
    for storage in (np.asarray, sparse.csr_matrix):
        problem = ac.Problem(storage(A.astype(np.float32)), b, "logistic", l2=0.003)
        assert ac.solve(problem, name, tol=1e-5, max_passes=2000).converged
