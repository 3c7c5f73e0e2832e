"""``ERMClassifier`` and ``ERMRegressor``: every loss with every penalty, in the papers' scaling."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from ..problem.losses import LOSSES, Loss, get_loss
from .base import LinearEstimator
from .classifiers import LinearClassifier
from .columns import COLUMNS
from .regressors import LinearRegressor
from .row_blocks import lazy

_PENALTIES = {
    "l1": [Interval(Real, 0.0, None, closed="left")],
    "l2": [Interval(Real, 0.0, None, closed="left")],
    "positive": ["boolean"],
}


def _names(*tasks: str) -> set[str]:
    return {name for name, cls in LOSSES.items() if cls.task in tasks}


def _gives_probabilities(estimator) -> bool:
    loss = estimator.loss
    return (loss.name if isinstance(loss, Loss) else loss) in ("logistic", "multinomial")


class ERMClassifier(LinearClassifier):
    r"""Classification by any loss of margins and any penalty, to a certified optimum.

    Minimises :math:`\frac{1}{\sum_i w_i} \sum_i w_i \phi_i(a_i^Tx + c) + l_1 |x|_1 +
    \frac{l_2}{2} |x|^2`, for each class against the rest where there are more than two.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic", "hinge", "squared_hinge", "smooth_hinge", or an object that carries a
        parameter; "multinomial" fits all classes at once.
    l1, l2 : float, default=0.0 and 1e-4
        Weights of the penalty.
    positive : bool, default=False
        Only coefficients of zero or more.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    tol : float, default=1e-4
        The relative duality gap to reach.
    max_iter : int, default=1000
        Passes over the data.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    class_weight : dict, "balanced" or None, default=None
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    warm_start : bool, default=False
    n_jobs : int or None, default=None
        Threads, -1 for all cores: classes side by side first, then blocks of rows; same bits
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
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : the labels
    n_iter_ : the largest number of passes over the data
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate; an array if there is more than one problem
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {
        **LinearClassifier._parameter_constraints,
        **COLUMNS,
        **_PENALTIES,
        "loss": [StrOptions(_names("classification") | {"multinomial"}), Loss],
    }

    def __init__(
        self,
        loss="logistic",
        l1=0.0,
        l2=1e-4,
        *,
        positive=False,
        fit_intercept=True,
        tol=1e-4,
        max_iter=1000,
        solver="auto",
        class_weight=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        self.loss = loss
        self.l1 = l1
        self.l2 = l2
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    def _recipe(self, rows):
        loss = get_loss(self.loss)
        if loss.task not in ("classification", "multiclass"):
            raise ValueError(f"loss={loss}: a loss of {loss.task}; use ERMRegressor for it")
        return self._classification(rows, loss, mean_one=True, positive=self.positive)

    def _penalty(self, n):
        return self.l1, self.l2

    @available_if(_gives_probabilities)
    def predict_proba(self, X, offset=None):
        """Probabilities of the classes, of shape (n_samples, n_classes); logistic losses only."""
        return self._likely(X) if offset is None else self._probabilities(X, offset)

    @lazy
    def _likely(self, X):
        return self._probabilities(X)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X, offset=None):
        """Logarithms of the probabilities of the classes."""
        return np.log(self.predict_proba(X, offset))


class ERMRegressor(LinearRegressor):
    r"""Regression by any loss and any penalty, to a certified optimum.

    Minimises :math:`\frac{1}{\sum_i w_i} \sum_i w_i \phi_i(a_i^Tx + c) + l_1 |x|_1 +
    \frac{l_2}{2} |x|^2`.

    Parameters
    ----------
    loss : str or Loss, default="squared"
        "squared", "huber", "epsilon_insensitive", "squared_epsilon_insensitive", "absolute",
        "quantile", "poisson", "gamma", "tweedie", "log_cosh", or an object that carries a parameter
        such as ``adacoord.problem.losses.Quantile(q=0.9)``.
    l1, l2 : float, default=0.0 and 1e-4
        Weights of the penalty.
    positive : bool, default=False
        Only coefficients of zero or more.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    tol : float, default=1e-4
        The relative duality gap to reach.
    max_iter : int, default=1000
        Passes over the data.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
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
        **_PENALTIES,
        "loss": [StrOptions(_names("regression", "count", "positive")), Loss],
    }

    def __init__(
        self,
        loss="squared",
        l1=0.0,
        l2=1e-4,
        *,
        positive=False,
        fit_intercept=True,
        tol=1e-4,
        max_iter=1000,
        solver="auto",
        random_state=None,
        verbose=0,
        warm_start=False,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        self.loss = loss
        self.l1 = l1
        self.l2 = l2
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    def _recipe(self, rows):
        loss = get_loss(self.loss)
        if loss.task in ("classification", "multiclass"):
            raise ValueError(f"loss={loss}: a loss of {loss.task}; use ERMClassifier for it")
        return self._regression(rows, loss, positive=self.positive, mean_one=True)

    def _penalties(self, rows, recipe):
        return [(self.l1, self.l2)]

    def predict(self, X, offset=None):
        """Predictions, of shape (n_samples,): A x + c, or exp(A x + c) for a log link.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        offset : array of shape (n_samples,), optional
            What is added to A x + c.
        """
        z = super().predict(X, offset)
        return np.exp(z) if get_loss(self.loss).log_link else z
