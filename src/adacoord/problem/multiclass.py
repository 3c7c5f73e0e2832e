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
    from ..kernels.classes import simplex_rows

    out = np.empty(y.shape)
    simplex_rows(np.ascontiguousarray(y, dtype=np.float64), b, out)
    return out


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
    from ..kernels.classes import add_flow, scale_flow, simplex_rows

    given, K = np.array(y, dtype=np.float64, order="C"), y.shape[1]
    flow, mass = np.empty((K, K)), np.bincount(b, w, K)
    scale_flow(given, b, w, np.ones(K), flow)
    if ((flow.sum(axis=0) == 0.0) & (flow.sum(axis=1) > 0.0)).any():  # nothing to be scaled
        add_flow(given, b, w, *_missing(flow, mass), flow)
    scale_flow(given, b, w, _shares(flow), flow)
    for _ in range(2):  # the first sums may be of large numbers
        largest = add_flow(given, b, w, *_missing(flow, mass), flow)
    if largest > 1.0:
        given /= largest
    simplex_rows(given, b, given)
    return given


def _missing(flow: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(what a row of each class has to give in addition, the shares of the classes in it)."""
    surplus = flow.sum(axis=0) - flow.sum(axis=1)
    more, less = np.maximum(surplus, 0.0), np.maximum(-surplus, 0.0)
    if not less.any():
        return np.zeros_like(more), less
    share = np.divide(more, mass, out=np.zeros_like(more), where=mass > 0.0)
    return share, less / less.sum()


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
