"""How large Newton's systems are, and whether they are worth it: NumPy only, for the registry."""

from __future__ import annotations

from ...problem import Problem

#: Nanoseconds, of one core that is also busy otherwise: a multiply-add of BLAS and of the sparse
#: Gram matrix, an entry and a row in a pass, and the calls of an iteration.
BLAS, PAIR, ENTRY, ROW, CALLS = 0.15, 2.5, 5.0, 300.0, 4e5
#: Newton's iterations for a loss of one number a row that is not squared, and for multinomial.
ITERATIONS, BLOCK_ITERATIONS = 8.0, 12.0
#: Bytes of the largest matrix worth factorising: 16,384 rows, some minutes an iteration.
LARGEST = 2**31

#: Entries (n x d) of a problem that counts as small.
SMALL = 2**18


def small(problem: Problem) -> bool:
    """Whether the problem is solved to the last digit by :mod:`.small`."""
    return not problem.loss.blocks and problem.has_certificate and problem.n * problem.d <= SMALL


def small_system(problem: Problem) -> bool:
    """Whether small data make a system of at most 400 unknowns, some 20 ms: classes, say."""
    return problem.n * problem.d <= SMALL and system_size(problem) <= 400


def dual_side(problem: Problem) -> bool:
    """Whether the system is n x n (l2 > 0, fewer rows than columns) and not d x d."""
    strong = problem.penalty.strong_convexity > 0.0
    return strong and not problem.loss.blocks and problem.n < problem.d


def system_size(problem: Problem) -> int:
    """Rows of the matrix to factorise."""
    if problem.loss.blocks:
        return (problem.d + problem.intercept) * (problem.n_classes - 1)
    return problem.n if dual_side(problem) else problem.d


def too_large(problem: Problem) -> bool:
    """Whether that matrix would be absurd."""
    return 8 * system_size(problem) ** 2 > LARGEST


def newton_time(problem: Problem) -> float:
    """Nanoseconds that Newton's method may take."""
    n, nnz = problem.n, problem.matrix.nnz
    size, k = system_size(problem), problem.n_classes or 1
    if problem.loss.blocks:
        gram = BLAS * n * (size**2 + k * problem.d**2) / 2.0
    elif problem.matrix.is_dense:
        gram = BLAS * (n * problem.d * size) / 2.0
    else:  # each pair of entries of a row (or, n x n, of a column), at its average length
        gram = PAIR * nnz * (1.0 + nnz / (problem.d if dual_side(problem) else n)) / 2.0
    each = BLAS * size**3 / 6.0 + ENTRY * k * nnz + CALLS
    if problem.loss.name == "squared":
        return gram + each
    if dual_side(problem):
        return gram + each * ITERATIONS
    return (gram + each) * (BLOCK_ITERATIONS if problem.loss.blocks else ITERATIONS)


def affordable(problem: Problem) -> bool:
    """Whether ``auto`` should take Newton's method: the nanoseconds it and the others may take.

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
    lam, gamma = problem.penalty.strong_convexity, problem.loss.gamma or 1.0
    kappa = float(problem.matrix.squared_norms.mean()) / (n * lam * gamma)
    passes = 10.0 + (1.0 if n < problem.d else 3.0) * kappa**0.5
    return newton_time(problem) <= passes * (ROW * k * n + ENTRY * k * nnz + CALLS)
