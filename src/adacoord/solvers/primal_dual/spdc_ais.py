r"""SPDC with adaptive importance sampling (SPDC-AIS, Algorithm 1 of Liu, Wang and So, 2021).

Sampling    p_i = (1-delta)/N + delta |pi_i|^kappa / sum |pi|^kappa, with the gradient maps
            pi_i = dy_i/sigma_i of each row's last step; delta grows over the first passes
ideal       eq. 12: the exact gradient maps, O(n d) a step; for study on small problems only
Steps       ``theory`` (Theorem 1, its mu corrected), with dbar the largest delta:
              tau = (1-dbar)/(2R) sqrt(gamma/(N lambda)), sigma likewise, sigma_i = sigma/(N p_i),
              mu = min{2 lambda tau/(1 + 2 lambda tau), gamma/(N/(2 sigma) + N gamma/(1-dbar))}
            ``theory2`` (Theorem 2): tau and sigma without the factor 1-dbar, and gamma + rho
              sigma delta/2 for the gamma above the fraction, rho being Assumption 1's constant
              (the print drops the 1/2 of its eq. 24); with a rho, dbar = 1 - 1/(gamma + rho sigma
              delta) as in Remark 1
            ``practical``: tau sigma_i R_i^2 = c N p_i: rows that are drawn more make longer steps,
              where the theorems make them shorter
A pass      rows are drawn in pieces of at most ``PIECE``, each from the weights that the piece
            before it has left
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.jit import jit
from ...kernels.loss import dual_prox_array
from ...sampling.schedule import share
from ...sampling.single import norm_mixture
from ...sampling.tree import FLOOR, mixture_draws, tree_build, tree_updates
from .spdc_kernels import dense_pass, scaled_pass, stamped_pass
from .spdc_steps import Steps, practical_steps

#: Rows drawn at once, and their share of the rows at most: the walks through the tree overlap
#: (3x faster than one by one), and weights a sixteenth of a pass old are as good as new ones.
PIECE, SHARE = 256, 16
#: The practical tau presumes that long rows are drawn more, as by LIS with this alpha, which the
#: gradient maps see to (w8a, l2 = 1e-4: 13 passes against 27 with alpha = 0; with 0.9, 22).
LONG_ROWS = 0.5
#: The passes over which delta grows, if nobody says: what theory takes to 1e-6, within these.
SHORTEST, LONGEST = 10, 100


class Adaptive:
    """Draws by gradient maps: the tree, its schedule, and the steps that go with it.

    Parameters
    ----------
    n : int
        Rows.
    kappa, delta, delta_passes, rho
        As in :class:`~adacoord.solvers.primal_dual.spdc.SPDC`.
    """

    def __init__(
        self,
        n: int,
        kappa: float,
        delta: tuple[float, float],
        delta_passes: int | None,
        rho: float | None,
    ):
        self.n, self.kappa, self.delta_passes, self.rho = n, float(kappa), delta_passes, rho
        self.low, self.high = float(delta[0]), float(delta[1])
        self.tree = tree_build(np.ones(n))
        size = max(min(n // SHARE, PIECE), 1)
        self._scratch = (
            np.zeros(size, np.int64),
            np.zeros(size),
            np.zeros(size, np.uint64),
            np.zeros(size),
        )

    def steps(self, rule: str, norms: np.ndarray, lam: float, gamma: float) -> Steps:
        """tau, theta, and sigma_i at p_i = 1/N; with a ``rho`` also the largest delta."""
        N, R = self.n, norms.max()
        if rule == "practical":
            p = norm_mixture(norms, LONG_ROWS)
            steps = practical_steps(norms, p, 1, lam, gamma)
            return Steps(steps.tau, steps.sigma / (N * p), steps.theta)
        factor = 1.0 if rule == "theory2" else 1.0 - max(self.low, self.high)
        tau = factor * np.sqrt(gamma / (N * lam)) / (2.0 * R)
        sigma = factor * np.sqrt(N * lam / gamma) / (2.0 * R)
        gain = 0.0
        if rule == "theory2" and self.rho is not None:
            gain = self.rho * sigma * self.low / 2.0
            self.high = min(max(1.0 - 1.0 / (gamma + 2.0 * gain), self.low), 1.0 - 1e-3)
        largest = max(self.low, self.high)  # delta may fall, too
        dual = (gamma + gain) / (N / (2.0 * sigma) + N * gamma / (1.0 - largest))
        mu = min(2.0 * lam * tau / (1.0 + 2.0 * lam * tau), dual)
        return Steps(tau, np.full(N, sigma), 1.0 - mu)

    def delta(self, passes: int, rate: float) -> float:
        """The share of the gradient maps in the probabilities; ``rate`` is that of one step."""
        horizon: float | None = self.delta_passes
        if horizon is None:
            horizon = min(max(math.log(1e6) / (self.n * rate), SHORTEST), LONGEST)
        return share((self.low, self.high), passes, horizon)

    def draw(
        self, delta: float, random: np.ndarray, rows: np.ndarray, base: np.ndarray, shorter: bool
    ) -> tuple:
        """What a primal point needs to run a pass by :func:`choose` and :func:`learn`."""
        return self.tree, delta, self.kappa, random, rows, base, shorter, self._scratch


@jit
def choose(draw, order, sigma, kappa):
    """Draw the rows of ``order`` and set their steps: ``base`` times N p_i, or over it."""
    tree, delta, _, random, rows, base, shorter, scratch = draw
    leaves, frequencies, nodes, targets = scratch
    count = order.shape[0]
    leaves = leaves[:count]
    mixture_draws(tree, rows.shape[0], delta, random, leaves, frequencies, nodes, targets)
    for k in range(count):
        i = np.uint64(rows[np.uint64(leaves[k])])
        order[k] = i
        inverse = 1.0 / frequencies[k]
        sigma[i] = base[i] * (inverse if shorter else frequencies[k])
        kappa[i] = inverse


@jit
def learn(draw, order, weight, sigma, moves):
    """Give the rows of ``order`` the mean of |pi_i|^kappa and the weight they had.

    The print takes |pi_i|^kappa itself.  A row that does not move once, at a bound of its domain,
    then has no weight at all, and a few rows that swing take all the draws: on colon-cancer,
    l2 = 0.01, such a run never converges; with the mean it takes 545 passes (uniform: 491).
    """
    tree, _, exponent, _, _, _, _, scratch = draw
    half = np.uint64(tree.shape[0] >> 1)
    leaves, weights, nodes, _ = scratch
    for k in range(order.shape[0]):
        i = np.uint64(order[k])
        size = abs(moves[i]) * math.sqrt(weight[i]) / sigma[i]
        size = math.sqrt(size) if exponent == 0.5 else size**exponent
        weights[k] = 0.5 * (size + tree[half + np.uint64(leaves[k])])
    tree_updates(tree, leaves[: order.shape[0]], weights, nodes)


# ruff: noqa: RUF005 (Numba adds tuples, but does not unpack two into one)
# Each of the three passes in pieces.  ``rows`` is (b, weight, sigma, kappa), ``duals`` begins
# with (y, moves).


@jit
def adaptive_dense(draw, matrix, order, starts, rows, duals, steps, rest):
    tau, theta = steps
    piece = draw[7][0].shape[0]
    for first in range(0, order.shape[0], piece):
        part = order[first : first + piece]
        choose(draw, part, rows[2], rows[3])
        here = (part, starts[: part.shape[0] + 1]) + rows + duals
        dense_pass(*(matrix + here + (tau[first:], theta[first:]) + rest))
        learn(draw, part, rows[1], rows[2], duals[1])


@jit
def adaptive_scaled(draw, matrix, order, starts, rows, duals, steps, rest):
    tau, theta = steps
    piece = draw[7][0].shape[0]
    for first in range(0, order.shape[0], piece):
        part = order[first : first + piece]
        choose(draw, part, rows[2], rows[3])
        here = (part, starts[: part.shape[0] + 1]) + rows + duals
        scaled_pass(*(matrix + here + (tau[first:], theta[first:]) + rest))
        learn(draw, part, rows[1], rows[2], duals[1])


@jit
def adaptive_stamped(draw, matrix, order, starts, rows, duals, rest, vectors, stamp, time, tables):
    piece = draw[7][0].shape[0]
    for first in range(0, order.shape[0], piece):
        part = order[first : first + piece]
        choose(draw, part, rows[2], rows[3])
        here = (part, starts[: part.shape[0] + 1]) + rows + duals
        time = stamped_pass(*(matrix + here + rest + (vectors, stamp, time) + tables))
        learn(draw, part, rows[1], rows[2], duals[1])
    return time


def ideal_frequencies(
    problem, rows, weight, base, z, y, delta: float, kappa: float, perturbation: float, center
) -> np.ndarray:
    """N p_i of eq. 12, by the exact gradient maps at z = A xbar.

    The maps are those of the stage's problem, ``perturbation``/2 (y - center)^2 included: others
    would not vanish at its solution.
    """
    b, s, before = problem.b[rows], base[rows], y[rows]
    factor = 1.0 / (1.0 + s * perturbation)
    anchor = (before + s * perturbation * center[rows]) * factor
    new = dual_prox_array(
        problem.loss.code, *problem.loss.constants, z[rows], b, anchor, s * factor
    )
    maps = np.abs(new - before) * np.sqrt(weight[rows]) / s
    w = np.maximum(maps**kappa, FLOOR)
    return (1.0 - delta) + delta * rows.size * w / w.sum()
