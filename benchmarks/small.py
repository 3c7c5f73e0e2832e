"""Fits of small data against scikit-learn's same estimator, at default settings.

    python benchmarks/small.py [repeats]

Each pair is timed in turns, and the least of the repeats counts: ``ratio`` is our time over
scikit-learn's.  ``ours`` and ``theirs`` are the relative distances of the objective from the best
value known (P - P*)/P*: what either reaches by default.  Kernels are warm.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import sklearn.linear_model as sk
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.preprocessing import StandardScaler

import adacoord as ac


def cases():
    X, y = load_breast_cancer(return_X_y=True)
    cancer = "breast_cancer", StandardScaler().fit_transform(X), y
    X, y = load_digits(return_X_y=True)
    digits = "digits", X / 16.0, y
    X, y = load_diabetes(return_X_y=True)
    diabetes = "diabetes", X, y
    for data in (cancer, digits):
        yield data, ac.LinearSVC(), svm.LinearSVC()
        yield data, ac.LinearSVC(loss="hinge"), svm.LinearSVC(loss="hinge")
        yield data, ac.LogisticRegression(), sk.LogisticRegression()
    yield cancer, ac.LinearSVC(penalty="l1"), svm.LinearSVC(penalty="l1")
    yield cancer, ac.LogisticRegression(l1_ratio=1.0), sk.LogisticRegression(
        l1_ratio=1.0, solver="liblinear")
    for data in (diabetes, digits):
        yield data, ac.Ridge(), sk.Ridge()
        yield data, ac.Lasso(alpha=0.01), sk.Lasso(alpha=0.01)
        yield data, ac.ElasticNet(alpha=0.01), sk.ElasticNet(alpha=0.01)
        yield data, ac.LinearSVR(), svm.LinearSVR()


def objective(ours, model, X, y) -> float:
    """The sum over the problems of P, in ``ours``'s scaling; liblinear's bias is penalised."""
    if not hasattr(model, "classes_"):
        targets, loss = [np.asarray(y, dtype=float)], "squared"
        if isinstance(ours, ac.LinearSVR):
            loss = "epsilon_insensitive"
    else:
        loss = getattr(ours, "loss", "logistic")
        if len(model.classes_) > 2 and loss == "logistic":
            targets, loss = [np.searchsorted(model.classes_, y)], "multinomial"
        elif len(model.classes_) == 2:
            targets = [np.where(y == model.classes_[1], 1.0, -1.0)]
        else:
            targets = [np.where(y == label, 1.0, -1.0) for label in model.classes_]
    params, n = ours.get_params(), len(y)
    if "C" in params:
        ratio = 1.0 if params.get("penalty") == "l1" else params.get("l1_ratio", 0.0)
        if params.get("penalty") == "l2":
            ratio = 0.0
        l1, l2 = ratio / (n * ours.C), (1.0 - ratio) / (n * ours.C)
    elif isinstance(ours, ac.Ridge):
        l1, l2 = 0.0, ours.alpha / n
    else:
        l1, l2 = ours.alpha * ours.l1_ratio, ours.alpha * (1.0 - ours.l1_ratio)
    coef, c = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_).astype(float)
    losses = ac.losses.EpsilonInsensitive(0.0) if loss == "epsilon_insensitive" else loss
    total = 0.0
    for k, b in enumerate(targets):
        problem = ac.Problem(X, b, losses, l1=l1, l2=l2, intercept=True)
        x, bias = (coef.T, c) if loss == "multinomial" else (coef[k], float(c[k]))
        total += problem.primal(x, bias)
    return total


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    warnings.simplefilter("ignore")
    print(f"{'data':14} {'estimator':44} {'ours ms':>8} {'theirs':>8} {'ratio':>6} "
          f"{'ours':>8} {'theirs':>8}")
    ratios = []
    for (name, X, y), ours, theirs in cases():
        times = {0: [], 1: []}
        ours.fit(X, y)
        for _ in range(repeats):
            for i, model in enumerate((ours, theirs)):
                start = time.perf_counter()
                model.fit(X, y)
                times[i].append(time.perf_counter() - start)
        mine, other = 1e3 * min(times[0]), 1e3 * min(times[1])
        values = [objective(ours, m, X, y) for m in (ours, theirs)]
        best = min(values) * (1.0 - np.max(np.nan_to_num(ours.relative_gap_)))
        far = [(v - best) / abs(best) for v in values]
        ratios.append(mine / other)
        print(f"{name:14} {ours!s:44} {mine:8.2f} {other:8.2f} {mine / other:6.2f} "
              f"{far[0]:8.1e} {far[1]:8.1e}", flush=True)
    print(f"median ratio {np.median(ratios):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
