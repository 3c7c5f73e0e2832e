r"""The linear systems of Newton's method, on the smaller side of the data.

With p_i = w_i phi_i'(z_i)/n and D = diag(w_i phi_i''(z_i))/n at z = A x + c, a step (dx, dc) solves

.. math::

    (A^T D A + l_2 I)\, dx + A^T D 1\, dc &= -(A^T p + l_2 x) \\
    1^T D A\, dx + 1^T D 1\, dc           &= -1^T p

by Cholesky's factorisation, in float64 whatever the data.  Each system here offers

``start(x)``     the coefficients it works with, from a point
``x(t)``         the primal point of its coefficients
``predict(t)``   A x(t)
``dual(t, z)``   what x(t).x(s) = dual(t, predict(t)).s takes: |x|^2 without x
``factorise(D)`` the matrix of the curvatures D (y = phi' for the multinomial loss)
``single``       whether ``factorise(D, single=True)`` takes half the time, by float32 products
``both(D, t, r)``   ``factorise(D)``, and the gradient where p = D r
``gradient(t, p)``  what its own coordinates see of the gradient: dual(s, predict(s)).gradient is
                 the slope of P along s
``square(g, p)`` |gradient|^2 in x, with c where p = sum_i p_i is 0
``step(t, g, p)``   (dt, dc) from the gradient g and p = sum_i p_i
``cost``         multiply-adds of a step, beside products with A
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
from scipy.linalg import helmert

from ...data.columns import as_scipy
from ...kernels.gram import sparse_gram
from ...linalg.blas import one_thread
from ...linalg.cholesky import Cholesky
from ...linalg.gram import BLOCK, centred_gram, gram_and_products, weighted_gram
from ...problem import Problem
from .size import dual_side

#: Of the diagonal, where nothing else makes the system definite: the null directions of an
#: unpenalised problem stay where they are, the others lose a share of 1e-12 cond(H) an iteration.
RIDGE = 1e-12
#: Of the square of a column's mean, for the same: what rounding leaves of a centred column that is
#: constant, or a combination of others, is no direction to go.  (Of 8, 4, 2 and 1 times 2^-53 all
#: keep x where it is; the less, the faster where the mean is 1e8 deviations.)
VANISHING = 2.0**-52


def smaller_side(problem: Problem):
    """The system of ``problem``."""
    if problem.loss.blocks:
        return Multinomial(problem)
    return Kernel(problem) if dual_side(problem) else Primal(problem)


class Primal:
    """d x d: t = x.  The intercept is eliminated, which centres the columns (weighted by D)."""

    def __init__(self, problem: Problem):
        self.problem, self.l2 = problem, problem.penalty.l2
        self.ridge = RIDGE if self.l2 == 0.0 else 0.0
        m = problem.matrix
        pairs = (
            m.shape[0] * m.shape[1] * (m.shape[1] + 1)
            if m.is_dense
            else int(np.sum(m.row_sizes * (m.row_sizes + 1)))
        )
        self.cost = pairs // 2 + m.shape[1] ** 3 // 6
        self.single = m.is_dense and not m.blocked and m.dtype == np.float32

    def start(self, x):
        return x

    def x(self, t):
        return t

    def predict(self, t):
        return self.problem.matrix.dot(t)

    def dual(self, t, z):
        return t

    def factorise(self, D, single=False):
        m, centre = self.problem.matrix, np.zeros(self.problem.d)
        if self.problem.intercept:
            H, centre = centred_gram(m, D, single)
        else:
            H = weighted_gram(m, D, single=single)
        if single and not np.isfinite(H.diagonal()).all():  # too large for float32
            H = weighted_gram(m, D, centre if self.problem.intercept else None)
        self.take(H, centre, float(np.sum(D)))

    def both(self, D, t, r):
        m, intercept = self.problem.matrix, self.problem.intercept
        if not m.is_dense or m.blocked:
            self.factorise(D)
            return self.gradient(t, D * r)
        # blocks of rows are loaded once for both (40,000 x 8 numbers: .33 -> .25 ms)
        H, centre, products = gram_and_products(m, D, r, intercept)
        self.take(H, centre, float(np.sum(D)))
        if intercept:
            products += centre * float(D @ r)
        return products + self.l2 * t

    def take(self, H, centre, total):
        """The system of H = A'DA about ``centre``, A'D 1 over ``total`` = 1'D 1."""
        corner = np.einsum("ii->i", H)
        corner += self.l2
        if self.l2 == 0.0 and self.problem.intercept:
            corner += VANISHING * total * np.square(centre)
        self.centre, self.total, self.factor = centre, total, Cholesky(H, self.ridge)

    def gradient(self, x, p):
        return self.problem.matrix.tdot(p) + self.l2 * x

    def square(self, g, p):
        return float(np.sum(np.square(g - self.centre * p if self.problem.intercept else g)))

    def step(self, x, g, p):
        if not self.problem.intercept:
            return -self.factor.solve(g), 0.0
        dx = -self.factor.solve(g - self.centre * p)
        return dx, -float(p) / self.total - float(np.sum(self.centre * dx))


class Kernel:
    """n x n, for l2 > 0: x = A'v, K = A A', and v = -p/l2 at the optimum.

    With S = sqrt(D) and B = S K S + l2 I a step from the residual r = p + l2 v is
    dv = -M^-1 (r + D 1 dc), M = D K + l2 I, where 1'(v + dv) = 0 gives dc.  M^-1 S q = S B^-1 q
    for the part of r on rows with D_i > 0, without the cancellation that Woodbury's formula has
    where K outweighs l2; M^-1 r = r/l2 - S B^-1 S K r/l2 for the rest.
    """

    def __init__(self, problem: Problem):
        self.problem, self.l2 = problem, problem.penalty.l2
        self.cost = problem.n**2 + problem.n**3 // 6
        self.single = False

    @cached_property
    def K(self):
        """A A', made when a step is: a start may be all that is needed."""
        m = self.problem.matrix
        if m.is_dense:
            A = as_scipy(m).astype(np.float64, copy=False)
            with one_thread():
                return A @ A.T
        K = np.zeros((m.shape[0], m.shape[0]))
        sparse_gram(*m.columns.arrays, np.ones(m.shape[1]), K)
        return K

    def start(self, x):
        """The v of the same predictions, K v = A x: the part of x that A does not see goes."""
        z = self.problem.matrix.dot(x)
        return Cholesky(self.K.copy()).solve(z) if z.any() else z

    def x(self, t):
        return self.problem.matrix.tdot(t)

    def predict(self, t):
        return self.K @ t if t.any() else np.zeros(t.shape)

    def dual(self, t, z):
        return z

    def factorise(self, D):
        self.S = np.sqrt(D)
        B = self.S[:, None] * self.K * self.S
        np.einsum("ii->i", B)[:] += self.l2
        self.factor = Cholesky(B)
        self.flat = self.S == 0.0
        if self.problem.intercept:
            self.lift = self.S * self.factor.solve(self.S)  # M^-1 D 1

    def both(self, D, v, r):
        self.factorise(D)
        return self.gradient(v, D * r)

    def gradient(self, v, p):
        return p + self.l2 * v

    def square(self, r, p):
        return float(r @ (self.K @ r))

    def step(self, v, r, p):
        flat = np.where(self.flat, r, 0.0) / self.l2
        inner = np.where(self.flat, 0.0, r) / np.where(self.flat, 1.0, self.S)
        if flat.any():
            inner -= self.S * (self.K @ flat)
        dv = -flat - self.S * self.factor.solve(inner)
        if not self.problem.intercept:
            return dv, 0.0
        dc = float(np.sum(v + dv)) / float(np.sum(self.lift))
        return dv - dc * self.lift, dc


@cache
def _basis(classes: int) -> np.ndarray:
    """Q, which all problems of a path share (60 us of SciPy's)."""
    return np.ascontiguousarray(helmert(classes).T)


class Multinomial:
    """d (K-1) x d (K-1): t = X Q, where the columns of Q are an orthonormal basis of sum_k = 0.

    Adding one vector to all classes changes no probability: the penalty wants the classes to sum
    to 0, and without one (intercepts) this picks one of equally good points.  With P the
    probabilities (n x K) and (PQ)_i the rows of P Q,
    H = sum_k Q_k Q_k' (x) A' diag(w P_k) A - sum_i w_i (PQ)_i (PQ)_i' (x) a_i a_i'.
    """

    def __init__(self, problem: Problem):
        self.problem, self.l2 = problem, problem.penalty.l2
        self.ridge = RIDGE if self.l2 == 0.0 else 0.0
        n, d = problem.matrix.shape
        assert problem.n_classes is not None
        self.weight = (np.ones(n) if problem.weights is None else problem.weights) / n
        self.Q = _basis(problem.n_classes)
        self.width = d + problem.intercept
        size = self.width * (problem.n_classes - 1)
        self.rows = max(1, BLOCK // size)
        self.cost = n * (size**2 + problem.n_classes * self.width**2) // 2 + size**3 // 6

    def start(self, x):
        return x @ self.Q

    def x(self, t):
        return t @ self.Q.T

    def predict(self, t):
        return self.problem.matrix.dot(self.x(t))

    def dual(self, t, z):
        return t

    def factorise(self, y):
        P = y.copy()
        P[np.arange(self.problem.n), self.problem.b] += 1.0
        P[P < 1e-50] = 0.0  # no denormal products: they cost BLAS 4x
        weight = self.weight
        Q, m, classes = self.Q, self.width, self.Q.shape[1]
        A = as_scipy(self.problem.matrix)
        grams = np.zeros((classes + 1, m, m))
        H = np.zeros((classes * m, classes * m))
        for i in range(0, P.shape[0], self.rows):
            part = slice(i, i + self.rows)
            block = A[part] if self.problem.matrix.is_dense else A[part].toarray()
            R = np.ones((block.shape[0], m))
            R[:, : block.shape[1]] = block
            R *= np.sqrt(weight[part])[:, None]
            for k in range(classes + 1):
                scaled = np.sqrt(P[part, k])[:, None] * R
                grams[k] += scaled.T @ scaled
            Z = ((P[part] @ Q)[:, :, None] * R[:, None, :]).reshape(R.shape[0], -1)
            H -= Z.T @ Z
        pairs = (Q[:, :, None] * Q[:, None, :]).reshape(classes + 1, -1)
        mixed = (pairs.T @ grams.reshape(classes + 1, -1)).reshape(classes, classes, m, m)
        H.reshape(classes, m, classes, m)[:] += mixed.transpose(0, 2, 1, 3)
        penalised = np.arange(m) < self.problem.d
        np.einsum("ii->i", H)[:] += self.l2 * np.tile(penalised, classes)
        self.factor = Cholesky(H, self.ridge)

    def gradient(self, t, p):
        return self.problem.matrix.tdot(p @ self.Q) + self.l2 * t

    def square(self, g, p):
        return float(np.sum(np.square(g)))

    def step(self, t, gradient, p):
        d = self.problem.d
        g = np.zeros((self.width, t.shape[1]))
        g[:d] = gradient
        if self.problem.intercept:
            g[d] = p @ self.Q
        moved = -self.factor.solve(g.T.ravel()).reshape(t.shape[1], -1).T
        dc = self.Q @ moved[d] if self.problem.intercept else np.zeros(self.Q.shape[0])
        return np.ascontiguousarray(moved[:d]), dc
