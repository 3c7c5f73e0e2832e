"""The laws of :mod:`.test_properties` for weights and bounds of columns, offsets and groups.

``exact.extended`` makes problems with the first, all losses in turn, and ``grouped`` those with
groups; 20 of each, and 220 where slow tests run.
"""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mpf
from scipy import sparse

import adacoord as ac
from adacoord.api.rigorous import exact_gap
from adacoord.problem.rounding import allowance
from hostile import exact
from hostile.test_properties import EXAMPLES, dense, law, same, solved

#: Losses that groups take.
SMOOTH = [name for name in exact.LOSSES if exact.a_loss(name).gamma > 0.0]


def grouped(number):
    """A problem with groups: some of it the lasso's, some of it ridge's, an offset now and then."""
    rng = np.random.default_rng([18, number])
    name = SMOOTH[number % len(SMOOTH)]
    n, d = int(rng.integers(5, 25)), int(rng.integers(2, 10))
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.choice([0.4, 1.0]))
    z = A @ rng.standard_normal(d) / d**0.5 + 0.3 * rng.standard_normal(n)
    size = 10.0 ** rng.uniform(-2, 2)
    if rng.random() < 0.3:
        A = A + 10.0 ** rng.uniform(0, 4)
    groups = np.sort(rng.integers(0, max(d // 2, 1), d))
    return {
        "A": A * size,
        "b": exact.targets(rng, name, z),
        "loss": exact.a_loss(name),
        "l1": size * 10.0 ** rng.uniform(-4, -1) * (rng.random() < 0.4),
        "l2": size**2 * 10.0 ** rng.uniform(-6, -1) * (rng.random() < 0.4),
        "l21": size * 10.0 ** rng.uniform(-4, 0),
        "groups": groups,
        "group_weights": rng.choice([0.3, 1.0, 4.0], np.unique(groups).size),
        "offset": rng.standard_normal(n) if rng.random() < 0.3 else None,
        "sample_weight": rng.exponential(1.0, n) if rng.random() < 0.3 else None,
        "intercept": bool(rng.random() < 0.5),
    }


def group_value(given, x, c):
    """P(x, c) in 50 digits."""
    loss, n = given["loss"], len(given["b"])
    p = mpf(getattr(loss, loss.parameter)) if loss.parameter else None
    offset = np.zeros(n) if given["offset"] is None else given["offset"]
    weights = np.ones(n) if given["sample_weight"] is None else given["sample_weight"]
    x, total = [mpf(float(t)) for t in x], mpf(0)
    for a, b, o, w in zip(given["A"], given["b"], offset, weights, strict=True):
        z = (
            sum(mpf(float(s)) * t for s, t in zip(a, x, strict=True))
            + mpf(float(c))
            + mpf(float(o))
        )
        total += mpf(float(w)) * exact.value(loss.name, p, z, mpf(float(b)))
    total /= n
    for k, label in enumerate(np.unique(given["groups"])):
        norm = mpmath.sqrt(sum(x[j] ** 2 for j in np.flatnonzero(given["groups"] == label)))
        total += mpf(given["l21"]) * mpf(float(given["group_weights"][k])) * norm
    return total + sum(mpf(given["l1"]) * abs(t) + mpf(given["l2"]) / 2 * t * t for t in x)


@EXAMPLES
def test_gap_of_groups_is_no_less_than_what_is_missing(examples):
    """P - P* in 50 digits, P* by the best point that is known."""

    @law(examples)
    def _(number):
        given = grouped(number)
        problem = ac.Problem(**given)
        best = solved(problem, 1e-12)
        least = group_value(given, best.x, best.intercept)
        for tol in (1e-1, 1e-4):
            r = solved(problem, tol)
            assert r.gap >= group_value(given, r.x, r.intercept) - least
            assert r.dual <= least
        # and P itself is what is said of it
        assert abs(least - mpf(best.primal)) <= mpf(best.gap) + mpf(2) ** -53 * abs(least)


def values(problem, r):
    """(P, D, rounding) of the point of a result, by who judges it."""
    y, u = problem.feasible_dual(r.y)
    D = problem._dual(y, u) - problem.penalty.box_cost(r.x, u)
    P = problem.primal(r.x, r.intercept)
    hidden = allowance(problem, r.x, r.intercept, y, u, P, min(P, D))
    # the repair of y rounds it, which the box of columns without a penalty multiplies
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    rounded = 2.0**-51 * (np.abs(dense(problem)).T @ (w * np.abs(y).T).T) / problem.n
    away, penalty = u + np.copysign(rounded, u), problem.penalty
    hidden += abs(penalty.conjugate(-away) - penalty.conjugate(-u))
    hidden += penalty.box_cost(r.x, rounded) + penalty.box_cost(r.x, -rounded)
    # P as evaluated may be above what it is, which an allowance need not hold
    z = problem.predict(r.x, r.intercept)
    terms = (np.abs(dense(problem)) @ np.abs(r.x)).reshape(z.shape) + np.abs(z - r.intercept)
    if problem.offset is not None:
        terms += np.abs(problem.offset)
    slopes = np.abs(problem.loss.derivative(z, problem.b)) * terms
    hidden += (
        2.0**-53 * (problem.d + 3) * float(w @ slopes.reshape(problem.n, -1).sum(1)) / problem.n
    )
    return P, D, hidden + 1e-13 * max(abs(P), abs(D))  # weights and penalties are rounded, too


def made(problem, rows=slice(None), columns=slice(None), storage=np.ascontiguousarray):
    """The problem with its rows and columns in another order, or stored otherwise."""
    l1, l2, lower, upper = (part[columns] for part in problem.penalty.by_column(problem.d))
    o, w = problem.offset, problem.weights
    return ac.Problem(
        storage(dense(problem)[rows][:, columns]), problem.b[rows], problem.loss, l1, l2,
        lower=lower, upper=upper, offset=None if o is None else o[rows],
        sample_weight=None if w is None else w[rows], intercept=problem.intercept,
    )  # fmt: skip


@EXAMPLES
def test_order_and_storage_of_extended_problems(examples):
    @law(examples)
    def _(number):
        problem, rng = exact.extended(number), np.random.default_rng(number)
        if not problem.has_certificate:
            return
        rows, columns = rng.permutation(problem.n), rng.permutation(problem.d)
        r = solved(problem, 1e-4)
        moved = made(problem, rows, columns)
        there = ac.Result(**{**vars(r), "x": r.x[columns], "y": r.y[rows]})
        same(values(problem, r), values(moved, there))
        same(values(problem, r), values(made(problem, storage=sparse.csr_array), r))
        other = solved(moved, 1e-4)
        within = other.box is None or np.all(np.abs(r.x[columns].T) <= other.box.ravel())
        if within:  # columns without a penalty are proved of a box
            assert other.primal - r.primal <= other.gap * (1 + 1e-9)


@EXAMPLES
def test_exact_gap_of_extended_problems(examples):
    """What is reported is no less than P - D in exact arithmetic, near the optimum and farther."""

    @law(examples)
    def _(number):
        problem = exact.extended(number)
        if not problem.has_certificate:
            return
        for tol in (1e-2, 1e-9):
            r = solved(problem, tol)
            truth = exact_gap(problem, r.x, r.intercept, r.y)
            assert r.gap >= truth.gap and r.dual <= truth.primal


@EXAMPLES
def test_weights_are_repeats_of_extended_problems(examples):
    @law(examples)
    def _(number):
        problem = exact.extended(number)
        if not problem.has_certificate:
            return
        times = np.random.default_rng(number).integers(1, 4, problem.n)
        factor = problem.n / times.sum()
        l1, l2, lower, upper = problem.penalty.by_column(problem.d)
        given = {"lower": lower, "upper": upper, "intercept": problem.intercept}
        A, o = dense(problem), problem.offset
        weighted = ac.Problem(
            A, problem.b, problem.loss, l1, l2, offset=o, sample_weight=times.astype(float), **given
        )
        repeated = ac.Problem(
            np.repeat(A, times, axis=0), np.repeat(problem.b, times), problem.loss, factor * l1,
            factor * l2, offset=None if o is None else np.repeat(o, times, axis=0), **given,
        )  # fmt: skip
        r = solved(weighted, 1e-4)
        P, _, hidden = values(weighted, r)
        there = repeated.primal(r.x, r.intercept)
        assert abs(factor * P - there) <= hidden + 1e-12 * abs(P)
        # nor does the one know of anything better than the other
        other = solved(repeated, 1e-4)
        if other.box is None or np.all(np.abs(r.x.T) <= other.box.ravel()):
            assert there - other.primal >= -other.gap * (1 + 1e-9)
