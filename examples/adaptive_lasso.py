"""
The adaptive lasso
==================

The adaptive lasso: columns that a first fit finds small are penalised more.

The lasso shrinks what it keeps, and keeps more than there is.  With a factor of the penalty for
each column, one over the size of its coefficient in a ridge regression (Zou 2006), large ones are
hardly shrunk and small ones vanish.  One column is known to matter, and is not penalised at all.

    python examples/adaptive_lasso.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

import adacoord as ac


def draw(true, found, file):
    """The coefficients that there are, and those that each method finds."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
    at = np.arange(true.size)
    axis.bar(at, true, color="lightgrey", width=0.9, label="true")
    for (name, coef), marker in zip(found.items(), "ox", strict=True):
        axis.plot(at, np.where(coef == 0.0, np.nan, coef), marker, label=name)
    axis.axhline(0.0, color="grey", linewidth=0.5)
    axis.set(
        xlabel="column", ylabel="coefficient", title="What is kept, and how much is left of it"
    )
    axis.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(file=None):
    rng = np.random.default_rng(0)
    n, d = 200, 40
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3)
    true = np.zeros(d)
    true[:5] = 3.0, -2.0, 1.5, -1.0, 0.8
    y = X @ true + rng.standard_normal(n)

    first = ac.Ridge(1.0).fit(X, y).coef_
    factor = 0.5 / np.abs(first)  # 1 for a coefficient of 0.5
    factor[0] = 0.0  # known to matter: not penalised
    found = {
        "lasso": ac.Lasso(0.1, tol=1e-8).fit(X, y).coef_,
        "adaptive lasso": ac.Lasso(0.1, tol=1e-8, penalty_factor=factor).fit(X, y).coef_,
    }
    for name, coef in found.items():
        wrong = np.count_nonzero(coef[5:])
        print(
            f"{name:14} keeps {np.count_nonzero(coef[:5])} of 5 true columns and {wrong} others; "
            f"off by {np.abs(coef - true).max():.2f} at most"
        )
    if file:
        draw(true, found, file)
        print(f"drawn in {file}")
    return {name: (np.count_nonzero(c[5:]), np.abs(c - true).max()) for name, c in found.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
