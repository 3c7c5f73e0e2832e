"""Cross-validated estimators against scikit-learn's, at equal accuracy.

    ADACOORD_DATA=... python benchmarks/cross_validation.py [repeats]

The same grid and folds for both.  scikit-learn's tolerance is lowered by decades until the worst
of its models along the paths of one fold is as near to its optimum as ours, (P - P*)/P* <= 1e-4,
judged by the best value known (its coefficients along the path, or our certificate); it is then
timed at that tolerance, and at its default.  Pairs are timed in turns, the least of the repeats
counts; kernels are warm.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import sklearn.linear_model as sk
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import adacoord as ac

ACCURACY = 1e-4


def regression():
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", X, y
    A, b = ac.datasets.load("leukemia.golub")
    yield "leukemia.golub", A.toarray(), b


def classification():
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast_cancer", StandardScaler().fit_transform(X), y
    A, b = ac.datasets.load("a9a")
    keep = np.random.default_rng(0).permutation(A.shape[0])[:8000]
    yield "a9a, 8000 rows", A[keep].toarray(), b[keep]


def lasso_shortfall(X, y, train, alphas, tol):
    """The worst (P - P*)/P* of scikit-learn's path on the rows ``train``."""
    A, b = X[train] - X[train].mean(axis=0), y[train] - y[train].mean()
    _, coefs, _ = sk.lasso_path(A, b, alphas=alphas, tol=tol, max_iter=10**5)
    best = ac.path(ac.Problem(A, b), l1=alphas, l2=0.0, tol=1e-9, max_passes=10**4)
    values = [ac.Problem(A, b, l1=a).primal(x) for a, x in zip(alphas, coefs.T, strict=True)]
    return np.max(values / best.dual) - 1.0


def logistic_shortfall(X, y, model, train):
    """The same of a fitted LogisticRegressionCV's first fold."""
    b = np.where(y[train] == model.classes_[1], 1.0, -1.0)
    worst = 0.0
    for C, (*x, c) in zip(model.Cs_, model.coefs_paths_[0, 0, :, 0], strict=True):
        problem = ac.Problem(X[train], b, "logistic", l2=1.0 / (b.size * C), intercept=True)
        best = ac.solve(problem, tol=1e-10, max_passes=10**4)
        worst = max(worst, problem.primal(np.array(x), float(c)) / best.dual - 1.0)
    return worst


def timed(models, X, y, repeats):
    times = [[] for _ in models]
    models[0].fit(X, y)  # kernels
    for _ in range(repeats):
        for model, seconds in zip(models, times, strict=True):
            start = time.perf_counter()
            model.fit(X, y)
            seconds.append(time.perf_counter() - start)
    return [min(t) for t in times]


def report(name, ours, theirs, default, gap, tol, far):
    print(
        f"{name:32} {ours:8.3f} s  scikit-learn at tol={tol:.0e} {theirs:8.3f} s: ratio "
        f"{ours / theirs:6.2f}; at its default {default:8.3f} s: {ours / default:6.2f}; "
        f"ours within {gap:.0e} (certified), theirs {far:.0e}",
        flush=True,
    )


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    warnings.simplefilter("ignore")
    for name, X, y in regression():
        folds = list(KFold(5, shuffle=True, random_state=0).split(X))
        ours = ac.LassoCV(cv=folds, tol=ACCURACY).fit(X, y)
        for tol in 10.0 ** -np.arange(4, 10):
            far = lasso_shortfall(X, y, folds[0][0], ours.alphas_, tol)
            if far <= ACCURACY:
                break
        models = ours, sk.LassoCV(cv=folds, tol=tol, max_iter=10**5), sk.LassoCV(cv=folds)
        report(f"LassoCV, {name}", *timed(models, X, y, repeats), ours.path_gaps_.max(), tol, far)
    for name, X, y in classification():
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        settings = {
            "cv": folds,
            "l1_ratios": (0.0,),
            "use_legacy_attributes": False,
            "scoring": "neg_log_loss",
        }
        ours = ac.LogisticRegressionCV(**settings, tol=ACCURACY).fit(X, y)
        for tol in 10.0 ** -np.arange(4, 10):
            theirs = sk.LogisticRegressionCV(**settings, tol=tol, max_iter=10**5).fit(X, y)
            far = logistic_shortfall(X, y, theirs, folds[0][0])
            if far <= ACCURACY:
                break
        models = ours, theirs, sk.LogisticRegressionCV(**settings)
        report(
            f"LogisticRegressionCV, {name}",
            *timed(models, X, y, repeats),
            ours.path_gaps_.max(),
            tol,
            far,
        )


if __name__ == "__main__":
    main()
