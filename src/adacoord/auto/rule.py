"""What ``auto`` takes: one rule over the expected work."""

from __future__ import annotations

import numpy as np

from ..problem import Problem
from ..solvers.newton.size import dual_side, small, small_system, system_size
from ..solvers.registry import lbfgs_can, newton_can, nonnegative_least_squares
from .constants import (
    BADLY_CONDITIONED,
    BLAS_FLOP,
    BLOCK_ITERATIONS,
    CALLS,
    EASY,
    EASY_PASSES,
    EASY_WITH_KINKS,
    ENTRY,
    ITERATIONS,
    MEET_CLASSIFICATION,
    MEET_REGRESSION,
    PASSES_PER_ROOT,
    ROW,
    SPARSE_PAIR,
    WELL_CONDITIONED,
    WIDE_PASSES_PER_ROOT,
)


def choose(problem: Problem) -> str:
    """The solver ``auto`` takes.

    Newton's method for small data, and where its systems are cheap (:func:`newton_is_cheaper`).
    ACF on working sets of columns wherever there is an l1 and a smooth loss, unless l2 makes the
    problem well-conditioned and outweighs l1: then dual ascent.  rcv1.subset, a9a and leukemia,
    squared and logistic, l1 = l1_max/10 and /100, l2 = l1/100 and l1, to 1e-6: ACF is 1.6 to 100
    times faster than APDC on all 24; 0.6 to 200 times as fast as dual ascent, behind it by more
    than a tenth only on a9a (161 ms against 97, squared, and 280 against 242, logistic).

    ACF on rows for l2 alone, wherever duals come to rest at bounds, Newton steps are cheap or the
    problem is well-conditioned; APDC for what is left.  Seconds to a relative gap of 1e-6, ACF /
    APDC (unit rows; one run on a busy machine: compare, do not quote):

    ======================  ======================================================================
    few columns             a9a, C = 100: hinge .39/1.66, logistic .29/.66, squared .11/.89
    more columns than rows  rcv1.subset: hinge .46/2.5 (C = 1), 1.5/16 (100); logistic .53/.91 (100)
    ... regression          rcv1.subset, squared: .45/1.3 (C = 1), 2.7/2.3 (10), 10 or more/5 (100)
    tall, many columns      mnist: hinge .37/1.3 (C = 1), logistic .36/.68 (1), 3.8/1.5 (100)
    ======================  ======================================================================

    APDC needs about the square root of the passes of dual ascent, at two to three times their
    cost (five, with an l1).  Poisson's dual is a barrier, which only dual ascent copes with.
    What is wrong all the same, :mod:`.fallback` puts right.
    """
    if small(problem) or nonnegative_least_squares(problem):
        return "newton"
    if problem.loss.blocks and newton_can(problem) and small_system(problem):
        return "newton"
    return choose_large(problem)


def choose_large(problem: Problem) -> str:
    """The same without regard to how small the data are: what goes on where that is stuck."""
    from ..solvers.newton import dual_proximal  # its kernels import Numba

    penalty, gamma = problem.penalty, problem.loss.gamma
    if newton_can(problem) and (not problem.has_certificate or newton_is_cheaper(problem)):
        return "newton"
    if not problem.has_certificate and lbfgs_can(problem):
        return "lbfgs"
    if problem.loss.blocks:
        return "apdc"
    good, classifies = conditioning(problem), problem.loss.task == "classification"
    if penalty.l1 > 0.0 and gamma > 0.0:
        rows = float(np.mean(problem.matrix.squared_norms)) ** 0.5
        outweighs = penalty.l1 * rows <= penalty.strong_convexity
        return "dcd" if good > WELL_CONDITIONED and outweighs else "acf"
    if penalty.strong_convexity == 0.0:
        return "apdc"
    if penalty.sparse:
        if problem.loss.name == "poisson":
            return "dcd"
        easy = good > (EASY_WITH_KINKS if gamma == 0.0 and classifies else EASY)
        return ("dcd" if gamma else "acf") if easy else "apdc"
    easy = good > (EASY if gamma else EASY_WITH_KINKS)
    if easy or not rows_meet(problem) or problem.loss.name == "poisson":
        return "acf"
    # with kinks few rows keep their curvature, but far from the optimum they are too many
    turns = (
        dual_proximal.within_reach(problem)
        if good > BADLY_CONDITIONED
        else (dual_proximal.affordable(problem, problem.active))
    )
    return "acf" if turns else "apdc"


def conditioning(problem: Problem) -> float:
    """n l2 gamma/R^2, with the mean R^2 of the rows, and gamma = 1 for losses with kinks."""
    squares = float(np.mean(problem.matrix.squared_norms)) or 1.0
    return problem.n * problem.penalty.strong_convexity * (problem.loss.gamma or 1.0) / squares


def rows_meet(problem: Problem) -> bool:
    """Whether rows have columns in common; where they have not, dual ascent needs few passes.

    Margins put up with more of it than residuals: most duals of a classifier come to rest.
    """
    classifies = problem.loss.task == "classification"
    return problem.n >= (MEET_CLASSIFICATION if classifies else MEET_REGRESSION) * problem.d


def newton_time(problem: Problem) -> float:
    """Nanoseconds that Newton's method may take."""
    n, nnz = problem.n, problem.matrix.nnz
    size, k = system_size(problem), problem.n_classes or 1
    if problem.loss.blocks:
        gram = BLAS_FLOP * n * (size**2 + k * problem.d**2) / 2.0
    elif problem.matrix.is_dense:
        gram = BLAS_FLOP * (n * problem.d * size) / 2.0
    else:  # each pair of entries of a row (or, n x n, of a column), at its average length
        gram = SPARSE_PAIR * nnz * (1.0 + nnz / (problem.d if dual_side(problem) else n)) / 2.0
    each = BLAS_FLOP * size**3 / 6.0 + ENTRY * k * nnz + CALLS
    if problem.loss.name == "squared":
        return gram + each
    if dual_side(problem):
        return gram + each * ITERATIONS
    return (gram + each) * (BLOCK_ITERATIONS if problem.loss.blocks else ITERATIONS)


def newton_is_cheaper(problem: Problem) -> bool:
    """Whether Newton's method is expected to take less than coordinate methods, in nanoseconds.

    Newton took 1-15 iterations on the data below (one factorisation for the squared loss); the
    others need 10 passes for a well-conditioned problem and more as kappa = R^2/(n l2 gamma) grows:
    apdc at 1e-6 took 12, 21, 36, 48, 116 and 306 passes at kappa = 3, 25, 100, 750, 750 and 3000
    (a9a, gaussian, breast_cancer, digits); rows of n < d hardly meet, and then it is fewer.

    Seconds of the faster of apdc and dcd over newton's at 1e-6, l2 = 10/n, 1/n and .01/n, the
    best of one or two runs on a busy machine (>: neither was there yet; -: not measured warm).
    The constants above were fitted to these same runs:

    ====================  ==================  ==================  ============================
    logistic, intercept   n x d               apdc or dcd/newton  taken
    ====================  ==================  ==================  ============================
    breast_cancer         569 x 30            > 19, > 23, > 34    newton
    ... standardised      569 x 30            .5, 1.3, 3.2        newton
    digits, odd or even   1797 x 64           4.4, 12, > 16       newton
    a9a                   32,561 x 123        1.3, 2.4, > 4       newton
    w8a                   49,749 x 300        .4, 1.4, 2.7        newton
    covtype               581,012 x 54        2.0, 2.3, > 4       newton
    leukemia              72 x 7,129          -, .35, .44         others, newton, newton
    rcv1, 500 rows        500 x 47,236        .58, .36, .20       others
    rcv1, 1500 rows       1,500 x 47,236      .04, .03, .03       others
    gaussian              8,000 x 1,000       .16, .20, .72       others
    ====================  ==================  ==================  ============================
    """
    n, nnz, k = problem.n, problem.matrix.nnz, problem.n_classes or 1
    kappa = 1.0 / max(conditioning(problem), 1e-300)
    per_root = WIDE_PASSES_PER_ROOT if n < problem.d else PASSES_PER_ROOT
    passes = EASY_PASSES + per_root * kappa**0.5
    return newton_time(problem) <= passes * (ROW * k * n + ENTRY * k * nnz + CALLS)
