"""
What the certificate says
=========================

A lasso with one column: P, the function that is minimised, and D, its dual, which is below P
wherever the two are evaluated.  The distance of any P from any D bounds the distance of P from its
minimum, which nobody needs to know.

    python examples/the_certificate.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

import adacoord as ac


def draw(problem, grid, points, best, file):
    """P, the bounds that three points prove, and the optimum."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    ax.plot(grid, [problem.primal(np.array([v])) for v in grid], color="0.2", label="P(x)")
    ax.axhline(best, color="0.6", linewidth=0.8, linestyle=":", label="the minimum")
    for k, (x, proof) in enumerate(points):
        ax.plot([x, x], [proof.dual, proof.primal], "o-", color=f"C{k}")
        ax.annotate(f"  gap {proof.gap:.3f}", (x, proof.dual), color=f"C{k}", va="top")
    ax.set(xlabel="x", ylabel="P(x) above, the bound D below")
    ax.legend(loc="upper center")
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(file=None):
    rng = np.random.default_rng(1)
    a = rng.standard_normal(40)
    problem = ac.Problem(a[:, None], 1.5 * a + rng.standard_normal(40), l1=0.3)
    best = ac.solve(problem, tol=1e-12)
    points = []
    for x in (2.2, 1.6, float(best.x[0])):
        proof = ac.certify(problem, np.array([x]), effort=0)
        points.append((x, proof))
        print(
            f"x = {x:.3f}: P = {proof.primal:.4f}, so the minimum is at least {proof.dual:.4f}; "
            f"truly {proof.primal - best.primal:.4f} too high, proved {proof.gap:.4f}"
        )
    if file:
        draw(problem, np.linspace(0.4, 2.6, 200), points, best.primal, file)
    return points


if __name__ == "__main__":
    main(*sys.argv[1:])
