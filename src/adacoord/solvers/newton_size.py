"""How large Newton's systems are, and whether they are worth it: NumPy only, for the registry."""

from __future__ import annotations

from ..problem import Problem

#: Bytes of the largest matrix worth factorising: 16,384 rows, some minutes an iteration.
LARGEST = 2**31


def dual_side(problem: Problem) -> bool:
    """Whether the system is n x n (l2 > 0, fewer rows than columns) and not d x d."""
    return not problem.loss.blocks and problem.penalty.l2 > 0.0 and problem.n < problem.d


def system_size(problem: Problem) -> int:
    """Rows of the matrix to factorise."""
    if problem.loss.blocks:
        return (problem.d + problem.intercept) * (problem.n_classes - 1)
    return problem.n if dual_side(problem) else problem.d


def too_large(problem: Problem) -> bool:
    """Whether that matrix would be absurd."""
    return 8 * system_size(problem) ** 2 > LARGEST


def affordable(problem: Problem) -> bool:
    """Placeholder."""
    return system_size(problem) <= 200
