"""How far from optimal is a model that another library fitted?  ``certify`` proves a bound.

scikit-learn's lasso at three tolerances: what each leaves undone, by a certificate that needs
nothing but the coefficients.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

import adacoord as ac


def main():
    X, y = load_diabetes(return_X_y=True)
    alpha = 0.05
    problem = ac.Problem(X, y, loss="squared", l1=alpha, intercept=True)
    gaps = []
    for tol in (1e-1, 1e-3, 1e-6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs = Lasso(alpha=alpha, tol=tol, max_iter=100_000).fit(X, y)
        proof = ac.certify(problem, theirs.coef_, float(theirs.intercept_))
        gaps.append(proof.relative_gap)
        print(f"scikit-learn's Lasso(tol={tol:g}): within {proof.relative_gap:.1e} of the optimum")
    ours = ac.Lasso(alpha=alpha).fit(X, y)
    print(f"adacoord's Lasso(): within {ours.relative_gap_:.1e}")
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-1)
    return gaps


if __name__ == "__main__":
    main()
