r"""Ridge regression with each row left out in turn, from one decomposition.

Let s be the weights, S their sum, and :math:`\tilde X = \sqrt s (X - \bar X)`,
:math:`\tilde y = \sqrt s (y - \bar y)` the data centred by their weighted means (not centred
without an intercept).  With :math:`G = \tilde X \tilde X^T + \alpha I` the error on a row by the
model of all the others is

.. math:: \sqrt{s_i} (y_i - \hat y_i) = \frac{(G^{-1} \tilde y)_i}{(G^{-1})_{ii} - s_i/(\alpha S)}

(Rifkin and Lippert 2007; the last term is the intercept's share, as :math:`G \sqrt s = \alpha
\sqrt s`).  G is diagonal for every alpha in the eigenvectors of :math:`\tilde X \tilde X^T`, or of
:math:`\tilde X^T \tilde X` where columns are fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..linalg.blas import one_thread


def leave_one_out(
    X,
    Y: np.ndarray,
    weights: np.ndarray | None,
    fit_intercept: bool,
    alphas,
    svd: bool = False,
) -> Iterator[LeftOut]:
    """What the rows left out say of each alpha.

    ``svd`` decomposes dense X itself, which keeps twice the digits of small alphas.
    """
    rows = _Centred(X, Y, weights, fit_intercept)
    with one_thread():
        solve = (_Wide if X.shape[0] <= X.shape[1] else _Tall)(rows, svd)
        for alpha in alphas:
            alpha = float(alpha)
            # both times alpha: the left-hand side of G c = y, and the diagonal of 1/G
            c, diagonal = solve(alpha)
            errors = c / diagonal[:, None]
            yield LeftOut(errors, rows.predictions(errors, c / alpha), c / alpha, rows)


@dataclass(frozen=True)
class LeftOut:
    """The rows left out, for one alpha.

    Attributes
    ----------
    errors : array of shape (n, n_targets): each multiplied by the square root of its weight
    predictions : array of shape (n, n_targets)
    """

    errors: np.ndarray
    predictions: np.ndarray
    _c: np.ndarray
    _rows: _Centred

    def model(self, targets: slice) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients, intercepts) of all rows: a row, and a number, for each of the targets."""
        coef = self._rows.coefficients(self._c[:, targets]).T
        return coef, self._rows.y_mean[targets] - coef @ self._rows.mean


class _Centred:
    """The data, weighted and centred; sparse X stays sparse."""

    def __init__(self, X, Y, weights, fit_intercept):
        n = X.shape[0]
        self.weighted = weights is not None
        self.s = np.ones(n) if weights is None else weights
        if fit_intercept and np.count_nonzero(self.s) < 2:
            raise ValueError(
                f"n_samples={np.count_nonzero(self.s)} of positive weight: leaving one out leaves "
                "no row to fit an intercept to; give more rows, or fit_intercept=False"
            )
        self.root, self.total, self.intercept = np.sqrt(self.s), self.s.sum(), fit_intercept
        self.X = X.astype(np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        self.Y = Y
        self.mean, self.y_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
        if fit_intercept:
            self.mean, self.y_mean = self.X.T @ self.s / self.total, self.s @ Y / self.total
        self.y = self.root[:, None] * (Y - self.y_mean)

    @property
    def share(self):
        """Of the intercept in the fit of each row."""
        return self.s / self.total if self.intercept else 0.0

    def dot(self, V):
        """X~ V."""
        product = self.X @ V
        product -= self.mean @ V
        if self.weighted:
            product *= self.root[:, None]
        return product

    def dense(self):
        """X~ itself, of dense X; a copy only where it differs from X."""
        Z = self.X - self.mean if self.mean.any() else self.X
        return self.root[:, None] * Z if self.weighted else Z

    def covariance(self):
        """X~' X~."""
        if not sparse.issparse(self.X):
            Z = self.dense()
            return Z.T @ Z
        Z = sparse.diags(self.root) @ self.X
        return (Z.T @ Z).toarray() - self.total * np.outer(self.mean, self.mean)

    def gram(self):
        """X~ X~'."""
        if not sparse.issparse(self.X):
            Z = self.dense()
            return Z @ Z.T
        Z = sparse.diags(self.root) @ self.X
        means = np.outer(Z @ self.mean, self.root)
        return (
            (Z @ Z.T).toarray()
            - means
            - means.T
            + (self.mean @ self.mean * np.outer(self.root, self.root))
        )

    def predictions(self, errors, c):
        """Of the rows left out, without their weights; rows of weight 0 are in no model."""
        kept = self.s > 0.0
        if kept.all():
            return self.Y - errors / self.root[:, None]
        out = np.empty_like(self.Y)
        out[kept] = self.Y[kept] - errors[kept] / self.root[kept, None]
        coef = self.coefficients(c)
        out[~kept] = self.X[~kept] @ coef - self.mean @ coef + self.y_mean
        return out

    def coefficients(self, c):
        """X~' c."""
        weighted = self.root[:, None] * c
        return self.X.T @ weighted - np.outer(self.mean, weighted.sum(axis=0))


class _Tall:
    """More rows than columns: 1 - X~ (X~' X~ + alpha)^-1 X~'."""

    def __init__(self, rows: _Centred, svd: bool):
        self.rows = rows
        if svd and not sparse.issparse(rows.X):
            U, singular, _ = np.linalg.svd(rows.dense(), full_matrices=False)
            self.F, self.values = U * singular, singular**2
        else:
            values, V = np.linalg.eigh(rows.covariance())
            self.F, self.values = rows.dot(V), np.maximum(values, 0.0)
        self.Fy, self.squares = self.F.T @ rows.y, np.square(self.F)

    def __call__(self, alpha):
        scale = 1.0 / (self.values + alpha)
        c = self.rows.y - self.F @ (scale[:, None] * self.Fy)
        return c, 1.0 - self.rows.share - self.squares @ scale


class _Wide:
    """No more rows than columns: alpha (X~ X~' + alpha)^-1.

    The direction of the square roots of the weights, which is the intercept's, is given an
    eigenvalue above all others and left out: its share is then not subtracted but never there.
    """

    def __init__(self, rows: _Centred, svd: bool):
        self.rows = rows
        direction = rows.root / np.sqrt(rows.total)
        if svd and not sparse.issparse(rows.X):
            Z = rows.dense()
            if rows.intercept:
                Z = np.column_stack([Z, (2.0 * np.linalg.norm(Z) + 1.0) * direction])
            self.Q, singular, _ = np.linalg.svd(Z, full_matrices=False)
            self.values, largest = singular**2, 0
        else:
            K = rows.gram()
            if rows.intercept:
                K += (4.0 * np.trace(K) + 1.0) * np.outer(direction, direction)
            self.values, self.Q = np.linalg.eigh(K)
            largest = -1
        if rows.intercept:
            self.values = np.delete(self.values, largest)
            self.Q = np.delete(self.Q, largest, axis=1)
        self.values = np.maximum(self.values, 0.0)
        self.Qy, self.squares = self.Q.T @ rows.y, np.square(self.Q)

    def __call__(self, alpha):
        shares = alpha / (self.values + alpha)
        return self.Q @ (shares[:, None] * self.Qy), self.squares @ shares
