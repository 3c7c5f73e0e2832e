"""What ``auto`` takes for data in blocks of rows, and when blocks are worth it.

On blocks, work is counted in passes over the data and in rounds: every call of a block costs some
tens of microseconds, or milliseconds on a cluster, so that no method of single rows is among them
but the rounds of dual ascent, which work on a block for a while before they talk.
"""

from __future__ import annotations

from ..problem import Problem
from ..solvers.newton.dual_proximal import COLUMNS
from ..solvers.registry import Entry, by_columns, kinked_program, newton_can, newton_cg_can
from .constants import SHARED
from .rule import cg_time, coordinate_time, newton_time

#: Bytes of data below which one thread is as fast as several.
WORTH = 2**22


def choose_blocks(problem: Problem) -> str:
    """The solver that ``auto`` takes for data in blocks of rows.

    Working sets for l1 or x >= 0 and a loss with a continuous slope; for l2 alone (or nothing)
    Newton's method by Cholesky or conjugate gradients, whichever is expected to take less time; for
    kinks Newton's method where the Gram matrix of all columns is affordable (with l1 alone an
    interior point), and rounds of dual ascent elsewhere.
    """
    penalty, loss = problem.penalty, problem.loss
    nothing = penalty.quadratic and not problem.has_certificate and not loss.differentiable
    if not penalty.quadratic or nothing:
        if by_columns(problem):
            return "acf"
        if kinked_program(problem) and problem.has_certificate:
            return "newton"
        if penalty.strong_convexity > 0.0 and not loss.blocks:
            return "dcd"
        raise ValueError(
            f'loss="{loss.name}" with {penalty.words}: no method takes this on data in blocks of '
            f"rows; {_remedy(problem)}, or give the data as one array"
        )
    if not loss.differentiable:
        return "newton" if problem.d <= COLUMNS and newton_can(problem) else "dcd"
    if not newton_cg_can(problem):
        return "dcd"
    if newton_can(problem) and newton_time(problem) <= cg_time(problem):
        return "newton"
    return "newton-cg"


def _remedy(problem: Problem) -> str:
    """What to change of a problem that no method takes in blocks."""
    loss = problem.loss
    if loss.blocks:
        return 'use l2 alone, or a model for each class (ac.ERMClassifier(loss="logistic"))'
    if loss.differentiable:
        return "add a small penalty such as l1=1e-8"
    smooth = "smooth_hinge" if loss.task == "classification" else "huber"
    return f'use l2 > 0, or a smooth loss such as "{smooth}"'


def worth_blocks(problem: Problem, entry: Entry, named: bool) -> bool:
    """Whether a problem in memory that ``entry`` solves is cut into blocks for several threads.

    Decided by the data, never by the number of threads.  Small data are not, nor what has no form
    for blocks.  Two forms are only for who asks for them by name: rounds of dual ascent, since
    shrinking and Newton steps of the serial method beat two threads of them, and working sets of
    sparse columns, whose Gram matrix is dense (20,000 x 3,000 of 60 entries a row, logistic, a
    support of 2,300: 8 s for .2).  Where dual ascent is the serial method, it makes way for
    conjugate gradients that two threads are expected to end sooner.
    """
    size = problem.matrix.nnz * problem.matrix.dtype.itemsize
    if size < WORTH:
        return False
    if entry.row_blocks:
        return True
    if entry.in_blocks is None:
        return False
    form = entry.in_blocks.cls
    if form == "DualRounds" and not named:
        can = problem.penalty.quadratic and newton_cg_can(problem)
        return can and SHARED * cg_time(problem) < coordinate_time(problem)
    return named or not (form == "BlockWorkingSet" and not problem.matrix.is_dense)
