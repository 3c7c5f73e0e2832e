"""Newton's methods as functions of a block of rows, for :meth:`Matrix.gather`.

Each gives (arrays with an entry for each row), (what is added up over the blocks).
"""

from __future__ import annotations

import numpy as np

from ...data.matrix import Matrix
from ...linalg.gram import CACHED, weighted_gram
from ...parallel.reduction import fold
from ...problem.losses import Loss
from .kernels import expand_rows, follow_rows, hessian_rows, spread_rows


def evaluate(block: Matrix, loss: Loss, x: np.ndarray, c: float, bent: bool, b, weight) -> tuple:
    """The losses at z = A x + c: (y,), (sum w phi, sum p, sum D, A'p, A'D).

    y = phi'(z), p = w y, D = w phi''(z); no A'D but of ``bent`` losses.
    """
    y, sums = np.empty(block.shape[0]), []
    for rows, part in block.in_cache():
        z = part.dot(x)
        z += c
        sums.append(_expanded(part, loss, z, b[rows], weight[rows], y[rows], bent))
    return (y,), fold(sums)


def evaluate_step(
    block: Matrix,
    loss: Loss,
    x: np.ndarray,
    c: float,
    there,
    c_there: float,
    flat: float,
    b,
    weight,
) -> tuple:
    """A step from (x, c): (y,), (lacking, cut, *the sums of :func:`evaluate` there).

    y are the slopes that the expansion here has there; see :func:`.kernels.follow_rows`.  ``flat``
    takes the place of phi'' where it is not 0.
    """
    law, out, sums = (loss.code, *loss.constants), np.empty(block.shape[0]), []
    for rows, part in block.in_cache():
        targets, share = b[rows], weight[rows]
        z, end = part.dot(x), part.dot(there)
        z += c
        end += c_there
        y, p, D = np.empty_like(z), np.empty_like(z), np.empty_like(z)
        expand_rows(*law, z, targets, share, y, p, D)
        bend, domain = flat * share if flat else D, loss.domain(targets)
        _, lacking, cut = follow_rows(
            *law, z, np.subtract(end, z, out=p), targets, share, y, bend, out[rows], *domain
        )
        sums.append((lacking, cut, *_expanded(part, loss, end, targets, share, y)))
    return (out,), fold(sums)


def curvature_gram(
    block: Matrix, loss: Loss, x: np.ndarray, c: float, centre, flat: float, b, weight
) -> tuple:
    """(), (A' D A about ``centre``), D = w phi'' at A x + c, or ``flat`` w where that is not 0."""
    D = flat * weight
    if not flat:
        z = block.dot(x)
        z += c
        D, y, p = np.empty_like(z), np.empty_like(z), np.empty_like(z)
        expand_rows(loss.code, *loss.constants, z, b, weight, y, p, D)
    return (), (weighted_gram(block, D, centre),)


def _expanded(block: Matrix, loss: Loss, z, b, weight, y, bent: bool = True) -> tuple:
    """The sums of :func:`evaluate` at z, and y = phi'."""
    p, D = np.empty_like(z), np.empty_like(z)
    value, mass = expand_rows(loss.code, *loss.constants, z, b, weight, y, p, D)
    spread = block.tdot(D) if bent else np.zeros(0)
    return value, float(np.sum(p)), mass, block.tdot(p), spread


def hessian(block: Matrix, v: np.ndarray, shift: float, bend: np.ndarray) -> tuple:
    """(A v + shift), (A' (bend (A v + shift)), the sum of what A' is multiplied with)."""
    if block.by_columns:
        av = block.dot(v) + shift
        bent = bend * av
        return (av,), (block.tdot(bent), np.sum(bent))
    av, out = np.empty(block.shape[0]), np.zeros(block.shape[1])
    total = hessian_rows(*block.arrays, v, shift, bend, av, out)
    return (av,), (out, total)


def spread(block: Matrix, centre: np.ndarray, weight: np.ndarray) -> tuple:
    """(), (sum_i w_i (a_ij - centre_j)^2 over stored entries, the weight of those)."""
    out, seen = np.zeros(block.shape[1]), np.zeros(block.shape[1])
    spread_rows(*block.arrays, weight, centre, out, seen)
    return (), (out, seen)


def sample_grams(block: Matrix, centre: np.ndarray, times: np.ndarray, D: np.ndarray) -> tuple:
    """(), (sum_i times_i D_ik (a_i - centre)(a_i - centre)' for each k); of dense rows.

    Most rows are taken 0 times, and not looked at.
    """
    d, classes = block.shape[1], D.shape[1]
    sample, size = np.flatnonzero(times), max(1, CACHED // d)
    grams = np.zeros((classes, d, d))
    for first in range(0, sample.size, size):
        part = sample[first : first + size]
        rows = block.take(part)
        rows -= centre
        root = np.sqrt(np.maximum(D[part] * times[part, None], 1e-100))
        for k in range(classes):
            scaled = root[:, k, None] * rows
            grams[k] += scaled.T @ scaled
    return (), (grams,)
