"""Poisson's, gamma's and Tweedie's losses: every shape to the optimum that SciPy finds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

import adacoord as ac
from adacoord.solvers.registry import SOLVERS

LOSSES = ("poisson", "gamma", "tweedie")
PENALTIES = {"l2": (0.0, 0.3), "l1": (0.1, 0.0), "both": (0.05, 0.1)}


def make(loss, n, d, seed=0, unit=1.0, density=0.6):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    x = rng.standard_normal(d) * (rng.random(d) < max(0.2, 3 / d))
    mu = unit * np.exp(np.clip(0.4 * (A @ x) + 0.5, -5, 5))
    if loss == "poisson":
        return A, rng.poisson(mu).astype(float)
    if loss == "gamma":
        return A, rng.gamma(2.0, mu / 2.0) + 1e-9 * unit
    return A, np.array([rng.gamma(2.0, m / 2.0, rng.poisson(1.0)).sum() for m in mu])


def pose(loss, n, d, penalty="l2", storage="dense", intercept=True, weighted=False, **how):
    """A problem whose penalty is a share of the l1 that leaves x = 0."""
    A, b = make(loss, n, d, **how)
    w = np.random.default_rng(7).integers(0, 3, n) * 1.0 if weighted else None
    X = sparse.csr_matrix(A) if storage == "csr" else A
    problem = ac.Problem(X, b, loss, l1=1.0, intercept=intercept, sample_weight=w)
    l1, l2 = (share * problem.l1_max() for share in PENALTIES[penalty])
    return problem.with_penalty(l1, l2), A, b, (np.ones(n) if w is None else w), (l1, l2, False)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", [(80, 6), (25, 40)])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_optimum_of_scipy(loss, penalty, shape, storage, intercept):
    problem, A, b, w, g = pose(loss, *shape, penalty, storage, intercept, weighted=True)
    best, _, _ = reference.smooth_optimum(A, b, loss, g, w, intercept)
    result = ac.solve(problem, tol=1e-10)
    assert result.converged
    # SciPy may fall short of the optimum; the certificate says by how much ours can
    assert result.primal <= best + 1e-8 * (1.0 + abs(best))
    assert result.dual <= best + 1e-12 * (1.0 + abs(best))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_solver_takes_it_or_says_who_does(loss, solver, penalty):
    problem, *_ = pose(loss, 60, 8, penalty)
    best = ac.solve(problem, tol=1e-12)
    try:
        result = ac.solve(problem, solver, tol=1e-5, max_passes=20_000)
    except ValueError as error:
        assert 'solver="apdc"' in str(error), error
        assert solver not in ("acf", "newton", "cd") or (penalty != "l2" and solver == "newton")
        return
    assert result.gap >= result.primal - best.primal - 1e-12 * abs(best.primal)
    assert result.converged, (result.solver, result.relative_gap)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", [(6000, 60), (300, 2000)])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("unit", [1e-5, 1.0, 1e6])
def test_auto_on_data_that_are_not_small(loss, penalty, shape, storage, unit):
    """Also where the first step, from exp(0) = 1, would be one of 10^6 in the exponent."""
    for intercept in (False, True):
        problem, *_ = pose(
            loss, *shape, penalty, storage, intercept, weighted=True, unit=unit, density=0.1
        )
        # without an intercept losses of 10^6 are left, whose rounding is more than 1e-8
        result = ac.solve(problem, tol=1e-8 if intercept or unit <= 1.0 else 1e-6)
        assert result.converged and np.isfinite(result.x).all()


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_gap_is_never_less_than_the_distance(loss, data):
    """gap >= P - P* at any x, c and y, with P* from a run to the last digit."""
    n, d = data.draw(st.integers(2, 12)), data.draw(st.integers(1, 6))
    penalty = data.draw(st.sampled_from(sorted(PENALTIES)))
    seed, intercept = data.draw(st.integers(0, 10**6)), data.draw(st.booleans())
    A, b = make(loss, n, d, seed)
    b[0] += 1.0  # not all zeros, for which c = -inf is best
    rng = np.random.default_rng(seed + 1)
    l1, l2 = PENALTIES[penalty]
    power = {"loss": ac.losses.Tweedie(data.draw(st.floats(1.05, 1.95)))}
    chosen = power["loss"] if loss == "tweedie" else loss
    problem = ac.Problem(A, b, chosen, l1, l2, intercept=intercept)
    with warnings.catch_warnings():  # some end in rounding, near enough
        warnings.simplefilter("ignore", ac.exceptions.ConvergenceWarning)
        best = ac.solve(problem, tol=1e-11, max_passes=20_000)
    assert best.relative_gap <= 1e-9
    size = 10.0 ** data.draw(st.floats(-3, 0.5))
    x, c = size * rng.standard_normal(d), float(size * rng.standard_normal() * intercept)
    y = problem.loss.derivative(problem.predict(x, c), b) + size * rng.standard_normal(n)
    for point in (y, np.zeros(n), best.y + 1e-3 * size * rng.standard_normal(n)):
        gap = problem.gap(x, point, c)
        assert gap >= problem.primal(x, c) - best.primal - 1e-12 * (1 + abs(best.primal))


def textbook(loss, z, v, b):
    """phi(z) and phi*(v) in long double; Tweedie's of the power 3/2."""
    entropy = np.where(v > 0, v, 1)
    if loss == "poisson":
        m = np.where(v + b > 0, v + b, 1)
        return np.exp(z) - b * z, (v + b) * np.log(m) - (v + b)
    if loss == "gamma":
        m = np.where(v < 1, 1 - v, 1)
        return z + b * np.exp(-z), (1 - v) * (np.log(m) - 1 - np.log(b))
    root = np.sqrt(v * v + 4 * b)
    e = np.where(v >= 0, (v + root) / 2, 2 * b / (root - np.minimum(v, 0) + (b == 0)))
    e = np.where(e > 0, e, 1)
    conjugate = np.where(
        b > 0, 2 * v * np.log(e) - 2 * b / e - 2 * e, 2 * v * (np.log(entropy) - 1)
    )
    return 2 * b * np.exp(-z / 2) + 2 * np.exp(z / 2), conjugate


@pytest.mark.filterwarnings("ignore::adacoord.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(40))
def test_rounding_hides_nothing(loss, seed):
    """At the last digit, targets in units of 1e-8 to 1e8 and features far from 0: P - D in long
    double is no more than what is certified."""
    rng, n, real = np.random.default_rng(seed), 30, np.longdouble
    A = rng.standard_normal((n, 4)) + (10 ** rng.uniform(0, 5) if seed % 2 else 0.0)
    unit = 10 ** rng.uniform(-8, 8)
    b = rng.gamma(2.0, 1.0, n) * unit
    b[rng.random(n) < (0.0 if loss == "gamma" else 0.3)] = 0.0
    scale = {"gamma": 1.0, "poisson": unit, "tweedie": unit**0.5}[loss]
    l2 = scale * 10 ** rng.uniform(-6, 0)
    problem = ac.Problem(A, b, loss, l2=l2)
    result = ac.solve(problem, tol=1e-15, max_passes=100)
    primal, bound = problem.judge(result.x, result.y, 0.0)
    y, _ = problem.feasible_dual(result.y)
    x, y, rows, targets = (v.astype(real) for v in (result.x, y, A, b))
    values, conjugates = textbook(loss, rows @ x, y, targets)
    u = rows.T @ y / n
    exact = np.mean(values) + np.mean(conjugates) + l2 / real(2) * (x @ x) + u @ u / (2 * real(l2))
    assert primal - bound >= exact


@pytest.mark.parametrize("loss", LOSSES)
def test_a_run_is_the_same_in_pieces(loss):
    problem, *_ = pose(loss, 400, 30, "both")
    for name in ("acf", "cd"):
        entry = SOLVERS[name].variant(problem)
        whole, parts = (
            entry.load()(problem, np.random.Generator(np.random.PCG64(3))) for _ in range(2)
        )
        whole.advance(5)
        parts.advance(2)
        other = entry.load()(problem, np.random.Generator(np.random.PCG64(4)))
        other.restore(parts.state())
        other.advance(3)
        np.testing.assert_array_equal(whole.x, other.x)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_intercept_is_the_logarithm_of_the_mean(loss):
    problem, _, b, w, _ = pose(loss, 50, 3, weighted=True)
    assert problem.null_intercept == pytest.approx(np.log(np.average(b, weights=w)))
    found = minimize(lambda c: problem.primal(np.zeros(3), float(c[0])), [0.0], tol=1e-12)
    assert problem.primal(np.zeros(3), problem.null_intercept) <= found.fun + 1e-12


def test_counts_that_are_all_zero():
    """The best intercept is -inf; what is certified is certified all the same."""
    problem = ac.Problem(np.eye(4), np.zeros(4), "poisson", l2=0.1)
    assert ac.solve(problem, tol=1e-10).converged


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_gamma_refuses_targets_that_are_not_positive(value):
    with pytest.raises(
        ValueError, match=r'^b has the value .*: loss="gamma" takes targets of more'
    ):
        ac.Problem(np.eye(2), np.array([1.0, value]), "gamma", l2=0.1)


def test_tweedie_refuses_negative_targets():
    with pytest.raises(ValueError, match=r'^b has the value -1: loss="tweedie" takes'):
        ac.Problem(np.eye(2), np.array([1.0, -1.0]), "tweedie", l2=0.1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["l1", "both"])
def test_blocks_of_rows(loss, penalty):
    problem, A, b, _, (l1, l2, _) = pose(loss, 400, 12, penalty)
    blocks = [(A[i : i + 100], b[i : i + 100]) for i in range(0, 400, 100)]
    other = ac.Problem(blocks, loss=loss, l1=l1, l2=l2, intercept=True)
    one, two = ac.solve(problem, tol=1e-9), ac.solve(other, tol=1e-9)
    assert two.converged and two.primal == pytest.approx(one.primal, rel=1e-8)
