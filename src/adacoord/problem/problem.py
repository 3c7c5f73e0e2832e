r"""The problem, its dual, and the certificate that binds them.

.. math::

    P(x, c) &= \frac1n \sum_i w_i\, \phi_i(a_i^T x + c + o_i) + g(x) \\
    D(y)    &= -\frac1n \sum_i w_i\, (\phi_i^*(y_i) - o_i y_i) - g^*(-u), \qquad
    u = \frac1n \sum_i w_i y_i a_i

For every x, c and every feasible y, ``P(x, c) - D(y) >= P(x, c) - P*``: the gap proves how far
from optimal a point is, whoever made it.  y is feasible when each y_i lies in the domain of its
conjugate, when ``sum_i w_i y_i = 0`` if there is an (unpenalised) intercept c, and when
``|u|_inf <= l1`` if l2 = 0 (of columns with weights and bounds of their own see
:mod:`.column_penalty`).  :meth:`Problem.feasible_dual` makes any y feasible; nothing here
ever evaluates a dual at a point that is not.

With the multinomial loss and K classes x has shape (d, K), c (K,) and y (n, K); the sums above
are then taken for each class.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from .group_penalty import GroupPenalty
from .inputs import (
    as_numbers,
    check_flag,
    check_offset,
    check_penalty,
    check_targets,
    check_weights,
)
from .losses import Loss, get_loss
from .multiclass import into_domain
from .null_model import null_dual, null_intercept, null_value_with_intercept
from .penalties import Penalty
from .posing import (
    AnyPenalty,
    as_data,
    check_blocks,
    column_penalty,
    group_penalty,
    is_one,
    is_zero,
    within_a_box,
)
from .reduction import Reduction, reduce_problem
from .repair import balanced, endless, repaired
from .rounding import SHARP, TOL, allowance
from .row_sums import many, parts, square_sum, weighted_sum
from .targets import SquaredTargets, dots
from .unpenalised import separates, stationarity

#: The tasks of losses whose targets are signs or codes.
SIGNS = ("classification", "multiclass")

#: Some last digits more: solvers sum in other orders, and x is to be 0 at l1_max for all of them.
ABOVE = 1.0 + 2.0**-48


class Problem:
    r"""A regularised linear model: data, a loss and a penalty.

    Minimises :math:`\frac1n \sum_i w_i \phi_i(a_i^T x + c + o_i) + l_1 |x|_1 +
    \frac{l_2}{2}|x|_2^2`.

    Parameters
    ----------
    A : array or sparse matrix of shape (n, d)
        One sample a row.  float32 and float64 are used as they are.  Or blocks of rows, which need
        not be in memory: a store (:func:`adacoord.open_store`), a Dask array, dataframe or list of
        delayed partitions, or a list or another iterable of pairs (X, y) that can be gone through
        again and again.
    b : array of shape (n,), optional
        The targets, unless A has them: -1 and +1 for the losses of classification, counts for
        ``"poisson"``, the class codes 0..K-1 for ``"multinomial"``.  Of shape (n, K) for several
        targets of the loss ``"squared"`` at once; x then has shape (d, K).
    loss : str or Loss
        A name, or an object that carries a parameter: ``adacoord.problem.losses.Huber(delta=2.0)``.
    l1, l2 : float, or array of shape (d,)
        Weights of the penalty, for all columns or for each: :math:`\sum_j l_{1j} |x_j| +
        \frac{l_{2j}}{2} x_j^2`, 0 for a column that is not penalised.  liblinear's ``C`` is
        ``l2 = 1/(n C)``.
    positive : bool
        Only x >= 0: the same as ``lower=0``.
    lower, upper : float, or array of shape (d,), optional
        Only lower <= x <= upper; -inf and inf (or None) are no bound.
    offset : array of shape (n,), or (n, K) with K classes, optional
        What is added to the predictions: z = A x + c + offset.
    sample_weight : array of shape (n,), optional
        Used exactly as given: they are not rescaled, and n stays the number of rows.
    intercept : bool
        Add an intercept c that is not penalised.
    l21 : float
        Weight of :math:`\sum_G w_G |x_G|_2`, which makes whole groups of columns zero: the group
        lasso, with an l1 the sparse group lasso.  For smooth losses.
    groups : array of shape (d,), optional
        A label for each column, a number or a string; without, each column is a group (of the
        coefficients of all targets or classes).  With several targets or classes only that.
    group_weights : array of shape (number of groups,), optional
        w_G, in the order of the sorted labels; the square root of the number of columns of the
        group without.
    """

    def __init__(
        self,
        A: Any,
        b: Any = None,
        loss: str | Loss = "squared",
        l1: Any = 0.0,
        l2: Any = 0.0,
        *,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        offset: Any = None,
        sample_weight: Any = None,
        intercept: bool = False,
        l21: Any = 0.0,
        groups: Any = None,
        group_weights: Any = None,
    ):
        self.loss = get_loss(loss)
        positive = check_flag(positive, "positive")
        # the plain kind is checked before the data are looked at, and made in no time
        grouped = groups is not None or group_weights is not None or not is_zero(l21)
        plain = None
        if lower is None and upper is None and is_one(l1) and is_one(l2) and not grouped:
            plain = Penalty(l1, l2, positive)
            check_penalty(plain)
        self.matrix, b, sample_weight = as_data(A, b, sample_weight)
        self.n, self.d = self.matrix.shape
        if self.loss.name == "squared" and np.ndim(b) == 2 and np.shape(b)[1] > 1:
            self.loss = SquaredTargets()
        self.b = check_targets(b, self.n, self.loss)
        self.weights = check_weights(sample_weight, self.n)
        self.intercept = check_flag(intercept, "intercept")
        self._block: tuple[int, ...] = self.b.shape[1:]
        if self.loss.simplex:
            self._block = (int(self.b.max()) + 1,)
        self.offset = check_offset(offset, self.y_shape)
        if self.matrix.blocked:
            check_blocks(self)
        if grouped:
            if is_zero(l21):
                raise ValueError(
                    "l21=0.0: groups need the weight of their norms; give l21 > 0, or leave groups "
                    "and group_weights out"
                )
            if positive or lower is not None or upper is not None:
                raise ValueError(
                    "groups: groups of columns take no bounds; leave positive, lower and upper out"
                )
            self.penalty: AnyPenalty = group_penalty(self, groups, group_weights, l21, l1, l2)
        elif plain is not None:
            self.penalty = within_a_box(self, plain)
        else:
            self.penalty = column_penalty(self, l1, l2, positive, lower, upper)
        self._reduced: Reduction | None = None

    def __repr__(self) -> str:
        return (
            f"Problem({self.n} x {self.d}, {self.matrix.nnz} entries, {self.loss}, "
            f"{self.penalty.words}{', intercept' * self.intercept}"
            f"{', offset' * (self.offset is not None)})"
        )

    def with_penalty(self, l1: Any = None, l2: Any = None, l21: Any = None) -> Problem:
        """The same problem under another penalty; data, and what was made of them, are shared.

        ``None`` keeps what the problem has; bounds and groups stay.
        """
        p, other = self.penalty, copy(self)
        if isinstance(p, GroupPenalty):
            had = zip((l21, l1, l2), (p.l21, p.l1, p.l2), strict=True)
            asked = (kept if new is None else new for new, kept in had)
            other.penalty = group_penalty(self, p.index, p.weights, *asked)
            return other
        if l21 is not None:
            raise ValueError(f"l21={l21!r}: the problem has no groups; make it with l21 or groups")
        if isinstance(p, Penalty) and is_one(l1) and is_one(l2):
            first, second = p.l1 if l1 is None else l1, p.l2 if l2 is None else l2
            other.penalty = Penalty(first, second, p.positive)
            check_penalty(other.penalty)
            other.penalty = within_a_box(other, other.penalty)
            return other
        kept = p.by_column(self.d)
        l1, l2 = kept[0] if l1 is None else l1, kept[1] if l2 is None else l2
        other.penalty = column_penalty(self, l1, l2, p.positive, *kept[2:])
        other.__dict__.pop("null_value", None)  # bounds may keep 0 out, and g has a value there
        return other

    @property
    def reduction(self) -> Reduction:
        """The simpler problem that solvers are given, and the way back; see :mod:`.reduction`."""
        if self._reduced is not None:
            return self._reduced
        found = reduce_problem(self)
        if found.problem is not self:  # which would keep itself, and its data, in memory
            self._reduced = found
        return found

    def __copy__(self) -> Problem:
        """One to be changed: what it is reduced to is not shared."""
        other = object.__new__(type(self))
        other.__dict__ = vars(self) | {"_reduced": None}
        return other

    # ---- values, in float64 -------------------------------------------------------------

    def predict(self, x: np.ndarray, intercept: float | np.ndarray = 0.0) -> np.ndarray:
        """z = A x + c, and the offset where there is one."""
        return self.predictions(self._check_x(x), self._check_intercept(intercept))

    def predictions(self, x: np.ndarray, intercept: float | np.ndarray) -> np.ndarray:
        """The same for a solver's own points, which may have diverged: not checked."""
        return self._shifted(self.matrix.dot(x), intercept)

    def _shifted(self, z: np.ndarray, intercept: float | np.ndarray) -> np.ndarray:
        """z = A x, to which the intercept and the offset are added in place."""
        if self.intercept or np.any(intercept):
            z += intercept
        if self.offset is not None:
            z += self.offset
        return z

    def looked_at(
        self, x: np.ndarray, intercept: float | np.ndarray, y: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """:meth:`predictions` and :meth:`feasible_dual`, for which A is read once.

        ``None`` for the y that the slopes of the losses there are.
        """
        if y is None:
            z = self.predictions(x, intercept)
            y = self._repaired(self.loss.derivative(z, self.b))
            return z, *self._scaled(y, self.average(y))
        y = self._repaired(self._check_y(y))
        z, u = self.matrix.both(x, self._weighted(y))
        return self._shifted(z, intercept), *self._scaled(y, u / self.n)

    def primal(self, x: np.ndarray, intercept: float | np.ndarray = 0.0) -> float:
        """P(x, c)."""
        return self._primal(self._check_x(x), self._check_intercept(intercept))

    def _primal(self, x: np.ndarray, intercept: float | np.ndarray) -> float:
        """The same of a solver's own point: not checked."""
        return self._primal_at(self.predictions(x, intercept), x)

    def _primal_at(self, z: np.ndarray, x: np.ndarray) -> float:
        """The same from the predictions of x and c."""
        mean = self._mean_of(self.loss.value_sum, z, self.b)
        return mean + self.penalty.value(np.asarray(x, dtype=np.float64))

    def dual(self, y: np.ndarray) -> float:
        """D(y), ``-inf`` where ``y`` is not feasible.

        With an intercept, ``y`` that is balanced but for rounding is balanced to the last digit
        first: c times what is left of the sum would be an error of D.
        """
        y = self._check_y(y)
        if self.intercept:
            classes = y.reshape(self.n, -1).T
            # rounding of balanced sums: with classes, of the heaviest of them
            rounding = 1e-12 * max(self._mean(np.abs(v)) for v in classes)
            if any(abs(self._mean(v)) > rounding for v in classes):
                return -np.inf
            if not np.isfinite(self.loss.conjugate(y, self.b)).all():
                return -np.inf
            y = balanced(self, y)
        return self._dual(y, self.average(y))

    def gap(self, x: np.ndarray, y: np.ndarray, intercept: float | np.ndarray = 0.0) -> float:
        """P(x, c) - D(y') >= P(x, c) - P*, with y' the feasible point made from ``y``.

        What rounding may hide is part of it (:mod:`.rounding`).  NaN when l1 = l2 = 0: without a
        penalty there is no such bound.
        """
        if not self.has_certificate:
            return np.nan
        primal, bound = self.judge(x, y, intercept, SHARP)
        return primal - bound

    def judge(
        self,
        x: np.ndarray,
        y: np.ndarray,
        intercept: float | np.ndarray,
        tol: float = TOL,
    ) -> tuple[float, float]:
        """P(x, c), and the bound on P* by the feasible point made from ``y``; see :meth:`bound`."""
        x, intercept = self._check_x(x), self._check_intercept(intercept)
        z, y, u = self.looked_at(x, intercept, y)
        primal, dual = self._primal_at(z, x), self._dual(y, u)
        return primal, self.bound(x, intercept, primal, y, u, dual, z, tol)

    def bound(
        self,
        x: np.ndarray,
        intercept: float | np.ndarray,
        primal: float,
        y: np.ndarray,
        u: np.ndarray,
        dual: float,
        z: np.ndarray | None = None,
        tol: float = TOL,
        width: int = 1,
    ) -> float:
        """D(y) less what rounding may hide: a bound on P* to be held against P(x, c).

        ``y`` is feasible, ``u`` its average, ``primal`` and ``dual`` are P(x, c) and D(y); ``z``
        are the predictions of x and c, where they are known; ``tol`` is the relative gap that was
        asked for, beside which rounding need not be known to the last digit.  Products with A were
        of ``width`` points at once.
        """
        x, least = np.asarray(x, dtype=np.float64), min(primal, dual)  # D above P is rounding
        wider = self.penalty.box_cost(x, u)  # the box of columns without a penalty holds x
        return least - wider - allowance(self, x, intercept, y, u, primal, least, z, tol, width)

    def average(self, y: np.ndarray) -> np.ndarray:
        """u = (1/n) sum_i w_i y_i a_i."""
        return self.matrix.tdot(self._weighted(y)) / self.n

    def _weighted(self, y: np.ndarray) -> np.ndarray:
        return y if self.weights is None else (self.weights * y.T).T

    def relative_gap(self, primal: float, dual: float) -> float:
        """(P - D) / max(|P|, |D|, 1e-12 |P(0)|): the meaning of every ``tol``.

        P(0) is that of the best intercept, where there is one: an offset of the targets, however
        large, hides nothing.
        """
        scale = max(abs(primal), abs(dual))
        if scale < 1e-12 * abs(self.null_value):  # hardly ever: the best intercept takes a search
            scale = max(scale, 1e-12 * abs(null_value_with_intercept(self) or self.null_value))
        if not np.isfinite(scale):
            return np.nan if np.isnan(primal) or not self.has_certificate else np.inf
        return max(primal - dual, 0.0) / scale if scale > 0.0 else 0.0

    @property
    def has_certificate(self) -> bool:
        """Without a penalty the dual bounds nothing that can be evaluated."""
        return self.penalty.coercive

    # ---- what there is without a penalty ------------------------------------------------

    def stationarity(self, x: np.ndarray, intercept: float | np.ndarray = 0.0) -> float:
        r"""0 at a minimiser of an unpenalised, differentiable P: what ``tol`` then bounds.

        The largest cosine :math:`|\sum_i w_i a_{ij} \phi_i'| / (|a_j|_w |\phi'|_w)` of the angles
        between the slopes of the losses and the columns; with an intercept those of the ones and
        of the centred columns, but for rounding: no bound on P - P*, but the same in all units,
        and from all origins.  Where x interpolates, slopes are nothing but rounding, and the gap
        to D(0), the least the losses can be, is smaller: then that.
        """
        return stationarity(self, x, intercept)

    def separates(self, x: np.ndarray, intercept: float | np.ndarray = 0.0) -> bool:
        """Whether (x, c) proves that an unpenalised P has no minimum.

        The losses of probabilities only tend to 0: a point that has all rows on their side gets
        better for ever as it is scaled up.
        """
        return separates(self, x, intercept)

    @cached_property
    def _column_lengths(self) -> np.ndarray:
        """sqrt((1/n) sum_i w_i a_ij^2), and 1 for columns of zeros."""
        return np.where(self._column_sizes > 0.0, self._column_sizes, 1.0)

    @cached_property
    def _longest_column(self) -> float:
        """The largest of these, columns of zeros left out (and those whose squares vanish, which
        are far below it)."""
        longest = float(np.max(self._column_sizes))
        return longest if longest > 1e-100 else float(np.max(self._column_lengths))

    @cached_property
    def _column_sizes(self) -> np.ndarray:
        if self._moments_known:
            return np.sqrt(self.matrix.column_moments[1] / self.n)
        w = np.ones(self.n) if self.weights is None else self.weights
        return np.sqrt(self.matrix.column_squares(w) / self.n)

    @property
    def _moments_known(self) -> bool:
        """Whether the squares of columns are at hand: who solves for an l1 on sparse data has them.

        By what the problem is, and not by what has been computed: the same bits whatever else was.
        """
        matrix = self.matrix
        return self.weights is None and not (matrix.is_dense or matrix.blocked)

    @cached_property
    def null_value(self) -> float:
        """P(0, 0), or of the x nearest to 0 that is within the bounds."""
        if self.offset is not None or not self.penalty.uniform:
            return self._primal(self.null_point, self.no_intercept)
        if self.loss.task in SIGNS:  # the same of every row
            some = self.loss.value(np.zeros((1, *self._block)), self.b[:1])
            return self._mean(np.broadcast_to(some, self.n))
        if self.loss.name == "squared" and self.b.ndim == 1:
            return 0.5 * self._target_square
        return self._mean(self.loss.value(np.broadcast_to(0.0, self.y_shape), self.b))

    @cached_property
    def _target_square(self) -> float:
        """The mean of w b^2."""
        return self._mean_square(self.b)

    @property
    def null_point(self) -> np.ndarray:
        """x = 0, or what is nearest to it within the bounds."""
        zero = np.zeros(self.x_shape)
        return zero if self.penalty.uniform else self.penalty.nearest(zero)

    # ---- feasible dual points -----------------------------------------------------------

    def feasible_dual(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn any ``y`` into a feasible one.

        Clips to the domain of the conjugates, balances for the intercept, scales for l2 = 0, in
        this order (scaling keeps the balance).  Rows of zeros take their optimal value.

        Returns
        -------
        y, u : the feasible point and its average
        """
        y = self._repaired(self._check_y(y))
        return self._scaled(y, self.average(y))

    def _repaired(self, y: np.ndarray) -> np.ndarray:
        """A copy of ``y`` in the domain of the conjugates, and balanced for the intercept."""
        if self.matrix.blocked and not self.loss.blocks:
            return repaired(self, y)
        y = self.into_domain(y)
        if self.intercept:
            return balanced(self, y)
        if self._idle_rows.size:
            idle = self._idle_rows
            z = np.zeros_like(y[idle]) if self.offset is None else self.offset[idle]
            y[idle] = self.loss.derivative(z, self.b[idle])
        return y

    def _scaled(self, y: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``y`` and its average ``u``, scaled for l2 = 0."""
        scale = self.penalty.feasible_scale(u)
        if scale < 1.0:
            scaled = y * scale
            if not self.intercept:  # rows of zeros do not enter u
                scaled[self.matrix.zero_rows] = y[self.matrix.zero_rows]
            y, u = scaled, u * scale
        return y, u

    def into_domain(self, y: np.ndarray) -> np.ndarray:
        """A copy of ``y`` inside the domain of the conjugates."""
        if self.loss.simplex:
            return into_domain(y, self.b)
        lo, hi = self.loss._ends(self.b[:1]) if many(self.n) else self._ends
        if endless(lo, hi):
            return y.copy()
        if not many(self.n):
            return np.minimum(np.maximum(y, lo), hi)
        out = np.empty(y.shape)
        for part in parts(self.n):
            lo, hi = self.loss._ends(self.b[part])
            np.minimum(np.maximum(y[part], lo), hi, out=out[part])
        return out

    def _dual(self, y: np.ndarray, u: np.ndarray) -> float:
        return -self._mean_conjugate(y) - self.penalty.conjugate(-u)

    def _mean_conjugate(self, y: np.ndarray) -> float:
        """The mean of w (phi*(y) - o y)."""
        conjugates = self._mean_of(self.loss.conjugate_sum, y, self._dual_targets)
        if self.offset is None or self.loss.task == "regression":
            return conjugates
        products = self.offset * y
        return conjugates - self._mean(products.sum(axis=1) if self._block else products)

    @cached_property
    def _dual_targets(self) -> np.ndarray:
        """The targets that D is evaluated with: less the offset, and with an intercept their mean.

        phi*(v) is bv plus what b has no part in, for regression: so the offset is one of b, and a y
        with sum_i w_i y_i = 0 does not see the mean; its digits would be lost from D (targets of
        100 +- 1: 2e-12 of P).
        """
        if self.loss.task != "regression":
            return self.b
        b = self.b if self.offset is None else self.b - self.offset
        if not self.intercept:
            return b
        w = self.n if self.weights is None else float(self.weights.sum())
        return b - self._mean(b) * self.n / w

    def l1_max(self) -> float:
        """The smallest l1 for which x = 0 is optimal (with the best intercept, if there is one).

        Exact for smooth losses; where the null model sits at kinks, an l1 for which it is optimal.
        Where columns have weights of their own, the factor of all l1_j for which it is (inf where
        a column goes without).
        """
        return ABOVE * self.penalty.critical_l1(self.average(null_dual(self)))

    @property
    def null_intercept(self) -> float:
        """The best c for x = 0."""
        low, high = null_intercept(self)
        return 0.5 * (low + high)

    # ---- what solvers need to know ------------------------------------------------------

    @property
    def n_classes(self) -> int | None:
        """K for the multinomial loss, or of the targets; None where a prediction is one number."""
        return self._block[0] if self._block else None

    @property
    def x_shape(self) -> tuple[int, ...]:
        """(d,), or (d, K) with K classes."""
        return (self.d, *self._block)

    @property
    def y_shape(self) -> tuple[int, ...]:
        """(n,), or (n, K) with K classes."""
        return (self.n, *self._block)

    @property
    def no_intercept(self) -> float | np.ndarray:
        """An intercept of 0, in the shape this problem's intercepts have."""
        return np.zeros(self._block) if self._block else 0.0

    @cached_property
    def active(self) -> np.ndarray:
        """Rows worth visiting: of positive weight, and not zero unless there is an intercept."""
        keep = np.ones(self.n, dtype=bool) if self.weights is None else self.weights > 0.0
        if not self.intercept:
            keep &= self.matrix.squared_norms > 0.0
        return np.flatnonzero(keep)

    @cached_property
    def n_active(self) -> int:
        """How many they are; without a list of them, where that is all."""
        if self.weights is None and (self.intercept or not self._idle_rows.size):
            return self.n
        return int(self.active.size)

    @cached_property
    def _idle_rows(self) -> np.ndarray:
        """Rows too short to count for a step: without an intercept they are not visited."""
        return np.flatnonzero(self.matrix.squared_norms == 0.0)

    @cached_property
    def _scales(self) -> tuple[float, float, float]:
        """Roots of the means of w |a|^2, w and w b^2 (b = 1 for classes): what P, D are made of."""
        b, w = self._dual_targets, self.weights
        matrix = self.matrix  # the mean over its rows is the same for every target
        rows = matrix.mean_square if w is None else self._mean(matrix.squared_norms)
        mass = 1.0 if w is None else float(w.sum()) / self.n
        targets = mass
        if b is self.b and b.ndim == 1 and self.loss.task not in SIGNS:
            targets = self._target_square
        elif self.loss.task not in SIGNS:
            targets = self._mean_square(b)
        return rows**0.5, mass**0.5, targets**0.5

    @cached_property
    def _offset_size(self) -> float:
        """The root of the mean of w |o|^2, for regression of w (|b| + |o|)^2; 0 without offset."""
        if self.offset is None:
            return 0.0
        size = np.abs(self.offset)
        if self.loss.task == "regression":
            size = size + np.abs(self.b)
        return self._mean(np.square(size).reshape(self.n, -1).sum(axis=1)) ** 0.5

    @cached_property
    def constant_target(self) -> float | None:
        """The c for which (0, c) predicts every target, and P = 0; None where there is none."""
        if not self.intercept or self.loss.task != "regression":
            return None
        if not self.penalty.uniform and self.null_point.any():
            return None
        b = self.b if self.offset is None else self.b - self.offset
        b = b if self.weights is None else b[self.weights > 0.0]
        return float(b[0]) if b[0] == b[-1] and (b == b[0]).all() else None

    @cached_property
    def _domain(self) -> tuple[np.ndarray, np.ndarray]:
        return self.loss.domain(self.b)

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        return self.loss._ends(self.b)

    def _mean(self, values: np.ndarray) -> float:
        return weighted_sum(values, self.weights) / self.n

    def _mean_square(self, values: np.ndarray) -> float:
        """The mean of w |v|^2; rows of several numbers count as vectors."""
        if values.ndim > 1:
            return self._mean(dots(values, values))
        return square_sum(values, self.weights) / self.n

    def _mean_of(self, function: Callable, at: np.ndarray, b: np.ndarray) -> float:
        """The mean that ``function(at, b)`` is the sum of, by who works on the rows."""
        rows = (at, b) if self.weights is None else (at, b, self.weights)
        return self.matrix.rowwise(function, rows=rows) / self.n

    def _check_intercept(self, intercept: float | np.ndarray) -> float | np.ndarray:
        if self.loss.blocks:
            c = as_numbers(intercept, "intercept")
            if c.shape not in ((), self._block):
                raise ValueError(
                    f"intercept has shape {c.shape}: this problem has {self.n_classes} classes, "
                    f"so it must have shape ({self.n_classes},)"
                )
            for value in c.ravel():
                self._check_scalar_intercept(float(value))
            return np.broadcast_to(c, self._block).copy()
        return self._check_scalar_intercept(intercept)

    def _check_scalar_intercept(self, intercept: Any) -> float:
        if isinstance(intercept, bool) or not isinstance(intercept, (int, float, np.number)):
            raise ValueError(f"intercept={intercept!r}: it must be a number")
        if not np.isfinite(intercept):
            raise ValueError(f"intercept={intercept!r}: it must be finite")
        if intercept != 0.0 and not self.intercept:
            raise ValueError(
                f"intercept={intercept!r}: the problem has none; make it with intercept=True"
            )
        return float(intercept)

    def _check_x(self, x: np.ndarray) -> np.ndarray:
        x = as_numbers(x, "x")
        if x.shape != self.x_shape:
            raise ValueError(
                f"x has shape {x.shape}: this problem has {self.d} columns{self._classes()}, so x "
                f"must have shape {self.x_shape}"
            )
        return x

    def _check_y(self, y: np.ndarray) -> np.ndarray:
        y = as_numbers(y, "y")
        if y.shape != self.y_shape:
            raise ValueError(
                f"y has shape {y.shape}: this problem has {self.n} rows{self._classes()}, so y "
                f"must have shape {self.y_shape}"
            )
        return y

    def _classes(self) -> str:
        return f" and {self.n_classes} classes" if self._block else ""
