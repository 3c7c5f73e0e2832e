r"""Newton's method for the rest of a dual ascent, where there are few columns.

Problem     max_y D(y) - sum_i W_i/N (y_i - y_i^k)^2/(2 sigma), the proximal point of the dual at
            y^k, which is min_{x,c} Psi(x, c) = l2/2 |x|^2 + sum_i W_i/N phi_i^sigma(a_i.x + c),
            (phi_i^sigma)' = dprox(., b_i, y_i^k, sigma): smooth, and piecewise quadratic where phi
            has kinks (Rockafellar's augmented Lagrangian, by a semismooth Newton method)
Step        H d = -grad Psi,  H = l2 I + A' diag(W h/N) A,  h = dprox' there, by Cholesky; then a
            point of the line on which the slope of Psi has fallen enough
Stages      when the gap of the subproblem, |grad Psi|^2/(2 l2), is below its proximal term,
            y^{k+1} = dprox(z) and sigma doubles.  Smooth losses start at a sigma that makes it
            plain Newton.
Cost        two products with A, the rows with h > 0 once against themselves, d^3/6

Hinge, C = 100, unit rows, to a relative gap of 1e-6: 64 steps on w8a and 61 on a9a, after 8 passes
of ACF, which alone takes 768 and 563 (liblinear on w8a: over 30,000); 77 on w8a for C = 1000.
"""

from __future__ import annotations

import numpy as np

from ...kernels.jit import jit
from ...kernels.loss import dual_prox, dual_prox_slope
from ...linalg.blas import one_thread
from ...linalg.cholesky import Cholesky
from ...linalg.gram import weighted_gram

#: sigma over the mean step of coordinate ascent in the first stage; over 1/gamma for smooth losses;
#: with kinks over 1/mean |z - b| where that is more, as on long rows: a smaller one leaves
#: curvature to all rows and takes y nowhere (.43 s for .58 on the mean of 11 hinge and
#: epsilon_insensitive problems, 6,000 x 350; a9a and w8a as before).
FIRST, FIRST_SMOOTH, FIRST_KINKS, GROWTH = 10.0, 1e4, 0.3, 2.0
#: The largest sigma over the first: y = y^k + sigma (z - b) magnifies what z has rounded away.
LARGEST = 1e8
#: The slope along the line, in units of the first one, between which a step is taken.
SHORT, OVER = -0.5, 0.1
#: A step may cost so many passes of coordinate ascent, and the matrix H so many columns.
WORTH, COLUMNS = 15.0, 3000
#: Multiplications of LAPACK, and of BLAS on dense rows, in the time of one entry of A (9 to 14 and
#: 13 to 27 a nanosecond, 3,000 x 700 to 20,000 x 200; an entry takes dual ascent .85 of one).
LAPACK, BLAS = 8.0, 16.0
#: Of the dense rows that have curvature at first, the share that has it on the mean of a run,
#: beyond d of them (epsilon_insensitive and hinge, 4,000 x 900 to 30,000 x 150: .07 to .13).
LATER = 0.15


def affordable(problem, rows: np.ndarray) -> bool:
    """Whether Newton steps, at first with the curvature of ``rows``, are cheap beside products."""
    share = 1.0
    if problem.matrix.is_dense and not problem.loss.gamma:
        share = LATER + (1.0 - LATER) * min(1.0, problem.d / max(rows.size, 1))
    return _affordable(problem, rows, share)


def within_reach(problem) -> bool:
    """Whether they may become cheap: at an optimum with kinks at most d rows have curvature."""
    rows = problem.active
    share = 1.0 if problem.loss.gamma else min(1.0, problem.d / max(rows.size, 1))
    return _affordable(problem, rows, share)


def _affordable(problem, rows: np.ndarray, share: float) -> bool:
    d = problem.d
    if d > COLUMNS or not problem.penalty.quadratic:
        return False
    work = share * gram_work(problem, rows) + d**3 / (6.0 * LAPACK)
    return work <= 2.0 * WORTH * problem.matrix.nnz


def gram_work(problem, rows: np.ndarray) -> float:
    """Work of the rows against themselves, in entries of A.

    BLAS makes it cheap for dense rows.  Without kinks all of them keep their curvature, and what is
    cheap then is Newton's method from the start: they count as others do (logistic, 13,645 x 622:
    1.1 s where APDC takes .4).
    """
    sizes = problem.matrix.row_sizes[rows].astype(np.float64)
    pairs = float(np.sum(sizes * sizes))
    return pairs / (2.0 * BLAS) if problem.matrix.is_dense and not problem.loss.gamma else pairs


def first_sigma(loss, step: float) -> float:
    """The least sigma of the first stage; ``step`` is the mean step of coordinate ascent."""
    return max(FIRST * step, FIRST_SMOOTH / loss.gamma if loss.gamma else 0.0)


def sigma_with_kinks(z: np.ndarray, b: np.ndarray) -> float:
    """sigma at which z - b takes y a good part of the way between its ends, which are 1 apart."""
    apart = float(np.mean(np.abs(z - b))) if z.size else 0.0
    return FIRST_KINKS / apart if apart > 0.0 else 0.0


def newton_step(problem, weight, center, sigma, largest, fresh, x, c, z):
    """One step, in the next stage where this one is solved; ``fresh``: it has just begun.

    Returns (center, sigma, fresh, x, c, z, y, entries touched).
    """
    loss, matrix, l2 = problem.loss, problem.matrix, problem.penalty.l2
    law = (loss.code, *loss.constants)
    y, h = np.empty(problem.n), np.empty(problem.n)

    def gradients():
        respond(*law, z, problem.b, center, sigma, y, h)
        return l2 * x + matrix.tdot(weight * y), float(np.sum(weight * y)), np.sum(weight * h)

    gx, gc, held = gradients()
    touched = matrix.nnz
    if not fresh:
        proximal = float(np.sum(weight * np.square(y - center))) / (2.0 * sigma)
        gap = float(np.sum(gx * gx)) / (2.0 * l2)
        if problem.intercept:
            gap += gc * gc / (2.0 * held) if held else np.inf
        if gap <= proximal:
            center, sigma = y.copy(), min(GROWTH * sigma, largest)
            gx, gc, held = gradients()
            touched += matrix.nnz
    curved = np.flatnonzero(weight * h)
    d = x.size
    H = np.zeros((d + problem.intercept, d + problem.intercept))
    with one_thread():
        H[:d, :d] = weighted_gram(matrix, weight * h)
    H[np.arange(d), np.arange(d)] += l2
    gradient = gx
    if problem.intercept:
        gradient = np.append(gx, gc)
        H[-1, :-1] = H[:-1, -1] = matrix.tdot(weight * h)
        # without a curved row nothing holds c, and rounding may undo what little does
        H[-1, -1] = (held or 1.0) * (1.0 + 1e-10)
    with one_thread():
        step = Cholesky(H).solve(-gradient)
    dx, dc = step[:d], (float(step[-1]) if problem.intercept else 0.0)
    dz = matrix.dot(dx) + dc
    linear, square = l2 * float(np.sum(x * dx)), l2 * float(np.sum(dx * dx))

    def slope(t):
        return linear + t * square + slope_along(*law, z, dz, t, problem.b, center, sigma, weight)

    t = step_length(slope, -float(np.sum(gradient * step)))
    x, c, z = x + t * dx, c + t * dc, z + t * dz
    respond(*law, z, problem.b, center, sigma, y, h)
    touched += matrix.nnz + int(gram_work(problem, curved))
    return center, sigma, False, x, c, z, y, touched


def step_length(slope, first: float) -> float:
    """A t in (0, 1] where the increasing ``slope(t)``, -first at 0, lies in [SHORT, OVER] first.

    t = 1 is taken if the slope there is not above; the bracket is cut by regula falsi, kept away
    from its ends.
    """
    low, high, at_low, at_high, t = 0.0, 1.0, -first, first, 1.0
    for _ in range(30):
        value = slope(t)
        if value <= OVER * first and (t == 1.0 or value >= SHORT * first):
            break
        if value > 0.0:
            high, at_high = t, value
        else:
            low, at_low = t, value
        share = at_low / (at_low - at_high)
        t = low + (high - low) * min(max(share, 0.1), 0.9)
    return t


@jit
def respond(code, alpha, epsilon, lo, hi, z, b, center, sigma, y, h):
    """y = dprox(z) at the centre, and its derivative h."""
    for i in range(z.shape[0]):
        y[i] = dual_prox(code, alpha, epsilon, lo, hi, z[i], b[i], center[i], sigma)
        h[i] = dual_prox_slope(code, alpha, epsilon, lo, hi, y[i], b[i], sigma)


@jit
def slope_along(code, alpha, epsilon, lo, hi, z, dz, t, b, center, sigma, weight):
    """sum_i w_i dprox(z_i + t dz_i) dz_i."""
    total = 0.0
    for i in range(z.shape[0]):
        at = z[i] + t * dz[i]
        total += (
            weight[i] * dz[i] * dual_prox(code, alpha, epsilon, lo, hi, at, b[i], center[i], sigma)
        )
    return total
