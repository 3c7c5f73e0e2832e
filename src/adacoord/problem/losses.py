r"""The losses: pointwise functions :math:`\phi(z; b)` of a prediction ``z`` and a target ``b``.

Nine of the fourteen are one family.  Their conjugate is a quadratic on an interval,

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
``gamma`` is z + b exp(-z) for b > 0, with phi*(v) = (1-v) log((1-v)/b) - (1-v), v <= 1;
``tweedie`` (1 < p < 2) is b exp((1-p)z)/(p-1) + exp((2-p)z)/(2-p) for b >= 0; its phi* takes a root
and is finite everywhere, for b = 0 on v >= 0: v (log v - 1)/(2-p).  These three are half a unit
deviance of exp(z), the log link, up to a constant, and neither smooth nor Lipschitz;
``log_cosh`` is log cosh(z-b), with phi*(v) = bv + ((1+v) log(1+v) + (1-v) log(1-v))/2 on [-1, 1].
``multinomial`` is logsumexp(z) - z_b for a vector z of K numbers and a class code b in 0..K-1,
with phi*(v) = sum_k p_k log p_k, p = v + e_b on the simplex: its arrays have shape (n, K).

A loss is (1/``gamma``)-smooth; ``gamma`` is 0 where it is not.  What is here is NumPy in
float64 and serves the certificate; the solvers' kernels use the compiled table of
:mod:`adacoord.kernels.loss` instead, so that judge and judged share no code.

The classes are in :mod:`.quadratic_losses`, :mod:`.entropic_losses` and :mod:`.log_links`; what
each of them offers is said in :mod:`.loss`.
"""

from __future__ import annotations

from .entropic_losses import LogCosh, Logistic, Multinomial
from .log_links import Gamma, Poisson, Tweedie
from .loss import Loss, require_code
from .quadratic_losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Quantile,
    SmoothHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)

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
        Gamma,
        Tweedie,
        LogCosh,
    )
}
#: The losses of a vector a row.
BLOCK_LOSSES: dict[str, type[Loss]] = {Multinomial.name: Multinomial}


def get_loss(loss: str | Loss) -> Loss:
    """The loss object for a name (with default parameters) or for itself."""
    if isinstance(loss, Loss):
        require_code(loss)
        return loss
    known = LOSSES | BLOCK_LOSSES
    if isinstance(loss, str) and loss in known:
        return known[loss]()
    raise ValueError(
        f"loss={loss!r}: not a loss; use one of {', '.join(sorted(known))}, or an object such "
        "as adacoord.problem.losses.Huber(delta=1.35)"
    )
