r"""SPDC with adaptive importance sampling (SPDC-AIS, Algorithm 1 of Liu, Wang and So, 2021).

Sampling    eq. 13: p_i = (1-delta_t)/N + delta_t w_i/sum w; delta_t grows with every step of the
            first passes, then stays
adaptive    w_i from the gradient maps pi_i = dy_i/sigma_i of the row's last step:
            ``weights="last"``      |pi_i|^kappa, known to the very next draw: Algorithm 1
            ``weights="averaged"``  the mean of |pi_i|^kappa and the weight the row had; rows are
                                    drawn in pieces of at most ``PIECE``, each from the weights that
                                    the piece before it has left, with the delta_t of its first step
lipschitz   w_i = R_i with the same delta_t (LIS of the paper's Section 4.1)
ideal       eq. 12: the exact gradient maps, O(n d) a step; for study on small problems only
Steps       ``theory`` (Theorem 1, its mu corrected), with dbar the largest delta:
              tau = (1-dbar)/(2R) sqrt(gamma/(N lambda)), sigma likewise, sigma_i = sigma/(N p_i),
              mu = min{2 lambda tau/(1 + 2 lambda tau), gamma/(N/(2 sigma) + N gamma/(1-dbar))}
            ``theory2`` (Theorem 2): tau and sigma without the factor 1-dbar, and gamma + rho
              sigma delta/2 for the gamma above the fraction, rho being Assumption 1's constant
              (the print drops the 1/2 of its eq. 24); with a rho, dbar = 1 - 1/(gamma + rho sigma
              delta) as in Remark 1
            ``constant`` (eq. 10, and what eq. 20 of Theorem 2's proof uses): sigma_i = sigma for
              every p; tau, sigma and theta are those of SPDC's Algorithm 1 under any sampling.
              With ``weights="last"`` it is what the paper's Figure 4 shows
            ``practical``: tau sigma_i R_i^2 = c N p_i: rows that are drawn more make longer steps,
              where the theorems make them shorter; tau/sigma by :func:`balance` and, from pass to
              pass, by the rows that the draws go to (:meth:`Adaptive.longer`)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...kernels.jit import jit
from ...kernels.loss import dual_prox_array
from ...sampling.schedule import share
from ...sampling.single import norm_mixture
from ...sampling.tree import FLOOR, mixture_draws, tree_build, tree_updates
from .spdc_kernels import dense_pass, scaled_pass, stamped_pass
from .spdc_steps import Steps, practical_steps, uniform_steps

#: Rows drawn at once, and their share of the rows at most: the walks through the tree overlap
#: (3x faster than one by one), and weights a sixteenth of a pass old are as good as new ones.
PIECE, SHARE = 256, 16
#: The practical tau presumes that long rows are drawn more, as by LIS with this alpha, which the
#: gradient maps see to (w8a, l2 = 1e-4: 13 passes against 27 with alpha = 0; with 0.9, 22).
LONG_ROWS = 0.5
#: The passes over which delta grows, if nobody says (the paper: those of the run).  a2a, l2 = 1e-4:
#: 30 passes to 1e-6, and 47 with 100; 5 and 20 are no better.
DELTA_PASSES = 10
#: tau over the tau at which the static rates meet, at kappa/N = kappa/d and equal weights; and how
#: much more unequal weights may give it (see :func:`balance` and :meth:`Adaptive.longer`).
LONGER, CONCENTRATION = 1.5, 8.0
#: sigma_i goes with this power of N p_i.
POWER = {"practical": 1, "constant": 0, "theory": -1, "theory2": -1}


class Draw(NamedTuple):
    """What a pass needs to draw its rows and to learn from them; arrays are updated in place."""

    tree: np.ndarray
    delta: tuple[float, float]
    clock: np.ndarray  # steps made, steps until delta_t stays
    random: np.ndarray
    rows: np.ndarray
    base: np.ndarray  # sigma_i at p_i = 1/N
    power: int  # of N p_i in sigma_i
    learns: bool
    kappa: float
    kept: float  # of the old weight in the new one
    leaves: np.ndarray  # from here on scratch, as long as a piece
    frequencies: np.ndarray
    nodes: np.ndarray
    targets: np.ndarray


class Adaptive:
    """Draws by weights: the tree, its schedule, and the steps that go with it.

    Parameters
    ----------
    weights : ndarray
        Of the rows, at first; for adaptive sampling 1 each.
    learns : bool
        Whether gradient maps replace them (adaptive) or they stay (lipschitz).
    averaged : bool
        ``weights="averaged"``.
    kappa, delta, delta_passes, rho
        As in :class:`~adacoord.solvers.primal_dual.spdc.SPDC`.
    """

    def __init__(
        self,
        weights: np.ndarray,
        kappa: float = 0.5,
        delta: tuple[float, float] = (0.2, 0.8),
        delta_passes: int | None = None,
        rho: float | None = None,
        learns: bool = True,
        averaged: bool = True,
    ):
        self.n, self.kappa, self.rho = weights.size, kappa, rho
        self.horizon = self.n * (DELTA_PASSES if delta_passes is None else delta_passes)  # steps
        self.low, self.high = float(delta[0]), float(delta[1])
        self.learns, self.averaged = learns, averaged
        self.tree = tree_build(weights)

    def steps(self, rule: str, norms: np.ndarray, d: int, lam: float, gamma: float) -> Steps:
        """tau, theta, and sigma_i at p_i = 1/N; with a ``rho`` also the largest delta."""
        N, R = self.n, norms.max()
        if rule == "constant":
            return uniform_steps(norms, 1, lam, gamma)
        if rule == "practical":
            p = norm_mixture(norms, LONG_ROWS)
            steps = practical_steps(norms, p, 1, lam, gamma)
            longer = balance(norms, d, lam, gamma) if self.learns else 1.0
            tau = longer * steps.tau
            return Steps(tau, steps.sigma / (longer * N * p), 1.0 / (1.0 + 2.0 * lam * tau))
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

    def longer(self, rule: str) -> float:
        """tau of this pass over that of :meth:`steps`: N sum w^2/(sum w)^2 if practical.

        That is N over the number of rows that take the draws.  Rows that have stopped moving need
        no rate, so that the dual side keeps up with a longer tau.
        """
        if rule != "practical" or not self.learns:
            return 1.0
        w = self.tree[self.tree.size // 2 :] / self.tree[1]
        return min(self.n * float(w @ w), CONCENTRATION)

    def delta(self, step: int) -> float:
        """delta_t, the share of the weights in the probabilities of a step."""
        return share((self.low, self.high), step, self.horizon)

    def draw(
        self, step: int, random: np.ndarray, rows: np.ndarray, base: np.ndarray, rule: str
    ) -> Draw:
        """What a primal point needs to run a pass by :func:`choose` and :func:`learn`."""
        pieces = self.learns and self.averaged
        size = max(min(self.n // SHARE, PIECE), 1) if pieces else 1
        return Draw(
            self.tree,
            (self.low, self.high),
            np.array([step, self.horizon], dtype=float),
            random,
            rows,
            base,
            POWER[rule],
            self.learns,
            self.kappa,
            0.5 if self.averaged else 0.0,
            np.zeros(size, np.int64),
            np.zeros(size),
            np.zeros(size, np.uint64),
            np.zeros(size),
        )


def balance(norms: np.ndarray, d: int, lam: float, gamma: float) -> float:
    """tau over the tau of :func:`~.spdc_steps.practical_steps`, by conditioning.

    That tau/sigma goes by lambda and gamma alone.  But each side bends the other: over the whole
    spectrum g has the curvature lambda + S/(d gamma) on average, phi* has gamma + S/(N lambda),
    S the mean of R_i^2.  With these in their place tau grows by sqrt((1 + kappa/N)/(1 + kappa/d)),
    kappa = S/(lambda gamma), if the spectrum is flat; spectra decay, and its root does better.
    """
    kappa = float(np.mean(norms**2)) / (lam * gamma)
    return LONGER * ((1.0 + kappa / norms.size) / (1.0 + kappa / d)) ** 0.25


@jit
def choose(draw, order, sigma, kappa):
    """Draw the rows of ``order`` and set their steps: ``base`` times a power of N p_i."""
    count = order.shape[0]
    leaves, frequencies = draw.leaves[:count], draw.frequencies
    # one delta_t for them all: a row that comes twice has one p_i
    delta, n = share(draw.delta, draw.clock[0], draw.clock[1]), draw.rows.shape[0]
    mixture_draws(draw.tree, n, delta, draw.random, leaves, frequencies, draw.nodes, draw.targets)
    draw.clock[0] += count
    for k in range(count):
        i = np.uint64(draw.rows[np.uint64(leaves[k])])
        order[k] = i
        inverse = 1.0 / frequencies[k]
        sigma[i] = draw.base[i]
        if draw.power != 0:
            sigma[i] *= frequencies[k] if draw.power > 0 else inverse
        kappa[i] = inverse


@jit
def learn(draw, order, weight, sigma, moves):
    """Give the rows of ``order`` |pi_i|^kappa for their weight, or its mean with what they had.

    The print takes |pi_i|^kappa itself.  A row that does not move once, at a bound of its domain,
    then has no weight at all, and a few rows that swing take all the draws: on colon-cancer,
    l2 = 0.01, such a run with long steps never converges.
    """
    if not draw.learns:
        return
    half = np.uint64(draw.tree.shape[0] >> 1)
    leaves, weights = draw.leaves[: order.shape[0]], draw.frequencies
    for k in range(order.shape[0]):
        i = np.uint64(order[k])
        size = abs(moves[i]) * math.sqrt(weight[i]) / sigma[i]
        size = math.sqrt(size) if draw.kappa == 0.5 else size**draw.kappa
        old = draw.tree[half + np.uint64(leaves[k])]
        weights[k] = (1.0 - draw.kept) * size + draw.kept * old
    tree_updates(draw.tree, leaves, weights, draw.nodes)


# ruff: noqa: RUF005 (Numba adds tuples, but does not unpack two into one)
# Each of the three passes in pieces.  ``rows`` is (b, weight, sigma, kappa), ``duals`` begins
# with (y, moves).


@jit
def adaptive_dense(draw, matrix, order, starts, rows, duals, steps, rest):
    tau, theta = steps
    piece = draw.leaves.shape[0]
    for first in range(0, order.shape[0], piece):
        part = order[first : first + piece]
        choose(draw, part, rows[2], rows[3])
        here = (part, starts[: part.shape[0] + 1]) + rows + duals
        dense_pass(*(matrix + here + (tau[first:], theta[first:]) + rest))
        learn(draw, part, rows[1], rows[2], duals[1])


@jit
def adaptive_scaled(draw, matrix, order, starts, rows, duals, steps, rest):
    tau, theta = steps
    piece = draw.leaves.shape[0]
    for first in range(0, order.shape[0], piece):
        part = order[first : first + piece]
        choose(draw, part, rows[2], rows[3])
        here = (part, starts[: part.shape[0] + 1]) + rows + duals
        scaled_pass(*(matrix + here + (tau[first:], theta[first:]) + rest))
        learn(draw, part, rows[1], rows[2], duals[1])


@jit
def adaptive_stamped(draw, matrix, order, starts, rows, duals, rest, vectors, stamp, time, tables):
    piece = draw.leaves.shape[0]
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
