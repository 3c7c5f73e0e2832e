"""``LogisticRegressionCV`` and ``LinearSVCCV``: C and the share of l1, chosen on folds."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.utils._param_validation import Hidden, Interval, StrOptions

from .classifier_search import ClassifierCV, checked_ratios
from .classifiers import RATIOS, LinearSVC, LogisticRegression

_CONSTRAINTS = {
    "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
    "l1_ratios": ["array-like", None],
    "cv": ["cv_object"],
    "scoring": [StrOptions(set(get_scorer_names())), callable, None],
    "refit": ["boolean"],
}


class LogisticRegressionCV(ClassifierCV, LogisticRegression):
    r"""Logistic regression with a penalty that cross-validation chooses.

    Minimises :math:`C \sum_i w_i \phi_i(a_i^Tx + c) + g(x)`, with the logistic loss for two
    classes and the multinomial one for more, for every C and l1_ratio on every fold, each to a
    certified optimum; and then for the best of them on all rows.

    Parameters
    ----------
    Cs : int or array, default=10
        The Cs to choose from, or how many of them between 1e-4 and 1e4.
    l1_ratios : array or None, default=None
        The shares r of l1 to choose from: g is r |x|_1 + (1 - r) |x|^2/2.  None for 0.
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised; see :class:`LogisticRegression`.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None for 5 folds, stratified; fewer where no class has 5 rows.
    dual : default=False
        Taken for the sake of calls to scikit-learn's class; has no effect.
    penalty : {"deprecated", "l2", "l1", "elasticnet"}, default="deprecated"
        As in scikit-learn before 1.8; ``l1_ratios`` says the same.
    scoring : str, callable or None, default=None
        None for (weighted) accuracy.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    tol : float, default=1e-4
        The relative duality gap to reach, at each point.
    max_iter : int, default=1000
        Passes over the data, for each point.
    class_weight : dict, "balanced" or None, default=None
        "balanced" by the classes of all rows.
    n_jobs : int or None, default=None
        Threads, -1 for all cores: folds side by side; for the fit on all rows blocks of them.  Same
        bits for 1, 2, 4, ...
    verbose : int, default=0
    refit : bool, default=True
        False takes the mean over the folds of the model that is best on each, and of its C and
        l1_ratio, in place of the fit on all rows; it has no certificate.
    multi_class : {"auto", "multinomial", "ovr"}, default="auto"
        ``"ovr"`` fits one class against the rest, with one C for all; ``"auto"`` is
        ``"multinomial"``.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    use_legacy_attributes : bool, default=True
        Shape the attributes as scikit-learn does by default before 1.10.
    penalty_factor : array of shape (n_features,), default=None
        A factor of the penalty for each column, zero or more; 0 for a column that is not
        penalised.  They are used as they are.
    bounds : tuple (lower, upper), default=None
        Only coefficients from lower to upper, each a number or an array of shape (n_features,);
        None, or an infinite one, is no bound.
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        It is a penalty factor by another name, l1 times the deviation and l2 times its square, and
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : the labels
    Cs_, l1_ratios_ : arrays of what was tried
    C_, l1_ratio_ : the best; with ``use_legacy_attributes`` as arrays of one a row of ``coef_``
    scores_ : array of shape (n_folds, n_l1_ratios, n_Cs); with ``use_legacy_attributes`` a dict of
        the same scores for each class, of shape (n_folds, n_Cs, n_l1_ratios), or (n_folds, n_Cs)
        where ``l1_ratios`` is None
    coefs_paths_ : array of shape (n_folds, n_l1_ratios, n_Cs, 1 or n_classes, n_features + 1), the
        intercept last; with ``use_legacy_attributes`` a dict as ``scores_``
    n_iter_ : the passes of each point, shaped as the scores; with ``use_legacy_attributes`` with
        an axis of length 1 in front
    path_gaps_ : array of shape (n_folds, n_l1_ratios, n_Cs): the relative gaps of all these models
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate of the last solution; an array if there is more
        than one problem
    history_ : what each gap check of it saw
    solver_ : the method that found it
    """

    _kind = LogisticRegression
    _parameter_constraints: dict = {
        **LogisticRegression._parameter_constraints,
        **_CONSTRAINTS,
        "penalty": [StrOptions({"l1", "l2", "elasticnet"}), Hidden(StrOptions({"deprecated"}))],
        "use_legacy_attributes": ["boolean"],
    }
    for _name in ("C", "l1_ratio", "warm_start"):
        _parameter_constraints.pop(_name)

    def __init__(
        self,
        *,
        Cs=10,
        l1_ratios=None,
        fit_intercept=True,
        intercept_scaling=None,
        cv=None,
        dual=False,
        penalty="deprecated",
        scoring=None,
        solver="auto",
        tol=1e-4,
        max_iter=1000,
        class_weight=None,
        n_jobs=None,
        verbose=0,
        refit=True,
        multi_class="auto",
        random_state=None,
        use_legacy_attributes=True,
        penalty_factor=None,
        bounds=None,
        standardize=False,
        keep_dual=None,
    ):
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.multi_class = multi_class
        self.random_state = random_state
        self.use_legacy_attributes = use_legacy_attributes
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.standardize = standardize
        self.keep_dual = keep_dual

    def _ratios(self) -> np.ndarray:
        if self.penalty in RATIOS:
            return np.array([RATIOS[self.penalty]])
        none = self.l1_ratios is None and self.penalty != "elasticnet"
        return checked_ratios((0.0,) if none else self.l1_ratios)

    def _present(self, ratios) -> None:
        self.l1_ratios_ = ratios
        if not self.use_legacy_attributes:
            return
        labels = self.classes_ if self.classes_.size > 2 else self.classes_[1:]
        one = slice(None) if self.l1_ratios is not None else 0
        self.C_, self.l1_ratio_ = (np.full(labels.size, v) for v in (self.C_, self.l1_ratio_))
        scores, passes, coefs = (
            np.swapaxes(a, 1, 2)[:, :, one] for a in (self.scores_, self.n_iter_, self.coefs_paths_)
        )
        self.scores_ = {label: scores.copy() for label in labels}
        self.coefs_paths_ = {
            label: np.ascontiguousarray(coefs[..., k, :]) for k, label in enumerate(labels)
        }
        self.n_iter_ = passes[None]


class LinearSVCCV(ClassifierCV, LinearSVC):
    r"""Linear support vector classification with a penalty that cross-validation chooses.

    Minimises :math:`C \sum_i w_i \phi(b_i (a_i^Tx + c)) + g(x)` with the hinge loss or one of
    its smooth relatives, for each class against the rest where there are more than two, for every
    C and l1_ratio on every fold, each to a certified optimum; and then for the best of them on all
    rows.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        g is |x|^2/2, |x|_1 or r of one and 1 - r of the other, r from ``l1_ratios``.
    loss : {"squared_hinge", "hinge", "smooth_hinge"}, default="squared_hinge"
        Every loss goes with every penalty.
    Cs : int or array, default=10
        The Cs to choose from, or how many of them between 1e-4 and 1e4.
    l1_ratios : array, default=(0.5,)
        The shares of l1 to choose from, with ``penalty="elasticnet"``.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None for 5 folds, stratified; fewer where no class has 5 rows.
    scoring : str, callable or None, default=None
        None for (weighted) accuracy.
    refit : bool, default=True
        False takes the mean over the folds of the model that is best on each, and of its C and
        l1_ratio, in place of the fit on all rows; it has no certificate.
    dual : default="auto"
        Taken for the sake of calls to scikit-learn's LinearSVC; has no effect.
    tol : float, default=1e-4
        The relative duality gap to reach, at each point.
    multi_class : {"ovr"}, default="ovr"
        One class against the rest, with one C for all.
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised.  A number penalises it as liblinear does: it is
        the coefficient of a column of this value.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for the rows of a class; "balanced" by the classes of all rows.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    max_iter : int, default=1000
        Passes over the data, for each point.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    n_jobs : int or None, default=None
        Threads, -1 for all cores: folds side by side; for the fit on all rows blocks of them.  Same
        bits for 1, 2, 4, ...
    penalty_factor : array of shape (n_features,), default=None
        A factor of the penalty for each column, zero or more; 0 for a column that is not
        penalised.  They are used as they are.
    bounds : tuple (lower, upper), default=None
        Only coefficients from lower to upper, each a number or an array of shape (n_features,);
        None, or an infinite one, is no bound.
    standardize : bool, default=False
        The penalty acts on columns of unit deviation; the coefficients are those of X as it is.
        It is a penalty factor by another name, l1 times the deviation and l2 times its square, and
        X is never centred: sparse data stay sparse.  Constant columns keep their units.
    keep_dual : bool or None, default=None
        Whether to keep ``dual_coef_``, a number for each row: None keeps up to 1 MB of it.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : the labels
    Cs_, l1_ratios_ : arrays of what was tried
    C_, l1_ratio_ : the best
    scores_ : array of shape (n_folds, n_l1_ratios, n_Cs)
    coefs_paths_ : array of shape (n_folds, n_l1_ratios, n_Cs, 1 or n_classes, n_features + 1), the
        intercept last
    n_iter_ : the passes of each point, shaped as ``scores_``
    path_gaps_ : the relative gaps of all these models, shaped as ``scores_``
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate of the last solution; an array if there is more
        than one problem
    history_ : what each gap check of it saw
    solver_ : the method that found it
    """

    _kind = LinearSVC
    _parameter_constraints: dict = {
        **LinearSVC._parameter_constraints,
        **_CONSTRAINTS,
        "l1_ratios": ["array-like"],
    }
    for _name in ("C", "l1_ratio", "warm_start"):
        _parameter_constraints.pop(_name)

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        Cs=10,
        l1_ratios=(0.5,),
        cv=None,
        scoring=None,
        refit=True,
        dual="auto",
        tol=1e-4,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=None,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        solver="auto",
        n_jobs=None,
        penalty_factor=None,
        bounds=None,
        standardize=False,
        keep_dual=None,
    ):
        self.penalty = penalty
        self.loss = loss
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.dual = dual
        self.tol = tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.n_jobs = n_jobs
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.standardize = standardize
        self.keep_dual = keep_dual

    def _ratios(self) -> np.ndarray:
        return checked_ratios((RATIOS[self.penalty],) if self.penalty in RATIOS else self.l1_ratios)
