"""
Counts over different exposures
===============================

Counts over different exposures: the logarithm of the exposure is an offset.

Claims of insured cars, some insured for a month, some for a year: their expected number is the
exposure times a rate, log E[claims] = log(exposure) + x.a + c.  Without the offset the model takes
short contracts for careful drivers.

    python examples/exposure_poisson.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

import adacoord as ac


def draw(age, rate, models, file):
    """Rates by age: the true one, and those that the two models find."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    axis.plot(age, rate, color="grey", linewidth=4, alpha=0.5, label="true rate")
    for (name, values), style in zip(models.items(), ("-", "--"), strict=True):
        axis.plot(age, values, style, label=name)
    axis.set(xlabel="age of the driver", ylabel="claims per year", ylim=(0.0, None))
    axis.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def features(age):
    scaled = (age - 45.0) / 25.0
    return np.column_stack([scaled, scaled**2])


def main(file=None):
    rng = np.random.default_rng(0)
    n = 5000
    age = rng.uniform(20.0, 70.0, n)
    # the young change their insurance more often
    exposure = np.clip(rng.uniform(0.1, 1.0, n) * age / 50.0, 0.05, 1.0)

    def rate(age):
        return np.exp(features(age) @ [-0.4, 0.5] - 1.5)

    claims = rng.poisson(exposure * rate(age))
    grid = np.linspace(20.0, 70.0, 100)
    fits = {
        "with the offset": {"offset": np.log(exposure)},
        "without": {},
    }
    models, errors = {}, {}
    for name, how in fits.items():
        model = ac.ERMRegressor("poisson", l2=1e-6, tol=1e-8).fit(features(age), claims, **how)
        models[name] = model.predict(features(grid))  # of a year: log(1) = 0
        errors[name] = np.abs(models[name] / rate(grid) - 1.0).max()
        print(
            f"{name:16} rates off by up to {errors[name]:.0%}, relative gap "
            f"{model.relative_gap_:.1e}"
        )
    if file:
        draw(grid, rate(grid), models, file)
        print(f"drawn in {file}")
    return errors


if __name__ == "__main__":
    main(*sys.argv[1:])
