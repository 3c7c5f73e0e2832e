"""Who can run in the race, and how each is asked for a given tolerance.

A peer is a function from a :class:`~judge.Task` and a tolerance to coefficients.  All are given
the same arrays and told: one thread, as many iterations as it takes, and an intercept only where
the task has one.  Libraries are imported inside the functions: each peer runs in a process of its
own, and one that is not installed is reported, not missed.  The peers of the models with penalties
and losses of their own are in ``model_peers.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from judge import QUANTILE, Task

FOREVER = 10**7


def decades(first: int, last: int) -> tuple[float, ...]:
    """Tolerances 1e<first>, ..., 1e<last>."""
    return tuple(10.0**k for k in range(first, last - 1, -1))


@dataclass(frozen=True)
class Peer:
    """A contender: its library, the kinds of problem it takes, and its ladder of tolerances.

    ``refuses`` gives the reason why it cannot take a task of its kind, or None; ``warm`` the
    options of the warm-up that make it compile what the task will need; ``prepare`` the task in
    the format that it works in, outside its time.
    """

    name: str
    library: str
    kind: str
    fit: Callable[..., Any]
    ladder: tuple[float, ...]
    refuses: Callable[[Task], str | None] = lambda task: None
    warm: Callable[[Task], dict[str, Any]] = lambda task: {}
    prepare: Callable[[Task], Task] = lambda task: task


def pose(task: Task):
    """The task as a user of adacoord writes it."""
    import adacoord as ac

    loss = ac.losses.Quantile(QUANTILE) if task.loss == "quantile" else task.loss
    how: dict[str, Any] = {"intercept": task.intercept, "positive": task.positive}
    if task.l21 > 0.0:
        how["l21"] = task.l21
        how["groups"] = None if task.size == 1 else np.arange(task.d) // task.size
    return ac.Problem(task.A, task.b, loss=loss, l1=task.l1, l2=task.l2, **how)


def ours(task: Task, tol: float, *, solver: str = "auto", limit: float = np.inf):
    """adacoord: from the raw arrays to a certified gap, or to ``limit`` CPU seconds."""
    import adacoord as ac

    end = time.process_time() + limit
    r = ac.solve(
        pose(task),
        solver,
        tol=tol,
        max_passes=FOREVER,
        callback=lambda progress: time.process_time() > end,
    )
    told = {
        "passes": r.passes,
        "relative_gap": r.relative_gap,
        "solver": r.solver,
        "certified": r.converged,
    }
    return (np.append(r.x, r.intercept) if task.intercept else r.x), told


# ---- scikit-learn -------------------------------------------------------------------------


def sklearn_svc(task: Task, tol: float) -> np.ndarray:
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        loss="hinge",
        dual=True,
        C=task.C,
        tol=tol,
        fit_intercept=False,
        max_iter=FOREVER,
        random_state=0,
    )
    return model.fit(task.A, task.b).coef_


def sklearn_logistic(solver: str, **options: Any) -> Callable[[Task, float], np.ndarray]:
    def fit(task: Task, tol: float) -> np.ndarray:
        import sklearn
        from sklearn.linear_model import LogisticRegression

        version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
        if version >= (1, 8):
            penalty = {"l1_ratio": 1.0 if task.l1 > 0.0 else 0.0}
        else:
            penalty = {"penalty": "l1" if task.l1 > 0.0 else "l2"}
        model = LogisticRegression(
            C=task.C,
            solver=solver,
            tol=tol,
            fit_intercept=False,
            max_iter=FOREVER,
            random_state=0,
            **penalty,
            **options,
        )
        return model.fit(task.A, task.b).coef_.T  # a column per class

    return fit


def sklearn_ridge(solver: str) -> Callable[[Task, float], np.ndarray]:
    def fit(task: Task, tol: float) -> np.ndarray:
        from sklearn.linear_model import Ridge

        model = Ridge(
            alpha=task.n * task.l2,
            solver=solver,
            fit_intercept=False,
            tol=tol,
            max_iter=FOREVER,
            random_state=0,
        )
        return model.fit(task.A, task.b).coef_

    return fit


def sklearn_lasso(gram: bool) -> Callable[[Task, float], np.ndarray]:
    def fit(task: Task, tol: float) -> np.ndarray:
        from sklearn.linear_model import Lasso

        model = Lasso(
            alpha=task.l1, precompute=gram, fit_intercept=False, tol=tol, max_iter=FOREVER
        )
        return model.fit(task.A, task.b).coef_

    return fit


# ---- liblinear's own binding --------------------------------------------------------------


def liblinear(solver: int) -> Callable[[Task, float], np.ndarray]:
    def fit(task: Task, tol: float) -> np.ndarray:
        from liblinear.liblinearutil import parameter, problem, train

        A = task.A if sparse.issparse(task.A) else sparse.csr_matrix(task.A)
        options = parameter(f"-s {solver} -c {task.C!r} -e {tol!r} -B -1 -q")
        model = train(problem(task.b, A), options)
        x = np.array(model.w[: model.nr_feature])
        # Its first class is that of the first row; columns at the end that are empty are dropped.
        x = x if model.get_labels()[0] == 1 else -x
        return np.concatenate([x, np.zeros(task.d - x.size)])

    return fit


# ---- snapml -------------------------------------------------------------------------------


def snapml(name: str, **options: Any) -> Callable[[Task, float], np.ndarray]:
    """Sum of losses plus regularizer times the penalty."""

    def fit(task: Task, tol: float) -> np.ndarray:
        import snapml

        model = getattr(snapml, name)(
            regularizer=1.0 / task.C,
            tol=tol,
            fit_intercept=False,
            max_iter=FOREVER,
            n_jobs=1,
            **options,
        )
        return np.asarray(model.fit(task.A, task.b).coef_)

    return fit


# ---- celer, skglm -------------------------------------------------------------------------


def celer_lasso(task: Task, tol: float) -> np.ndarray:
    from celer import Lasso

    model = Lasso(alpha=task.l1, tol=tol, fit_intercept=False, max_iter=1000, max_epochs=FOREVER)
    return model.fit(task.A, task.b).coef_


def celer_logistic(task: Task, tol: float) -> np.ndarray:
    from celer import LogisticRegression

    model = LogisticRegression(
        C=task.C, tol=tol, fit_intercept=False, max_iter=1000, max_epochs=FOREVER
    )
    return model.fit(task.A, task.b).coef_


def skglm_svc(task: Task, tol: float) -> np.ndarray:
    from skglm import LinearSVC

    model = LinearSVC(C=task.C, tol=tol, fit_intercept=False, max_iter=1000, max_epochs=FOREVER)
    return model.fit(task.A, task.b).coef_


def skglm_lasso(task: Task, tol: float) -> np.ndarray:
    from skglm import Lasso

    model = Lasso(alpha=task.l1, tol=tol, fit_intercept=False, max_iter=1000, max_epochs=FOREVER)
    return model.fit(task.A, task.b).coef_


def skglm_logistic(task: Task, tol: float) -> np.ndarray:
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(alpha=task.l1, tol=tol, fit_intercept=False, max_iter=1000)
    return model.fit(task.A, task.b).coef_


# ---- cyanure, lightning, rehline ----------------------------------------------------------


def cyanure(name: str, **options: Any) -> Callable[[Task, float], np.ndarray]:
    def fit(task: Task, tol: float) -> np.ndarray:
        from cyanure import estimators

        penalty, weight = ("l1", task.l1) if task.l1 > 0.0 else ("l2", task.l2)
        model = getattr(estimators, name)(
            penalty=penalty,
            lambda_1=weight,
            fit_intercept=False,
            tol=tol,
            max_iter=10**6,
            n_threads=1,
            verbose=False,
            **options,
        )
        return model.fit(task.A, task.b).coef_

    return fit


def lightning_svc(task: Task, tol: float) -> np.ndarray:
    from lightning.classification import LinearSVC

    model = LinearSVC(C=task.C, loss="hinge", tol=tol, max_iter=10**6, random_state=0)
    return model.fit(task.A, task.b).coef_


def lightning_cd(name: str, loss: str) -> Callable[[Task, float], np.ndarray]:
    """C times the sum of losses (its squared one without 1/2) plus alpha times the penalty."""

    def fit(task: Task, tol: float) -> np.ndarray:
        if loss == "squared":
            from lightning import regression as module
        else:
            from lightning import classification as module

        penalty, weight = ("l1", task.l1) if task.l1 > 0.0 else ("l2", task.l2)
        C = (0.5 if loss == "squared" else 1.0) / task.n
        model = getattr(module, name)(
            loss=loss, penalty=penalty, C=C, alpha=weight, tol=tol, max_iter=10**6, random_state=0
        )
        return model.fit(task.A, task.b).coef_

    return fit


def rehline_svc(task: Task, tol: float) -> np.ndarray:
    from rehline import plqERM_Ridge

    A = task.A.toarray() if sparse.issparse(task.A) else task.A
    model = plqERM_Ridge(loss={"name": "svm"}, C=task.C, tol=tol, max_iter=FOREVER)
    model.fit(X=A, y=task.b)
    return model.coef_


# ---- what some cannot take ----------------------------------------------------------------


def square_in_columns(task: Task) -> str | None:
    size = 8e-9 * task.d**2
    return f"its d x d matrix takes {size:.0f} GB" if size > 1.0 else None


def square_in_columns_and_classes(task: Task) -> str | None:
    size = 8e-9 * (task.d * task.width) ** 2
    return f"its (d K) x (d K) matrix takes {size:.0f} GB" if size > 1.0 else None


def dense_only(task: Task) -> str | None:
    size = 8e-9 * task.n * task.d
    return f"takes dense data only: {size:.0f} GB" if size > 1.0 else None


def no_such(kind: str) -> Callable[[Task], str]:
    return lambda task: f"has no {kind}"


def chosen(task: Task) -> dict[str, Any]:
    """What ``auto`` takes for the task; for 200 rows of it, it may take another."""
    from adacoord.auto.rule import choose

    return {"solver": choose(pose(task))}


OURS = Peer("adacoord", "adacoord", "any", ours, (1e-6,), warm=chosen)

#: The likely winners first: what they need bounds how long the others may take.
PEERS = (
    Peer("liblinear -s 3", "liblinear", "hinge", liblinear(3), decades(-1, -8)),
    Peer("sklearn LinearSVC", "sklearn", "hinge", sklearn_svc, decades(-1, -8)),
    Peer(
        "snapml SVM",
        "snapml",
        "hinge",
        snapml("SupportVectorMachine", loss="hinge"),
        decades(-1, -8),
    ),
    Peer("lightning LinearSVC", "lightning", "hinge", lightning_svc, decades(-1, -8)),
    Peer("skglm LinearSVC", "skglm", "hinge", skglm_svc, decades(-1, -8)),
    Peer("rehline SVM", "rehline", "hinge", rehline_svc, decades(-2, -9), dense_only),
    Peer("cyanure", "cyanure", "hinge", cyanure("Classifier"), (), no_such("hinge")),
    Peer("sklearn lbfgs", "sklearn", "logistic", sklearn_logistic("lbfgs"), decades(-2, -9)),
    Peer(
        "sklearn newton-cg", "sklearn", "logistic", sklearn_logistic("newton-cg"), decades(-1, -9)
    ),
    Peer(
        "sklearn newton-cholesky",
        "sklearn",
        "logistic",
        sklearn_logistic("newton-cholesky"),
        decades(-1, -9),
        square_in_columns,
    ),
    Peer("liblinear -s 0", "liblinear", "logistic", liblinear(0), decades(-1, -8)),
    Peer("liblinear -s 7", "liblinear", "logistic", liblinear(7), decades(0, -8)),
    Peer(
        "sklearn liblinear",
        "sklearn",
        "logistic",
        sklearn_logistic("liblinear", dual=True),
        decades(0, -8),
    ),
    Peer(
        "snapml logistic",
        "snapml",
        "logistic",
        snapml("LogisticRegression", dual=True),
        decades(-1, -8),
    ),
    Peer(
        "cyanure logistic",
        "cyanure",
        "logistic",
        cyanure("Classifier", loss="logistic"),
        decades(-2, -9),
    ),
    Peer(
        "lightning CD",
        "lightning",
        "logistic",
        lightning_cd("CDClassifier", "log"),
        decades(-1, -8),
    ),
    Peer("sklearn saga", "sklearn", "logistic", sklearn_logistic("saga"), decades(-1, -8)),
    Peer("sklearn lbfgs", "sklearn", "multinomial", sklearn_logistic("lbfgs"), decades(-2, -9)),
    Peer(
        "sklearn newton-cg",
        "sklearn",
        "multinomial",
        sklearn_logistic("newton-cg"),
        decades(-1, -9),
    ),
    Peer(
        "sklearn newton-cholesky",
        "sklearn",
        "multinomial",
        sklearn_logistic("newton-cholesky"),
        decades(-1, -9),
        square_in_columns_and_classes,
    ),
    Peer("sklearn saga", "sklearn", "multinomial", sklearn_logistic("saga"), decades(-1, -8)),
    # a direct method has one rung
    Peer(
        "sklearn cholesky",
        "sklearn",
        "ridge",
        sklearn_ridge("cholesky"),
        decades(-4, -4),
        square_in_columns,
    ),
    Peer("sklearn lsqr", "sklearn", "ridge", sklearn_ridge("lsqr"), decades(-1, -10)),
    Peer("sklearn sparse_cg", "sklearn", "ridge", sklearn_ridge("sparse_cg"), decades(-1, -10)),
    Peer("cyanure ridge", "cyanure", "ridge", cyanure("Regression"), decades(-2, -9)),
    Peer("celer Lasso", "celer", "lasso", celer_lasso, decades(-2, -11)),
    Peer("skglm Lasso", "skglm", "lasso", skglm_lasso, decades(-2, -11)),
    Peer("sklearn Lasso", "sklearn", "lasso", sklearn_lasso(False), decades(-2, -11)),
    Peer(
        "sklearn Lasso, Gram",
        "sklearn",
        "lasso",
        sklearn_lasso(True),
        decades(-2, -11),
        square_in_columns,
    ),
    Peer(
        "snapml lasso",
        "snapml",
        "lasso",
        snapml("LinearRegression", penalty="l1", dual=False),
        decades(-1, -8),
    ),
    Peer("cyanure lasso", "cyanure", "lasso", cyanure("Regression"), decades(-2, -9)),
    Peer(
        "lightning CD",
        "lightning",
        "lasso",
        lightning_cd("CDRegressor", "squared"),
        decades(-1, -8),
    ),
    Peer("celer logistic", "celer", "l1-logistic", celer_logistic, decades(0, -11)),
    # Its tolerance is one of the gradient of the mean: looser than 1e-4 leaves x = 0.
    Peer("skglm logistic", "skglm", "l1-logistic", skglm_logistic, decades(-4, -11)),
    Peer("liblinear -s 6", "liblinear", "l1-logistic", liblinear(6), decades(-1, -8)),
    Peer(
        "sklearn liblinear",
        "sklearn",
        "l1-logistic",
        sklearn_logistic("liblinear"),
        decades(-1, -8),
    ),
    Peer(
        "snapml logistic",
        "snapml",
        "l1-logistic",
        snapml("LogisticRegression", penalty="l1", dual=False),
        decades(-1, -8),
    ),
    Peer(
        "cyanure logistic",
        "cyanure",
        "l1-logistic",
        cyanure("Classifier", loss="logistic"),
        decades(-2, -9),
    ),
    Peer(
        "lightning CD",
        "lightning",
        "l1-logistic",
        lightning_cd("CDClassifier", "log"),
        decades(-1, -8),
    ),
    Peer("sklearn saga", "sklearn", "l1-logistic", sklearn_logistic("saga"), decades(-1, -8)),
)
