"""Input that once ended in a traceback, or meant something else than it said."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import adacoord as ac

rng = np.random.default_rng(0)
A = rng.standard_normal((50, 4))
s = A @ [1.0, 2.0, 3.0, 4.0] + rng.standard_normal(50)


def weights(value):
    w = np.ones(50)
    w[3] = value
    return w


REFUSED = {
    "targets too large": ({"b": s * 1e200}, "b has the value .* overflow when they are squared"),
    "targets too small": ({"b": s * 1e-200}, "b has no value larger than .*: the squares"),
    "features too large": ({"A": A * 1e120}, "A has the value .* rows no longer than 1e"),
    "features too small": ({"A": A * 1e-120}, "A has no entry larger than .*rescale"),
    "a weight too small": ({"sample_weight": weights(1e-300)}, "use 0 to leave the row out"),
    "a denormal weight": ({"sample_weight": weights(5e-324)}, "use 0 to leave the row out"),
    "a weight too large": ({"sample_weight": weights(1e300)}, r"the value 1e\+300 at position 3"),
    "no large weight": ({"sample_weight": np.full(50, 1e-200)}, "no value larger than 1e-200"),
    "penalty too large to write": ({"l2": 10**400}, r"l2=1000+\.\.\.: the penalty must be finite"),
    "penalty too small": ({"l2": 1e-320}, "l2=1e-320: a penalty must be 0 or between"),
    "penalty too large": ({"l1": 1e300}, r"l1=1e\+300: a penalty must be 0 or between"),
    "a complex penalty": ({"l2": 1j}, "l2=1j: the penalty must be a number"),
    "a word for the intercept": ({"intercept": "False"}, "intercept='False': it must be True or"),
    "a number for the intercept": ({"intercept": 1}, "intercept=1: it must be True or False"),
    "a word for the sign": ({"positive": "no"}, "positive='no': it must be True or False"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_a_sentence(name):
    changes, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        ac.Problem(**{"A": A, "b": s, "l2": 1e-3, **changes})


def test_with_penalty_asks_the_same():
    with pytest.raises(ValueError, match="l1=1e-300: a penalty must be 0 or between"):
        ac.Problem(A, s, l2=1.0).with_penalty(l1=1e-300)


@pytest.mark.parametrize("estimator", [ac.Ridge(), ac.LinearSVR(), ac.Lasso(), ac.ElasticNet()])
@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_estimators_refuse_what_problems_refuse(estimator, scale):
    with pytest.raises(ValueError, match="rescale the targets"):
        estimator.fit(A, s * scale)


@pytest.mark.parametrize("solver", sorted(ac.solvers.registry.SOLVERS))
@pytest.mark.parametrize("weight", [1e-90, 1e90])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_weights_far_apart_give_a_result_or_a_sentence(solver, weight, loss, intercept):
    b = s if loss == "squared" else np.sign(s)
    problem = ac.Problem(A, b, loss, l2=1e-3, sample_weight=weights(weight), intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        r = ac.solve(problem, solver, max_passes=10)
    assert np.isfinite([r.primal, r.dual, r.gap]).all() and r.gap >= 0.0


def test_certify_with_a_row_of_no_weight():
    counts = rng.poisson(2, 50).astype(float)
    problem = ac.Problem(A, counts, "poisson", l2=1e-2, sample_weight=weights(0.0))
    best = ac.solve(problem, "newton", tol=1e-10)
    proof = ac.certify(problem, best.x)
    assert 0.0 <= proof.gap <= 1e-8 and proof.dual <= best.primal


@pytest.mark.parametrize("case", ["rows far apart", "weights far apart", "all too large"])
def test_leaving_rows_out_does_not_overflow_in_silence(case):
    X, w = A.copy(), np.ones(50)
    if case == "weights far apart":
        w = np.geomspace(1e-89, 1e89, 50)
    else:
        X *= np.geomspace(1e-90, 1e90, 50)[:, None] if case == "rows far apart" else 1e98
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        try:
            model = ac.RidgeCV().fit(X, s, sample_weight=w)
        except ValueError as error:
            assert "rescale" in str(error), error
            return
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)
    assert np.isfinite(model.best_score_) and model.dual_gap_ >= 0.0


def test_who_uses_auto_is_not_sent_to_auto():
    from adacoord.api.solve import advice

    problem = ac.Problem(A, s, l2=0.1)
    stuck = replace(ac.solve(problem), status="stuck", converged=False)
    assert 'solver="auto"' in advice(problem, stuck, 1e-9, named=True)
    assert 'solver="auto"' not in advice(problem, stuck, 1e-9, named=False)
