"""
Coefficients that are zero together
===================================

Eight quantities, each described by six columns (a small basis of bumps), of which three matter.
The lasso keeps single columns of almost all of them; the group lasso keeps whole quantities.

    python examples/group_lasso.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

import adacoord as ac

QUANTITIES, COLUMNS = 8, 6


def make(n=300, seed=0):
    """(X, y): the columns of each quantity side by side."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1.0, 1.0, (n, QUANTITIES))
    centres = np.linspace(-1.0, 1.0, COLUMNS)
    X = np.exp(-8.0 * np.square(values[:, :, None] - centres)).reshape(n, -1)
    signal = np.sin(3.0 * values[:, 0]) + np.square(values[:, 3]) - np.cos(4.0 * values[:, 5])
    return X, signal + 0.3 * rng.standard_normal(n)


def draw(models, file):
    """The size of the coefficients of each quantity."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(models), figsize=(9, 3.5), sharey=True, layout="constrained")
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        sizes = np.abs(model.coef_).reshape(QUANTITIES, COLUMNS)
        ax.imshow(sizes > 0.0, cmap="Blues", vmin=0.0, vmax=1.5, aspect="auto")
        ax.set(title=name, xlabel="column of the quantity")
    axes[0].set_ylabel("quantity")
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(file=None):
    X, y = make()
    groups = np.repeat(np.arange(QUANTITIES), COLUMNS)
    models = {
        "lasso": ac.LassoCV(tol=1e-6).fit(X, y),
        "group lasso": ac.GroupLassoCV(groups=groups, tol=1e-6).fit(X, y),
    }
    # the penalty of the least error keeps a little of much; a stronger one says what counts
    chosen = models["group lasso"]
    errors = chosen.mse_path_.mean(axis=1)
    spread = chosen.mse_path_.std(axis=1)[errors.argmin()] / chosen.mse_path_.shape[1] ** 0.5
    alpha = chosen.alphas_[np.argmax(errors <= errors.min() + spread)]
    models["group lasso"] = ac.GroupLasso(alpha, groups=groups, tol=1e-8).fit(X, y)
    kept = {}
    for name, model in models.items():
        sizes = np.linalg.norm(model.coef_.reshape(QUANTITIES, COLUMNS), axis=1)
        kept[name] = np.flatnonzero(sizes)
        print(f"{name}: keeps the quantities {kept[name].tolist()}, gap {model.relative_gap_:.1e}")
    if file:
        draw(models, file)
    return kept, models["group lasso"]


if __name__ == "__main__":
    main(*sys.argv[1:])
