"""Classifiers: ``LinearSVC`` and ``LogisticRegression``, and what they share."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from ..losses import Loss, get_loss
from ..problem import Problem
from .base import LinearEstimator, Task, matrix_of, with_bias


class LinearClassifier(LinearClassifierMixin, SparseCoefMixin, LinearEstimator):
    """A loss of margins, one problem a class (one for two); or the multinomial loss."""

    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    #: liblinear weighs, of one class against the rest, only the rows of the one.
    _weigh_rest = True

    def _fit(self, X, y, sample_weight, loss: Loss, penalty, *, multinomial=False,
             intercept_scaling=None, mean_one=False, positive=False):
        """``penalty(n)`` gives (l1, l2) in the scaling of Problem.

        ``mean_one`` rescales the weights to a mean of 1.  Returns the passes of each problem.
        """
        X, y = self._validated(X, y)
        weights = self._weights(sample_weight, X)
        if y.dtype.kind == "f":  # NaN and numbers that are no labels
            check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if y.dtype.kind not in "iubf" or classes.size > 2:
            check_classification_targets(y)  # 0.1 ms: nothing to check of two whole numbers
        if classes.size < 2:
            raise ValueError(
                f"y has one class, {classes[0]!r}: a classifier needs rows of at least 2 classes"
            )
        if weights is not None:
            left = np.unique(codes[weights > 0.0])
            if left.size < 2:
                raise ValueError(
                    f"y has one class, {classes[left[0]]!r}, once rows of zero sample_weight are "
                    "left out: a classifier needs rows of at least 2 classes"
                )
        all_weights = None
        if self.class_weight is not None:
            all_weights = compute_class_weight(
                self.class_weight, classes=classes, y=y, **_weighted(sample_weight, weights)
            )
        self.classes_ = classes
        n = X.shape[0]
        penalised = self.fit_intercept and intercept_scaling is not None
        intercept = self.fit_intercept and not penalised
        matrix = matrix_of(with_bias(X, intercept_scaling) if penalised else X)
        l1, l2 = penalty(n)
        settings = {"l1": l1, "l2": l2, "intercept": intercept, "positive": positive}

        def problem(b, loss, class_weights):
            w = weights
            if class_weights is not None:
                w = class_weights[codes] if w is None else w * class_weights[codes]
            if mean_one and w is not None:
                w = w * (n / w.sum())
            return Problem(matrix, b, loss, sample_weight=w, **settings)

        multinomial = multinomial and classes.size > 2
        if multinomial:
            problems = [problem(codes, get_loss("multinomial"), all_weights)]
        elif classes.size == 2:
            problems = [problem(np.where(codes == 1, 1.0, -1.0), loss, all_weights)]
        else:
            problems = []
            for k in range(classes.size):
                own = all_weights
                if own is not None and not self._weigh_rest:
                    own = np.where(np.arange(classes.size) == k, all_weights, 1.0)
                problems.append(problem(np.where(codes == k, 1.0, -1.0), loss, own))
        rows = classes.size if classes.size > 2 else 1

        def shape(points):
            """``coef_`` and ``intercept_`` of the problems solved so far; zeros for the rest."""
            coef, c = np.zeros((rows, matrix.shape[1])), np.zeros(rows)
            if multinomial:
                coef[:], c[:] = points[0].x.T, points[0].intercept
                c -= c.mean()  # adding a number to all changes nothing
            else:
                for k, point in enumerate(points):
                    coef[k], c[k] = point.x, point.intercept
            if penalised:
                c, coef = coef[:, -1] * intercept_scaling, coef[:, :-1]
            return {"coef_": coef.astype(X.dtype, order="C"), "intercept_": c.astype(X.dtype)}

        starts = [None] * len(problems) if penalised else self._starts(problems)
        tasks = [Task(p, s) for p, s in zip(problems, starts, strict=True)]
        results = self._solve(tasks, X, y, sample_weight, shape)
        for name, value in shape(results).items():
            setattr(self, name, value)
        self.dual_coef_ = (
            np.ascontiguousarray(results[0].y.T) if multinomial
            else np.stack([r.y for r in results])
        )
        self._store(results, single=len(problems) == 1)
        return [max(r.passes, 1) for r in results]

    def _probabilities(self, X):
        z = self.decision_function(X)
        if z.ndim == 1:
            z = np.column_stack([-z, z])
            return np.exp(-np.logaddexp(0.0, -z))
        if np.ndim(self.dual_gap_):
            p = np.exp(-np.logaddexp(0.0, -z))  # one against the rest: each on its own
            return p / p.sum(axis=1, keepdims=True)
        return softmax(z, axis=1)


def _weighted(sample_weight, weights) -> dict:
    return {} if sample_weight is None else {"sample_weight": weights}


def liblinear_penalty(C: float, l1_ratio: float):
    """(l1, l2) as a function of n, for liblinear's objective: C sum_i phi_i + penalty."""
    return lambda n: (l1_ratio / (n * C), (1.0 - l1_ratio) / (n * C))


_RATIOS = {"l2": 0.0, "l1": 1.0}


class LinearSVC(LinearClassifier):
    r"""Linear support vector classification, to a certified optimum.

    Minimises :math:`C \sum_i w_i \phi(b_i (a_i^Tx + c)) + g(x)` with the hinge loss or one of
    its smooth relatives, for each class against the rest where there are more than two.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        g is |x|^2/2, |x|_1 or ``l1_ratio`` of one and 1 - ``l1_ratio`` of the other.
    loss : {"squared_hinge", "hinge", "smooth_hinge"}, default="squared_hinge"
        Every loss goes with every penalty.
    dual : default="auto"
        Taken for the sake of calls to scikit-learn's class; has no effect.
    tol : float, default=1e-4
        The relative duality gap to reach.
    C : float, default=1.0
        Weight of the losses.
    multi_class : {"ovr"}, default="ovr"
        One class against the rest.
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised.  A number penalises it as liblinear does: it is
        the coefficient of a column of this value.  (scikit-learn's default is 1.)
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for the rows of a class.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    max_iter : int, default=1000
        Passes over the data.
    l1_ratio : float, default=0.5
        Of ``penalty="elasticnet"``.
    solver : str, default="auto"
        See :func:`adacoord.solve`.
    warm_start : bool, default=False
    n_jobs : int or None, default=None
        Classes to fit at the same time.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : the labels
    n_iter_ : the largest number of passes over the data
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples)
    dual_gap_, relative_gap_ : the certificate; an array if there is more than one problem
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {
        **LinearClassifier._parameter_constraints,
        "penalty": [StrOptions({"l1", "l2", "elasticnet"})],
        "loss": [StrOptions({"hinge", "squared_hinge", "smooth_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr"})],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither"), None],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
    }
    _weigh_rest = False

    def __init__(self, penalty="l2", loss="squared_hinge", *, dual="auto", tol=1e-4, C=1.0,
                 multi_class="ovr", fit_intercept=True, intercept_scaling=None,
                 class_weight=None, verbose=0, random_state=None, max_iter=1000, l1_ratio=0.5,
                 solver="auto", warm_start=False, n_jobs=None):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        penalty = liblinear_penalty(self.C, _RATIOS.get(self.penalty, self.l1_ratio))
        passes = self._fit(
            X, y, sample_weight, get_loss(self.loss), penalty,
            intercept_scaling=self.intercept_scaling,
        )
        self.n_iter_ = max(passes)
        return self


class LogisticRegression(LinearClassifier):
    r"""Logistic regression, to a certified optimum.

    Minimises :math:`C \sum_i w_i \phi_i(a_i^Tx + c) + g(x)` with the logistic loss for two
    classes and the multinomial one for more.

    Parameters
    ----------
    penalty : {"deprecated", "l2", "l1", "elasticnet", None}, default="deprecated"
        As in scikit-learn before 1.8; ``l1_ratio`` and ``C=numpy.inf`` say the same.
    C : float, default=1.0
        Weight of the losses; ``numpy.inf`` for no penalty, and then no certificate.
    l1_ratio : float, default=0.0
        g is ``l1_ratio`` |x|_1 + (1 - ``l1_ratio``) |x|^2/2.
    dual : default=False
        Taken for the sake of calls to scikit-learn's class; has no effect.
    tol : float, default=1e-4
        The relative duality gap to reach.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    class_weight : dict, "balanced" or None, default=None
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : str, default="auto"
        See :func:`adacoord.solve`.
    max_iter : int, default=1000
        Passes over the data.
    multi_class : {"auto", "multinomial", "ovr"}, default="auto"
        ``"ovr"`` fits one class against the rest; ``"auto"`` is ``"multinomial"``.
    verbose : int, default=0
    warm_start : bool, default=False
    n_jobs : int or None, default=None
        Classes to fit at the same time, with ``multi_class="ovr"``.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : the labels
    n_iter_ : array of passes over the data, one a problem
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples)
    dual_gap_, relative_gap_ : the certificate; an array if there is more than one problem
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {
        **LinearClassifier._parameter_constraints,
        "penalty": [StrOptions({"l1", "l2", "elasticnet"}), None,
                    Hidden(StrOptions({"deprecated"}))],
        "C": [Interval(Real, 0.0, None, closed="right")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both"), None],
        "dual": ["boolean"],
        "multi_class": [StrOptions({"auto", "multinomial", "ovr"})],
    }

    def __init__(self, penalty="deprecated", *, C=1.0, l1_ratio=0.0, dual=False, tol=1e-4,
                 fit_intercept=True, class_weight=None, random_state=None, solver="auto",
                 max_iter=1000, multi_class="auto", verbose=0, warm_start=False, n_jobs=None):
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.multi_class = multi_class
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        C = np.inf if self.penalty is None else self.C
        penalty = liblinear_penalty(C, _RATIOS.get(self.penalty, self.l1_ratio or 0.0))
        passes = self._fit(
            X, y, sample_weight, get_loss("logistic"), penalty,
            multinomial=self.multi_class != "ovr",
        )
        self.n_iter_ = np.array(passes, dtype=np.int32)
        return self

    def predict_proba(self, X):
        """Probabilities of the classes, of shape (n_samples, n_classes).

        The softmax of the decision function; with ``multi_class="ovr"`` the probability of each
        class against the rest, scaled to sum to 1.
        """
        return self._probabilities(X)

    def predict_log_proba(self, X):
        """Logarithms of the probabilities of the classes."""
        return np.log(self.predict_proba(X))
