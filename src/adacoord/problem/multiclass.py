"""The dual points of problems with K classes: rows of y + e_b lie on the simplex.

``y`` has shape (n, K) and ``b`` holds the class codes 0..K-1; p = y + e_b is a probability for
each row.  With an intercept the columns of y, weighted, must also sum to 0.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse


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


def balance(y: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    r"""Make sum_i w_i y_i = 0 for a ``y`` in the domain, without leaving it.

    y_ik, k != b_i, is what row i gives to class k, and y_ib minus their sum: y is balanced when
    every class gets what its rows give, that is when the flow :math:`F_{jk} = \sum_{b_i = j} w_i
    y_{ik}` between classes is a circulation.  All of this is in terms of y itself, never of
    p = y + e_b, so that small y keep their digits.

    What class k gets is scaled by s_k, :math:`s_k \sum_j F_{jk} = \sum_j F_{kj} s_j` (a share of
    each y_ik, which costs D next to nothing near the optimum, and asks of no light class more than
    it has); what rounding leaves goes from the rows of the classes that get too much to the classes
    that get too little; and rows that then give more than 1 scale all of y down.
    """
    rows = np.arange(b.size)
    given = y.copy()
    given[rows, b] = 0.0
    flow = _flow(given, b, w)
    if ((flow.sum(axis=0) == 0.0) & (flow.sum(axis=1) > 0.0)).any():  # nothing to be scaled
        given = _topped_up(given, flow, b, w)
        flow = _flow(given, b, w)
    given *= _shares(flow)
    for _ in range(2):  # the first sums may be of large numbers
        given = _topped_up(given, _flow(given, b, w), b, w)
    given /= max(float(given.sum(axis=1).max(initial=0.0)), 1.0)
    return from_simplex(given, b)


def _flow(given: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """F_jk: what the rows of class j give to class k, by weight."""
    rows = sparse.csr_array((w, (b, np.arange(b.size))), shape=(given.shape[1], b.size))
    return rows @ given


def _topped_up(given: np.ndarray, flow: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Balanced by what rows give in addition, the same from every row of a class."""
    surplus = flow.sum(axis=0) - flow.sum(axis=1)
    more, less = np.maximum(surplus, 0.0), np.maximum(-surplus, 0.0)
    if not less.any():
        return given
    mass = np.bincount(b, w, given.shape[1])
    share = np.divide(more, mass, out=np.zeros_like(more), where=mass > 0.0)
    extra = share[b][:, None] * (less / less.sum())
    extra[np.arange(b.size), b] = 0.0
    return given + extra


def _shares(flow: np.ndarray) -> np.ndarray:
    """s >= 0 with s_k sum_j F_jk = sum_j F_kj s_j: 1 on the average.

    The stationary distribution of a Markov chain with the rates F'.
    """
    from ..kernels.classes import stationary

    order = np.argsort(-flow.sum(axis=1), kind="stable")  # who gives nothing goes first, and gets 0
    ordered = np.empty(len(flow))
    stationary(np.ascontiguousarray(flow.T[np.ix_(order, order)]), ordered)
    s, got = np.empty(len(flow)), flow.sum(axis=0)
    s[order] = ordered
    total = float(s @ got)
    return s * (got.sum() / total) if total > 0.0 else np.ones(len(flow))
