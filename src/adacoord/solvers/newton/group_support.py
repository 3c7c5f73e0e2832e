r"""Newton's method on the support of groups: where block coordinate descent crawls.

On the columns S with x_j != 0, and as long as none of them and no group comes to 0, the model of
:mod:`~adacoord.solvers.primal.group_kernels` is smooth: with B = A_S' diag(h) A_S,

    g.d + d'Bd/2 + l2/2 |x + d|^2 + l1 sign(x).(x + d) + sum_G t_G |x_G + d_G|,

whose Hessian is B + l2 + t_G/|x_G| (I - e e') for each group, e = x_G/|x_G|.  Steps are halved
until they lower the model; coefficients that would change their sign under an l1 stop at 0, and so
leave the support.  B is made once, and factored with the first Hessian: conjugate gradients take
that factor to the later ones.
"""

from __future__ import annotations

import numpy as np

from ...linalg.cholesky import Cholesky

#: Steps at most, and halvings of one; a whole step of this share of the first, or of g, is the
#: last: conjugate gradients leave LEFT^2 of it.  The gap is about the root of what is left, and
#: sweeps see nothing of that (80 x 86, a step of 6e-11 of 0.1 as the last: a gap of 1e-7 for ever).
STEPS, HALVINGS, LAST, LITTLE = 10, 12, 1e-12, 1e-12
#: Of the slope, by the length that the factor gives it, what conjugate gradients leave; iterations
#: of these before a new factor costs less (435 columns: an iteration .1 ms, a factor and what is
#: around it 1.2).
LEFT, ITERATIONS = 1e-3, 10
#: Of the decrease that the slope promises (Armijo).
PROMISED = 1e-4


def group_newton(B, g, x, index, thresholds, l1, l2):
    """x of the support at the model's minimum, from x and the slopes g of the loss there.

    ``index`` is the group of each x_j, a number of ``thresholds``; none of x is 0.
    """
    groups, index = np.unique(index, return_inverse=True)
    thresholds = thresholds[groups]
    pairs = _pairs(index, groups.size)

    def value(v):
        norms = np.sqrt(np.bincount(index, v * v))
        return float(thresholds @ norms + l1 * np.abs(v).sum() + 0.5 * l2 * (v @ v))

    first, factor = 0.0, None
    for _ in range(STEPS):
        norms = np.sqrt(np.bincount(index, x * x))
        pull = (thresholds / norms)[index]
        slope = g + l2 * x + l1 * np.sign(x) + pull * x
        along = np.sqrt(pull) / norms[index] * x

        def product(v, pull=pull, along=along):
            inner = np.bincount(index, along * v)[index]
            return B @ v + (l2 + pull) * v - along * inner

        step = None if factor is None else _conjugate_gradients(product, factor, -slope)
        if step is None:
            H = B.copy()
            H[pairs] -= along[pairs[0]] * along[pairs[1]]
            H[np.diag_indices_from(H)] += l2 + pull
            factor = Cholesky(H)
            step = factor.solve(-slope)
        decrement = -float(slope @ step)
        first = first or decrement
        if not decrement > 0.0:
            break
        before, t = value(x), 1.0
        for _ in range(HALVINGS):
            new = x + t * step
            if l1 > 0.0:
                new[new * x < 0.0] = 0.0
            moved = new - x
            change = B @ moved
            if (
                g @ moved + 0.5 * (moved @ change) + value(new) - before
                <= -PROMISED * t * decrement
            ):
                break
            t *= 0.5
        else:
            break
        x, g = new, g + change
        if not x.all() or (t == 1.0 and decrement <= max(LAST * first, LITTLE * before)):
            break
    return x


def _conjugate_gradients(product, factor, right):
    """The solution to within LEFT; None where the factor is of too different a matrix for that."""
    x, r = np.zeros_like(right), right
    p = z = factor.solve(r)
    square = goal = float(r @ z)
    for _ in range(ITERATIONS):
        image = product(p)
        bend = float(p @ image)
        if not bend > 0.0:
            return None
        x = x + square / bend * p
        r = r - square / bend * image
        z = factor.solve(r)
        before, square = square, float(r @ z)
        if square <= LEFT**2 * goal:
            return x
        p = z + square / before * p
    return None


def _pairs(index, m):
    """The places of all pairs of coordinates of one group: of 435 columns 190,000 need not be
    looked at for 2,175."""
    order = np.argsort(index, kind="stable")
    sizes = np.bincount(index, minlength=m)
    counts = sizes[index[order]]  # of the group of each, and where that begins
    starts = (np.cumsum(sizes) - sizes)[index[order]]
    before = np.cumsum(counts) - counts
    others = np.arange(counts.sum()) + np.repeat(starts - before, counts)
    return np.repeat(order, counts), order[others]
