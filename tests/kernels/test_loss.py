"""Every compiled function of the table of losses against :mod:`adacoord.problem.losses`.

The two share no code.  What is compared runs over every registered loss: one that is added is
tested by being registered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import adacoord as ac
from adacoord.kernels import loss as table
from adacoord.kernels.codes import CODES, MULTINOMIAL
from adacoord.problem.losses import BLOCK_LOSSES, LOSSES, Loss, get_loss

#: An epsilon of 0, or one that finite differences can see.
PARAMETERS = {
    "mu": st.floats(0.05, 10),
    "delta": st.floats(0.05, 10),
    "epsilon": st.just(0.0) | st.floats(1e-3, 3),
    "q": st.floats(0.05, 0.95),
    "power": st.floats(1.05, 1.95),
}
TARGETS = {
    "classification": st.sampled_from([-1.0, 1.0]),
    "regression": st.floats(-5, 5),
    "count": st.integers(0, 20).map(float),
    "positive": st.floats(0.05, 20),
}
#: exp(z) is part of the losses with a log link.
SIZE = {"classification": 300.0, "regression": 300.0, "count": 5.0, "positive": 5.0}
each = pytest.mark.parametrize("name", LOSSES)
checked = settings(max_examples=100, deadline=None)


class Draw:
    """A loss with a drawn parameter, a target, and what else a test asks for."""

    def __init__(self, name, data):
        cls, self.data = LOSSES[name], data
        parameter = () if cls.parameter is None else (data.draw(PARAMETERS[cls.parameter]),)
        self.loss = cls(*parameter)
        self.arguments = self.loss.code, *self.loss.constants
        self.b = data.draw(TARGETS[cls.task])
        self.lo, self.hi = (float(end[0]) for end in self.loss.domain(np.array([self.b])))

    def z(self):
        size = SIZE[self.loss.task]
        return self.data.draw(st.floats(-size, size) | st.floats(-3, 3))

    def v(self):
        """A point of the domain of phi*, its ends included."""
        lo, hi = max(self.lo, -50.0), min(self.hi, 50.0)
        return self.data.draw(st.floats(lo, hi) | st.sampled_from([lo, hi]))

    def s(self):
        return 10.0 ** self.data.draw(st.floats(-4, 4))

    def at(self, function, point, *more):
        """A compiled function at (point, b, more)."""
        return getattr(table, function)(*self.arguments, point, self.b, *more)

    def judge(self, method, point):
        """The same of the certificate's side."""
        return float(getattr(self.loss, method)(np.array([point]), np.array([self.b]))[0])


def difference(function, z, h):
    """The derivative of ``function`` at z; None where there is a kink or a jump within h."""
    ends = np.diff([function(z + t * h) for t in (-1.0, -0.5, 0.0, 0.5, 1.0)]) / (0.5 * h)
    if np.ptp(ends) > 1e-3 * np.abs(ends).max() + 1e-6:
        return None
    return ends.mean()


@each
@checked
@given(data=st.data())
def test_value_and_slope(name, data):
    d = Draw(name, data)
    z = d.z()
    value, slope, _ = d.at("expand", z)
    rounding = 1e-14 * (1 + abs(z) + abs(d.b)) * max(1.0, abs(slope))
    assert value == pytest.approx(d.judge("value", z), rel=1e-12, abs=rounding)
    assert d.at("value", z) == value
    expected = d.judge("derivative", z)
    assert slope == pytest.approx(expected, rel=1e-12, abs=1e-14)
    assert d.at("slope", z) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@each
@checked
@given(data=st.data())
def test_curvature(name, data):
    d = Draw(name, data)
    z = d.z()
    _, slope, curvature = d.at("expand", z)
    expected = difference(lambda t: d.judge("derivative", t), z, 1e-4)
    assume(expected is not None)
    assert curvature == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert d.at("curvature", slope) == pytest.approx(curvature, rel=1e-12, abs=1e-12)


@each
@checked
@given(data=st.data())
def test_conjugate(name, data):
    d = Draw(name, data)
    v = d.v()
    assert d.at("conjugate", v) == pytest.approx(d.judge("conjugate", v), rel=1e-12, abs=1e-13)
    for beyond in (d.lo - 0.1, d.hi + 0.1):
        if math.isfinite(beyond):
            assert d.at("conjugate", beyond) == d.judge("conjugate", beyond) == math.inf


@each
@checked
@given(data=st.data())
def test_dual_prox(name, data):
    """v maximises vz - phi*(v) - (v-y)^2/(2s) where it is a slope of phi at t = z - (v-y)/s.

    Then Fenchel and Young's inequality holds with equality there.
    """
    d = Draw(name, data)
    z, y, s = d.z(), d.v(), d.s()
    v = d.at("dual_prox", z, y, s)
    assert d.lo <= v <= d.hi
    t = z - (v - y) / s
    value, conjugate = d.judge("value", t), d.judge("conjugate", v)
    rounding = 1e-13 * (1 + abs(value) + abs(conjugate) + abs(t * v) + abs(d.b * v))
    unknown = 1e-15 * (abs(z) + abs(d.b) + (abs(v) + abs(y)) / s)  # of t
    assert value + conjugate - t * v <= rounding + 4 * unknown * (1 + abs(v))
    arrays = (np.array([a]) for a in (z, d.b, y, s))
    assert table.dual_prox_array(*d.arguments, *arrays)[0] == v


@each
@checked
@given(data=st.data())
def test_dual_prox_slope(name, data):
    d = Draw(name, data)
    z, y, s = d.z(), d.v(), d.s()
    expected = difference(lambda t: d.at("dual_prox", t, y, s), z, 1e-5)
    assume(expected is not None)
    v = d.at("dual_prox", z, y, s)
    assert d.at("dual_prox_slope", v, s) == pytest.approx(expected, rel=1e-3, abs=1e-5 * (1 + s))


@pytest.mark.parametrize("z", [-800.0, 800.0])
def test_no_overflow_far_out(z):
    """Where exp(z) is not a number the losses still are."""
    for name, sign in (("logistic", 1.0), ("log_cosh", 0.0)):
        loss = get_loss(name)
        value, slope, curvature = table.expand(loss.code, *loss.constants, z, sign)
        at = np.array([z]), np.array([sign])
        assert value == loss.value(*at)[0] and slope == loss.derivative(*at)[0]
        assert curvature == 0.0
        assert table.slope(loss.code, *loss.constants, z, sign) == slope


# ---- log cosh ----------------------------------------------------------------------------------


def test_the_iteration_of_log_cosh_never_cycles():
    """300,000 inputs, y at and near the ends, s from 1e-300 to 1e300, against a bisection."""
    rng, n = np.random.default_rng(0), 300_000
    s = 10.0 ** np.where(rng.random(n) < 0.5, rng.uniform(-8, 8, n), rng.uniform(-300, 300, n))
    z = rng.standard_normal(n) * 10.0 ** rng.uniform(-12, 4, n)
    y = np.tanh(rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 1.5, n))
    kind = rng.integers(0, 8, n)
    y[kind == 0], y[kind == 1], y[kind == 2] = 1.0, -1.0, 0.0
    y[kind == 3] = 1.0 - 1e-16 * rng.integers(1, 10**4, np.sum(kind == 3))
    loss = get_loss("log_cosh")
    v = loss.dual_prox(z, 0.0, y, s)
    # odd in (z, y): the root of s (r - z) + tanh(r) - y is made positive, and tanh(20) is 1
    sign = np.where(s * z + y < 0.0, -1.0, 1.0)
    z, y = sign * z, sign * y
    low, high = np.zeros(n), np.full(n, 20.0)
    for _ in range(70):
        r = 0.5 * (low + high)
        # 1 - tanh(r) where that is small
        rest = np.where(r < 0.3, np.tanh(r) - y, (1.0 - y) - 2.0 / (np.exp(2.0 * r) + 1.0))
        below = s * (r - z) + rest < 0.0
        low, high = np.where(below, r, low), np.where(below, high, r)
    np.testing.assert_allclose(v, sign * np.tanh(0.5 * (low + high)), rtol=0, atol=1e-15)
    assert (np.abs(v) <= 1.0).all()


def test_log_cosh_keeps_the_digits_of_small_residuals():
    """It is r^2/2 there, as is its conjugate: a certificate of targets that are nearly met."""
    loss = get_loss("log_cosh")
    for r in (1e-3, 1e-9, 1e-30):
        half = 0.5 * r * r
        at = np.array([r]), np.zeros(1)
        for found in (
            table.value(loss.code, *loss.constants, r, 0.0),
            loss.value(*at)[0],
            table.conjugate(loss.code, *loss.constants, r, 0.0),
            loss.conjugate(*at)[0],
        ):
            assert found == pytest.approx(half, rel=1e-6 if r == 1e-3 else 1e-14, abs=0)


# ---- codes -------------------------------------------------------------------------------------


def test_every_code_is_a_loss():
    codes = {cls().code for cls in (LOSSES | BLOCK_LOSSES).values()}
    assert codes == set(CODES)


@pytest.mark.parametrize("code", [-1, MULTINOMIAL, len(CODES), 99])
def test_an_unknown_code_is_nan_everywhere(code):
    """Also that of the multinomial loss, whose kernels are those of blocks."""
    constants = (1.0, 0.0, -1.0, 1.0)
    assert np.isnan(table.expand(code, *constants, 0.3, 1.0)).all()
    for function in (table.value, table.slope, table.curvature, table.conjugate):
        assert math.isnan(function(code, *constants, 0.3, 1.0))
    assert math.isnan(table.dual_prox(code, *constants, 0.3, 1.0, 0.2, 0.5))
    assert math.isnan(table.dual_prox_slope(code, *constants, 0.3, 1.0, 0.5))


@dataclass(frozen=True)
class Unknown(type(get_loss("squared"))):
    """A loss whose author forgot the table."""

    name = "unknown"
    code = 99


@dataclass(frozen=True)
class Codeless(Loss):
    name = "codeless"


@pytest.mark.parametrize("loss, code", [(Unknown(), "99"), (Codeless(), "None")])
def test_a_loss_without_a_row_in_the_table_is_refused(loss, code):
    sentence = rf"^loss={loss.__class__.__name__}\(.*\): its code={code} is not in the compiled"
    for use in (
        lambda: get_loss(loss),
        lambda: ac.Problem(np.eye(2), np.ones(2), loss, l2=0.1),
        lambda: loss.dual_prox(1.0, 0.0, 0.0, 1.0),
        lambda: ac.ERMRegressor(loss).fit(np.eye(2), np.arange(2.0)),
    ):
        with pytest.raises(ValueError, match=sentence):
            use()
