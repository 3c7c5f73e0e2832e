r"""What theory promises: passes to a gap, from the theorems, for whoever asks before a run.

Every theorem below says that something which bounds the gap falls by the factor 1 - rate in each
iteration, in expectation, from what it is at the start.  So

    passes = log(C (P(0) - D(y^0))/eps) / (rate * iterations of a pass),    eps = tol * scale,

because log(1 - rate) <= -rate, with C and scale made of numbers at hand:

* distances to the solution are bounded by strong convexity, lambda/2 |x^0 - x*|^2 <= P(x^0) - P*
  and gamma/(2N) |y^0 - y*|^2 <= D* - D(y^0), so that a sum of them and of P(x^0) - P* and
  D* - D(y^0) is at most the largest of its weights times P(x^0) - D(y^0);
* scale is the largest of D(s phi'(0)), s = 1, 1/4, 1/16, ..., a lower bound on P*.

==========  ============================================  ==================================
solver      rate of an iteration                          source
==========  ============================================  ==================================
spdc        1/(N/m + 2R sqrt(N/(m lambda gamma)))         Zhang and Xiao 2017, Theorem 1 and
                                                          Corollary 4
... weighted  1/(N/(m (1-a)) + R_a sqrt(N/(m lambda       the same, Theorem 6 (of distances; the
            gamma)))                                      gap as in Corollary 4)
... kinked  the same with delta for a missing lambda or   the same, Corollary 5 (P - P* where
            gamma, delta = eps/C_1                        l2 = 0)
... adaptive  mu                                          Liu, Wang and So 2021, Theorem 1, or 2
                                                          with ``steps="theory2"``
adaspdc     1/(N/m + R sqrt(N/(m lambda gamma)))          Zhu and Storkey 2015, Theorem 1 (which
                                                          does not hold as it stands)
dspdc       1/(max(N, D) + 2D sqrt(N Lam/(lambda          Yu, Lin and Yang 2015
            gamma)))
sdca        1/(N + kappa)                                 Shalev-Shwartz and Zhang 2013,
                                                          Theorem 5; kinked: Theorem 2
asdca       outer eta/2, with SDCA inside                 Shalev-Shwartz and Zhang 2016
sag         min(lambda/(16 L), 1/(8N))                    Schmidt, Le Roux and Bach 2017, Theorem 1
afg         sqrt(lambda/(2L + lambda))                    Nesterov 2004, Theorem 2.2.1, and 2013
                                                          for the line search
pdhg        1 - theta                                     Chambolle and Pock 2011, Theorem 3
==========  ============================================  ==================================

with kappa = R^2/(lambda gamma).  The step sizes are the theorems'.  Practical ones, which no
theorem covers, are there because they take fewer passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem import Problem
from .registry import admit

#: Shares of phi'(0) that are tried for a dual value.
SHARES = 0.25 ** np.arange(20)


@dataclass(frozen=True)
class Curvatures:
    """Strong convexity of g and of the conjugate losses, R^2 of the longest row, and N."""

    lam: float
    gamma: float
    longest: float
    N: int

    @property
    def condition(self) -> float:
        """kappa."""
        return self.longest / (self.lam * self.gamma)


@dataclass(frozen=True)
class Promise:
    """``constant`` times the gap at the start bounds the gap, and falls by ``rate`` an iteration;
    ``extra`` passes come on top."""

    rate: float
    per_pass: float
    constant: float
    extra: float = 0.0

    def passes(self, reduction: float) -> float:
        """Passes until the gap is its start's over ``reduction``."""
        needed = max(math.log(self.constant * reduction), 0.0)
        return needed / (self.rate * self.per_pass) + self.extra


def expected_passes(problem: Problem, solver: str, tol: float = 1e-6, **options: Any) -> int | None:
    """Passes after which the relative gap is at most ``tol``, in expectation, by theory.

    An upper bound, and a loose one: SPDC takes a third to a sixth of it, with practical steps
    less.  It costs two products with A, and what the solver's set-up does.

    Parameters
    ----------
    problem : Problem
    solver : str
        Any of :func:`adacoord.solve` but ``"auto"``.
    tol : float
        The relative gap, positive.
    **options
        The solver's own, as in :func:`adacoord.solve`.  ``steps`` and ``step`` make no difference
        (but for ``"theory2"``): the promise is that of the step sizes which the theorem is about.

    Returns
    -------
    int or None
        None where there is no theorem: for a solver without one (``"apdc"``, ``"acf"``,
        ``"newton"``, ``"lbfgs"``, ...), and for a problem that its theorem does not cover (an
        intercept, which has no penalty, with any but ``"afg"``; a kinked loss or no l2 with most;
        Poisson).  Not an error: a table of solvers has a blank there.
    """
    if isinstance(tol, bool) or not (
        isinstance(tol, (int, float, np.number)) and 0.0 < tol < math.inf
    ):
        raise ValueError(f"tol={tol!r}: the relative gap to reach must be a positive number")
    entry = admit(problem, solver, options)
    theorem = THEOREMS.get(solver)
    if theorem is None or not problem.has_certificate:
        return None
    if problem.intercept and solver != "afg":
        return None
    made = entry.load()(problem, np.random.Generator(np.random.PCG64(0)), None, **options)
    if not made.rows.size:
        return 0
    passes = theorem(problem, made, tol * _scale(problem))
    return None if passes is None else math.ceil(passes)


# ---- what all of them need -----------------------------------------------------------------------


def _scale(problem: Problem) -> float:
    """A lower bound on what the gap is divided by, max(|P|, |D|, 1e-12 |P(0)|)."""
    slope = problem.loss.derivative(np.zeros(problem.y_shape), problem.b)
    start = problem.loss.start(problem.b)
    values = [problem.dual(problem.feasible_dual(start)[0])]
    if not problem.loss.blocks:  # between 0 and phi'(0); u follows by itself
        y, u = problem.feasible_dual(slope)
        values += [problem._dual(s * y, s * u) for s in SHARES]
    return max(max(values), 1e-12 * abs(problem.null_value), np.finfo(float).tiny)


def _start_gap(problem: Problem, delta_x: float = 0.0, delta_y: float = 0.0) -> float:
    """P(0) - D(y^0) of the problem with (delta_x/2)|x|^2 and (delta_y/2) v^2 added."""
    y = problem.loss.start(problem.b)
    conjugate = problem._mean(problem.loss.conjugate(y, problem.b))
    if delta_y > 0.0:
        conjugate += 0.5 * delta_y * problem._mean(y * y)
    g = problem.penalty.plus_quadratic(delta_x)
    return problem.null_value + conjugate + g.conjugate(-problem.average(y))


def _longest(made) -> float:
    """R^2 of the rows as they are weighted."""
    norms = made.problem.matrix.squared_norms[made.rows]
    return float(np.max(made.weight[made.rows] * norms))


def _smooth(problem: Problem, made) -> Curvatures | None:
    lam, gamma = problem.penalty.strong_convexity, problem.loss.gamma
    if lam == 0.0 or gamma == 0.0:
        return None
    return Curvatures(lam, gamma, _longest(made), made.n_rows)


def _saddle(c: Curvatures, tau: float, sigma: float, weight: float) -> float:
    """The constant of Corollary 4; ``weight`` is N/m, that of the dual part.

    Of P(x^0) - P*: itself, and 1/(2 tau) + lambda/2 times 2/lambda.  Of D* - D(y^0): N/m times
    itself, and 1/(2 sigma) + gamma/2 (the added term included) times 2/gamma.
    """
    primal = 2.0 + 1.0 / (tau * c.lam)
    dual = weight * (2.0 + 1.0 / (sigma * c.gamma))
    return (1.0 + c.condition) * max(primal, dual)


# ---- the theorems --------------------------------------------------------------------------------


def _spdc(problem: Problem, made, eps: float) -> float | None:
    if problem.loss.blocks or made.n_blocks < made.n_rows:  # its theorems are about single rows
        return None
    c, delta_x, delta_y = _perturbed(problem, made, eps)
    if c is None:
        return None
    eps = eps if delta_x == delta_y == 0.0 else 0.5 * eps
    steps, m = _spdc_steps(made, c), made.batch_size
    constant = _saddle(c, steps.tau, float(steps.sigma.min()), c.N / m)
    promise = Promise(steps.rate, c.N / m, constant)
    return promise.passes(_start_gap(problem, delta_x, delta_y) / eps)


def _perturbed(problem: Problem, made, eps: float) -> tuple[Curvatures | None, float, float]:
    """Corollary 5: the curvatures with delta = eps/C_1 where there is none, and both deltas.

    C_1 = 2(|x*|^2 + G^2): |x*|_2 <= |x*|_1 <= P(0)/l1, and G is the largest slope of the losses.
    """
    lam, gamma = problem.penalty.strong_convexity, problem.loss.gamma
    cost = 0.0
    if lam == 0.0:
        cost += problem.penalty.reach(problem.null_value) ** 2
    if gamma == 0.0:
        cost += float(np.max(np.square(problem.loss.domain(problem.b))))
    if not math.isfinite(cost):  # Poisson: neither smooth nor Lipschitz
        return None, 0.0, 0.0
    delta = eps / (2.0 * cost) if cost else 0.0
    delta_x, delta_y = delta * (lam == 0.0), delta * (gamma == 0.0)
    c = Curvatures(lam + delta_x, gamma + delta_y, _longest(made), made.n_rows)
    return c, delta_x, delta_y


def _spdc_steps(made, c: Curvatures):
    from .primal_dual.spdc_steps import optimal_alpha, uniform_steps, weighted_steps

    if made.ais is not None:
        rule = made.rule if made.rule == "theory2" else "theory"
        return made.ais.steps(rule, made.norms, made.problem.d, c.lam, c.gamma)
    alpha = made.alpha
    if made.sampling == "weighted" and (c.lam, c.gamma) != made._curvatures():
        alpha = optimal_alpha(made.norms, c.lam, c.gamma)
    if not alpha:
        return uniform_steps(made.norms, made.batch_size, c.lam, c.gamma)
    return weighted_steps(made.norms, made.sampler.p, made.batch_size, alpha, c.lam, c.gamma)


def _adaspdc(problem: Problem, made, eps: float) -> float | None:
    if _smooth(problem, made) is None:
        return None
    N, m, R = made.n_blocks, made.blocks, float(made.radius.max())
    c = Curvatures(problem.penalty.strong_convexity, problem.loss.gamma, R * R, N)
    root = math.sqrt(N / (m * c.lam * c.gamma))
    tau, sigma = 1.0 / (2.0 * R * root * c.lam), c.lam * root / (2.0 * R)
    promise = Promise(1.0 / (N / m + R * root), N / m, _saddle(c, tau, sigma, N / m))
    return promise.passes(_start_gap(problem) / eps)


def _dspdc(problem: Problem, made, eps: float) -> float | None:
    c = _smooth(problem, made)
    if c is None:
        return None
    N, D = made.matrix.shape
    largest = float(made.row_max.max())
    m = 1.0 if made.sampling == "uniform" else 1.0 - max(made.delta_range)
    root = math.sqrt(N / (c.lam * c.gamma)) * largest
    tau, sigma = m / (2.0 * root * c.lam), m * N / (2.0 * D * root * c.gamma)
    rate = 1.0 / (max(N, D) + 2.0 * D / m * root)
    # an iteration touches a row and a column: 1/N + 1/D of the entries
    promise = Promise(rate, N * D / (N + D), max(N, D) * _saddle(c, tau, sigma, 1.0))
    return promise.passes(_start_gap(problem) / eps)


def _sdca(problem: Problem, made, eps: float) -> float | None:
    lam, gamma, N = problem.penalty.strong_convexity, problem.loss.gamma, made.n_rows
    if gamma > 0.0:
        iterations = N + _longest(made) / (lam * gamma)
        return Promise(1.0 / iterations, N, iterations).passes(_start_gap(problem) / eps)
    slope = float(np.max(np.square(problem.loss.domain(problem.b)))) * _longest(made)
    if not math.isfinite(slope):
        return None
    # Theorem 2, which supposes phi(0) <= 1; the mean of phi(0) takes the place of that 1
    first = N * max(math.log(0.5 * lam * N * problem.null_value / slope), 0.0)
    return (first + N + 20.0 * slope / (lam * eps)) / N


def _asdca(problem: Problem, made, eps: float) -> float | None:
    c = _smooth(problem, made)
    if c is None:
        return None
    if not made.kappa:
        return _sdca(problem, made, eps)
    kappa, eta = made.kappa, made.eta
    first = (1.0 + eta**-2) * (1.0 + c.condition) * _start_gap(problem)
    outer = 1.0 + 2.0 / eta * max(math.log(first / eps), 0.0)
    # an inner problem starts at most 36 kappa/lambda xi_{t-3} + eps_{t-1} away from its solution
    inner = c.N + c.longest / (c.gamma * (c.lam + kappa))
    keep = 1.0 - 0.5 * eta
    start = 72.0 * kappa / c.lam * (1.0 + eta**-2) / (eta * keep**2) + 1.0 / keep
    return outer * inner * math.log(inner * start) / c.N


def _sag(problem: Problem, made, eps: float) -> float | None:
    c = _smooth(problem, made)
    if c is None:
        return None
    L = c.longest / c.gamma + c.lam
    # C_0 = P(x^0) - P* + (4L/N)|x^0 - x*|^2 + (mean |f_i'(x*)|^2)/(16 L), where f_i'(x*) is at most
    # f_i'(0) and L |x*| long
    slopes = problem.loss.derivative(np.zeros(problem.n), problem.b)
    squares = problem._mean(slopes**2 * problem.matrix.squared_norms)
    gap = _start_gap(problem)
    constant = (
        1.5 + 8.0 * L / (c.N * c.lam) + (2.0 * squares / gap + 4.0 * L * L / c.lam) / (16.0 * L)
    )
    rate = min(c.lam / (16.0 * L), 1.0 / (8.0 * c.N))
    return Promise(rate, c.N, (1.0 + c.condition) * constant).passes(gap / eps)


def _afg(problem: Problem, made, eps: float) -> float | None:
    from .baselines.afg import LOWER, RAISE

    c = _smooth(problem, made)
    if c is None:
        return None
    # |A|^2/n is at most the mean of |a_i|^2; the guess at it is never more than RAISE times that
    smooth = problem._mean(problem.matrix.squared_norms) / c.gamma
    rate = math.sqrt(c.lam / (RAISE * smooth + c.lam))
    constant = (1.0 + smooth / c.lam) * (1.0 + made.curvature / c.lam)
    rejected = math.log(1.0 / LOWER) / math.log(RAISE)
    first = max(math.log(RAISE * smooth / made.guess, RAISE), 0.0)
    promise = Promise(rate, 1.0 / (2.0 * (1.0 + rejected)), constant, 2.0 * first)
    return promise.passes((problem.null_value - _scale(problem)) / eps)


def _pdhg(problem: Problem, made, eps: float) -> float | None:
    c = _smooth(problem, made)
    if c is None:
        return None
    promise = Promise(1.0 - made.theta, 0.5, _saddle(c, made.tau, made.s, 1.0))
    return promise.passes(_start_gap(problem) / eps)


#: What each solver's theorem says: (problem, solver, eps) -> passes, or None.
THEOREMS: dict[str, Callable[[Problem, Any, float], float | None]] = {
    "spdc": _spdc,
    "adaspdc": _adaspdc,
    "dspdc": _dspdc,
    "sdca": _sdca,
    "asdca": _asdca,
    "sag": _sag,
    "afg": _afg,
    "pdhg": _pdhg,
}
