"""The judge: exact on small integers, conjugate by definition, and not to be lied to."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from hostile import judge
from hostile.cases import LOSSES, PARAMETER, Case, case
from hostile.check import Verdict, judge_result
from hostile.judge import EPS, OWN, Instance, Real
from hostile.optimum import near_optimum

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long double is no longer than double here"
)
SCALAR = [name for name in LOSSES if name != "multinomial"]


# ---- P and D against exact arithmetic --------------------------------------------------------


def phi(name, z, b):
    if name == "squared":
        return (z - b) ** 2 / 2
    return abs(z - b) if name == "absolute" else max(Fraction(0), 1 - b * z)


def phi_conjugate(name, v, b):
    return v * v / 2 + b * v if name == "squared" else b * v


@pytest.mark.parametrize("name", ["squared", "absolute", "hinge"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2", [0, Fraction(1, 4)])
def test_exact_on_small_integers(name, positive, l2):
    rng = np.random.default_rng(7)
    n, d, l1 = 6, 3, Fraction(5, 8)
    A, w = rng.integers(-3, 4, (n, d)), rng.integers(0, 5, n)
    b = rng.choice([-1, 1], n) if name == "hinge" else rng.integers(-4, 5, n)
    x, c = rng.integers(0 if positive else -3, 4, d), 2
    rows = [[Fraction(int(a)) for a in row] for row in A]
    W, B = ([Fraction(int(v)) for v in values] for values in (w, b))
    X = [Fraction(int(v)) for v in x]
    exact = (
        sum(
            wi * phi(name, sum(a * v for a, v in zip(row, X, strict=True)) + c, bi)
            for row, wi, bi in zip(rows, W, B, strict=True)
        )
        / n
        + l1 * sum(map(abs, X))
        + Fraction(l2) / 2 * sum(v * v for v in X)
    )
    problem = Instance.of(A, b, name, None, float(l1), float(l2), positive, w, True)
    assert abs(judge.primal(problem, x, c) - Real(exact.numerator) / exact.denominator) < 1e-17 * (
        1 + abs(exact)
    )

    # a dual point that is feasible as it stands: balanced, and small enough for l2 = 0
    y = [
        -bi / 2 if name == "hinge" else Fraction(int(v), 4)
        for bi, v in zip(B, rng.integers(-3, 4, n), strict=True)
    ]
    up = sum(wi * v for wi, v in zip(W, y, strict=True) if v > 0)
    down = -sum(wi * v for wi, v in zip(W, y, strict=True) if v < 0)
    y = [v * down if v > 0 else v * up for v in y]
    most = max(map(abs, y)) or Fraction(1)
    y = [v / most for v in y] if name != "squared" else y
    u = [sum(wi * v * row[j] for wi, v, row in zip(W, y, rows, strict=True)) / n for j in range(d)]
    if l2 == 0:
        factor = min(1, l1 / max(map(abs, u)))
        y, u = [v * factor for v in y], [v * factor for v in u]
    excess = [max((-v if positive else abs(v)) - l1, 0) for v in u]
    exact = -sum(wi * phi_conjugate(name, v, bi) for wi, v, bi in zip(W, y, B, strict=True)) / n
    exact -= sum(v * v for v in excess) / (2 * l2) if l2 else 0
    long = np.array([Real(v.numerator) / v.denominator for v in y])
    assert abs(judge.dual(problem, long).value - Real(exact.numerator) / exact.denominator) < (
        1e-16 * (1 + abs(exact))
    )


# ---- conjugacy -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCALAR)
def test_conjugate_is_the_supremum(name):
    rng = np.random.default_rng(3)
    margin = name in ("hinge", "smooth_hinge", "squared_hinge", "logistic")
    for b in [-1.0, 1.0] if margin else [0.0, 2.0, 5.0]:
        b = np.array([b], Real)
        lo, hi = (float(end[0]) for end in judge.domain(name, PARAMETER.get(name), b))
        for t in rng.uniform(0.05, 0.95, 5):
            v = np.array([max(lo, -3.0) * (1 - t) + min(hi, 3.0) * t], Real)

            def negative(z, v=v, b=b):
                return float(
                    (judge.loss(name, PARAMETER.get(name), np.array([z], Real), b) - v * z)[0]
                )

            grid = np.linspace(-60, 60, 4001)
            k = int(np.argmin([negative(z) for z in grid]))
            near = optimize.minimize_scalar(
                negative,
                bounds=(grid[max(k - 1, 0)], grid[min(k + 1, 4000)]),
                method="bounded",
                options={"xatol": 1e-12},
            )
            value = sum(judge.conjugate_terms(name, PARAMETER.get(name), v, b))[0]
            assert float(value) == pytest.approx(-min(near.fun, negative(grid[k])), abs=1e-7)


def test_multinomial_conjugate_is_the_supremum():
    rng = np.random.default_rng(4)
    for _ in range(5):
        p, b = rng.dirichlet(np.ones(4)), np.array([rng.integers(4)])
        v = p.copy()
        v[b[0]] -= 1.0
        v = v[None].astype(Real)
        found = optimize.minimize(
            lambda z, v=v, b=b: float(
                (judge.loss("multinomial", None, z[None].astype(Real), b) - (v * z).sum())[0]
            ),
            np.zeros(4),
            method="BFGS",
            options={"gtol": 1e-9},
        )
        value = sum(judge.conjugate_terms("multinomial", None, v, b))[0]
        assert float(value) == pytest.approx(-found.fun, abs=1e-9)


def test_outside_the_domain_the_supremum_is_infinite():
    b = np.array([1.0, -1.0], Real)
    for name in ("hinge", "logistic", "smooth_hinge"):
        lo, hi = judge.domain(name, PARAMETER.get(name), b)
        assert lo.tolist() == [-1.0, 0.0]
        assert hi.tolist() == [0.0, 1.0]
    for v in (-1.1, 0.1):  # vz - phi(z) grows for ever in one direction
        z = np.array([1e3, 1e6], Real) * (1 if v > 0 else -1)
        rises = v * z - judge.loss("hinge", None, z, np.ones(2, Real))
        assert rises[1] > rises[0] > 0


# ---- weak duality ----------------------------------------------------------------------------


@settings(max_examples=100, deadline=None, derandomize=True)
@given(number=st.integers(0, 10**6), seed=st.integers(0, 10**6))
def test_weak_duality(number, seed):
    """D of any y, made feasible, is below P of any x: of hostile problems, too."""
    one = case(number)
    if one.l1 == 0.0 and one.l2 == 0.0:
        return
    problem, rng = one.instance(), np.random.default_rng(seed)
    y_shape = (problem.n, *problem.x_shape[1:])
    x = rng.standard_normal(problem.x_shape) * 10.0 ** rng.uniform(-6, 3)
    x = np.abs(x) if one.positive else x
    c = rng.standard_normal(problem.x_shape[1:]) * 10.0 ** rng.uniform(-3, 3) * one.intercept
    D = judge.dual(problem, rng.standard_normal(y_shape) * 10.0 ** rng.uniform(-12, 3))
    off = judge.primal_rounding(problem, x, c) + judge.dual_rounding(problem, D.y)
    P = judge.primal(problem, x, c)
    assert D.value <= P + OWN * off
    again = judge.dual(problem, D.y)  # it was feasible: nothing but rounding is left to repair
    assert again.outside < 1e-18
    assert again.imbalance < 1e-17
    assert abs(again.value - D.value) <= OWN * judge.dual_rounding(problem, D.y)


@pytest.mark.parametrize("loss", LOSSES)
def test_rounding_bounds_float64_and_is_small(loss):
    """The bound holds for float64's own P, and is no excuse on plain problems."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((40, 5))
    z = A @ rng.standard_normal(5)
    b = {"multinomial": np.arange(40) % 3, "poisson": np.floor(np.exp(z / 2))}.get(
        loss,
        z
        if loss not in ("hinge", "smooth_hinge", "squared_hinge", "logistic")
        else np.where(z > 0, 1.0, -1.0),
    )
    for offset in (0.0, 1e8):
        problem = Instance.of(A + offset, b, loss, PARAMETER.get(loss), 0.1, 0.1, intercept=True)
        x = 0.1 * rng.standard_normal(problem.x_shape)
        c = -offset * x.sum(axis=0)
        P, bound = judge.primal(problem, x, c), judge.primal_rounding(problem, x, c)
        plain = np.asarray(problem.A, float) @ x + c  # float64
        values = judge.loss(loss, problem.parameter, plain.astype(Real), problem.b)
        assert abs(values.mean() + judge.penalty(problem, x) - P) <= bound
        if offset == 0.0:
            assert bound < 200 * EPS * max(abs(P), 1)


# ---- planted lies ----------------------------------------------------------------------------


@pytest.fixture
def ridge():
    """A case with large targets, and an honest result: the solution of the normal equations."""
    rng = np.random.default_rng(1)
    A, l2 = rng.standard_normal((30, 4)), 0.3
    b = A @ [1.0, -2.0, 0.5, 3.0] + 0.3 * rng.standard_normal(30) + 1e3
    one = Case(0, A, b, "squared", l2=l2, intercept=True, tol=1e-9)
    mean, middle = A.mean(axis=0), b.mean()
    x = np.linalg.solve(
        (A - mean).T @ (A - mean) / 30 + l2 * np.eye(4), (A - mean).T @ (b - middle) / 30
    )
    c = middle - mean @ x
    y = A @ x + c - b
    y -= y.mean()
    P = float(judge.primal(one.instance(), x, c))
    D = float(judge.dual(one.instance(), y).value)
    return one, SimpleNamespace(x=x, intercept=c, y=y, primal=P, dual=D)


def kinds(one, point):
    gap = getattr(point, "gap", max(point.primal - point.dual, 0.0))
    relative = gap / abs(point.primal)
    history = SimpleNamespace(
        columns=("passes", "seconds", "operations", "primal", "dual", "gap", "relative_gap"),
        passes=np.array([0, 3]),
        seconds=np.array([0.0, 0.1]),
        operations=np.array([0, 360]),
        primal=np.array([1.0, point.primal]),
        dual=np.array([0.0, point.dual]),
        gap=np.array([1.0, gap]),
        relative_gap=np.array([1.0, relative]),
    )
    result = SimpleNamespace(
        **{
            "gap": gap,
            "relative_gap": relative,
            "converged": bool(relative <= one.tol),
            "status": "converged",
            "passes": 3,
            "history": history,
            **vars(point),
        }
    )
    verdict = Verdict(0, "")
    judge_result(one, result, verdict)
    return {kind for kind, _ in verdict.failures}


def test_an_honest_result_passes(ridge):
    assert kinds(*ridge) == set()


def test_a_raised_dual_is_caught(ridge):
    one, point = ridge
    point.dual += 1e-9 * point.dual
    assert {"D not as judged", "D above P"} <= kinds(one, point)


def test_a_moved_x_is_caught(ridge):
    one, point = ridge
    point.x = point.x * (1 + 1e-3)  # P is still the old one
    assert {"P not as judged", "gap too small", "false converged"} <= kinds(one, point)
    point.primal = float(judge.primal(one.instance(), point.x, point.intercept))
    point.gap = 0.0  # P is right, and the gap is not that of it
    assert {"gap too small", "false converged"} <= kinds(one, point)


def test_an_unbalanced_y_is_caught(ridge):
    """Unbalanced by 1e-9 of its size; the offset of the targets makes D of it too large."""
    one, point = ridge
    problem = one.instance()
    point.y = point.y - 1e-9 * np.abs(point.y).max()
    terms = judge.conjugate_terms("squared", None, point.y.astype(Real), problem.b)
    u = judge.average(problem, point.y.astype(Real))
    point.dual = float(-sum(t.mean() for t in terms) - judge.conjugate_penalty(problem, np.abs(u)))
    assert {"D not as judged", "D above P"} <= kinds(one, point)


def test_a_y_outside_its_constraints_is_caught():
    rng = np.random.default_rng(2)
    A, b = rng.standard_normal((20, 3)), rng.standard_normal(20)
    one = Case(0, A, b, "squared", l1=0.01, tol=1e-6)
    lasso = Instance.of(A, b, l1=0.01)
    x = np.asarray(near_optimum(lasso, np.zeros(3), 0.0)[0][0], float)
    y = A @ x - b
    P = float(judge.primal(lasso, x))
    honest = judge.dual(lasso, y)
    point = SimpleNamespace(
        x=x, intercept=0.0, y=np.asarray(honest.y, float), primal=P, dual=float(honest.value)
    )
    assert "D not as judged" not in kinds(one, point)
    point.y = 1.001 * point.y  # |u| > l1: not feasible, but with a larger value
    point.dual = float(-np.mean(point.y**2 / 2 + b * point.y))
    assert point.dual > honest.value
    assert "D not as judged" in kinds(one, point)
    one = Case(0, A, np.sign(b), "hinge", l2=0.1, tol=1e-6)
    point = SimpleNamespace(x=np.zeros(3), intercept=0.0, y=-1.5 * np.sign(b), primal=1.0, dual=0.9)
    assert "D not as judged" in kinds(one, point)


def test_nan_worse_points_and_odd_histories_are_caught(ridge):
    one, point = ridge
    honest = dict(vars(point))
    assert "NaN" in kinds(one, SimpleNamespace(**honest | {"x": np.full(4, np.nan)}))
    assert "NaN" in kinds(one, SimpleNamespace(**honest | {"x": np.full(4, np.inf)}))
    far = {
        "x": np.full(4, 1e6),
        "primal": float(judge.primal(one.instance(), np.full(4, 1e6), point.intercept)),
    }
    assert "worse than start" in kinds(one, SimpleNamespace(**honest | far))
    assert "history" in kinds(one, SimpleNamespace(**honest | {"converged": False}))
    assert "too long" in kinds(one, SimpleNamespace(**honest | {"passes": 10**6}))


def test_cases_are_deterministic():
    for number in (0, 17, 1234):
        first, second = case(number), case(number)
        assert str(first) == str(second)
        assert np.array_equal(first.instance().A, second.instance().A)
        assert np.array_equal(first.b, second.b)


def test_cases_cover_what_they_should():
    """All losses, and with each of them every kind of penalty, hostility and an intercept."""
    seen = {}
    for number in range(2000):
        one = case(number)
        tags = seen.setdefault(one.loss, set())
        tags |= {"intercept"} if one.intercept else set()
        tags |= {"extreme"} if one.extreme else set()
        tags |= {("l1", one.l1 > 0, "l2", one.l2 > 0)}
        tags |= {word for trait in one.traits for word in trait.split()[:1]}
    assert set(seen) == set(LOSSES)
    for loss, tags in seen.items():
        wanted = {"intercept", "extreme", "weights", "features", "float32", "CSR"}
        wanted |= {("l1", a, "l2", b) for a, b in ((True, False), (False, True), (True, True))}
        assert wanted <= tags, loss
