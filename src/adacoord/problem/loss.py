"""What every loss offers, and what is known of its rounding; the losses are in :mod:`.losses`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..kernels.codes import CODES
from .row_sums import sum_of


class Units(NamedTuple):
    r"""What phi and phi* as evaluated here may be off by, in units of 2^-53 (half an ulp of 1).

    phi(z) by ``value`` phi + ``slope`` \|phi'\|; phi*(v) by ``conjugate`` times what bounds its
    |terms|, of which ``size`` has the shares of \|phi*(v)\| itself, \|bv\|, v^2 and \|v\|; and by
    ``linear`` \|v\| where v is in the domain but for rounding.  exp, log and their kind are taken
    to be right to within 4 ulps, 8 units (NumPy's are to within 1 or 2: ``tests/hostile/
    test_rounding.py`` looks).
    """

    value: float
    slope: float
    conjugate: float
    size: tuple[float, float, float, float]
    linear: float = 0.0


@dataclass(frozen=True)
class Loss:
    """What every loss offers: value, a subgradient, the conjugate and its domain."""

    name: ClassVar[str]
    code: ClassVar[int]
    #: "classification": b is +1 or -1; "multiclass": 0..K-1; "regression"; "count": b >= 0;
    #: "positive": b > 0
    task: ClassVar[str]
    parameter: ClassVar[str | None] = None
    #: Whether exp(z), and not z, is what b is like.
    log_link: ClassVar[bool] = False
    #: Whether a prediction is a vector, one number a class.
    blocks: ClassVar[bool] = False
    #: Whether neither phi nor its slope is bounded by anything simpler: it has ``sizes``.
    unbounded: ClassVar[bool] = False
    #: Whether that is one of probabilities, and ``b`` holds the codes of classes.
    simplex: ClassVar[bool] = False

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

    @property
    def steep(self) -> bool:
        """Whether phi has a continuous slope, but no bound on that or on its curvature."""
        return self.differentiable and self.gamma == 0.0

    @property
    def straight(self) -> bool:
        """Whether phi is linear beyond parabolas or kinks, so that an interior point takes it."""
        return False

    def value(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        """phi(z)."""
        raise NotImplementedError

    def derivative(self, z: np.ndarray, b: np.ndarray) -> np.ndarray:
        """An element of the subdifferential of phi at ``z``: the dual point ``z`` suggests."""
        raise NotImplementedError

    def conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        """phi*(v), ``inf`` where ``v`` is outside the domain."""
        lo, hi = self._ends(b)
        endless = np.ndim(lo) == np.ndim(hi) == 0 and lo == -np.inf and hi == np.inf
        inside = v == v if endless else (v >= lo) & (v <= hi)
        if inside.all():
            return self._conjugate(v, b)
        return np.where(inside, self._conjugate(np.where(inside, v, 0.0), b), np.inf)

    def _conjugate(self, v: np.ndarray, b: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def value_sum(self, z: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None) -> float:
        """sum_i w_i phi(z_i)."""
        return sum_of(self.value, z, b, weights)

    def conjugate_sum(
        self, v: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None
    ) -> float:
        """sum_i w_i phi*(v_i)."""
        return sum_of(self.conjugate, v, b, weights)

    def domain(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the interval on which the conjugate is finite."""
        raise NotImplementedError

    def _ends(self, b: np.ndarray) -> tuple[Any, Any]:
        """The same; one number where all rows have the same end."""
        return self.domain(b)

    def units(self, width: int, reach: float) -> Units:
        """What evaluation may be off by; of rows of ``width`` numbers that differ by ``reach``."""
        raise NotImplementedError

    def sizes(self, z: np.ndarray, v: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        """The sums of the |terms| of phi(z), phi*(v) and phi*(0), of ``unbounded`` losses: what
        ``units`` are then units of."""
        raise NotImplementedError

    def start(self, b: np.ndarray) -> np.ndarray:
        """A dual point to start from: 0, which is what x = 0 answers to (u = 0).

        For the logistic loss phi'(0) = -b/2 seems natural, but with a small penalty its u asks
        for a huge x: 24 passes instead of 15 (w8a, l2 = 1e-6).
        """
        return np.zeros(np.shape(b))

    def without_offset(
        self, b: np.ndarray, offset: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None] | None:
        """(b', f) with phi(z + offset; b) = f phi(z; b') and a constant; f = None for 1.

        None where there is no such form: a solver then adds the offset to its predictions.
        """
        return (b - offset, None) if self.task == "regression" else None

    def dual_prox(
        self, z: np.ndarray, b: np.ndarray, y: np.ndarray, s: float | np.ndarray
    ) -> np.ndarray:
        r"""Elementwise :math:`\arg\max_v\; vz - \phi^*(v) - (v-y)^2/(2s)`, as the kernels do it."""
        from ..kernels.loss import dual_prox_array

        require_code(self)
        arrays = [np.asarray(a, dtype=np.float64) for a in (z, b, y, s)]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        # copies: one compiled signature, and no views of one element at many places
        flat = (np.array(np.broadcast_to(a, shape)).ravel() for a in arrays)
        return dual_prox_array(self.code, *self.constants, *flat).reshape(shape)


def require(value: float, inside: Callable[[float], bool], argument: str, remedy: str) -> None:
    real = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not real or not inside(value):  # NaN fails every comparison
        raise ValueError(f"{argument}={value!r}: {remedy}")


def require_code(loss: Loss) -> None:
    """Refuse a loss that the compiled table has no row for: every solver would return NaN."""
    code = getattr(loss, "code", None)
    if code not in CODES:
        raise ValueError(
            f"loss={loss!r}: its code={code!r} is not in the compiled table of losses; give the "
            "class a code of adacoord.kernels.codes, and that code a row in adacoord.kernels.loss"
        )
