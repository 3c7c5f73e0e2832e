"""Generalised linear models: ``PoissonRegressor``, ``GammaRegressor`` and ``TweedieRegressor``."""

from __future__ import annotations

from contextlib import suppress
from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_array

from ..problem.inputs import check_targets
from ..problem.losses import Gamma, Loss, Poisson, Squared, Tweedie
from .base import LinearEstimator
from .columns import COLUMNS
from .recipes import elastic_net_penalty
from .regressors import LinearRegressor


class GeneralizedLinearRegressor(LinearRegressor):
    """Half the mean deviance of exp(z), or of z, with an elastic net penalty."""

    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        **COLUMNS,
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
    }

    def __init__(
        self,
        *,
        alpha=1.0,
        l1_ratio=0.0,
        fit_intercept=True,
        solver="auto",
        max_iter=1000,
        tol=1e-4,
        warm_start=False,
        random_state=None,
        verbose=0,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # a power or link that a fit refuses
            tags.target_tags.positive_only = self._loss().log_link
        return tags

    def _loss(self) -> Loss:
        """Half the unit deviance, up to a constant."""
        raise NotImplementedError

    def _recipe(self, rows):
        return self._regression(rows, self._loss(), mean_one=True)

    def _penalties(self, rows, recipe):
        return [elastic_net_penalty(self.alpha, self.l1_ratio)]

    def predict(self, X, offset=None):
        """Expected targets, of shape (n_samples,): exp(A x + c), or A x + c of an identity link.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        offset : array of shape (n_samples,), optional
            What is added to A x + c: the logarithm of an exposure, for a log link.
        """
        z = super().predict(X, offset)
        return np.exp(z) if self._loss().log_link else z

    def score(self, X, y, sample_weight=None):
        r"""The share :math:`D^2` of the deviance that is explained.

        :math:`1 - \sum_i w_i d(b_i, \mu_i) / \sum_i w_i d(b_i, \bar b)`, with the unit deviance d
        and the weighted mean of the targets; 1 at best, and negative for a model that is worse
        than the mean.
        """
        loss, z = self._loss(), super().predict(X)
        b = check_targets(check_array(y, ensure_2d=False, dtype=np.float64), len(z), loss)
        w = np.ones(len(b))
        if sample_weight is not None:
            w = _check_sample_weight(sample_weight, b[:, None], dtype=np.float64)
        mean = np.average(b, weights=w)
        with np.errstate(divide="ignore"):
            null = np.log(mean) if loss.log_link else mean
        least = -loss.conjugate(np.zeros(b.shape), b)  # of phi: the saturated model
        missed, whole = (
            np.average(loss.value(np.broadcast_to(at, b.shape), b) - least, weights=w)
            for at in (z, null)
        )
        rounding = 1e-15 * np.average(np.abs(least), weights=w)
        if whole <= rounding:  # targets all alike, as in scikit-learn's r2_score
            return float(missed <= rounding)
        return float(1.0 - missed / whole)


class PoissonRegressor(GeneralizedLinearRegressor):
    r"""Poisson regression of counts, to a certified optimum.

    Minimises :math:`\frac{1}{\sum_i w_i} \sum_i w_i (\mu_i - b_i \log \mu_i) + \alpha r |x|_1 +
    \frac{\alpha (1 - r)}{2} |x|^2` with :math:`\mu_i = \exp(a_i^Tx + c)` and r = ``l1_ratio``: half
    the mean deviance, up to a constant.

    Parameters
    ----------
    alpha : float, default=1.0
        With 0 there is no certificate.
    l1_ratio : float, default=0.0
        0 is scikit-learn's l2 penalty, 1 an l1 penalty.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    max_iter : int, default=1000
        Passes over the data.
    tol : float, default=1e-4
        The relative duality gap to reach.
    warm_start : bool, default=False
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    n_jobs : int or None, default=None
        Threads that share the rows of large data.
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

    def _loss(self) -> Loss:
        return Poisson()


class GammaRegressor(GeneralizedLinearRegressor):
    r"""Gamma regression of positive targets with a log link, to a certified optimum.

    Minimises :math:`\frac{1}{\sum_i w_i} \sum_i w_i (\log \mu_i + b_i/\mu_i) + \alpha r |x|_1 +
    \frac{\alpha (1 - r)}{2} |x|^2` with :math:`\mu_i = \exp(a_i^Tx + c)` and r = ``l1_ratio``: half
    the mean deviance, up to a constant.

    Parameters
    ----------
    alpha : float, default=1.0
        With 0 there is no certificate.
    l1_ratio : float, default=0.0
        0 is scikit-learn's l2 penalty, 1 an l1 penalty.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    max_iter : int, default=1000
        Passes over the data.
    tol : float, default=1e-4
        The relative duality gap to reach.
    warm_start : bool, default=False
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    n_jobs : int or None, default=None
        Threads that share the rows of large data.
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

    def _loss(self) -> Loss:
        return Gamma()


class TweedieRegressor(GeneralizedLinearRegressor):
    r"""Regression by a deviance of the Tweedie family, to a certified optimum.

    Minimises :math:`\frac{1}{2 \sum_i w_i} \sum_i w_i d_p(b_i, \mu_i) + \alpha r |x|_1 +
    \frac{\alpha (1 - r)}{2} |x|^2` with r = ``l1_ratio``, where the unit deviance :math:`d_p`
    belongs to a variance of :math:`\mu^p`.

    Parameters
    ----------
    power : float, default=0.0
        p: 0 is least squares, 1 Poisson's deviance, 2 gamma's, and between 1 and 2 that of sums of
        a Poisson number of gamma variates.  The deviances of other powers are not convex in x.
    alpha : float, default=1.0
        With 0 there is no certificate.
    l1_ratio : float, default=0.0
        0 is scikit-learn's l2 penalty, 1 an l1 penalty.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    link : {"auto", "identity", "log"}, default="auto"
        :math:`\mu_i` is :math:`a_i^Tx + c` or its exponential; "auto" is the identity for power 0
        and the logarithm for the others, which are the pairs whose deviance is convex.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    max_iter : int, default=1000
        Passes over the data.
    tol : float, default=1e-4
        The relative duality gap to reach.
    warm_start : bool, default=False
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    n_jobs : int or None, default=None
        Threads that share the rows of large data.
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
        **GeneralizedLinearRegressor._parameter_constraints,
        "power": [Interval(Real, None, None, closed="neither")],
        "link": [StrOptions({"auto", "identity", "log"})],
    }

    def __init__(
        self,
        *,
        power=0.0,
        alpha=1.0,
        l1_ratio=0.0,
        fit_intercept=True,
        link="auto",
        solver="auto",
        max_iter=1000,
        tol=1e-4,
        warm_start=False,
        random_state=None,
        verbose=0,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        super().__init__(
            alpha=alpha,
            l1_ratio=l1_ratio,
            fit_intercept=fit_intercept,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
            n_jobs=n_jobs,
            standardize=standardize,
            penalty_factor=penalty_factor,
            bounds=bounds,
            keep_dual=keep_dual,
        )
        self.power = power
        self.link = link

    def _loss(self) -> Loss:
        power = float(self.power)
        if power != 0.0 and not 1.0 <= power <= 2.0:
            raise ValueError(
                f"power={self.power!r}: its deviance is not convex in the coefficients, or there "
                "is no such distribution; use 0 (least squares), 1 (Poisson), 2 (gamma) or a "
                "power between 1 and 2"
            )
        convex = "identity" if power == 0.0 else "log"
        if self.link not in ("auto", convex):
            raise ValueError(
                f"link={self.link!r}: with power={self.power!r} the deviance is not convex in the "
                f'coefficients, so that nothing could be certified; use link="{convex}"'
            )
        if power in (0.0, 1.0, 2.0):
            return {0.0: Squared, 1.0: Poisson, 2.0: Gamma}[power]()
        return Tweedie(power)
