"""Paths on the Gram matrix: their certificates are those of the data, or are not used."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.api import gram
from adacoord.linalg import moments
from adacoord.solvers.registry import SOLVERS


def make(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    b = A[:, :4] @ rng.standard_normal(4) + 0.3 * rng.standard_normal(n) + 2.0
    return A, b


def hostile():
    """name -> (A, b, weights)."""
    A, b = make()
    rng = np.random.default_rng(1)
    cases = {"plain": (A, b, None)}
    cases["mean 1e6"] = A + 1e6, b, None
    cases["scales"] = A * np.logspace(-4, 4, 12), b, None
    deficient = A.copy()
    deficient[:, 6:] = A[:, :6] @ rng.standard_normal((6, 6))
    cases["rank"] = deficient, b, None
    duplicated = A.copy()
    duplicated[:, 6:] = A[:, :6]
    cases["duplicates"] = duplicated, b, None
    cases["weights"] = A, b, rng.integers(0, 3, 60).astype(float)
    cases["n = d"] = A[:12], b[:12], None
    cases["n < d"] = A[:7], b[:7], None
    constant = A.copy()
    constant[:, 2], constant[:, 5] = 3.0, 0.0
    cases["constant columns"] = constant, b, None
    cases["targets 1e6"] = A, b + 1e6, None
    cases["no noise"] = A, A[:, 0] * 3.0, None
    cases["constant target"] = A, np.full(60, 2.5), None
    cases["float32"] = A.astype(np.float32), b, None
    cases["fortran"] = np.asfortranarray(A), b, None
    cases["sparse"] = sparse.csr_matrix(A * (rng.random(A.shape) < 0.4)), b, None
    cases["sparse, mean 1e6"] = sparse.csc_matrix(A + 1e6), b, None
    return cases


HOSTILE = hostile()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.01])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_certificates_are_those_of_the_data_or_are_not_used(name, intercept, l2, positive):
    A, b, w = HOSTILE[name]
    problem = ac.Problem(A, b, sample_weight=w, intercept=intercept, positive=positive)
    top = max(problem.l1_max(), 1e-3)
    problems = [problem.with_penalty(v, l2) for v in np.geomspace(top, 1e-3 * top, 20)]
    loss, tol = gram.least_squares(problem), 1e-6
    found = gram.gram_path(loss, [p.penalty for p in problems], tol, 1000)
    for k, p in enumerate(problems):
        if not found.trusted[k]:
            continue
        x, c = found.X[k], float(found.c[k])
        primal = p.primal(x, c)
        assert found.primal[k] == pytest.approx(primal, rel=1e-10)
        y, u = p.feasible_dual(p.loss.derivative(p.predict(x, c), p.b))
        dual = p._dual(y, u)
        # D of the Gram matrix is the better of two dual points where there is an l2
        assert found.dual[k] >= dual - 1e-10 * primal or found.relative_gap[k] <= tol
        if l2 == 0.0:
            assert found.dual[k] == pytest.approx(dual, abs=1e-10 * primal)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = ac.solve(p, tol=1e-12)
        # a bound, as far as the data can tell
        assert found.dual[k] <= best.primal * (1.0 + 1e-12) + best.gap
    usual = ("plain", "weights", "float32", "fortran", "sparse", "n = d", "duplicates", "rank")
    assert name not in usual or found.trusted.all()


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_every_point_of_a_path_has_its_certificate(name, intercept, keep):
    A, b, w = HOSTILE[name]
    problem = ac.Problem(A, b, sample_weight=w, intercept=intercept)
    top = max(problem.l1_max(), 1e-3)
    # predictions of columns like 1e6 + noise are known to ten digits
    tol, known = (1e-4, 1e-9) if "1e6" in name else (1e-7, 1e-12)
    found = ac.path(problem, l1=np.geomspace(top, 1e-2 * top, 8), tol=tol, keep_results=keep)
    assert found.converged.all() and (found.relative_gap <= tol).all()
    assert (found.operations > 0).all() and (found.seconds > 0.0).all()
    for k in range(8):
        p = problem.with_penalty(found.l1[k])
        assert found.primal[k] == pytest.approx(
            p.primal(found.coefs[k], found.intercepts[k]), rel=known
        )
        if keep:
            result = found.results[k]
            # up to 1e-11 of P is taken off D for rounding; and u, which y is scaled by to meet l1,
            # is known to nine digits of 1e6
            slack = 1e-2 * tol if "1e6" in name else 1e-11
            assert p.gap(result.x, result.y, result.intercept) == pytest.approx(
                result.gap, rel=1e-6, abs=slack * result.primal
            )
            assert result.history.gap[-1] == result.gap and result.solver in SOLVERS


def test_the_same_points_as_without_it(monkeypatch):
    A, b = make()
    problem = ac.Problem(A, b, l2=0.01, intercept=True, positive=True)
    quick = ac.path(problem, n_points=12, tol=1e-10)
    monkeypatch.setattr(gram, "possible", lambda _: False)
    slow = ac.path(problem, n_points=12, tol=1e-10)
    np.testing.assert_allclose(quick.coefs, slow.coefs, atol=1e-6)
    np.testing.assert_allclose(quick.primal, slow.primal, rtol=1e-9)


def test_who_gets_it(monkeypatch):
    """Least squares with an l1 or a sign that nobody named a solver for, and that fits."""
    A, b = make()
    calls, real = [], gram.gram_path

    def counted(*args, **kwargs):
        calls.append(1)
        return real(*args, **kwargs)

    monkeypatch.setattr(gram, "gram_path", counted)
    problem = ac.Problem(A, b)
    ac.path(problem, n_points=3)
    assert len(calls) == 1
    ac.path(problem, n_points=3, solver="acf")
    ac.path(problem, l2=[0.1, 0.2])
    ac.path(ac.Problem(A, b, "huber"), n_points=3)
    monkeypatch.setattr(moments, "LARGEST", 8 * 4 * 14**2 - 1)  # a byte less than it takes
    ac.path(problem, n_points=3)
    assert len(calls) == 1
    monkeypatch.setattr(moments, "LARGEST", 8 * 4 * 14**2)
    ac.path(problem, n_points=3)
    assert len(calls) == 2


def test_a_limit_of_passes_is_a_limit():
    A, b = make(200, 40)
    A = A + 5.0 * np.random.default_rng(2).standard_normal((200, 1))
    with pytest.warns(ac.ConvergenceWarning, match="max_passes=1"):
        found = ac.path(ac.Problem(A, b), n_points=4, tol=1e-14, max_passes=1, ratio=1e-4)
    assert found.passes.max() <= 2 and not found.converged.all()


def test_interrupts_are_heard_between_calls(monkeypatch):
    """A long path is several calls: what was asked for between them may raise."""
    A, b = make()
    problem = ac.Problem(A, b)
    penalties = [problem.with_penalty(v).penalty for v in (0.5, 0.1, 0.01)]
    monkeypatch.setattr(gram, "BUDGET", 0.0)
    seen = []
    loss = gram.least_squares(problem)
    gram.gram_path(loss, penalties, 1e-6, 1000, between=lambda: seen.append(1))
    assert len(seen) == 3

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gram.gram_path(loss, penalties, 1e-6, 1000, between=stop)
