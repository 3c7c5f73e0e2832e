"""The losses against their textbook definitions: values, conjugates, dual prox, smoothness.

Nothing here uses the package's formulas to check themselves: phi and phi* are written out
below, one scalar at a time, and the dual prox is compared with a bisection of its optimality
condition.
"""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import adacoord as ac
from adacoord import losses as ls

SETTINGS = settings(max_examples=50, deadline=None)
INF = math.inf


def xlogx(t):
    return t * math.log(t) if t > 0 else 0.0


def softplus(t):
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


def smooth_hinge(z, b, mu):
    m = b * z
    return 0.0 if m >= 1 else 1 - mu / 2 - m if m <= 1 - mu else (1 - m) ** 2 / (2 * mu)


def huber(z, b, delta):
    r = abs(z - b)
    return r * r / 2 if r <= delta else delta * r - delta * delta / 2


def pinball(z, b, q):
    return q * (b - z) if b > z else (1 - q) * (z - b)


def logistic_conjugate(v, b, p):
    return xlogx(-b * v) + xlogx(1 + b * v)


def tweedie(z, b, p):
    return (b and b * math.exp((1 - p) * z) / (p - 1)) + math.exp((2 - p) * z) / (2 - p)


def tweedie_argument(v, b, p):
    """The z with phi'(z) = v, which increases in z, by bisection."""
    low, high, slope = -1.0, 1.0, tweedie_slope
    while slope(low, b, p) > v and low > -1e5:
        low *= 2
    while slope(high, b, p) < v:
        high *= 2
    for _ in range(200):
        z = 0.5 * (low + high)
        if z in (low, high):
            break
        low, high = (z, high) if slope(z, b, p) < v else (low, z)
    return 0.5 * (low + high)


def tweedie_slope(z, b, p):
    return math.exp((2 - p) * z) - (b and b * math.exp(min((1 - p) * z, 700.0)))


def tweedie_conjugate(v, b, p):
    """sup_z v z - phi(z), where the supremum is attained."""
    if b == 0:
        return (xlogx(v) - v) / (2 - p)
    z = tweedie_argument(v, b, p)
    return v * z - tweedie(z, b, p)


# name: phi(z, b, parameter), phi*(v, b, parameter) inside its domain, the domain, gamma
TEXTBOOK = {
    "squared": (
        lambda z, b, p: (z - b) ** 2 / 2,
        lambda v, b, p: v * v / 2 + b * v,
        lambda b, p: (-INF, INF),
        lambda p: 1.0,
    ),
    "smooth_hinge": (
        smooth_hinge,
        lambda v, b, p: b * v + p * v * v / 2,
        lambda b, p: (min(0, -b), max(0, -b)),
        lambda p: p,
    ),
    "hinge": (
        lambda z, b, p: max(0.0, 1 - b * z),
        lambda v, b, p: b * v,
        lambda b, p: (min(0, -b), max(0, -b)),
        lambda p: 0.0,
    ),
    "squared_hinge": (
        lambda z, b, p: max(0.0, 1 - b * z) ** 2,
        lambda v, b, p: b * v + v * v / 4,
        lambda b, p: (-INF, 0.0) if b > 0 else (0.0, INF),
        lambda p: 0.5,
    ),
    "logistic": (
        lambda z, b, p: softplus(-b * z),
        logistic_conjugate,
        lambda b, p: (min(0, -b), max(0, -b)),
        lambda p: 4.0,
    ),
    "huber": (huber, lambda v, b, p: v * v / 2 + b * v, lambda b, p: (-p, p), lambda p: 1.0),
    "epsilon_insensitive": (
        lambda z, b, p: max(0.0, abs(z - b) - p),
        lambda v, b, p: b * v + p * abs(v),
        lambda b, p: (-1.0, 1.0),
        lambda p: 0.0,
    ),
    "squared_epsilon_insensitive": (
        lambda z, b, p: max(0.0, abs(z - b) - p) ** 2,
        lambda v, b, p: b * v + p * abs(v) + v * v / 4,
        lambda b, p: (-INF, INF),
        lambda p: 0.5,
    ),
    "absolute": (
        lambda z, b, p: abs(z - b),
        lambda v, b, p: b * v,
        lambda b, p: (-1.0, 1.0),
        lambda p: 0.0,
    ),
    "quantile": (pinball, lambda v, b, p: b * v, lambda b, p: (-p, 1 - p), lambda p: 0.0),
    "poisson": (
        lambda z, b, p: math.exp(z) - b * z,
        lambda v, b, p: xlogx(v + b) - (v + b),
        lambda b, p: (-b, INF),
        lambda p: 0.0,
    ),
    "gamma": (
        lambda z, b, p: z + b * math.exp(-z),
        lambda v, b, p: xlogx(1 - v) - (1 - v) * (1 + math.log(b)),
        lambda b, p: (-INF, 1.0),
        lambda p: 0.0,
    ),
    "tweedie": (
        lambda z, b, p: (
            (b and b * math.exp((1 - p) * z) / (p - 1)) + math.exp((2 - p) * z) / (2 - p)
        ),
        tweedie_conjugate,
        lambda b, p: (-INF if b > 0 else 0.0, INF),
        lambda p: 0.0,
    ),
    "log_cosh": (
        lambda z, b, p: softplus(2 * abs(z - b)) - abs(z - b) - math.log(2),
        lambda v, b, p: b * v + (xlogx(1 + v) + xlogx(1 - v)) / 2,
        lambda b, p: (-1.0, 1.0),
        lambda p: 1.0,
    ),
}
PARAMETERS = {
    "smooth_hinge": (ls.SmoothHinge, (0.01, 0.5, 1.0, 7.0)),
    "huber": (ls.Huber, (0.05, 1.35, 20.0)),
    "epsilon_insensitive": (ls.EpsilonInsensitive, (0.0, 0.1, 3.0)),
    "squared_epsilon_insensitive": (ls.SquaredEpsilonInsensitive, (0.0, 0.1, 3.0)),
    "quantile": (ls.Quantile, (0.05, 0.5, 0.9)),
    "tweedie": (ls.Tweedie, (1.05, 1.5, 1.9)),
}
CLASSES = ("smooth_hinge", "hinge", "squared_hinge", "logistic")
KINKED = ("hinge", "absolute", "quantile", "epsilon_insensitive")
STEEP = ("poisson", "gamma", "tweedie")
ENTROPIES = ("logistic", "log_cosh", *STEEP)


class Case:
    """A loss object beside its textbook functions."""

    def __init__(self, name, loss, p):
        self.name, self.loss, self.p = name, loss, p
        self._phi, self._conjugate, self._domain, gamma = TEXTBOOK[name]
        self.gamma = gamma(p)

    def phi(self, z, b):
        return self._phi(float(z), float(b), self.p)

    def domain(self, b):
        return tuple(float(end) for end in self._domain(float(b), self.p))

    def conjugate(self, v, b):
        lo, hi = self.domain(b)
        return self._conjugate(float(v), float(b), self.p) if lo <= v <= hi else INF

    def targets(self):
        if self.name in CLASSES:
            return st.sampled_from([-1.0, 1.0])
        if self.name == "gamma":
            return st.floats(1e-3, 1e3)
        if self.name in STEEP:
            return st.integers(0, 50).map(float)
        return st.floats(-20, 20)

    def predictions(self, size=1e3):
        size = min(size, 30.0) if self.name in STEEP else size
        # the middle and the kinks as often as the far ends
        return st.floats(-size, size) | st.floats(-3, 3) | st.sampled_from([-1.0, 0.0, 1.0])

    def duals(self, b):
        """Points of the domain, its ends included; at most 1e3 away from 0."""
        lo, hi = (min(max(end, -1e3), 1e3) for end in self.domain(b))
        return st.floats(lo, hi) | st.sampled_from([lo, hi, 0.5 * (lo + hi)])


CASES = [Case(name, make(), None) for name, make in ls.LOSSES.items() if name not in PARAMETERS] + [
    Case(name, make(p), p) for name, (make, values) in PARAMETERS.items() for p in values
]
each = pytest.mark.parametrize(
    "case", CASES, ids=lambda c: c.name if c.p is None else f"{c.name}-{c.p:g}"
)


def scalar(method, *args):
    """A method of a loss at one point, through the arrays it is made for."""
    out = np.asarray(method(*(np.array([float(a)]) for a in args)))
    assert out.shape == (1,) and out.dtype == np.float64
    return float(out[0])


def test_all_fourteen_are_here():
    assert set(ls.LOSSES) == set(TEXTBOOK) and len(TEXTBOOK) == 14
    assert {c.name for c in CASES} == set(TEXTBOOK)


# --- values, conjugates, subgradients -----------------------------------------------------------


@each
@SETTINGS
@given(data=st.data())
def test_value_is_the_textbook_formula_and_derivative_its_subgradient(case, data):
    b = data.draw(case.targets())
    z, other = sorted((data.draw(case.predictions()), data.draw(case.predictions())))
    left, right = case.phi(z, b), case.phi(other, b)
    for t, expected in ((z, left), (other, right)):
        assert scalar(case.loss.value, t, b) == pytest.approx(
            expected, rel=1e-12, abs=1e-13 * (1 + abs(t) + abs(b)) * max(1, case.p or 1)
        )
    v, w = (scalar(case.loss.derivative, t, b) for t in (z, other))
    assert v <= w
    rounding = 1e-12 * (1 + abs(left) + abs(right) + abs(v * z) + abs(w * other))
    assert right >= left + v * (other - z) - rounding
    assert left >= right + w * (z - other) - rounding


@each
@SETTINGS
@given(data=st.data())
def test_conjugate_is_the_textbook_formula_and_inf_outside(case, data):
    b = data.draw(case.targets())
    v = data.draw(case.duals(b))
    assert scalar(case.loss.conjugate, v, b) == pytest.approx(
        case.conjugate(v, b), rel=1e-12, abs=1e-13 * (1 + abs(v)) * (1 + abs(b))
    )
    lo, hi = case.domain(b)
    assert [float(end[0]) for end in case.loss.domain(np.array([b]))] == [lo, hi]
    for end, away in ((lo, -1.0), (hi, 1.0)):
        if math.isfinite(end):
            beyond = data.draw(st.floats(1e-9, 1e6)) * away + end
            assert scalar(case.loss.conjugate, beyond, b) == INF
            assert scalar(case.loss.conjugate, np.nextafter(end, away * INF), b) == INF


@each
@SETTINGS
@given(data=st.data())
def test_fenchel_young(case, data):
    b, z = data.draw(case.targets()), data.draw(case.predictions())
    v = data.draw(case.duals(b))
    value, conjugate = scalar(case.loss.value, z, b), scalar(case.loss.conjugate, v, b)
    rounding = 1e-13 * (1 + abs(value) + abs(conjugate) + abs(v * z) + abs(b * v) + abs(b * z))
    assert value + conjugate >= v * z - rounding
    v = scalar(case.loss.derivative, z, b)
    conjugate = scalar(case.loss.conjugate, v, b)
    assert math.isfinite(conjugate), "the derivative left the domain of the conjugate"
    rounding = 1e-13 * (1 + abs(value) + abs(conjugate) + abs(v * z) + abs(b * v) + abs(b * z))
    assert value + conjugate == pytest.approx(v * z, abs=rounding, rel=0)


@each
@SETTINGS
@given(data=st.data())
def test_value_is_the_supremum_over_a_bounded_domain(case, data):
    b, z = data.draw(case.targets()), data.draw(case.predictions(50))
    lo, hi = case.domain(b)
    if not math.isfinite(hi - lo):
        hi = min(hi, 40.0)
        lo, z = max(lo, -40.0), max(min(z, 3.0), -3.0)  # where the maximiser is inside
    grid = np.linspace(lo, hi, 4001)
    sup = np.max(grid * z - case.loss.conjugate(grid, np.full(grid.shape, b)))
    value = case.phi(z, b)
    assert sup <= value + 1e-10 * (1 + abs(value) + abs(b))
    if lo <= scalar(case.loss.derivative, z, b) <= hi:
        # beside the maximiser a quadratic loses alpha h^2/2, an entropy up to h log(1/h)
        h = (hi - lo) / 4000
        loss_of_grid = 10 * h * math.log(1 / h) if case.name in ENTROPIES else h
        assert sup >= value - loss_of_grid * max(1.0, case.gamma) * max(1.0, h)


@each
def test_smoothness_is_one_over_gamma_and_no_better(case):
    assert case.loss.gamma == case.gamma
    z = np.linspace(-6.0, 6.0, 12002)  # no point at a kink, none of width mu or delta missed
    targets = (1.0, 3.0) if case.name in STEEP else (-1.0, 1.0)
    slope = max(
        float(np.max(np.diff(case.loss.derivative(z, np.full(z.shape, b))) / np.diff(z)))
        for b in targets
    )
    if case.name in KINKED or case.name in STEEP:
        assert case.gamma == 0.0 and slope > 10.0  # a jump; e^6, or the root of that
    else:
        assert (1 - 1e-3) / case.gamma <= slope <= (1 + 1e-9) / case.gamma + 1e-9


# --- the dual prox ------------------------------------------------------------------------------


def objective(case, v, z, b, y, s):
    """v z - phi*(v) - (v-y)^2/(2s) and the size of its terms, for their rounding."""
    terms = (v * z, -case.conjugate(v, b), -((v - y) ** 2) / (2 * s))
    return sum(terms), sum(abs(t) for t in terms) + abs(v * b)


def conjugate_slope(case, v, b):
    """phi*'(v) inside the domain; at a kink the element nearest to that of the right side."""
    p, name = case.p, case.name
    if name == "logistic":
        q = -b * v
        return -b * (math.log(q) - math.log1p(-q))
    if name == "poisson":
        return math.log(v + b)
    if name == "gamma":
        return math.log(b) - math.log(1 - v)
    if name == "tweedie":
        return tweedie_argument(v, b, p)
    if name == "log_cosh":
        return b + math.atanh(v)
    curvature = {
        "squared": 1,
        "smooth_hinge": p,
        "squared_hinge": 0.5,
        "huber": 1,
        "squared_epsilon_insensitive": 0.5,
    }.get(name, 0)
    epsilon = p if "epsilon" in name else 0.0
    return b + curvature * v + epsilon * (v > 0) - epsilon * (v < 0)


def bisected_dual_prox(case, z, b, y, s):
    """The zero of s (z - phi*'(v)) - (v - y), which decreases in v; the domain's end if none."""
    lo, hi = case.domain(b)
    reach = abs(y) + (abs(z) + abs(b) + (case.p or 0) + 1) * min(s, 1e13) + 1
    low, high = max(lo, -reach), min(hi, reach)
    for _ in range(200):
        v = 0.5 * (low + high)
        if v in (low, high):
            break
        if s * (z - conjugate_slope(case, v, b)) - (v - y) > 0:
            low = v
        else:
            high = v
    return 0.5 * (low + high)


def draw_prox(case, data):
    b, z = data.draw(case.targets()), data.draw(case.predictions())
    y = data.draw(case.duals(b))
    s = 10.0 ** data.draw(st.floats(-8, 8) | st.sampled_from([-8.0, 0.0, 8.0]))
    return z, b, y, s


def steepness(case, t, b):
    """phi''(t), within 1 of t."""
    if case.name == "poisson":
        return math.exp(min(t, 40.0))
    if case.name == "gamma":
        return b * math.exp(min(-t, 40.0))
    p = case.p
    return (p - 1) * b * math.exp(min((1 - p) * t, 40.0)) + (2 - p) * math.exp(min((2 - p) * t, 40))


@each
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_dual_prox(case, data):
    z, b, y, s = draw_prox(case, data)
    v = scalar(case.loss.dual_prox, z, b, y, s)
    lo, hi = case.domain(b)
    assert lo <= v <= hi

    # no other point is better, near or far
    best, size = objective(case, v, z, b, y, s)
    scale = abs(v) + abs(y) + 1e-3
    nearby = [v + sign * eps * scale for eps in (1e-2, 1e-4, 1e-6) for sign in (-1, 1)]
    for other in [*nearby, data.draw(case.duals(b)), y, 0.0, max(lo, -1e6), min(hi, 1e6)]:
        other = min(max(other, lo), hi)
        value, other_size = objective(case, other, z, b, y, s)
        assert best >= value - 1e-13 * (1 + size + other_size), other

    # the zero of its optimality condition; s (z - b) and y are rounded before anything cancels
    expected = bisected_dual_prox(case, z, b, y, s)
    size = abs(y) + s * (abs(z) + abs(b) + (case.p or 0)) / (1 + s * case.gamma)
    if case.name in ENTROPIES:
        size = abs(y) + abs(b) + abs(expected)
    assert v == pytest.approx(expected, rel=1e-9, abs=1e-13 * size + 1e-12)

    # Moreau's identity: v = phi'(z - (v - y)/s), as far as that argument is known
    t = z - (v - y) / s
    end = 1.0 if case.name == "gamma" else abs(b)  # of the domain, from which v is taken
    rounding = 1e-14 * (abs(z) + (abs(v) + abs(y) + end) / s)
    if case.name in KINKED or (case.name in STEEP and rounding > 1.0):
        return
    lipschitz = 1 / case.gamma if case.gamma else steepness(case, t, b)
    assert v == pytest.approx(
        scalar(case.loss.derivative, t, b),
        rel=1e-9,
        abs=3 * lipschitz * rounding + 1e-12 * (1 + abs(b)),
    )


@each
@pytest.mark.parametrize("s", [1e-8, 1e-3, 1.0, 1e3, 1e8])
def test_dual_prox_over_arrays_stays_in_the_domain(case, s):
    rng = np.random.default_rng(1)
    n = 2000
    b = rng.integers(0, 9, n) * 1.0 if case.name in STEEP else rng.choice([-1.0, 1.0], n)
    b += case.name == "gamma"
    reach = 30.0 if case.name in STEEP else 1e3
    z = np.where(rng.random(n) < 0.5, rng.uniform(-reach, reach, n), rng.standard_normal(n))
    lo, hi = case.loss.domain(b)
    y = np.clip(rng.standard_normal(n), lo, hi)
    y[:200], y[200:400] = np.maximum(lo, -5)[:200], np.minimum(hi, 5)[200:400]
    v = case.loss.dual_prox(z, b, y, s)
    assert v.shape == (n,) and np.isfinite(v).all() and (v >= lo).all() and (v <= hi).all()
    start = case.loss.start(b)
    assert (start >= lo).all() and (start <= hi).all()
    assert np.isfinite([case.conjugate(*pair) for pair in zip(start, b, strict=True)]).all()
    if case.name in STEEP:  # the slope of an entropy is infinite at the end
        assert (start > lo).all() and (start < hi).all()


# --- objects ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, argument, value",
    [
        (ls.SmoothHinge, "mu", 0),
        (ls.SmoothHinge, "mu", -1.0),
        (ls.SmoothHinge, "mu", math.nan),
        (ls.SmoothHinge, "mu", INF),
        (ls.Huber, "delta", 0.0),
        (ls.Huber, "delta", -1),
        (ls.Huber, "delta", math.nan),
        (ls.Huber, "delta", INF),
        (ls.Quantile, "q", 0),
        (ls.Quantile, "q", 1),
        (ls.Quantile, "q", 1.5),
        (ls.Quantile, "q", math.nan),
        (ls.EpsilonInsensitive, "epsilon", -1),
        (ls.EpsilonInsensitive, "epsilon", math.nan),
        (ls.SquaredEpsilonInsensitive, "epsilon", -1),
        (ls.SquaredEpsilonInsensitive, "epsilon", INF),
        (ls.Huber, "delta", "a"),
        (ls.Quantile, "q", None),
        (ls.Tweedie, "power", 1.0),
        (ls.Tweedie, "power", 2),
        (ls.Tweedie, "power", 0.0),
        (ls.Tweedie, "power", math.nan),
    ],
)
def test_bad_parameters_get_a_sentence(make, argument, value):
    with pytest.raises(ValueError, match=rf"^{argument}={value!r}: .{{20,}}"):
        make(**{argument: value})


@each
def test_objects_are_values(case):
    copy = pickle.loads(pickle.dumps(case.loss))
    assert copy == case.loss and hash(copy) == hash(case.loss) and type(copy) is type(case.loss)
    assert {case.loss: 1}[copy] == 1
    if case.p is not None:
        parameter = case.loss.parameter
        assert getattr(copy, parameter) == case.p
        with pytest.raises(FrozenInstanceError):
            setattr(case.loss, parameter, 0.3)
        assert case.loss != type(case.loss)(**{parameter: 1.123 if parameter == "power" else 0.123})
    assert ls.get_loss(case.loss) is case.loss
    assert ls.get_loss(case.name).name == case.name


# --- weights ------------------------------------------------------------------------------------


def weighted_data(case, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((12, 3))
    b = rng.standard_normal(12)
    if case.name in STEEP:
        b = rng.integers(0, 4, 12) * 1.0 + (case.name == "gamma")
    if case.name in CLASSES:
        b = np.where(np.arange(12) % 2, 1.0, -1.0)
    return A, b, rng.integers(0, 4, 12), rng


@each
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**31))
@example(seed=0)
def test_integer_weights_repeat_rows(case, seed):
    A, b, count, rng = weighted_data(case, seed)
    count[:2] = 2, 3  # both labels stay
    n, N = 12, int(count.sum())
    rows = np.repeat(np.arange(n), count)
    penalty = {"l1": 0.02, "l2": 0.3}
    weighted = ac.Problem(A, b, case.loss, sample_weight=count * (n / N), **penalty)
    repeated = ac.Problem(A[rows], b[rows], case.loss, **penalty)
    double = ac.Problem(A, b, case.loss, sample_weight=count * (2 * n / N), **penalty)
    x = rng.standard_normal(3)
    y = case.loss.derivative(rng.standard_normal(n), b)
    assert weighted.primal(x) == pytest.approx(repeated.primal(x), rel=1e-12)
    assert weighted.dual(y) == pytest.approx(repeated.dual(y[rows]), rel=1e-11, abs=1e-12)
    g = 0.02 * np.abs(x).sum() + 0.15 * x @ x
    assert double.primal(x) - g == pytest.approx(2 * (weighted.primal(x) - g), rel=1e-11, abs=1e-13)
    if seed == 0:
        options = {"solver": "dcd", "tol": 1e-11, "max_passes": 100_000}
        one, other = (ac.solve(p, **options) for p in (weighted, repeated))
        assert one.primal == pytest.approx(other.primal, rel=1e-10, abs=1e-10)
        assert one.x == pytest.approx(other.x, abs=1e-4)
