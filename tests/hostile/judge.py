r"""An outside judge of results: P, D and their rounding, in long double, from the formulas alone.

Nothing of the package is imported here.  With n rows, weights w and an optional intercept c,

    P(x, c) = (1/n) sum_i w_i phi_i(a_i.x + c) + l1 |x|_1 + l2/2 |x|^2
    D(y)    = -(1/n) sum_i w_i phi_i*(y_i) - g*(-u),      u = (1/n) sum_i w_i y_i a_i

and D(y) <= P(x, c) for all x, c and all feasible y: y_i in the domain of phi_i*, sum_i w_i y_i = 0
where there is an intercept, |u_j| <= l1 where l2 = 0 (-u_j <= l1 where x >= 0).  No y of float64
numbers meets the last two to the last digit, so :func:`dual` evaluates D at a feasible point next
to y, which it makes in long double by scaling.  A y that is far from feasible then has a D far
below what was claimed of it.

``primal_rounding`` and ``dual_rounding`` bound what an evaluation in float64 may be off by: eps
times the sum of all |terms|, those inside z = A x + c and inside u included.  What the judge
itself is off by is ``OWN`` of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Real = np.longdouble
EPS = float(np.finfo(np.float64).eps)
#: The judge's rounding in units of float64's, twice.
OWN = 2.0 * float(np.finfo(Real).eps) / EPS
#: The smallest number of float64: what a product that underflows may lose.
TINY = Real(2) ** -1074
#: |log eps|: moving an entropy's argument by eps near 0 costs eps times this.
ENTROPY = 40.0


@dataclass(frozen=True)
class Instance:
    """A problem as the formulas have it: numbers in long double, A dense."""

    A: np.ndarray
    b: np.ndarray
    loss: str
    parameter: float | None
    l1: float
    l2: float
    positive: bool
    weights: np.ndarray
    intercept: bool

    @classmethod
    def of(
        cls,
        A,
        b,
        loss="squared",
        parameter=None,
        l1=0.0,
        l2=0.0,
        positive=False,
        weights=None,
        intercept=False,
    ) -> Instance:
        A = np.asarray(A.toarray() if hasattr(A, "toarray") else A).astype(Real)
        b = np.asarray(b)
        w = np.ones(b.size) if weights is None else np.asarray(weights)
        b = b.astype(np.intp) if loss == "multinomial" else b.astype(Real)
        return cls(A, b, loss, parameter, Real(l1), Real(l2), positive, w.astype(Real), intercept)

    @property
    def n(self) -> int:
        return self.A.shape[0]

    @property
    def x_shape(self) -> tuple[int, ...]:
        """(d,), or (d, K) with K classes."""
        classes = (int(self.b.max()) + 1,) if self.loss == "multinomial" else ()
        return (self.A.shape[1], *classes)

    @property
    def no_intercept(self):
        return np.zeros(self.x_shape[1:], Real) if self.loss == "multinomial" else Real(0)


# ---- the losses ------------------------------------------------------------------------------


def xlogx(t):
    return np.where(t > 0, t * np.log(np.where(t > 0, t, 1)), 0)


def loss(name: str, parameter, z, b):
    """phi(z), by its textbook formula."""
    positive_part = lambda t: np.maximum(t, 0)  # noqa: E731
    match name:
        case "squared":
            return (z - b) ** 2 / 2
        case "huber":
            r, delta = np.abs(z - b), Real(parameter)
            return np.where(r <= delta, r * r / 2, delta * r - delta * delta / 2)
        case "absolute":
            return np.abs(z - b)
        case "quantile":
            q = Real(parameter)
            return q * positive_part(b - z) + (1 - q) * positive_part(z - b)
        case "epsilon_insensitive":
            return positive_part(np.abs(z - b) - Real(parameter))
        case "squared_epsilon_insensitive":
            return positive_part(np.abs(z - b) - Real(parameter)) ** 2
        case "hinge":
            return positive_part(1 - b * z)
        case "squared_hinge":
            return positive_part(1 - b * z) ** 2
        case "smooth_hinge":
            m, mu = 1 - b * z, Real(parameter)
            return np.where(m <= 0, 0, np.where(m >= mu, m - mu / 2, m * m / (2 * mu)))
        case "logistic":
            return np.logaddexp(0, -b * z)
        case "poisson":
            return np.exp(z) - b * z
        case "multinomial":
            rows = np.arange(b.size)
            e = z - z[rows, b][:, None]
            e[rows, b] = -np.inf  # the class itself: exp(0) = 1, kept apart for its digits
            top = np.maximum(e.max(axis=1), 0)
            rest = np.exp(e - top[:, None]).sum(axis=1)
            return np.where(top > 0, top + np.log(rest + np.exp(-top)), np.log1p(rest))
    raise ValueError(f"loss={name!r}: the judge does not know it")


def domain(name: str, parameter, b):
    """The interval of v on which phi*(v) is finite (not for multinomial)."""
    ends = {
        "squared": (-np.inf, np.inf),
        "squared_epsilon_insensitive": (-np.inf, np.inf),
        "absolute": (-1, 1),
        "epsilon_insensitive": (-1, 1),
        "hinge": (-1, 0),
        "smooth_hinge": (-1, 0),
        "logistic": (-1, 0),
        "squared_hinge": (-np.inf, 0),
    }
    if name == "huber":
        lo, hi = -Real(parameter), Real(parameter)
    elif name == "quantile":
        lo, hi = -Real(parameter), 1 - Real(parameter)
    elif name == "poisson":
        return -b, np.full(b.shape, np.inf, Real)
    else:
        lo, hi = (Real(end) for end in ends[name])
    if name in ("hinge", "smooth_hinge", "logistic", "squared_hinge"):  # mirrored for b = -1
        return np.where(b > 0, lo, -hi), np.where(b > 0, hi, -lo)
    return np.full(b.shape, lo), np.full(b.shape, hi)


def conjugate_terms(name: str, parameter, v, b) -> list[np.ndarray]:
    """The terms whose sum is phi*(v), for v in the domain."""
    match name:
        case "squared" | "huber":
            return [b * v, v * v / 2]
        case "absolute" | "quantile" | "hinge":
            return [b * v]
        case "epsilon_insensitive":
            return [b * v, Real(parameter) * np.abs(v)]
        case "squared_epsilon_insensitive":
            return [b * v, Real(parameter) * np.abs(v), v * v / 4]
        case "squared_hinge":
            return [b * v, v * v / 4]
        case "smooth_hinge":
            return [b * v, Real(parameter) * v * v / 2]
        case "logistic":
            q = -b * v
            return [xlogx(q), (1 - q) * np.log1p(-np.where(q < 1, q, 0)) * (q < 1)]
        case "poisson":
            m = v + b
            return [xlogx(m), -m]
        case "multinomial":
            rows = np.arange(b.size)
            own, p = v[rows, b], v.copy()
            p[rows, b] = 0
            inside = own > -1
            return [xlogx(p).sum(axis=1), (1 + own) * np.log1p(np.where(inside, own, 0)) * inside]
    raise ValueError(f"loss={name!r}: the judge does not know it")


# ---- P ---------------------------------------------------------------------------------------


def _mean(problem: Instance, values):
    kept = problem.weights > 0  # 0 * inf is not 0
    return np.sum(problem.weights[kept] * values[kept]) / problem.n


def penalty(problem: Instance, x):
    if problem.positive and np.any(x < 0):
        return Real(np.inf)
    return problem.l1 * np.abs(x).sum() + problem.l2 / 2 * np.square(x).sum()


def primal(problem: Instance, x, c=0):
    """P(x, c)."""
    x, c = np.asarray(x, Real), np.asarray(c, Real)
    with np.errstate(over="ignore", under="ignore"):
        values = loss(problem.loss, problem.parameter, problem.A @ x + c, problem.b)
        return _mean(problem, values) + penalty(problem, x)


def _steps(count: int) -> float:
    """eps times a modest constant: what a sum of so many terms is off by, in |terms|."""
    return EPS * (8.0 + 2.0 * count**0.5)


def primal_rounding(problem: Instance, x, c=0):
    """What P(x, c) in float64 may be off by.

    phi is convex: over an interval around z it departs the most from phi(z) at one of the ends.
    """
    x, c = np.asarray(x, Real), np.asarray(c, Real)
    n, d = problem.A.shape
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        z = problem.A @ x + c
        blur = _steps(d) * (np.abs(problem.A) @ np.abs(x) + np.abs(c)) + d * TINY
        if problem.loss == "multinomial":  # differences z_k - z_b
            blur = np.broadcast_to(2 * blur.max(axis=1, keepdims=True), z.shape)
            ends = []
            for sign in (-1, 1):
                moved = z + sign * blur
                rows = np.arange(n)
                moved[rows, problem.b] = (z - sign * blur)[rows, problem.b]
                ends.append(moved)
        else:
            blur = blur + EPS * (np.abs(z) + np.abs(problem.b))
            ends = [z - blur, z + blur]
        value = loss(problem.loss, problem.parameter, z, problem.b)
        off = np.maximum(
            *(np.abs(loss(problem.loss, problem.parameter, end, problem.b) - value) for end in ends)
        )
        size = np.abs(value)
        if problem.loss == "poisson":
            size = np.exp(z) + np.abs(problem.b * z)
        terms = _mean(problem, size) + np.abs(penalty(problem, np.abs(x)))
        total = _mean(problem, off) + _steps(n + d) * terms
        total += TINY * (n + d + problem.weights.sum())
        return total if total < np.inf else Real(np.inf)  # inf - inf: P itself is infinite


# ---- D ---------------------------------------------------------------------------------------


class Dual(NamedTuple):
    """D at the feasible point ``y`` made from the one asked about, and what was done to that.

    ``outside`` is how far the domain was left, ``imbalance`` is |sum w y| / sum |w y|, ``scaled``
    the factor that the constraint of l2 = 0 asked for.
    """

    value: np.longdouble
    y: np.ndarray
    outside: float
    imbalance: float
    scaled: float


def average(problem: Instance, y):
    """u = (1/n) sum_i w_i y_i a_i."""
    return problem.A.T @ ((problem.weights * y.T).T) / problem.n


def conjugate_penalty(problem: Instance, size):
    """g*, summed over |v_j| = ``size`` (or v_j where x >= 0), for l2 > 0."""
    return np.square(np.maximum(size - problem.l1, 0)).sum() / (2 * problem.l2)


def dual(problem: Instance, y) -> Dual:
    """D at a feasible point next to ``y``."""
    y = np.asarray(y, Real)
    with np.errstate(over="ignore", under="ignore"):
        inside = _into_domain(problem, y)
        outside = float(np.max(np.abs(inside - y)))
        imbalance = 0.0
        if problem.intercept:
            inside, imbalance = _balanced(problem, inside)
        u, factor = average(problem, inside), Real(1)
        if problem.l2 == 0:
            largest = np.max(_size(problem, u))
            if largest > problem.l1:
                factor = problem.l1 / largest
                inside = inside * factor  # keeps the balance, and the domain, which holds 0
        terms = conjugate_terms(problem.loss, problem.parameter, inside, problem.b)
        value = -sum(_mean(problem, term) for term in terms)
        if problem.l2 > 0:
            value -= conjugate_penalty(problem, _size(problem, u))
    return Dual(value, inside, outside, imbalance, float(factor))


def _size(problem: Instance, u):
    return -u if problem.positive else np.abs(u)


def _into_domain(problem: Instance, y):
    if problem.loss != "multinomial":
        return np.clip(y, *domain(problem.loss, problem.parameter, problem.b))
    rows = np.arange(problem.n)
    p = np.clip(y, 0, 1)
    p[rows, problem.b] = 0
    p /= np.maximum(p.sum(axis=1, keepdims=True), 1)
    p[rows, problem.b] = -p.sum(axis=1)
    return p


def _balanced(problem: Instance, y):
    """sum_i w_i y_i = 0 by scaling the heavier sign (of each class, for multinomial)."""
    if problem.loss == "multinomial":
        return _balanced_classes(problem, y)
    moved, imbalance = y, None
    for _ in range(3):  # the first sum is of numbers that are rounded, too
        weighted = problem.weights * moved
        up, down = np.sum(weighted[weighted > 0]), -np.sum(weighted[weighted < 0])
        if imbalance is None:
            imbalance = float(np.abs(up - down) / (up + down)) if up + down > 0 else 0.0
        if up > down:
            moved = np.where(moved > 0, moved * (down / up), moved)
        elif down > up:
            moved = np.where(moved < 0, moved * (up / down), moved)
    return moved, imbalance


def _balanced_classes(problem: Instance, y):
    """Rows of class j send sum_k y_ik, k != j, to the other classes: what goes in must go out.

    The larger of what goes into a class and what comes out of it is scaled down to the other,
    class by class, over and over: all changes are relative, so classes of little weight come to
    no harm.  What is left in the end is added: a class that still takes in too much sends more, to
    those that take in less; where a row would send more than 1 in total, all of y is scaled.
    """
    rows, b, w = np.arange(problem.n), problem.b, problem.weights
    K = y.shape[1]
    send = w[:, None] * y
    imbalance = float(np.abs(send.sum(axis=0)).max() / (np.abs(send).sum() or 1))
    moved = y.copy()
    moved[rows, b] = 0
    members = [b == k for k in range(K)]
    for _ in range(40):
        worst = Real(0)
        for k in range(K):
            inflow = np.sum(w * moved[:, k])
            out = np.sum(w[members[k], None] * moved[members[k]])
            if inflow > out:
                moved[:, k] *= out / inflow
            elif out > inflow:
                moved[members[k]] *= inflow / out
            worst = max(worst, np.abs(inflow - out) / (max(inflow, out) or 1))
        if worst < 4 * np.finfo(Real).eps:
            break
    moved[rows, b] = -moved.sum(axis=1)
    weight = np.array([w[members[k]].sum() or 1 for k in range(K)])
    for _ in range(2):
        flow = (w[:, None] * moved).sum(axis=0)
        excess, missing = np.maximum(flow, 0), np.maximum(-flow, 0)
        if excess.sum() == 0 or missing.sum() == 0:
            break
        moved += (excess / weight)[b][:, None] * (missing / missing.sum())
        moved[rows, b] = 0
        moved[rows, b] = -moved.sum(axis=1)
    most = -moved[rows, b].min()
    return (moved / most if most > 1 else moved), imbalance


def dual_rounding(problem: Instance, y):
    """What D(y) in float64 may be off by, for a y balanced and scaled as well as float64 can."""
    y = np.asarray(y, Real)
    n = problem.n
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        inside = _into_domain(problem, y)
        terms = conjugate_terms(problem.loss, problem.parameter, inside, problem.b)
        size = sum(_mean(problem, np.abs(term)) for term in terms)
        if problem.intercept and problem.loss in ("logistic", "poisson", "multinomial"):
            size += ENTROPY * _mean(problem, np.abs(inside).reshape(n, -1).sum(axis=1))
        steps, under = _steps(n), TINY * (n + problem.weights.sum())
        absolute = np.abs(problem.A).T @ np.abs((problem.weights * inside.T).T) / n
        u = average(problem, inside)
        blur = steps * absolute + under
        if problem.intercept:  # what is left of sum w y moves u by as much times mean |a|
            blur = 2 * blur
        off = steps * size + under
        if problem.l2 > 0:
            exact = conjugate_penalty(problem, _size(problem, u))
            off += conjugate_penalty(problem, _size(problem, u) + blur) - exact
            off += _steps(problem.A.shape[1]) * exact
        else:
            off += size * min(Real(1), np.max(blur) / problem.l1)
        return off
