"""The multinomial loss and its problems, against textbook formulas and independent optima."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

import adacoord as ac
from adacoord import losses as ls
from adacoord.data.matrix import as_matrix
from adacoord.kernels.codes import MULTINOMIAL

LOSS = ls.Multinomial()
SETTINGS = settings(max_examples=60, deadline=None)


def softmax(z):
    e = [math.exp(v - max(z)) for v in z]
    return [v / math.fsum(e) for v in e]


def phi(z, b):
    return max(z) + math.log(math.fsum(math.exp(v - max(z)) for v in z)) - z[b]


def entropy(v, b):
    p = [v[k] + (k == b) for k in range(len(v))]
    return math.fsum(q * math.log(q) for q in p if q > 0.0)


@st.composite
def rows(draw, size=1e3):
    """(z, b, y): a prediction, its class, a dual point of the domain (its corners included)."""
    K = draw(st.integers(2, 7))
    z = np.array(
        draw(
            st.lists(
                st.floats(-size, size) | st.floats(-3, 3) | st.just(0.0), min_size=K, max_size=K
            )
        )
    )
    b = draw(st.integers(0, K - 1))
    p = np.array(
        draw(
            st.lists(
                st.floats(0.0, 1.0) | st.sampled_from([0.0, 1e-300, 1e-12, 1e3]),
                min_size=K,
                max_size=K,
            )
        )
    )
    p = p / p.sum() if p.sum() > 0.0 else np.eye(K)[b]
    y = p.copy()
    y[b] = -min(p.sum() - p[b], 1.0)
    return z, b, y


def one(method, z, b, *rest):
    return method(np.array([z], dtype=float), np.array([b]), *rest)[0]


# ---- the loss -------------------------------------------------------------------------------


def test_registered_and_plain():
    assert ls.get_loss("multinomial") == LOSS and LOSS.blocks and LOSS.task == "multiclass"
    assert LOSS.gamma == 2.0 and LOSS.code == MULTINOMIAL == 4
    assert not any(loss().blocks for name, loss in ls.LOSSES.items() if name != "multinomial")
    assert pickle.loads(pickle.dumps(LOSS)) == LOSS
    with pytest.raises(ValueError, match="multinomial"):
        ls.get_loss("softmax")


@SETTINGS
@given(rows())
@example((np.array([800.0, -800.0, 0.0]), 1, np.zeros(3)))
def test_textbook(row):
    z, b, y = row
    assert one(LOSS.value, z, b) == pytest.approx(phi(z, b), rel=1e-13, abs=1e-13)
    want = np.array(softmax(z)) - np.eye(z.size)[b]
    np.testing.assert_allclose(one(LOSS.derivative, z, b), want, rtol=0, atol=1e-15)
    assert one(LOSS.conjugate, y, b) == pytest.approx(entropy(y, b), abs=1e-14)


def test_small_losses_keep_their_digits():
    z = np.array([[40.0, 0.0, -5.0]])
    want = math.exp(-40) + math.exp(-45)
    assert LOSS.value(z, np.array([0]))[0] == pytest.approx(want, rel=1e-14)
    assert LOSS.derivative(z, np.array([0]))[0, 0] == pytest.approx(-want, rel=1e-14)
    v = np.array([[-1e-30, 1e-30, 0.0]])
    assert LOSS.conjugate(v, np.array([0]))[0] == pytest.approx(1e-30 * (math.log(1e-30) - 1))


def test_conjugate_is_infinite_outside():
    b = np.array([1])
    for v in ([0.5, -0.4, 0.0], [-0.1, 0.0, 0.1], [0.6, -1.1, 0.5], [0.0, 0.1, -0.1]):
        assert LOSS.conjugate(np.array([v]), b)[0] == np.inf
    lo, hi = LOSS.domain(np.array([1, 0, 2]))
    assert (lo == -np.eye(3)[[1, 0, 2]]).all() and (hi == lo + 1.0).all()
    assert not LOSS.start(np.array([1, 0, 2])).any()


@SETTINGS
@given(rows())
def test_fenchel_young(row):
    z, b, y = row
    both = one(LOSS.value, z, b) + one(LOSS.conjugate, y, b) - y @ z
    assert both >= -1e-12 * (1.0 + np.abs(z).max())
    g = one(LOSS.derivative, z, b)
    tight = one(LOSS.value, z, b) + one(LOSS.conjugate, g, b) - g @ z
    assert abs(tight) <= 1e-12 * (1.0 + np.abs(z).max())


@SETTINGS
@given(rows(5.0), st.integers(0, 2**32 - 1))
def test_smooth_with_gamma_two(row, seed):
    z, b, _ = row
    other = z + np.random.default_rng(seed).standard_normal(z.size)
    slopes = one(LOSS.derivative, z, b) - one(LOSS.derivative, other, b)
    assert np.linalg.norm(slopes) <= np.linalg.norm(z - other) / LOSS.gamma + 1e-12


# ---- the dual prox --------------------------------------------------------------------------


def reference_prox(z, b, y, s):
    """Bisection of the multiplier of sum p = 1, and of each p_k, in long double."""
    real = np.longdouble
    z, q, s = z.astype(real), y.astype(real), real(s)
    q[b] += 1
    top = np.argmax(z + q / s)

    def solve(nu):  # log p + p/s = c, p in (0, 1]
        c = z - nu + q / s
        low, high = np.full(z.size, real(-12000)), np.zeros(z.size, real)
        for _ in range(90):
            middle = (low + high) / 2
            below = middle + np.exp(middle) / s < c
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.exp(high)

    low, high = z[top] + (q[top] - 1) / s, z[top] + (q[top] - real(1) / z.size) / s + real(5)
    for _ in range(110):
        middle = (low + high) / 2
        if solve(middle).sum() > 1:
            low = middle
        else:
            high = middle
    p = solve(high)
    p[b] -= 1
    return p.astype(float)


@settings(max_examples=30, deadline=None)
@given(rows(), st.floats(-8, 8))
@example((np.array([1e3, -1e3]), 1, np.array([0.0, 0.0])), -8.0)
@example((np.array([1e3, -1e3]), 1, np.array([0.0, 0.0])), 8.0)
@example((np.zeros(7), 0, np.zeros(7)), 8.0)
@example((np.zeros(3), 2, np.array([1.0, 0.0, -1.0])), -8.0)
def test_dual_prox_is_the_maximiser(row, exponent):
    z, b, y = row
    s = 10.0**exponent
    v = LOSS.dual_prox(z[None], np.array([b]), y[None], s)[0]
    assert np.isfinite(LOSS.conjugate(v[None], np.array([b])))[0]
    np.testing.assert_allclose(v, reference_prox(z, b, y, s), rtol=0, atol=1e-13)


def test_dual_prox_of_a_fixed_point():
    """y = phi'(z) is its own prox, for any s."""
    rng = np.random.default_rng(0)
    z, b = 3.0 * rng.standard_normal((500, 6)), rng.integers(6, size=500)
    y = LOSS.derivative(z, b)
    for s in (1e-8, 1e-3, 1.0, 1e3, 1e8):
        np.testing.assert_allclose(LOSS.dual_prox(z, b, y, s), y, rtol=0, atol=1e-14)


def test_dual_prox_with_many_classes_and_off_the_simplex():
    rng = np.random.default_rng(1)
    z, b = 5.0 * rng.standard_normal((20, 1000)), rng.integers(1000, size=20)
    y = LOSS.start(b) if b.max() == 999 else np.zeros((20, 1000))
    for s in (1e-6, 1.0, 1e6):
        for start in (y, y + 1e-3 * rng.standard_normal(y.shape)):
            v = LOSS.dual_prox(z, b, start, s)
            p = v.copy()
            p[np.arange(20), b] += 1.0
            assert p.min() >= 0.0 and np.abs(v.sum(axis=1)).max() <= 1e-13
            big = p > 1e-12
            big[np.arange(20), b] = False  # p_b is known to 1e-16 only, its logarithm to less
            q = start.copy()
            q[np.arange(20), b] += 1.0
            g = np.where(big, z - np.log(np.where(big, p, 1.0)) - (p - q) / s, np.nan)
            spread = np.nanmax(g, axis=1) - np.nanmin(g, axis=1)
            assert spread.max() <= 1e-11


# ---- problems -------------------------------------------------------------------------------


def make(n=40, d=6, K=3, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    b = np.argmax(A @ rng.standard_normal((d, K)) + rng.standard_normal((n, K)), axis=1)
    b[:K] = np.arange(K)
    return (A if density == 1.0 else sparse.csr_matrix(A)), b


def naive_primal(A, b, X, c, w, l1, l2):
    A = A.toarray() if sparse.issparse(A) else A
    total = sum(w[i] * phi(list(A[i] @ X + c), b[i]) for i in range(len(b)))
    return total / len(b) + l1 * np.abs(X).sum() + l2 / 2 * (X**2).sum()


def naive_dual(A, b, y, w, l1, l2):
    A = A.toarray() if sparse.issparse(A) else A
    u = A.T @ (w[:, None] * y) / len(b)
    excess = np.maximum(np.abs(u) - l1, 0.0)
    conjugate = (excess**2).sum() / (2 * l2) if l2 else 0.0
    return -sum(w[i] * entropy(y[i], b[i]) for i in range(len(b))) / len(b) - conjugate


def optimum(problem):
    """(X, c, P) from SciPy: L-BFGS-B on X = X+ - X-, both >= 0."""
    d, K = problem.x_shape
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    p = problem.penalty

    def split(v):
        return (v[: d * K] - v[d * K : 2 * d * K]).reshape(d, K), v[2 * d * K :]

    def f(v):
        X, c = split(v)
        z = problem.matrix.dot(X) + c
        m = z.max(axis=1, keepdims=True)
        e = np.exp(z - m)
        r = e / e.sum(axis=1, keepdims=True)
        value = w @ (np.log(e.sum(axis=1)) + m[:, 0] - z[np.arange(problem.n), problem.b])
        r[np.arange(problem.n), problem.b] -= 1.0
        r *= w[:, None]
        G = (problem.matrix.tdot(r) / problem.n + p.l2 * X).ravel()
        value = value / problem.n + p.l1 * v[: 2 * d * K].sum() + p.l2 / 2 * (X**2).sum()
        gc = r.sum(axis=0) / problem.n * problem.intercept
        return value, np.r_[G + p.l1, -G + p.l1, gc]

    bounds = [(0, None)] * (2 * d * K) + [(None, None)] * K
    best = optimize.minimize(
        f,
        np.zeros(2 * d * K + K),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 20000, "maxfun": 100000, "maxcor": 30},
    )
    X, c = split(best.x)
    return X, (c if problem.intercept else 0.0), best.fun


PENALTIES = {"l2": (0.0, 0.05), "l1": (0.02, 0.0), "l1+l2": (0.01, 0.05)}


@pytest.mark.parametrize("density", [1.0, 0.4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_values_and_gap(penalty, intercept, weighted, density):
    l1, l2 = PENALTIES[penalty]
    A, b = make(density=density)
    rng = np.random.default_rng(5)
    w = rng.exponential(1.0, b.size) if weighted else None
    if weighted:
        w[7] = 0.0
    ones = np.ones(b.size) if w is None else w
    problem = ac.Problem(A, b, "multinomial", l1, l2, intercept=intercept, sample_weight=w)
    assert problem.n_classes == 3 and problem.x_shape == (6, 3) and problem.y_shape == (40, 3)
    X, c, best = optimum(problem)
    assert problem.primal(X, c) == pytest.approx(naive_primal(A, b, X, c, ones, l1, l2), rel=1e-12)
    assert problem.primal(X, c) == pytest.approx(best, rel=1e-9)
    certificate = ac.certify(problem, X, c)
    assert certificate.relative_gap <= 1e-6
    # which is less what rounding may hide
    assert problem.dual(certificate.y) >= certificate.dual
    assert problem.dual(certificate.y) == pytest.approx(certificate.dual, rel=1e-10)
    for scale in (0.0, 0.1, 3.0):
        Z, cz = X + scale * rng.standard_normal(X.shape), c + scale * (c != 0.0)
        y = rng.standard_normal(problem.y_shape) * max(scale, 0.2)
        feasible, u = problem.feasible_dual(y)
        assert_feasible(problem, feasible)
        np.testing.assert_allclose(u, problem.average(feasible), rtol=0, atol=1e-15)
        want = naive_dual(A, b, feasible, ones, l1, l2)
        assert problem.dual(feasible) == pytest.approx(want, rel=1e-12, abs=1e-13)
        assert want <= best + 1e-9
        assert problem.gap(Z, y, cz) >= problem.primal(Z, cz) - best - 1e-9
        assert ac.certify(problem, Z, cz).gap >= problem.primal(Z, cz) - best - 1e-9


def assert_feasible(problem, y):
    """On the simplex, balanced, and |u| <= l1 where l2 = 0, to 1e-12."""
    p = y.copy()
    p[np.arange(problem.n), problem.b] += 1.0
    assert p.min() >= 0.0
    assert np.abs(y.sum(axis=1)).max() <= 1e-12
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    if problem.intercept:
        assert np.abs(w @ y).max() <= 1e-12 * w.sum()
    if problem.penalty.l2 == 0.0:
        assert np.abs(problem.average(y)).max() <= problem.penalty.l1 * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 6),
    st.booleans(),
    st.sampled_from([0.0, 1e-9, 0.1, 1.0, 1e6]),
)
def test_feasible_dual_is_feasible(seed, K, weighted, noise):
    rng = np.random.default_rng(seed)
    A, b = make(20, 3, K, seed)
    w = rng.exponential(1.0, 20) * (rng.random(20) < 0.8) + 1e-6 if weighted else None
    for l1, l2 in PENALTIES.values():
        problem = ac.Problem(A, b, "multinomial", l1, l2, intercept=True, sample_weight=w)
        y = LOSS.derivative(rng.standard_normal((20, K)), b)
        feasible, _ = problem.feasible_dual(y + noise * rng.standard_normal((20, K)))
        assert_feasible(problem, feasible)
        assert np.isfinite(problem.dual(feasible))


def test_feasible_dual_keeps_what_is_feasible():
    A, b = make()
    problem = ac.Problem(A, b, "multinomial", l2=0.1)
    y = LOSS.derivative(np.random.default_rng(0).standard_normal((40, 3)), b)
    np.testing.assert_allclose(problem.feasible_dual(y)[0], y, rtol=0, atol=1e-15)
    balanced = ac.Problem(A, b, "multinomial", l2=0.1, intercept=True)
    once, _ = balanced.feasible_dual(y)
    np.testing.assert_allclose(balanced.feasible_dual(once)[0], once, rtol=0, atol=1e-14)
    assert balanced.dual(y) == -np.inf


def test_two_classes_are_the_logistic_loss():
    """P_multinomial(X) with x = X_1 - X_0: the loss is equal, |X|^2 = |x|^2/2 at best."""
    A, b = make(K=2)
    rng = np.random.default_rng(0)
    X, c = rng.standard_normal((6, 2)), rng.standard_normal(2)
    two = ac.Problem(A, b, "multinomial", l2=1e-9, intercept=True)
    one_ = ac.Problem(A, 2.0 * b - 1.0, "logistic", l2=1e-9, intercept=True)
    x = X[:, 1] - X[:, 0]
    assert two.primal(X, c) - 5e-10 * (X**2).sum() == pytest.approx(
        one_.primal(x, c[1] - c[0]) - 5e-10 * (x**2).sum(), rel=1e-12
    )
    two = ac.Problem(A, b, "multinomial", l2=0.2)
    one_ = ac.Problem(A, 2.0 * b - 1.0, "logistic", l2=0.1)
    result = ac.solve(one_, "dcd", tol=1e-12)
    X = np.c_[-result.x, result.x] / 2
    assert two.primal(X) == pytest.approx(one_.primal(result.x), rel=1e-12)
    assert ac.certify(two, X).relative_gap <= 1e-10


def test_null_model():
    A, b = make(seed=3)
    w = np.random.default_rng(0).exponential(1.0, b.size)
    for weights in (None, w):
        for intercept in (False, True):
            problem = ac.Problem(
                A, b, "multinomial", l1=1.0, intercept=intercept, sample_weight=weights
            )
            mean = 1.0 if weights is None else w.mean()
            assert problem.null_value == pytest.approx(mean * math.log(3))
            top = problem.l1_max()
            shares = np.bincount(b, weights, 3)
            c = np.log(shares / shares.sum()) if intercept else 0.0
            for factor, zero in ((1.001, True), (0.9, False)):
                at = ac.Problem(
                    A, b, "multinomial", l1=factor * top, intercept=intercept, sample_weight=weights
                )
                gap = ac.certify(at, np.zeros((6, 3)), c).relative_gap
                assert (gap <= 1e-10) == zero


def test_zero_rows_take_their_best_value():
    A, b = make()
    A[[3, 8]] = 0.0
    problem = ac.Problem(A, b, "multinomial", l1=0.02)
    y, _ = problem.feasible_dual(np.zeros((40, 3)))
    np.testing.assert_allclose(y[[3, 8]], 1 / 3 - np.eye(3)[b[[3, 8]]], atol=1e-15)
    assert problem.active.size == 38


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [1.0, 0.3])
def test_products_with_matrices(density, dtype):
    rng = np.random.default_rng(0)
    for d in (1, 2, 3, 4, 5, 9):
        A, _ = make(17, d, density=density)
        A = A.astype(dtype)
        full = (A.toarray() if sparse.issparse(A) else A).astype(np.float64)
        matrix = as_matrix(A)
        for K in (1, 2, 5):
            X, V = rng.standard_normal((d, K)), rng.standard_normal((17, K))
            np.testing.assert_allclose(matrix.dot(X), full @ X, rtol=0, atol=1e-13)
            np.testing.assert_allclose(matrix.tdot(V), full.T @ V, rtol=0, atol=1e-13)
            np.testing.assert_allclose(matrix.dot(np.asfortranarray(X)), full @ X, atol=1e-13)


@pytest.mark.parametrize("intercept", [False, True])
def test_scikit_learn_optimum_is_certified(intercept):
    from sklearn.linear_model import LogisticRegression

    A, b = make(200, 8, 5, seed=1)
    l2 = 0.01
    model = LogisticRegression(
        C=1 / (200 * l2), tol=1e-10, fit_intercept=intercept, max_iter=10000
    ).fit(A, b)
    problem = ac.Problem(A, b, "multinomial", l2=l2, intercept=intercept)
    certificate = ac.certify(problem, model.coef_.T, model.intercept_)
    assert certificate.relative_gap <= 1e-6
    assert certificate.y.shape == (200, 5)


def test_errors_are_sentences():
    A, b = make()
    for codes, words in (
        (b - 1, "-1.*class codes"),
        (b + 0.5, "class codes"),
        (np.zeros(40), "single class"),
        (b + 1, "no row of class 0"),
        (np.where(b == 1, 4, b), "no row of class 1"),
    ):
        with pytest.raises(ValueError, match=words):
            ac.Problem(A, codes, "multinomial", l2=0.1)
    problem = ac.Problem(A, b.astype(float), "multinomial", l2=0.1, intercept=True)
    assert problem.b.dtype == np.int64
    with pytest.raises(ValueError, match=r"3 classes.*\(6, 3\)"):
        problem.primal(np.zeros(6))
    with pytest.raises(ValueError, match=r"3 classes.*\(40, 3\)"):
        problem.dual(np.zeros(40))
    with pytest.raises(ValueError, match=r"intercept.*\(3,\)"):
        problem.primal(np.zeros((6, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="finite"):
        problem.primal(np.zeros((6, 3)), [0.0, np.nan, 0.0])
    plain = ac.Problem(A, b, "multinomial", l2=0.1)
    with pytest.raises(ValueError, match="has none"):
        plain.primal(np.zeros((6, 3)), np.ones(3))
    assert plain.primal(np.zeros((6, 3)), np.zeros(3)) == pytest.approx(math.log(3))
    assert np.isnan(ac.Problem(A, b, "multinomial").gap(np.zeros((6, 3)), np.zeros((40, 3))))
