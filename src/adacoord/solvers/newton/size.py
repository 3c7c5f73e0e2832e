"""How large Newton's systems are, what counts as small, and what stands in for them costs."""

from __future__ import annotations

import math

from ...problem import Problem

#: Bytes of the largest matrix worth factorising: 16,384 rows, some minutes an iteration.
LARGEST = 2**31

#: Entries (n x d) of a problem that counts as small.
SMALL = 2**18
#: ... and with K classes, times K: Newton's iterations take a millisecond there (1,895 x 25 of 3
#: classes: 13 ms to the last digit, where L-BFGS takes 5 to 1e-4).
SMALL_CLASSES = 2**15
#: Columns of small data with zeros to be found, in one system of Newton's method.
MOST_COLUMNS = 1000
#: With kinks the system is that of the (dense) rows with a curvature where these are fewer than
#: this share of the columns.
SIDE = 0.7

#: Rows, in columns, that the factor of :mod:`.preconditioner` is made of.
SAMPLE = 8
#: Multiply-adds of BLAS in the time in which conjugate gradients handle an entry of A: for one
#: number per row (32 tables to 1e-4 and 1e-6, over the time at 20: .91 at 10, .88 at 5 and 3), for
#: the squared loss, where they have little else to do (6,000 x 350: a Gram matrix takes 14 ms, a
#: pass .5), and for several numbers, which are products of matrices themselves.
BLAS, BLAS_SQUARED, BLAS_BLOCKS = 5.0, 15.0, 10.0
#: What a pass of the squared loss takes with a float32 copy, of one without, and what the copy and
#: the residual from the data take, in such passes (900 x 9,000: 1.6, 3.2, 4.3 and 5 ms; 6,000 x
#: 350 .18, .31, .8 and .5).
SINGLE_SHARE, SINGLE_COPY = 0.5, 3.0
#: Multiply-adds of BLAS in the time in which an entry of A is copied and scaled for it.
SCALED = 30
#: The logarithm of what conjugate gradients reduce the squared residual by, to a gap of 1e-6 or so,
#: and their first passes (independent columns, 2,000 x 200, 6,000 x 350, 3,000 x 800, 900 x 9,000:
#: 10, 8, 16 and 14 passes).
EASY_NATS, EASY_FIRST = 18.0, 2.0
#: Bytes of such factors that may be held.
LARGEST_FACTORS = 2**28
#: Coefficients of several classes that a Newton step takes at once, whatever the penalty; and those
#: for which it is cheaper than L-BFGS-B from the start.
MOST_CLASSES, FEW = 2000, 300


def small(problem: Problem) -> bool:
    """Whether the problem is solved to the last digit by :mod:`.small`."""
    simple = not problem.loss.blocks and not problem.matrix.blocked
    return simple and problem.has_certificate and problem.n * problem.d <= SMALL


def small_classes(problem: Problem) -> bool:
    """Whether small data of several classes make a system of at most 400 unknowns."""
    little = problem.n * problem.d * (problem.n_classes or 1) <= SMALL_CLASSES
    simple = problem.loss.blocks and not problem.matrix.blocked
    return simple and little and system_size(problem) <= 400


def newton_on_classes(problem: Problem) -> bool:
    """Whether the coefficients of several classes are few enough for :mod:`.bounded_classes`."""
    if problem.matrix.blocked or problem.penalty.grouped or not problem.loss.simplex:
        return False
    return problem.d * (problem.n_classes or 1) <= MOST_CLASSES


def dual_side(problem: Problem) -> bool:
    """Whether the system is n x n (l2 > 0, fewer rows than columns) and not d x d."""
    strong = problem.penalty.strong_convexity > 0.0 and not problem.matrix.blocked
    return strong and not problem.loss.blocks and problem.n < problem.d


def system_size(problem: Problem) -> int:
    """Rows of the matrix to factorise."""
    if problem.loss.blocks:
        assert problem.n_classes is not None
        return (problem.d + problem.intercept) * (problem.n_classes - 1)
    if not problem.loss.differentiable:
        held = problem.matrix.is_dense and not problem.matrix.blocked
        few = held and problem.n < SIDE * problem.d
        return problem.n if few else problem.d
    return problem.n if dual_side(problem) else problem.d


def too_large(problem: Problem) -> bool:
    """Whether that matrix would be absurd."""
    return 8 * system_size(problem) ** 2 > LARGEST


def factor_rows(problem: Problem) -> int:
    """Rows that the factor of :mod:`.preconditioner` is made of."""
    # few rows have a share in many classes; and more rows are better while they cost little
    sample = SAMPLE * problem.d * (problem.n_classes or 1)
    return min(problem.n, max(sample, int(_rate(problem) * problem.n / (problem.d + SCALED))))


def factor_price(problem: Problem) -> float:
    """Passes of conjugate gradients that it costs; inf where there is none."""
    n, d = problem.n, problem.d
    fits = problem.matrix.is_dense and 8 * (problem.n_classes or 1) * d**2 <= LARGEST_FACTORS
    if not fits:
        return math.inf
    return (factor_rows(problem) * d * (d + SCALED) + d**3 / 3) / _rate(problem) / (n * d)


def easy_passes(problem: Problem) -> float:
    """Passes of conjugate gradients on the squared loss if columns were independent.

    The roots of the extreme eigenvalues are 1 +- sqrt(q) then, q = d/n (or n/d), so that the
    residual falls by sqrt(q) a pass (Marchenko and Pastur).  Of columns more than rows, which go
    without scales of their own, those that count (:attr:`.Matrix.columns_that_count`): where they
    are no more than the rows, there is no end to it.
    """
    n, d = problem.n, problem.d
    q = d / n if n >= d else n / max(n, problem.matrix.columns_that_count)
    return EASY_FIRST + EASY_NATS / max(-math.log(q), 0.05)


def _rate(problem: Problem) -> float:
    from .single import worth_it  # its kernels import Numba

    if problem.loss.blocks:
        return BLAS_BLOCKS
    if problem.loss.name != "squared":
        return BLAS
    return SINGLE_SHARE * BLAS_SQUARED if worth_it(problem) else BLAS_SQUARED
