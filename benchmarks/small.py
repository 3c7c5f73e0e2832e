"""Fits of small data against scikit-learn's same estimator: at default settings, and as accurate.

    python benchmarks/small.py [repeats] [cpu]

Each pair is timed in turns, and the least of the repeats counts.  ``default`` is our time over
scikit-learn's with nothing set.  ``equal`` is the same with our ``tol`` the largest power of ten
at which we come at least as near to the optimum as scikit-learn does: distances (P - P*)/P* of
either from the optimum of the objective that it minimises (liblinear penalises the bias, we do
not), as this run finds them.  Kernels are warm.

On a busy machine fits of more than a few milliseconds share their cores with others: ``cpu``
counts the seconds of the calling thread alone.  We use no other; what theirs may use (BLAS) is
not counted, to our disadvantage.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import sklearn.linear_model as sk
from sklearn import svm
from sklearn.base import clone
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
    yield (
        cancer,
        ac.LogisticRegression(l1_ratio=1.0),
        sk.LogisticRegression(l1_ratio=1.0, solver="liblinear"),
    )
    for data in (diabetes, digits):
        yield data, ac.Ridge(), sk.Ridge()
        yield data, ac.Lasso(alpha=0.01), sk.Lasso(alpha=0.01)
        yield data, ac.ElasticNet(alpha=0.01), sk.ElasticNet(alpha=0.01)
        yield data, ac.LinearSVR(), svm.LinearSVR()


def problems(ours, classes, X, y):
    """The problems that ``ours`` poses, with or without liblinear's penalised bias."""
    if classes is None:
        targets, loss = [np.asarray(y, dtype=float)], "squared"
        if isinstance(ours, ac.LinearSVR):
            loss = ac.losses.EpsilonInsensitive(ours.epsilon)
    else:
        loss = getattr(ours, "loss", "logistic")
        if len(classes) > 2 and loss == "logistic":
            targets, loss = [np.searchsorted(classes, y)], "multinomial"
        elif len(classes) == 2:
            targets = [np.where(y == classes[1], 1.0, -1.0)]
        else:
            targets = [np.where(y == label, 1.0, -1.0) for label in classes]
    params, n = ours.get_params(), len(y)
    if "C" in params:
        ratio = {"l1": 1.0, "l2": 0.0}.get(params.get("penalty"), params.get("l1_ratio", 0.0))
        l1, l2 = ratio / (n * ours.C), (1.0 - ratio) / (n * ours.C)
    elif isinstance(ours, ac.Ridge):
        l1, l2 = 0.0, ours.alpha / n
    else:
        l1, l2 = ours.alpha * ours.l1_ratio, ours.alpha * (1.0 - ours.l1_ratio)
    return [ac.Problem(X, b, loss, l1=l1, l2=l2, intercept=True) for b in targets]


def objective(posed, model) -> tuple[float, float]:
    """P summed over the problems; and with the bias penalised too, as liblinear has it."""
    coef, c = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_).astype(float)
    if posed[0].loss.blocks:
        coef, c = coef.T[None], c[None]
    free = sum(p.primal(x, b) for p, x, b in zip(posed, coef, c, strict=True))
    held = sum(p.penalty.value(np.atleast_1d(b)) for p, b in zip(posed, c, strict=True))
    return free, free + held


def liblinear(model) -> bool:
    return hasattr(model, "intercept_scaling") and getattr(model, "solver", "") in ("", "liblinear")


def distances(ours, theirs, X, y):
    """The relative distance of ``theirs`` from its optimum, and a function that gives ours."""
    posed = problems(ours, getattr(ours, "classes_", None), X, y)
    tight = {"tol": 1e-12, "max_iter": 10**5}
    best = objective(posed, clone(ours).set_params(**tight).fit(X, y))[0]
    penalised = liblinear(theirs)
    reference = best
    if penalised and "intercept_scaling" in ours.get_params():
        reference = objective(
            posed, clone(ours).set_params(intercept_scaling=1.0, **tight).fit(X, y)
        )[1]
    elif penalised:  # LogisticRegression has no such setting: a column of ones is the same
        ones = np.column_stack([X, np.ones(len(X))])
        bias = clone(ours).set_params(fit_intercept=False, **tight).fit(ones, y)
        reference = sum(
            p.primal(x[:-1], float(x[-1])) + p.penalty.value(x[-1:])
            for p, x in zip(posed, bias.coef_, strict=True)
        )
    other = objective(posed, theirs)[int(penalised)]

    def of(model):
        return objective(posed, model)[0] / best - 1.0

    return other / reference - 1.0, of


def in_turns(models, X, y, repeats, clock) -> list[float]:
    """The least milliseconds of each."""
    times = [[] for _ in models]
    for _ in range(repeats):
        for model, seconds in zip(models, times, strict=True):
            start = clock()
            model.fit(X, y)
            seconds.append(clock() - start)
    return [1e3 * min(seconds) for seconds in times]


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    clock = time.thread_time if "cpu" in sys.argv[2:] else time.perf_counter
    warnings.simplefilter("ignore")
    print(f"{'':59} {'milliseconds':^26} {'ratio':^15} {'(P - P*)/P*':^26}")
    print(
        f"{'data':14} {'estimator':44} {'theirs':>8} {'ours':>8} {'as near':>8} "
        f"{'default':>7} {'equal':>7} {'theirs':>8} {'ours':>8} {'as near':>8}  tol"
    )
    ratios = []
    for (name, X, y), ours, theirs in cases():
        ours.fit(X, y)
        theirs.fit(X, y)
        far, of = distances(ours, theirs, X, y)
        goal = max(far, 1e-12)
        for exponent in range(-1, -13, -1):
            near = clone(ours).set_params(tol=10.0**exponent).fit(X, y)
            if of(near) <= goal:
                break
        other, mine, equal = in_turns((theirs, ours, near), X, y, repeats, clock)
        ratios.append((mine / other, equal / other))
        print(
            f"{name:14} {ours!s:44} {other:8.2f} {mine:8.2f} {equal:8.2f} {mine / other:7.2f} "
            f"{equal / other:7.2f} {far:8.0e} {of(ours):8.0e} {of(near):8.0e} {near.tol:4.0e}",
            flush=True,
        )
    for column, of_all in (("default", [r[0] for r in ratios]), ("equal", [r[1] for r in ratios])):
        print(f"{column}: median ratio {np.median(of_all):.2f}, largest {max(of_all):.2f}")


if __name__ == "__main__":
    main()
