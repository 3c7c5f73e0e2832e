"""Points near the optimum by means that share nothing with the package: SciPy, in good units.

Any (x, c) bounds P* from above; :func:`near_optimum` finds good ones where SciPy can: features
are centred where there is an intercept, and columns scaled to length 1, all in long double, so
that offsets and units are out of the way.

* differentiable losses: L-BFGS-B on (p, m) >= 0, x = p - m where there is an l1 or a sign, then
  for l2 alone Newton steps with slopes in long double;
* kinked losses with l2 = 0: a linear program (HiGHS);
* kinked losses with l2 > 0: L-BFGS-B on the dual, a box.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import optimize
from scipy.special import expit

from hostile.cases import KINKED
from hostile.judge import Instance, Real, domain, primal


def near_optimum(problem: Instance, x0, c0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Points (x, c) in long double, the better the nearer to the optimum."""
    shift = np.zeros(problem.A.shape[1], Real)
    if problem.intercept:
        w = problem.weights
        shift = (w @ problem.A) / w.sum()
    A = problem.A - shift
    length = np.sqrt(np.square(A).max(axis=0))
    length = np.where(length > 0, length, 1)
    A = A / length
    units = Units(problem, A, length)
    start = (np.asarray(x0, Real).T * length).T, np.asarray(c0, Real) + shift @ np.asarray(x0, Real)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if problem.loss not in KINKED:
                found = smooth(units, *start)
            elif problem.l2 == 0:
                found = linear_program(units)
            else:
                found = box(units)
        except (ValueError, OverflowError, np.linalg.LinAlgError):
            found = []  # beyond SciPy; the caller has other points
    points = []
    for x, c in found:
        x = (np.asarray(x, Real).T / length).T
        if problem.positive:
            x = np.maximum(x, 0)
        points.append((x, np.asarray(c, Real) - shift @ x if problem.intercept else c))
    return points


class Units:
    """The problem in good units: sum_i w_i phi_i/n is divided by the size of its weights."""

    def __init__(self, problem: Instance, A, length):
        self.problem, self.A, self.length = problem, A, length
        self.n, self.d = A.shape
        self.total = problem.weights.sum() / self.n
        self.share = problem.weights / problem.weights.sum()
        self.l1 = problem.l1 / length / self.total
        self.l2 = problem.l2 / length**2 / self.total

    def value_and_slopes(self, x, c):
        """Mean loss and its slopes in z, in long double."""
        p = self.problem
        z = self.A @ x + c
        value = np.sum(self.share * _loss(p, z))
        return value, (self.share * slopes(p, z).T).T


def _loss(problem, z):
    from hostile.judge import loss

    return loss(problem.loss, problem.parameter, z, problem.b)


def slopes(problem: Instance, z):
    """phi'(z) of the differentiable losses."""
    b, name = problem.b, problem.loss
    if name == "squared":
        return z - b
    if name == "huber":
        return np.clip(z - b, -Real(problem.parameter), Real(problem.parameter))
    if name == "squared_epsilon_insensitive":
        return 2 * np.sign(z - b) * np.maximum(np.abs(z - b) - Real(problem.parameter), 0)
    if name == "squared_hinge":
        return -2 * b * np.maximum(1 - b * z, 0)
    if name == "smooth_hinge":
        return -b * np.clip((1 - b * z) / Real(problem.parameter), 0, 1)
    if name == "logistic":
        return -b / (1 + np.exp(b * z))
    if name == "poisson":
        return np.exp(z) - b
    e = np.exp(z - z.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    e[np.arange(b.size), b] -= 1
    return e


def curvatures(problem: Instance, z):
    """phi''(z), one number a row."""
    b, name = problem.b, problem.loss
    if name == "squared":
        return np.ones_like(z)
    if name == "huber":
        return (np.abs(z - b) <= Real(problem.parameter)) * Real(1)
    if name == "squared_epsilon_insensitive":
        return 2 * (np.abs(z - b) > Real(problem.parameter)) * Real(1)
    if name == "squared_hinge":
        return 2 * (b * z < 1) * Real(1)
    if name == "smooth_hinge":
        m = 1 - b * z
        return ((m > 0) & (m < problem.parameter)) / Real(problem.parameter)
    if name == "logistic":
        s = expit(np.asarray(b * z, float))
        return Real(1) * s * (1 - s)
    return np.exp(z)


def smooth(units: Units, x0, c0):
    """L-BFGS-B from x = 0 and the start, and Newton's method where the penalty is l2 alone."""
    p = units.problem
    shape, classes = p.x_shape, p.x_shape[1:]
    split = bool(np.any(units.l1 > 0)) and not p.positive
    size = int(np.prod(shape))
    tail = int(np.prod(classes)) if p.intercept else 0
    l1 = np.broadcast_to(units.l1.reshape((-1,) + (1,) * len(classes)), shape)
    l2 = np.broadcast_to(units.l2.reshape((-1,) + (1,) * len(classes)), shape)

    def unpack(v):
        v = np.asarray(v, Real)
        x = v[:size] - v[size : 2 * size] if split else v[:size]
        c = v[-tail:].reshape(classes) if tail else p.no_intercept
        return x.reshape(shape), c

    def objective(v):
        x, c = unpack(v)
        value, s = units.value_and_slopes(x, c)
        total = value + np.sum(l1 * np.abs(x)) + np.sum(l2 * x * x) / 2
        g = (units.A.T @ s + l2 * x).ravel()
        g = np.concatenate([g + l1.ravel(), l1.ravel() - g] if split else [g + l1.ravel()])
        if tail:
            g = np.concatenate([g, np.atleast_1d(s.sum(axis=0)).ravel()])
        return float(total / scale), np.asarray(g / scale, float)

    out = []
    for x, c in ((np.zeros(shape, Real), p.no_intercept), (x0, c0)):
        x = np.asarray(x, Real)
        parts = [np.maximum(x, 0).ravel(), np.maximum(-x, 0).ravel()] if split else [x.ravel()]
        if tail:
            parts.append(np.atleast_1d(c).ravel())
        v = np.asarray(np.concatenate(parts), float)
        scale = Real(1)
        first = objective(v)[0]
        if not np.isfinite(first):
            continue
        scale = Real(abs(first)) or Real(1)
        bounded = split or p.positive
        bounds = [(0, None) if bounded else (None, None)] * (v.size - tail)
        bounds += [(None, None)] * tail
        got = optimize.minimize(
            objective,
            v,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 150, "maxfun": 200, "maxcor": 20, "ftol": 1e-16, "gtol": 1e-14},
        )
        out.append(unpack(got.x))
    if not classes and not np.any(l1 > 0) and not p.positive:
        out += [newton(units, *point) for point in out]
    return out


def newton(units: Units, x, c):
    """Newton's method, slopes in long double, halved steps; refined until nothing changes."""
    p = units.problem

    def value(x, c):
        return units.value_and_slopes(x, c)[0] + np.sum(units.l2 * x * x) / 2

    A1 = np.column_stack([units.A, np.ones(units.n)]) if p.intercept else units.A
    l2 = np.append(units.l2, 0) if p.intercept else units.l2
    v = np.append(x, c) if p.intercept else x.copy()

    def at(v):
        return (v[:-1], v[-1]) if p.intercept else (v, Real(0))

    best = value(*at(v))
    for _ in range(40):
        _, s = units.value_and_slopes(*at(v))
        g = A1.T @ s + l2 * v
        h = units.share * curvatures(p, A1 @ v)
        H = np.asarray((A1.T * h) @ A1 + np.diag(l2), float)
        if not (np.isfinite(H).all() and np.isfinite(g).all()):  # LAPACK never ends on those
            break
        diagonal = np.sqrt(np.maximum(np.diag(H), 1e-300))
        scaled = H / diagonal / diagonal[:, None]
        scaled[np.diag_indices_from(scaled)] += 1e-15
        step = np.linalg.lstsq(scaled, np.asarray(g / diagonal, float), rcond=None)[0] / diagonal
        t, moved = Real(1), False
        for _ in range(30):
            new = value(*at(v - t * step))
            if new < best:
                v, best, moved = v - t * step, new, True
                break
            t /= 2
        if not moved:
            break
    return at(v)


def linear_program(units: Units):
    """Kinked losses with l1 alone: variables (p, m, c, s), s_i >= the loss of row i."""
    p, A = units.problem, np.asarray(units.A, float)
    n, d = A.shape
    b = np.asarray(p.b, float)
    spread = 1.0
    middle = 0.0
    if p.loss != "hinge":
        middle = float(np.median(p.b)) if p.intercept else 0.0
        b = np.asarray(p.b - Real(middle), float)
        spread = float(np.abs(b).max()) or 1.0
        b = b / spread
    epsilon = (p.parameter or 0.0) / spread if p.loss == "epsilon_insensitive" else 0.0
    up, down = 1.0, 1.0  # prices of z - b and of b - z
    if p.loss == "quantile":
        up, down = 1 - p.parameter, p.parameter
    columns = [A] if p.positive else [A, -A]
    if p.intercept:
        columns.append(np.ones((n, 1)))
    Z = np.hstack(columns)
    eye = np.eye(n)
    share = np.asarray(units.share, float)
    if p.loss == "hinge":
        A_ub, b_ub = np.hstack([-b[:, None] * Z, -eye]), -np.ones(n)
    else:
        A_ub = np.vstack([np.hstack([up * Z, -eye]), np.hstack([-down * Z, -eye])])
        b_ub = np.concatenate([up * (b + epsilon), -down * (b - epsilon)])
    l1 = np.asarray(units.l1, float)
    cost = np.concatenate([l1] * (1 if p.positive else 2) + [np.zeros(int(p.intercept)), share])
    bounds = [(0, None)] * (d * (1 if p.positive else 2)) + [(None, None)] * p.intercept
    bounds += [(0, None)] * n
    got = optimize.linprog(
        cost, A_ub, b_ub, bounds=bounds, method="highs", options={"time_limit": 5.0}
    )
    if got.x is None:
        return []
    x = got.x[:d] if p.positive else got.x[:d] - got.x[d : 2 * d]
    c = got.x[d * (1 if p.positive else 2)] if p.intercept else 0.0
    return [(Real(spread) * x, Real(middle) + Real(spread) * c)]


def box(units: Units):
    """Kinked losses with l2: the dual is a concave function on a box.

    With an intercept there is the constraint s = sum_i w_i y_i = 0: an augmented Lagrangian,
    whose multiplier is c.  Given x, the best c is at a kink of one of the rows.
    """
    p, n = units.problem, units.n
    lo, hi = domain(p.loss, p.parameter, p.b)
    middle = np.median(p.b) if p.intercept and p.loss != "hinge" else Real(0)
    b = p.b - middle
    epsilon = Real(p.parameter) if p.loss == "epsilon_insensitive" else Real(0)
    lower, upper = (lo, hi) if epsilon == 0 else (np.zeros(2 * n), np.concatenate([hi, -lo]))
    scale = Real(np.max(units.share * (np.abs(b) + epsilon))) or Real(1)

    def dual_point(v):
        v = np.asarray(v, Real)
        return v[:n] - v[n:] if epsilon > 0 else v  # y = up - down makes |y| smooth

    def primal_point(y):
        u = units.A.T @ (units.share * y)
        size = np.maximum((-u if p.positive else np.abs(u)) - units.l1, 0)
        return -np.sign(u) * size / units.l2

    def objective(v, c, rho):
        y = dual_point(v)
        x, s = primal_point(y), np.sum(units.share * y)
        value = np.sum(units.share * (b * y)) + np.sum(units.l2 * x * x) / 2
        value += rho / 2 * s * s - c * s
        g = units.share * (b - units.A @ x + rho * s - c)
        if epsilon > 0:
            value += epsilon * np.sum(units.share * np.abs(np.asarray(v, Real).reshape(2, n)))
            g = np.concatenate([g + epsilon * units.share, -g + epsilon * units.share])
        return float(value / scale), np.asarray(g / scale, float)

    bounds = list(zip(np.asarray(lower, float), np.asarray(upper, float), strict=True))
    v, c = np.zeros(len(bounds)), Real(0)
    spread = np.abs(units.A).max() ** 2 / np.min(units.l2) + np.abs(b).max()
    rho = spread if p.intercept else Real(0)
    for _ in range(8 if p.intercept else 1):
        v = optimize.minimize(
            objective,
            v,
            (c, rho),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 100, "maxfun": 150, "maxcor": 20, "ftol": 1e-16, "gtol": 1e-14},
        ).x
        if p.intercept:
            c -= rho * np.sum(units.share * dual_point(v))
    x = primal_point(dual_point(v))
    if not p.intercept:
        return [(x, Real(0))]
    z = units.A @ x
    kinks = np.concatenate([p.b - z - epsilon, p.b - z + epsilon])
    return [(x, k) for k in (c + middle, *kinks[:: 1 + kinks.size // 64])]


def best_value(problem: Instance, points):
    """The least P over ``points``, and the point."""
    values = [(primal(problem, x, c), k) for k, (x, c) in enumerate(points)]
    values = [(value, k) for value, k in values if np.isfinite(value)]
    if not values:
        return Real(np.inf), None
    value, k = min(values)
    return value, points[k]
