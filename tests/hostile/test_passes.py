"""Runs that make no progress any more end by themselves, long before the passes do."""

import warnings

import numpy as np
import pytest

import adacoord as ac
from hostile import exact
from hostile.test_endings import within

PASSES = 100_000


def ended(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        return ac.solve(problem, tol=1e-4, max_passes=PASSES)


@pytest.mark.parametrize("l2", [1e3, 1.0, 1e-3])
def test_newton_on_columns_far_from_zero(l2):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 50))
    b = np.where(A @ rng.standard_normal(50) > 0.0, 1.0, -1.0)
    result = ended(ac.Problem(A + 1e8, b, "squared_hinge", l2=l2, intercept=True))
    assert result.status in ("stuck", "rounding", "converged")
    assert result.passes < PASSES // 100


@pytest.mark.parametrize("l21", [1e3, 1.0, 1e-3])
def test_groups_with_a_row_far_away(l21):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 4))
    b = A @ np.ones(4) + 0.1 * rng.standard_normal(20)
    A[3] *= 1e80
    result = ended(ac.Problem(A, b, l21=l21, groups=[0, 0, 1, 1], intercept=True))
    assert result.status in ("stuck", "rounding", "converged")
    assert result.passes < PASSES // 100


def test_rows_are_refused_before_any_fold_is_solved(monkeypatch):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 3))
    labels = (A[:, 0] > 0.0).astype(int)
    A[0] *= 1e101  # in the first fold's test rows
    model = ac.LogisticRegressionCV()
    monkeypatch.setattr(model, "_walk", lambda *_: pytest.fail("folds were solved"))
    with pytest.raises(ValueError, match="in row 0"):
        model.fit(A, labels)


#: Of ``exact.extended``, those on which Newton's method under bounds crawled for 1,000 passes: flat
#: losses far from their targets, models that sweeps did not solve, columns far from zero beside an
#: intercept, and dual points that were kept for what they prove in too small a box.
CRAWLED = (4, 18, 31, 43, 50, 58, 72, 73, 76, 77, 95, 128, 159, 185, 218)


@pytest.mark.parametrize("number", CRAWLED)
def test_newton_under_bounds_does_not_crawl(number):
    result = ac.solve(exact.extended(number), tol=1e-6, max_passes=200)
    assert result.converged and result.solver == "newton"


@pytest.mark.parametrize("number", [157, 203])
def test_newton_under_bounds_ends_where_rounding_has_the_rest(number):
    with pytest.warns(ac.ConvergenceWarning):
        result = ac.solve(exact.extended(number), tol=1e-13, max_passes=5000)
    assert result.status in ("stuck", "rounding") and result.passes < 1000


def test_a_lasso_of_two_rows_far_from_zero_ends():
    """Any three columns are dependent: active sets lose one of these at a time, not by all of H.

    P* is 1e-15 of P(0), so that rounding decides which digits are left: they are there, or it says
    that they are not.
    """
    out = within(
        60,
        """
import warnings
import numpy as np, adacoord as ac
for seed in range(4):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((2, 400)) + 12446.36).astype(np.float32)
    y = rng.standard_normal(2) + 1e6
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        m = ac.Lasso(alpha=1e-5, fit_intercept=False).fit(X, y)
    P = np.square(X.astype(float) @ m.coef_ - y).sum() / 4 + 1e-5 * np.abs(m.coef_).sum()
    assert (m.relative_gap_ <= 1e-4) == (not said), (seed, m.relative_gap_, said)
    assert P <= 1e-7 * np.square(y).sum() / 4, (seed, P)
print("ended")
""",
    )
    assert out == "ended\n"


def test_a_search_of_separable_classes_with_columns_without_a_penalty_ends():
    """P has no minimum there: it falls to 1e-12 of P(0), where the floor of curvature held it."""
    rng = np.random.default_rng(352)
    X, y = rng.standard_normal((12, 60)) + 100.0, np.arange(12) % 2
    model = ac.LogisticRegressionCV(penalty_factor=np.arange(60) % 3, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ac.ConvergenceWarning)
        model.fit(X, y)
    assert np.isfinite(model.coef_).all()
