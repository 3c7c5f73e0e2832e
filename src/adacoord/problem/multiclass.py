"""The dual points of problems with K classes: rows of y + e_b lie on the simplex.

``y`` has shape (n, K) and ``b`` holds the class codes 0..K-1; p = y + e_b is a probability for
each row.  With an intercept the columns of y, weighted, must also sum to 0.
"""

from __future__ import annotations

import numpy as np


def check_codes(b: np.ndarray, name: str) -> np.ndarray:
    """Class codes as integers: 0..K-1, each of them there, at least two."""
    remedy = "encode the labels with numpy.unique(b, return_inverse=True)[1]"
    bad = np.flatnonzero((b != np.floor(b)) | (b < 0.0))
    if bad.size:
        raise ValueError(
            f'b has the value {b[bad[0]]:g} at position {bad[0]}: loss="{name}" takes the class '
            f"codes 0, 1, 2, ...; {remedy}"
        )
    present = np.unique(b)
    if present.size == 1:
        raise ValueError(
            f"b has the single class {present[0]:g}: a classifier needs rows of two classes or more"
        )
    if present[-1] >= present.size:
        missing = int(np.flatnonzero(present != np.arange(present.size))[0])
        raise ValueError(
            f"b has no row of class {missing}, but one of class {present[-1]:g}: every class "
            f"needs at least one row; {remedy}"
        )
    return b.astype(np.int64)


def from_simplex(p: np.ndarray, b: np.ndarray) -> np.ndarray:
    """y = p - e_b, in place.

    y_b is minus the sum of the others: no digits are lost where p_b is near 1.
    """
    rows = np.arange(b.size)
    p[rows, b] = 0.0
    p[rows, b] = -np.minimum(p.sum(axis=1), 1.0)
    return p


def into_domain(y: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The nearest thing to ``y`` in the domain: negative p_k go to 0, rows are made to sum to 1.

    The class b takes what the others leave; where they sum to more than 1 they are scaled.
    """
    p = np.clip(y, 0.0, 1.0)
    p[np.arange(b.size), b] = 0.0
    rest = p.sum(axis=1, keepdims=True)
    return from_simplex(p / np.maximum(rest, 1.0), b)


#: Newton's steps of a balance, and the longest of them in the logarithms of the factors.
STEPS, LONGEST = 8, 2.0


def balance(y: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    r"""Make sum_i w_i y_i = 0 for a ``y`` in the domain, without leaving it.

    y_ik, k != b_i, is what row i gives to class k, and y_ib minus their sum: y is balanced when
    every class gets what its rows give, that is when the flow :math:`F_{jk} = \sum_{b_i = j} w_i
    y_{ik}` between classes is a circulation.  All of this is in terms of y itself, never of
    p = y + e_b, so that small y keep their digits.

    Factors :math:`e^{t_k - t_j}` for the flows come first (a share of each y_ik costs D next to
    nothing near the optimum): they balance at the minimum of :math:`\sum F_{jk} e^{t_k - t_j}`, by
    Newton's method.  What is left goes from all rows of the classes that get too much to the
    classes that get too little; rows that then give more than 1 scale all of y down.
    """
    n_classes, rows = y.shape[1], np.arange(b.size)
    given = y.copy()
    given[rows, b] = 0.0
    mass = np.bincount(b, w, n_classes)
    factors = np.exp(_potentials(_flow(given, b, w)))
    given *= factors / factors[b][:, None]
    for _ in range(3):  # the first sums may be of large numbers
        flow = _flow(given, b, w)
        surplus = flow.sum(axis=0) - flow.sum(axis=1)
        more, less = np.maximum(surplus, 0.0), np.maximum(-surplus, 0.0)
        if not less.any():
            break
        share = np.divide(more, mass, out=np.zeros(n_classes), where=mass > 0.0)
        extra = share[b][:, None] * (less / less.sum())
        extra[rows, b] = 0.0
        given += extra
    given /= max(float(given.sum(axis=1).max(initial=0.0)), 1.0)
    return from_simplex(given, b)


def _flow(given: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """F_jk: what the rows of class j give to class k, by weight."""
    n_classes = given.shape[1]
    weighted = w[:, None] * given
    return np.stack([np.bincount(b, column, n_classes) for column in weighted.T], axis=1)


def _potentials(flow: np.ndarray) -> np.ndarray:
    """t that minimises sum_jk F_jk exp(t_k - t_j), or is on the way there."""
    t = np.zeros(len(flow))
    largest = flow.max(initial=0.0)
    if largest == 0.0:
        return t
    flow = flow / largest
    for _ in range(STEPS):
        factors = np.exp(t)
        F = flow * (factors / factors[:, None])
        got, gave = F.sum(axis=0), F.sum(axis=1)
        if (np.abs(got - gave) <= 1e-15 * (got + gave)).all():
            break
        H = np.diag(got + gave) - F - F.T
        scale = np.sqrt(np.maximum(H.diagonal(), 1e-300))  # classes of all sizes
        step = -np.linalg.lstsq(H / np.outer(scale, scale), (got - gave) / scale, rcond=1e-12)[0]
        t += np.clip(step / scale, -LONGEST, LONGEST)
        t -= t.mean()
    return t
