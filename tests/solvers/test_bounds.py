"""What theory promises: the formulas, written down naively, and runs that keep the promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adacoord as ac
from adacoord.solvers import expected_passes
from adacoord.solvers.bounds import THEOREMS
from adacoord.solvers.registry import SOLVERS

GAMMA = {"squared": 1.0, "smooth_hinge": 1.0, "logistic": 4.0}


def make(loss="squared", l1=0.0, l2=0.1, n=40, d=8, seed=0, storage="dense", **options):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * rng.exponential(1.0, (n, 1)) * (rng.random((n, d)) < 0.7)
    A[:, 0] += 0.5  # no row of zeros
    z = A @ rng.standard_normal(d) + rng.standard_normal(n)
    b = z if loss in ("squared", "absolute") else np.where(z > 0, 1.0, -1.0)
    if np.all(b == b[0]):  # a classifier needs both classes
        b[0] = -b[0]
    return ac.Problem(sparse.csr_matrix(A) if storage == "csr" else A, b, loss, l1, l2, **options)


def corollary4(problem, tol, m=1, rate=None, R=None):
    """Corollary 4, with the distances of Delta bounded by the gap at the start."""
    A, b, n = problem.matrix.dense, problem.b, problem.n
    lam, gamma = problem.penalty.l2, problem.loss.gamma
    R = np.linalg.norm(A, axis=1).max() if R is None else R
    tau = np.sqrt(m * gamma / (n * lam)) / (2 * R)
    sigma = np.sqrt(n * lam / (m * gamma)) / (2 * R)
    y = problem.loss.start(b)
    start = problem.primal(np.zeros(problem.d)) - problem.dual(y)
    primal = 1 + (1 / (2 * tau) + lam / 2) * (2 / lam)
    dual = n / m + ((1 / (4 * sigma) + gamma / 2) / m + 1 / (4 * m * sigma)) * (2 * n / gamma)
    slope = problem.loss.derivative(np.zeros(n), b)
    below = max(problem.dual(y), *(problem.dual(0.25**k * slope) for k in range(20)))
    inverse = n / m + 2 * R * np.sqrt(n / (m * lam * gamma)) if rate is None else 1 / rate
    kappa = np.linalg.norm(A, axis=1).max() ** 2 / (lam * gamma)
    logarithm = np.log((1 + kappa) * max(primal, dual) * start / (tol * below))
    return math.ceil(inverse * logarithm * m / n)


@pytest.mark.parametrize("loss", GAMMA)
@pytest.mark.parametrize("m", [1, 7, 40])
def test_corollary_4(loss, m):
    for l2 in (1.0, 1e-2, 1e-5):
        problem = make(loss, l2=l2)
        expected = corollary4(problem, 1e-4, m)
        assert expected_passes(problem, "spdc", 1e-4, batch_size=m) == expected
        assert expected_passes(problem, "spdc", 1e-4, batch_size=m, steps="theory") == expected


def test_corollaries_by_hand():
    """Numbers worked out on paper: four unit rows, orthogonal, l2 = 1/4, so R = gamma = 1.

    Squared loss, kappa = 4: tau = sigma = 1/2, the constant is 5 max(10, 16) = 80, the gap at the
    start 1/2, and D(phi'(0)/4) = 3/16 the scale: (1 + 2 sqrt(4/4)) ln(80/2/(3e-6/16)) = 57.5.
    m = 2: (2 + 4 sqrt 2)/2 ln(5 (4 + 4 sqrt 2)/2/(3e-6/16)) = 71.5.
    SDCA: (1 + 4/4) ln((4 + 4)/2/(3e-6/16)) = 33.8.
    Hinge, eps = 1e-2/2: delta = eps/2 for gamma, kappa = 1600, tau = 1/40, sigma = 10:
    (1 + 2 sqrt(400)) ln(1601 max(162, 168)/(eps/2)) = 758.2.
    """
    squared = ac.Problem(np.eye(4), np.ones(4), "squared", l2=0.25)
    assert expected_passes(squared, "spdc", 1e-6) == 58
    assert expected_passes(squared, "spdc", 1e-6, batch_size=2) == 72
    assert expected_passes(squared, "sdca", 1e-6) == 34
    hinge = ac.Problem(np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]), "hinge", l2=0.25)
    assert expected_passes(hinge, "spdc", 1e-2) == 759


def test_theorem_6_has_the_mean_norm():
    problem = make(l2=1e-4)
    norms, n, lam = np.sqrt(problem.matrix.squared_norms), 40, 1e-4
    alpha = 0.3
    radius = 1 / ((1 - alpha) / norms.max() + alpha / norms.mean())
    rate = 1 / (n / (1 - alpha) + radius * np.sqrt(n / lam))
    p = (1 - alpha) / n + alpha * norms / norms.sum()
    # the steps of (24), of which the shortest sigma_i counts
    shortest = radius * (n * p).max()
    expected = corollary4(problem, 1e-6, rate=rate, R=shortest)
    found = expected_passes(problem, "spdc", 1e-6, sampling="weighted", alpha=alpha)
    assert found == pytest.approx(expected, rel=0.05)  # tau has another R than sigma
    uniform = expected_passes(problem, "spdc", 1e-6)
    assert found < uniform
    assert expected_passes(problem, "spdc", 1e-6, sampling="weighted", alpha=0.0) == uniform


def test_theorems_of_ais():
    problem = make(l2=1e-3)
    R, n, lam, dbar = np.sqrt(problem.matrix.squared_norms.max()), 40, 1e-3, 0.8
    tau, sigma = (1 - dbar) / (2 * R) / np.sqrt(n * lam), (1 - dbar) / (2 * R) * np.sqrt(n * lam)
    mu = min(2 * lam * tau / (1 + 2 * lam * tau), 1 / (n / (2 * sigma) + n / (1 - dbar)))
    expected = corollary4(problem, 1e-6, rate=mu, R=R / (1 - dbar))
    found = expected_passes(problem, "spdc", 1e-6, sampling="adaptive")
    assert found == pytest.approx(expected, rel=0.05)
    second = expected_passes(problem, "spdc", 1e-6, sampling="adaptive", steps="theory2")
    assert second < found


def test_theorem_1_of_adaspdc_is_twice_as_fast_as_spdc_s():
    problem = make(l2=1e-6)
    assert expected_passes(problem, "adaspdc", 1e-6) == pytest.approx(
        expected_passes(problem, "spdc", 1e-6) / 2, rel=0.05
    )
    groups = np.arange(40) // 4
    assert expected_passes(problem, "adaspdc", 1e-6, groups=groups, batch_size=2) > 0


def test_sdca():
    problem = make("smooth_hinge", l2=1e-3)
    kappa = problem.matrix.squared_norms.max() / 1e-3
    # y^0 = 0 and D(y^0) = 0
    slope = problem.loss.derivative(np.zeros(40), problem.b)
    below = max(problem.dual(0.25**k * slope) for k in range(20))
    expected = (1 + kappa / 40) * np.log((40 + kappa) * problem.null_value / (1e-5 * below))
    assert expected_passes(problem, "sdca", 1e-5) == math.ceil(expected)


def test_corollary_5():
    """A kinked loss: the promise is that of the problem with delta = eps/C_1, like 1/sqrt(eps)."""
    problem = make("hinge", l2=0.1)
    slope = problem.loss.derivative(np.zeros(40), problem.b)
    below = max(problem.dual(0.25**k * slope) for k in range(20))
    eps = 1e-4 * below
    smooth = ac.Problem(
        problem.matrix.dense, problem.b, ac.losses.SmoothHinge(mu=eps / 2), 0.0, 0.1
    )
    slope = smooth.loss.derivative(np.zeros(40), problem.b)
    scale = max(smooth.dual(0.25**k * slope) for k in range(20))
    expected = expected_passes(smooth, "spdc", 0.5 * eps / scale)
    assert expected_passes(problem, "spdc", 1e-4) == pytest.approx(expected, abs=1)
    ratio = expected_passes(problem, "spdc", 1e-6) / expected_passes(problem, "spdc", 1e-4)
    assert 9.0 < ratio < 16.0
    lasso = make(l1=0.1, l2=0.0)
    ratio = expected_passes(lasso, "spdc", 1e-6) / expected_passes(lasso, "spdc", 1e-4)
    assert 9.0 < ratio < 16.0
    both = make("hinge", l1=0.1, l2=0.0)
    ratio = expected_passes(both, "spdc", 1e-6) / expected_passes(both, "spdc", 1e-4)
    assert 90.0 < ratio < 160.0


KEPT = [
    ("spdc", {"steps": "theory"}),
    ("spdc", {"steps": "practical"}),
    ("spdc", {"steps": "theory", "batch_size": 5}),
    ("spdc", {"steps": "theory", "sampling": "weighted"}),
    ("spdc", {"steps": "theory", "sampling": "lipschitz", "batch_size": 3}),
    ("spdc", {"steps": "theory", "sampling": "adaptive"}),
    ("spdc", {"steps": "theory2", "sampling": "adaptive"}),
    ("adaspdc", {}),
    ("adaspdc", {"batch_size": 4}),
    ("dspdc", {"steps": "theory"}),
    ("sdca", {}),
    ("asdca", {}),
    ("sag", {"step": 1 / 16}),
    ("afg", {}),
    ("pdhg", {}),
]


@pytest.mark.parametrize("name, options", KEPT)
@pytest.mark.parametrize("loss", GAMMA)
def test_runs_keep_the_promise(name, options, loss):
    for l1, l2, n, d in ((0.0, 0.3, 40, 8), (0.02, 0.1, 25, 50)):
        problem = make(loss, l1, l2, n, d, storage="csr")
        promised = expected_passes(problem, name, 1e-4, **options)
        result = ac.solve(problem, name, tol=1e-4, max_passes=promised, **options)
        assert result.converged and result.passes <= promised


@settings(max_examples=25, deadline=None)
@given(
    loss=st.sampled_from(list(GAMMA)),
    n=st.integers(5, 60),
    d=st.integers(1, 40),
    digits=st.floats(0.0, 3.0),
    l1=st.sampled_from([0.0, 0.01]),
    m=st.integers(1, 5),
    tol=st.sampled_from([1e-2, 1e-5]),
    seed=st.integers(0, 1000),
)
def test_spdc_keeps_its_promise_on_any_problem(loss, n, d, digits, l1, m, tol, seed):
    problem = make(loss, l1, 10.0**-digits, n, d, seed)
    promised = expected_passes(problem, "spdc", tol, batch_size=m)
    result = ac.solve(
        problem, "spdc", tol=tol, max_passes=max(promised, 1), steps="theory", batch_size=m
    )
    assert result.converged


@pytest.mark.parametrize("name", SOLVERS)
def test_no_promise_without_a_theorem(name):
    assert (expected_passes(make(), name, 1e-3) is None) == (name not in THEOREMS)
    with_intercept = expected_passes(make(intercept=True), name, 1e-3)
    assert (with_intercept is None) == (name != "afg")


def test_problems_that_no_theorem_covers():
    assert expected_passes(make("hinge"), "adaspdc", 1e-3) is None
    assert expected_passes(make(l1=0.1, l2=0.0), "afg", 1e-3) is None
    assert expected_passes(make("hinge"), "sdca", 1e-3) > 0
    counts = ac.Problem(make().matrix, np.arange(40.0) % 5, "poisson", l2=0.1)
    assert expected_passes(counts, "spdc", 1e-3) is None
    assert expected_passes(make(), "lbfgs", 1e-3) is None
    assert expected_passes(make(sample_weight=np.arange(40.0)), "spdc", 1e-3) > 0


@pytest.mark.parametrize("tol", [0.0, -1.0, math.inf, True, "little"])
def test_tol_is_a_positive_number(tol):
    with pytest.raises(ValueError, match=r"tol=.*positive number"):
        expected_passes(make(), "spdc", tol)


def test_what_solve_refuses_is_refused():
    with pytest.raises(ValueError, match="not a solver"):
        expected_passes(make(), "simplex")
    with pytest.raises(ValueError, match="batch_size=0"):
        expected_passes(make(), "spdc", batch_size=0)
    with pytest.raises(ValueError, match="no such option"):
        expected_passes(make(), "sdca", sampling="uniform")


def test_it_is_where_users_look():
    assert ac.solvers.expected_passes is expected_passes
