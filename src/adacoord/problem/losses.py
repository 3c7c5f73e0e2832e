r"""The losses: pointwise functions :math:`\phi(z; b)` of a prediction ``z`` and a target ``b``.

Nine of the twelve are one family.  Their conjugate is a quadratic on an interval,

.. math:: \phi^*(v) = bv + \varepsilon|v| + \tfrac{\alpha}{2} v^2, \qquad v \in [lo, hi] \ni 0,

so that four numbers say all there is to say about each (for the losses of a margin ``bz``,
``b`` is +1 or -1 and the interval is that of ``b = +1``, mirrored for ``b = -1``):

===============================  =============================  =====  =======  ============
name                             phi(z)                         alpha  epsilon  [lo, hi]
===============================  =============================  =====  =======  ============
``squared``                      (z-b)^2/2                      1      0        all
``smooth_hinge`` (mu)            0; (1-bz)^2/(2mu); 1-mu/2-bz   mu     0        [-1, 0]
``hinge``                        max(0, 1-bz)                   0      0        [-1, 0]
``squared_hinge``                max(0, 1-bz)^2                 1/2    0        v <= 0
``huber`` (delta)                r^2/2; delta |r| - delta^2/2   1      0        +-delta
``epsilon_insensitive``          max(0, |z-b| - epsilon)        0      epsilon  [-1, 1]
``squared_epsilon_insensitive``  max(0, |z-b| - epsilon)^2      1/2    epsilon  all
``absolute``                     |z-b|                          0      0        [-1, 1]
``quantile`` (q)                 q (b-z)+ + (1-q) (z-b)+        0      0        [-q, 1-q]
===============================  =============================  =====  =======  ============

``logistic`` is log(1 + exp(-bz)), with phi*(v) = q log q + (1-q) log(1-q), q = -bv in [0, 1];
``poisson`` is exp(z) - bz for counts b >= 0, with phi*(v) = (v+b) log(v+b) - (v+b), v >= -b;
``log_cosh`` is log cosh(z-b), with phi*(v) = bv + ((1+v) log(1+v) + (1-v) log(1-v))/2 on [-1, 1].
``multinomial`` is logsumexp(z) - z_b for a vector z of K numbers and a class code b in 0..K-1,
with phi*(v) = sum_k p_k log p_k, p = v + e_b on the simplex: its arrays have shape (n, K).

A loss is (1/``gamma``)-smooth; ``gamma`` is 0 where it is not.  What is here is NumPy in
float64 and serves the certificate; the solvers' kernels use the compiled table of
:mod:`adacoord.kernels.loss` instead, so that judge and judged share no code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels.codes import CODES, LOG_COSH, LOGISTIC, MARGIN, MULTINOMIAL, POISSON, QUADRATIC
from .multiclass import from_simplex


@dataclass(frozen=True)
class Loss:
    """What every loss offers: value, a subgradient, the conjugate and its domain."""

    name: ClassVar[str]
    code: ClassVar[int]
    #: "classification": b is +1 or -1; "multiclass": 0..K-1; "regression"; "count": b >= 0
    task: ClassVar[str]
    parameter: ClassVar[str | None] = None
    #: Whether a prediction is a vector, one number a class.
    blocks: ClassVar[bool] = False

    @property
    def gamma(self) -> float:
        """phi is (1/gamma)-smooth; 0 where it is not smooth."""
        raise NotImplementedError

    @property
    def constants(self) -> tuple[float, float, float, float]:
        """(alpha, epsilon, lo, hi) for the kernels; see the table above."""
        raise NotImplementedError

    @property
    def differentiable(self) -> bool:
        """Whether phi has a continuous slope."""
        return self.gamma > 0.0

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        """phi(z)."""
        raise NotImplementedError

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        """An element of the subdifferential of phi at ``z``: the dual point ``z`` suggests."""
        raise NotImplementedError

    def conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        """phi*(v), ``inf`` where ``v`` is outside the domain."""
        lo, hi = self._ends(b)
        inside = (v >= lo) & (v <= hi)
        if inside.all():
            return self._conjugate(v, b)
        return np.where(inside, self._conjugate(np.where(inside, v, 0.0), b), np.inf)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the interval on which the conjugate is finite."""
        raise NotImplementedError

    def _ends(self, b: np.ndarray) -> tuple[Any, Any]:
        """The same; one number where all rows have the same end."""
        return self.domain(b)

    def start(self, b: np.ndarray) -> np.ndarray:
        """A dual point to start from: 0, which is what x = 0 answers to (u = 0).

        For the logistic loss phi'(0) = -b/2 seems natural, but with a small penalty its u asks
        for a huge x: 24 passes instead of 15 (w8a, l2 = 1e-6).
        """
        return np.zeros(np.shape(b))

    def dual_prox(
        self, z: np.ndarray, b: np.ndarray, y: np.ndarray, s: float | np.ndarray
    ) -> np.ndarray:
        r"""Elementwise :math:`\arg\max_v\; vz - \phi^*(v) - (v-y)^2/(2s)`, as the kernels do it."""
        from ..kernels.loss import dual_prox_array

        _require_code(self)
        arrays = [np.asarray(a, dtype=np.float64) for a in (z, b, y, s)]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        # copies: one compiled signature, and no views of one element at many places
        flat = (np.array(np.broadcast_to(a, shape)).ravel() for a in arrays)
        return dual_prox_array(self.code, *self.constants, *flat).reshape(shape)


class _Quadratic(Loss):
    """phi*(v) = bv + epsilon |v| + alpha v^2/2 on an interval around 0."""

    code = QUADRATIC
    task = "regression"

    @property
    def gamma(self) -> float:
        return self.constants[0]

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = np.shape(b)
        lo, hi = (np.array(np.broadcast_to(end, shape)) for end in self._ends(b))
        return lo, hi

    def _ends(self, b: np.ndarray) -> tuple[Any, Any]:
        _, _, lo, hi = self.constants
        if self.code != MARGIN:
            return lo, hi
        own = np.asarray(b) > 0.0
        return np.where(own, lo, -hi), np.where(own, hi, -lo)

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._slope(z - b, b)

    def _slope(self, r: np.ndarray, b: np.ndarray) -> np.ndarray:
        """phi' of the residual r = z - b."""
        alpha, epsilon, lo, hi = self.constants
        if epsilon > 0.0:
            r = np.sign(r) * np.maximum(np.abs(r) - epsilon, 0.0)
        if alpha == 0.0:
            lo, hi = self._ends(b)
            return np.where(r > 0.0, hi, np.where(r < 0.0, lo, 0.0))
        if lo == -np.inf and hi == np.inf:
            return r / alpha
        lo, hi = self._ends(b)
        return np.minimum(np.maximum(r / alpha, lo), hi)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        alpha, epsilon, _, _ = self.constants
        r = z - b
        v = self._slope(r, b)
        values = v * (r - 0.5 * alpha * v)  # no inf - inf for large z
        return values - epsilon * np.abs(v) if epsilon > 0.0 else values

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        alpha, epsilon, _, _ = self.constants
        values = (b + 0.5 * alpha * v) * v
        return values + epsilon * np.abs(v) if epsilon > 0.0 else values


class _Margin(_Quadratic):
    code = MARGIN
    task = "classification"


def _require(value: float, inside: Callable[[float], bool], argument: str, remedy: str) -> None:
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not real or not inside(value):  # NaN fails every comparison
        raise ValueError(f"{argument}={value!r}: {remedy}")


def _require_tube(epsilon: float) -> None:
    _require(
        epsilon,
        lambda v: 0 <= v < np.inf,
        "epsilon",
        "the half-width of the tube must be zero or more, and finite",
    )


def _require_code(loss: Loss) -> None:
    """Refuse a loss that the compiled table has no row for: every solver would return NaN."""
    code = getattr(loss, "code", None)
    if code not in CODES:
        raise ValueError(
            f"loss={loss!r}: its code={code!r} is not in the compiled table of losses; give the "
            "class a code of adacoord.kernels.codes, and that code a row in adacoord.kernels.loss"
        )


@dataclass(frozen=True)
class Squared(_Quadratic):
    """(z-b)^2 / 2."""

    name = "squared"
    constants = (1.0, 0.0, -np.inf, np.inf)


@dataclass(frozen=True)
class SmoothHinge(_Margin):
    """The hinge with its kink replaced by a parabola of width ``mu`` (1 in the papers)."""

    mu: float = 1.0
    name = "smooth_hinge"
    parameter = "mu"

    def __post_init__(self) -> None:
        _require(
            self.mu,
            lambda v: 0 < v < np.inf,
            "mu",
            'the smoothing width must be positive; for mu=0 use loss="hinge"',
        )

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (float(self.mu), 0.0, -1.0, 0.0)


@dataclass(frozen=True)
class Hinge(_Margin):
    """max(0, 1-bz), the loss of the support vector machine."""

    name = "hinge"
    constants = (0.0, 0.0, -1.0, 0.0)


@dataclass(frozen=True)
class SquaredHinge(_Margin):
    """max(0, 1-bz)^2."""

    name = "squared_hinge"
    constants = (0.5, 0.0, -np.inf, 0.0)


@dataclass(frozen=True)
class Huber(_Quadratic):
    """r^2/2 for |r| <= delta, delta |r| - delta^2/2 beyond, with r = z-b."""

    delta: float = 1.35
    name = "huber"
    parameter = "delta"

    def __post_init__(self) -> None:
        _require(
            self.delta,
            lambda v: 0 < v < np.inf,
            "delta",
            'the threshold must be positive and finite; for no threshold use loss="squared"',
        )

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (1.0, 0.0, -float(self.delta), float(self.delta))


@dataclass(frozen=True)
class EpsilonInsensitive(_Quadratic):
    """max(0, |z-b| - epsilon), the loss of support vector regression."""

    epsilon: float = 0.1
    name = "epsilon_insensitive"
    parameter = "epsilon"

    def __post_init__(self) -> None:
        _require_tube(self.epsilon)

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (0.0, float(self.epsilon), -1.0, 1.0)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(_Quadratic):
    """max(0, |z-b| - epsilon)^2."""

    epsilon: float = 0.1
    name = "squared_epsilon_insensitive"
    parameter = "epsilon"

    def __post_init__(self) -> None:
        _require_tube(self.epsilon)

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (0.5, float(self.epsilon), -np.inf, np.inf)


@dataclass(frozen=True)
class Absolute(_Quadratic):
    """|z-b|: median regression."""

    name = "absolute"
    constants = (0.0, 0.0, -1.0, 1.0)


@dataclass(frozen=True)
class Quantile(_Quadratic):
    """q (b-z)+ + (1-q) (z-b)+: regression of the ``q``-th quantile (the pinball loss)."""

    q: float = 0.5
    name = "quantile"
    parameter = "q"

    def __post_init__(self) -> None:
        _require(self.q, lambda v: 0 < v < 1, "q", "a quantile lies strictly between 0 and 1")

    @property
    def constants(self) -> tuple[float, float, float, float]:
        return (0.0, 0.0, -float(self.q), 1.0 - float(self.q))


#: The least normal number, and the largest below 1: where logarithms would be infinite.
TINY, BELOW_1 = float(np.finfo(np.float64).tiny), 1.0 - 2.0**-53


def _entropy(q: np.ndarray) -> np.ndarray:
    """q log q for q >= 0, 0 at 0."""
    return q * np.log(np.maximum(q, TINY))


def _entropy_from_1(v: np.ndarray) -> np.ndarray:
    """(1 + v) log(1 + v) for v >= -1, with the digits of a small v."""
    return (1.0 + v) * np.log1p(np.maximum(v, -BELOW_1))


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-bz))."""

    name = "logistic"
    code = LOGISTIC
    task = "classification"
    gamma = 4.0
    constants = (0.0, 0.0, 0.0, 0.0)

    # NumPy's exp, log and log1p take many numbers at a time: 1 to 2 ns each, where logaddexp,
    # expit and xlogy take 10 to 20 (a check of 245,057 x 3 numbers: 20 -> 9 ms).

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        m = -b * z
        return np.log1p(np.exp(-np.abs(m))) + np.maximum(m, 0.0)

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        m = b * z
        return -b * (np.exp(np.minimum(-m, 0.0)) / (1.0 + np.exp(-np.abs(m))))

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = np.sign(np.asarray(b, dtype=np.float64))
        return np.minimum(-b, 0.0), np.maximum(-b, 0.0)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        q = -b * v
        return _entropy(q) + _entropy_from_1(-q)  # 1 - q would lose a small q


@dataclass(frozen=True)
class Poisson(Loss):
    """exp(z) - bz for counts ``b``; neither smooth nor Lipschitz."""

    name = "poisson"
    differentiable = True  # though no 1/gamma bounds its curvature
    code = POISSON
    task = "count"
    gamma = 0.0
    constants = (0.0, 0.0, 0.0, 0.0)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # an overflow is an honest inf here
            return np.exp(z) - b * z

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(z) - b

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = np.asarray(b, dtype=np.float64)
        return -b, np.full(b.shape, np.inf)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        m = v + b
        return _entropy(m) - m

    def start(self, b: np.ndarray) -> np.ndarray:
        return 1.0 - np.asarray(b, dtype=np.float64)


@dataclass(frozen=True)
class LogCosh(Loss):
    """log cosh(z-b): r^2/2 for small r = z-b, |r| - log 2 for large ones, and smooth throughout."""

    name = "log_cosh"
    code = LOG_COSH
    task = "regression"
    gamma = 1.0
    constants = (0.0, 0.0, -1.0, 1.0)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        r = np.abs(z - b)
        small = np.log1p(2.0 * np.square(np.sinh(0.5 * np.minimum(r, 1.0))))  # with all its digits
        return np.where(r < 1.0, small, r + np.log1p(0.5 * np.expm1(-2.0 * r)))

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.tanh(z - b)

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = np.shape(b)
        return np.full(shape, -1.0), np.full(shape, 1.0)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        clipped = np.clip(v, -0.5, 0.5)
        small = clipped * np.arctanh(clipped) + 0.5 * np.log1p(-np.square(clipped))
        large = 0.5 * (_entropy_from_1(v) + _entropy_from_1(-v))
        return b * v + np.where(np.abs(v) < 0.5, small, large)


@dataclass(frozen=True)
class Multinomial(Loss):
    """logsumexp(z) - z_b for a vector ``z`` of one number a class and a class code ``b``."""

    name = "multinomial"
    code = MULTINOMIAL
    task = "multiclass"
    blocks = True
    gamma = 2.0  # in the Euclidean norm: the Hessian diag(p) - pp' is at most 1/2
    constants = (0.0, 0.0, 0.0, 0.0)

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        rows = np.arange(b.size)
        z = z - z[rows, b][:, None]
        top = z.argmax(axis=1)
        largest = z[rows, top]
        e = np.exp(z - largest[:, None])
        e[rows, top] = 0.0  # log1p keeps the digits of a small loss
        return largest + np.log1p(e.sum(axis=1))

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return from_simplex(e / e.sum(axis=1, keepdims=True), b)

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The box around the simplex."""
        lo = np.zeros((b.size, int(b.max()) + 1))
        lo[np.arange(b.size), b] = -1.0
        return lo, lo + 1.0

    def conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        rows = np.arange(b.size)
        own, p = v[rows, b], v.copy()
        p[rows, b] = 0.0
        inside = (p >= 0.0).all(axis=1) & (own >= -1.0) & (np.abs(v.sum(axis=1)) <= 1e-12)
        p, own = np.where(inside[:, None], p, 0.0), np.where(inside, own, 0.0)
        values = _entropy(p).sum(axis=1) + _entropy_from_1(own)
        return np.where(inside, values, np.inf)

    def start(self, b: np.ndarray) -> np.ndarray:
        return np.zeros((b.size, int(b.max()) + 1))

    def dual_prox(
        self, z: np.ndarray, b: np.ndarray, y: np.ndarray, s: float | np.ndarray
    ) -> np.ndarray:
        """Rowwise, as the kernels do it; ``s`` is one number a row."""
        from ..kernels.classes import dual_prox_blocks

        z, y = (np.ascontiguousarray(a, dtype=np.float64) for a in (z, y))
        s = np.ascontiguousarray(np.broadcast_to(s, b.shape), dtype=np.float64)
        out = np.empty_like(z)
        dual_prox_blocks(z, b, y, s, out)
        return out


#: The losses of one number a row.
LOSSES: dict[str, type[Loss]] = {
    cls.name: cls
    for cls in (
        Squared,
        SmoothHinge,
        Hinge,
        SquaredHinge,
        Logistic,
        Huber,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        Absolute,
        Quantile,
        Poisson,
        LogCosh,
    )
}
#: The losses of a vector a row.
BLOCK_LOSSES: dict[str, type[Loss]] = {Multinomial.name: Multinomial}


def get_loss(loss: str | Loss) -> Loss:
    """The loss object for a name (with default parameters) or for itself."""
    if isinstance(loss, Loss):
        _require_code(loss)
        return loss
    known = LOSSES | BLOCK_LOSSES
    if isinstance(loss, str) and loss in known:
        return known[loss]()
    raise ValueError(
        f"loss={loss!r}: not a loss; use one of {', '.join(sorted(known))}, or an object such "
        "as adacoord.problem.losses.Huber(delta=1.35)"
    )
