"""Regressors: ``LinearSVR``, ``Ridge``, ``Lasso`` and ``ElasticNet``, and what they share."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.linear_model._base import LinearModel
from sklearn.utils._param_validation import Interval, StrOptions

from ..problem.losses import EpsilonInsensitive, Loss, SquaredEpsilonInsensitive, get_loss
from .base import LinearEstimator
from .columns import COLUMNS, added
from .paths import enet_path
from .recipes import Regression, Rows, elastic_net_penalty, liblinear_penalty, ridge_penalties
from .row_blocks import lazy


class LinearRegressor(RegressorMixin, LinearEstimator, LinearModel):
    """One problem per target."""

    #: Whether y may have several columns.
    _multi_output = False

    def _rows(self, X, y, sample_weight) -> Rows:
        X, y, weights, matrix = self._checked(
            X, y, sample_weight, multi_output=self._multi_output, y_numeric=True
        )
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1).T
        return Rows(X, y, targets, weights, matrix=matrix)

    def predict(self, X, offset=None):
        """Predictions, of shape (n_samples,) or (n_samples, n_targets).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        offset : array of the shape of the predictions, optional
            What is added to them.
        """
        return added(self._predicted(X), offset)

    @lazy
    def _predicted(self, X):
        return super().predict(X)

    def _regression(self, rows: Rows, loss: Loss, **how) -> Regression:
        return Regression(
            loss=loss,
            fit_intercept=self.fit_intercept,
            n_targets=len(rows.targets),
            flat=rows.y.ndim == 1,
            columns=self._columns(rows),
            **how,
        )

    def _iterations(self, passes: list[int]):
        return passes[0] if len(passes) == 1 else passes


class LinearSVR(LinearRegressor):
    r"""Linear support vector regression, to a certified optimum.

    Minimises :math:`C \sum_i w_i \phi(a_i^Tx + c - b_i) + |x|^2/2` with
    :math:`\phi(r) = \max(0, |r| - \epsilon)` or its square.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width of the tube without loss.
    tol : float, default=1e-4
        The relative duality gap to reach.
    C : float, default=1.0
        Weight of the losses.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised.  A number penalises it as liblinear does: it is
        the coefficient of a column of this value.  (scikit-learn's default is 1.)
    dual : default="auto"
        Taken for the sake of calls to scikit-learn's class; has no effect.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    max_iter : int, default=1000
        Passes over the data.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    warm_start : bool, default=False
    n_jobs : int or None, default=None
        Threads that share blocks of rows, -1 for all cores: same bits for 1, 2, 4, ...  None is
        the serial method.
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
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither"), None],
        "dual": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        *,
        epsilon=0.0,
        tol=1e-4,
        C=1.0,
        loss="epsilon_insensitive",
        fit_intercept=True,
        intercept_scaling=None,
        dual="auto",
        verbose=0,
        random_state=None,
        max_iter=1000,
        solver="auto",
        warm_start=False,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    def _recipe(self, rows):
        squared = self.loss == "squared_epsilon_insensitive"
        loss = (SquaredEpsilonInsensitive if squared else EpsilonInsensitive)(self.epsilon)
        return self._regression(rows, loss, bias=self.intercept_scaling)

    def _penalties(self, rows, recipe):
        return [liblinear_penalty(rows.X.shape[0], self.C, 0.0)]


class Ridge(MultiOutputMixin, LinearRegressor):
    r"""Least squares with an l2 penalty, to a certified optimum.

    Minimises :math:`\sum_i w_i (a_i^Tx + c - b_i)^2 + \alpha |x|^2`.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        With 0 there is no certificate.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    copy_X : default=True
        Taken for the sake of calls to scikit-learn's class; X is never changed.
    max_iter : int or None, default=None
        Passes over the data; None for 1000.
    tol : float, default=1e-4
        The relative duality gap to reach.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    positive : bool, default=False
        Only coefficients of zero or more; with ``alpha=0`` by active sets, of small sides only.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    warm_start : bool, default=False
    n_jobs : int or None, default=None
        Threads, -1 for all cores: targets side by side first, then blocks of rows; same bits
        for 1, 2, 4, ...  None is the serial method.
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
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    n_iter_ : passes over the data; a list if there are several targets
    dual_coef_ : array of shape (n_samples,) or (n_targets, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate; an array if there are several targets
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _multi_output = True
    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        **COLUMNS,
        "alpha": [Interval(Real, 0.0, None, closed="left"), "array-like"],
        "copy_X": ["boolean"],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        copy_X=True,
        max_iter=None,
        tol=1e-4,
        solver="auto",
        positive=False,
        random_state=None,
        verbose=0,
        warm_start=False,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    def _recipe(self, rows):
        return self._regression(rows, get_loss("squared"), positive=self.positive)

    def _penalties(self, rows, recipe):
        return ridge_penalties(rows.X.shape[0], self.alpha, recipe.n_targets)


class ElasticNet(MultiOutputMixin, LinearRegressor):
    r"""Least squares with l1 and l2 penalties, to a certified optimum.

    Minimises :math:`\frac{1}{2 \sum_i w_i} \sum_i w_i (a_i^Tx + c - b_i)^2 + \alpha r |x|_1
    + \frac{\alpha (1 - r)}{2} |x|^2` with r = ``l1_ratio``.

    Parameters
    ----------
    alpha : float, default=1.0
        With 0 there is no certificate.
    l1_ratio : float, default=0.5
    fit_intercept : bool, default=True
        The intercept is not penalised.
    precompute, copy_X, selection
        Taken for the sake of calls to scikit-learn's class; they have no effect.
    max_iter : int, default=1000
        Passes over the data.
    tol : float, default=1e-4
        The relative duality gap to reach.
    warm_start : bool, default=False
    positive : bool, default=False
        Only coefficients of zero or more; with ``alpha=0`` by active sets, of small sides only.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    verbose : int, default=0
    n_jobs : int or None, default=None
        Threads, -1 for all cores: targets side by side first, then blocks of rows; same bits
        for 1, 2, 4, ...  None is the serial method.
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
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    sparse_coef_ : the same as a sparse matrix
    intercept_ : float or array of shape (n_targets,)
    n_iter_ : passes over the data; a list if there are several targets
    dual_coef_ : array of shape (n_samples,) or (n_targets, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate; an array if there are several targets
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _multi_output = True
    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        **COLUMNS,
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "precompute": ["boolean", "array-like"],
        "copy_X": ["boolean"],
        "positive": ["boolean"],
        "selection": [StrOptions({"cyclic", "random"})],
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        l1_ratio=0.5,
        fit_intercept=True,
        precompute=False,
        max_iter=1000,
        copy_X=True,
        tol=1e-4,
        warm_start=False,
        positive=False,
        random_state=None,
        selection="cyclic",
        solver="auto",
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
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.solver = solver
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    path = staticmethod(enet_path)

    def _recipe(self, rows):
        return self._regression(rows, get_loss("squared"), positive=self.positive, mean_one=True)

    def _penalties(self, rows, recipe):
        return [elastic_net_penalty(self.alpha, self.l1_ratio)] * recipe.n_targets

    @property
    def sparse_coef_(self):
        """``coef_`` as a sparse matrix."""
        return sparse.csr_matrix(self.coef_)


class Lasso(ElasticNet):
    r"""Least squares with an l1 penalty, to a certified optimum.

    Minimises :math:`\frac{1}{2 \sum_i w_i} \sum_i w_i (a_i^Tx + c - b_i)^2 + \alpha |x|_1`.

    Parameters
    ----------
    alpha : float, default=1.0
        With 0 there is no certificate.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    precompute, copy_X, selection
        Taken for the sake of calls to scikit-learn's class; they have no effect.
    max_iter : int, default=1000
        Passes over the data.
    tol : float, default=1e-4
        The relative duality gap to reach.
    warm_start : bool, default=False
    positive : bool, default=False
        Only coefficients of zero or more; with ``alpha=0`` by active sets, of small sides only.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    verbose : int, default=0
    n_jobs : int or None, default=None
        Threads, -1 for all cores: targets side by side first, then blocks of rows; same bits
        for 1, 2, 4, ...  None is the serial method.
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
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    sparse_coef_ : the same as a sparse matrix
    intercept_ : float or array of shape (n_targets,)
    n_iter_ : passes over the data; a list if there are several targets
    dual_coef_ : array of shape (n_samples,) or (n_targets, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate; an array if there are several targets
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {**ElasticNet._parameter_constraints}
    _parameter_constraints.pop("l1_ratio")

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        precompute=False,
        copy_X=True,
        max_iter=1000,
        tol=1e-4,
        warm_start=False,
        positive=False,
        random_state=None,
        selection="cyclic",
        solver="auto",
        verbose=0,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        super().__init__(
            alpha=alpha,
            l1_ratio=1.0,
            fit_intercept=fit_intercept,
            precompute=precompute,
            max_iter=max_iter,
            copy_X=copy_X,
            tol=tol,
            warm_start=warm_start,
            positive=positive,
            random_state=random_state,
            selection=selection,
            solver=solver,
            verbose=verbose,
            n_jobs=n_jobs,
            standardize=standardize,
            penalty_factor=penalty_factor,
            bounds=bounds,
            keep_dual=keep_dual,
        )
