"""``ElasticNetCV`` and ``LassoCV``: penalties chosen by the squared error on folds."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_scalar, column_or_1d

from ..api.path import under
from ..data.matrix import as_matrix
from ..problem import Problem
from ..problem.losses import get_loss
from .base import LinearEstimator, as_ours
from .columns import COLUMNS
from .gram_folds import GramFolds
from .paths import enet_path, lasso_path
from .recipes import Posed, Rows, elastic_net_penalty
from .regressors import LinearRegressor
from .row_blocks import refuse_blocks
from .search import CrossValidated, Walk, points, weighted_mean

#: Points of the path on the way to the last solution.
STOPS = 10


class ElasticNetCV(CrossValidated, LinearRegressor):
    r"""Least squares with l1 and l2 penalties that cross-validation chooses.

    Minimises :math:`\frac{1}{2 \sum_i w_i} \sum_i w_i (a_i^Tx + c - b_i)^2 + \alpha r |x|_1
    + \frac{\alpha (1 - r)}{2} |x|^2` with r = ``l1_ratio`` for every alpha on every fold, each to
    a certified optimum, and then for the best alpha and r on all rows.  The best are those of the
    least mean over the folds of the (weighted) mean squared error.

    Parameters
    ----------
    l1_ratio : float or list of float, default=0.5
        The shares of l1 to choose from.
    eps : float, default=1e-3
        The last alpha of an automatic path over the first, at which x = 0.
    n_alphas : int or None, default=None
        As in scikit-learn before 1.9: the same as a number for ``alphas``.
    alphas : int, array or None, default=100
        The alphas to choose from, or how many of them the automatic path has.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    precompute, copy_X, selection
        Taken for the sake of calls to scikit-learn's class; they have no effect.
    max_iter : int, default=1000
        Passes over the data, for each point.
    tol : float, default=1e-4
        The relative duality gap to reach, at each point.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None for 5 folds; fewer where there are fewer rows.
    verbose : int, default=0
    n_jobs : int or None, default=None
        Threads, -1 for all cores: folds side by side; for the fit on all rows blocks of them.  Same
        bits for 1, 2, 4, ...
    positive : bool, default=False
        Only coefficients of zero or more.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
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
    alpha_, l1_ratio_ : the best
    alphas_ : array of shape (n_alphas,) or (n_l1_ratio, n_alphas), from strong to weak
    mse_path_ : array of shape (n_alphas, n_folds) or (n_l1_ratio, n_alphas, n_folds)
    path_gaps_ : the relative gaps of all these models, in the same shape
    coef_ : array of shape (n_features,)
    intercept_ : float
    n_iter_ : passes over the data of the last solution
    dual_coef_ : array of shape (n_samples,); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate of the last solution
    history_ : what each gap check of it saw
    solver_ : the method that found it

    Notes
    -----
    With ``solver="auto"`` the paths are solved on Gram matrices: one pass over the data for all
    folds, whose matrices are held beside one another where they take no more than 1 GB.
    """

    _multi_output = True  # refused in a sentence of its own
    _parameter_constraints: dict = {
        **LinearEstimator._parameter_constraints,
        **COLUMNS,
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both"), "array-like"],
        "eps": [Interval(Real, 0.0, None, closed="neither")],
        "n_alphas": [Interval(Integral, 1, None, closed="left"), None],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "precompute": [StrOptions({"auto"}), "boolean", "array-like"],
        "copy_X": ["boolean"],
        "cv": ["cv_object"],
        "positive": ["boolean"],
        "selection": [StrOptions({"cyclic", "random"})],
    }
    _parameter_constraints.pop("warm_start")

    def __init__(
        self,
        *,
        l1_ratio=0.5,
        eps=1e-3,
        n_alphas=None,
        alphas=100,
        fit_intercept=True,
        precompute="auto",
        max_iter=1000,
        tol=1e-4,
        cv=None,
        copy_X=True,
        verbose=0,
        n_jobs=None,
        positive=False,
        random_state=None,
        selection="cyclic",
        solver="auto",
        penalty_factor=None,
        bounds=None,
        standardize=False,
        keep_dual=None,
    ):
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.solver = solver
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.standardize = standardize
        self.keep_dual = keep_dual

    path = staticmethod(enet_path)

    def fit(self, X, y, sample_weight=None, offset=None, **params):
        """Choose the penalty on folds, and fit the model with it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Of the losses, and of the squared errors on each fold; the mean over the folds is
            not weighted.
        offset : array of shape (n_samples,), optional
            What is added to the predictions, on the folds as well.
        **params : dict
            For the splitter, such as ``groups``; with scikit-learn's metadata routing only.

        Returns
        -------
        self
        """
        self._validate_params()
        self._refuse_checkpoint()
        refuse_blocks(self, X)
        splitting, _ = self._routed(params, sample_weight, scored=False)
        ratios = self._ratios()
        rows = self._rows(X, y, sample_weight)
        recipe = self._recipe(rows)
        rows = recipe.with_offset(rows, offset)
        [problem] = recipe.problems(rows, [(1.0, 1.0)])
        alphas = self._grid(problem, ratios)
        self._begin(rows)
        folds = self._folds(rows.X, rows.y, classifier=False, **splitting)
        weights = [
            [elastic_net_penalty(float(a), float(r)) for a in path]
            for r, path in zip(ratios, alphas, strict=True)
        ]
        paths = [[under(problem, *pair).penalty for pair in path] for path in weights]
        moments = self._moments(problem, rows, recipe, folds, paths)

        def along(i, stops, problem, solve):
            """The solutions at the points ``stops`` of the path ``i``."""
            return points([problem], [weights[i][j] for j in stops], solve)

        def one_fold(k, train, test, solve):
            if moments is not None:
                return moments.walk(k, train, test, paths, solve)
            [problem] = recipe.problems(rows.take(train), [(1.0, 1.0)])
            left_out = rows.take(test)
            held_out, target = as_matrix(left_out.X, "X"), left_out.without_offset[0]
            walk = Walk.empty(*alphas.shape)
            for i in range(len(ratios)):
                for j, [result] in enumerate(along(i, range(len(paths[i])), problem, solve)):
                    x = recipe.columns.in_units(result.x)
                    errors = np.square(held_out.dot(x) + result.intercept - target)
                    walk.note((i, j), weighted_mean(errors, left_out.weights), [result])
            return walk

        walks = self._walk([(k, *fold) for k, fold in enumerate(folds)], one_fold)
        errors, gaps = (
            np.stack([getattr(w, name) for w in walks], axis=-1) for name in ("scores", "gaps")
        )
        i, j = np.unravel_index(np.argmin(errors.mean(axis=-1)), alphas.shape)
        self.alpha_, ratio = float(alphas[i, j]), float(ratios[i])
        if "l1_ratio" in self._parameter_constraints:
            self.l1_ratio_ = ratio
        self.mse_path_, self.path_gaps_ = np.squeeze(errors), np.squeeze(gaps)
        self.alphas_ = alphas if self._n_alphas and len(ratios) > 1 else alphas[0]
        [penalty] = self._penalties(rows, recipe)
        posed = Posed(rows, recipe, [under(problem, *penalty)])
        # A weak penalty is found sooner by way of some stronger ones than from x = 0.
        if moments is not None:
            start = moments.start(paths[i][: j + 1])
        else:
            stops = np.unique(np.linspace(0, j, STOPS).astype(int))[:-1]
            passed = list(along(i, stops, problem, self._runner()))
            start = passed[-1][0] if passed else None
        return self._solve(posed, [start], self._missed(walks))

    def _moments(self, problem: Problem, rows: Rows, recipe, folds, paths) -> GramFolds | None:
        """The folds by their moments; None where the paths are to be solved on the data."""
        penalties = [penalty for path in paths for penalty in path]
        if as_ours(self.solver, problem) != "auto" or not all(
            penalty.uniform and penalty.sparse and penalty.coercive for penalty in penalties
        ):
            return None
        return GramFolds.of(
            problem, rows, recipe, self.tol, self.max_iter, folds, len(penalties), self._jobs
        )

    def _rows(self, X, y, sample_weight) -> Rows:
        rows = super()._rows(X, y, sample_weight)
        if len(rows.targets) > 1:
            raise ValueError(
                f"For multi-task outputs, use MultiTask{type(self).__name__} of scikit-learn; y "
                f"has {len(rows.targets)} columns: or fit one {type(self).__name__} per column"
            )
        return replace(rows, y=column_or_1d(rows.y, warn=True))

    def _recipe(self, rows: Rows):
        return self._regression(rows, get_loss("squared"), positive=self.positive, mean_one=True)

    def _penalties(self, rows: Rows, recipe):
        # LassoCV has no l1_ratio to choose
        return [elastic_net_penalty(self.alpha_, getattr(self, "l1_ratio_", 1.0))]

    def _ratios(self) -> np.ndarray:
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        bad = ratios[~((ratios >= 0.0) & (ratios <= 1.0))]
        if bad.size or ratios.ndim > 1 or not ratios.size:
            raise ValueError(
                f"l1_ratio={self.l1_ratio!r}: it must be a number between 0 and 1, or a list of "
                "such"
            )
        return ratios

    @property
    def _n_alphas(self) -> int:
        """The length of the automatic path; 0 where the alphas are given."""
        if self.alphas is None:
            return self.n_alphas or 100
        if isinstance(self.alphas, Integral):
            return self.n_alphas or int(self.alphas)
        return 0

    def _grid(self, problem: Problem, ratios) -> np.ndarray:
        """The alphas of each path, from strong to weak."""
        if not self._n_alphas:
            for i, alpha in enumerate(self.alphas):
                check_scalar(alpha, f"alphas[{i}]", Real, min_val=0.0, include_boundaries="left")
            alphas = np.sort(np.asarray(self.alphas, dtype=np.float64))[::-1]
            if not alphas.size:
                raise ValueError(f"alphas={self.alphas!r}: there must be one at least")
            return np.tile(alphas, (len(ratios), 1))
        if (ratios == 0.0).any():
            raise ValueError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a "
                "grid by providing your estimator with the appropriate `alphas=` argument."
            )
        largest, least = problem.l1_max(), np.finfo(np.float64).resolution
        if not np.isfinite(largest):
            raise ValueError(
                "penalty_factor: there are columns without a penalty, and no alpha that makes "
                "every coefficient 0; give alphas"
            )
        return np.stack(
            [
                np.geomspace(a, a * self.eps, self._n_alphas)
                if a > least
                else np.full(self._n_alphas, least)
                for a in largest / ratios
            ]
        )

    def get_metadata_routing(self):
        """What the splitter asks for, to scikit-learn."""
        return self._router()


class LassoCV(ElasticNetCV):
    r"""Least squares with an l1 penalty that cross-validation chooses.

    Minimises :math:`\frac{1}{2 \sum_i w_i} \sum_i w_i (a_i^Tx + c - b_i)^2 + \alpha |x|_1` for
    every alpha on every fold, each to a certified optimum, and then for the best alpha on all
    rows: that of the least mean over the folds of the (weighted) mean squared error.

    Parameters
    ----------
    eps : float, default=1e-3
        The last alpha of an automatic path over the first, at which x = 0.
    n_alphas : int or None, default=None
        As in scikit-learn before 1.9: the same as a number for ``alphas``.
    alphas : int, array or None, default=100
        The alphas to choose from, or how many of them the automatic path has.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    precompute, copy_X, selection
        Taken for the sake of calls to scikit-learn's class; they have no effect.
    max_iter : int, default=1000
        Passes over the data, for each point.
    tol : float, default=1e-4
        The relative duality gap to reach, at each point.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None for 5 folds; fewer where there are fewer rows.
    verbose : int, default=0
    n_jobs : int or None, default=None
        Threads, -1 for all cores: folds side by side; for the fit on all rows blocks of them.  Same
        bits for 1, 2, 4, ...
    positive : bool, default=False
        Only coefficients of zero or more.
    random_state : int, RandomState or None, default=None
        None is the same as a fixed seed.
    solver : str, default="auto"
        See :func:`adacoord.solve`; scikit-learn's names are taken, too: ours of that name where it
        takes the problem, else ``"auto"``.
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
    alpha_ : the best
    alphas_ : array of shape (n_alphas,), from strong to weak
    mse_path_ : array of shape (n_alphas, n_folds)
    path_gaps_ : the relative gaps of all these models, in the same shape
    coef_ : array of shape (n_features,)
    intercept_ : float
    n_iter_ : passes over the data of the last solution
    dual_coef_ : array of shape (n_samples,); see ``keep_dual``
    dual_gap_, relative_gap_ : the certificate of the last solution
    history_ : what each gap check of it saw
    solver_ : the method that found it

    Notes
    -----
    With ``solver="auto"`` the paths are solved on Gram matrices: one pass over the data for all
    folds, whose matrices are held beside one another where they take no more than 1 GB.
    """

    _parameter_constraints: dict = {**ElasticNetCV._parameter_constraints}
    _parameter_constraints.pop("l1_ratio")

    def __init__(
        self,
        *,
        eps=1e-3,
        n_alphas=None,
        alphas=100,
        fit_intercept=True,
        precompute="auto",
        max_iter=1000,
        tol=1e-4,
        copy_X=True,
        cv=None,
        verbose=0,
        n_jobs=None,
        positive=False,
        random_state=None,
        selection="cyclic",
        solver="auto",
        penalty_factor=None,
        bounds=None,
        standardize=False,
        keep_dual=None,
    ):
        super().__init__(
            l1_ratio=1.0,
            eps=eps,
            n_alphas=n_alphas,
            alphas=alphas,
            fit_intercept=fit_intercept,
            precompute=precompute,
            max_iter=max_iter,
            tol=tol,
            copy_X=copy_X,
            cv=cv,
            verbose=verbose,
            n_jobs=n_jobs,
            positive=positive,
            random_state=random_state,
            selection=selection,
            solver=solver,
            penalty_factor=penalty_factor,
            bounds=bounds,
            standardize=standardize,
            keep_dual=keep_dual,
        )

    path = staticmethod(lasso_path)
