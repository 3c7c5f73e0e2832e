"""``RidgeClassifier``: least squares on labels of -1 and +1."""

from __future__ import annotations

from numbers import Real

from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval

from ..problem.losses import get_loss
from .classifiers import LinearClassifier
from .columns import COLUMNS
from .recipes import ridge_penalty


class RidgeClassifier(LinearClassifier):
    r"""Classification by least squares with an l2 penalty, to a certified optimum.

    Minimises :math:`\sum_i w_i (a_i^Tx + c - b_i)^2 + \alpha |x|^2` with :math:`b_i = \pm 1`, for
    each class against the rest where there are more than two.

    Parameters
    ----------
    alpha : float, default=1.0
        With 0 there is no certificate.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    copy_X : default=True
        Taken for the sake of calls to scikit-learn's class; X is never changed.
    max_iter : int or None, default=None
        Passes over the data; None for 1000.
    tol : float, default=1e-4
        The relative duality gap to reach.
    class_weight : dict, "balanced" or None, default=None
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    positive : bool, default=False
        Only coefficients of zero or more.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    verbose : int, default=0
    warm_start : bool, default=False
    n_jobs : int or None, default=None
        Classes to fit at the same time.
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
        "alpha": [Interval(Real, 0.0, None, closed="left")],
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
        class_weight=None,
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
        self.class_weight = class_weight
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

    def _class_weights(self, rows):
        """As scikit-learn's class: "balanced" goes by numbers of rows, whatever they weigh."""
        if self.class_weight is None:
            return None
        return compute_class_weight(self.class_weight, classes=rows.classes, y=rows.y)

    def _recipe(self, rows):
        return self._classification(rows, get_loss("squared"), positive=self.positive)

    def _penalty(self, n):
        return ridge_penalty(n, self.alpha)
