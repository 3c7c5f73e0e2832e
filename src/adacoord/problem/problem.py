r"""The problem, its dual, and the certificate that binds them.

.. math::

    P(x, c) &= \frac1n \sum_i w_i\, \phi_i(a_i^T x + c) + g(x) \\
    D(y)    &= -\frac1n \sum_i w_i\, \phi_i^*(y_i) - g^*(-u), \qquad
    u = \frac1n \sum_i w_i y_i a_i

For every x, c and every feasible y, ``P(x, c) - D(y) >= P(x, c) - P*``: the gap proves how far
from optimal a point is, whoever made it.  y is feasible when each y_i lies in the domain of its
conjugate, when ``sum_i w_i y_i = 0`` if there is an (unpenalised) intercept c, and when
``|u|_inf <= l1`` if l2 = 0.  :meth:`Problem.feasible_dual` makes any y feasible; nothing here
ever evaluates a dual at a point that is not.

With the multinomial loss and K classes x has shape (d, K), c (K,) and y (n, K); the sums above
are then taken for each class.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..data.matrix import Matrix, as_matrix
from .inputs import as_numbers, check_flag, check_penalty, check_targets, check_weights
from .losses import Loss, get_loss
from .multiclass import balance, into_domain
from .penalties import Penalty
from .rounding import allowance

#: The tasks of losses whose targets are signs or codes.
SIGNS = ("classification", "multiclass")


class Problem:
    r"""A regularised linear model: data, a loss and a penalty.

    Minimises :math:`\frac1n \sum_i w_i \phi_i(a_i^T x + c) + l_1 |x|_1 + \frac{l_2}{2}|x|_2^2`.

    Parameters
    ----------
    A : array or sparse matrix of shape (n, d)
        One sample a row.  float32 and float64 are used as they are.
    b : array of shape (n,)
        Targets: -1 and +1 for the losses of classification, counts for ``"poisson"``, the class
        codes 0..K-1 for ``"multinomial"``.
    loss : str or Loss
        A name, or an object that carries a parameter: ``adacoord.problem.losses.Huber(delta=2.0)``.
    l1, l2 : float
        Weights of the penalty.  liblinear's ``C`` is ``l2 = 1/(n C)``.
    positive : bool
        Only x >= 0.
    sample_weight : array of shape (n,), optional
        Used exactly as given: they are not rescaled, and n stays the number of rows.
    intercept : bool
        Add an intercept c that is not penalised.
    """

    def __init__(
        self,
        A: Any,
        b: Any,
        loss: str | Loss = "squared",
        l1: float = 0.0,
        l2: float = 0.0,
        *,
        positive: bool = False,
        sample_weight: Any = None,
        intercept: bool = False,
    ):
        self.loss = get_loss(loss)
        self.penalty = Penalty(l1, l2, check_flag(positive, "positive"))
        check_penalty(self.penalty)
        self.matrix: Matrix = as_matrix(A)
        self.n, self.d = self.matrix.shape
        self.b = check_targets(b, self.n, self.loss)
        self.weights = check_weights(sample_weight, self.n)
        self.intercept = check_flag(intercept, "intercept")
        self._block: tuple[int, ...] = (int(self.b.max()) + 1,) if self.loss.blocks else ()

    def __repr__(self) -> str:
        p = self.penalty
        return (
            f"Problem({self.n} x {self.d}, {self.matrix.nnz} entries, {self.loss}, l1={p.l1:g}, "
            f"l2={p.l2:g}{', positive' * p.positive}{', intercept' * self.intercept})"
        )

    def with_penalty(self, l1: float | None = None, l2: float | None = None) -> Problem:
        """The same problem under another penalty; data, and what was made of them, are shared.

        ``None`` keeps the value that the problem has.
        """
        given: dict[str, Any] = {
            name: value for name, value in (("l1", l1), ("l2", l2)) if value is not None
        }
        other = copy(self)
        other.penalty = replace(self.penalty, **given)
        check_penalty(other.penalty)
        return other

    # ---- values, in float64 -------------------------------------------------------------

    def predict(self, x: np.ndarray, intercept: float | np.ndarray = 0.0) -> np.ndarray:
        """z = A x + c."""
        return self.predictions(self._check_x(x), self._check_intercept(intercept))

    def predictions(self, x: np.ndarray, intercept: float | np.ndarray) -> np.ndarray:
        """The same for a solver's own points, which may have diverged: not checked."""
        return self.matrix.dot(x) + intercept

    def primal(self, x: np.ndarray, intercept: float | np.ndarray = 0.0) -> float:
        """P(x, c)."""
        return self._primal(self._check_x(x), self._check_intercept(intercept))

    def _primal(self, x: np.ndarray, intercept: float | np.ndarray) -> float:
        """The same of a solver's own point: not checked."""
        values = self.loss.value(self.predictions(x, intercept), self.b)
        return self._mean(values) + self.penalty.value(np.asarray(x, dtype=np.float64))

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
            y = self._balance(y)
        return self._dual(y, self.average(y))

    def gap(self, x: np.ndarray, y: np.ndarray, intercept: float | np.ndarray = 0.0) -> float:
        """P(x, c) - D(y') >= P(x, c) - P*, with y' the feasible point made from ``y``.

        What rounding may hide is part of it (:mod:`.rounding`).  NaN when l1 = l2 = 0: without a
        penalty there is no such bound.
        """
        if not self.has_certificate:
            return np.nan
        primal, (y, u) = self.primal(x, intercept), self.feasible_dual(y)
        return primal - self.bound(x, intercept, primal, y, u, self._dual(y, u))

    def bound(
        self,
        x: np.ndarray,
        intercept: float | np.ndarray,
        primal: float,
        y: np.ndarray,
        u: np.ndarray,
        dual: float,
    ) -> float:
        """D(y) less what rounding may hide: a bound on P* to be held against P(x, c).

        ``y`` is feasible, ``u`` its average, ``primal`` and ``dual`` are P(x, c) and D(y).
        """
        x, least = np.asarray(x, dtype=np.float64), min(primal, dual)  # D above P is rounding
        return least - allowance(self, x, intercept, y, u, primal, least)

    def average(self, y: np.ndarray) -> np.ndarray:
        """u = (1/n) sum_i w_i y_i a_i."""
        if self.weights is not None:
            y = (self.weights * y.T).T
        return self.matrix.tdot(y) / self.n

    def relative_gap(self, primal: float, dual: float) -> float:
        """(P - D) / max(|P|, |D|, 1e-12 |P(0)|): the meaning of every ``tol``.

        P(0) is that of the best intercept, where there is one: an offset of the targets, however
        large, hides nothing.
        """
        scale = max(abs(primal), abs(dual))
        if scale < 1e-12 * abs(self.null_value):  # hardly ever: the best intercept takes a search
            scale = max(scale, 1e-12 * abs(self._null_model_value() or self.null_value))
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
        between the slopes of the losses and the columns (and the ones of the intercept): no
        bound on P - P*, but the same in all units.  Where x interpolates, slopes are nothing but
        rounding, and the gap to D(0), the least the losses can be, is smaller: then that.
        """
        z = self.predict(x, intercept)
        slopes = self.loss.derivative(z, self.b)
        primal = self._mean(self.loss.value(z, self.b))
        to_least = self.relative_gap(primal, self._dual(np.zeros(self.y_shape), np.zeros(self.d)))
        length = np.sqrt(self._mean(np.square(slopes).reshape(self.n, -1).sum(axis=1)))
        if not 0.0 < length < np.inf:
            return to_least
        u = self.average(slopes)
        if self.penalty.positive:  # where x = 0, only a pull away from it counts
            u = np.where(np.asarray(x) > 0.0, u, np.minimum(u, 0.0))
        cosine = float(np.max(np.abs(u).T / self._column_lengths)) / length
        if self.intercept:
            w = np.ones(self.n) if self.weights is None else self.weights
            sums = np.abs(np.sum((w * slopes.T).T, axis=0))
            cosine = max(cosine, float(np.max(sums)) / np.sqrt(self.n * np.sum(w)) / length)
        return min(cosine, to_least)

    def separates(self, x: np.ndarray, intercept: float | np.ndarray = 0.0) -> bool:
        """Whether (x, c) proves that an unpenalised P has no minimum.

        The losses of probabilities only tend to 0: a point that has all rows on their side gets
        better for ever as it is scaled up.
        """
        if self.has_certificate or self.loss.name not in ("logistic", "multinomial"):
            return False
        z = self.predict(x, intercept)
        if self.loss.blocks:
            rows = np.arange(self.n)
            own = z[rows, self.b]
            z[rows, self.b] = -np.inf
            margins = own - z.max(axis=1)
        else:
            margins = self.b * z
        return bool(
            (margins > 0.0).all()
            if self.weights is None
            else (margins[self.weights > 0.0] > 0.0).all()
        )

    @cached_property
    def _column_lengths(self) -> np.ndarray:
        """sqrt((1/n) sum_i w_i a_ij^2), and 1 for columns of zeros."""
        m = self.matrix
        squares = Matrix(m.shape, m.indptr, m.indices, np.square(m.data, dtype=np.float64))
        w = np.ones(self.n) if self.weights is None else self.weights
        lengths = np.sqrt(squares.tdot(w) / self.n)
        return np.where(lengths > 0.0, lengths, 1.0)

    @cached_property
    def null_value(self) -> float:
        """P(0, 0)."""
        return self._mean(self.loss.value(np.zeros(self.y_shape), self.b))

    def _null_model_value(self) -> float:
        """P(0, c) with the best c."""
        if not self.intercept:
            return self.null_value
        if self.loss.blocks:  # the entropy of the shares of the classes
            weights = np.bincount(self.b, self.weights, self._block[0]) / self.n
            kept = weights[weights > 0.0]
            return float(-np.sum(kept * np.log(kept / kept.sum())))
        low, high = self._null_intercept()
        return self._mean(self.loss.value(np.full(self.n, 0.5 * (low + high)), self.b))

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
        y = self.into_domain(y)
        if self.intercept:
            return self._balance(y)
        if self._idle_rows.size:
            idle = self._idle_rows
            y[idle] = self.loss.derivative(np.zeros_like(y[idle]), self.b[idle])
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
        if self.loss.blocks:
            return into_domain(y, self.b)
        lo, hi = self._ends
        return np.minimum(np.maximum(y, lo), hi)

    def _balance(self, y: np.ndarray) -> np.ndarray:
        """Make sum_i w_i y_i = 0 without leaving the domain, which always contains 0.

        Each row gives in proportion to its room, the distance to the nearer end of its domain:
        rows strictly inside can move at (to first order) no cost, rows at an end cannot.  Where
        there is not enough room, the heavier of the positive and the negative part is scaled.
        """
        w = self.weights
        if self.loss.blocks:
            return balance(y, self.b, np.ones(self.n) if w is None else w)
        lo, hi = self._ends
        room = np.minimum(y - lo, hi - y)
        endless = room == np.inf
        bounded = not endless.all()
        room[endless] = 1.0
        # Three times: the first sum may be of large numbers, and D is off by c times what is left.
        movable = (room if w is None else w * room).sum()
        for _ in range(3):
            total = (y if w is None else w * y).sum()
            if total == 0.0 or movable == 0.0 or (bounded and abs(total) > movable):
                break
            y = y - (total / movable) * room
            if bounded:
                y = np.minimum(np.maximum(y, lo), hi)
        weighted = y if w is None else w * y
        up, down = np.maximum(weighted, 0.0).sum(), -np.minimum(weighted, 0.0).sum()
        if up > down:
            return np.where(y > 0.0, y * (down / up), y)
        return np.where(y < 0.0, y * (up / down), y) if down > up else y

    def _dual(self, y: np.ndarray, u: np.ndarray) -> float:
        return -self._mean(self.loss.conjugate(y, self.b)) - self.penalty.conjugate(-u)

    def l1_max(self) -> float:
        """The smallest l1 for which x = 0 is optimal (with the best intercept, if there is one).

        Exact for smooth losses; where the null model sits at kinks, an l1 for which it is optimal.
        """
        return self.penalty.critical_l1(self.average(self._null_dual()))

    def _null_dual(self) -> np.ndarray:
        """A dual point that proves x = 0 optimal for large l1: a balanced subgradient there.

        Subgradients left and right of the best intercept are mixed so that they balance, which
        settles the rows at a kink.
        """
        if not self.intercept:
            return self.loss.derivative(np.zeros(self.y_shape), self.b)
        if self.loss.blocks:  # the best intercepts make every row the shares of the classes
            shares = np.bincount(self.b, self.weights, self._block[0])
            return self._balance(into_domain(np.tile(shares / shares.sum(), (self.n, 1)), self.b))

        low, high = self._null_intercept()
        width = 1e-9 * (1.0 + abs(low))
        left, right = self._null_slopes(low - width), self._null_slopes(high + width)
        below, above = self._mean(left), self._mean(right)
        share = below / (below - above) if above > below else 0.0
        return self._balance(left + share * (right - left))

    def _null_slopes(self, c: float) -> np.ndarray:
        return self.loss.derivative(np.full(self.n, c), self.b)

    def _null_intercept(self) -> tuple[float, float]:
        """Two numbers next to one another with the best c for x = 0 between them.

        By bisection on the (monotone) slope; the mean, for the squared loss.
        """
        if self.loss.name == "squared":
            w = np.ones(self.n) if self.weights is None else self.weights
            centre = self._mean(self.b) * (self.n / float(np.sum(w)))
            return centre, centre

        def slope(c: float) -> float:
            return self._mean(self._null_slopes(c))

        low, high = -1.0, 1.0
        while slope(low) > 0.0 and low > -1e300:
            low *= 2.0
        while slope(high) < 0.0 and high < 1e300:
            high *= 2.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            if slope(middle) < 0.0:
                low = middle
            else:
                high = middle
        return low, high

    # ---- what solvers need to know ------------------------------------------------------

    @property
    def n_classes(self) -> int | None:
        """K for the multinomial loss; None where a prediction is one number."""
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
    def _idle_rows(self) -> np.ndarray:
        """Rows too short to count for a step: without an intercept they are not visited."""
        return np.flatnonzero(self.matrix.squared_norms == 0.0)

    @cached_property
    def _scales(self) -> tuple[float, float, float]:
        """Roots of the means of w |a|^2, w and w b^2 (b = 1 for classes): what P is made of."""
        rows, b, w = self.matrix.squared_norms, self.b, self.weights
        mass = 1.0 if w is None else float(w.sum()) / self.n
        targets = mass if self.loss.task in SIGNS else self._mean(b * b)
        return self._mean(rows) ** 0.5, mass**0.5, targets**0.5

    @cached_property
    def constant_target(self) -> float | None:
        """The c for which (0, c) predicts every target, and P = 0; None where there is none."""
        if not self.intercept or self.loss.task != "regression":
            return None
        b = self.b if self.weights is None else self.b[self.weights > 0.0]
        return float(b[0]) if (b == b[0]).all() else None

    @cached_property
    def _domain(self) -> tuple[np.ndarray, np.ndarray]:
        return self.loss.domain(self.b)

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        return self.loss._ends(self.b)

    def _mean(self, values: np.ndarray) -> float:
        if self.weights is None:
            return float(values.sum()) / self.n
        kept = self.weights > 0.0  # 0 * inf is not 0
        return float(np.sum(self.weights[kept] * values[kept])) / self.n

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
