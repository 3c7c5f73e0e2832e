"""
A certified lasso path
======================

A lasso path on real data, with a proof of optimality at every point.

Ten measurements of 442 diabetes patients predict how the disease went on: as the penalty falls,
one coefficient after the other enters.  Every point of the path carries its own duality gap.

    python examples/certified_lasso_path.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_diabetes

import adacoord as ac


def draw(path, names, tol, file):
    """The coefficients against l1, and the certified gap of every point beneath."""
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(
        2, 1, sharex=True, figsize=(8, 6), height_ratios=(3, 1), layout="constrained"
    )
    colours = plt.get_cmap("tab10").colors
    for name, values, colour in zip(names, path.coefs.T, colours, strict=True):
        above.plot(path.l1, values, color=colour, label=name)
    above.axhline(0.0, color="grey", linewidth=0.5)
    above.set(ylabel="coefficient", title="Lasso path of the diabetes data")
    above.legend(ncols=2, fontsize="small")
    below.plot(path.l1, np.maximum(path.relative_gap, 1e-17), ".", color="black")
    below.axhline(tol, color="red", linewidth=1, label=f"tol = {tol:g}")
    below.set(xlabel="l1, from strong to weak", ylabel="relative gap", xscale="log", yscale="log")
    below.invert_xaxis()
    below.legend(fontsize="small", loc="center right")
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(file=None):
    data, tol = load_diabetes(), 1e-8
    path = ac.path(ac.Problem(data.data, data.target, intercept=True), n_points=60, tol=tol)
    entered = [
        (path.l1[np.flatnonzero(x)[0]], name)
        for name, x in zip(data.feature_names, path.coefs.T, strict=True)
    ]
    for l1, name in sorted(entered, reverse=True):
        print(f"{name:4} enters at l1 = {l1:.3g}")
    print(f"all {len(path)} points are within {path.relative_gap.max():.1e} of their optimum")
    if file:
        draw(path, data.feature_names, tol, file)
        print(f"drawn in {file}")
    return path


if __name__ == "__main__":
    main(*sys.argv[1:])
