"""Laws that hold of every problem, with references in exact or 50-digit arithmetic.

Each runs over 20 random problems, and over 200 where slow tests run.
"""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mpmath import mpf
from scipy import sparse

import adacoord as ac
from hostile import exact

EXAMPLES = pytest.mark.parametrize(
    "examples", [pytest.param(20), pytest.param(220, marks=pytest.mark.slow)]
)
numbers = st.integers(0, 2**32 - 1)


def law(examples):
    """Hypothesis over the numbers of problems, the same ones each time."""

    def decorate(test):
        run = given(numbers)(test)
        run = settings(
            max_examples=examples,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )(run)
        run()

    return decorate


def solved(problem, tol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        return ac.solve(problem, tol=tol, max_passes=200)


def again(problem, A=None, b=None, weights=None, factor=1.0, scale=1.0):
    """The problem with other data; penalties times ``factor``, for features times ``scale``."""
    penalty = problem.penalty
    return ac.Problem(
        dense(problem) if A is None else A,
        problem.b if b is None else b,
        problem.loss,
        l1=penalty.l1 * factor * scale,
        l2=penalty.l2 * factor * scale**2,
        positive=penalty.positive,
        sample_weight=problem.weights if weights is None else weights,
        intercept=problem.intercept,
    )


def dense(problem):
    return np.array(problem.matrix.dense)


def a_point(problem, number):
    """Some x, c and y: a rough solution, moved, but not to where a log link overflows."""
    rng = np.random.default_rng(number)
    r = solved(problem, 1e-2)
    x = r.x * (1.0 + 0.1 * rng.standard_normal(r.x.shape))
    return x if np.isfinite(problem.primal(x, r.intercept)) else r.x, r.intercept, r.y


def rounding(problem, x, c, y):
    """What P and D are not known to."""
    from adacoord.problem.rounding import allowance

    y, u = problem.feasible_dual(y)
    P, D = problem.primal(x, c), problem._dual(y, u)
    return P, D, allowance(problem, x, c, y, u, P, min(P, D))


def same(one, other, factor=1.0):
    """(P, D, rounding) of two problems: the same but for rounding."""
    for k in (0, 1):
        assert abs(one[k] * factor - other[k]) <= one[2] * factor + other[2]


@EXAMPLES
def test_gap_is_no_less_than_what_is_missing(examples):
    """P - P* in 50 digits, P* by the best point that is known."""

    @law(examples)
    def _(number):
        problem = exact.problem(number, 8, 3)
        best = solved(problem, 1e-13)
        least = exact.primal(problem, best.x, best.intercept)
        for tol in (1e-1, 1e-4):
            r = solved(problem, tol)
            assert r.gap >= exact.primal(problem, r.x, r.intercept) - least
            assert r.dual <= least


@EXAMPLES
def test_gap_of_ridge_is_no_less_than_what_is_missing(examples):
    """P* itself, by the normal equations in fractions: gaps of nothing but rounding."""

    @law(examples)
    def _(number):
        rng = np.random.default_rng(number)
        n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        A = rng.standard_normal((n, d)) + rng.choice([0.0, 10.0, 1e4])
        b, l2 = rng.standard_normal(n) + rng.choice([0.0, 1e6]), 10.0 ** rng.uniform(-6, 1)
        r = solved(ac.Problem(A, b, l2=l2, intercept=bool(number % 2)), 1e-12)
        missing = ridge_value(A, b, l2, r.x, r.intercept) - ridge_optimum(A, b, l2, number % 2)
        assert missing >= 0 and Fraction(r.gap) >= missing


def ridge_value(A, b, l2, x, c):
    A, b, x = ([[Fraction(t) for t in row] for row in np.atleast_2d(v).tolist()] for v in (A, b, x))
    losses = [
        (sum(s * t for s, t in zip(row, x[0], strict=True)) + Fraction(c) - target) ** 2
        for row, target in zip(A, b[0], strict=True)
    ]
    return sum(losses) / (2 * len(A)) + Fraction(l2) / 2 * sum(t * t for t in x[0])


def ridge_optimum(A, b, l2, intercept):
    """The least of that, by Gauss' elimination."""
    n = len(A)
    rows = [[Fraction(t) for t in row] + [Fraction(1)] * intercept for row in A.tolist()]
    m, targets = len(rows[0]), [Fraction(t) for t in b.tolist()]
    H = [[sum(r[i] * r[j] for r in rows) / n for j in range(m)] for i in range(m)]
    for j in range(A.shape[1]):
        H[j][j] += Fraction(l2)
    g = [sum(r[i] * t for r, t in zip(rows, targets, strict=True)) / n for i in range(m)]
    for k in range(m):
        for i in range(m):
            if i != k:
                f = H[i][k] / H[k][k]
                H[i] = [s - f * t for s, t in zip(H[i], H[k], strict=True)]
                g[i] -= f * g[k]
    x = [g[k] / H[k][k] for k in range(m)]
    losses = [
        (sum(s * t for s, t in zip(row, x, strict=True)) - target) ** 2
        for row, target in zip(rows, targets, strict=True)
    ]
    return sum(losses) / (2 * n) + Fraction(l2) / 2 * sum(t * t for t in x[: A.shape[1]])


@EXAMPLES
def test_the_order_of_rows_and_columns_is_rounding(examples):
    @law(examples)
    def _(number):
        problem = exact.problem(number)
        rng = np.random.default_rng(number)
        rows, columns = rng.permutation(problem.n), rng.permutation(problem.d)
        w = None if problem.weights is None else problem.weights[rows]
        other = again(problem, dense(problem)[rows][:, columns], problem.b[rows], w)
        x, c, y = a_point(problem, number)
        same(rounding(problem, x, c, y), rounding(other, x[columns], c, y[rows]))
        first, second = solved(problem, 1e-6), solved(other, 1e-6)
        assert abs(first.primal - second.primal) <= max(first.gap, second.gap)


@EXAMPLES
def test_scaling(examples):
    """Features by 2^k with x by 2^-k changes no bit; weights and penalties by 2^k, P by 2^k."""

    @law(examples)
    def _(number):
        problem = exact.problem(number)
        x, c, y = a_point(problem, number)
        P, D, _ = rounding(problem, x, c, y)
        scale = 2.0 ** (number % 41 - 20)
        scaled = again(problem, dense(problem) * scale, scale=scale)
        plain = again(problem)  # the same storage
        for values in ((plain, x), (scaled, x / scale)):
            found = rounding(*values, c, y)
            assert abs(found[0] - P) <= 2 * found[2] and abs(found[1] - D) <= 2 * found[2]
        assert plain.primal(x, c) == scaled.primal(x / scale, c)
        w = np.ones(problem.n) if problem.weights is None else problem.weights
        heavy = again(problem, weights=w * scale, factor=scale)
        even = again(problem, weights=w)
        assert heavy.primal(x, c) == scale * even.primal(x, c)
        assert heavy.gap(x, y, c) == pytest.approx(scale * even.gap(x, y, c), rel=1e-9)


@EXAMPLES
def test_weights_are_repeats(examples):
    @law(examples)
    def _(number):
        problem = exact.problem(number)
        times = np.random.default_rng(number).integers(1, 4, problem.n)
        factor = problem.n / times.sum()
        weighted = again(problem, weights=times.astype(float))
        repeated = again(
            problem,
            np.repeat(dense(problem), times, axis=0),
            np.repeat(problem.b, times),
            np.ones(times.sum()),
            factor=factor,
        )
        x, c, y = a_point(weighted, number)
        one = rounding(weighted, x, c, y)
        other = rounding(repeated, x, c, np.repeat(y, times, axis=0))
        # factor times the penalties is rounded, too
        assert abs(one[0] * factor - other[0]) <= one[2] + other[2] + 1e-14 * abs(one[0])
        first, second = solved(weighted, 1e-6), solved(repeated, 1e-6)
        left = abs(factor * first.primal - second.primal)
        assert left <= max(factor * first.gap, second.gap) * (1 + 1e-9) + 1e-14 * abs(first.primal)


@EXAMPLES
def test_float32_is_float64_but_for_its_digits(examples):
    """Data of 24 bits are the same problem; others move P by 2^-24 of slope |a|.|x|, at most."""

    @law(examples)
    def _(number):
        problem = exact.problem(number)
        A = dense(problem)
        short = A.astype(np.float32)
        one, other = again(problem, short), again(problem, short.astype(np.float64))
        x, c, y = a_point(one, number)
        same(rounding(one, x, c, y), rounding(other, x, c, y))
        first, second = solved(one, 1e-5), solved(again(problem, A), 1e-5)
        # P of the one problem at the other's solution
        there = again(problem, A).primal(first.x, first.intercept)
        assert there - second.primal >= -second.gap
        exactly = exact.primal(one, first.x, first.intercept) if number % 10 == 0 else None
        assert exactly is None or abs(exactly - mpf(first.primal)) <= mpf(first.gap)
        moved = abs(there - first.primal)
        reach = np.abs(A) @ np.abs(first.x)
        z = one.predict(first.x, first.intercept)
        off = 2.0**-24 * reach
        slopes = np.maximum(
            *(np.abs(one.loss.derivative(z + sign * off, one.b)) for sign in (-1.01, 1.01))
        )
        allowed = one._mean((1.01 * slopes * off).reshape(one.n, -1).sum(axis=1))
        if one.loss.blocks:
            allowed *= np.exp(2.0 * off.max())
        assert moved <= allowed + 1e-12 * abs(there) + rounding(one, first.x, first.intercept, y)[2]


@EXAMPLES
def test_dense_is_sparse(examples):
    @law(examples)
    def _(number):
        problem = exact.problem(number)
        A = dense(problem)
        problems = [again(problem, storage(A)) for storage in exact.STORAGES]
        x, c, y = a_point(problem, number)
        values = [rounding(each, x, c, y) for each in problems]
        for each in values[1:]:
            same(values[0], each)
        first, second = solved(problems[0], 1e-6), solved(again(problem, sparse.csr_array(A)), 1e-6)
        assert abs(first.primal - second.primal) <= max(first.gap, second.gap)
