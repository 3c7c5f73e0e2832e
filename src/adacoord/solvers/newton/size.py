"""How large Newton's systems are, and what counts as small."""

from __future__ import annotations

from ...problem import Problem

#: Bytes of the largest matrix worth factorising: 16,384 rows, some minutes an iteration.
LARGEST = 2**31

#: Entries (n x d) of a problem that counts as small.
SMALL = 2**18
#: ... and with K classes, times K: Newton's iterations take a millisecond there (1,895 x 25 of 3
#: classes: 13 ms to the last digit, where L-BFGS takes 5 to 1e-4).
SMALL_CLASSES = 2**15
#: With kinks the system is that of the (dense) rows with a curvature where these are fewer than
#: this share of the columns.
SIDE = 0.7

#: Coefficients of several classes that a Newton step takes at once, whatever the penalty.
MOST_CLASSES = 2000


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
