r"""An outside check of certificates: P - D in exact arithmetic, from the formulas alone.

Shares no code with the solvers, nor with :mod:`adacoord.problem`.  Floats are rational numbers:
A x, u and the dual point are integers over one denominator each, P and D are
:class:`fractions.Fraction`.  Losses with logarithms are evaluated in balls that hold the true value
(``arb`` of python-flint, 256 bits); what is returned are ends of intervals.

A dual point of floats is not feasible to the last digit.  It is made so exactly: cut to the domain
of the conjugates; its heavier sign scaled for the intercept (with K classes, what a class gets too
much is given by its rows to those that get too little, and all is scaled back into the domain);
scaled to :math:`|u|_\infty \le l_1` where l2 = 0.  The gap is then that of this point.

=====================  ===========  =============================================================
rows x columns         loss         time (one core, CPython 3.11)
=====================  ===========  =============================================================
1,000 x 100 (dense)    squared      0.3 s
1,000 x 100 (dense)    logistic     0.3 s
10,000 x 100 (dense)   hinge        3 s
=====================  ===========  =============================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

#: Bits of the balls: 70 digits, of which cancellation may take what it wants.
BITS = 256
ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)


@dataclass(frozen=True)
class Formulas:
    """phi(z), phi*(v) and its domain for a target b and the loss's parameter p (None if none).

    ``exact``: of fractions; else numbers come as fractions, and balls are returned.
    """

    value: Callable[[Any, Any, Any], Any]
    conjugate: Callable[[Any, Any, Any], Any]
    domain: Callable[[Any, Any], tuple[Fraction | None, Fraction | None]]
    exact: bool = True


def _positive(t: Fraction) -> Fraction:
    return t if t > 0 else ZERO


def _all(b: Fraction, p: Any) -> tuple[None, None]:
    return None, None


def _symmetric(end: Callable[[Any], Fraction]) -> Callable:
    return lambda b, p: (-end(p), end(p))


def _margin(b: Fraction, p: Any) -> tuple[Fraction, Fraction]:
    """q = -b v from 0 to 1."""
    return (-ONE, ZERO) if b > 0 else (ZERO, ONE)


def _huber(z: Fraction, b: Fraction, p: Fraction) -> Fraction:
    r = abs(z - b)
    return r * r / 2 if r <= p else p * r - p * p / 2


def _smooth_hinge(z: Fraction, b: Fraction, p: Fraction) -> Fraction:
    m = 1 - b * z
    return ZERO if m <= 0 else m - p / 2 if m >= p else m * m / (2 * p)


def _ball(t: Any) -> Any:
    from flint import arb, fmpq

    return arb(fmpq(t.numerator, t.denominator))


def _xlogx(t: Fraction) -> Any:
    return _ball(t) * _ball(t).log() if t > 0 else _ball(ZERO)


def _log_cosh(z: Fraction, b: Fraction, p: None) -> Any:
    r = abs(z - b)
    if r < 1:  # with all digits of a small one
        return (2 * _ball(r / 2).sinh() ** 2).log1p()
    return _ball(r) + (-2 * _ball(r)).exp().log1p() - _ball(Fraction(2)).log()


def _tweedie(z: Fraction, b: Fraction, p: Fraction) -> Any:
    rising = (_ball(z * (2 - p))).exp() / _ball(2 - p)
    return rising + _ball(b) * _ball(z * (1 - p)).exp() / _ball(p - 1) if b > 0 else rising


def _tweedie_conjugate(v: Fraction, b: Fraction, p: Fraction) -> Any:
    """An upper end of sup_t v t - phi(t): its value and slope at t, up to where the slope falls.

    The function is concave: with slopes of other signs at t and t + width, no value is above that
    line at t + width.
    """
    if b == 0:
        return (_xlogx(v) - _ball(v)) / _ball(2 - p)

    def slope(t: Fraction) -> Any:
        return _ball(v) - _ball(t * (2 - p)).exp() + _ball(b) * _ball(t * (1 - p)).exp()

    low, high = Fraction(-1), ONE
    while not slope(low) > 0:
        low *= 2
    while not slope(high) < 0:
        high *= 2
    while high - low > Fraction(1, 2**80):
        for share in (HALF, Fraction(1, 4)):  # where the first is 0 to the last bit, the other
            middle = Fraction(round((low + share * (high - low)) * 2**100), 2**100)
            if slope(middle) > 0:
                low = middle
                break
            if slope(middle) < 0:
                high = middle
                break
    return _ball(v * low) - _tweedie(low, b, p) + slope(low) * _ball(high - low)


#: One entry per loss of one number per row: add a loss here.
FORMULAS: dict[str, Formulas] = {
    "squared": Formulas(lambda z, b, p: (z - b) ** 2 / 2, lambda v, b, p: b * v + v * v / 2, _all),
    "absolute": Formulas(
        lambda z, b, p: abs(z - b), lambda v, b, p: b * v, _symmetric(lambda p: ONE)
    ),
    "quantile": Formulas(
        lambda z, b, p: p * _positive(b - z) + (1 - p) * _positive(z - b),
        lambda v, b, p: b * v,
        lambda b, p: (-p, 1 - p),
    ),
    "huber": Formulas(_huber, lambda v, b, p: b * v + v * v / 2, _symmetric(lambda p: p)),
    "epsilon_insensitive": Formulas(
        lambda z, b, p: _positive(abs(z - b) - p),
        lambda v, b, p: b * v + p * abs(v),
        _symmetric(lambda p: ONE),
    ),
    "squared_epsilon_insensitive": Formulas(
        lambda z, b, p: _positive(abs(z - b) - p) ** 2,
        lambda v, b, p: b * v + p * abs(v) + v * v / 4,
        _all,
    ),
    "hinge": Formulas(lambda z, b, p: _positive(1 - b * z), lambda v, b, p: b * v, _margin),
    "squared_hinge": Formulas(
        lambda z, b, p: _positive(1 - b * z) ** 2,
        lambda v, b, p: b * v + v * v / 4,
        lambda b, p: (None, ZERO) if b > 0 else (ZERO, None),
    ),
    "smooth_hinge": Formulas(_smooth_hinge, lambda v, b, p: b * v + p * v * v / 2, _margin),
    "logistic": Formulas(
        lambda z, b, p: (-_ball(b * z)).exp().log1p(),
        lambda v, b, p: _xlogx(-b * v) + _xlogx(1 + b * v),
        _margin,
        exact=False,
    ),
    "poisson": Formulas(
        lambda z, b, p: _ball(z).exp() - _ball(b * z),
        lambda v, b, p: _xlogx(v + b) - _ball(v + b),
        lambda b, p: (-b, None),
        exact=False,
    ),
    "gamma": Formulas(
        lambda z, b, p: _ball(z) + _ball(b) * (-_ball(z)).exp(),
        lambda v, b, p: _xlogx(1 - v) - _ball(1 - v) * (1 + _ball(b).log()),
        lambda b, p: (None, ONE),
        exact=False,
    ),
    "tweedie": Formulas(
        _tweedie,
        _tweedie_conjugate,
        lambda b, p: (None if b > 0 else ZERO, None),
        exact=False,
    ),
    "log_cosh": Formulas(
        _log_cosh,
        lambda v, b, p: _ball(b * v) + (_xlogx(1 + v) + _xlogx(1 - v)) / 2,
        _symmetric(lambda p: ONE),
        exact=False,
    ),
}
#: The loss of K numbers per row.
CLASSES = "multinomial"


@dataclass(frozen=True)
class Exact:
    """A bound on P(x, c) - P*, with P and D: floats, each rounded to the side that is safe."""

    primal: float
    dual: float
    gap: float
    #: "exact arithmetic", or what it was.
    how: str


def check_supported(problem: Any) -> None:
    """Refuse, in a sentence, what cannot be checked."""
    name = problem.loss.name
    if name not in FORMULAS and name != CLASSES:
        raise ValueError(
            f'loss="{name}": rigorous=True knows {", ".join(sorted([*FORMULAS, CLASSES]))}; use '
            "rigorous=False, whose bound accounts for rounding, too"
        )
    if problem.penalty.grouped:
        raise ValueError(
            "rigorous=True: norms of groups are beyond exact arithmetic; use rigorous=False, whose "
            "bound accounts for rounding, too"
        )
    if problem.matrix.blocked:
        raise ValueError(
            "rigorous=True: the data are blocks of rows, and exact arithmetic needs them in "
            "memory; use rigorous=False, or certify a part that fits"
        )
    if name == CLASSES or not FORMULAS[name].exact:
        try:
            import flint  # noqa: F401
        except ImportError:
            raise ImportError(
                f'loss="{name}": rigorous=True evaluates logarithms in intervals, by python-flint; '
                'install it with pip install "adacoord[rigorous]"'
            ) from None


def exact_gap(problem: Any, x: np.ndarray, c: Any, y: np.ndarray) -> Exact:
    """P(x, c) - D(y') with y' the exactly feasible point next to ``y``.

    Of the problem only its data and numbers are used.
    """
    name = problem.loss.name
    if name != CLASSES and FORMULAS[name].exact:
        P, D = _Check(problem).values(x, c, y)
        how = "exact arithmetic"
    else:
        from flint import ctx

        before, ctx.prec = ctx.prec, BITS
        try:
            balls = _Check(problem).values(x, c, y)
            P, D = _end(balls[0].upper()), _end(balls[1].lower())
        finally:
            ctx.prec = before
        how = f"interval arithmetic of {BITS} bits"
    return Exact(_up(P), -_up(-D), _up(P - D), how)


def _end(point: Any) -> Fraction:
    """A ball without a radius."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def _up(value: Fraction) -> float:
    """The least float that is no smaller."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -float(np.finfo(np.float64).max)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def _common(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Integers over one denominator."""
    denominator = math.lcm(*{v.denominator for v in values}) if values else 1
    return [v.numerator * (denominator // v.denominator) for v in values], denominator


def _fractions(values: Any) -> list[Fraction]:
    return [Fraction(v) for v in np.asarray(values, dtype=np.float64).ravel().tolist()]


class _Check:
    """A problem in integers and fractions."""

    def __init__(self, problem: Any):
        loss = problem.loss
        self.name, self.n, self.d = loss.name, problem.n, problem.d
        self.parameter = Fraction(getattr(loss, loss.parameter)) if loss.parameter else None
        l1, l2, lower, upper = problem.penalty.by_column(self.d)
        self.l1, self.l2 = _fractions(l1), _fractions(l2)
        #: The bounds of each column; None for none.
        self.lower, self.upper = _ends(lower), _ends(upper)
        self._box = problem.penalty.outside
        self.intercept = problem.intercept
        indptr, indices, data = problem.matrix.arrays
        entries, self.unit = _common(_fractions(data))
        bounds = list(pairwise(int(k) for k in indptr))
        #: The columns of each row's entries, and the entries times ``unit``.
        self.rows = [
            (range(self.d) if indices is None else indices[a:b].tolist(), entries[a:b])
            for a, b in bounds
        ]
        weights = np.ones(self.n) if problem.weights is None else problem.weights
        self.weights = _fractions(weights)
        self.width = 1 if self.name != CLASSES else int(problem.b.max()) + 1
        self.b: list = problem.b.tolist() if self.name == CLASSES else _fractions(problem.b)
        self.offset: list[list[Fraction]] | None = None
        if problem.offset is not None:
            self.offset = [_fractions(o) for o in problem.offset.reshape(self.n, -1).T]

    def values(self, x: np.ndarray, c: Any, y: np.ndarray) -> tuple[Any, Any]:
        """P(x, c), and D of the feasible point next to y: fractions or balls."""
        points = np.asarray(x, dtype=np.float64).reshape(self.d, self.width)
        duals = np.asarray(y, dtype=np.float64).reshape(self.n, self.width)
        constants = np.broadcast_to(np.asarray(c, dtype=np.float64), (self.width,)).tolist()
        z = [
            self._products(_fractions(column), Fraction(shift))
            for column, shift in zip(points.T, constants, strict=True)
        ]
        if self.offset is not None:
            z = [
                [t + o for t, o in zip(*both, strict=True)]
                for both in zip(z, self.offset, strict=True)
            ]
        v = [_fractions(column) for column in duals.T]
        # columns that have neither a penalty nor bounds stay within a box, which x has a say in
        wide = self._box(np.asarray(x, dtype=np.float64))
        box = _ends(np.full(self.d, np.inf) if wide is None else wide)
        return self._primal(z, [_fractions(column) for column in points.T]), self._dual(v, box)

    def _products(self, x: list[Fraction], c: Fraction) -> list[Fraction]:
        """A x + c."""
        values, unit = _common(x)
        return [
            Fraction(sum(a * values[j] for j, a in zip(*row, strict=True)), self.unit * unit) + c
            for row in self.rows
        ]

    def _average(self, v: list[Fraction]) -> list[Fraction]:
        """u = (1/n) sum_i w_i v_i a_i."""
        values, unit = _common([w * t for w, t in zip(self.weights, v, strict=True)])
        sums = [0] * self.d
        for value, row in zip(values, self.rows, strict=True):
            if value:
                for j, a in zip(*row, strict=True):
                    sums[j] += a * value
        return [Fraction(total, self.unit * unit * self.n) for total in sums]

    def _mean(self, values: Sequence[Any]) -> Any:
        """(1/n) sum_i w_i of fractions or balls."""
        kept = [(w, t) for w, t in zip(self.weights, values, strict=True) if w]
        if isinstance(kept[0][1], Fraction):
            numbers, unit = _common([w * t for w, t in kept])
            return Fraction(sum(numbers), unit * self.n)
        total = _ball(ZERO)
        for w, t in kept:
            total += _ball(w) * t
        return total / self.n

    # ---- P -------------------------------------------------------------------------------

    def _primal(self, z: list[list[Fraction]], x: list[list[Fraction]]) -> Any:
        if self.name == CLASSES:
            values: list = [self._log_sum_exp(i, z) for i in range(self.n)]
        else:
            value, p = FORMULAS[self.name].value, self.parameter
            values = [value(t, b, p) for t, b in zip(z[0], self.b, strict=True)]
        penalty = _total(
            abs(t) * (l1 + l2 / 2 * abs(t))
            for column in x
            for t, l1, l2 in zip(column, self.l1, self.l2, strict=True)
            if t
        )
        return _plus(self._mean(values), penalty)

    def _log_sum_exp(self, i: int, z: list[list[Fraction]]) -> Any:
        own, total = z[self.b[i]][i], _ball(ZERO)
        for k, column in enumerate(z):
            if k != self.b[i]:
                total += _ball(column[i] - own).exp()
        return total.log1p()

    # ---- D -------------------------------------------------------------------------------

    def _dual(self, v: list[list[Fraction]], box: list[Fraction | None]) -> Any:
        v = self._on_simplex(v) if self.name == CLASSES else [self._cut(v[0])]
        if self.intercept:
            v = self._classes_balanced(v) if self.name == CLASSES else [self._balanced(v[0])]
        u = [self._average(column) for column in v]
        share = min((self._share(j, t, box[j]) for each in u for j, t in enumerate(each)))
        if share < 1:
            v = [[share * t for t in column] for column in v]
            u = [[share * t for t in each] for each in u]
        if self.name == CLASSES:
            terms: list = [self._entropy(i, v) for i in range(self.n)]
        else:
            conjugate, p = FORMULAS[self.name].conjugate, self.parameter
            terms = [conjugate(t, b, p) for t, b in zip(v[0], self.b, strict=True)]
        rational = -_total(
            self._penalty_conjugate(j, -t, box[j]) for each in u for j, t in enumerate(each)
        )
        if self.offset is not None:
            for column, o in zip(v, self.offset, strict=True):
                rational += self._mean([s * t for s, t in zip(column, o, strict=True)])
        return _plus(-self._mean(terms), rational)

    def _share(self, j: int, u: Fraction, box: Fraction | None) -> Fraction:
        """What of u_j keeps to l1_j, where nothing else holds x_j."""
        if self.l2[j] > 0 or box is not None:
            return ONE
        pulls = [-u] * (self.upper[j] is None) + [u] * (self.lower[j] is None)
        return min([ONE, *(self.l1[j] / pull for pull in pulls if pull > self.l1[j])])

    def _penalty_conjugate(self, j: int, v: Fraction, box: Fraction | None) -> Fraction:
        """sup_x x v - g_j(x) within the bounds, and the box: concave, so the best x is clipped."""
        low, high = self.lower[j], self.upper[j]
        if box is not None:
            low = -box if low is None else max(low, -box)
            high = box if high is None else min(high, box)
        l1, l2, beyond = self.l1[j], self.l2[j], abs(v) - self.l1[j]
        x: Fraction | None = ZERO
        if beyond > 0:
            x = beyond / l2 if l2 > 0 else None  # as far as there is an end
            if x is None:
                x = high if v > 0 else low
            elif v < 0:
                x = -x
        if x is None:
            raise AssertionError("a dual point that was not scaled")
        x = x if low is None else max(x, low)
        x = x if high is None else min(x, high)
        return x * v - abs(x) * (l1 + l2 / 2 * abs(x)) if x else ZERO

    def _cut(self, v: list[Fraction]) -> list[Fraction]:
        out = []
        for t, b in zip(v, self.b, strict=True):
            low, high = FORMULAS[self.name].domain(b, self.parameter)
            t = t if low is None else max(t, low)
            out.append(t if high is None else min(t, high))
        return out

    def _balanced(self, v: list[Fraction]) -> list[Fraction]:
        """sum_i w_i v_i = 0, by scaling the heavier sign; every domain contains 0."""
        numbers, _ = _common([w * t for w, t in zip(self.weights, v, strict=True)])
        up, down = sum(t for t in numbers if t > 0), -sum(t for t in numbers if t < 0)
        if up == down:
            return v
        share = Fraction(min(up, down), max(up, down))
        return [t * share if (t > 0) == (up > down) else t for t in v]

    def _on_simplex(self, v: list[list[Fraction]]) -> list[list[Fraction]]:
        """Rows v + e_b: no negative number, and a sum of 1."""
        out = [list(column) for column in v]
        for i, own in enumerate(self.b):
            rest = {k: _positive(v[k][i]) for k in range(self.width) if k != own}
            total = sum(rest.values(), ZERO)
            over = max(total, ONE)
            for k, t in rest.items():
                out[k][i] = t / over
            out[own][i] = -total / over
        return out

    def _classes_balanced(self, v: list[list[Fraction]]) -> list[list[Fraction]]:
        """sum_i w_i v_ik = 0 for each class k."""
        mass = [ZERO] * self.width
        for w, k in zip(self.weights, self.b, strict=True):
            mass[k] += w
        sums = [self._mean(column) * self.n for column in v]
        missing = [_positive(-s) for s in sums]
        if not any(missing):
            return v
        if any(s > 0 and not m for s, m in zip(sums, mass, strict=True)):
            return [[ZERO] * self.n for _ in v]  # a class without weight cannot give anything back
        total = sum(missing, ZERO)
        gives = [_positive(s) / m if m else ZERO for s, m in zip(sums, mass, strict=True)]
        scale = 1 / (1 + max(gives))
        out = []
        for k, column in enumerate(v):
            share = missing[k] / total
            out.append(
                [
                    scale * (t + gives[own] * (share - (own == k)))
                    for t, own in zip(column, self.b, strict=True)
                ]
            )
        return out

    def _entropy(self, i: int, v: list[list[Fraction]]) -> Any:
        total = _ball(ZERO)
        for k, column in enumerate(v):
            total += _xlogx(column[i] + (k == self.b[i]))
        return total


def _total(values: Iterable[Fraction]) -> Fraction:
    numbers, unit = _common(list(values))
    return Fraction(sum(numbers), unit)


def _ends(values: np.ndarray) -> list[Fraction | None]:
    """Bounds, one per column; None where there is none."""
    return [Fraction(t) if math.isfinite(t) else None for t in np.ravel(values).tolist()]


def _plus(value: Any, rational: Fraction) -> Any:
    return value + rational if isinstance(value, Fraction) else value + _ball(rational)
