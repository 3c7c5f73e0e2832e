"""certify: the optima of other libraries are proved to be optimal, other points to be as bad as
they are, and every proof is checked again by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, QuantileRegressor, Ridge
from sklearn.svm import SVC, SVR, LinearSVC

import adacoord as ac
from adacoord import losses as ls

N, D = 200, 10


@pytest.fixture(scope="module")
def heart():
    """Like the heart data: 200 rows, 10 columns of different scales, classes that overlap."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, D)) * np.linspace(0.5, 2.0, D)
    z = A @ rng.standard_normal(D) / 2
    b = np.where(z + 1.5 * rng.standard_normal(N) + 0.5 > 0, 1.0, -1.0)
    return A, b, z + rng.standard_normal(N) + 3.0


def tweedie_conjugate(v, b):
    """sup_z v z - 2 b e^(-z/2) - 2 e^(z/2), at e^(z/2) = (v + sqrt(v^2 + 4b))/2."""
    root = np.sqrt(v * v + 4 * b)
    e = np.where(v >= 0, (v + root) / 2, 2 * b / np.maximum(root - v, 1e-300))
    e = np.maximum(e, 1e-300)
    return 2 * v * np.log(e) - 2 * b / e - 2 * e


def xlogx(t):
    return np.where(t > 0, t * np.log(np.maximum(t, 1e-300)), 0.0)


# phi and phi* of the losses used here, and whether y is in the domain of phi*
BY_HAND = {
    "squared": (lambda z, b: (z - b) ** 2 / 2, lambda y, b: y * y / 2 + b * y, lambda y, b: True),
    "hinge": (
        lambda z, b: np.maximum(0, 1 - b * z),
        lambda y, b: b * y,
        lambda y, b: (-b * y >= 0) & (-b * y <= 1),
    ),
    "squared_hinge": (
        lambda z, b: np.maximum(0, 1 - b * z) ** 2,
        lambda y, b: b * y + y * y / 4,
        lambda y, b: b * y <= 0,
    ),
    "logistic": (
        lambda z, b: np.logaddexp(0, -b * z),
        lambda y, b: xlogx(-b * y) + xlogx(1 + b * y),
        lambda y, b: (-b * y >= 0) & (-b * y <= 1),
    ),
    "smooth_hinge": (
        lambda z, b: np.where(b * z > 0, np.maximum(0, 1 - b * z) ** 2 / 2, 0.5 - b * z),
        lambda y, b: b * y + y * y / 2,
        lambda y, b: (-b * y >= 0) & (-b * y <= 1),
    ),
    "huber": (
        lambda z, b: np.where(
            np.abs(z - b) < 1.35, (z - b) ** 2 / 2, 1.35 * np.abs(z - b) - 1.35**2 / 2
        ),
        lambda y, b: y * y / 2 + b * y,
        lambda y, b: np.abs(y) <= 1.35,
    ),
    "squared_epsilon_insensitive": (
        lambda z, b: np.maximum(0, np.abs(z - b) - 0.1) ** 2,
        lambda y, b: b * y + 0.1 * np.abs(y) + y * y / 4,
        lambda y, b: True,
    ),
    "poisson": (
        lambda z, b: np.exp(z) - b * z,
        lambda y, b: xlogx(y + b) - (y + b),
        lambda y, b: y >= -b,
    ),
    "gamma": (
        lambda z, b: z + b * np.exp(-z),
        lambda y, b: xlogx(1 - y) - (1 - y) * (1 + np.log(b)),
        lambda y, b: y <= 1,
    ),
    "tweedie": (  # of the power 3/2, whose slope is a quadratic in e^(z/2)
        lambda z, b: 2 * b * np.exp(-z / 2) + 2 * np.exp(z / 2),
        lambda y, b: tweedie_conjugate(y, b),
        lambda y, b: (b > 0) | (y >= 0),
    ),
    "log_cosh": (
        lambda z, b: np.logaddexp(z - b, b - z) - math.log(2),
        lambda y, b: b * y + (xlogx(1 + y) + xlogx(1 - y)) / 2,
        lambda y, b: np.abs(y) <= 1,
    ),
    "quantile": (
        lambda z, b: np.maximum(0.3 * (b - z), 0.7 * (z - b)),
        lambda y, b: b * y,
        lambda y, b: (y >= -0.3) & (y <= 0.7),
    ),
    **{
        f"tube {e}": (
            lambda z, b, e=e: np.maximum(0, np.abs(z - b) - e),
            lambda y, b, e=e: b * y + e * np.abs(y),
            lambda y, b: np.abs(y) <= 1,
        )
        for e in (0.0, 0.1, 1.0)
    },
}


def proved(
    name,
    A,
    b,
    loss=None,
    x=None,
    c=0.0,
    effort=10,
    *,
    l1=0.0,
    l2=0.0,
    w=None,
    intercept=False,
    positive=False,
):
    """certify, every number of it recomputed by hand."""
    problem = ac.Problem(
        A, b, loss or name, l1, l2, sample_weight=w, intercept=intercept, positive=positive
    )
    x_before = np.array(x)
    proof = ac.certify(problem, x, c, effort=effort)
    assert np.array_equal(x, x_before)
    again = ac.certify(problem, x, c, effort=effort)
    assert again.dual == proof.dual and np.array_equal(again.y, proof.y)
    A = A.toarray() if sparse.issparse(A) else A.astype(np.float64)
    w = np.ones(b.size) if w is None else w
    phi, conjugate, inside = BY_HAND[name]
    primal = np.mean(w * phi(A @ x + c, b)) + l1 * np.abs(x).sum() + l2 / 2 * x @ x
    y, u = proof.y, A.T @ (w * proof.y) / b.size
    assert np.all(inside(y, b) | (w == 0))
    assert not intercept or abs(w @ y) <= 1e-10 * (w @ np.abs(y) + 1e-300)
    excess = np.maximum((-u if positive else np.abs(u)) - l1, 0.0)
    assert l2 > 0 or excess.max() <= 1e-12 * l1
    dual = -np.mean(w * conjugate(y, b)) - (excess @ excess / (2 * l2) if l2 > 0 else 0.0)
    scale = max(abs(primal), abs(dual))
    assert proof.primal == pytest.approx(primal, rel=1e-10)
    assert proof.dual == pytest.approx(dual, rel=1e-9, abs=1e-11 * scale)
    assert proof.gap == pytest.approx(primal - dual, abs=1e-10 * scale) and proof.gap >= 0
    assert proof.relative_gap == pytest.approx(proof.gap / scale, rel=1e-9)
    assert f"{proof.gap:.3g}" in proof.note and "passes" in proof.note
    return proof


# --- kinked losses ------------------------------------------------------------------------------


def improves(prove, bound, efforts=(0, 10, 50, 200)):
    """More effort, a bound that is no looser; in the end a tight one."""
    proofs = [prove(effort) for effort in efforts]
    gaps = [proof.relative_gap for proof in proofs]
    assert all(b <= a + 1e-12 for a, b in pairwise(gaps)), gaps
    assert gaps[0] > gaps[-1] and gaps[-1] <= bound, gaps
    return proofs[-1]


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_linear_svc(heart, C):
    # with tol=1e-12 liblinear's shrinking stops up to 1e-3 above the optimum, as certify shows
    A, b, _ = heart
    x = (
        LinearSVC(
            loss="hinge",
            C=C,
            fit_intercept=False,
            dual=True,
            tol=1e-8,
            max_iter=10**6,
            random_state=0,
        )
        .fit(A, b)
        .coef_[0]
    )
    improves(lambda effort: proved("hinge", A, b, x=x, l2=1 / (N * C), effort=effort), 1e-7)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_svc_with_intercept(heart, C, weighted):
    A, b, _ = heart
    w = np.arange(N) % 4 * 1.0 if weighted else None
    svc = SVC(kernel="linear", C=C, tol=1e-10).fit(A, b, sample_weight=w)
    improves(
        lambda effort: proved(
            "hinge",
            A,
            b,
            x=svc.coef_[0],
            c=float(svc.intercept_[0]),
            w=w,
            intercept=True,
            l2=1 / (N * C),
            effort=effort,
        ),
        1e-5,
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_svr(heart, C, epsilon):
    """The kinks are at the edges of the tube, not in its middle."""
    A, _, t = heart
    svr = SVR(kernel="linear", C=C, epsilon=epsilon, tol=1e-10).fit(A, t)
    improves(
        lambda effort: proved(
            f"tube {epsilon}",
            A,
            t,
            ls.EpsilonInsensitive(epsilon),
            svr.coef_[0],
            float(svr.intercept_[0]),
            effort,
            l2=1 / (N * C),
            intercept=True,
        ),
        1e-4,
    )


def test_quantile_regressor(heart):
    A, _, t = heart
    fit = QuantileRegressor(quantile=0.3, alpha=0.05).fit(A, t)
    improves(
        lambda effort: proved(
            "quantile",
            A,
            t,
            ls.Quantile(0.3),
            fit.coef_,
            float(fit.intercept_),
            effort,
            l1=0.05,
            intercept=True,
        ),
        1e-3,
    )


def targets(name, t):
    """Counts, positive numbers or numbers, as the loss takes them."""
    return {"count": np.floor(np.abs(t)), "positive": np.exp(t / 9)}.get(ls.LOSSES[name].task, t)


# --- smooth losses: tight without any effort ----------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("name", [name for name, cls in ls.LOSSES.items() if cls().differentiable])
def test_smooth_losses_need_no_effort(heart, name, weighted, intercept):
    A, b, t = heart
    if ls.LOSSES[name].task != "classification":
        b = targets(name, t)
    w = np.arange(N) % 4 * 0.7 if weighted else np.ones(N)
    phi, l2 = BY_HAND[name][0], 0.05
    scale = 0.3 if ls.LOSSES[name].log_link else 1.0

    def primal(v):
        return np.mean(w * phi(scale * A @ v[:D] + v[D] * intercept, b)) + l2 / 2 * v[:D] @ v[:D]

    v = optimize.minimize(primal, np.zeros(D + 1), method="BFGS", options={"gtol": 1e-7}).x
    v = optimize.minimize(primal, v, method="Powell", options={"ftol": 1e-15, "xtol": 1e-10}).x
    proof = proved(
        name,
        scale * A,
        b,
        x=v[:D],
        c=float(v[D] * intercept),
        effort=0,
        l2=l2,
        w=w if weighted else None,
        intercept=intercept,
    )
    assert proof.relative_gap <= 1e-7


def test_logistic_regression_and_ridge(heart):
    A, b, t = heart
    fit = LogisticRegression(C=0.5, solver="newton-cholesky", tol=1e-12).fit(A, b)
    proof = proved(
        "logistic",
        A,
        b,
        x=fit.coef_[0],
        c=float(fit.intercept_[0]),
        effort=0,
        l2=1 / (N * 0.5),
        intercept=True,
    )
    assert proof.relative_gap <= 1e-10
    fit = Ridge(alpha=3.0).fit(A, t)
    proof = proved(
        "squared", A, t, x=fit.coef_, c=float(fit.intercept_), effort=0, l2=3.0 / N, intercept=True
    )
    assert proof.relative_gap <= 1e-10


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("effort", [0, 10])
def test_lasso(heart, intercept, effort):
    A, _, t = heart
    options = {"tol": 1e-12, "max_iter": 10**6, "fit_intercept": intercept}
    w = 1.0 + np.arange(N) % 3
    for fit, weights, more in (
        (Lasso(alpha=0.3, **options), None, {"l1": 0.3}),
        (Lasso(alpha=0.3, **options), w * (N / w.sum()), {"l1": 0.3}),
        (Lasso(alpha=0.1, positive=True, **options), None, {"l1": 0.1, "positive": True}),
        (ElasticNet(alpha=0.4, l1_ratio=0.5, **options), None, {"l1": 0.2, "l2": 0.2}),
    ):
        fit.fit(A, t, sample_weight=weights)
        proof = proved(
            "squared",
            A,
            t,
            x=fit.coef_,
            c=float(fit.intercept_),
            effort=effort,
            w=weights,
            intercept=intercept,
            **more,
        )
        assert proof.relative_gap <= 1e-6


# --- points that are not optimal ----------------------------------------------------------------


@pytest.mark.parametrize("penalty", [{"l2": 0.05}, {"l1": 0.05}, {"l1": 0.02, "l2": 0.05}])
@pytest.mark.parametrize("name", sorted(ls.LOSSES))
def test_a_bad_point_gets_a_large_and_valid_gap(heart, name, penalty):
    A, b, t = heart
    A = 0.2 * A
    if ls.LOSSES[name].task != "classification":
        b = targets(name, t)
    problem = ac.Problem(A, b, name, **penalty)
    for x in (np.full(D, 3.0), -np.arange(D) * 1.0):
        bad = ac.certify(problem, x)
        better = min(problem.primal(np.zeros(D)), problem.primal(0.1 * x))
        assert bad.gap >= problem.primal(x) - better > 0
        assert np.isfinite(bad.gap) and bad.relative_gap > 0.1
        assert bad.dual <= better


def test_points_outside_the_domain_get_inf():
    problem = ac.Problem(np.array([[1.0], [2.0]]), np.array([1.0, 3.0]), "poisson", l2=0.1)
    proof = ac.certify(problem, np.array([800.0]))  # exp(800) is inf
    assert proof.primal == math.inf and proof.gap == math.inf and "infinite" in proof.note
    positive = ac.Problem(np.eye(2), np.ones(2), l2=0.1, positive=True)
    proof = ac.certify(positive, np.array([-1.0, 0.0]))
    assert proof.gap == math.inf and np.isfinite(proof.dual) and "infinite" in proof.note


def test_no_penalty_no_proof(heart):
    A, b, _ = heart
    proof = ac.certify(ac.Problem(A, b, "logistic"), np.zeros(D))
    assert math.isnan(proof.gap) and math.isnan(proof.relative_gap) and proof.dual == -math.inf
    assert proof.primal == pytest.approx(math.log(2)) and "nothing is certified" in proof.note


# --- data of every form -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hinge", "logistic"])
def test_forms_agree(heart, name):
    A, b, _ = heart
    A = np.where(np.abs(A) > 0.5, A, 0.0)
    A[:5] = 0.0
    x = np.linspace(-0.2, 0.2, D)
    first = proved(name, A, b, x=x, l2=0.1, effort=20)
    for form in (sparse.csr_matrix, sparse.csc_array, np.asfortranarray, list):
        other = ac.certify(ac.Problem(form(A), b, name, l2=0.1), x, effort=20)
        assert other.dual == pytest.approx(first.dual, rel=1e-9)
    single = proved(name, A.astype(np.float32), b, x=x, l2=0.1, effort=20)
    assert single.dual == pytest.approx(first.dual, rel=1e-5)


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_nothing_to_learn(intercept):
    """All-zero data: the best x is 0, and that is proved at once."""
    b = np.array([1.0, -1.0, 1.0, -1.0])
    for name in ("hinge", "logistic", "squared", "absolute"):
        problem = ac.Problem(np.zeros((4, 3)), b, name, l2=1.0, intercept=intercept)
        assert ac.certify(problem, np.zeros(3), effort=20).relative_gap <= 1e-9
        assert ac.certify(problem, np.ones(3), effort=20).gap == pytest.approx(1.5, abs=1e-9)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"effort": -1}, "effort=-1: .*zero or more"),
        ({"effort": 1.5}, "effort=1.5: .*whole number"),
        ({"effort": True}, "effort=True"),
        ({"x": np.zeros(3)}, r"x has shape \(3,\).*10 columns"),
        ({"x": np.full(D, np.nan)}, "finite"),
        ({"x": np.full(D, np.inf)}, "finite"),
        ({"intercept": np.nan}, "finite"),
        ({"intercept": 2.0}, "intercept=2.0: .*intercept=True"),
        ({"intercept": "a"}, "intercept='a'"),
        ({"intercept": None}, "intercept=None"),
        ({"x": ["a"] * D}, "x has dtype"),
        ({"problem": "spdc"}, "problem=str: .*adacoord.Problem"),
    ],
)
def test_errors(heart, arguments, message):
    A, b, _ = heart
    call = {"problem": ac.Problem(A, b, "hinge", l2=0.1), "x": np.zeros(D)} | arguments
    with pytest.raises(ValueError, match=message):
        ac.certify(**call)


@pytest.mark.parametrize(("l2", "away", "true"), [(1e-12, 1e-5, 2.4e-9), (1e-15, 1e-3, 3e-5)])
def test_separable_logistic_with_hardly_a_penalty(l2, away, true):
    """1 - q must not lose a small q: the certificate would be better than the truth."""
    problem = ac.Problem([[1.0], [-1.0]], [1, -1], "logistic", l2=l2)
    low, high = 0.0, 100.0
    for _ in range(200):  # x* solves l2 x = sigmoid(-x)
        middle = 0.5 * (low + high)
        low, high = (middle, high) if l2 * middle < 1 / (1 + np.exp(middle)) else (low, middle)
    x = np.array([low * (1 + away)])
    certificate = ac.certify(problem, x)
    suboptimality = problem.primal(x) - problem.primal(np.array([low]))
    assert certificate.gap >= suboptimality * (1 - 1e-6)
    assert certificate.relative_gap >= 0.5 * true
