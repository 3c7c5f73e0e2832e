"""Several targets on the Gram matrix: the kernel against the textbook, optima against peers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import MultiTaskElasticNet

import adacoord as ac
from adacoord.auto.fallback import fallback
from adacoord.linalg import moments
from adacoord.solvers.primal import gram_set, target_set
from adacoord.solvers.primal.target_kernels import gram_rows, row_bounds
from adacoord.solvers.primal.target_set import TargetWorkingSet
from adacoord.solvers.registry import SOLVERS


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    """Sets grow by a few columns, in blocks of a few rows."""
    monkeypatch.setattr(gram_set, "SMALLEST", 5)
    monkeypatch.setattr(target_set, "ROUND", 0)
    monkeypatch.setattr(gram_set, "FEW", 8)
    monkeypatch.setattr(gram_set, "BLOCK", 50)


PENALTIES = (
    {"l21": 0.05},
    {"l21": 0.03, "l2": 0.1},
    {"l21": 0.03, "l1": 0.01},
    {"l21": 0.02, "l1": 0.01, "l2": 0.02},
    {"l1": 0.02},
    {"l1": 0.02, "l2": 0.1},
)
SHAPES = {"tall": (80, 20), "square": (30, 30), "few": (40, 6)}


def make(n=80, d=20, K=3, seed=0, mean=0.0, rho=0.0, dtype=np.float64, **how):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + rho * rng.standard_normal((n, 1))
    A[:, 1], A[:, 3] = 0.0, A[:, 2]
    A[4] = 0.0
    W = rng.standard_normal((d, K)) * (rng.random((d, 1)) < 0.3)
    b = A @ W + 0.4 * rng.standard_normal((n, K)) + 1.0
    return ac.Problem((A + mean).astype(dtype), b, **(how or {"l21": 0.05}))


def solver(problem, start=None, seed=0):
    return TargetWorkingSet(problem, np.random.default_rng(seed), start)


def test_who_gets_it(monkeypatch):
    def taken(problem):
        return SOLVERS["acf"].variant(problem).cls

    for how in PENALTIES:
        assert taken(make(**how)) == taken(make(30, 30, **how)) == "TargetWorkingSet"
        assert taken(make(29, 30, **how)) == "ClassWorkingSet"
    assert taken(make(l2=0.1)) == "ClassWorkingSet"
    A, b = np.eye(5), np.ones((5, 2))
    assert taken(ac.Problem(sparse.csr_matrix(A), b, l21=0.1)) == "ClassWorkingSet"
    assert taken(ac.Problem(A, np.arange(5), "multinomial", l21=0.1)) == "ClassWorkingSet"
    monkeypatch.setattr(moments, "LARGEST", 8 * 4 * 20**2 - 1)
    assert taken(make()) == "ClassWorkingSet"


def test_no_other_method_takes_it():
    problem = make(l21=0.05, l2=0.1)
    assert fallback(problem, SOLVERS["acf"].variant(problem), lambda *_: None) is None


# --- the kernel ----------------------------------------------------------------------------------


def quadratic(seed, d=12, K=3, copies=False):
    """G, Q, the square and thresholds."""
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((40, d)) + 0.5, rng.standard_normal((40, K))
    B += A[:, :4] @ rng.standard_normal((4, K))
    if copies:
        A[:, 5] = A[:, 6]
    A[:, 7] = 0.0
    return A.T @ A / 40, A.T @ B / 40, float(np.sum(B * B)) / 40, 0.05 + 0.2 * rng.random(d)


def value(G, Q, square, t, l1, l2, X):
    smooth = 0.5 * (np.sum(X * (G @ X)) + square) - np.sum(Q * X)
    rows = t @ np.linalg.norm(X, axis=1)
    return smooth + rows + l1 * np.abs(X).sum() + 0.5 * l2 * np.square(X).sum()


def naive(G, Q, t, l1, l2):
    """Cyclic descent on rows, nothing else."""
    X = np.zeros_like(Q)
    for _ in range(5000):
        before = X.copy()
        for j in np.flatnonzero(G.diagonal()):
            h = G[j, j] + l2
            v = (Q[j] - G[j] @ X + G[j, j] * X[j]) / h
            v = np.sign(v) * np.maximum(np.abs(v) - l1 / h, 0.0)
            norm = np.linalg.norm(v)
            X[j] = max(1.0 - t[j] / h / norm, 0.0) * v if norm > 0.0 else 0.0
        if np.abs(X - before).max() <= 1e-15:
            break
    return X


@pytest.mark.parametrize("l1, l2", [(0.0, 0.0), (0.03, 0.0), (0.0, 0.2), (0.03, 0.2)])
@pytest.mark.parametrize("thresholds", [0.0, 1.0])
@pytest.mark.parametrize("seed, K", [(0, 1), (1, 3), (2, 20)])
def test_kernel_finds_the_minimum(seed, K, thresholds, l1, l2):
    G, Q, square, t = quadratic(seed, K=K, copies=seed == 1)
    t = thresholds * t
    if not (thresholds or l1):
        pytest.skip("no threshold")
    x, goals, limits = np.zeros(Q.T.shape), np.array([1e-12]), np.array([np.inf])
    gap, work = gram_rows(G, Q.T.copy(), square, t, l1, l2, goals, limits, 1e-15 * square, 5000, x)
    assert gap <= 1e-12 and work > 0.0
    least = value(G, Q, square, t, l1, l2, naive(G, Q, t, l1, l2))
    assert value(G, Q, square, t, l1, l2, x.T) == pytest.approx(least, rel=1e-11)


@pytest.mark.parametrize("l1, l2", [(0.0, 0.0), (0.03, 0.0), (0.0, 0.2), (0.03, 0.2)])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_those_of_the_problem(seed, l1, l2):
    """P as it is, and a D that is no more than the best: at X = 0 and near the optimum."""
    G, Q, square, t = quadratic(seed)
    best = naive(G, Q, t, l1, l2)
    least = value(G, Q, square, t, l1, l2, best)
    for X in (np.zeros_like(Q), best, best + 0.01, -best):
        primal, dual = row_bounds(
            12, Q.T.copy(), (Q - G @ X).T.copy(), X.T.copy(), square, t, l1, l2, np.empty((3, 12))
        )
        assert primal == pytest.approx(value(G, Q, square, t, l1, l2, X), rel=1e-12)
        assert dual <= least * (1.0 + 1e-12)
        if X is best:
            assert dual == pytest.approx(least, rel=1e-9)


def test_what_is_free_is_used():
    """To the goal, or further as long as that costs no more than it may."""
    G, Q, square, t = quadratic(0)

    def run(free, little=0.0):
        goals, limits = np.array([1e-2, 1e-8, 1e-13]), np.array([np.inf, free, little])
        x = np.zeros(Q.T.shape)
        return gram_rows(G, Q.T.copy(), square, t, 0.0, 0.0, goals, limits, 0.0, 5000, x)

    found = [run(0.0), run(1e9), run(1e9, 1e9)]
    assert 1e-8 < found[0][0] <= 1e-2 and 1e-13 < found[1][0] <= 1e-8 and found[2][0] <= 1e-13
    assert found[0][1] < found[1][1] < found[2][1]
    assert run(1e9, found[0][1]) == found[1]  # what was too far is given up


# --- the solver ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("how", PENALTIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_against_all_data(shape, how, intercept, weighted):
    """The same optimum as working sets without a Gram matrix; the gap is that of the data."""
    n, d = SHAPES[shape]
    w = np.random.default_rng(1).integers(0, 3, n).astype(float) if weighted else None
    problem = make(n, d, intercept=intercept, sample_weight=w, **how)
    found = ac.solve(problem, "acf", tol=1e-10)
    assert found.relative_gap <= 1e-10
    other = SOLVERS["acf"].class_columns.load()(problem, np.random.default_rng(0))
    other.advance(200)
    assert found.primal == pytest.approx(problem.primal(other.x, other.intercept), rel=1e-8)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_against_scikit_learn(intercept, ratio):
    problem = make(l21=0.1 * ratio, l2=0.1 * (1.0 - ratio), intercept=intercept)
    found = ac.solve(problem, tol=1e-10)
    peer = MultiTaskElasticNet(
        0.1, l1_ratio=ratio, fit_intercept=intercept, tol=1e-14, max_iter=10**6
    ).fit(problem.matrix.dense, problem.b)
    np.testing.assert_allclose(found.x[4:], peer.coef_.T[4:], atol=1e-5)  # two columns are equal
    value = problem.primal(peer.coef_.T, peer.intercept_ if intercept else 0.0)
    assert found.primal == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("how", PENALTIES)
@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_few_columns_are_solved_to_the_last_digit(how, rho):
    """Whatever ``tol`` asks for: they cost nothing beside the rest of a fit."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 8)) + rho * rng.standard_normal((60, 1))
    b = A @ rng.standard_normal((8, 3)) + 0.4 * rng.standard_normal((60, 3))
    problem = ac.Problem(A, b, intercept=True, **how)
    other = SOLVERS["acf"].class_columns.load()(problem, np.random.default_rng(0))
    other.advance(200)
    found = ac.solve(problem, "acf", tol=1e-4)
    np.testing.assert_allclose(found.x, other.x, atol=1e-7)


def test_labels_in_another_order():
    """The weights of groups are in the order of the labels, and columns have any of them."""
    order, w = np.array([3, 0, 1, 2, 5, 4]), np.arange(1.0, 7.0)
    problem = make(40, 6, l21=0.05, groups=order, group_weights=w)
    plain = make(40, 6, l21=0.05, group_weights=w[order])
    found, same = ac.solve(problem, "acf", tol=1e-10), ac.solve(plain, "acf", tol=1e-10)
    assert found.converged and found.primal == pytest.approx(same.primal, rel=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_and_layouts_are_read_as_they_are(storage, dtype):
    plain = make(dtype=dtype)
    problem = ac.Problem(storage(plain.matrix.dense), plain.b, l21=0.05, intercept=True)
    assert np.shares_memory(solver(problem)._data, problem.matrix.entries)
    found = ac.solve(problem, "acf", tol=1e-9)
    same = ac.solve(ac.Problem(plain.matrix.dense.astype(float), plain.b, l21=0.05, intercept=True))
    assert found.converged and found.primal == pytest.approx(same.primal, rel=1e-6)


@pytest.mark.parametrize("mean", [1e3, 1e6])
def test_large_means(mean):
    found = ac.solve(make(mean=mean, intercept=True, l21=0.05), "acf", tol=1e-6)
    centred = ac.solve(make(intercept=True, l21=0.05), tol=1e-9)
    assert found.converged and found.primal == pytest.approx(centred.primal, rel=1e-5)


def test_last_digits_are_refined_from_the_data():
    assert ac.solve(make(rho=3.0, l21=1e-3), "acf", tol=1e-10).relative_gap <= 1e-10


@pytest.mark.parametrize("rough", [0, np.inf])
@pytest.mark.parametrize("shape", SHAPES)
def test_passes_add_up_and_state_continues(shape, rough, monkeypatch):
    monkeypatch.setattr(gram_set, "ROUGH", rough)
    monkeypatch.setattr(target_set, "FLOAT32", 0)
    problem = make(*SHAPES[shape], intercept=True, rho=1.0, l21=0.01)
    whole, parts, other = (solver(problem, seed=k) for k in range(3))
    whole.advance(6)
    for k in (1, 0, 2):
        parts.advance(k)
    state = parts.state()
    for key, kept in state.items():
        assert np.asarray(kept).dtype.kind in "biuf", key
    other.restore(state)
    for s in (parts, other):
        s.advance(3)
        for name in ("x", "y", "intercept", "passes", "operations", "estimate"):
            np.testing.assert_array_equal(getattr(s, name), getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("how", PENALTIES)
@pytest.mark.parametrize("shape", ["tall", "few"])
def test_rough_products_are_refined(shape, how, monkeypatch):
    """float32 will do: what it gets wrong is seen by the next look."""
    monkeypatch.setattr(gram_set, "ROUGH", 0)
    monkeypatch.setattr(target_set, "FLOAT32", 0)
    small = {name: 0.01 * weight for name, weight in how.items()}
    problem = make(*SHAPES[shape], mean=3.0, intercept=True, **small)
    s = solver(problem)
    s.advance(1)
    assert s.rough and not s.exact
    found = ac.solve(problem, "acf", tol=1e-10)
    monkeypatch.setattr(gram_set, "ROUGH", np.inf)
    same = ac.solve(problem, "acf", tol=1e-10)
    assert found.converged and found.primal == pytest.approx(same.primal, rel=1e-9)


def test_start():
    problem = make(intercept=True, l21=0.05)
    found = ac.solve(problem, "acf", tol=1e-10)
    begun = solver(problem, found)
    np.testing.assert_array_equal(begun.y, found.y)
    np.testing.assert_array_equal(begun.x, found.x)
    again = ac.solve(problem, "acf", tol=found.relative_gap + 1e-13, start=found)
    assert again.converged and again.passes <= 1
    assert ac.solve(problem.with_penalty(l21=0.01), "acf", tol=1e-9, start=found).converged


def test_offsets():
    offset = np.random.default_rng(2).standard_normal((80, 3))
    plain = make(intercept=True, l21=0.1)
    moved = ac.Problem(plain.matrix.dense, plain.b + offset, offset=offset, intercept=True, l21=0.1)
    found, same = ac.solve(moved, "acf", tol=1e-10), ac.solve(plain, "acf", tol=1e-10)
    assert found.converged and found.primal == pytest.approx(same.primal, rel=1e-9)


def test_nothing_to_do():
    for intercept in (False, True):
        found = ac.solve(make(l21=1e3, intercept=intercept), "acf", tol=1e-12)
        assert found.converged and not found.x.any()
    flat = ac.Problem(np.ones((300, 3)), np.arange(600.0).reshape(300, 2), l21=0.1, intercept=True)
    assert ac.solve(flat, "acf").converged


@pytest.mark.parametrize("seed", range(4))
def test_rounding_in_the_gram_matrix_does_not_raise_p(seed, monkeypatch):
    """As many columns as rows, float32, means of 10^6, a small penalty."""
    for name in ("SMALLEST", "FEW"):
        monkeypatch.setattr(gram_set, name, 100)
    rng, n = np.random.default_rng(seed), 60
    A = np.cumsum(rng.standard_normal((n, n)), axis=1) / np.sqrt(np.arange(1, n + 1))
    A = (A + 1e6 * rng.random(n)).astype(np.float32)
    b = 3e5 * (A.astype(float) @ rng.standard_normal((n, 2)))
    b = (b - b.mean(axis=0)) / b.std(axis=0) + 1e4
    l21 = 1e-6 * ac.Problem(A, b, l21=1.0, intercept=True).l1_max()
    problem = ac.Problem(A, b, l21=l21, intercept=True)
    descent = solver(problem)
    for _ in range(10):
        descent.advance(1)
        assert problem.primal(descent.x, descent.intercept) <= problem.null_value


def test_sets_that_are_held_back_get_further():
    """What a level leaves of the gap was once a goal that was met before the first step: stuck."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((150, 150))
    b = A[:, :60] @ rng.standard_normal((60, 3)) + rng.standard_normal((150, 3))
    problem = ac.Problem(A, b, l21=1.0, intercept=True)
    problem = problem.with_penalty(l21=problem.l1_max() / 200)
    found = ac.solve(problem, "acf", tol=1e-6)
    assert found.converged and found.status == "converged"
