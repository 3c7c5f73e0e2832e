"""Symmetric systems: Cholesky's factorisation, and what takes its place where it fails.

BLAS and LAPACK run on one thread here: who solves holds them to it (:mod:`.blas`).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs, dpotrf, dpotrs

#: Systems of a smaller reciprocal condition number are solved by their singular values.
SINGULAR = 1e-13


class Cholesky:
    """H = L L', with a ridge where H is not definite to rounding; ``H`` is overwritten."""

    def __init__(self, H: np.ndarray, ridge: float = 0.0):
        diagonal = H.diagonal().copy()
        scale = np.where(diagonal > 0.0, diagonal, 1.0)
        corner = np.einsum("ii->i", H)
        if not np.isfinite(diagonal).all():  # no ridge would help: every step is NaN
            self.factor = np.full_like(H, np.nan)
            return
        while True:
            corner[:] = diagonal + ridge * scale
            # a symmetric C array is its own Fortran transpose; the lower half of H stays
            self.factor, failed = dpotrf(H.T, lower=1, clean=0, overwrite_a=1)
            if not failed:
                return
            ridge = max(100.0 * ridge, 1e-14)
            H[:] = np.tril(H, -1)
            H += H.T.copy()

    def solve(self, r: np.ndarray) -> np.ndarray:
        return dpotrs(self.factor, r, lower=1)[0]

    @property
    def reciprocal_condition(self) -> float:
        """About that of H, from the diagonal of L."""
        diagonal = self.factor.diagonal()
        return float(diagonal.min() / diagonal.max()) ** 2


def definite(H: np.ndarray) -> Cholesky | None:
    """The factor of H; None where it is singular to rounding.  ``H`` is left as it is."""
    factor, failed = dpotrf(H.T, lower=1)
    found = Cholesky.__new__(Cholesky)
    found.factor = factor
    return None if failed or found.reciprocal_condition < SINGULAR else found


def solve_symmetric(M, right, exact):
    """The shortest solution: degenerate optima leave directions that are free.

    Where there is none, as where no row bends in the direction of the intercept, None if it has
    to be ``exact``: more rows guessed at a kink than fit there leave the next guess a better one.
    """
    if right.size == 0:  # x = 0 without an intercept, and nothing at a kink
        return right
    scale = np.sqrt(np.maximum(np.abs(M).max(axis=1, initial=0.0), 1e-300))
    scaled, right = M / np.outer(scale, scale), right / scale
    factors, pivots, failed = dgetrf(scaled)
    if not failed:
        condition, failed = dgecon(factors, np.abs(scaled).sum(axis=0).max(initial=0.0))
        if condition > SINGULAR and not failed:
            return dgetrs(factors, pivots, right)[0] / scale
    if not (np.isfinite(scaled).all() and np.isfinite(right).all()):
        return None  # an overflow: no step is worth trying
    delta = np.linalg.lstsq(scaled, right, rcond=SINGULAR)[0]
    missed = np.max(np.abs(scaled @ delta - right), initial=0.0)
    if exact and missed > 1e-6 * np.max(np.abs(right), initial=0.0):
        return None
    return delta / scale
