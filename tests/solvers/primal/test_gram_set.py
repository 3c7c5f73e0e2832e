"""Working sets with their Gram matrix: the promises of a stepper, and optima against peers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNet

import adacoord as ac
from adacoord.linalg import moments
from adacoord.solvers import registry
from adacoord.solvers.primal import gram_set
from adacoord.solvers.primal.gram_set import GramWorkingSet
from adacoord.solvers.registry import SOLVERS


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    """Data of a few rows take it, too; sets grow by a few columns, in blocks of a few rows."""
    monkeypatch.setattr(registry, "SMALL_LASSO", 0)
    monkeypatch.setattr(gram_set, "SMALLEST", 5)
    monkeypatch.setattr(gram_set, "FEW", 8)
    monkeypatch.setattr(gram_set, "BLOCK", 50)


def make(n=60, d=20, seed=0, mean=0.0, rho=0.0, dtype=np.float64, **how):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + rho * rng.standard_normal((n, 1))
    A[:, 1], A[:, 3] = 0.0, A[:, 2]
    A[4] = 0.0
    b = A @ (rng.standard_normal(d) * (rng.random(d) < 0.3)) + 0.4 * rng.standard_normal(n) + 1.0
    how.setdefault("l1", 0.05)
    return ac.Problem((A + mean).astype(dtype), b, **how)


def solver(problem, start=None, seed=0):
    return GramWorkingSet(problem, np.random.default_rng(seed), start)


def test_who_gets_it(monkeypatch):
    def taken(problem):
        return SOLVERS["acf"].variant(problem).cls

    assert taken(make()) == taken(make(l2=0.1)) == taken(make(20, 60)) == "GramWorkingSet"
    assert taken(make(l1=0.0, l2=0.1)) == "AdaptiveFrequencies"
    A, b = np.eye(5), np.ones(5)
    for other in (ac.Problem(sparse.csr_matrix(A), b, l1=0.1), ac.Problem(A, b, "huber", l1=0.1)):
        assert taken(other) == "WorkingSetDescent"
    monkeypatch.setattr(moments, "LARGEST", 8 * 4 * 62**2 - 1)  # a byte less than 60 columns take
    assert taken(make()) == "GramWorkingSet" and taken(make(60, 60)) == "WorkingSetDescent"
    assert taken(make(20, 60)) == "GramWorkingSet"  # l1 alone: no more than 40 of them at a time
    assert taken(make(20, 60, l2=0.1)) == "WorkingSetDescent"
    monkeypatch.setattr(registry, "SMALL_LASSO", 2**13)
    assert taken(make()) == "WorkingSetDescent"


def test_who_is_quicker_without(monkeypatch):
    monkeypatch.setattr(registry, "LEAST", 0)

    def taken(*shape, **how):
        return SOLVERS["acf"].variant(make(*shape, **how)).cls

    for shape in ((60, 20), (20, 60), (30, 30)):
        assert taken(*shape) == taken(*shape, l2=0.1) == "WorkingSetDescent"
    assert taken(61, 20) == taken(20, 61) == taken(61, 20, l2=0.005) == "GramWorkingSet"
    assert taken(160, 20, l2=0.1) == taken(20, 61, l2=0.1) == "WorkingSetDescent"
    assert taken(161, 20, l2=0.1) == taken(160, 20, l2=0.1, mean=10.0) == "GramWorkingSet"
    monkeypatch.setattr(registry, "MANY", 20)
    assert taken(161, 20, l2=0.1) == "WorkingSetDescent"
    assert taken(161, 20, l2=0.005) == taken(161, 20) == "GramWorkingSet"


SHAPES = {"tall": (60, 20), "wide": (20, 70), "few": (40, 6)}


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.2])
@pytest.mark.parametrize("shape", SHAPES)
def test_against_scikit_learn(shape, l2, intercept, weighted, positive):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(1)
    w = rng.integers(0, 3, n).astype(float) if weighted else None
    problem = make(n, d, l1=0.03, l2=l2, intercept=intercept, positive=positive, sample_weight=w)
    found = ac.solve(problem, "acf", tol=1e-10)
    assert found.solver == "acf" and found.relative_gap <= 1e-10
    total = n if w is None else w.sum()
    alpha = (0.03 + l2) * n / total
    peer = ElasticNet(
        alpha,
        l1_ratio=0.03 / (0.03 + l2),
        fit_intercept=intercept,
        positive=positive,
        tol=1e-14,
        max_iter=10**6,
    ).fit(problem.matrix.dense, problem.b, sample_weight=w)
    value = problem.primal(peer.coef_, float(peer.intercept_))
    assert found.primal == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_and_layouts_are_read_as_they_are(storage, dtype):
    A = make().matrix.dense
    problem = ac.Problem(storage(A.astype(dtype)), make().b, l1=0.05, intercept=True)
    assert np.shares_memory(solver(problem)._data, problem.matrix.entries)
    found = ac.solve(problem, "acf", tol=1e-9)
    same = ac.solve(ac.Problem(A.astype(dtype).astype(float), problem.b, l1=0.05, intercept=True))
    assert found.converged and found.primal == pytest.approx(same.primal, rel=1e-6)


@pytest.mark.parametrize("mean", [1e3, 1e6])
def test_large_means(mean):
    found = ac.solve(make(mean=mean, intercept=True), "acf", tol=1e-6)
    centred = ac.solve(make(intercept=True), tol=1e-9)
    assert found.converged and found.primal == pytest.approx(centred.primal, rel=1e-5)


def test_correlations_with_large_means_are_those_of_centred_residuals():
    """Once off by 10^6 times what rounding left of the mean of y: gaps of 1e-3 after 60 rounds."""
    descent = solver(make(mean=1e6, intercept=True))
    descent.advance(8)
    descent._look()
    assert descent.estimate <= 1e-7
    assert abs(descent.y.mean()) <= 1e-16


def test_last_digits_are_refined_from_the_data():
    problem = make(rho=3.0, l1=1e-3)
    found = ac.solve(problem, "acf", tol=1e-12)
    assert found.relative_gap <= 1e-12


@pytest.mark.parametrize("rough", [0, np.inf])
@pytest.mark.parametrize("shape", SHAPES)
def test_passes_add_up_and_state_continues(shape, rough, monkeypatch):
    monkeypatch.setattr(gram_set, "ROUGH", rough)
    problem = make(*SHAPES[shape], intercept=True, rho=1.0)
    whole, parts, other = (solver(problem, seed=k) for k in range(3))
    whole.advance(6)
    for k in (1, 0, 2):
        parts.advance(k)
    state = parts.state()
    for key, value in state.items():
        assert np.asarray(value).dtype.kind in "biuf", key
    other.restore(state)
    for s in (parts, other):
        s.advance(3)
        for name in ("x", "y", "intercept", "passes", "operations", "estimate"):
            np.testing.assert_array_equal(getattr(s, name), getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("l2", [0.0, 0.2])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape, positive", [("tall", False), ("few", False), ("few", True)])
def test_rough_products_are_refined(shape, intercept, positive, l2, monkeypatch):
    """float32 will do: what it gets wrong is seen by the next look."""
    monkeypatch.setattr(gram_set, "ROUGH", 0)
    rng = np.random.default_rng(2)
    n, d = SHAPES[shape]
    how = {"intercept": intercept, "positive": positive, "sample_weight": rng.random(n)}
    problem = make(n, d, l1=1e-4, l2=l2, mean=3.0, **how)
    s = solver(problem)
    s.advance(1)
    assert s.rough and not s.exact
    gram = problem.matrix.dense[:, s.members] - s.shift
    gram = (gram.T * problem.weights) @ gram
    np.testing.assert_allclose(s.raw, gram, rtol=0.0, atol=1e-5 * gram.max())
    assert np.abs(s.raw - gram).max() > 0.0
    found = ac.solve(problem, "acf", tol=1e-11)
    monkeypatch.setattr(gram_set, "ROUGH", np.inf)
    same = ac.solve(problem, "acf", tol=1e-11)
    assert found.converged and found.primal == pytest.approx(same.primal, rel=1e-10)


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e25])
def test_what_float32_cannot_tell(scale, monkeypatch):
    """Squares that vanish or overflow, and a column that is nearly another: float64 takes over."""
    monkeypatch.setattr(gram_set, "ROUGH", 0)
    plain = make(l1=1e-4)
    A = plain.matrix.dense.copy()
    if scale == 1e-8:
        A[:, 5] = A[:, 6] + scale * A[:, 5]
    else:
        A *= scale
    problem = ac.Problem(A, plain.b, l1=1e-4 * (1.0 if scale == 1e-8 else scale))
    s = solver(problem)
    with np.errstate(all="ignore"):  # as within a run
        s.advance(20)
    assert s.exact and not s.rough
    found = ac.solve(problem, "acf", tol=1e-9)
    assert found.converged
    if scale != 1e-8:
        assert found.primal == pytest.approx(ac.solve(plain, "acf", tol=1e-9).primal, rel=1e-8)


def test_start():
    problem = make(intercept=True)
    found = ac.solve(problem, "acf", tol=1e-10)
    begun = solver(problem, found)
    np.testing.assert_array_equal(begun.y, found.y)
    np.testing.assert_array_equal(begun.x, found.x)
    again = ac.solve(problem, "acf", tol=found.relative_gap + 1e-13, start=found)
    assert again.converged and again.passes <= 1
    lower = ac.solve(problem.with_penalty(0.01), "acf", tol=1e-9, start=found)
    assert lower.converged


def test_supports_far_larger_than_their_rank(monkeypatch):
    """151 columns of 60 rows had a coefficient on the way, and x was NaN from then on."""
    monkeypatch.setattr(gram_set, "SMALLEST", 100)
    rng = np.random.default_rng(9)
    A = rng.standard_normal((60, 400)) + 3.0 * rng.standard_normal((60, 1))
    problem = ac.Problem(A, A[:, :5].sum(axis=1) + rng.standard_normal(60))
    problem = problem.with_penalty(problem.l1_max() / 1000)
    s = solver(problem)
    s.advance(100)
    assert s.estimate <= 1e-9 and np.isfinite(s.x).all()


def test_sets_stay_small():
    """Solved at the level that holds the other columns back, sets are little more than supports."""
    problem = make(40, 400, l1=0.02, intercept=True)
    s, sizes = solver(problem), []
    for _ in range(30):
        s.advance(1)
        sizes.append((s.members.size, np.count_nonzero(s.x)))
        if s.estimate <= 1e-6:
            break
    assert s.estimate <= 1e-6
    assert all(m <= 2.5 * (2 * k + 5) for m, k in sizes)


def test_nothing_to_do():
    for problem in (make(l1=1e3), make(l1=1e3, intercept=True)):
        found = ac.solve(problem, "acf", tol=1e-12)
        assert found.converged and not found.x.any()
    flat = ac.Problem(np.ones((300, 3)), np.arange(300.0), l1=0.1, intercept=True)
    assert ac.solve(flat, "acf").converged
    assert ac.solve(ac.Problem(np.ones((300, 3)), np.ones(300), l1=0.1, intercept=True)).converged


def test_the_fallback_has_something_to_compare_with(monkeypatch):
    """What is left to do is forecast from two looks, never from one; x = 0 need not be one."""
    problem = make(rho=3.0, l1=1e-3, l2=1e-6)
    monkeypatch.setattr("adacoord.auto.fallback.JUDGED_AFTER", 0.0)
    monkeypatch.setattr("adacoord.auto.fallback.expected", lambda *_: 0.0)
    monkeypatch.setattr("adacoord.api.solve.choose", lambda _: "acf")
    found = ac.solve(problem, tol=1e-11, max_passes=20_000)
    history = found.history
    assert found.converged
    assert history.switched is None or np.sum(history.passes <= history.switched.passes) >= 2


def test_interrupted():
    def callback(progress):
        raise KeyboardInterrupt

    problem = make(200, 400, rho=2.0, l1=1e-4)  # not over before the first look
    result = ac.solve(problem, "acf", tol=0.0, callback=callback)
    assert result.status == "interrupted" and result.relative_gap > 1e-9
    assert problem.gap(result.x, result.y) == pytest.approx(result.gap, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_rounding_in_the_gram_matrix_does_not_raise_p(seed, monkeypatch):
    """As many columns as rows, float32, means of 10^6, a small l1: P once came to 10^41 P(0)."""
    for name in ("SMALLEST", "FEW"):
        monkeypatch.setattr(gram_set, name, 100)
    rng, n = np.random.default_rng(seed), 60
    A = np.cumsum(rng.standard_normal((n, n)), axis=1) / np.sqrt(np.arange(1, n + 1))
    A = (A + 1e6 * rng.random(n)).astype(np.float32)
    b = 3e5 * (A.astype(float) @ rng.standard_normal(n))
    b = (b - b.mean()) / b.std() + 1e4
    l1 = 1e-6 * ac.Problem(A, b, l1=1.0, intercept=True).l1_max()
    problem = ac.Problem(A, b, l1=l1, intercept=True)
    descent = solver(problem)
    for _ in range(30):
        descent.advance(1)
        assert problem.primal(descent.x, descent.intercept) <= problem.null_value


def test_rounds_that_bring_nothing_end():
    descent = solver(make())
    descent.advance(1)
    for left in range(gram_set.IDLE, -1, -1):
        assert not descent.stuck, left
        descent._wait(descent.lowest)
    assert descent.stuck
    descent._wait(0.5 * descent.lowest)
    assert not descent.stuck
