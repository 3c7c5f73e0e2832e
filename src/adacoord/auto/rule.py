"""What ``auto`` takes: one rule over the expected work."""

from __future__ import annotations

import numpy as np

from ..kernels.codes import MARGIN, QUADRATIC
from ..problem import Problem
from ..solvers.newton.size import (
    FEW,
    MOST_COLUMNS,
    SINGLE_COPY,
    SINGLE_SHARE,
    SMALL,
    dual_side,
    easy_passes,
    factor_price,
    newton_on_classes,
    small,
    small_classes,
    system_size,
)
from ..solvers.registry import (
    able_to_extend,
    by_columns,
    classes_by_columns,
    extended,
    joint,
    kinked_program,
    lasso,
    lbfgs_can,
    newton_can,
    newton_cg_can,
    nonnegative_least_squares,
)
from .constants import (
    ACF_DENSE,
    ACF_FIRST,
    ACF_PER_KAPPA,
    ACF_QUADRATIC_ROW,
    ACF_ROW,
    ACF_SPARSE,
    APDC_DENSE,
    APDC_FIRST,
    APDC_ROW,
    APDC_SPARSE,
    BADLY_CONDITIONED,
    BLAS_FLOP,
    BLOCK_ITERATIONS,
    BLOCK_PAIR,
    CALLS,
    CG_CALLS,
    CG_FIRST,
    CG_MOST,
    CG_MOST_WIDE,
    CG_PER_ROOT,
    CLASS_CALLS,
    CLASS_ENTRY,
    CLASS_LOSS,
    CLASS_PASSES,
    CLASS_STEPS,
    CLASS_STEPS_AFTER,
    COLUMN_CALLS,
    COLUMN_PASSES,
    EASY,
    EASY_PASSES,
    EASY_WITH_KINKS,
    HARD,
    INTERIOR_STEPS,
    ITERATIONS,
    KINK_SHARE,
    KINK_STEPS,
    LARGE_FLOP,
    LITTLE,
    MEET_CLASSIFICATION,
    MEET_REGRESSION,
    MEET_SPARSE_CLASSIFICATION,
    PAIR,
    PASSES_PER_ROOT,
    PROGRAM_PASSES,
    PROGRAM_PER_ROOT,
    QUASI_CALLS,
    QUASI_CLASS,
    QUASI_FIRST,
    QUASI_ITERATIONS,
    QUASI_MOST,
    QUASI_PAIR,
    QUASI_PER_ROOT,
    ROW_LOSS,
    SHORT_ROWS,
    SMALL_CALLS,
    SMALL_ROW,
    SPARSE_APART_CG_PER_ROOT,
    SPARSE_BLOCK_CG_PER_ROOT,
    SPARSE_BLOCK_PAIR,
    SPARSE_CG_FIRST,
    SPARSE_CG_MOST,
    SPARSE_CG_PER_ROOT,
    SPARSE_PAIR,
    SPARSE_PRODUCTS,
    SQUARED_PAIR,
    THIN,
    WELL_CONDITIONED,
    WIDE_EASY,
    WIDE_MOST,
    WIDE_MOST_CLASSES,
    WIDE_PASSES_PER_ROOT,
)


def choose(problem: Problem) -> str:
    """The solver ``auto`` takes.

    Newton's method for small data; of Newton's method, conjugate gradients and coordinates the one
    that is expected to take the least time (:func:`newton_time`, :func:`cg_time`,
    :func:`coordinate_time`) for l2 alone, or no penalty.  Of the coordinate methods then:

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

    Weights and bounds of single columns, and offsets of margins, where no change of variables takes
    them away: the one method that takes them (:func:`able_to_extend`).  The same for x >= 0 of
    several classes, where the coefficients are few.  (11 random problems that APDC left at gaps of
    2e-6 to 1 after 1,000 passes: 10 of them to tol in 2 to 38.)

    APDC needs about the square root of the passes of dual ascent, at two to three times their
    cost (five, with an l1).  The dual of a log link is a barrier, which only dual ascent
    copes with.  What is wrong all the same, :mod:`.fallback` puts right.
    """
    problem = problem.reduction.problem  # as it is solved
    if joint(problem):
        return "acf"
    if problem.loss.blocks and classes_by_columns(problem):
        return "lbfgs" if classes_are_few(problem) else "acf"
    if extended(problem):
        return able_to_extend(problem)
    if problem.matrix.blocked:
        from .scale import choose_blocks

        return choose_blocks(problem)
    if small(problem):
        if descent_is_faster(problem):
            return "acf"
        return "newton-cg" if cg_is_faster(problem) else "newton"
    if nonnegative_least_squares(problem):
        return "newton"
    if kinked_program(problem) and interior_pays(problem):
        return "newton"
    little = problem.n * problem.d <= SMALL and not problem.has_certificate
    if (little or small_classes(problem)) and newton_can(problem):  # to the last digit, too
        return "newton"
    return choose_large(problem)


def choose_large(problem: Problem) -> str:
    """The same without regard to how small the data are: what goes on where that is stuck."""
    times = {}
    if newton_can(problem):
        times["newton"] = newton_time(problem)
    if dense_classes(problem):
        times["lbfgs"] = quasi_newton_time(problem)
    elif newton_cg_can(problem):
        times["newton-cg"] = cg_time(problem)
    best = min(times, key=times.__getitem__, default="")
    if best and (not problem.has_certificate or times[best] <= coordinate_time(problem)):
        return best
    return coordinate_method(problem)


def coordinate_method(problem: Problem) -> str:
    """The method of coordinates that ``auto`` takes."""
    from ..solvers.newton import dual_proximal  # its kernels import Numba

    penalty, gamma = problem.penalty, problem.loss.gamma
    if problem.loss.blocks:
        return "lbfgs" if newton_on_classes(problem) and not penalty.quadratic else "apdc"
    good, classifies = conditioning(problem), problem.loss.task == "classification"
    if by_columns(problem):
        rows = problem.matrix.mean_square**0.5
        outweighs = 0.0 < penalty.l1 * rows <= penalty.strong_convexity
        ascend = good > WELL_CONDITIONED and outweighs and not problem.loss.steep
        return "dcd" if ascend else "acf"
    if penalty.strong_convexity == 0.0:
        return "apdc"
    if penalty.sparse:
        if problem.loss.steep:  # and x >= 0
            return "dcd"
        easy = good > (EASY_WITH_KINKS if gamma == 0.0 and classifies else EASY)
        return ("dcd" if gamma else "acf") if easy else "apdc"
    easy = good > (EASY if gamma else EASY_WITH_KINKS)
    if easy or not rows_meet(problem) or problem.loss.steep:
        return "acf"
    # with kinks few rows keep their curvature, but far from the optimum they are too many
    turns = (
        dual_proximal.within_reach(problem)
        if good > BADLY_CONDITIONED
        else (dual_proximal.affordable(problem, problem.active))
    )
    return "acf" if turns else "apdc"


def interior_pays(problem: Problem) -> bool:
    """Whether some tens of Gram matrices take less time than the passes of APDC with an l1."""
    n, d, nnz = problem.n, problem.d, problem.matrix.nnz
    dense = problem.matrix.is_dense
    a_pass = (APDC_DENSE if dense else APDC_SPARSE) * nnz + APDC_ROW * n
    passes = APDC_FIRST + PROGRAM_PER_ROOT * kappa(problem) ** 0.5 * (d / n) ** 0.25
    return interior_time(problem) <= min(passes, PROGRAM_PASSES) * a_pass


def interior_time(problem: Problem) -> float:
    """Nanoseconds that an interior point may take."""
    n, d, nnz = problem.n, problem.d, problem.matrix.nnz
    dense = problem.matrix.is_dense
    size = min(n, d)  # of the system, which is on the smaller side
    pairs = nnz * nnz / max(n, d) / 2.0
    gram = BLAS_FLOP * n * d * (size + SHORT_ROWS) / 2.0 if dense else SPARSE_PAIR * pairs
    products = 3.0 * (PAIR if dense else SPARSE_PRODUCTS) * nnz
    return INTERIOR_STEPS * (gram + LARGE_FLOP * size**3 / 3.0 + products + CALLS)


def conditioning(problem: Problem) -> float:
    """n l2 gamma/R^2, with the mean R^2 of the rows, and gamma = 1 for losses with kinks."""
    squares = problem.matrix.mean_square or 1.0
    return problem.n * problem.penalty.strong_convexity * (problem.loss.gamma or 1.0) / squares


def rows_meet(problem: Problem) -> bool:
    """Whether rows have columns in common; where they have not, dual ascent needs few passes.

    Margins put up with more of it than residuals: most duals of a classifier come to rest.
    """
    if problem.loss.task != "classification":
        return problem.n >= MEET_REGRESSION * problem.matrix.columns_that_count
    dense = problem.matrix.is_dense
    return problem.n >= (MEET_CLASSIFICATION if dense else MEET_SPARSE_CLASSIFICATION) * problem.d


def kappa(problem: Problem) -> float:
    """R^2/(n l2 gamma), which the passes of most methods go by."""
    return 1.0 / max(conditioning(problem), 1e-300)


def newton_time(problem: Problem) -> float:
    """Nanoseconds that Newton's method may take; inf for kinks and sparse data, which is ACF's.

    Iterations of the Gram matrix (or the part of it that has a curvature), a factorisation and
    products with A; once for the squared loss, and n x n the Gram matrix once.
    """
    n, d, nnz = problem.n, problem.d, problem.matrix.nnz
    size, k, dense = system_size(problem), problem.n_classes or 1, problem.matrix.is_dense
    factor = BLAS_FLOP * size**3 / 3.0
    if problem.loss.blocks:
        gram = BLAS_FLOP * n * (size**2 + k * d**2) / 2.0
        return BLOCK_ITERATIONS * (gram + factor + _block_products(problem) + CALLS)
    products = (PAIR if dense else SPARSE_PRODUCTS) * nnz + ROW_LOSS * n
    if not problem.loss.differentiable:
        if not dense:
            return np.inf
        curved = KINK_SHARE * n
        gram = BLAS_FLOP * curved * d * min(curved, d) / 2.0
        factor = BLAS_FLOP * min(curved, d) ** 3 / 3.0
        return KINK_STEPS * (gram + factor + 2.0 * products + CALLS)
    if dense:
        gram = BLAS_FLOP * n * d * (size + SHORT_ROWS) / 2.0
    else:  # each pair of entries of a row (or, n x n, of a column), at its average length
        gram = SPARSE_PAIR * nnz * (1.0 + nnz / (d if dual_side(problem) else n)) / 2.0
    each = factor + products + CALLS
    if problem.loss.name == "squared":
        return gram + each
    if dual_side(problem):
        return gram + each * ITERATIONS
    return (gram + each) * ITERATIONS


def cg_is_faster(problem: Problem) -> bool:
    """Whether conjugate gradients are expected to leave Newton's method behind on small data.

    That goes to the last digit there (:mod:`adacoord.solvers.newton.dense`), a Gram matrix at a
    time: for dense rows that are neither few nor short, and losses that no step ends on.  Random
    tables to 1e-4, Newton / conjugate gradients, ms: logistic 2,659 x 98 8.7/3.7, 803 x 128
    5.3/3.2; Poisson 2,549 x 96 6.6/2.8, 750 x 35 1.45/1.44.
    """
    ends = problem.loss.code in (QUADRATIC, MARGIN)
    little = problem.n * problem.d <= LITTLE
    if ends or not problem.matrix.is_dense or little or not newton_cg_can(problem):
        return False
    return cg_time(problem) < ITERATIONS * small_step(problem)


def descent_is_faster(problem: Problem) -> bool:
    """Whether small data are left to descent on columns, which ends at ``tol``, where Newton's
    method on active sets ends at the last digit.

    For least squares with an l1 wherever entries are not very few; with x >= 0 alone nowhere: one
    Gram matrix does.  For other losses where its passes take less time than ITERATIONS of Newton's,
    or columns are too many for that (216 drawn tables of 2^13 to 2^18 numbers, l1_max/3 to /300,
    four losses: geometric mean .60 on those that one was tuned on, .75 on others).
    """
    if not by_columns(problem):
        return False
    if problem.d > MOST_COLUMNS:
        return True
    if problem.loss.name == "squared":
        return problem.penalty.has_threshold and lasso(problem)
    entry = PAIR if problem.matrix.is_dense else SPARSE_PRODUCTS
    a_pass = entry * problem.matrix.nnz + COLUMN_CALLS
    return COLUMN_PASSES * a_pass < ITERATIONS * small_step(problem)


def classes_are_few(problem: Problem) -> bool:
    """Whether Newton's method on all coefficients of several classes with an l1 is expected to take
    less time than working sets of columns.

    On dense rows, no fewer than columns, whose coefficients are few.  Half of these are expected in
    the support; where that is more than FEW of them, L-BFGS-B comes before.  (54 tables that
    it was not made on, 200 x 6 to 4,000 x 100, 3 to 15 classes, l1_max/3 to /200, to 1e-4:
    geometric mean .53 of the time of working sets, the least .08, the most 5.)
    """
    dense = problem.matrix.is_dense and problem.n >= problem.d
    if not (dense and newton_on_classes(problem)):
        return False
    n, d, k = problem.n, problem.d, problem.n_classes or 1
    size, products = d * k / 2.0, _block_products(problem)
    step = BLAS_FLOP * (n * size**2 / 2.0 + size**3 / 3.0) + products + CLASS_CALLS
    if size <= FEW:
        time = CLASS_STEPS * step
    else:
        time = QUASI_ITERATIONS * (products + CG_CALLS) + CLASS_STEPS_AFTER * step
    a_pass = CLASS_ENTRY * k * problem.matrix.nnz + COLUMN_CALLS
    return time < CLASS_PASSES * a_pass


def small_step(problem: Problem) -> float:
    """Nanoseconds that an iteration of Newton's method may take on small data."""
    n, size = problem.n, min(problem.n, problem.d)
    return small_factor(problem) + PAIR * n * size + SMALL_ROW * n + SMALL_CALLS


def small_factor(problem: Problem) -> float:
    """... its Gram matrix and the factor of that."""
    n, size = problem.n, min(problem.n, problem.d)
    return BLAS_FLOP * (n * size * (size + SHORT_ROWS) / 2.0 + size**3 / 3.0)


def cg_time(problem: Problem) -> float:
    """Nanoseconds that Newton's method with conjugate gradients may take."""
    dense, root = problem.matrix.is_dense, kappa(problem) ** 0.5
    if dense and problem.loss.name == "squared":
        from ..solvers.newton.single import worth_it  # its kernels import Numba

        passes = squared_passes(problem)
        products = SINGLE_COPY + SINGLE_SHARE * passes if worth_it(problem) else passes
        entries = SQUARED_PAIR * problem.matrix.nnz
        return products * entries + passes * (ROW_LOSS * problem.n + CG_CALLS)
    if dense:
        most = CG_MOST if problem.n >= 2 * problem.d else CG_MOST_WIDE
        passes = min(CG_FIRST + CG_PER_ROOT * root, most)
    else:
        per_root = SPARSE_CG_PER_ROOT if rows_meet(problem) else SPARSE_APART_CG_PER_ROOT
        per_root = SPARSE_BLOCK_CG_PER_ROOT if problem.loss.blocks else per_root
        passes = min(SPARSE_CG_FIRST + per_root * root, SPARSE_CG_MOST)
    if problem.loss.blocks:
        return passes * (_block_products(problem) + CG_CALLS)
    products = (PAIR if dense else SPARSE_PRODUCTS) * problem.matrix.nnz
    return passes * (products + ROW_LOSS * problem.n + CG_CALLS)


def squared_passes(problem: Problem) -> float:
    """Passes of conjugate gradients on dense least squares, with those that the factor costs.

    The geometric mean of those for independent columns and of HARD times as many for correlated
    ones, or as many as end with the factor.
    """
    wide = WIDE_EASY if problem.n < problem.d else 1.0
    easy = min(wide * easy_passes(problem), CG_FIRST + CG_PER_ROOT * kappa(problem) ** 0.5)
    hard = min(HARD * easy, easy + factor_price(problem) + CG_FIRST)
    return (easy * hard) ** 0.5


def dense_classes(problem: Problem) -> bool:
    """Where L-BFGS takes half the products of Newton's conjugate gradients, or fewer."""
    dense = problem.loss.blocks and problem.matrix.is_dense
    return dense and problem.has_certificate and lbfgs_can(problem)


def quasi_newton_time(problem: Problem) -> float:
    """Nanoseconds that L-BFGS may take on dense data with classes."""
    passes = min(QUASI_FIRST + QUASI_PER_ROOT * kappa(problem) ** 0.5, QUASI_MOST)
    each = QUASI_PAIR * problem.matrix.nnz + QUASI_CLASS * problem.n
    return passes * ((problem.n_classes or 1) * each + QUASI_CALLS)


def _block_products(problem: Problem) -> float:
    """A product with A and one with A' for all classes, and their losses."""
    entry = BLOCK_PAIR if problem.matrix.is_dense else SPARSE_BLOCK_PAIR
    k = problem.n_classes or 1
    return k * (entry * problem.matrix.nnz + CLASS_LOSS * problem.n)


def coordinate_time(problem: Problem) -> float:
    """Nanoseconds that coordinates may take: 10 passes, and more as the root of kappa grows.

    apdc's, which takes kappa best; acf's where rows are fewer than columns, and hardly meet; and
    on sparse rows wherever it is easy.
    """
    n, k, dense = problem.n, problem.n_classes or 1, problem.matrix.is_dense
    apart = not rows_meet(problem) and (n < problem.d or not dense)
    thin = problem.matrix.nnz <= THIN * n * problem.d
    easy = thin and not dense and problem.loss.gamma > 0.0 and conditioning(problem) > EASY
    if (apart or easy) and not problem.loss.blocks:
        quadratic = problem.loss.code in (QUADRATIC, MARGIN) and not dense
        row, entry = ACF_QUADRATIC_ROW if quadratic else ACF_ROW, ACF_DENSE if dense else ACF_SPARSE
        passes = EASY_PASSES + WIDE_PASSES_PER_ROOT * kappa(problem) ** 0.5
        if not apart:
            passes = ACF_FIRST + ACF_PER_KAPPA * kappa(problem)
    else:
        row, entry = APDC_ROW, APDC_DENSE if dense else APDC_SPARSE
        passes = EASY_PASSES + PASSES_PER_ROOT * kappa(problem) ** 0.5
    if 2 * n <= problem.d and not problem.loss.blocks:
        smooth = problem.loss.task == "classification" and problem.loss.gamma > 0.0
        passes = min(passes, WIDE_MOST_CLASSES if smooth else WIDE_MOST)
    return passes * (k * (row * n + entry * problem.matrix.nnz) + CALLS)
