"""``enet_path`` and ``lasso_path``: scikit-learn's functions, each point with its certificate."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from ..api.path import path
from ..api.solve import solve
from ..exceptions import ConvergenceWarning
from ..problem import Problem
from .base import EstimatorConvergenceWarning

#: What scikit-learn's solver takes besides, which changes no optimum.
WITHOUT_EFFECT = frozenset(
    {"fit_intercept", "random_state", "sample_weight", "selection", "X_offset", "X_scale"}
)


def enet_path(
    X,
    y,
    *,
    l1_ratio=0.5,
    eps=1e-3,
    n_alphas=None,
    alphas=None,
    precompute="auto",
    Xy=None,
    copy_X=True,
    coef_init=None,
    verbose=False,
    return_n_iter=False,
    positive=False,
    check_input=True,
    tol=1e-4,
    max_iter=1000,
    **params: Any,
):
    r"""The elastic net along a path of penalties, to certified optima.

    Minimises :math:`\frac{1}{2n} |A x - b|^2 + \alpha r |x|_1 + \frac{\alpha (1 - r)}{2} |x|^2`
    with r = ``l1_ratio`` for each alpha, from the largest on; there is no intercept.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,), or (n_samples, n_targets)
        Of several targets the coefficients of a column are zero together, as in
        :class:`adacoord.MultiTaskElasticNet`.
    l1_ratio : float, default=0.5
        Between 0 and 1; 0 wants ``alphas``.
    eps : float, default=1e-3
        The last alpha over the first of a path that is made.
    n_alphas : int, default=100
        Points of a path that is made; a whole number as ``alphas`` says the same.
    alphas : array, int or None, default=None
        The penalties; None makes a path from the least alpha for which x = 0.
    precompute, Xy, copy_X, coef_init, verbose, check_input, selection, random_state
        Taken for the sake of calls to scikit-learn's function; they have no effect.
    return_n_iter : bool, default=False
    positive : bool, default=False
        Only coefficients of zero or more.
    tol : float, default=1e-4
        The relative duality gap to reach at each alpha.
    max_iter : int, default=1000
        Passes over the data for each alpha.

    Returns
    -------
    alphas : array of shape (n_alphas,), from large to small
    coefs : array of shape (n_features, n_alphas), or (n_targets, n_features, n_alphas)
    dual_gaps : array of shape (n_alphas,)
        P - D at each alpha: a bound on how far P is from its least value.
    n_iters : list of n_alphas numbers of passes
        If ``return_n_iter``.

    See Also
    --------
    adacoord.path : the same for every loss, with an intercept and weights.
    """
    unknown = sorted(set(params) - WITHOUT_EFFECT)
    if unknown:
        raise ValueError(
            f"{unknown[0]}={params[unknown[0]]!r}: Unexpected parameters in params; enet_path has "
            "no such argument"
        )
    if params.get("fit_intercept") or params.get("sample_weight") is not None:
        raise ValueError(
            "fit_intercept and sample_weight: this path has neither, as scikit-learn's; use "
            "adacoord.path(adacoord.Problem(X, y, intercept=True, sample_weight=...))"
        )
    if not 0.0 <= l1_ratio <= 1.0:
        raise ValueError(f"l1_ratio={l1_ratio!r}: it must be between 0 and 1")
    X = check_array(X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
    y = check_array(y, ensure_2d=False, dtype=np.float64)
    check_consistent_length(X, y)
    several = y.ndim == 2
    if several and positive:
        raise ValueError(
            "positive=True is not allowed for multi-output (y.ndim != 1); call it for each column"
        )
    if several:
        problem = Problem(X, y, "squared", l21=1.0)
    else:
        problem = Problem(X, y, "squared", l1=1.0, positive=positive)
    grid = _grid(problem, l1_ratio, eps, alphas, n_alphas)
    first, second = grid * l1_ratio, grid * (1.0 - l1_ratio)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found: Any
        if several:
            found = _of_targets(problem, first, second, tol, max_iter)
        else:
            found = path(problem, l1=first, l2=second, tol=tol, max_passes=max_iter)
    for each in caught:
        kind = EstimatorConvergenceWarning if each.category is ConvergenceWarning else each.category
        text = str(each.message).replace("max_passes", "max_iter")
        warnings.warn(text, kind, stacklevel=2)
    coefs = found.coefs.reshape(len(found.gap), problem.d, *y.shape[1:])  # y may be one column
    coefs = np.ascontiguousarray(coefs.T.astype(X.dtype, copy=False))
    out = grid[: len(found.gap)], coefs, found.gap
    return (*out, [max(int(p), 1) for p in found.passes]) if return_n_iter else out


def _of_targets(problem: Problem, l21, l2, tol: float, max_passes: int) -> SimpleNamespace:
    """Several targets at each pair of penalties, from where the last one ended."""
    found: list[Any] = []
    for first, second in zip(l21, l2, strict=True):
        at = problem.with_penalty(l21=float(first), l2=float(second))
        start = found[-1] if found else None
        found.append(solve(at, tol=tol, max_passes=max_passes, start=start))
    return SimpleNamespace(
        coefs=np.stack([result.x for result in found]),
        gap=np.array([result.gap for result in found]),
        passes=[result.passes for result in found],
    )


def lasso_path(
    X,
    y,
    *,
    eps=1e-3,
    n_alphas=None,
    alphas=None,
    precompute="auto",
    Xy=None,
    copy_X=True,
    coef_init=None,
    verbose=False,
    return_n_iter=False,
    positive=False,
    **params: Any,
):
    r"""The lasso along a path of penalties, to certified optima: :func:`enet_path` of l1 alone.

    Minimises :math:`\frac{1}{2n} |A x - b|^2 + \alpha |x|_1` for each alpha; arguments and what is
    returned are those of :func:`enet_path`.
    """
    if "l1_ratio" in params:
        raise ValueError(
            f"l1_ratio={params['l1_ratio']!r}: Unexpected parameters in params; lasso_path is of "
            "l1 alone, use enet_path"
        )
    return enet_path(
        X,
        y,
        l1_ratio=1.0,
        eps=eps,
        n_alphas=n_alphas,
        alphas=alphas,
        return_n_iter=return_n_iter,
        positive=positive,
        **params,
    )


def _grid(problem: Problem, l1_ratio: float, eps: float, alphas: Any, n_alphas: Any) -> np.ndarray:
    """The penalties from large to small."""
    count = n_alphas if alphas is None else alphas
    count = 100 if count is None else count
    if not np.ndim(count) and isinstance(count, (int, np.integer)):
        if l1_ratio == 0.0:
            raise ValueError(
                "l1_ratio=0.0: without an l1 no alpha makes all coefficients 0, so that there is "
                "no first one; give alphas"
            )
        largest = problem.l1_max() / l1_ratio
        if largest <= np.finfo(float).tiny:  # y = 0: any path is of zeros
            return np.full(count, np.finfo(float).resolution)
        return np.geomspace(largest, largest * eps, num=count)
    grid = np.sort(np.asarray(count, dtype=np.float64))[::-1]
    if grid.ndim != 1 or not grid.size or not np.all((grid > 0.0) & (grid < np.inf)):
        raise ValueError(
            f"alphas={alphas!r}: a number of points, or an array of penalties, each positive"
        )
    return grid
