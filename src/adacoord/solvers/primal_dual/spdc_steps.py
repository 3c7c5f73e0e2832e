r"""Step sizes of the SPDC family, as formulas of the problem's constants.

Letters as in the paper: N rows of norm R_i (R the largest, Rbar the mean), batches of m rows,
lambda and gamma the strong convexity of g and of the conjugate losses, p_i the probability that
a batch contains row i (m/N if uniform).  The printed rules are

===========  =======  ==============================================================
Algorithm 1  eq. 12   tau = sqrt(gamma/(N lambda))/(2R), sigma = sqrt(N lambda/gamma)/(2R),
             (m = 1)  theta = 1 - 1/(N + 2R sqrt(N/(lambda gamma)))
Algorithm 2  eq. 12   the same with N/m for N
Algorithm 3  eq. 24   R_alpha = 1/((1-alpha)/R + alpha/Rbar) for R, sigma_i = sigma/(N p_i),
                      theta = 1 - 1/(N/(1-alpha) + R_alpha sqrt(N/(lambda gamma)))
batches      eq. 26   R_alpha = max_i m R_i/(N p_i) (the same number for m = 1),
                      sigma_i = m sigma/(N p_i)
ICML 2015    Thm. 6   eq. 24 with alpha = 1/2 and 2 Rbar, the bound R_alpha <= Rbar/alpha of the
                      sentence under it, for R_alpha: tau = sqrt(gamma/(N lambda))/(4 Rbar),
                      theta = 1 - 1/(2N + 2 Rbar sqrt(N/(lambda gamma)))
===========  =======  ==============================================================

``practical`` steps use what the analysis gives away: tau sigma_i R_i^2 = c N p_i/m for each row,
with c larger than the 1/4 that the printed rules take for the longest row alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: tau sigma_i R_i^2 in units of N p_i/m; the printed rules take 1/4.  On nearly parallel rows the
#: iteration, which extrapolates both x and u, diverges from about 0.7 on.
COUPLING = 0.6


@dataclass(frozen=True)
class Steps:
    """tau, sigma_i for each row, and the extrapolation theta."""

    tau: float
    sigma: np.ndarray
    theta: float

    @property
    def rate(self) -> float:
        """1 - theta: the predicted contraction of one iteration."""
        return 1.0 - self.theta


def uniform_steps(norms: np.ndarray, m: int, lam: float, gamma: float) -> Steps:
    """Eq. 12: Algorithm 1 (m = 1) and Algorithm 2."""
    N, R = norms.size, norms.max()
    tau = np.sqrt(m * gamma / (N * lam)) / (2.0 * R)
    sigma = np.sqrt(N * lam / (m * gamma)) / (2.0 * R)
    theta = 1.0 - 1.0 / (N / m + 2.0 * R * np.sqrt(N / (m * lam * gamma)))
    return Steps(tau, np.full(N, sigma), theta)


def weighted_steps(
    norms: np.ndarray, p: np.ndarray, m: int, alpha: float, lam: float, gamma: float
) -> Steps:
    """Eq. 24 (m = 1) and its extension to batches under eq. 26."""
    R = float(np.max(m * norms / (norms.size * p)))
    return _steps_of_radius(R, p, m, alpha, lam, gamma)


def icml_steps(norms: np.ndarray, p: np.ndarray, lam: float, gamma: float) -> Steps:
    """Weighted sampling as the ICML 2015 version of the paper has it: alpha = 1/2, 2 Rbar."""
    return _steps_of_radius(2.0 * float(norms.mean()), p, 1, 0.5, lam, gamma)


def _steps_of_radius(
    R: float, p: np.ndarray, m: int, alpha: float, lam: float, gamma: float
) -> Steps:
    """Eq. 24 with ``R`` for R_alpha."""
    N = p.size
    tau = np.sqrt(m * gamma / (N * lam)) / (2.0 * R)
    sigma = np.sqrt(N * lam / (m * gamma)) / (2.0 * R)
    theta = 1.0 - 1.0 / (N / (m * (1.0 - alpha)) + R * np.sqrt(N / (m * lam * gamma)))
    return Steps(tau, m * sigma / (N * p), theta)


def practical_steps(norms: np.ndarray, p: np.ndarray, m: int, lam: float, gamma: float) -> Steps:
    """tau sigma_i R_i^2 = c N p_i/m, with tau where the primal and the slowest dual rate meet.

    A step contracts the primal part by mu = 2 lambda tau/(1 + 2 lambda tau) and row i's part by
    p_i/(1 + 1/(2 gamma sigma_i)); tau is bisected so that both agree, and theta = 1 - mu.
    """
    N = norms.size
    # 2 gamma sigma_i = k_i/tau; rates depend on (R_i, p_i) only, so a sample along the sorted
    # norms (both ends in it) is enough to bisect on.
    order = np.argsort(norms, kind="stable")
    order = order[np.unique(np.linspace(0, N - 1, min(N, 1000)).astype(np.int64))]
    k = 2.0 * gamma * COUPLING * N * p[order] / (m * norms[order] ** 2)
    low, high = 1e-30 / lam, 1e30 / lam
    for _ in range(300):
        tau = np.sqrt(low * high)
        primal = 2.0 * lam * tau / (1.0 + 2.0 * lam * tau)
        if primal < np.min(p[order] * k / (k + tau)):
            low = tau
        else:
            high = tau
        if high < low * (1.0 + 1e-12):
            break
    # mu < 1 strictly: theta = 0 would switch the extrapolation off for N = 1.
    theta = 1.0 / (1.0 + 2.0 * lam * tau)
    return Steps(tau, COUPLING * N * p / (m * tau * norms**2), theta)


def optimal_alpha(norms: np.ndarray, lam: float, gamma: float) -> float:
    """Eq. 25: the mixture weight of Algorithm 3 that minimises theta.

    0 (uniform) for problems that are well conditioned; the sentence under the printed equation
    has it the other way round.
    """
    N, R = norms.size, float(norms.max())
    rho = R / float(norms.mean()) - 1.0
    kappa = R * R / (lam * gamma)
    if rho <= np.sqrt(N / kappa):
        return 0.0
    q = np.sqrt(rho) * (kappa / N) ** 0.25
    return (q - 1.0) / (q + rho)
