r"""What rounding may hide: a bound on what P - D as evaluated misses of P - D in exact arithmetic.

With u = 2^-53 and :math:`\gamma_k = k u/(1 - k u)`, the following is counted; each is a bound, not
an estimate, whatever the order in which the compiler or BLAS adds (Higham 2002, chapters 3 and 4;
:mod:`adacoord.kernels.summation` says through how many roundings a term goes).

The predictions.
    :math:`|\hat z_i - z_i| \le \delta_i = \gamma_{k+1} |a_i|\cdot|x| + u |z_i|` (0 where x = 0),
    and phi is convex: :math:`|\phi(\hat z_i) - \phi(z_i)|` is at most :math:`\delta_i` times the
    larger slope at the ends of the interval.
The terms.
    Of :math:`\phi` and :math:`\phi^*` as evaluated at :math:`\hat z`, y: what each loss states
    (:class:`~.losses.Units`), with exp, log and their kind to within 4 ulps.  Sums of n terms are
    NumPy's, pairwise: :math:`\gamma_{27 + \log_2 n/128}`.
The average u.
    :math:`|\hat u - u| \le \gamma_{k+2} \frac1n \sum_i w_i |y_i| |a_i|`.  With l2 > 0, g* is
    (1/l2)-smooth: with :math:`\hat x = \nabla g^*(-\hat u)`, g* is off by at most
    :math:`|\hat x|\cdot|\hat u - u| + |\hat u - u|^2/(2 l_2)`.
The constraints on y.
    No y of floats meets :math:`\sum_i w_i y_i = 0`, or :math:`|u|_\infty \le l_1`, to the last
    digit.  But y with its heavier sign scaled by :math:`1 - \theta`, or all of it, does, exactly;
    and by convexity that costs at most :math:`\theta \frac1n \sum_i w_i |\phi_i^*(y_i) -
    \phi_i^*(0)|`, and moves u like one more rounding of size :math:`\theta`.  With K classes y is
    mixed with a point of the domain that flows the other way.  (A balanced y does not see a
    constant taken off all targets: this holds of D as evaluated, with targets less their mean.)
Columns with weights and bounds of their own.
    g* is a sum over the columns, each convex: with u_j known to within :math:`\delta_j`, that of
    column j is off by at most :math:`\delta_j` times the larger slope at :math:`-\hat u_j \pm
    \delta_j` (the box, where only that holds x_j).  Where nothing but l1 does, y is scaled until
    :math:`|u_j| \le l_{1j}`, at the cost above.
An offset.
    One more sum in z_i, rounded to within :math:`u (|z_i| + |o_i|)`, and one more term o_i y_i of
    each row of D (of b_i - o_i, for regression, only the difference is rounded).

First by norms of whole vectors; where that is not small beside the gap, by the lengths of columns
(where u enters by nothing else), then by one product with |A| for each of x and :math:`\hat x`; and
where that is not either (features far from zero), P and D are evaluated anew with products in twice
the precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.summation import UNIT, gamma, pairwise_depth
from .row_sums import sum_and_size, weighted_sum

if TYPE_CHECKING:
    from .loss import Loss, Units
    from .problem import Problem

#: A cheap bound of at most this share of P - D, or of P itself, is as good as a sharp one.
NEGLIGIBLE, INVISIBLE = 1e-3, 1e-11
#: ... of P, that is where a gap of 1e-9 or more is asked for: a hundredth of smaller ones, and this
#: share of larger ones (1e-8 at 1e-4, where products with |A| would cost a third of a ridge fit;
#: 1e-10 at 1e-6, where P and D anew cost a quarter of a lasso of 400,000 x 100).
UNASKED, BESIDE = 1e-2, 1e-4
#: The relative gap asked for by who does not say, and where a certificate is all that is asked for.
TOL, SHARP = 1e-9, 1e-12
#: The bound's own evaluation: some thousand roundings of positive numbers.
OWN = 1.0 + 2.0**-20
#: What products that vanish may have lost: any number of rows times the least positive number.
VANISHED = 2.0**-1000


def allowance(
    problem: Problem,
    x: np.ndarray,
    c: float | np.ndarray,
    y: np.ndarray,
    u: np.ndarray,
    primal: float,
    dual: float,
    z: np.ndarray | None = None,
    tol: float = TOL,
    width: int = 1,
) -> float:
    """What to take from D(y), so that P(x, c) - D is a bound in exact arithmetic.

    ``u`` is the average of ``y``, ``z`` the predictions of x and c where they are known, ``tol``
    the relative gap that was asked for; products with A were of ``width`` points at once.  The
    first bound is taken that is negligible beside P - D, or small beside ``tol``.
    """
    exact = problem.offset is None or not np.any(c)
    if not math.isfinite(dual) or (primal == dual == 0.0 and exact and not (x.any() or y.any())):
        return 0.0  # c predicts every target, and nothing was rounded
    if not math.isfinite(primal):  # what D alone is off by
        x, c, z, primal = np.zeros_like(x), problem.no_intercept, None, abs(dual)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        at = _Point.of(problem, x, c, y, u, primal, dual, z, width)
        enough = max(min(INVISIBLE, UNASKED * tol), BESIDE * tol) * max(abs(primal), abs(dual))
        aim = max(NEGLIGIBLE * (primal - dual), enough)
        least = math.inf
        for bound in (at.by_norms, at.by_columns, at.by_rows, at.accurate):
            found = bound()
            least = found if found < least else least
            if least <= aim:
                break
    return least


@dataclass(eq=False)
class _Point:
    """x, c and y of a problem, and the sizes of what is made of them."""

    problem: Problem
    x: np.ndarray
    c: float | np.ndarray
    y: np.ndarray
    u: np.ndarray
    z: np.ndarray | None
    primal: float
    dual: float
    #: The x that attains g*(-u), for l2 > 0, and g*(-u).
    other: np.ndarray | None
    conjugate: float
    #: theta, and what each row gives in addition where there are classes.
    repair: float
    given: np.ndarray | None
    units: Units
    #: The means of |terms| of P, of phi*(y), and of |phi*(y) - phi*(0)|.
    value_size: float
    conjugate_size: float
    repair_size: float
    #: A bound on the mean of w |o y|, for regression of w (|b| + |o|) |y|; 0 without an offset.
    of_offset: float
    #: Roots of the means of w |y|^2 and w phi'^2.
    y_size: float
    slopes: float
    #: gamma of |a_i|.|x| in z_i (0 where x = 0, whose predictions are exact), and of |y_i| |a_i| in
    #: u, with what makes y feasible.
    at_z: float
    at_u: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        x: np.ndarray,
        c: float | np.ndarray,
        y: np.ndarray,
        u: np.ndarray,
        primal: float,
        dual: float,
        z: np.ndarray | None,
        width: int,
    ) -> _Point:
        loss, penalty = problem.loss, problem.penalty
        other, conjugate = None, 0.0
        if not penalty.uniform:
            other = penalty.conjugate_gradient(-u)
            conjugate = penalty.magnitude(other) + float((np.abs(other) * np.abs(u)).sum())
            conjugate += penalty.box_cost(x, u)
        elif penalty.strong_convexity > 0.0:
            other = penalty.conjugate_gradient(-u)
            length = _length(other)
            conjugate = 0.5 * penalty.strong_convexity * length * length
            if penalty.grouped:  # the norms of groups are what is not known
                conjugate += float((np.abs(other) * np.abs(u)).sum())
        y_size = problem._mean_square(y) ** 0.5
        _, mass, targets = problem._scales
        classes = 1 if y.ndim == 1 else y.shape[1]
        if z is None and (loss.unbounded or loss.blocks):
            z = problem.predictions(x, c)
        reach = 2.0 * float(np.abs(z).max()) if loss.blocks and z is not None else 0.0
        units = loss.units(classes, reach)
        # the mean of w |o y|; with the targets, for regression, b - o is one that is rounded
        of_offset = y_size * problem._offset_size
        shifted = loss.task == "regression"
        if loss.unbounded:
            assert z is not None
            values, conjugates, least = loss.sizes(z, y, problem.b)
            value_size = problem._mean(values) + penalty.magnitude(x)
            conjugate_size, slopes = problem._mean(conjugates), math.nan
            repair_size = conjugate_size + problem._mean(least)
        else:
            entropy, target, square, linear = units.size
            value_size = abs(primal)
            conjugate_size = entropy * max(dual + conjugate + of_offset, 0.0) + y_size * (
                target * targets + square * y_size + linear * mass
            )
            repair_size = conjugate_size
            if loss.gamma > 0.0:  # losses that are 0 at least: phi'^2 <= 2 phi/gamma
                slopes = (2.0 * value_size / loss.gamma) ** 0.5
            else:
                slopes = max(abs(end) for end in loss.constants[2:]) * mass
        if not shifted:
            conjugate_size, repair_size = conjugate_size + of_offset, repair_size + of_offset
        repair, given = _repair(problem, y)
        width = max(width, classes)
        at_z = gamma(problem.matrix.dot_depth(x, width) + 1) if x.any() else 0.0
        at_u = gamma(problem.matrix.tdot_depth(width) + 4 + classes) + repair
        return cls(
            problem, x, c, y, u, z, primal, dual, other, conjugate, repair, given,
            units, value_size, conjugate_size, repair_size, of_offset, y_size, slopes, at_z, at_u,
        )  # fmt: skip

    def total(self, of_primal: float, of_dual: float) -> float:
        """Both, with the terms of P and D and the last subtractions."""
        problem, units = self.problem, self.units
        rows = pairwise_depth(problem.n) + 4
        columns = pairwise_depth(self.x.size) + 8 + problem.penalty.serial
        _, mass, _ = problem._scales
        slopes = 0.0 if math.isnan(self.slopes) else self.slopes
        terms = (
            (units.value + rows + columns) * self.value_size
            + units.slope * slopes * mass
            + (units.conjugate + rows) * self.conjugate_size
            + units.linear * mass * self.y_size
            + columns * self.conjugate
            + 4.0 * self.of_offset
            + 4.0 * (abs(self.primal) + abs(self.dual))
        )
        reach = 0.0 if self.other is None else float(np.abs(self.other).sum())
        vanished = VANISHED * (1.0 + mass * (mass + slopes) + reach)
        return OWN * (UNIT * terms + of_primal + of_dual + self.repair * self.repair_size) + (
            vanished
        )

    def by_norms(self) -> float:
        """By the inequality of Cauchy and Schwarz."""
        return self.total(self.primal_by_norms(), self.dual_by_norms())

    def by_columns(self) -> float:
        """The same by the lengths of columns, where u is known by nothing else."""
        if self.problem.penalty.uniform and self.other is not None:
            return math.inf
        return self.total(self.primal_by_norms(), self.dual_by_rows())

    def by_rows(self) -> float:
        """By products with |A|."""
        return self.total(self.primal_by_rows(), self.dual_by_rows())

    def accurate(self) -> float:
        """By P and D evaluated anew."""
        return _accurate(self)

    def primal_by_norms(self) -> float:
        problem = self.problem
        rows, mass, _ = problem._scales
        if self.exact_predictions:
            return 0.0
        length = _length(self.x)
        if problem.loss.unbounded:
            return self._by_sizes(length * np.sqrt(problem.matrix.squared_norms))
        off = (self.at_z + UNIT) * rows * length + UNIT * mass * _length(self.c)
        if problem.offset is not None:
            off += UNIT * (rows * length + mass * _length(self.c) + problem._offset_size)
        gamma_ = problem.loss.gamma
        return self.slopes * off + (0.5 * off * off / gamma_ if gamma_ > 0.0 else 0.0)

    @property
    def exact_predictions(self) -> bool:
        """Whether z is a number that nothing was added to."""
        return self.at_z == 0.0 and self.problem.offset is None

    def dual_by_norms(self) -> float:
        rows = self.problem._scales[0]
        if not self.problem.penalty.uniform:  # no column is longer than all of them together
            return self.of_columns(self.u, np.broadcast_to(self._off_u(rows), self.u.shape))
        if self.other is None:
            # (l1-logistic, rcv1.subset: products with |A| no more, 3 of 60 ms)
            known = self.problem._moments_known
            return self._scaled(min(self.problem._longest_column, rows) if known else rows)
        return self._off_u(rows) * _length(self.other) + self._second_order()

    def of_columns(self, u: np.ndarray, slack: np.ndarray) -> float:
        """The same of a ``u`` that is known to within ``slack``."""
        penalty: Any = self.problem.penalty
        slopes = np.maximum(
            np.abs(penalty.conjugate_gradient(slack - u)),
            np.abs(penalty.conjugate_gradient(-slack - u)),
        )
        wide = penalty.outside(self.x)
        if wide is not None:  # what the box costs is made of u as well
            slopes = np.where(np.isfinite(wide), np.maximum(slopes, wide), slopes)
        return float((slopes * slack).sum()) + self._beyond(penalty.overshoot(-u, slack))

    def _off_u(self, column: Any) -> Any:
        """|u^ - u| of a column of this length (root of the mean of w a^2), or of all of them."""
        moved = 0.0
        if self.given is not None:
            moved = (2.0 * self.problem._mean(np.square(self.given))) ** 0.5
        return (self.at_u * self.y_size + moved) * column

    def _second_order(self) -> float:
        off = self._off_u(self.problem._scales[0])
        return 0.5 * off * off / self.problem.penalty.strong_convexity

    @property
    def scale_size(self) -> float:
        """The mean of phi*(0) - phi*(y), signs kept: what scaling all of y costs, for l2 = 0."""
        return max(self.dual, 0.0) + (self.repair_size - self.conjugate_size)

    def _scaled(self, column: float) -> float:
        """For l2 = 0: what scaling y costs that |u| <= l1 holds exactly; the longest column."""
        return self._beyond(self.problem.penalty.overshoot(-self.u, self._off_u(column)))

    def _beyond(self, overshoot: float) -> float:
        """What scaling y costs, where u is beyond its domain by this share."""
        beyond = overshoot + 4.0 * UNIT
        return beyond / (1.0 + beyond) * self.scale_size if beyond < math.inf else math.inf

    def primal_by_rows(self) -> float:
        if self.exact_predictions:
            return 0.0
        return self._by_sizes(self.problem.matrix.magnitude_dot(self.x))

    def _by_sizes(self, at_x: np.ndarray) -> float:
        """From |a_i|.|x|, or bounds on it."""
        problem = self.problem
        z = problem.predictions(self.x, self.c) if self.z is None else self.z
        off, offset = np.empty(z.shape), () if problem.offset is None else (problem.offset,)
        problem.matrix.rowwise(_off, self.at_z, rows=(at_x, z, off, *offset))
        return self.slopes_times(z, off)

    def slopes_times(self, z: np.ndarray, off: np.ndarray) -> float:
        """The mean of w delta |phi'|: what P may change by when z does by ``off``."""
        problem = self.problem
        weights = () if problem.weights is None else (problem.weights,)
        rows = (z, off, problem.b, *weights)
        return problem.matrix.rowwise(_slopes_times, problem.loss, rows=rows) / problem.n

    def dual_by_rows(self) -> float:
        problem = self.problem
        if not problem.penalty.uniform:
            lengths = problem._column_lengths.reshape(-1, *(1,) * (self.x.ndim - 1))
            return self.of_columns(self.u, self._off_u(lengths))
        if self.other is None:
            return self._scaled(min(problem._longest_column, problem._scales[0]))
        flow, given = self._flows
        return self.at_u * flow + given + self._second_order()

    @cached_property
    def _flows(self) -> tuple[float, float]:
        """The means of w |y_i| |a_i|.|x^|, and of that which rows give besides."""
        problem = self.problem
        assert self.other is not None
        at_other = problem.matrix.magnitude_dot(self.other)
        weights = () if problem.weights is None else (problem.weights,)
        flow = problem.matrix.rowwise(_flow, rows=(self.y, at_other, *weights)) / problem.n
        if self.given is None:
            return flow, 0.0
        return flow, problem._mean(2.0 * self.given * at_other.max(axis=1))


# ---- functions of rows, for :meth:`Matrix.rowwise` -----------------------------------------------


def _off(
    at_z: float, at_x: np.ndarray, z: np.ndarray, out: np.ndarray, offset: np.ndarray | None = None
) -> float:
    """What z may be off by, from |a_i|.|x|."""
    size = UNIT * np.abs(z)
    np.multiply(at_z, at_x, out=out)
    out += np.where(at_x > 0.0, size, 0.0)
    if offset is not None:
        out += 2.0 * size + 2.0 * UNIT * np.abs(offset)
    return 0.0


def _slopes_times(
    loss: Loss, z: np.ndarray, off: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """The sum of :meth:`_Point.slopes_times`."""
    if loss.simplex:  # no p_k grows by more than exp(2 max delta) on the way
        growth = np.exp(2.0 * off.max(axis=1, keepdims=True))
        return _summed(off * np.abs(loss.derivative(z, b)) * growth, weights)
    # kinks, and exp: the larger slope within what z is not known to
    slopes = np.maximum(np.abs(loss.derivative(z + off, b)), np.abs(loss.derivative(z - off, b)))
    # as evaluated: what cancels in phi' is at most |b| + 1 (of Tweedie's, b^(2-p))
    slopes += 16.0 * UNIT * (1.0 + np.abs(z)) * (slopes + 2.0 * (np.abs(b) + 1.0))
    return _summed(off * slopes, weights)


def _flow(y: np.ndarray, at_other: np.ndarray, weights: np.ndarray | None = None) -> float:
    return _summed(np.abs(y) * at_other, weights)


def _summed(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Over all rows, and what they have several of."""
    return weighted_sum(values if values.ndim == 1 else values.sum(axis=1), weights)


def _accurate(at: _Point) -> float:
    """The same by evaluating P and D anew, with A x, u and sum_i w_i y_i in twice the precision.

    For features and targets far from zero: predictions are then known to their last digit.
    """
    problem, x, y = at.problem, at.x, at.y
    matrix, n = problem.matrix, problem.n
    penalty: Any = problem.penalty
    rows = problem._scales[0]
    shape = x.shape[1:]
    # P
    z, norms = np.empty(y.shape), np.sqrt(matrix.squared_norms)
    second = 4.0 * gamma(matrix.shape[1] + 2) ** 2
    sizes = np.sqrt(np.square(x).sum(axis=0))
    for k in np.ndindex(shape):
        high, low = matrix.accurate_dot(x[(slice(None), *k)])
        high, rest = _two_sum(high, float(np.asarray(at.c)[k]))
        low = low + rest
        if problem.offset is not None:
            high, rest = _two_sum(high, problem.offset[(slice(None), *k)])
            low = low + rest
        z[(slice(None), *k)] = high + low
    off = 2.0 * UNIT * np.abs(z) + second * np.multiply.outer(norms, sizes)
    if problem.offset is not None:
        off += 16.0 * UNIT * UNIT * np.abs(problem.offset)
    primal = problem._primal_at(z, x)
    of_primal = at.slopes_times(z, off) + max(primal - at.primal, 0.0)
    # D
    repair, given = _repair(problem, y, exactly=True)
    u = np.empty(x.shape)
    for k in np.ndindex(shape):
        v, v_low = _weighted(problem, np.ascontiguousarray(y[(slice(None), *k)]))
        high, low = matrix.accurate_tdot(v, v_low)
        u[(slice(None), *k)] = (high + low) / n
    dual = -problem._mean_conjugate(y)
    extra = (2.0 * problem._mean(np.square(given))) ** 0.5 if given is not None else 0.0
    # relatively, of sums of w |y| |a_j|: what is left of rounding, and the repair
    left = 4.0 * gamma(n + 4) ** 2 + repair + UNIT * (0.0 if not shape else y.shape[1])
    if not penalty.uniform:
        lengths = problem._column_lengths.reshape(-1, *(1,) * len(shape))
        known = 4.0 * UNIT * np.abs(u) + (left * at.y_size + extra) * lengths
        dual -= penalty.attained(-u)
        of_dual = at.of_columns(u, known)
        of_dual += max(penalty.box_cost(x, u) - penalty.box_cost(x, at.u), 0.0)
    elif at.other is None:
        column = min(problem._longest_column, rows)
        slack = 4.0 * UNIT * float(np.abs(u).max()) + (left * at.y_size + extra) * column
        of_dual = at._beyond(penalty.overshoot(-u, slack))
    else:
        dual -= penalty.conjugate(-u)
        other = penalty.conjugate_gradient(-u)
        flow, besides = at._flows
        moved = 4.0 * UNIT * _length(u) + (left * at.y_size + extra) * rows
        of_dual = (
            4.0 * UNIT * float((np.abs(other) * np.abs(u)).sum())
            + left * flow + besides
            + 0.5 * moved * moved / penalty.strong_convexity
        )  # fmt: skip
        # the flows are those of x^ as it was
        of_dual += (left * at.y_size + extra) * rows * _length(other - at.other)
    of_dual += max(at.dual - dual, 0.0) + (repair - at.repair) * at.repair_size
    return at.total(of_primal, of_dual)


def _two_sum(a: np.ndarray, b: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b, and what its rounding has left, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _sum_twice(high: np.ndarray, low: np.ndarray) -> tuple[float, float]:
    """sum (high + low) with |low| <= UNIT |high|, in twice the precision, and what it may be off by
    as a share of sum |high|.

    In pairs: what the rounding of the halves' sums has left goes to ``low``, at each of the levels
    at most UNIT of sum |high|, and only these are added up with roundings, one at each level.
    """
    levels = max(high.size - 1, 1).bit_length() + 2
    while high.size > 1:
        half = high.size // 2
        odd, rest = high[2 * half :], low[2 * half :]
        sums, left = _two_sum(high[:half], high[half : 2 * half])
        left += low[:half] + low[half : 2 * half]
        high, low = np.concatenate([sums, odd]), np.concatenate([left, rest])
    return float(high.sum() + low.sum()), 4.0 * (levels * UNIT) ** 2


def _weighted(problem: Problem, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """w v = high + low, exactly."""
    w = problem.weights
    if w is None:
        return v, np.zeros_like(v)
    high = w * v
    # Dekker's product: both factors in halves of 26 bits
    (a, b), (p, q) = _halves(w), _halves(v)
    return high, ((a * p - high) + a * q + b * p) + b * q


def _halves(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    large = 134217729.0 * v  # 2^27 + 1
    high = large - (large - v)
    return high, v - high


def _length(x: float | np.ndarray) -> float:
    return float(np.vdot(x, x)) ** 0.5


def _repair(
    problem: Problem, y: np.ndarray, exactly: bool = False
) -> tuple[float, np.ndarray | None]:
    r"""(theta, what each row gives besides): how far y is from one that is feasible exactly.

    Without an intercept the ends of the domain as rounded (1 - q of a quantile) are all there is.
    With one, scaling the heavier sign by 1 - theta balances y, and it carries half of all
    :math:`w |y|` at least.  With classes, :math:`S_k = \sum_i w_i y_{ik}` has to go from the rows
    of class k, of weight W_k, to classes that miss it: row i gives :math:`\tau = S_k/W_k`, after y
    is scaled by :math:`1 - \theta = 1/(1 + \max \tau)`.  ``exactly``: in twice the precision.
    """
    ends = 2.0 * UNIT if problem.loss.name == "quantile" else 0.0
    if not problem.intercept:
        return ends, None
    relative = gamma(4 if exactly else pairwise_depth(problem.n) + 2)

    def total(v: np.ndarray) -> tuple[float, float]:
        """|sum_i w_i v_i| at most (its sign is kept), and the sum of w |v|."""
        if exactly:
            high, low = _weighted(problem, v)
            size = float(np.abs(high).sum())
            found, off = _sum_twice(high, low)
            return found * (1.0 + 4.0 * UNIT) + math.copysign(off * size, found), size
        found, size = sum_and_size(_times(problem, v))
        return found + math.copysign(relative * size, found), size

    if y.ndim == 1:
        left, size = total(y)
        return min(2.0 * abs(left) / size + ends, 1.0) if size > 0.0 else ends, None
    columns = [total(v) for v in np.ascontiguousarray(y.T)]
    if not problem.loss.simplex:  # a sum for each target, as for one
        return max(
            min(2.0 * abs(t) / size, 1.0) if size > 0.0 else 0.0 for t, size in columns
        ), None
    rounded = gamma(y.shape[1] + 2) + (0.0 if exactly else 2.0 * relative)
    more = np.array([max(left, 0.0) + rounded * size for left, size in columns])
    mass = np.bincount(problem.b, problem.weights, y.shape[1])
    share = np.divide(more, mass, out=np.where(more > 0.0, np.inf, 0.0), where=mass > 0.0)
    worst = float(share.max())
    if not worst < math.inf:
        return 1.0, np.full(problem.n, math.inf)
    return worst / (1.0 + worst) + ends, share[problem.b]


def _times(problem: Problem, v: np.ndarray) -> np.ndarray:
    return v if problem.weights is None else problem.weights * v
