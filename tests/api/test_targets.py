"""Several targets from one decomposition: against each by itself, and who may have it."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Theirs

import adacoord as ac
from adacoord.api import targets
from adacoord.api.targets import alike, solve_together


def pose(n=60, d=9, K=4, seed=0, mean=0.0, intercept=True, weighted=False, order="C", **kind):
    rng = np.random.default_rng(seed)
    A = np.asarray(rng.standard_normal((n, d)) + mean, order=order)
    B = A @ rng.standard_normal((d, K)) + rng.standard_normal((n, K)) + 3.0
    w = rng.exponential(1.0, n) * (rng.random(n) < 0.9) if weighted else None
    kind = {"l2": 0.1} | kind
    matrix = ac.Problem(A, B[:, 0]).matrix
    return [
        ac.Problem(matrix, b, sample_weight=w, intercept=intercept, **kind)
        for b in np.ascontiguousarray(B.T)
    ]


@pytest.mark.parametrize("shape", [(60, 9), (9, 60), (12, 12)])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_they_are_the_solutions_of_each(shape, intercept, weighted, order):
    problems = pose(*shape, intercept=intercept, weighted=weighted, order=order)
    assert alike(problems)
    for problem, result in zip(problems, solve_together(problems, 1e-9), strict=True):
        alone = ac.solve(problem, "newton", tol=1e-12)
        np.testing.assert_allclose(result.x, alone.x, atol=1e-9)
        assert result.intercept == pytest.approx(alone.intercept, abs=1e-9)
        assert result.converged and result.status == "converged"
        # the certificate is that of the data
        primal, dual = problem.judge(result.x, result.y, result.intercept)
        assert result.primal == pytest.approx(primal, rel=1e-12)
        assert result.dual <= dual + 1e-9 * abs(dual) and result.gap >= result.primal - alone.primal


def test_means_that_are_large_are_certified_or_solved_again():
    for mean in (1e3, 1e6):
        problems = pose(mean=mean)
        found = solve_together(problems, 1e-4)
        for problem, result in zip(problems, found, strict=True):
            best = ac.solve(problem, "newton", tol=1e-6).dual
            assert result.gap >= result.primal - best - 1e-5 * abs(best)
        rng = np.random.default_rng(1)
        X = rng.standard_normal((50, 5)) + mean
        Y = (X - mean) @ rng.standard_normal((5, 3)) + rng.standard_normal((50, 3))
        assert np.all(ac.Ridge().fit(X, Y).relative_gap_ <= 1e-4)


def test_who_may_not():
    assert not alike(pose(K=1))
    for kind in ({"l1": 0.1}, {"l2": 0.0}, {"positive": True}, {"l2": np.arange(1.0, 10.0)}):
        assert not alike(pose(**kind))
    assert not alike(pose(loss="huber"))
    one, other = pose(), pose(l2=0.2)
    assert not alike([*one[:2], *other[:2]])  # neither the same matrix nor the same penalty
    assert not alike([one[0], one[1].with_penalty(l2=0.2)])
    heavy = ac.Problem(one[0].matrix, one[0].b, l2=0.1, intercept=True, sample_weight=np.ones(60))
    assert not alike([one[0], heavy])
    offset = ac.Problem(one[0].matrix, one[0].b, l2=0.1, intercept=True, offset=np.ones(60))
    assert not alike([one[0], offset])


@pytest.mark.parametrize("weighted", [False, True])
def test_estimators_take_it(weighted):
    rng = np.random.default_rng(2)
    X, w = rng.standard_normal((80, 6)), rng.exponential(1.0, 80) if weighted else None
    Y = X @ rng.standard_normal((6, 3)) + rng.standard_normal((80, 3))
    ours = ac.Ridge(alpha=2.0).fit(X, Y, w)
    theirs = Theirs(alpha=2.0).fit(X, Y, w)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-10)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-10)
    assert ours.relative_gap_.shape == (3,) and np.all(ours.relative_gap_ <= 1e-4)
    assert ours.solver_ == "newton" and len(ours.history_) == 3
    sure = ac.Ridge(alpha=np.array([1.0, 2.0, 3.0])).fit(X, Y, w)  # each by itself
    np.testing.assert_allclose(sure.coef_[1], ours.coef_[1], atol=1e-9)


def test_many_targets_share_what_a_single_one_would_not_pay_for(monkeypatch):
    """Conjugate gradients for one; for some of them the Gram matrix is made once."""
    problems = pose(K=4)
    for name, answer in (("choose", "newton-cg"), ("newton_time", 3.0), ("cg_time", 1.0)):
        monkeypatch.setattr(targets, name, lambda _, answer=answer: answer)
    assert not alike(problems[:2]) and alike(problems[:3]) and alike(problems)
    monkeypatch.setattr(targets, "choose", lambda _: "acf")
    assert not alike(problems)
