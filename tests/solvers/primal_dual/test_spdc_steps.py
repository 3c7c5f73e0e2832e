"""Step sizes against numbers worked out by hand from the paper's formulas."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import adacoord as ac
from adacoord.sampling.batches import inclusion_probabilities
from adacoord.sampling.single import norm_mixture
from adacoord.solvers.primal_dual.spdc import SPDC
from adacoord.solvers.primal_dual.spdc_steps import (
    icml_steps,
    optimal_alpha,
    practical_steps,
    uniform_steps,
    weighted_steps,
)

N, LAM, GAMMA = 100, 0.01, 1.0
EQUAL = np.full(N, 2.0)  # R = 2, kappa = R^2/(lambda gamma) = 400
UNEQUAL = np.r_[np.full(25, 2.0), np.ones(75)]  # R = 2, Rbar = (25*2 + 75)/100 = 1.25

NORMS = st.lists(st.floats(0.05, 20.0), min_size=2, max_size=40).map(np.array)
CURVATURE = st.floats(1e-6, 10.0)


def test_equation_12_one_row_is_table_2_with_m_1():
    # n lambda = 100 * .01 = 1, so tau = sqrt(1/1)/(2*2) = 1/4 = sigma;
    # theta = 1 - 1/(100 + 2*2*sqrt(100/.01)) = 1 - 1/(100 + 4*100) = 1 - 1/500
    s = uniform_steps(EQUAL, 1, LAM, GAMMA)
    assert s.tau == pytest.approx(0.25, rel=1e-14)
    assert s.sigma.shape == (N,)
    np.testing.assert_allclose(s.sigma, 0.25, rtol=1e-14)
    assert 1 / s.rate == pytest.approx(500.0, rel=1e-11)


def test_equation_12_batches_of_four():
    # n/m = 25; tau = sqrt(1/(25*.01))/4 = 2/4, sigma = sqrt(25*.01)/4 = .5/4,
    # theta = 1 - 1/(25 + 4*sqrt(25/.01)) = 1 - 1/(25 + 4*50) = 1 - 1/225
    s = uniform_steps(EQUAL, 4, LAM, GAMMA)
    assert s.tau == pytest.approx(0.5, rel=1e-14)
    np.testing.assert_allclose(s.sigma, 0.125, rtol=1e-14)
    assert 1 / s.rate == pytest.approx(225.0, rel=1e-11)


def test_table_2_all_rows():
    # m = n: tau = sqrt(gamma/lambda)/(2R) = 10/4, sigma = sqrt(lambda/gamma)/(2R) = .1/4,
    # theta = 1 - 1/(1 + 2R/sqrt(lambda gamma)) = 1 - 1/(1 + 4/.1) = 1 - 1/41
    s = uniform_steps(EQUAL, N, LAM, GAMMA)
    assert s.tau == pytest.approx(2.5, rel=1e-14)
    np.testing.assert_allclose(s.sigma, 0.025, rtol=1e-14)
    assert 1 / s.rate == pytest.approx(41.0, rel=1e-11)
    # and the batch complexities of the table: passes per e-fold
    one = uniform_steps(EQUAL, 1, LAM, GAMMA)
    assert 1 / (N * one.rate) == pytest.approx(1 + 2 * 2 / np.sqrt(N * LAM * GAMMA), rel=1e-11)
    assert 1 / s.rate == pytest.approx(1 + 2 * 2 / np.sqrt(LAM * GAMMA), rel=1e-11)


def test_equation_12_takes_the_longest_row_and_the_smoothness():
    # R = 2 though most rows have norm 1; gamma = 4: tau = sqrt(4/1)/4 = 1/2, sigma = 1/8,
    # theta = 1 - 1/(100 + 4*sqrt(100/.04)) = 1 - 1/(100 + 4*50) = 1 - 1/300
    s = uniform_steps(UNEQUAL, 1, LAM, 4.0)
    assert s.tau == pytest.approx(0.5, rel=1e-14)
    np.testing.assert_allclose(s.sigma, 0.125, rtol=1e-14)
    assert 1 / s.rate == pytest.approx(300.0, rel=1e-11)


def test_equations_20_and_24():
    # alpha = 1/2: p = .005 + .5*2/125 = .013 for the long rows, .005 + .5/125 = .009 otherwise;
    # R_alpha = 1/(.5/2 + .5/1.25) = 1/.65; tau = sigma = .65/2 = .325;
    # sigma_i = .325/(100*.013) = .25 and .325/.9;
    # theta = 1 - 1/(100/.5 + 100/.65) = 1 - 1/(200 + 2000/13) = 1 - 13/4600
    p = norm_mixture(UNEQUAL, 0.5)
    np.testing.assert_allclose(p, np.r_[np.full(25, 0.013), np.full(75, 0.009)], rtol=1e-14)
    s = weighted_steps(UNEQUAL, p, 1, 0.5, LAM, GAMMA)
    assert s.tau == pytest.approx(0.325, rel=1e-14)
    np.testing.assert_allclose(s.sigma, np.r_[np.full(25, 0.25), np.full(75, 0.325 / 0.9)])
    assert 1 / s.rate == pytest.approx(4600 / 13, rel=1e-11)


def test_equation_26_without_a_row_in_every_batch():
    # norms 1 1 1 5 (Rbar 2), m = 2, alpha = 1/2: 2 (1/8 + R_i/16) = .375 three times, .875;
    # R_alpha = max m R_i/(n p_i) = 2*5/(4*.875) = 20/7;  lambda = 1/50, gamma = 1, n/m = 2:
    # tau = sqrt(1/(2/50))/(40/7) = 5*7/40 = .875, sigma = .2*7/40 = .035,
    # sigma_i = m sigma/(n p_i) = .0175/p_i; theta = 1 - 1/(4/(2*.5) + 20/7*sqrt(2*50)) = 228/7
    norms = np.array([1.0, 1.0, 1.0, 5.0])
    p = inclusion_probabilities(norm_mixture(norms, 0.5), 2)
    np.testing.assert_allclose(p, [0.375, 0.375, 0.375, 0.875], rtol=1e-14)
    s = weighted_steps(norms, p, 2, 0.5, 0.02, 1.0)
    assert s.tau == pytest.approx(0.875, rel=1e-14)
    np.testing.assert_allclose(s.sigma, 0.0175 / p, rtol=1e-14)
    assert 1 / s.rate == pytest.approx(4 + 200 / 7, rel=1e-11)


def test_equation_26_with_a_row_in_every_batch():
    # norms 1 1 1 17 (Rbar 5): 2 (1/8 + R_i/40) = .3 three times and 1.1: the long row is capped
    # at 1 and the others share what is left, 1/3 each; R_alpha = 2*17/4 = m R/n, as the paper says
    norms = np.array([1.0, 1.0, 1.0, 17.0])
    p = inclusion_probabilities(norm_mixture(norms, 0.5), 2)
    np.testing.assert_allclose(p, [1 / 3, 1 / 3, 1 / 3, 1.0], rtol=1e-14)
    s = weighted_steps(norms, p, 2, 0.5, 0.02, 1.0)
    # n/m = 2: tau = sqrt(1/(2*.02))/(2*8.5) = 5/17, sigma = sqrt(2*.02)/17 = .2/17,
    # sigma_i = sigma/(2 p_i); theta = 1 - 1/(2/.5 + 8.5*sqrt(2/.02)) = 1 - 1/89
    assert s.tau == pytest.approx(5 / 17, rel=1e-14)
    np.testing.assert_allclose(s.sigma, np.array([0.3, 0.3, 0.3, 0.1]) / 17, rtol=1e-14)
    assert 1 / s.rate == pytest.approx(89.0, rel=1e-11)


@settings(max_examples=200, deadline=None)
@given(norms=NORMS, alpha=st.floats(0.01, 0.99))
def test_R_alpha_is_the_largest_ratio(norms, alpha):
    p = (1 - alpha) / norms.size + alpha * norms / norms.sum()
    R_alpha = 1 / ((1 - alpha) / norms.max() + alpha / norms.mean())
    assert np.max(norms / (norms.size * p)) == pytest.approx(R_alpha, rel=1e-12)
    s = weighted_steps(norms, norm_mixture(norms, alpha), 1, alpha, LAM, GAMMA)
    assert s.tau == pytest.approx(np.sqrt(GAMMA / (norms.size * LAM)) / (2 * R_alpha), rel=1e-12)


def test_steps_of_the_2015_version_by_hand():
    """n = 4, Rbar = 2, lambda = 1/4, gamma = 1: tau = sigma = 1/8, theta = 1 - 1/(8 + 16)."""
    norms = np.array([1.0, 1.0, 1.0, 5.0])
    p = norm_mixture(norms, 0.5)
    s = icml_steps(norms, p, 0.25, 1.0)
    assert s.tau == pytest.approx(1 / 8, rel=1e-14)
    np.testing.assert_allclose(s.sigma, 1 / 8 / np.array([0.75, 0.75, 0.75, 1.75]), rtol=1e-14)
    assert 1 / s.rate == pytest.approx(24.0, rel=1e-12)
    # never longer than Theorem 6 allows, as R_alpha <= 2 Rbar
    assert s.tau <= weighted_steps(norms, p, 1, 0.5, 0.25, 1.0).tau


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sampling": "uniform"},
        {"sampling": "lipschitz"},
        {"sampling": "adaptive"},
        {"sampling": "weighted", "alpha": 0.5},
        {"sampling": "weighted", "batch_size": 2},
    ],
    ids=str,
)
def test_the_2015_steps_are_for_weighted_sampling_of_single_rows(options):
    problem = ac.Problem(np.eye(4), np.ones(4), l2=0.1)
    with pytest.raises(ValueError, match=r'steps="icml2015" with sampling=.*use steps="theory"'):
        ac.solve(problem, "spdc", steps="icml2015", **options)


def test_optimal_alpha_by_hand():
    # rho = 2/1.25 - 1 = .6, kappa = 4/.01 = 400, sqrt(n/kappa) = .5 < rho;
    # q = .6^.5 * (400/100)^.25 = sqrt(.6*2) = 1.0954451150, alpha = (q - 1)/(q + .6)
    assert optimal_alpha(UNEQUAL, LAM, GAMMA) == pytest.approx(0.0562950, abs=2e-7)
    # lambda = .0144: kappa = 277.8, sqrt(100/277.8) = .6: at the border; beyond it uniform
    assert optimal_alpha(UNEQUAL, 0.0144 * 1.0001, GAMMA) == 0.0
    assert 0.0 < optimal_alpha(UNEQUAL, 0.0144 * 0.99, GAMMA) < 0.01
    assert optimal_alpha(EQUAL, 1e-12, GAMMA) == 0.0  # equal norms: rho = 0
    # it grows to one as the condition number grows
    values = [optimal_alpha(UNEQUAL, 10.0**-k, GAMMA) for k in range(2, 40, 4)]
    assert np.all(np.diff(values) > 0) and values[-1] > 0.99


@settings(max_examples=200, deadline=None)
@given(norms=NORMS, lam=CURVATURE, gamma=CURVATURE)
def test_optimal_alpha_minimises_theta(norms, lam, gamma):
    """On a grid, and by a scalar minimiser; 0 exactly where rho <= sqrt(n/kappa)."""
    n, R, mean = norms.size, norms.max(), norms.mean()

    def inverse_rate(alpha):  # of eq. 24
        longest = 1 / ((1 - alpha) / R + alpha / mean)
        return n / (1 - alpha) + longest * np.sqrt(n / (lam * gamma))

    alpha = optimal_alpha(norms, lam, gamma)
    assert 0.0 <= alpha < 1.0
    best = minimize_scalar(inverse_rate, bounds=(0, 1 - 1e-12), method="bounded").fun
    grid = min(inverse_rate(a) for a in np.linspace(0, 0.999, 400))
    assert inverse_rate(alpha) <= min(best, grid) * (1 + 1e-9)
    if R / mean - 1 < np.sqrt(n * lam * gamma) / R * (1 - 1e-12):
        assert alpha == 0.0


@settings(max_examples=200, deadline=None)
@given(norms=NORMS, lam=CURVATURE, gamma=CURVATURE, alpha=st.floats(0.0, 0.95), data=st.data())
def test_practical_steps(norms, lam, gamma, alpha, data):
    """tau sigma_i R_i^2 = .6 n p_i/m for each row; primal and slowest dual rate agree."""
    n = norms.size
    m = data.draw(st.integers(1, n))
    p = reference.capped(reference.mixture(norms, alpha), m)
    s = practical_steps(norms, p, m, lam, gamma)
    np.testing.assert_allclose(s.tau * s.sigma * norms**2, 0.6 * n * p / m, rtol=1e-12)
    primal = 2 * lam * s.tau / (1 + 2 * lam * s.tau)
    dual = p / (1 + 1 / (2 * gamma * s.sigma))
    assert primal == pytest.approx(dual.min(), rel=1e-10)
    assert s.theta == pytest.approx(1 - primal, rel=1e-12)
    tau, sigma, theta = reference.practical_steps(norms, lam, gamma, m, p)
    assert s.tau == pytest.approx(tau, rel=1e-10)
    assert s.theta == pytest.approx(theta, rel=1e-10)
    np.testing.assert_allclose(s.sigma, sigma, rtol=1e-10)


def test_practical_steps_by_hand():
    # one row in every step (n = m = 1, R = 1, lambda = gamma = 1): with s = .6/tau the rates are
    # 2t/(1+2t) and 1/(1 + t/1.2): equal when 2t (1 + t/1.2) = 1 + 2t, so t = sqrt(.6)
    s = practical_steps(np.ones(1), np.ones(1), 1, 1.0, 1.0)
    assert s.tau == pytest.approx(np.sqrt(0.6), rel=1e-11)
    assert s.sigma[0] == pytest.approx(np.sqrt(0.6), rel=1e-11)
    assert s.theta == pytest.approx(1 / (1 + 2 * np.sqrt(0.6)), rel=1e-11)


def test_practical_steps_are_never_slower_than_the_printed_ones():
    for m in (1, 5, 20, N):
        for norms in (EQUAL, UNEQUAL):
            for lam in (1e-5, 1e-2, 1.0):
                practical = practical_steps(norms, np.full(N, m / N), m, lam, GAMMA)
                assert practical.rate > uniform_steps(norms, m, lam, GAMMA).rate


def test_practical_steps_on_more_rows_than_they_are_bisected_on():
    norms = np.random.default_rng(0).lognormal(0.0, 1.5, 30_000)
    for alpha in (0.0, 0.5):
        p = reference.mixture(norms, alpha)
        s = practical_steps(norms, p, 1, 1e-4, 1.0)
        np.testing.assert_allclose(s.tau * s.sigma * norms**2, 0.6 * norms.size * p, rtol=1e-12)
        slowest = np.min(p / (1 + 1 / (2 * s.sigma)))
        assert s.rate == pytest.approx(slowest, rel=1e-3)
        assert s.rate <= slowest * (1 + 1e-3)


@pytest.mark.parametrize("steps", ["theory", "practical"])
def test_the_solver_uses_them(steps):
    """UNEQUAL's norms as the rows of a problem; weights enter as sqrt(w_i) R_i."""
    A = np.zeros((N, 5))
    A[np.arange(N), np.arange(N) % 5] = UNEQUAL
    w = np.random.default_rng(1).exponential(1.0, N)
    for weights, norms in ((None, UNEQUAL), (w, np.sqrt(w) * UNEQUAL)):
        problem = ac.Problem(A, np.arange(float(N)), l2=LAM, sample_weight=weights)
        rng = np.random.Generator(np.random.PCG64(0))
        solver = SPDC(problem, rng, sampling="weighted", steps=steps)
        solver.advance(1)
        alpha = solver.alpha
        assert alpha == pytest.approx(optimal_alpha(norms, LAM, GAMMA), rel=1e-12)
        p = reference.mixture(norms, alpha)
        if steps == "theory":
            want = reference.theory_steps(norms, LAM, GAMMA, 1, alpha, p)
        else:
            want = reference.practical_steps(norms, LAM, GAMMA, 1, p)
        assert solver.steps.tau == pytest.approx(want[0], rel=1e-10)
        np.testing.assert_allclose(solver.steps.sigma, want[1], rtol=1e-10)
        assert solver.steps.theta == pytest.approx(want[2], rel=1e-12)
