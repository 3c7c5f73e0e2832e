r"""ACF: dual coordinate ascent with adaptive coordinate frequencies and shrinking.

Problem     that of :mod:`.dual_cd`, with the same step on a row
Frequencies Algorithms 2 and 3 of ACF (Glasmachers and Dogan, 2013; :mod:`..sampling.frequencies`):
            rows whose steps bring more than the mean are visited more often.  The mean is that of
            the last |active| steps (eta = 1/|active| for the paper's 1/n: with few rows active a
            mean over n steps lags behind).
Shrinking   rows at a bound with an outward slope rest, as in liblinear.  When the slopes of the
            active rows have fallen tenfold, a full sweep visits each row once, wakes those that
            would move, and leaves the others at rest (liblinear wakes all of them, and needs
            a second sweep to put them to rest: 17 passes against 24, 53 against 58)
Published   the paper's own: no row rests and nothing but coordinate steps.  ``order="published"``
            is Algorithms 2 and 3; ``"argmax"`` and ``"iid"`` are Algorithm 2 with the two other
            ways of Section 3 from p to a sequence of rows (:mod:`..sampling.sequences`): by the
            largest accumulator, and independent draws.  ``frequencies`` gives any of the three a
            fixed p in place of Algorithm 2's, which is Section 3 itself.
Hybrid      plain sweeps over the active rows as long as each brings less than a quarter of the one
            before (the problem is easy), then frequencies; and where coordinates crawl and there
            are few columns, the Newton method of :mod:`..newton.dual_proximal`
Estimate    for losses with a quadratic dual: the gaps of the rows when the last sweep visited
            them, over what the dual has risen by, and with an intercept the share of y that is
            out of balance.  2 to 7 times the gap after the sweep (SVR and SVC on text), so that
            a look that it asks for is hardly ever in vain
Pass        as many sweeps as make n visits (at least one), or one Newton step
Stops       never; with ``stop="liblinear"`` (for reproductions: it says nothing about the gap)
            when max - min of the projected slopes is at most ``eps`` over a full sweep, which
            is made as soon as they were over any sweep.
"""

from __future__ import annotations

import math

import numpy as np

from ...sampling.sequences import by_argmax, independently
from ..newton.dual_proximal import (
    ProximalPoint,
    affordable,
    first_sigma,
    sigma_with_kinks,
    split_state,
)
from . import kernels
from .dual_cd import DualCoordinateAscent

#: The paper's orders, which let no row rest, and who plans their sweeps if not the kernel.
PUBLISHED = {"published": None, "argmax": by_argmax, "iid": independently}
ORDERS = ("hybrid", "frequencies", "shrinking", *PUBLISHED)
#: Coordinates crawl when a pass brings more than this share of the one before it, on the mean of
#: SPAN passes, twice in a row.  (Runs of 16 to 60 passes: .2 to .6; of 100 to 700: .72 to 1.0;
#: a9a and w8a, hinge, logistic and squared, C = 1 to 100.)
CRAWL, SPAN = 0.7, 5
#: The tolerance of liblinear's rule, for the reproductions that do not give one.
LIBLINEAR = 0.01


class AdaptiveFrequencies(DualCoordinateAscent):
    """ACF; see the module's docstring.

    Parameters
    ----------
    order : {"hybrid", "frequencies", "shrinking", "published", "argmax", "iid"}
        ``"frequencies"`` adapts them from the second sweep on, ``"shrinking"`` never does; neither
        takes Newton steps.  The others are the paper's, without shrinking: ``"published"``
        (Algorithms 2 and 3), ``"argmax"`` (the deterministic rule of Section 3, n operations per
        step: for small n) and ``"iid"`` (independent draws).
    stop : {None, "liblinear"}
        ``"liblinear"`` sets ``finished`` by liblinear's rule with the tolerance ``eps``.
    eps : float, optional
        LIBLINEAR unless given; only with ``stop``.
    frequencies : array of n positive numbers, optional
        The relative frequencies of the rows, fixed; adapted by Algorithm 2 unless given.  Only for
        the orders without shrinking.
    """

    name = "acf"
    check_cost = 1.0
    _state = (
        "v",
        "c",
        "p",
        "accumulators",
        "active",
        "resting",
        "memory",
        "word",
        "gained",
    )

    def __init__(
        self,
        problem,
        rng,
        start=None,
        order="hybrid",
        stop=None,
        eps=None,
        frequencies=None,
    ):
        super().__init__(problem, rng, start)
        _check_options(problem, order, stop, eps)
        self.plan = PUBLISHED.get(order)
        self.adapts = order != "shrinking" and frequencies is None
        self.rests = order not in PUBLISHED
        self.eps = (LIBLINEAR if eps is None else float(eps)) if stop else 0.0
        if frequencies is None:
            self.p = np.ones(problem.n)
        else:
            self.p = _checked_frequencies(frequencies, order, problem.n)
        # as printed for "argmax"; at random where they would all overflow at once
        self.accumulators = np.zeros(problem.n) if order == "argmax" else rng.random(problem.n)
        self.active, self.resting = self.rows.copy(), np.zeros(problem.n, dtype=np.uint8)
        self.word = rng.integers(2**63, size=1, dtype=np.uint64)
        self.memory = np.zeros(kernels.MEMORY)
        self.memory[kernels.SIZE] = self.rows.size
        self.memory[kernels.LOW], self.memory[kernels.HIGH] = -np.inf, np.inf
        self.memory[kernels.FULL] = float(self.rests)
        self.memory[kernels.MISSING] = np.inf
        if order == "hybrid":
            self.memory[kernels.GAIN] = np.inf  # no sweep before the first to compare it with
        self._visited = np.empty(2 * self.n_rows, dtype=np.uint32)
        self.may_turn = order == "hybrid" and not stop
        self.gained = np.zeros(SPAN + 3)  # the dual's increase, in all, after the last passes
        self.first_sigma = first_sigma(
            problem.loss, float(np.mean(self.step[self.rows])) if self.rows.size else 1.0
        )
        self.newton: ProximalPoint | None = None  # once it has turned to Newton steps

    @property
    def finished(self) -> str:
        return "liblinear" if self.memory[kernels.FINISHED] else ""

    @property
    def x(self):
        return super().x if self.newton is None else self.newton.x

    def state(self):
        if self.newton is None:
            return super().state()
        return super().state() | self.newton.state()

    def restore(self, state):
        own, rest = split_state(state)
        super().restore(rest)
        self.newton = None
        if own:
            self.newton = self._proximal()
            self.newton.restore(own)

    def _pass(self):
        if self.may_turn and self.newton is None and self._crawls():
            newton = self._proximal()
            newton.begin(self.x, self.c, self.y)
            self.newton, self.estimate = newton, math.inf
        if self.newton is None:
            self._sweep()
        else:
            self.operations += self.newton.step()
            self.c, self.y[self.rows] = self.newton.c, self.newton.y[self.rows]

    def _crawls(self) -> bool:
        if self.passes < SPAN + 3:
            return False
        brought = np.diff(self.gained)
        slow = brought[SPAN:] > CRAWL**SPAN * brought[:2]
        if not slow.all() or brought[-1] <= 0.0:
            return False
        rows = self.active[: int(self.memory[kernels.SIZE])]
        lo, hi = self.problem.loss.domain(self.problem.b[rows])
        inside = (self.y[rows] > lo) & (self.y[rows] < hi)  # at the ends the dual has no curvature
        return affordable(self.problem, rows[inside])

    def _proximal(self) -> ProximalPoint:
        """The Newton steps that it turns to."""
        weight = np.zeros(self.problem.n)
        weight[self.rows] = self.share[self.rows]
        sigma = self.first_sigma
        if not self.problem.loss.gamma:
            z = self.problem.predictions(self.x, self.c)[self.rows]
            sigma = max(sigma, sigma_with_kinks(z, self.problem.b[self.rows]))
        return ProximalPoint(self.problem, weight, sigma)

    def _planned(self) -> int:
        """How many rows of the next sweep have been put into its order: none where the kernel
        does that."""
        if self.plan is None or self.memory[kernels.FULL]:
            return 0
        return int(
            self.plan(
                self.rows, self.rows.size, self.p, self.accumulators, self._visited, self.word
            )
        )

    def _sweep(self):
        problem = self.problem
        self._refresh()
        self.memory[kernels.INTERCEPT] = self.c
        self.memory[kernels.BALANCE] = float(np.sum(self.share * self.y)) if self.rho else 0.0
        self.operations += int(
            kernels.adaptive_sweeps(
                *problem.matrix.arrays,
                self.rows,
                self.active,
                self.resting,
                self._visited,
                problem.b,
                self.share,
                self.step,
                self.p,
                self.accumulators,
                self.y,
                self.v,
                problem.loss.code,
                *problem.loss.constants,
                problem.loss.gamma,
                *self.g.arguments,
                self.rho,
                self.memory,
                self.word,
                float((self.passes + 1) * self.rows.size),
                self._planned(),
                self.adapts,
                self.rests,
                self.eps,
            )
        )
        self.c = float(self.memory[kernels.INTERCEPT])
        self.gained[:-1] = self.gained[1:]
        self.gained[-1] = self.memory[kernels.GAINED]
        if self.memory[kernels.RISEN] > 0.0:
            self.estimate = self._estimated()

    def _estimated(self) -> float:
        """The gaps that the last sweep met, and the share of y that is to go for its balance."""
        estimate = float(self.memory[kernels.MISSING] / self.memory[kernels.RISEN])
        if self.rho:
            estimate += abs(self.memory[kernels.BALANCE]) / float(self.share @ np.abs(self.y))
        return estimate


def _check_options(problem, order, stop, eps) -> None:
    if order not in ORDERS:
        raise ValueError(f"order={order!r}: not an order of rows; use one of {', '.join(ORDERS)}")
    if stop not in (None, "liblinear"):
        raise ValueError(f'stop={stop!r}: not a stopping rule; use "liblinear", or None')
    if stop and problem.loss.code > kernels.MARGIN:
        raise ValueError(
            f'stop="liblinear": there is no such rule for loss="{problem.loss.name}"; use None '
            "and the gap decides"
        )
    if eps is None:
        return
    if stop is None:
        raise ValueError(
            f'eps={eps!r}: it is the tolerance of stop="liblinear", and there is no stop; use tol '
            "for the gap, or give both"
        )
    if isinstance(eps, bool) or not (isinstance(eps, (int, float)) and 0.0 < eps < np.inf):
        raise ValueError(f"eps={eps!r}: liblinear's tolerance must be a positive number")


def _checked_frequencies(frequencies, order, n) -> np.ndarray:
    if order not in PUBLISHED:
        raise ValueError(
            f'frequencies and order="{order}": that order finds its own; use one of '
            f"{', '.join(PUBLISHED)}, or leave frequencies out"
        )
    try:
        p = np.array(frequencies, dtype=np.float64)
    except (TypeError, ValueError):
        p = None
    if p is None or p.shape != (n,):
        seen = f"{type(frequencies).__name__}" if p is None else f"an array of shape {p.shape}"
        raise ValueError(f"frequencies={seen}: give one positive number per row, {n} in all")
    wrong = np.flatnonzero(~((p > 0.0) & (p < np.inf)))
    if wrong.size:
        raise ValueError(
            f"frequencies[{wrong[0]}]={p[wrong[0]]}: each must be positive and finite, or its row "
            "would never be visited"
        )
    return p / p.max()  # only ratios count, and their sum must not overflow
