"""Naive solvers, written from the papers' formulas and nothing of the package.

Plain NumPy on dense vectors: no lazy updates, no running sums (u is summed up from y at each
step), no shared step sizes, the dual prox by solving its optimality condition.  Slow and plain on
purpose: what the kernels are compared with.

The saddle point, over the N rows that count, with weights W_i = w_i N/n and, for an intercept, one
more primal coordinate of feature value beta and no penalty:

    (1/N) sum_i W_i (y_i a_i.x - phi_i*(y_i)) + g(x)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq, linprog, minimize
from scipy.special import expit, wrightomega, xlogy

# ---- the dual prox: argmax_v  v z - phi*(v) - (delta/2)(v - center)^2 - (v - y)^2/(2s) ----------

#: phi*(v) = b v + eps |v| + mu v^2/2 on an interval, for b = +1 where b is a label
QUADRATIC = {
    "squared": (1.0, 0.0, -np.inf, np.inf),
    "smooth_hinge": (1.0, 0.0, -1.0, 0.0),
    "hinge": (0.0, 0.0, -1.0, 0.0),
    "squared_hinge": (0.5, 0.0, -np.inf, 0.0),
    "huber": (1.0, 0.0, -1.35, 1.35),
    "epsilon_insensitive": (0.0, 0.1, -1.0, 1.0),
    "squared_epsilon_insensitive": (0.5, 0.1, -np.inf, np.inf),
    "absolute": (0.0, 0.0, -1.0, 1.0),
    "quantile": (0.0, 0.0, -0.5, 0.5),
}
LABELLED = ("smooth_hinge", "hinge", "squared_hinge", "logistic")


def dual_prox(loss, z, b, y, s, delta=0.0, center=0.0):
    if loss == "logistic":
        # v = -b q with q = expit(t); the derivative in q, where phi* gives logit(q) = t:
        def slope(t):
            return -b * z - t - (expit(t) + b * y) / s - delta * (expit(t) + b * center)

        reach = (1.0 + abs(y)) / s + delta * (1.0 + abs(center)) + 1.0
        return -b * expit(brentq(slope, -b * z - reach, -b * z + reach, xtol=1e-14, rtol=1e-15))
    if loss == "poisson":
        # v = e^r - b, where phi*'(v) = log(v + b) = r
        def slope(r):
            return z - r - (np.exp(r) - b - y) / s - delta * (np.exp(r) - b - center)

        low = high = 0.0
        while slope(low) < 0.0:
            low -= 1.0 + abs(low)
        while slope(high) > 0.0:
            high += 1.0
        return np.exp(brentq(slope, low, high, xtol=1e-14, rtol=1e-15)) - b
    if loss in ("gamma", "tweedie"):
        # v = phi'(r), where phi*'(v) = r
        def slope(r):
            v = loss_slope(loss, r, b)
            return z - r - (v - y) / s - delta * (v - center)

        low, high = -1.0, 1.0
        while slope(low) < 0.0:
            low -= 1.0
        while slope(high) > 0.0:
            high += 1.0
        return loss_slope(loss, brentq(slope, low, high, xtol=1e-14, rtol=1e-15), b)
    mu, eps, low, high = QUADRATIC[loss]
    if loss in LABELLED and b < 0.0:
        low, high = -high, -low
    curvature = mu + delta + 1.0 / s
    pull = z - b + delta * center + y / s
    v = np.sign(pull) * max(abs(pull) - eps, 0.0) / curvature
    return min(max(v, low), high)


def prox(x, gradient, tau, penalty, delta=0.0, center=0.0):
    """argmin_v g(v) + (delta/2)(v - center)^2 + gradient v + (v - x)^2/(2 tau)."""
    l1, l2, positive = penalty
    pull = x / tau - gradient + delta * center
    curvature = 1.0 / tau + l2 + delta
    if positive:
        return np.maximum(pull - l1, 0.0) / curvature
    return np.sign(pull) * np.maximum(np.abs(pull) - l1, 0.0) / curvature


# ---- Algorithms 1, 2 and 3 ---------------------------------------------------------------------


@dataclass
class NaiveSPDC:
    """x, c and y after ``run(batches)``; ``sigma``, ``p`` and ``W`` have an entry for each of the
    n rows (those of rows that are never drawn are not used)."""

    A: np.ndarray
    b: np.ndarray
    loss: str
    penalty: tuple  # (l1, l2, positive)
    rows: np.ndarray
    W: np.ndarray
    tau: float
    sigma: np.ndarray
    theta: float
    p: np.ndarray
    beta: float = 0.0
    delta_x: float = 0.0
    delta_y: float = 0.0
    y: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self):
        n, d = self.A.shape
        # the last coordinate is the intercept's
        self.features = np.hstack([self.A, np.full((n, 1), self.beta)])
        self.x = np.zeros(d + 1)
        if not self.y.size:
            self.y = dual_start(self.loss, self.b)
        self.begin_stage()

    def begin_stage(self):
        """Section 3, centred at the present point; xbar = x as at the start of Algorithm 1."""
        self.xbar = self.x.copy()
        self.center_x, self.center_y = self.x.copy(), self.y.copy()

    @property
    def intercept(self):
        return self.beta * self.x[-1]

    def run(self, batches):
        N = self.rows.size
        for batch in batches:
            assert len(set(batch)) == len(batch)
            u = self.features[self.rows].T @ (self.W * self.y)[self.rows] / N
            direction = np.zeros_like(u)
            new = self.y.copy()
            for i in batch:
                new[i] = dual_prox(
                    self.loss,
                    self.features[i] @ self.xbar,
                    self.b[i],
                    self.y[i],
                    self.sigma[i],
                    self.delta_y,
                    self.center_y[i],
                )
                direction += self.W[i] * (new[i] - self.y[i]) * self.features[i] / (N * self.p[i])
            x = prox(self.x, u + direction, self.tau, self.penalty, self.delta_x, self.center_x)
            x[-1] = self.x[-1] - self.tau * (u + direction)[-1]
            self.xbar = x + self.theta * (x - self.x)
            self.x, self.y = x, new


@dataclass
class NaiveMultinomial(NaiveSPDC):
    """The same with K classes: x is (d + 1) x K, y is n x K, b holds class codes."""

    def __post_init__(self):
        n, d = self.A.shape
        self.features = np.hstack([self.A, np.full((n, 1), self.beta)])
        K = self.b.max() + 1
        self.x, self.y = np.zeros((d + 1, K)), np.zeros((n, K))
        self.begin_stage()

    def run(self, batches):
        N = self.rows.size
        for batch in batches:
            u = self.features[self.rows].T @ (self.W[:, None] * self.y)[self.rows] / N
            direction, new = np.zeros_like(u), self.y.copy()
            for i in batch:
                z = self.features[i] @ self.xbar
                new[i] = simplex_prox(z, self.b[i], self.y[i], self.sigma[i])
                change = np.outer(self.features[i], new[i] - self.y[i])
                direction += self.W[i] * change / (N * self.p[i])
            x = prox(self.x, u + direction, self.tau, self.penalty)
            x[-1] = self.x[-1] - self.tau * (u + direction)[-1]
            self.xbar = x + self.theta * (x - self.x)
            self.x, self.y = x, new


def simplex_prox(z, b, y, s):
    """argmax_v v.z - sum p log p - |v - y|^2/(2s), p = v + e_b on the simplex.

    log p + p/s = t + nu, hence p = s omega(t + nu - log s), with nu where they sum to 1.
    """
    t = z + (y + np.eye(y.size)[b]) / s

    def p(nu):
        return s * np.real(wrightomega(t + nu - np.log(s)))

    nu = brentq(
        lambda nu: p(nu).sum() - 1.0, -t.max() - 50, 50 - t.min() + 1 / s, xtol=1e-14, rtol=1e-15
    )
    return p(nu) / p(nu).sum() - np.eye(y.size)[b]


def dual_start(loss, b):
    """0, but strictly inside the domain of the entropies of log links."""
    b = np.asarray(b, dtype=float)
    return 1 - b if loss in ("poisson", "gamma", "tweedie") else np.zeros(b.size)


def batches_of(order, m):
    return [list(order[k : k + m]) for k in range(0, len(order), m)]


# ---- step sizes: eq. 12, 24, 25, 26 and the practical rule -------------------------------------


def mixture(R, alpha):
    """Eq. 20."""
    return (1 - alpha) / R.size + alpha * R / R.sum()


def capped(weights, m):
    """min(1, t w) that sums to m, with t by root finding."""
    if m == weights.size:
        return np.ones(m)
    t = brentq(lambda t: np.minimum(1, t * weights).sum() - m, 0, m / weights.min(), xtol=1e-15)
    return np.minimum(1, t * weights)


def theory_steps(R, lam, gamma, m=1, alpha=0.0, p=None):
    """(tau, sigma_i, theta) of Algorithm 2 for alpha = 0, else of Algorithm 3 and eq. 26."""
    k = R.size / m  # the paper's n/m
    if alpha == 0.0:
        longest = R.max()
        theta = 1 - 1 / (k + 2 * longest * (k / (lam * gamma)) ** 0.5)
        scale = np.ones(R.size)
    else:
        longest = max(R / (k * p))
        theta = 1 - 1 / (k / (1 - alpha) + longest * (k / (lam * gamma)) ** 0.5)
        scale = 1 / (k * p)
    tau = (gamma / (k * lam)) ** 0.5 / (2 * longest)
    sigma = (k * lam / gamma) ** 0.5 / (2 * longest)
    return tau, sigma * scale, theta


def icml_steps(R, lam, gamma, p):
    """Those of weighted sampling in the ICML 2015 version, as AdaSPDC's authors ran it."""
    n, mean = R.size, sum(R) / R.size
    tau = (gamma / (n * lam)) ** 0.5 / (4 * mean)
    sigma = (n * lam / gamma) ** 0.5 / (4 * mean)
    return tau, sigma / (n * p), 1 - 1 / (2 * n + 2 * mean * (n / (lam * gamma)) ** 0.5)


def practical_steps(R, lam, gamma, m, p):
    """tau sigma_i R_i^2 = .6 N p_i/m, tau where primal and slowest dual rate are equal.

    Not the .9 of ALGORITHMS.md, which diverges: see test_nearly_parallel_rows.
    """

    def sigma(tau):
        return 0.6 * R.size * p / (m * tau * R**2)

    def excess(log_tau):
        tau = np.exp(log_tau)
        primal = 2 * lam * tau / (1 + 2 * lam * tau)
        return np.log(primal) - np.log(np.min(p / (1 + 1 / (2 * gamma * sigma(tau)))))

    tau = np.exp(brentq(excess, np.log(1e-25 / lam), np.log(1e25 / lam), xtol=1e-15, rtol=1e-15))
    return tau, sigma(tau), 1 - 2 * lam * tau / (1 + 2 * lam * tau)


# ---- SPDC-AIS (Algorithm 1 of AIS) --------------------------------------------------------------


def ais_steps(R, d, lam, gamma, rule, delta=(0.2, 0.8), rho=None, adaptive=True):
    """(tau, sigma_i at p_i = 1/N, theta, largest delta) of Theorems 1 and 2, mu as corrected; of
    Algorithm 1 of SPDC (constant); of the practical steps, which are LIS's unless adaptive."""
    N, low, high = R.size, *delta
    if rule == "constant":
        return *theory_steps(R, lam, gamma), high
    if rule == "practical":  # tau as if long rows were drawn more, half by their norms
        p = mixture(R, 0.5)
        tau, sigma, _ = practical_steps(R, lam, gamma, 1, p)
        kappa = np.mean(R**2) / (lam * gamma)
        longer = 1.5 * ((1 + kappa / N) / (1 + kappa / d)) ** 0.25 if adaptive else 1.0
        tau *= longer
        return tau, sigma / (longer * N * p), 1 / (1 + 2 * lam * tau), high
    keep = 1 - high if rule == "theory" else 1
    tau = keep / (2 * R.max()) * (gamma / (N * lam)) ** 0.5
    sigma = keep / (2 * R.max()) * (N * lam / gamma) ** 0.5
    gain = 0.0
    if rho is not None:
        gain = rho * sigma * low
        high = 1 - 1 / (gamma + gain)  # Remark 1
    primal = 2 * lam * tau / (1 + 2 * lam * tau)
    dual = (gamma + gain / 2) / (N / (2 * sigma) + N * gamma / (1 - high))
    return tau, np.full(N, sigma), 1 - min(primal, dual), high


def longer(weights):
    """tau of a pass of adaptive sampling with practical steps, over that at equal weights."""
    return min(weights.size * np.sum(weights**2) / np.sum(weights) ** 2, 8.0)


def adaptive_frequencies(weights, delta):
    """N p_i of eq. 13."""
    return (1 - delta) + delta * weights.size * weights / weights.sum()


def ais_pass(naive, order, weights, base, deltas, kappa, power, averaged=True, learns=True):
    """One pass of SPDC-AIS over ``order`` (rows of the data), with delta_t of each step.

    ``weights`` (of the rows that count, updated here if it ``learns``) holds for each row
    |pi_i|^kappa, known to the next draw; or, averaged, its mean with what it held before, known to
    the next piece of 1/16 of the rows, all of it drawn with the delta_t of its first step.
    pi_i = dy_i/sigma_i of the row's last step, in y_i sqrt(W_i); sigma_i = base_i (N p_i)^power.
    """
    N = naive.rows.size
    place = {int(i): k for k, i in enumerate(naive.rows)}
    piece = min(max(N // 16, 1), 256) if averaged and learns else 1
    for first in range(0, len(order), piece):
        frequencies, last = adaptive_frequencies(weights, deltas[first]), {}
        for i in map(int, order[first : first + piece]):
            f = frequencies[place[i]]
            naive.p[i] = f / N
            naive.sigma[i] = base[i] * f**power
            before = naive.y[i]
            naive.run([[i]])
            last[i] = abs(naive.y[i] - before) * naive.W[i] ** 0.5 / naive.sigma[i]
        for i, size in last.items():
            if learns:
                old = weights[place[i]] if averaged else size**kappa
                weights[place[i]] = (size**kappa + old) / 2


def ideal_frequencies(naive, base, delta, kappa):
    """N p_i of eq. 12: the gradient maps G_sigma of all rows at xbar (eq. 11, its sign mended)."""
    maps = np.array(
        [
            naive.W[i] ** 0.5
            / base[i]
            * abs(
                dual_prox(
                    naive.loss,
                    naive.features[i] @ naive.xbar,
                    naive.b[i],
                    naive.y[i],
                    base[i],
                    naive.delta_y,
                    naive.center_y[i],
                )
                - naive.y[i]
            )
            for i in naive.rows
        ]
    )
    return adaptive_frequencies(maps**kappa, delta)


# ---- AdaSPDC (Algorithm 1 of its paper) ----------------------------------------------------------


def blocks_of(rows, groups):
    """The blocks A_i, by label; each row its own without labels."""
    if groups is None:
        return [[int(i)] for i in rows]
    found = [[int(i) for i in rows if groups[i] == g] for g in sorted(set(groups))]
    return [block for block in found if block]


def block_radii(A, W, beta, blocks):
    """R_i, by SVD, of the problem as the paper has it: an average over N blocks.

    (1/rows) sum_rows W_r phi_r is (1/N) sum_i of the blocks' sums of W_r (N/rows) phi_r, and a
    term c phi(a.x) is one of weight 1 in the row sqrt(c) a and the dual variable sqrt(c) y.
    """
    rows, N = sum(map(len, blocks)), len(blocks)
    full = np.hstack([A, np.full((A.shape[0], 1), beta)])
    scaled = (W * N / rows)[:, None] ** 0.5 * full
    return np.array([np.linalg.norm(scaled[block], 2) for block in blocks])


def ada_sigma(R, N, m, lam, gamma):
    """Eq. 10."""
    return (N * lam / (m * gamma)) ** 0.5 / (2 * R)


def ada_primal(R, N, m, lam, gamma):
    """(tau_t, theta_t) of eqs. 12 and 15, R the largest of the step."""
    tau = (m * gamma / (N * lam)) ** 0.5 / (2 * R)
    return tau, 1 - 1 / (N / m + R * (N / m / (lam * gamma)) ** 0.5)


def ada_pass(naive, picks, blocks, R, lam, gamma, theta=None):
    """The steps of ``picks``, one row of block numbers a step; ``theta`` in place of eq. 15's."""
    N, m = len(blocks), picks.shape[1]
    for k, block in enumerate(blocks):
        naive.sigma[block] = ada_sigma(R[k], N, m, lam, gamma)
    for pick in picks:
        naive.tau, naive.theta = ada_primal(R[pick].max(), N, m, lam, gamma)
        naive.theta = naive.theta if theta is None else theta
        naive.run([[i for k in pick for i in blocks[k]]])


# ---- dual coordinate ascent --------------------------------------------------------------------


def naive_dual_ascent(A, b, loss, penalty, order, w=None):
    """Exact (l2) or proximal (l1 + l2) ascent on the rows of ``order``; (x, y) at the end."""
    n = b.size
    l1, l2, positive = penalty
    w = np.ones(n) if w is None else w
    y = dual_start(loss, b)

    def primal_of(y):
        v = -A.T @ (w * y) / n
        shrunk = np.maximum(v - l1, 0) if positive else np.sign(v) * np.maximum(abs(v) - l1, 0)
        return shrunk / l2

    for i in order:
        # D's quadratic term in y_i, w_i^2 |a_i|^2 (v - y_i)^2/(2 l2 n^2), over the factor w_i/n
        s = n * l2 / (w[i] * A[i] @ A[i])
        y[i] = dual_prox(loss, A[i] @ primal_of(y), b[i], y[i], s)
    return primal_of(y), y


# ---- losses, and optima by other means ---------------------------------------------------------


def loss_value(loss, z, b):
    r, slack = z - b, 1 - b * z
    hinge, tube = np.maximum(slack, 0), np.maximum(abs(r) - 0.1, 0)
    return {
        "squared": lambda: r**2 / 2,
        "smooth_hinge": lambda: np.where(slack > 1, slack - 0.5, hinge**2 / 2),
        "hinge": lambda: hinge,
        "squared_hinge": lambda: hinge**2,
        "logistic": lambda: np.logaddexp(0, -b * z),
        "huber": lambda: np.where(abs(r) < 1.35, r**2 / 2, 1.35 * abs(r) - 1.35**2 / 2),
        "epsilon_insensitive": lambda: tube,
        "squared_epsilon_insensitive": lambda: tube**2,
        "absolute": lambda: abs(r),
        "quantile": lambda: abs(r) / 2,
        "poisson": lambda: np.exp(z) - b * z,
        "gamma": lambda: z + b * np.exp(-z),
        "tweedie": lambda: 2 * b * np.exp(-z / 2) + 2 * np.exp(z / 2),
        "log_cosh": lambda: np.logaddexp(r, -r) - np.log(2),
    }[loss]()


def loss_slope(loss, z, b):
    r, slack = z - b, 1 - b * z
    return {
        "squared": lambda: r,
        "smooth_hinge": lambda: -b * np.clip(slack, 0, 1),
        "squared_hinge": lambda: -2 * b * np.maximum(slack, 0),
        "logistic": lambda: -b * expit(-b * z),
        "huber": lambda: np.clip(r, -1.35, 1.35),
        "squared_epsilon_insensitive": lambda: 2 * np.sign(r) * np.maximum(abs(r) - 0.1, 0),
        "poisson": lambda: np.exp(z) - b,
        "gamma": lambda: 1 - b * np.exp(-z),
        "tweedie": lambda: np.exp(z / 2) - b * np.exp(-z / 2),
        "log_cosh": lambda: np.tanh(r),
    }[loss]()


def loss_conjugate(loss, v, b):
    if loss == "logistic":
        return xlogy(-b * v, -b * v) + xlogy(1 + b * v, 1 + b * v)
    mu, eps, _, _ = QUADRATIC[loss]
    return b * v + eps * abs(v) + mu * v**2 / 2


def objective(A, b, loss, penalty, x, c=0.0, w=1.0):
    l1, l2, _ = penalty
    return np.mean(w * loss_value(loss, A @ x + c, b)) + l1 * abs(x).sum() + l2 / 2 * x @ x


def smooth_optimum(A, b, loss, penalty, w=1.0, intercept=False, gtol=1e-13):
    """(P*, x*, c*) by L-BFGS-B in (x+, x-, c) with x = x+ - x-, x+, x- >= 0."""
    (n, d), (l1, l2, positive) = A.shape, penalty
    split = l1 > 0 or positive

    def value(v):
        x = v[:d] - v[d : 2 * d] if split else v[:d]
        c = v[-1] if intercept else 0.0
        z = A @ x + c
        slope = w * loss_slope(loss, z, b) / n
        grad = A.T @ slope + l2 * x
        size = v[: 2 * d].sum() if split else 0.0
        out = np.mean(w * loss_value(loss, z, b)) + l1 * size + l2 / 2 * x @ x
        parts = [grad + l1, -grad + l1] if split else [grad]
        return out, np.concatenate([*parts, [slope.sum()] if intercept else []])

    bounds = [(0, None)] * d + [(0, 0 if positive else None)] * d if split else [(None, None)] * d
    bounds += [(None, None)] * intercept
    found = minimize(
        value,
        np.zeros(len(bounds)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 20_000, "maxfun": 10**6, "ftol": 0, "gtol": gtol, "maxcor": 30},
    )
    x = found.x[:d] - found.x[d : 2 * d] if split else found.x[:d]
    c = found.x[-1] if intercept else 0.0
    return objective(A, b, loss, penalty, x, c, w), x, c


def kinked_program(A, b, loss, penalty, w=1.0):
    """(H, f, G, h) of min v.H v/2 + f.v, G v <= h, with v = (x+, x-, slack of each row)."""
    n, d = A.shape
    l1, l2, positive = penalty
    wide, eye = np.hstack([A, -A]), np.eye(n)
    weight = w * np.ones(n) / n
    if loss == "hinge":  # slack >= 1 - b z
        G, h = [np.hstack([-b[:, None] * wide, -eye])], [-np.ones(n)]
    else:  # slack >= s (z - b) - offset on both sides
        _, eps, _, high = QUADRATIC[loss]
        G = [np.hstack([s * high * wide, -eye]) for s in (1, -1)]
        h = [s * high * b + eps for s in (1, -1)]
    signed = 2 * d + n * (loss in ("hinge", "epsilon_insensitive"))  # the others' slack is >= 0
    G.append(-np.eye(signed, 2 * d + n))
    h.append(np.zeros(signed))
    H = np.zeros((2 * d + n, 2 * d + n))
    H[:d, :d] = H[d : 2 * d, d : 2 * d] = l2 * np.eye(d)
    f = np.concatenate([np.full(d, l1), np.full(d, 1e3 if positive else l1), weight])
    return H, f, np.vstack(G), np.concatenate(h)


def interior_point(H, f, G, h, iterations=100):
    """min v.H v/2 + f.v over G v <= h, by Mehrotra's method."""
    v = np.zeros(f.size)
    s = np.maximum(h - G @ v, 1.0)
    q = np.ones(h.size)
    for _ in range(iterations):
        dual, primal, mu = H @ v + f + G.T @ q, G @ v + s - h, s @ q / h.size
        if max(abs(dual).max(), abs(primal).max(), s @ q) < 1e-12:
            return v
        K = np.block([[H, G.T], [G, -np.diag(s / q)]])
        shift, sigma = s * q, 0.0
        for corrector in (False, True):
            step = np.linalg.solve(K, np.r_[-dual, shift / q - primal])
            step, dq = step[: f.size], step[f.size :]
            ds = -primal - G @ step
            a = [
                min(1.0, *(-u[d < 0] / d[d < 0])) if (d < 0).any() else 1.0
                for u, d in ((s, ds), (q, dq))
            ]
            if not corrector:
                sigma = (((s + a[0] * ds) @ (q + a[1] * dq)) / h.size / mu) ** 3
                shift = s * q + ds * dq - sigma * mu
        a = 0.99 * min(a)
        v, s, q = v + a * step, s + a * ds, q + a * dq
    raise ArithmeticError("the interior point did not converge")


def kinked_optimum(A, b, loss, penalty, w=1.0):
    """P* for hinge, absolute, quantile and epsilon-insensitive losses: linprog where l2 = 0, an
    interior point otherwise; P is evaluated at the x that they find."""
    H, f, G, h = kinked_program(A, b, loss, penalty, w)
    d = A.shape[1]
    if penalty[1] == 0.0:
        v = linprog(f, A_ub=G, b_ub=h, bounds=(None, None), method="highs-ds").x
    else:
        v = interior_point(H, f, G, h)
    x = v[:d] - v[d : 2 * d]
    return objective(A, b, loss, penalty, x, 0.0, w), x
