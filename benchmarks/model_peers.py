"""Who can run in the race of models (``race.py --models``), and how each is asked; see
``contenders.py``.

Coefficients of several targets are handed over a column a target, and an intercept last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse

from contenders import FOREVER, Peer, decades
from judge import QUANTILE, Task


def in_columns(task: Task) -> Task:
    """Dense data in the order of Fortran, sparse ones by columns."""
    if sparse.issparse(task.A):
        return replace(task, A=sparse.csc_matrix(task.A))
    return replace(task, A=np.asfortranarray(task.A), b=np.asfortranarray(task.b))


# ---- a weight for each column -------------------------------------------------------------


def celer_weights(task: Task, tol: float) -> np.ndarray:
    from celer import Lasso

    model = Lasso(
        alpha=1.0,
        weights=task.l1,
        tol=tol,
        fit_intercept=False,
        max_iter=1000,
        max_epochs=FOREVER,
    )
    return model.fit(task.A, task.b).coef_


def skglm_weights(task: Task, tol: float) -> np.ndarray:
    from skglm import WeightedLasso

    model = WeightedLasso(
        alpha=1.0,
        weights=task.l1,
        tol=tol,
        fit_intercept=False,
        max_iter=1000,
        max_epochs=FOREVER,
    )
    return model.fit(task.A, task.b).coef_


# ---- groups, and several targets ----------------------------------------------------------


def celer_groups(task: Task, tol: float) -> np.ndarray:
    from celer import GroupLasso

    model = GroupLasso(
        groups=task.size,
        alpha=task.l21,
        weights=task.group_weights,
        tol=tol,
        fit_intercept=False,
        max_iter=1000,
        max_epochs=FOREVER,
    )
    return model.fit(task.A, task.b).coef_


def skglm_groups(task: Task, tol: float) -> np.ndarray:
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD
    from skglm.utils.data import grp_converter

    indices, pointers = grp_converter(task.size, task.d)
    model = GeneralizedLinearEstimator(
        QuadraticGroup(pointers, indices),
        WeightedGroupL2(task.l21, task.group_weights, pointers, indices),
        GroupBCD(tol=tol, fit_intercept=False, max_iter=1000, max_epochs=10**6),
    )
    return model.fit(task.A, task.b).coef_


def adelie_groups(task: Task, tol: float) -> np.ndarray:
    import adelie as ad

    A = task.A
    if sparse.issparse(A):
        A = ad.matrix.sparse(A, method="naive", n_threads=1)
    state = ad.grpnet(
        A,
        ad.glm.gaussian(np.ascontiguousarray(task.b)),
        groups=np.arange(0, task.d, task.size),
        lmda_path=[task.l21],
        intercept=False,
        early_exit=False,
        progress_bar=False,
        max_iters=FOREVER,
        tol=tol,
        n_threads=1,
    )
    return state.betas.toarray()[-1]


def celer_targets(task: Task, tol: float) -> np.ndarray:
    from celer.homotopy import mtl_path  # its class asks scikit-learn for what is gone

    return mtl_path(task.A, task.b, alphas=[task.l21], tol=tol, max_iter=1000)[1][..., 0].T


def skglm_targets(task: Task, tol: float) -> np.ndarray:
    from skglm import MultiTaskLasso

    model = MultiTaskLasso(
        alpha=task.l21, tol=tol, fit_intercept=False, max_iter=1000, max_epochs=10**6
    )
    return model.fit(task.A, task.b).coef_.T


def sklearn_targets(task: Task, tol: float) -> np.ndarray:
    from sklearn.linear_model import MultiTaskLasso

    model = MultiTaskLasso(alpha=task.l21, tol=tol, fit_intercept=False, max_iter=FOREVER)
    return model.fit(task.A, task.b).coef_.T


# ---- generalised linear models, quantiles -------------------------------------------------


def glum(task: Task, tol: float) -> np.ndarray:
    from glum import GeneralizedLinearRegressor

    alpha = task.l1 + task.l2
    model = GeneralizedLinearRegressor(
        family=task.loss,
        link="log",
        alpha=alpha,
        l1_ratio=task.l1 / alpha,
        gradient_tol=tol,
        max_iter=2000,
        copy_X=False,
    ).fit(task.A, task.b)
    return np.append(model.coef_, model.intercept_)


def sklearn_glm(solver: str) -> Callable[[Task, float], np.ndarray]:
    def fit(task: Task, tol: float) -> np.ndarray:
        from sklearn import linear_model

        name = {"poisson": "PoissonRegressor", "gamma": "GammaRegressor"}[task.loss]
        model = getattr(linear_model, name)(alpha=task.l2, solver=solver, tol=tol, max_iter=FOREVER)
        model.fit(task.A, task.b)
        return np.append(model.coef_, model.intercept_)

    return fit


def sklearn_quantile(task: Task, tol: float) -> np.ndarray:
    from sklearn.linear_model import QuantileRegressor

    model = QuantileRegressor(
        quantile=QUANTILE,
        alpha=task.l1,
        solver="highs",
        solver_options={
            "primal_feasibility_tolerance": tol,
            "dual_feasibility_tolerance": tol,
        },
    ).fit(task.A, task.b)
    return np.append(model.coef_, model.intercept_)


# ---- least squares with x >= 0, and classes with an l1 ------------------------------------


def scipy_nnls(task: Task, tol: float) -> np.ndarray:
    from scipy.optimize import nnls

    return nnls(task.A, task.b, maxiter=FOREVER)[0]


def sklearn_positive(task: Task, tol: float) -> np.ndarray:
    from sklearn.linear_model import LinearRegression

    return LinearRegression(positive=True, fit_intercept=False).fit(task.A, task.b).coef_


def sklearn_saga(task: Task, tol: float) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=task.C,
        l1_ratio=1.0,
        solver="saga",
        tol=tol,
        max_iter=FOREVER,
        fit_intercept=False,
        random_state=0,
    )
    return model.fit(task.A, task.b).coef_.T


def _deviance(kind: str) -> tuple[Peer, ...]:
    return (
        Peer(
            "sklearn lbfgs",
            "sklearn",
            kind,
            sklearn_glm("lbfgs"),
            decades(-2, -10),
        ),
        Peer("glum", "glum", kind, glum, decades(-2, -10), prepare=in_columns),
        Peer("sklearn newton-cholesky", "sklearn", kind, sklearn_glm("newton-cholesky"),
             decades(-2, -10), lambda task: "its d x d matrix" if task.d > 3000 else None),
        Peer("glum with l1", "glum", f"l1-{kind}", glum, decades(-2, -10), prepare=in_columns),
    )  # fmt: skip


#: The likely winners first: what they need bounds how long the others may take.
MODEL_PEERS = (
    Peer("skglm WeightedLasso", "skglm", "adaptive lasso", skglm_weights, decades(-1, -11)),
    Peer("celer weights", "celer", "adaptive lasso", celer_weights, decades(0, -11)),
    Peer("celer GroupLasso", "celer", "group lasso", celer_groups, decades(0, -11)),
    Peer("skglm GroupBCD", "skglm", "group lasso", skglm_groups, decades(-1, -11)),
    Peer("adelie", "adelie", "group lasso", adelie_groups, decades(-4, -14), prepare=in_columns),
    Peer("celer mtl_path", "celer", "multitask", celer_targets, decades(0, -11)),
    Peer("skglm MultiTaskLasso", "skglm", "multitask", skglm_targets, decades(-1, -11)),
    Peer("sklearn MultiTaskLasso", "sklearn", "multitask", sklearn_targets, decades(-1, -11)),
    *_deviance("poisson"),
    *_deviance("gamma"),
    Peer("sklearn highs", "sklearn", "l1-quantile", sklearn_quantile, decades(-3, -9)),
    Peer("scipy nnls", "scipy", "nnls", scipy_nnls, (1e-6,)),
    Peer("sklearn positive", "sklearn", "nnls", sklearn_positive, (1e-6,)),
    Peer("sklearn saga", "sklearn", "l1-multinomial", sklearn_saga, decades(-1, -8)),
)
