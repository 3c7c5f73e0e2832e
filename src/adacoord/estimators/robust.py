"""Robust regressors: ``QuantileRegressor`` and ``HuberRegressor``."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval

from ..parallel.config import keeping
from ..problem.concomitant import judge
from ..problem.losses import Huber, Quantile
from .base import EstimatorConvergenceWarning, LinearEstimator
from .columns import COLUMNS
from .recipes import Posed, Regression, Rows, elastic_net_penalty, ridge_penalty
from .regressors import LinearRegressor
from .row_blocks import in_rows

#: The least scale, as a share of the deviation of the targets: that of a fit without residuals.
LEAST = 1e-8
#: Scales that are tried at most, and the logarithm of what one may be of the one before.
SCALES, FARTHEST = 60, 5.0


class QuantileRegressor(LinearRegressor):
    r"""Regression of a quantile with an l1 penalty, to a certified optimum.

    Minimises :math:`\frac{1}{\sum_i w_i} \sum_i w_i (q (b_i - z_i)_+ + (1 - q) (z_i - b_i)_+) +
    \alpha |x|_1` with :math:`z_i = a_i^Tx + c`.

    Parameters
    ----------
    quantile : float, default=0.5
        q, strictly between 0 and 1.
    alpha : float, default=1.0
        Without a penalty (0) the certificate holds within a box, 1,000 times as wide as the
        coefficients.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names ("highs", ...) are taken for ``"auto"``.
    solver_options : default=None
        Taken for the sake of calls to scikit-learn's class; has no effect.
    tol : float, default=1e-4
        The relative duality gap to reach.
    max_iter : int, default=1000
        Passes over the data.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    warm_start : bool, default=False
    n_jobs : int or None, default=None
        Without effect: there is one problem.
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        It is a penalty factor by another name, l1 times the deviation and l2 times its square, and
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    penalty_factor : array of shape (n_features,), default=None
        A factor of the penalty for each column, zero or more; 0 for a column that is not
        penalised.  They are used as they are.
    bounds : tuple (lower, upper), default=None
        Only coefficients from lower to upper, each a number or an array of shape (n_features,);
        None, or an infinite one, is no bound.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it, or all
        of it with ``warm_start=True``, which starts from it.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    n_iter_ : passes over the data
    dual_coef_ : array of shape (n_samples,); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        **COLUMNS,
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "solver_options": [dict, None],
    }

    def __init__(
        self,
        *,
        quantile=0.5,
        alpha=1.0,
        fit_intercept=True,
        solver="auto",
        solver_options=None,
        tol=1e-4,
        max_iter=1000,
        random_state=None,
        verbose=0,
        warm_start=False,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    def _recipe(self, rows):
        return self._regression(rows, Quantile(float(self.quantile)), mean_one=True)

    def _penalties(self, rows, recipe):
        return [elastic_net_penalty(self.alpha, 1.0)]


class HuberRegressor(LinearRegressor):
    r"""Regression that outliers hardly move, with its scale, to a certified optimum.

    Minimises :math:`\sum_i w_i (\sigma + \sigma H((a_i^Tx + c - b_i)/\sigma)) + \alpha |x|^2`
    over x, c and :math:`\sigma > 0`, with :math:`H(t) = t^2` for :math:`|t| \le \epsilon` and
    :math:`2 \epsilon |t| - \epsilon^2` beyond.  This is convex in all of them, and the certificate
    is one of all of them (:mod:`adacoord.problem.concomitant`).  For a given scale it is
    ``ERMRegressor(Huber(delta=epsilon * scale), l2=alpha * scale / n)``.

    Parameters
    ----------
    epsilon : float, default=1.35
        1 or more; beyond ``epsilon`` times the scale a residual counts by its size, not its square.
    max_iter : int, default=1000
        Passes over the data, for all scales together.
    alpha : float, default=1e-4
        With 0 there is no certificate.
    warm_start : bool, default=False
    fit_intercept : bool, default=True
        The intercept is not penalised.
    tol : float, default=1e-4
        The relative duality gap to reach.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        It is a penalty factor by another name, l1 times the deviation and l2 times its square, and
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    penalty_factor : array of shape (n_features,), default=None
        A factor of the penalty for each column, zero or more; 0 for a column that is not
        penalised.  They are used as they are.
    bounds : tuple (lower, upper), default=None
        Only coefficients from lower to upper, each a number or an array of shape (n_features,);
        None, or an infinite one, is no bound.
    n_jobs : int or None, default=None
        Threads that share the rows of large data.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it, or all
        of it with ``warm_start=True``, which starts from it.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    scale_ : float
        :math:`\sigma`; 1e-8 of the deviation of the targets at least, where there are no
        residuals.
    outliers_ : array of shape (n_samples,)
        Whether a residual is beyond ``epsilon * scale_``.
    n_iter_ : passes over the data, for all scales
    dual_coef_ : array of shape (n_samples,); see ``keep_dual``
        Of the problem of that scale.
    dual_gap_, relative_gap_ : the certificate of coefficients and scale; divided by n, as ever
    history_ : what each gap check saw, at the last scale
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        **COLUMNS,
        "epsilon": [Interval(Real, 1.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        epsilon=1.35,
        max_iter=1000,
        alpha=1e-4,
        warm_start=False,
        fit_intercept=True,
        tol=1e-4,
        solver="auto",
        random_state=None,
        verbose=0,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        n_jobs=None,
        keep_dual=None,
    ):
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.alpha = alpha
        self.warm_start = warm_start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.n_jobs = n_jobs
        self.keep_dual = keep_dual

    def fit(self, X, y, sample_weight=None, offset=None):
        """Fit the model: coefficients at one scale after another, until one is its own.

        Parameters and what is returned are those of :meth:`adacoord.Ridge.fit`.
        """
        self._validate_params()
        X, y, sample_weight = in_rows(X, y, sample_weight)
        rows, recipe = self._shifted(X, y, sample_weight, offset)
        warm = getattr(self, "scale_", None) if self.warm_start else None
        self._begin(rows)
        spread, spent = _spread(rows), 0
        search = _ScaleSearch(warm or spread, LEAST * spread)
        posed = self._at(search.scale, rows, recipe)
        [start] = self._warm_starts(posed)
        solve = self._runner()
        while True:
            [problem] = posed.problems
            # half of tol is left for the scale
            limits = {"tol": 0.5 * self.tol, "max_passes": self.max_iter - spent}
            kept = keeping().of(search.tried - 1, SCALES)  # each scale in a file of its own
            found = solve(problem, start, verbose=bool(self.verbose), **limits, **kept)
            start, spent = found, spent + found.passes
            point, proved = (found.x, found.intercept, found.y), None
            if found.converged and problem.has_certificate:  # and need not be looked at again
                proved = found.dual
            joint = judge(problem, *point, search.scale, LEAST * spread, proved)
            gap = joint.primal - joint.dual
            relative = max(gap, 0.0) / max(abs(joint.primal), abs(joint.dual))
            met = relative <= self.tol
            if not problem.has_certificate:
                gap = relative = math.nan
                met = abs(search.away(joint.scale)) <= self.tol
            over = spent >= self.max_iter or found.status == "interrupted"
            if met or over or not search.move(joint.scale):
                break
            posed = self._at(search.scale, rows, recipe)
        if not met:
            warnings.warn(
                f"stopped after {spent} passes and {search.tried} scales with a relative gap of "
                f"{relative:.2e} (tol={self.tol:g} was asked for). Raise max_iter or tol.",
                EstimatorConvergenceWarning,
                stacklevel=2,
            )
        self._store(posed, [replace(found, passes=spent)])
        self.scale_, self.dual_gap_, self.relative_gap_ = search.scale, gap, relative
        residuals = problem.predict(found.x, found.intercept) - problem.b
        self.outliers_ = np.abs(residuals) > self.scale_ * self.epsilon
        return self

    def _pose(self, X, y, sample_weight=None, offset=None) -> Posed:
        """The problem of the scale that was found."""
        return self._at(self.scale_, *self._shifted(X, y, sample_weight, offset))

    def _shifted(self, X, y, sample_weight, offset) -> tuple[Rows, Regression]:
        """Checked input with its offset, and what is asked of it at a scale of 1."""
        rows = self._rows(X, y, sample_weight)
        recipe = self._regression(rows, Huber(float(self.epsilon)))
        return recipe.with_offset(rows, offset), recipe

    def _at(self, scale: float, rows: Rows, recipe: Regression) -> Posed:
        """The problem of one scale."""
        recipe = replace(recipe, loss=Huber(float(self.epsilon) * scale))
        penalty = ridge_penalty(rows.X.shape[0], self.alpha * scale)
        return Posed(rows, recipe, recipe.problems(rows, [penalty]))


class _ScaleSearch:
    """The root of J's slope in the scale, wbar - mean(w y^2)/scale^2, which only increases.

    ``move`` takes the scale that is best for the residuals of the one tried: above that, the root
    is above it, too.  The secant rule in logarithms, inside a bracket.
    """

    def __init__(self, scale: float, least: float):
        self.scale, self.tried = max(float(scale), least), 1
        self.least, self.low, self.high = least, 0.0, math.inf
        self.before: tuple[float, float] | None = None

    def away(self, wanted: float) -> float:
        """The logarithm of what is wanted over what there is."""
        return math.log(max(wanted, self.least) / self.scale)

    def move(self, wanted: float) -> bool:
        """To the next scale; whether there is one."""
        at, away = math.log(self.scale), self.away(wanted)
        if away > 0.0:
            self.low = self.scale
        else:
            self.high = self.scale
        step = away
        if self.before is not None and self.before[1] != away:
            step = -away * (at - self.before[0]) / (away - self.before[1])
        self.before = at, away
        new = max(self.scale * math.exp(min(max(step, -FARTHEST), FARTHEST)), self.least)
        if not self.low < new < self.high:
            low = max(self.low, self.least)
            new = math.sqrt(low * self.high) if self.high < math.inf else 10.0 * self.scale
        moved = self.low < new < self.high and new != self.scale and self.tried < SCALES
        self.scale, self.tried = (new if moved else self.scale), self.tried + 1
        return moved


def _spread(rows: Rows) -> float:
    """The deviation of the targets, a first scale; 1 where they do not vary."""
    [b] = rows.without_offset
    w = np.ones(b.size) if rows.weights is None else rows.weights
    centre = np.average(b, weights=w)
    return math.sqrt(float(np.average(np.square(b - centre), weights=w))) or 1.0
