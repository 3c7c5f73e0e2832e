"""
Certify another library's model
===============================

How far from optimal is a model that another library fitted?  ``certify`` proves a bound.

scikit-learn's lasso at three tolerances: what each leaves undone, by a certificate that needs
nothing but the coefficients.

    python examples/certify_another_library.py [picture.png]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

import adacoord as ac


def draw(tolerances, gaps, ours, file):
    """The proved distance from the optimum of each fit."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    ax.loglog(tolerances, gaps, "o-", label="scikit-learn's Lasso")
    ax.axhline(max(ours, 1e-16), color="C1", label="adacoord's Lasso at its default")
    ax.set(xlabel="tol that scikit-learn was given", ylabel="relative gap, proved by certify")
    ax.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(file=None):
    X, y = load_diabetes(return_X_y=True)
    alpha = 0.05
    problem = ac.Problem(X, y, loss="squared", l1=alpha, intercept=True)
    gaps = []
    tolerances = (1e-1, 1e-3, 1e-6)
    for tol in tolerances:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs = Lasso(alpha=alpha, tol=tol, max_iter=100_000).fit(X, y)
        proof = ac.certify(problem, theirs.coef_, float(theirs.intercept_))
        gaps.append(proof.relative_gap)
        print(f"scikit-learn's Lasso(tol={tol:g}): within {proof.relative_gap:.1e} of the optimum")
    ours = ac.Lasso(alpha=alpha).fit(X, y)
    print(f"adacoord's Lasso(): within {ours.relative_gap_:.1e}")
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-1)
    if file:
        draw(tolerances, gaps, ours.relative_gap_, file)
    return gaps


if __name__ == "__main__":
    main(*sys.argv[1:])
