r"""Rounds of dual coordinate ascent on data in blocks of rows (CoCoA+ with a measured sigma').

Problem     that of :mod:`.dual_cd`, with the same step on a row
Round       GROUP blocks, the next ones each time, visit some of their rows, in a random order of
            their own, as if each were alone but for a curvature sigma' times as large (Ma, Smith,
            Jaggi, Jordan, Richtarik and Takac 2015); what they change of v = -u/l2 is added up.
            sigma' = GROUP is always safe, and fewer at once need fewer passes (50,000 x 10,000 of
            60 entries a row, hinge, 1e-4: 23 for 4 of 8 blocks, 40 for all, 14 serially).  The
            partitions that a cluster holds work all at once, or most workers would wait
sigma'      of the next round: what the changes of this one had in common, |sum dv|^2/sum |dv|^2,
            and a little more, but no faster than by a fifth less; a round that lowers the dual is
            taken back, and sigma' doubles.  (One local epoch at sigma' = K takes 7 times the epochs
            of the serial method for K = 2; short rounds with a measured one 1.0 to 1.2 times)
Rows        a round visits CHUNK of a block in memory, or as many rows as touch SPREAD d entries,
            since v travels; all of them where a block has to be read first
Intercept   as in :mod:`.dual_cd`, re-centred at each pass (at each round it took five times as
            many), and held more tightly
Pass        as many rounds as make n visits
Stops       never: the monitor does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...data.matrix import Matrix
from ...kernels.jit import jit
from ...kernels.loss import conjugate
from ...parallel.reduction import fold
from .dual_cd import DualCoordinateAscent
from .kernels import dual_pass

#: Of the rows of a block in memory that a round visits, at least; entries it touches, in columns.
CHUNK, SPREAD = 0.04, 2.0
#: Blocks that work at the same time, unless a cluster has them.
GROUP = 4
#: The intercept is held so many times as tightly as by the serial method, for each of them.
HELD = 2.0
#: sigma' over what was measured, and over the last one at least.
MARGIN, SLOWLY = 1.05, 0.8
#: What the dual is not known to.
ROUNDING = 1e-13


class DualRounds(DualCoordinateAscent):
    """Rounds of dual ascent; see the module's docstring."""

    name = "dcd"
    _state = ("v", "c", "sigma", "next", "order", "places", "conjugates", "balance")

    def __init__(self, problem, rng, start=None):
        super().__init__(problem, rng, start)
        matrix = problem.matrix
        self.norms = matrix.squared_norms / self.g.strong_convexity
        #: Blocks that work at the same time, and where the next of them begin.
        scattered = getattr(matrix.pieces[0], "scattered", False)
        at_once = len(matrix.pieces) if scattered else GROUP
        self.group = min(at_once, len(matrix.pieces))
        self.next = 0
        self.rho /= HELD * self.group
        active = problem.active
        cuts = np.searchsorted(active, matrix.bounds)
        #: Active rows of each block, one after the other, as numbers within the block; where each
        #: block's begin; and how far the round has come in each.
        self.starts = cuts
        self.order = active - np.repeat(matrix.bounds[:-1], np.diff(cuts))
        self.places = np.diff(cuts)  # at their ends: the first round shuffles
        sizes = np.diff(cuts)
        if all(piece.in_memory for piece in matrix.pieces):
            least = math.ceil(SPREAD * problem.d * problem.n / max(matrix.nnz, 1))
            self.chunks = np.minimum(sizes, np.maximum(np.ceil(CHUNK * sizes), least)).astype(int)
        else:
            self.chunks = sizes
        self.sigma = float(self.group)
        self.law = problem.loss.code, *problem.loss.constants
        self.conjugates = 0.0  # (1/n) sum w phi*(y), but for a constant
        self.balance = float(np.sum(self.share * self.y))

    def _pass(self):
        self._refresh()
        self.balance = float(np.sum(self.share * self.y))
        if self.rho:  # re-centre
            self.c -= self.rho * self.balance
        visits = 0
        while visits < self.n_rows:
            visits += self._round()

    def _value(self, v, balance: float, conjugates: float, centre: float) -> float:
        """The dual, with the term of the intercept around ``centre``."""
        spread = self.g.conjugate(v.astype(np.float64) * self.g.l2)
        return centre * balance - 0.5 * self.rho * balance**2 - spread - conjugates

    def _chosen(self, blocks: range) -> list[tuple[np.ndarray]]:
        """The rows that each of these blocks visits next."""
        out = []
        for k in blocks:
            chunk = self.chunks[k]
            first, last = self.starts[k], self.starts[k + 1]
            if self.places[k] + chunk > last - first:  # what is left of an epoch is let go
                self.order[first:last] = self.rng.permutation(self.order[first:last])
                self.places[k] = 0
            at = first + self.places[k]
            out.append((self.order[at : at + chunk].astype(np.uint32),))
            self.places[k] += chunk
        return out

    def _round(self) -> int:
        problem, g = self.problem, self.g
        matrix: Any = problem.matrix  # in blocks
        blocks = range(self.next, min(self.next + self.group, len(matrix.pieces)))
        self.next = blocks.stop % len(matrix.pieces)
        chosen = self._chosen(blocks)
        centre = self.c + self.rho * self.balance
        values: list[np.ndarray] = []
        squares = 0.0

        def changes():
            nonlocal squares
            found = matrix.map(
                dual_round,
                self.law,
                g.arguments,
                self.sigma,
                self.rho * self.group,
                self.v,
                self.c,
                each=chosen,
                blocks=blocks,
                rows=(problem.b, self.share, self.norms, self.y),
            )
            for new, dv, moved, change in found:
                values.append(new)
                squares += float(np.sum(np.square(dv, dtype=np.float64)))
                yield dv, moved, change

        dv, moved, change = fold(changes())
        v, balance = self.v + dv, self.balance + moved
        before = self._value(self.v, self.balance, self.conjugates, centre)
        after = self._value(v, balance, self.conjugates + change, centre)
        together = float(np.sum(np.square(dv, dtype=np.float64)))
        most = float(self.group)
        if after < before - ROUNDING * abs(before) and self.sigma < most:
            self.sigma = min(2.0 * self.sigma, most)
        else:
            self.v, self.balance, self.conjugates = v, balance, self.conjugates + change
            self.c = centre - self.rho * balance
            for k, (order,), new in zip(blocks, chosen, values, strict=True):
                self.y[matrix.bounds[k] + order] = new
            measured = together / squares if squares > 0.0 else 1.0
            self.sigma = min(max(MARGIN * measured, SLOWLY * self.sigma, 1.0), most)
        visits = sum(order.size for (order,) in chosen)
        self.operations += int(visits * (matrix.nnz / max(problem.n, 1)))
        return max(visits, 1)


def dual_round(
    block: Matrix, law, penalty, sigma, rho, v, c, order, b, weight, norms, y
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Visits of ``order``: the new y there, and the changes of v, of c and of (1/n) sum w phi*."""
    l1, l2, positive = penalty
    new, moved = y.copy(), v.copy()
    # everything that this block changes is seen sigma' times as large
    dual_pass(
        *block.arrays,
        order,
        b,
        weight,
        1.0 / (weight * (sigma * norms + rho)),
        new,
        moved,
        *law,
        l1 / sigma,
        l2 / sigma,
        positive,
        rho,
        c,
    )
    change = conjugate_change(*law, order, b, weight, y, new)
    balance = float(np.sum(weight[order] * (new[order] - y[order])))
    return new[order], (moved - v) / v.dtype.type(sigma), balance, change


@jit
def conjugate_change(code, alpha, epsilon, lo, hi, order, b, weight, old, new):
    """sum_i w_i (phi*(new_i) - phi*(old_i)) over the rows of ``order``."""
    total = 0.0
    for t in range(order.shape[0]):
        i = np.uint64(order[t])
        total += weight[i] * (
            conjugate(code, alpha, epsilon, lo, hi, new[i], b[i])
            - conjugate(code, alpha, epsilon, lo, hi, old[i], b[i])
        )
    return total
