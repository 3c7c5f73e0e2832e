"""Certificates of many points at once against those of each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.problem import many


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sparse.csr_matrix])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_same_as_one_by_one(storage, intercept, l2, monkeypatch):
    monkeypatch.setattr(many, "BLOCK", 100)  # three points at a time
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 5)) * (rng.random((30, 5)) < 0.7)
    A[3] = 0.0
    w = rng.integers(0, 3, 30).astype(float)
    problem = ac.Problem(
        storage(A), rng.standard_normal(30) + 1.0, intercept=intercept, sample_weight=w
    )
    problems = [problem.with_penalty(l1, l2) for l1 in np.geomspace(1.0, 0.01, 7)]
    X, c = rng.standard_normal((7, 5)), intercept * rng.standard_normal(7)
    found = list(many.certificates(problems, X, c))
    assert len(found) == 7
    for k, (primal, y, dual) in enumerate(found):
        p, at = problems[k], float(c[k])
        assert primal == pytest.approx(p.primal(X[k], at), rel=1e-13)
        slopes = p.loss.derivative(p.predict(X[k], at), p.b)
        assert primal - dual == pytest.approx(p.gap(X[k], slopes, at), rel=1e-12)
        assert p.dual(y) == pytest.approx(dual, abs=1e-12 * primal)
