"""P, D and the gap against plain loops; the certificate against optima found without us.

The reference optimum comes from SciPy: L-BFGS-B on x = p - m, p, m >= 0 for smooth losses (and
Poisson's), a linear program for kinked ones with l2 = 0, SLSQP on the epigraph with l2 > 0.
Whatever those return, P there is an upper bound on P*, so no true dual value may exceed it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

import adacoord as ac
from adacoord import losses as ls
from adacoord.problem import row_sums
from adacoord.problem.null_model import null_value_with_intercept

INF = math.inf


def tweedie_conjugate(v, b):
    """sup_z v z - 2 b e^(-z/2) - 2 e^(z/2), at e^(z/2) = (v + sqrt(v^2 + 4b))/2."""
    root = math.sqrt(v * v + 4 * b)
    e = (v + root) / 2 if v >= 0 else 2 * b / (root - v)
    return 2 * v * math.log(e) - 2 * b / e - 2 * e if e > 0 else 0.0


def xlogx(t):
    return t * math.log(t) if t > 0 else 0.0


def sigmoid(t):
    return 1 / (1 + math.exp(-t)) if t >= 0 else math.exp(t) / (1 + math.exp(t))


def clip(t, lo, hi):
    return min(max(t, lo), hi)


# name: the loss, phi, phi', phi* in its domain, the domain
BOOK = {
    "squared": (
        "squared",
        lambda z, b: (z - b) ** 2 / 2,
        lambda z, b: z - b,
        lambda v, b: v * v / 2 + b * v,
        lambda b: (-INF, INF),
    ),
    "smooth_hinge": (
        ls.SmoothHinge(0.5),
        lambda z, b: max(0, 1 - b * z) ** 2 if b * z >= 0.5 else 0.75 - b * z,
        lambda z, b: -b * clip((1 - b * z) / 0.5, 0, 1),
        lambda v, b: b * v + v * v / 4,
        lambda b: (min(-b, 0), max(-b, 0)),
    ),
    "hinge": (
        "hinge",
        lambda z, b: max(0, 1 - b * z),
        lambda z, b: -b * (b * z < 1),
        lambda v, b: b * v,
        lambda b: (min(-b, 0), max(-b, 0)),
    ),
    "squared_hinge": (
        "squared_hinge",
        lambda z, b: max(0, 1 - b * z) ** 2,
        lambda z, b: -2 * b * max(0, 1 - b * z),
        lambda v, b: b * v + v * v / 4,
        lambda b: (-INF, 0) if b > 0 else (0, INF),
    ),
    "logistic": (
        "logistic",
        lambda z, b: float(np.logaddexp(0, -b * z)),
        lambda z, b: -b * sigmoid(-b * z),
        lambda v, b: xlogx(-b * v) + xlogx(1 + b * v),
        lambda b: (min(-b, 0), max(-b, 0)),
    ),
    "huber": (
        ls.Huber(0.7),
        lambda z, b: (z - b) ** 2 / 2 if abs(z - b) < 0.7 else 0.7 * abs(z - b) - 0.245,
        lambda z, b: clip(z - b, -0.7, 0.7),
        lambda v, b: v * v / 2 + b * v,
        lambda b: (-0.7, 0.7),
    ),
    "epsilon_insensitive": (
        ls.EpsilonInsensitive(0.3),
        lambda z, b: max(0, abs(z - b) - 0.3),
        lambda z, b: np.sign(z - b) * (abs(z - b) > 0.3),
        lambda v, b: b * v + 0.3 * abs(v),
        lambda b: (-1, 1),
    ),
    "squared_epsilon_insensitive": (
        ls.SquaredEpsilonInsensitive(0.3),
        lambda z, b: max(0, abs(z - b) - 0.3) ** 2,
        lambda z, b: 2 * np.sign(z - b) * max(0, abs(z - b) - 0.3),
        lambda v, b: b * v + 0.3 * abs(v) + v * v / 4,
        lambda b: (-INF, INF),
    ),
    "absolute": (
        "absolute",
        lambda z, b: abs(z - b),
        lambda z, b: np.sign(z - b),
        lambda v, b: b * v,
        lambda b: (-1, 1),
    ),
    "quantile": (
        ls.Quantile(0.8),
        lambda z, b: max(0.8 * (b - z), 0.2 * (z - b)),
        lambda z, b: -0.8 if z < b else 0.2,
        lambda v, b: b * v,
        lambda b: (-0.8, 0.2),
    ),
    "poisson": (
        "poisson",
        lambda z, b: math.exp(z) - b * z,
        lambda z, b: math.exp(z) - b,
        lambda v, b: xlogx(v + b) - (v + b),
        lambda b: (-b, INF),
    ),
    "gamma": (
        "gamma",
        lambda z, b: z + b * math.exp(-z),
        lambda z, b: 1 - b * math.exp(-z),
        lambda v, b: xlogx(1 - v) - (1 - v) * (1 + math.log(b)),
        lambda b: (-INF, 1),
    ),
    "tweedie": (  # of the power 3/2, whose slope is a quadratic in e^(z/2)
        "tweedie",
        lambda z, b: 2 * b * math.exp(-z / 2) + 2 * math.exp(z / 2),
        lambda z, b: math.exp(z / 2) - b * math.exp(-z / 2),
        lambda v, b: tweedie_conjugate(v, b),
        lambda b: (-INF if b else 0, INF),
    ),
    "log_cosh": (
        "log_cosh",
        lambda z, b: math.log(math.cosh(z - b)),
        lambda z, b: math.tanh(z - b),
        lambda v, b: b * v + (xlogx(1 + v) + xlogx(1 - v)) / 2,
        lambda b: (-1, 1),
    ),
}
# the lines whose maximum a kinked loss is: (slope, height at z = 0)
LINES = {
    "hinge": lambda b: [(0, 0), (-b, 1)],
    "absolute": lambda b: [(1, -b), (-1, b)],
    "quantile": lambda b: [(0.2, -0.2 * b), (-0.8, 0.8 * b)],
    "epsilon_insensitive": lambda b: [(0, 0), (1, -b - 0.3), (-1, b - 0.3)],
}
CLASSES = ("smooth_hinge", "hinge", "squared_hinge", "logistic")
PENALTIES = {"l2": (0.0, 0.3), "l1": (0.07, 0.0), "l1+l2": (0.05, 0.2)}


class Naive:
    """The problem of ALGORITHMS section 0, one number at a time."""

    def __init__(
        self,
        name,
        penalty="l2",
        positive=False,
        weighted=False,
        intercept=False,
        zero_row=False,
        n=7,
        d=3,
        seed=0,
    ):
        rng = np.random.default_rng(seed)
        self.name, self.positive, self.intercept, self.n, self.d = name, positive, intercept, n, d
        self.l1, self.l2 = PENALTIES[penalty]
        self.A = rng.standard_normal((n, d)).round(2)
        if zero_row:
            self.A[n // 2] = 0.0
        self.b = rng.standard_normal(n).round(2) + 0.5
        if name in CLASSES:
            self.b = np.where(self.b > 0, 1.0, -1.0)
        if name in ("poisson", "tweedie"):
            self.b = rng.integers(0, 4, n) * 1.0
        if name == "gamma":
            self.b = np.exp(self.b)
        else:
            self.b[:2] = 1.0, -1.0 if name not in ("poisson", "tweedie") else 0.0
        self.w = np.array([0.5, 2.0, 1.0, 0.0, 1.5])[np.arange(n) % 5] if weighted else np.ones(n)
        loss, self.phi, self.slope, self.conjugate, self.domain = BOOK[name]
        self.problem = ac.Problem(
            self.A,
            self.b,
            loss,
            self.l1,
            self.l2,
            positive=positive,
            intercept=intercept,
            sample_weight=self.w if weighted else None,
        )

    def P(self, x, c=0.0):
        total = 0.0
        for i in range(self.n):
            z = c + sum(self.A[i, j] * x[j] for j in range(self.d))
            total += self.w[i] * self.phi(z, self.b[i]) / self.n
        for v in x:
            if self.positive and v < 0:
                return INF
            total += self.l1 * abs(v) + self.l2 / 2 * v * v
        return float(total)

    def u(self, y):
        return [
            sum(self.w[i] * y[i] * self.A[i, j] for i in range(self.n)) / self.n
            for j in range(self.d)
        ]

    def D(self, y):
        total = 0.0
        for i in range(self.n):
            lo, hi = self.domain(self.b[i])
            if self.w[i] > 0 and not lo <= y[i] <= hi:
                return -INF
            if self.w[i] > 0:
                total -= self.w[i] * self.conjugate(y[i], self.b[i]) / self.n
        for u in self.u(y):
            excess = max((-u if self.positive else abs(u)) - self.l1, 0.0)
            if self.l2 > 0:
                total -= excess**2 / (2 * self.l2)
            elif excess > 1e-10 * self.l1:
                return -INF
        return float(total)

    def optimum(self):
        """(P, x, c) found without the package; an upper bound on P* in any case."""
        n, d, lines = self.n, self.d, LINES.get(self.name)
        sides = [(0, None)] * d + [(0, 0 if self.positive else None)] * d
        free = [(None, None) if self.intercept else (0, 0)]
        B = np.hstack([self.A, -self.A, np.ones((n, 1))])
        linear = np.concatenate([np.full(2 * d, self.l1), [0.0]])

        def smooth(v):
            z = B @ v
            x = v[:d] - v[d : 2 * d]
            value = sum(self.w[i] * self.phi(z[i], self.b[i]) for i in range(n)) / n
            s = np.array([self.w[i] * self.slope(z[i], self.b[i]) for i in range(n)]) / n
            ridge = self.l2 * np.concatenate([x, -x, [0.0]])
            return value + linear @ v + self.l2 / 2 * x @ x, B.T @ s + linear + ridge

        if lines is None:
            v = optimize.minimize(
                smooth,
                np.zeros(2 * d + 1),
                jac=True,
                method="L-BFGS-B",
                bounds=sides + free,
                options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 5000},
            ).x
        else:  # min (1/n) sum w t + g(p - m), t_i >= slope z_i + height
            rows, heights = [], []
            for i in range(n):
                for slope, height in lines(self.b[i]):
                    rows.append(np.concatenate([slope * B[i], -np.eye(n)[i]]))
                    heights.append(-height)
            G, h = np.array(rows), np.array(heights)
            cost = np.concatenate([linear, self.w / n])
            bounds = sides + free + [(None, None)] * n
            if self.l2 == 0:
                bounds = sides + free + [(0, None)] * n  # each of the losses is >= 0
                v = optimize.linprog(cost, G, h, bounds=bounds).x
            else:
                ridge = np.zeros((cost.size, cost.size))
                ridge[: 2 * d, : 2 * d] = self.l2 * np.kron([[1, -1], [-1, 1]], np.eye(d))
                start = np.zeros(cost.size)
                start[2 * d + 1 :] = [self.phi(0.0, b) for b in self.b]
                v = optimize.minimize(
                    lambda v: cost @ v + v @ ridge @ v / 2,
                    start,
                    method="SLSQP",
                    bounds=bounds,
                    jac=lambda v: cost + ridge @ v,
                    options={"ftol": 1e-13, "maxiter": 500},
                    constraints={"type": "ineq", "fun": lambda v: h - G @ v, "jac": lambda v: -G},
                ).x
        x = np.maximum(v[:d], 0) - np.maximum(v[d : 2 * d], 0)
        c = float(v[2 * d]) if self.intercept else 0.0
        return self.P(x, c), x, c


def flags(**more):
    return st.fixed_dictionaries(
        {
            "name": st.sampled_from(sorted(BOOK)),
            "penalty": st.sampled_from(sorted(PENALTIES)),
            "positive": st.booleans(),
            "weighted": st.booleans(),
            "intercept": st.booleans(),
            "zero_row": st.booleans(),
            "n": st.integers(2, 8),
            "d": st.integers(1, 3),
            "seed": st.integers(0, 10**6),
            **more,
        }
    )


def some_dual(naive, rng, kind, x, c):
    z = naive.A @ x + c
    if kind == "slope":
        return np.array([float(naive.slope(z[i], naive.b[i])) for i in range(naive.n)])
    return rng.standard_normal(naive.n) * 10 ** rng.uniform(-3, 3)


# --- values -------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(case=flags(), size=st.sampled_from([0.0, 1e-3, 1.0, 5.0]))
def test_values_are_those_of_plain_loops(case, size):
    naive, rng = Naive(**case), np.random.default_rng(1)
    x, c = size * rng.standard_normal(naive.d), 0.3 * naive.intercept
    problem = naive.problem
    assert problem.primal(x, c) == pytest.approx(naive.P(x, c), rel=1e-11, abs=1e-13)
    y, _ = problem.feasible_dual(some_dual(naive, rng, "slope", x, c))
    assert problem.average(y) == pytest.approx(naive.u(y), rel=1e-11, abs=1e-13)
    assert problem.dual(y) == pytest.approx(naive.D(y), rel=1e-10, abs=1e-12)
    assert problem.null_value == pytest.approx(naive.P(np.zeros(naive.d)), rel=1e-12)
    assert problem.gap(x, y, c) == pytest.approx(naive.P(x, c) - naive.D(y), rel=1e-9, abs=1e-11)


# --- feasible dual points and weak duality ------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(case=flags(), kind=st.sampled_from(["slope", "noise"]), size=st.floats(0, 3))
def test_feasible_dual_is_feasible(case, kind, size):
    naive, rng = Naive(**case), np.random.default_rng(2)
    y0 = some_dual(naive, rng, kind, size * rng.standard_normal(naive.d), 0.0)
    before = y0.copy()
    y, u = naive.problem.feasible_dual(y0)
    assert y0.tolist() == before.tolist()
    for i in range(naive.n):
        lo, hi = naive.domain(naive.b[i])
        assert lo <= y[i] <= hi
    assert u == pytest.approx(naive.u(y), rel=1e-10, abs=1e-13 * (1 + np.abs(y).max()))
    if naive.intercept:
        assert abs(naive.w @ y) <= 1e-12 * max(naive.w @ np.abs(y), 1e-3 * np.abs(y0).max())
    if naive.l2 == 0:
        assert (-u if naive.positive else np.abs(u)).max() <= naive.l1 * (1 + 1e-12)
    assert np.isfinite(naive.D(y)) and np.isfinite(naive.problem.dual(y))


@settings(max_examples=80, deadline=None)
@given(
    case=flags(),
    kind=st.sampled_from(["slope", "noise"]),
    away=st.sampled_from([0.0, 1e-6, 1e-2, 1.0]),
)
def test_no_dual_exceeds_the_optimum(case, kind, away):
    naive, rng = Naive(**case), np.random.default_rng(3)
    best, x, c = naive.optimum()
    x = x + away * rng.standard_normal(naive.d)
    x = np.maximum(x, 0) if naive.positive else x
    c += naive.intercept * away * rng.standard_normal()
    y0 = some_dual(naive, rng, kind, x, c)
    y, _ = naive.problem.feasible_dual(y0)
    rounding = 1e-11 * (1 + abs(best))
    assert naive.D(y) <= best + rounding
    assert naive.problem.dual(y) <= best + rounding
    gap = naive.problem.gap(x, y0, c)
    assert gap >= 0.0 and gap >= naive.P(x, c) - best - rounding


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("positive", [False, True], ids=["", "positive"])
@pytest.mark.parametrize("penalty", sorted(PENALTIES))
@pytest.mark.parametrize("name", sorted(BOOK))
def test_solve_finds_the_optimum_of_another_solver(name, penalty, positive, intercept):
    naive = Naive(
        name, penalty, positive, weighted=True, intercept=intercept, zero_row=True, n=8, seed=5
    )
    best, *_ = naive.optimum()
    r = ac.solve(naive.problem, tol=1e-6, max_passes=20_000)
    scale = max(abs(best), abs(r.dual))
    assert r.converged and naive.P(r.x, r.intercept) == pytest.approx(r.primal, rel=1e-10)
    assert naive.D(r.y) == pytest.approx(r.dual, rel=1e-10)
    assert r.dual <= best + 1e-10 * scale  # a certificate is a certificate
    assert r.primal <= best + 1.01e-6 * scale
    assert best <= r.primal + 1e-6 * scale, "the reference is not at its optimum"


# --- infeasible points, no penalty, relative gap -------------------------------------------------


@pytest.mark.parametrize("name", sorted(BOOK))
def test_dual_is_minus_inf_outside(name):
    naive = Naive(name, "l2")
    y, _ = naive.problem.feasible_dual(np.zeros(naive.n))
    assert np.isfinite(naive.problem.dual(y))
    lo, hi = naive.domain(naive.b[0])
    for end, step in ((lo, -0.1), (hi, 0.1)):
        if math.isfinite(end):
            outside = y.copy()
            outside[0] = end + step
            assert naive.problem.dual(outside) == -INF
    for case, message in (({"penalty": "l1"}, "|u| > l1"), ({"intercept": True}, "sum w y != 0")):
        naive = Naive(name, **case)
        y = np.array(
            [
                0.9 * (lo if math.isfinite(lo) and lo < 0 else min(hi, 5.0))
                for lo, hi in map(naive.domain, naive.b)
            ]
        )
        y[1:] *= 0.5
        assert naive.problem.dual(100 * y if name == "squared" else y) == -INF, message


def test_positive_dual_is_free_on_one_side():
    A, b = np.array([[1.0], [2.0]]), np.array([1.0, 1.0])
    problem = ac.Problem(A, b, "squared", l1=0.1, positive=True)
    assert problem.dual(np.array([-1.0, -1.0])) == -INF  # -u = 1.5 > l1
    assert problem.dual(np.array([1.0, 1.0])) == pytest.approx(-1.5)  # -u = -1.5
    assert problem.primal([-1e-9]) == INF and problem.gap([-1.0], [0.0, 0.0]) == INF


def test_no_certificate_without_a_penalty():
    naive = Naive("squared")
    problem = ac.Problem(naive.A, naive.b)
    assert not problem.has_certificate
    assert math.isnan(problem.gap(np.zeros(3), np.zeros(naive.n)))
    assert ac.Problem(naive.A, naive.b, l1=1e-9).has_certificate


@pytest.mark.parametrize(
    "loss", ["squared", "huber", "absolute", "logistic", "multinomial", "poisson"]
)
def test_null_model_takes_the_best_intercept(loss):
    rng = np.random.default_rng(0)
    b = {
        "logistic": np.where(np.arange(40) < 9, 1.0, -1.0),
        "multinomial": np.arange(40) % 3,
        "poisson": rng.poisson(5.0, 40) * 1.0,
    }.get(loss, 100.0 + rng.standard_normal(40))
    w = rng.exponential(1.0, 40)
    problem = ac.Problem(np.zeros((40, 2)), b, loss, l2=1.0, sample_weight=w, intercept=True)
    best = null_value_with_intercept(problem)
    assert best == pytest.approx(ac.solve(problem, tol=1e-12).primal, rel=1e-9)
    assert best <= problem.null_value


def test_an_offset_of_the_targets_hides_nothing():
    """P(0, 0) = 5e15 for targets near 1e8: 1e-12 of it is far more than P at any solution."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((50, 4))
    b = A @ np.ones(4) + rng.standard_normal(50)
    far, near = (ac.Problem(A, c, l2=0.1, intercept=True) for c in (b + 1e8, b))
    assert far.relative_gap(2.0, 1.0) == near.relative_gap(2.0, 1.0) == 0.5
    one, two = ac.solve(far, "dcd", tol=1e-5), ac.solve(near, "dcd", tol=1e-5)
    assert one.primal == pytest.approx(two.primal, rel=1e-4)


def test_relative_gap():
    problem = ac.Problem(np.eye(2), np.array([2.0, 0.0]), l2=1.0)  # P(0) = 1
    relative = problem.relative_gap
    assert relative(2.0, 1.0) == 0.5 and relative(-1.0, -2.0) == 0.5
    assert relative(1.0, -3.0) == 4 / 3
    assert relative(1e-13, 0.0) == pytest.approx(0.1) and relative(0.0, 0.0) == 0.0
    assert relative(1.0, 1.0 + 1e-15) == 0.0 and relative(INF, 1.0) == INF
    assert relative(1.0, -INF) == INF
    nothing = ac.Problem(np.eye(2), np.zeros(2), l2=1.0)  # P(0) = 0
    assert nothing.relative_gap(0.0, 0.0) == 0.0
    assert ac.solve(nothing, tol=0.0).converged


@pytest.mark.parametrize("offset", [10.0, 1e4, 1e6])
def test_balance_of_targets_far_from_zero(offset):
    """With an intercept D must not change when b moves as a whole, wherever y comes from."""
    rng = np.random.default_rng(0)
    A, noise = rng.standard_normal((30, 4)), rng.standard_normal(30)
    C = A - A.mean(axis=0)
    b = noise + offset
    centred = (b - offset) - (b - offset).mean()
    x = np.linalg.solve(C.T @ C / 30 + 0.1 * np.eye(4), C.T @ centred / 30)
    residual = C @ x - centred
    best = 0.5 * np.mean(residual**2) + 0.05 * x @ x
    problem = ac.Problem(A, b, "squared", l2=0.1, intercept=True)
    for shift in (0.0, -offset, offset / 3, 1.0):
        y, _ = problem.feasible_dual(residual + shift)
        assert problem.dual(y) == pytest.approx(best, rel=1e-14 * offset + 1e-12), shift
        assert abs(y.mean()) <= 1e-15


# --- l1_max -------------------------------------------------------------------------------------


def null_intercept(naive):
    """argmin_c of the null model, without the package."""
    kinks = [*naive.b, *(naive.b - 0.3), *(naive.b + 0.3)]  # of whichever loss
    start = min(kinks, key=lambda c: naive.P(np.zeros(naive.d), c))
    if naive.name in LINES:
        return float(start)
    slope = lambda c: sum(  # noqa: E731
        naive.w[i] * naive.slope(c, naive.b[i]) for i in range(naive.n)
    )
    return optimize.brentq(slope, -20, 20, xtol=1e-15, rtol=1e-15)


@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("positive", [False, True], ids=["", "positive"])
@pytest.mark.parametrize("name", sorted(BOOK))
@pytest.mark.parametrize("seed", [0, 1])
def test_l1_max(name, positive, intercept, seed):
    naive = Naive(name, "l1", positive, weighted=True, intercept=intercept, n=9, seed=seed)
    c = null_intercept(naive) if intercept else 0.0
    l1 = naive.problem.l1_max()

    def at(l1):
        return ac.Problem(
            naive.A,
            naive.b,
            naive.problem.loss,
            l1,
            positive=positive,
            intercept=intercept,
            sample_weight=naive.w,
        )

    if name not in LINES:
        y = [naive.slope(c, t) for t in naive.b]
        expected = max(0.0, *(-u if positive else abs(u) for u in naive.u(y)))
        assert l1 == pytest.approx(expected, rel=1e-9, abs=1e-13)
        if l1 > 0:
            naive.l1 = 0.9 * l1
            assert naive.optimum()[0] < naive.P(np.zeros(naive.d), c) * (1 - 1e-6)
    # an upper bound for kinked losses: no better point may exist there either
    naive.l1 = l1
    assert naive.optimum()[0] >= naive.P(np.zeros(naive.d), c) - 1e-9
    if l1 > 0 and (name not in LINES or not intercept):
        assert ac.certify(at(l1 * (1 + 1e-12)), np.zeros(naive.d), c).gap < 1e-8


# --- rows that are not visited ------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_of_zero_weight_and_of_zeros(form):
    naive = Naive("hinge", weighted=True, zero_row=True, n=8)
    A, b, w = naive.A, naive.b, naive.w
    problem = ac.Problem(form(A), b, "hinge", l2=0.1, sample_weight=w)
    assert problem.active.tolist() == [0, 1, 2, 5, 6, 7]  # 3 and (weight) 8; 4 is zeros
    with_intercept = ac.Problem(form(A), b, "hinge", l2=0.1, sample_weight=w, intercept=True)
    assert with_intercept.active.tolist() == [0, 1, 2, 4, 5, 6, 7]
    keep = w > 0
    fewer = ac.Problem(A[keep], b[keep], "hinge", l2=0.1, sample_weight=w[keep] * 7 / 8)
    for solver in ("dcd", "spdc"):
        one, other = (ac.solve(p, solver, tol=1e-9, max_passes=10**5) for p in (problem, fewer))
        assert one.primal == pytest.approx(other.primal, rel=1e-8)
        assert one.x == pytest.approx(other.x, abs=1e-4)


def test_rounding_is_known_as_well_as_asked():
    """A tolerance spares the sharp bound where the rough one is invisible beside it."""
    rng = np.random.default_rng(11)
    A = rng.standard_normal((3000, 4)) * [1.0, 1.0, 1.0, 1e-6] + [0.0, 0.0, 100.0, 0.0]
    problem = ac.Problem(A, A @ np.ones(4) + 0.1 * rng.standard_normal(3000), l2=1e-6)
    result = ac.solve(problem, "newton", tol=1e-10)
    sharp = problem.judge(result.x, result.y, 0.0)
    asked = problem.judge(result.x, result.y, 0.0, tol=1e-4)
    assert asked[0] == sharp[0]
    assert sharp[1] - 1e-10 * abs(sharp[1]) <= asked[1] <= sharp[1]


@pytest.mark.parametrize("name", sorted(BOOK))
@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_are_looked_at_in_parts(name, weighted, monkeypatch):
    """P, D and the domain: what a row gives is its own, and sums are those of all rows."""
    naive = Naive(name, weighted=weighted, n=53)
    problem, x = naive.problem, np.array([0.3, -0.7, 1.1])
    z = problem.predict(x)
    y = problem.loss.derivative(z, problem.b) + np.linspace(-2.0, 2.0, naive.n)

    def values():
        inside = problem.into_domain(y)
        return problem.primal(x), problem.dual(inside), *inside

    whole = values()
    monkeypatch.setattr(row_sums, "MANY", 20)
    monkeypatch.setattr(row_sums, "PART", 16)
    assert values() == pytest.approx(whole, rel=1e-14)
