"""Random problems of every kind, and their P and D to 50 digits, by mpmath and naive formulas.

``problem(number)`` depends on the number alone: all losses in turn, all penalties, weights, an
intercept, float32 and float64, all storages.  ``primal`` and ``dual`` take lists of numbers; a dual
point is made feasible in 50 digits, as the formulas say, and evaluated there.
"""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mpf
from scipy import sparse

import adacoord as ac
from adacoord.problem.losses import BLOCK_LOSSES, LOSSES

mpmath.mp.dps = 50
NAMES = (*LOSSES, *BLOCK_LOSSES)
STORAGES = (np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_array)
#: Of losses that have one, not those by default.
PARAMETERS = {"mu": 0.7, "delta": 0.9, "epsilon": 0.13, "q": 0.3, "power": 1.3}


def a_loss(name):
    cls = (LOSSES | BLOCK_LOSSES)[name]
    return cls(PARAMETERS[cls.parameter]) if cls.parameter else cls()


def targets(rng, name, z):
    task = (LOSSES | BLOCK_LOSSES)[name].task
    n = len(z)
    if task == "classification":
        b = np.where(z > 0, 1.0, -1.0)
        b[:2] = 1.0, -1.0
        return b
    if task == "multiclass":
        return (np.arange(n) % int(rng.integers(2, 5))).astype(float)
    if task == "positive":
        return np.exp(np.clip(z, -3, 3))
    return np.floor(np.exp(np.clip(z, -3, 3))) if task == "count" else z


def problem(number, n=None, d=None):
    """The problem of this number."""
    rng = np.random.default_rng([16, number])
    name = NAMES[number % len(NAMES)]
    n = int(rng.integers(5, 61)) if n is None else n
    d = int(rng.integers(1, 31)) if d is None else d
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.choice([0.3, 1.0]))
    z = A @ rng.standard_normal(d) / d**0.5 + 0.3 * rng.standard_normal(n)
    b = targets(rng, name, z)
    A = A * 10.0 ** rng.uniform(-2, 2)
    if rng.random() < 0.3:
        A = A + 10.0 ** rng.uniform(0, 5) * rng.standard_normal(d)
    if name not in ("poisson",) and a_loss(name).task == "regression" and rng.random() < 0.3:
        b = b + 10.0 ** rng.uniform(0, 7)
    A = A.astype(rng.choice([np.float32, np.float64]))
    A = STORAGES[int(rng.integers(4))](A)
    weights = None
    draw = rng.random()
    if draw < 0.2:
        weights = 10.0 ** rng.uniform(-6, 6, n)
    elif draw < 0.4:
        weights = rng.random(n) * (rng.random(n) < 0.7)
        weights[:5] = 1.0
    size = float(np.square(np.asarray(abs(A).sum(axis=1))).mean()) / d + 1e-6
    kind = rng.integers(3)
    return ac.Problem(
        A,
        b,
        a_loss(name),
        l1=0.0 if kind == 0 else size**0.5 * 10.0 ** rng.uniform(-4, 0),
        l2=0.0 if kind == 1 else size * 10.0 ** rng.uniform(-6, 0),
        positive=bool(rng.random() < 0.15 and name not in BLOCK_LOSSES),
        sample_weight=weights,
        intercept=bool(rng.random() < 0.5),
    )


def extended(number):
    """The same with weights and bounds of each column, an offset, or both."""
    rng, p = np.random.default_rng([17, number]), problem(number)
    l1, l2, lower, upper = p.penalty.by_column(p.d)
    l1, l2 = (
        weight * (rng.choice([0.0, 0.3, 1.0, 5.0], p.d) if rng.random() < 0.6 else 1.0)
        for weight in (l1, l2)
    )
    size = 10.0 ** rng.uniform(-3, 1)
    if rng.random() < 0.5:
        lower = np.where(rng.random(p.d) < 0.5, -size * rng.random(p.d), lower)
    if rng.random() < 0.5:
        upper = np.where(rng.random(p.d) < 0.5, size * rng.random(p.d), upper)
    if rng.random() < 0.2:  # where 0 is out of bounds
        lower = np.where(rng.random(p.d) < 0.3, np.minimum(0.1 * size, upper), lower)
    offset = None
    if rng.random() < 0.5:
        largest = 0.3 if p.loss.log_link else 1.0
        offset = 10.0 ** rng.uniform(-3, largest) * rng.standard_normal(p.y_shape)
        if p.loss.task == "regression" and rng.random() < 0.3:
            offset = offset + 10.0 ** rng.uniform(0, 6)
    return ac.Problem(
        p.matrix, p.b, p.loss, l1, l2, lower=lower, upper=upper, offset=offset,
        sample_weight=p.weights, intercept=p.intercept,
    )  # fmt: skip


def rows(problem):
    """The rows of A, and the weights."""
    A = problem.matrix.dense
    w = np.ones(problem.n) if problem.weights is None else problem.weights
    return [[mpf(float(t)) for t in row] for row in A], [mpf(float(t)) for t in w]


def value(name, p, z, b):
    """phi(z), as in a textbook."""
    positive = lambda t: max(t, mpf(0))  # noqa: E731
    r = None if name == "multinomial" else z - b
    match name:
        case "squared":
            return r * r / 2
        case "smooth_hinge":
            m = 1 - b * z
            return mpf(0) if m <= 0 else m - p / 2 if m >= p else m * m / (2 * p)
        case "hinge":
            return positive(1 - b * z)
        case "squared_hinge":
            return positive(1 - b * z) ** 2
        case "logistic":
            return mpmath.log(1 + mpmath.exp(-b * z))
        case "huber":
            return r * r / 2 if abs(r) <= p else p * abs(r) - p * p / 2
        case "epsilon_insensitive":
            return positive(abs(r) - p)
        case "squared_epsilon_insensitive":
            return positive(abs(r) - p) ** 2
        case "absolute":
            return abs(r)
        case "quantile":
            return p * positive(-r) + (1 - p) * positive(r)
        case "poisson":
            return mpmath.exp(z) - b * z
        case "gamma":
            return z + b * mpmath.exp(-z)
        case "tweedie":
            return b * mpmath.exp((1 - p) * z) / (p - 1) + mpmath.exp((2 - p) * z) / (2 - p)
        case "log_cosh":
            return mpmath.log(mpmath.cosh(r))
        case "multinomial":
            return mpmath.log(sum(mpmath.exp(t) for t in z)) - z[int(b)]
    raise KeyError(name)


def xlogx(t):
    return t * mpmath.log(t) if t > 0 else mpf(0)


def conjugate(name, p, v, b):
    """phi*(v), as in a textbook."""
    match name:
        case "squared" | "huber":
            return b * v + v * v / 2
        case "smooth_hinge":
            return b * v + p * v * v / 2
        case "hinge" | "absolute" | "quantile":
            return b * v
        case "squared_hinge":
            return b * v + v * v / 4
        case "logistic":
            return xlogx(-b * v) + xlogx(1 + b * v)
        case "epsilon_insensitive":
            return b * v + p * abs(v)
        case "squared_epsilon_insensitive":
            return b * v + p * abs(v) + v * v / 4
        case "poisson":
            return xlogx(v + b) - (v + b)
        case "gamma":
            return xlogx(1 - v) - (1 - v) * (1 + mpmath.log(b))
        case "tweedie":
            if b == 0:
                return (xlogx(v) - v) / (2 - p)
            slope = lambda t: mpmath.exp((2 - p) * t) - b * mpmath.exp((1 - p) * t) - v  # noqa: E731
            low, high = mpf(-1), mpf(1)
            while slope(low) > 0:
                low *= 2
            while slope(high) < 0:
                high *= 2
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (low, middle) if slope(middle) > 0 else (middle, high)
            return v * low - value(name, p, low, b)
        case "log_cosh":
            return b * v + (xlogx(1 + v) + xlogx(1 - v)) / 2
        case "multinomial":
            return sum(xlogx(t + (k == int(b))) for k, t in enumerate(v))
    raise KeyError(name)


def ends(name, p, b):
    """The domain of phi*."""
    one, zero, inf = mpf(1), mpf(0), mpf("inf")
    match name:
        case "squared" | "squared_epsilon_insensitive":
            return -inf, inf
        case "huber":
            return -p, p
        case "absolute" | "epsilon_insensitive" | "log_cosh":
            return -one, one
        case "quantile":
            return -p, 1 - p
        case "poisson":
            return -b, inf
        case "gamma":
            return -inf, one
        case "tweedie":
            return (-inf if b > 0 else zero), inf
        case "squared_hinge":
            return (-inf, zero) if b > 0 else (zero, inf)
    return (-one, zero) if b > 0 else (zero, one)


def _loss(problem):
    loss = problem.loss
    return loss.name, (mpf(getattr(loss, loss.parameter)) if loss.parameter else None)


def primal(problem, x, c):
    """P(x, c)."""
    A, w = rows(problem)
    name, p = _loss(problem)
    X = [[mpf(float(t)) for t in row] for row in np.reshape(x, (problem.d, -1))]
    K = len(X[0])
    c = [mpf(float(t)) for t in np.broadcast_to(c, (K,))]
    total = mpf(0)
    for a, b, weight in zip(A, problem.b, w, strict=True):
        z = [sum(s * row[k] for s, row in zip(a, X, strict=True)) + c[k] for k in range(K)]
        if weight:
            total += weight * value(name, p, z if name == "multinomial" else z[0], mpf(float(b)))
    entries = [t for row in X for t in row]
    penalty = problem.penalty
    return (
        total / problem.n
        + mpf(penalty.l1) * sum(map(abs, entries))
        + mpf(penalty.l2) / 2 * sum(t * t for t in entries)
    )


def dual(problem, y):
    """D of the feasible point next to y (without an intercept for multinomial)."""
    A, w = rows(problem)
    name, p = _loss(problem)
    n, d = problem.n, problem.d
    Y = [[mpf(float(t)) for t in row] for row in np.reshape(y, (n, -1))]
    K = len(Y[0])
    for row, b in zip(Y, problem.b, strict=True):
        if name == "multinomial":
            assert not problem.intercept
            own = int(b)
            row[own] = mpf(0)
            row[:] = [max(t, mpf(0)) for t in row]
            most = max(sum(row), mpf(1))
            row[:] = [t / most for t in row]
            row[own] = -sum(row)
        else:
            low, high = ends(name, p, mpf(float(b)))
            row[0] = min(max(row[0], low), high)
    if problem.intercept:
        up = sum(t * row[0] for t, row in zip(w, Y, strict=True) if row[0] > 0)
        down = -sum(t * row[0] for t, row in zip(w, Y, strict=True) if row[0] < 0)
        for row in Y:
            if up > down and row[0] > 0:
                row[0] *= down / up
            if down > up and row[0] < 0:
                row[0] *= up / down
    u = [
        sum(t * row[k] * a[j] for t, row, a in zip(w, Y, A, strict=True)) / n
        for j in range(d)
        for k in range(K)
    ]
    penalty = problem.penalty
    l1, l2 = mpf(penalty.l1), mpf(penalty.l2)
    pulls = [-t if penalty.positive else abs(t) for t in u]
    if l2 == 0 and max(pulls) > l1:
        share = l1 / max(pulls)
        Y = [[share * t for t in row] for row in Y]
    total = mpf(0)
    for row, b, weight in zip(Y, problem.b, w, strict=True):
        if weight:
            v = row if name == "multinomial" else row[0]
            total += weight * conjugate(name, p, v, mpf(float(b)))
    value = -total / n
    if l2 > 0:
        value -= sum(max(t - l1, mpf(0)) ** 2 for t in pulls) / (2 * l2)
    return value
