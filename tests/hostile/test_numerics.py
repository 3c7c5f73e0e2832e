"""Numbers at the ends of what float64 holds: a true certificate, or a sentence; never NaN.

The certificates are checked in exact arithmetic (:mod:`adacoord.api.rigorous`).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.api.rigorous import exact_gap
from hostile import exact

SCALES = (1e-150, 1e-90, 1e-20, 1.0, 1e20, 1e90, 1e150)
L2 = (1e-14, 1e-3, 1e6)


def data(shape, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(shape)
    return A, A @ rng.standard_normal(shape[1]) + 0.3 * rng.standard_normal(shape[0])


def judged(problem, **options):
    """The result of ``solve``, whose certificate is true, and whose silence means convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        r = ac.solve(problem, **{"tol": 1e-8, "max_passes": 60, **options})
    others = [str(w.message) for w in caught if w.category is not ac.ConvergenceWarning]
    assert not others
    assert r.converged or caught, f"{problem}: not converged, and nothing was said"
    assert np.isfinite(r.x).all() and np.isfinite(r.intercept).all() and np.isfinite(r.primal)
    if problem.has_certificate:
        truth = exact_gap(problem, r.x, r.intercept, r.y)
        assert r.gap >= truth.gap, (problem, r.gap, truth.gap)
        assert r.dual <= truth.primal
        if r.converged:
            assert r.relative_gap <= 1e-8
    return r


def posed(*args, **keywords):
    """A problem, or None where it is refused in a sentence that says what to do."""
    try:
        return ac.Problem(*args, **keywords)
    except ValueError as error:
        assert any(word in str(error) for word in ("rescale", "use 0")), error
        return None


@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_features_of_all_scales(name, scale):
    A, z = data((30, 4))
    b = exact.targets(np.random.default_rng(0), name, z)
    for storage in (np.ascontiguousarray, sparse.csr_array):
        for l2 in L2:
            problem = posed(
                storage(A * scale), b, name, l2=l2, intercept=storage is sparse.csr_array
            )
            if 1e-99 < scale < 1e99:
                judged(problem, max_passes=20)
            else:
                assert problem is None


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e30])
def test_float32_at_its_ends(scale):
    A, b = data((30, 4))
    A = (A * scale).astype(np.float32)  # 1e-44: denormal
    judged(ac.Problem(A, b, l2=1e-3 * scale**2 if scale > 1e-40 else 1e-3, intercept=True))
    judged(ac.Problem(sparse.csr_array(A), np.sign(b), "logistic", l1=1e-3 * scale))


@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [{"l2": 1e-3}, {"l1": 1e-3}])
def test_next_to_no_data(name, intercept, penalty):
    """One row, one column, nothing but zeros, denormals among the entries."""
    task = exact.a_loss(name).task
    fewest = 2 if task in ("classification", "multiclass") else 1
    for A in (
        np.ones((fewest, 1)),
        np.ones((fewest, 5)),
        np.zeros((4, 3)),
        np.array([[5e-324, 1.0], [1.0, -5e-324], [0.0, 2.0], [3.0, 1e-310]]),
    ):
        b = np.arange(len(A)) % 2 * (1.0 if task == "multiclass" else 2.0) - (
            1.0 if task == "classification" else -0.5 if task == "positive" else 0.0
        )
        for storage in (np.asarray, sparse.csr_array):
            judged(ac.Problem(storage(A), b, name, intercept=intercept, **penalty))


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
@pytest.mark.parametrize("l2", [1e-14, 1e-8, 0.0])
@pytest.mark.parametrize("width", [1e-3, 1.0, 1e6])
def test_separable_classes(name, l2, width):
    """The best x is far away, or (without a penalty) nowhere."""
    A, z = data((40, 3))
    A = A[np.abs(z) > 0.1] * width
    b = (z[np.abs(z) > 0.1] > 0).astype(float)
    r = judged(
        ac.Problem(A, b if name == "multinomial" else 2 * b - 1, name, l2=l2, intercept=True)
    )
    assert r.status in ("converged", "max_passes", "rounding", "no minimum", "stuck") or (
        r.status.startswith("stationary")
    )


ESTIMATORS = {
    "LinearSVC": lambda: ac.LinearSVC(max_iter=50),
    "LinearSVR": lambda: ac.LinearSVR(max_iter=50),
    "LogisticRegression": lambda: ac.LogisticRegression(max_iter=50),
    "LogisticRegression, l1": lambda: ac.LogisticRegression(l1_ratio=1.0, max_iter=50),
    "Ridge": lambda: ac.Ridge(max_iter=50),
    "Lasso": lambda: ac.Lasso(max_iter=50),
    "ElasticNet": lambda: ac.ElasticNet(max_iter=50),
    "ERMClassifier": lambda: ac.ERMClassifier(loss="smooth_hinge", max_iter=50),
    "ERMRegressor": lambda: ac.ERMRegressor(loss="huber", max_iter=50),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimators_never_have_nan(name, scale, dtype):
    A, z = data((30, 4))
    with np.errstate(over="ignore"):
        A = (A * scale).astype(dtype)
    y = np.sign(z) if "C" in name or "Logistic" in name else z
    for storage in (np.asarray, sparse.csr_array):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model = ESTIMATORS[name]().fit(storage(A), y)
            except ValueError as error:
                assert not np.isfinite(A).all() or not 1e-99 < scale < 1e99, error
                assert any(word in str(error) for word in ("rescale", "infinity", "finite")), error
                continue
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
        gap, relative = np.max(model.dual_gap_), np.max(model.relative_gap_)
        assert gap >= 0.0 and not np.isnan(relative)
        assert relative <= model.tol or any(
            issubclass(w.category, ac.ConvergenceWarning) for w in caught
        )
        assert all(issubclass(w.category, ac.ConvergenceWarning) for w in caught)
