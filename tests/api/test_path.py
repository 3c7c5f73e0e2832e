"""Paths: every point certified, the same as from scratch, and cheaper."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import lasso_path

import adacoord as ac


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 200)) * (rng.random((80, 200)) < 0.3)
    b = A[:, :10] @ rng.standard_normal(10) + 0.3 * rng.standard_normal(80) + 1.0
    return A, b


@pytest.mark.parametrize(
    "storage", [np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix]
)
@pytest.mark.parametrize("intercept", [False, True])
def test_lasso_path(data, storage, intercept):
    A, b = data
    problem = ac.Problem(storage(A), b, intercept=intercept)
    found = ac.path(problem, n_points=30, ratio=1e-2, tol=1e-8)
    assert len(found) == 30 and found.l1[0] == problem.l1_max()
    assert found.l1[-1] == pytest.approx(1e-2 * found.l1[0]) and not found.l2.any()
    np.testing.assert_allclose(found.l1[1:] / found.l1[:-1], 1e-2 ** (1 / 29))
    assert found.converged.all() and (found.relative_gap <= 1e-8).all()
    centred = (A - A.mean(axis=0), b - b.mean()) if intercept else (A, b)
    _, coefs, _ = lasso_path(*centred, alphas=found.l1, tol=1e-12, max_iter=10**6)
    for k, coef in enumerate(coefs.T):
        point = problem.with_penalty(found.l1[k])
        c = float(np.mean(b - A @ coef)) if intercept else 0.0
        assert found.primal[k] == pytest.approx(point.primal(coef, c), rel=1e-7)
        np.testing.assert_allclose(found.coefs[k], coef, atol=2e-3 * np.abs(coef).max() + 1e-9)
        # the numbers are those of the points (from the Gram matrix, not to the last bit)
        value = point.primal(found.coefs[k], found.intercepts[k])
        assert found.primal[k] == pytest.approx(value, rel=1e-12)
        assert found.gap[k] == pytest.approx(found.primal[k] - found.dual[k], abs=1e-15)


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_cheaper_than_from_scratch(data, loss):
    A, b = data
    problem = ac.Problem(sparse.csr_matrix(A), np.sign(b) if loss == "logistic" else b, loss)
    found = ac.path(problem, n_points=20, ratio=1e-2, tol=1e-7, keep_results=True)
    alone = [ac.solve(problem.with_penalty(l1), tol=1e-7) for l1 in found.l1]
    np.testing.assert_allclose(found.primal, [r.primal for r in alone], rtol=1e-6)
    assert found.operations.sum() < 0.9 * sum(r.history.operations[-1] for r in alone)
    assert [r.primal for r in found.results] == list(found.primal)
    assert found.passes.sum() == sum(r.passes for r in found.results)


def test_other_penalties(data):
    A, b = data
    problem = ac.Problem(A, b, l1=0.05, l2=0.1)
    l2 = np.array([1.0, 0.1, 0.01])
    found = ac.path(problem, l2=l2)
    np.testing.assert_array_equal(found.l2, l2)
    assert (found.l1 == 0.05).all() and found.results is None
    both = ac.path(problem, l1=[0.3, 0.2, 0.1], l2=l2)
    for run in (found, both):
        for k in range(3):
            alone = ac.solve(ac.Problem(A, b, l1=run.l1[k], l2=run.l2[k]))
            assert run.primal[k] == pytest.approx(alone.primal, rel=2e-6)
    assert (ac.path(problem, l1=[0.3, 0.2]).l2 == 0.1).all()
    ridge = ac.path(ac.Problem(A, b), l2=l2, solver="dcd", max_passes=10_000)
    assert ridge.converged.all() and not ridge.l1.any()
    assert problem.penalty.l1 == 0.05  # as it was
    shared = problem.with_penalty(l1=0.3)
    assert shared.matrix is problem.matrix and shared.penalty.l2 == 0.1


def test_classes(data):
    A, b = data
    codes = np.digitize(b, [0.0, 2.0])
    problem = ac.Problem(A, codes, "multinomial", intercept=True)
    found = ac.path(problem, l2=[1.0, 0.1], tol=1e-4)
    assert found.coefs.shape == (2, 200, 3) and found.intercepts.shape == (2, 3)


def test_shape_and_text(data):
    A, b = data
    found = ac.path(ac.Problem(A, b), n_points=3, ratio=0.1)
    assert found.coefs.shape == (3, 200) and found.intercepts.shape == (3,)
    assert (found.seconds > 0).all() and (found.passes >= 0).all()
    assert "3 points" in repr(found)


def test_one_warning_for_all_points(data):
    A, b = data
    with pytest.warns(ac.ConvergenceWarning, match="of 5 points .* max_passes=2; .*1e-12") as seen:
        found = ac.path(ac.Problem(A, b), n_points=5, tol=1e-12, max_passes=2)
    assert len(seen) == 1 and seen[0].filename == __file__
    assert len(found) == 5 and not found.converged.all()


def test_liblinears_rule_is_no_limit(data):
    """What ended the points was asked for: as in ``solve``, nothing is said."""
    A, b = data
    found = ac.path(
        ac.Problem(A, np.where(b > 0, 1.0, -1.0), "hinge"),
        l2=[0.1, 0.01],
        solver="acf",
        stop="liblinear",
        eps=0.5,
        tol=1e-12,
        keep_results=True,
    )
    assert [r.status for r in found.results] == ["liblinear"] * 2 and not found.converged.any()


def test_interrupted(data, monkeypatch):
    A, b = data
    import adacoord.api.path as module

    real, calls = module.run, []

    def run(*args, **kwargs):
        result = real(*args, **kwargs)
        calls.append(result)
        if len(calls) == 3:
            object.__setattr__(result, "status", "interrupted")
        return result

    monkeypatch.setattr(module, "run", run)
    found = ac.path(ac.Problem(A, b), n_points=10, solver="acf")
    assert len(found) == 2 and found.interrupted  # what was finished
    assert "2 points, interrupted" in repr(found)


@pytest.mark.parametrize("keep", [pytest.param(False, marks=pytest.mark.slow), True])
def test_interrupted_anywhere(data, keep, signal_steps):
    """Ctrl-C at any moment: the points that were finished, bit by bit, and nothing held."""
    A, b = data
    problem = ac.Problem(A[:30, :6], b[:30])

    def walk():
        return ac.path(problem, n_points=4, ratio=0.1, keep_results=keep)

    whole = walk()
    assert len(whole) == 4 and not whole.interrupted
    package = os.path.dirname(ac.__file__)
    total = signal_steps(package, walk)[1]
    # the last of all is the way out of path itself, where nothing can be kept
    at = np.unique(np.r_[np.linspace(0, total - 2, 120), total - np.arange(2, 30)].astype(int))
    lengths = []
    for k in at:
        found, _ = signal_steps(package, walk, int(k))
        lengths.append(0 if found is None else len(found))
        if found is None:
            continue
        assert found.interrupted
        np.testing.assert_array_equal(found.l1, whole.l1[: len(found)])
        np.testing.assert_array_equal(found.coefs, whole.coefs[: len(found)])
        np.testing.assert_array_equal(found.gap, whole.gap[: len(found)])
        assert (found.results is not None) == keep
    assert lengths == sorted(lengths) and set(lengths) == {0, 1, 2, 3, 4}
    fit = threading.Thread(target=walk, daemon=True)  # another thread is not kept waiting
    fit.start()
    fit.join(60)
    assert not fit.is_alive()


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"l1": [0.1, 0.2], "l2": [1, 2, 3]}, "l1 has 2 values and l2 has 3: give two arrays"),
        ({"l1": [0.1, -1.0]}, "l1 has the value -1.0 at position 1"),
        ({"l1": [0.1, np.nan]}, "l1 has the value nan at position 1"),
        ({"l2": []}, r"l2 has shape \(0,\)"),
        ({"l1": "many"}, "l1='many': it must be a number"),
        ({"l1": [[0.1]]}, r"l1 has shape \(1, 1\)"),
        ({"l1": [0.1, 0.0]}, "l1=0.0 and l2=0.0 at point 1"),
        ({"n_points": 0}, "n_points=0: it must be a whole number"),
        ({"ratio": 1.0}, "ratio=1.0: the last l1 over the first"),
        ({"tol": -1}, "tol=-1"),
        ({"solver": "adam"}, "solver='adam': not a solver"),
        ({"colour": 1, "solver": "acf"}, 'colour=1: solver="acf" has no such option'),
    ],
)
def test_bad_arguments(data, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        ac.path(ac.Problem(*data), **arguments)


def test_no_path():
    with pytest.raises(ValueError, match=r"l1_max\(\) is 0: x = 0 solves"):
        ac.path(ac.Problem(np.eye(3), np.zeros(3)))
    with pytest.raises(ValueError, match="problem=list: make one"):
        ac.path([1, 2])


@pytest.mark.parametrize("loss", ["hinge", "absolute", "huber"])
@pytest.mark.parametrize("bounds", [{}, {"lower": -0.3, "upper": 0.4}, {"positive": True}])
@pytest.mark.parametrize(
    "penalties", [{"l1": [0.2, 0.05]}, {"l2": [0.5, 0.05]}, {"l1": 0.02, "l2": [0.5, 0.05]}, {}]
)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_problem_without_a_penalty_of_its_own(data, loss, bounds, penalties, n_jobs):
    """Factors of its own weights are 1 where it has none: not 0, which no penalty ever was."""
    A, b = data
    b = np.where(b > 0, 1.0, -1.0) if loss == "hinge" else b
    problem = ac.Problem(A, b, loss, intercept=True, **bounds)
    found = ac.path(problem, **penalties, n_points=3, ratio=0.1, tol=1e-8, n_jobs=n_jobs)
    assert found.converged.all()
    assert (found.l1 > 0.0).all() == ("l1" in penalties or not penalties)
    assert (found.l2 > 0.0).all() == ("l2" in penalties)
    for k, (l1, l2) in enumerate(zip(found.l1, found.l2, strict=True)):
        one = ac.solve(ac.Problem(A, b, loss, l1, l2, intercept=True, **bounds), tol=1e-8)
        assert found.primal[k] == pytest.approx(one.primal, rel=1e-7)
        assert one.dual <= found.primal[k] and found.dual[k] <= one.primal


@pytest.mark.parametrize("shape", [(94, 95), (120, 100)])
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_points_on_which_descent_crawls_are_left_to_newton(shape, ratio):
    """Columns far from 0 without an intercept: gaps of .2 to 1.9 after all of the passes."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal(shape) + 60.0
    A[:, rng.integers(0, shape[1], shape[1] // 3)] = A[:, [0]]
    b = A[:, :5] @ rng.standard_normal(5)
    b = np.round(b - b.mean())
    largest = ac.Problem(A, b, l1=1.0).l1_max() / ratio
    alphas = np.geomspace(largest, 0.01 * largest, 4)
    path = ac.path(ac.Problem(A, b), l1=alphas * ratio, l2=alphas * (1.0 - ratio), tol=1e-3)
    assert path.converged.all() and (path.passes <= 1000).all()
    found, _, _ = ac.enet_path(A, b, l1_ratio=ratio, alphas=alphas, tol=1e-3)
    np.testing.assert_array_equal(found, alphas)
