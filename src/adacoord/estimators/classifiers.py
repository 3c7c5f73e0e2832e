"""Classifiers: ``LinearSVC`` and ``LogisticRegression``, and what they share."""

from __future__ import annotations

from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from ..problem.losses import Loss, get_loss
from .base import LinearEstimator
from .columns import COLUMNS, added
from .recipes import Classification, Recipe, Rows, liblinear_penalty
from .row_blocks import lazy


class LinearClassifier(LinearClassifierMixin, SparseCoefMixin, LinearEstimator):
    """A loss of margins, one problem per class (one for two); or the multinomial loss."""

    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    #: liblinear weighs, of one class against the rest, only the rows of the one.
    _weigh_rest = True

    def _rows(self, X, y, sample_weight) -> Rows:
        X, y, weights, matrix = self._checked(X, y, sample_weight)
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
        return Rows(X, y, codes, weights, classes, matrix=matrix)

    def _classification(self, rows: Rows, loss: Loss, **how) -> Classification:
        """The recipe; two classes are told apart by one loss of margins."""
        assert rows.classes is not None  # the rows of a classifier
        if loss.blocks and rows.classes.size == 2:
            loss = get_loss("logistic")
        recipe = Classification(
            loss=loss,
            fit_intercept=self.fit_intercept,
            n_classes=rows.classes.size,
            class_weights=self._class_weights(rows),
            weigh_rest=self._weigh_rest,
            columns=self._columns(rows),
            **how,
        )
        _check_weighted(rows, recipe)
        return recipe

    def _class_weights(self, rows: Rows) -> np.ndarray | None:
        if isinstance(self.class_weight, str):  # scikit-learn weighs the rows from 1.7 on
            sizes = np.bincount(rows.targets, rows.weights)
            return sizes.sum() / (sizes.size * np.where(sizes > 0.0, sizes, 1.0))
        if self.class_weight is None:
            return None
        return compute_class_weight(self.class_weight, classes=rows.classes, y=rows.y)

    def _penalties(self, rows: Rows, recipe: Recipe):
        return [self._penalty(rows.X.shape[0])] * recipe.count

    def _iterations(self, passes: list[int]):
        return max(passes)

    def decision_function(self, X, offset=None):
        """Signed distances to the hyperplanes, of shape (n_samples,) or (n_samples, n_classes).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        offset : array of that shape, optional
            What is added to them.
        """
        return added(self._decided(X), offset)

    @lazy
    def _decided(self, X):
        return super().decision_function(X)

    def predict(self, X, offset=None):
        """Labels, of shape (n_samples,).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        offset : array of the shape of the decision function, optional
            What is added to that.
        """
        if offset is None:
            return self._labelled(X)
        z = self.decision_function(X, offset)
        return self.classes_[(z > 0.0).astype(int) if z.ndim == 1 else z.argmax(axis=1)]

    @lazy
    def _labelled(self, X):
        return super().predict(X)

    def _probabilities(self, X, offset=None):
        z = self.decision_function(X, offset)
        if z.ndim == 1:
            z = np.column_stack([-z, z])
            return np.exp(-np.logaddexp(0.0, -z))
        if np.ndim(self.dual_gap_):
            p = np.exp(-np.logaddexp(0.0, -z))  # one against the rest: each on its own
            return p / p.sum(axis=1, keepdims=True)
        return softmax(z, axis=1)


def _check_weighted(rows: Rows, recipe: Classification) -> None:
    """Two classes need rows of positive weight; every one that is told from the rest does."""
    assert rows.classes is not None
    sizes = np.bincount(rows.targets, rows.weights, recipe.n_classes)
    absent = rows.classes[
        sizes * (1.0 if recipe.class_weights is None else recipe.class_weights) == 0.0
    ]
    if absent.size and not (recipe.joint and absent.size < recipe.n_classes - 1):
        raise ValueError(
            f"class {absent[0]} has only rows of zero weight (by sample_weight or "
            "class_weight): there is nothing to tell it from the rest by; leave them out"
        )


#: The l1_ratio of a penalty that has but one.
RATIOS = {"l2": 0.0, "l1": 1.0}


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
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
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
        "penalty": [StrOptions({"l1", "l2", "elasticnet"})],
        "loss": [StrOptions({"hinge", "squared_hinge", "smooth_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr"})],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither"), None],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
    }
    _weigh_rest = False

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=None,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        l1_ratio=0.5,
        solver="auto",
        warm_start=False,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
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
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    def _recipe(self, rows):
        return self._classification(rows, get_loss(self.loss), bias=self.intercept_scaling)

    def _penalty(self, n):
        return liblinear_penalty(n, self.C, RATIOS.get(self.penalty, self.l1_ratio))


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
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised.  A number penalises it, as scikit-learn does with
        ``solver="liblinear"`` alone (and 1 by default): it is the coefficient of a column of this
        value.
    class_weight : dict, "balanced" or None, default=None
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
    max_iter : int, default=1000
        Passes over the data.
    multi_class : {"auto", "multinomial", "ovr"}, default="auto"
        ``"ovr"`` fits one class against the rest; ``"auto"`` is ``"multinomial"``.
    verbose : int, default=0
    warm_start : bool, default=False
    n_jobs : int or None, default=None
        Threads, -1 for all cores: classes (with ``multi_class="ovr"``) side by side first, then
        blocks of rows; same bits for 1, 2, 4, ...  None is the serial method.
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
    n_iter_ : array of passes over the data, one a problem
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate; an array if there is more than one problem
    history_ : what each gap check saw
    solver_ : the method that ran
    """

    _parameter_constraints: dict = {
        **LinearClassifier._parameter_constraints,
        **COLUMNS,
        "penalty": [
            StrOptions({"l1", "l2", "elasticnet"}),
            None,
            Hidden(StrOptions({"deprecated"})),
        ],
        "C": [Interval(Real, 0.0, None, closed="right")],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both"), None],
        "dual": ["boolean"],
        "intercept_scaling": [Interval(Real, 0.0, None, closed="neither"), None],
        "multi_class": [StrOptions({"auto", "multinomial", "ovr"})],
    }

    def __init__(
        self,
        penalty="deprecated",
        *,
        C=1.0,
        l1_ratio=0.0,
        dual=False,
        tol=1e-4,
        fit_intercept=True,
        intercept_scaling=None,
        class_weight=None,
        random_state=None,
        solver="auto",
        max_iter=1000,
        multi_class="auto",
        verbose=0,
        warm_start=False,
        n_jobs=None,
        standardize=False,
        penalty_factor=None,
        bounds=None,
        keep_dual=None,
    ):
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.multi_class = multi_class
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.keep_dual = keep_dual

    def _recipe(self, rows):
        loss = get_loss("logistic" if self.multi_class == "ovr" else "multinomial")
        return self._classification(rows, loss, bias=self.intercept_scaling)

    def _penalty(self, n):
        C = np.inf if self.penalty is None else self.C
        return liblinear_penalty(n, C, RATIOS.get(self.penalty, self.l1_ratio or 0.0))

    def _iterations(self, passes):
        return np.array(passes, dtype=np.int32)

    def predict_proba(self, X, offset=None):
        """Probabilities of the classes, of shape (n_samples, n_classes).

        The softmax of the decision function; with ``multi_class="ovr"`` the probability of each
        class against the rest, scaled to sum to 1.
        """
        return self._likely(X) if offset is None else self._probabilities(X, offset)

    @lazy
    def _likely(self, X):
        return self._probabilities(X)

    def predict_log_proba(self, X, offset=None):
        """Logarithms of the probabilities of the classes."""
        return np.log(self.predict_proba(X, offset))
