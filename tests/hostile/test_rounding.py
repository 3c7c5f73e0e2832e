"""The rounding bound is one: P - D in exact arithmetic is never more than what is reported.

``exact.problem`` makes the problems; P and D are those of :mod:`adacoord.api.rigorous`, which
shares no code with the judge and is itself held against mpmath here.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.api.rigorous import exact_gap
from adacoord.kernels.summation import UNIT, depth, dot_depth, gamma, pairwise_depth, row_block
from adacoord.problem.rounding import _Point, _sum_twice, _weighted, allowance
from hostile import exact
from hostile.cases import case

#: Certificates of points near the optimum, and farther away.
TOLERANCES = (1e-13, 1e-7)


def solved(problem, tol, max_passes=100):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ac.ConvergenceWarning)
        return ac.solve(problem, tol=tol, max_passes=max_passes)


def lies(problem, tolerances=TOLERANCES, max_passes=100) -> list[str]:
    """What is reported too small, in words."""
    found = []
    for tol in tolerances:
        r = solved(problem, tol, max_passes)
        truth = exact_gap(problem, r.x, r.intercept, r.y)
        again = exact_gap(
            problem, r.x, r.intercept, problem.feasible_dual(r.y)[0]
        )  # what gap judges
        for name, gap, least in (
            ("solve", r.gap, truth.gap),
            ("gap", problem.gap(r.x, r.y, r.intercept), again.gap),
        ):
            if not gap >= least:
                found.append(f"{problem}, tol={tol}: {name} says {gap!r}, it is {least!r}")
        if not r.dual <= truth.primal:
            found.append(f"{problem}, tol={tol}: D={r.dual!r} above P={truth.primal!r}")
    return found


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(100, 1000, 100))],
)
def test_exact_gap_is_never_more_than_what_is_reported(first):
    found = [text for number in range(first, first + 100) for text in lies(exact.problem(number))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(15, 135, 15))]
)
def test_weights_bounds_and_offsets(first):
    """The same; and the exact P and D are what the judge finds, but for rounding."""
    problems = [exact.extended(number) for number in range(first, first + 15)]
    found = [text for problem in problems for text in lies(problem, max_passes=40)]
    assert not found, "\n".join(found)
    assert any(problem.penalty.outside(problem.null_point) is not None for problem in problems)
    assert any(problem.offset is not None for problem in problems)
    for problem in problems:
        r = solved(problem, 1e-7, max_passes=40)
        truth = exact_gap(problem, r.x, r.intercept, r.y)
        y, u = problem.feasible_dual(r.y)
        dual = problem._dual(y, u) - problem.penalty.box_cost(r.x, u)
        size = max(abs(r.primal), abs(dual), abs(problem.null_value))
        assert abs(truth.primal - r.primal) <= 1e-7 * size
        assert abs(truth.dual - dual) <= 1e-7 * size


@pytest.mark.parametrize("shape", [(3000, 3), (3, 3000)])
@pytest.mark.parametrize("number", range(len(exact.NAMES)))
def test_long_sums(number, shape):
    assert not lies(exact.problem(1000 + number, *shape), tolerances=(1e-12,), max_passes=20)


@pytest.mark.slow
def test_hostile_problems():
    """The same of data with offsets, weights and scales at the ends of what is taken."""
    found, judged = [], 0
    for number in range(3000, 3150):
        one = case(number)
        if one.l1 == one.l2 == 0.0:
            continue
        arguments, keywords = one.arguments
        try:
            problem = ac.Problem(*arguments, **keywords)
        except ValueError:
            continue
        judged += 1
        found += lies(problem, (one.tol,))
    assert judged > 100 and not found, "\n".join(found)


@pytest.mark.parametrize(
    "shape",
    [
        (2000, 10, 1.0),
        pytest.param((300, 600, 1.0), marks=pytest.mark.slow),
        pytest.param((20_000, 2000, 0.01), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("intercept", [False, True])
def test_it_costs_next_to_nothing(shape, intercept):
    """At most 1e-10 of P where the data are well scaled, at the optimum but for 1e-4."""
    n, d, density = shape
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    z = A @ rng.standard_normal(d) / (d * density) ** 0.5 + 0.3 * rng.standard_normal(n)
    A = A if density == 1.0 else sparse.csr_array(A)
    for name in exact.NAMES:
        for penalty in ({"l2": 1e-3}, {"l1": 1e-2}, {"l1": 1e-2, "l2": 1e-3}):
            b = exact.targets(np.random.default_rng(1), name, z)
            problem = ac.Problem(A, b, exact.a_loss(name), intercept=intercept, **penalty)
            r = solved(problem, 1e-4, max_passes=20)
            y, u = problem.feasible_dual(r.y)
            dual = min(problem._dual(y, u), r.primal)
            most = 1e-10 * max(abs(r.primal), abs(dual))
            at = _Point.of(problem, r.x, r.intercept, y, u, r.primal, dual, None, 1)
            sharp = min(at.by_rows(), at.accurate())
            assert 0.0 < sharp <= most, (problem, sharp)
            # or nothing beside a gap that is larger still
            taken = allowance(problem, r.x, r.intercept, y, u, r.primal, dual)
            assert taken <= max(most, 1e-3 * (r.primal - dual)), (problem, taken)


# ---- what the bound rests on -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "expm1", "sinh", "tanh", "arctanh"])
def test_functions_are_as_exact_as_is_taken_for_granted(name):
    """4 ulps are; NumPy has 2 at most."""
    rng = np.random.default_rng(0)
    small = 10.0 ** rng.uniform(-12, 0, 400)
    points = {
        "exp": -np.concatenate([small, rng.uniform(0, 700, 800)]),
        "log": np.concatenate([1.0 - small[small < 1], 10.0 ** rng.uniform(-300, 6, 800)]),
        "log1p": np.concatenate([small, -0.999 * small, 1e3 * small]),
        "expm1": -np.concatenate([small, rng.uniform(0, 40, 400)]),
        "sinh": 0.5 * small,
        "tanh": np.concatenate([small, 20 * small]),
        "arctanh": 0.5 * small,
    }[name]
    points = points[points != 0.0]
    found = getattr(np, name)(points)
    exactly = getattr(mpmath, {"arctanh": "atanh"}.get(name, name))
    for x, y in zip(points.tolist(), found.tolist(), strict=True):
        true = exactly(mpmath.mpf(x))
        assert abs(y - true) <= 2 * 2 * UNIT * abs(true), (x, y)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 1000, 100_003])
def test_sums_are_as_exact_as_is_taken_for_granted(n):
    """Sums of terms of one sign that all round the same way."""
    values = np.full(n, 1.0 + 2.0**-52 * 3)
    values[::3] = 1.0 / 3.0
    assert abs(values.sum() - math.fsum(values)) <= gamma(pairwise_depth(n)) * math.fsum(values)


def test_depths_of_sums_grow_like_roots():
    assert [depth(10, 64), depth(64, 64), depth(65, 64), depth(640, 64)] == [10, 64, 66, 74]
    assert dot_depth(100) == 100 and dot_depth(1_000_000) == 2000
    assert depth(10**6, row_block(10**6, 50, 50 * 10**6)) == 2000
    assert pairwise_depth(10**6) < 45


@pytest.mark.parametrize("storage", exact.STORAGES)
@pytest.mark.parametrize("shape", [(700, 3), (3, 700), (40, 40)])
@pytest.mark.parametrize("width", [None, 3])
def test_products_are_off_by_no_more_than_their_depth(storage, shape, width):
    """Against exact sums (math.fsum of exact products of numbers of 26 bits)."""
    rng = np.random.default_rng(0)
    n, d = shape

    def short(*shape):  # products of two such numbers are floats
        return np.float64(rng.standard_normal(shape).astype(np.float32) // 2.0**-20) * 2.0**-20

    A = short(n, d)
    more = () if width is None else (width,)
    x, v = short(d, *more), short(n, *more)
    matrix = ac.Problem(storage(A), np.arange(n) * 1.0, l2=1.0).matrix
    for found, left, right, roundings in (
        (matrix.dot(x), A, x, matrix.dot_depth(x, width or 1)),
        (matrix.tdot(v), A.T, v, matrix.tdot_depth(width or 1)),
    ):
        columns = right.reshape(len(right), -1).T
        exactly = np.array([[math.fsum(row * column) for column in columns] for row in left])
        sizes = np.abs(left) @ np.abs(columns).T
        off = np.abs(found.reshape(len(left), -1) - exactly)
        assert (off <= gamma(roundings) * sizes).all()


@pytest.mark.parametrize("storage", [*exact.STORAGES, "blocks"])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_in_twice_the_precision(storage, weighted):
    """Against fractions, where plain products have no digit left."""
    rng = np.random.default_rng(0)
    n, d = 60, 40
    A, v = rng.standard_normal((n, d)), rng.standard_normal(n)
    v_low = 1e-17 * rng.standard_normal(n) if weighted else np.zeros(n)
    x = rng.standard_normal(d)
    A[:, 0] = -(A[:, 1:] @ x[1:]) / x[0]  # A x is rounding
    A[0] = -(v[1:] @ A[1:]) / v[0]  # and so is A'v
    if storage == "blocks":
        matrix = ac.Problem([(A[:25], v[:25]), (A[25:], v[25:])], l2=1.0).matrix
    else:
        matrix = ac.Problem(storage(A), v, l2=1.0).matrix
    fractions = [[Fraction(t) for t in row] for row in A.tolist()]
    exactly = [sum(a * Fraction(t) for a, t in zip(r, x.tolist(), strict=True)) for r in fractions]
    high, low = matrix.accurate_dot(x)
    sizes = np.abs(A) @ np.abs(x)
    for found, rest, true, size in zip(high, low, exactly, sizes, strict=True):
        assert abs(Fraction(found) + Fraction(rest) - true) <= gamma(d) ** 2 * size
    dual = [Fraction(a) + Fraction(b) for a, b in zip(v.tolist(), v_low.tolist(), strict=True)]
    high, low = matrix.accurate_tdot(v, v_low)
    sizes = np.abs(A).T @ np.abs(v)
    for j in range(d):
        true = sum(row[j] * t for row, t in zip(fractions, dual, strict=True))
        off = abs(Fraction(high[j]) + Fraction(low[j]) - true)
        assert off <= gamma(n) ** 2 * sizes[j]


def test_weights_times_y_are_exact():
    rng = np.random.default_rng(0)
    problem = ac.Problem(np.eye(9), np.arange(9) * 1.0, l2=1.0, sample_weight=rng.random(9))
    v = rng.standard_normal(9)
    high, low = _weighted(problem, v)
    for w, t, a, b in zip(problem.weights, v, high, low, strict=True):
        assert Fraction(w) * Fraction(t) == Fraction(a) + Fraction(b)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("penalty", [{"l2": 1e-2}, {"l1": 1e-2}])
def test_each_of_the_bounds_is_one(name, penalty, offset):
    """By norms, by rows, by accurate products: none is below what is missing, each is sharper."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 5)) + offset
    b = exact.targets(rng, name, (A - offset) @ rng.standard_normal(5))
    problem = ac.Problem(
        A, b, exact.a_loss(name), intercept=True, sample_weight=rng.random(60), **penalty
    )
    r = solved(problem, 1e-12, max_passes=50)
    y, u = problem.feasible_dual(r.y)
    dual = min(problem._dual(y, u), r.primal)
    truth = exact_gap(problem, r.x, r.intercept, r.y).gap - (r.primal - dual)
    at = _Point.of(problem, r.x, r.intercept, y, u, r.primal, dual, None, 1)
    by_norms, by_rows, accurate = at.by_norms(), at.by_rows(), at.accurate()
    assert truth <= accurate and truth <= by_rows and truth <= by_norms
    if offset == 1e6:
        # rows of several classes sum to 0 but for a rounding that no product takes away
        share = 1.0 if problem.loss.blocks else 0.5
        assert accurate <= share * by_rows and by_rows <= by_norms


def test_depth_counts_what_is_lost():
    """A sum that loses a unit at each step is within its depth, and not within a root of it."""
    n = 5000
    A = np.full((n, 1), UNIT)
    A[::64] = 1.0  # at the head of each block of rows: what is added to it is lost
    matrix = ac.Problem(A, np.arange(n) * 1.0, l2=1.0).matrix
    v = np.ones(n)
    lost = abs(matrix.tdot(v)[0] - math.fsum(A[:, 0])) / math.fsum(A[:, 0])
    assert 20 * UNIT < lost <= gamma(matrix.tdot_depth(1))


@pytest.mark.parametrize("number", range(39))
def test_the_exact_checker_agrees_with_mpmath(number):
    problem = exact.problem(number, 7, 3)
    r = solved(problem, 1e-4)
    truth = exact_gap(problem, r.x, r.intercept, r.y)
    P = exact.primal(problem, r.x, r.intercept)
    assert truth.primal >= P and truth.primal <= P + 1e-15 * abs(P) + 1e-300
    if problem.intercept and problem.loss.blocks:
        return
    D = exact.dual(problem, r.y)
    assert D - 2e-15 * abs(D) - 1e-300 <= truth.dual <= D
    assert 0 <= truth.gap - (P - D) <= 1e-15 * (P - D) + mpmath.mpf(10) ** -40 * abs(P)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 100, 1001])
def test_sums_in_twice_the_precision(n):
    """Of numbers that cancel: what the sum is off by stays within what is said."""
    rng = np.random.default_rng(n)
    high = rng.standard_normal(n) * 10.0 ** rng.integers(-12, 12, n)
    high[-1:] = -math.fsum(high[:-1])
    low = high * UNIT * rng.uniform(-1.0, 1.0, n)
    found, off = _sum_twice(high, low)
    exact = sum(map(Fraction, [*high.tolist(), *low.tolist()]), Fraction(0))
    allowed = UNIT * abs(found) + off * float(np.abs(high).sum())
    assert abs(Fraction(found) - exact) <= Fraction(allowed)


def test_columns_of_zeros_loosen_nothing():
    """Nothing is summed in them, though a length of 1 is written down for each."""
    rng = np.random.default_rng(0)
    A = 1e-3 * rng.standard_normal((40, 5))
    b = np.where(rng.standard_normal(40) > 0.0, 1.0, -1.0)
    found = []
    for data in (A, np.c_[A, np.zeros((40, 2))]):
        problem = ac.Problem(data, b, "logistic", l1=1e-5)
        x = np.zeros(problem.d)
        x[:5] = 1.0
        y, u = problem.feasible_dual(problem.loss.derivative(problem.predict(x), b))
        at = _Point.of(problem, x, 0.0, y, u, problem.primal(x), problem.dual(y), None, 1)
        found.append(at.dual_by_rows())
    assert found[0] == pytest.approx(found[1], rel=1e-9) and found[0] > 0.0
