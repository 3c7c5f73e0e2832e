"""The dual points of problems with K classes: rows of y + e_b lie on the simplex.

``y`` has shape (n, K) and ``b`` holds the class codes 0..K-1; p = y + e_b is a probability for
each row.  With an intercept, column k of p must also sum to the weight of class k.
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


def balance(y: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Make sum_i w_i y_i = 0 for a ``y`` in the domain, without leaving it.

    Columns of p that are heavier than their class are scaled down to it; then what the rows miss
    of 1 is given to the columns in proportion to what they miss of their class.
    """
    n_classes = y.shape[1]
    p = y.copy()
    p[np.arange(b.size), b] += 1.0
    goal = np.bincount(b, w, n_classes)
    columns = np.sum(w[:, None] * p, axis=0)
    p *= np.minimum(1.0, goal / np.where(columns > 0.0, columns, 1.0))
    rows_miss = np.maximum(1.0 - p.sum(axis=1), 0.0)
    columns_miss = np.maximum(goal - np.sum(w[:, None] * p, axis=0), 0.0)
    total = columns_miss.sum()
    if total > 0.0:
        p += rows_miss[:, None] * (columns_miss / total)
    return from_simplex(p, b)
