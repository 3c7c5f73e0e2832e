"""
Bounds on the coefficients
==========================

Bounds on the coefficients: what is known of a mixture keeps its estimate sensible.

A spectrum is a mixture of those of known substances: no share is negative, and none is above 1.
Neighbouring substances look alike, so that least squares answers with large shares of both signs
that cancel; within the bounds there is no room for that.

    python examples/bounds.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

import adacoord as ac


def draw(shares, found, file):
    """The true shares, and the estimates."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
    at = np.arange(shares.size)
    axis.bar(at, shares, color="lightgrey", width=0.9, label="true")
    for (name, x), marker in zip(found.items(), "xo", strict=True):
        axis.plot(at, x, marker, label=name)
    axis.axhspan(0.0, 1.0, color="green", alpha=0.05)
    axis.set(xlabel="substance", ylabel="share", title="Shares of a mixture, estimated")
    axis.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(file=None):
    rng = np.random.default_rng(0)
    wavelengths, peaks = np.linspace(0.0, 1.0, 200), np.linspace(0.1, 0.9, 15)
    spectra = np.exp(-0.5 * ((wavelengths[:, None] - peaks) / 0.06) ** 2)
    shares = np.zeros(peaks.size)
    shares[[2, 6, 7, 12]] = 0.4, 0.3, 0.2, 0.1
    measured = spectra @ shares + 0.02 * rng.standard_normal(wavelengths.size)

    problem = ac.Problem(spectra, measured, lower=0.0, upper=1.0)
    bounded = ac.solve(problem, tol=1e-10)
    found = {
        "least squares": np.linalg.lstsq(spectra, measured, rcond=None)[0],
        "from 0 to 1": bounded.x,
    }
    for name, x in found.items():
        print(
            f"{name:14} shares from {x.min():.2f} to {x.max():.2f}, "
            f"off by {np.abs(x - shares).max():.2f} at most"
        )
    print(f"bounds alone give a proof: within {bounded.gap:.1e} of the optimum")
    if file:
        draw(shares, found, file)
        print(f"drawn in {file}")
    return {name: np.abs(x - shares).max() for name, x in found.items()}, bounded


if __name__ == "__main__":
    main(*sys.argv[1:])
