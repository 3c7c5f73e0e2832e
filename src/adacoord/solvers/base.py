"""What a solver is: a stepper.

``Solver(problem, rng, start=..., **options)``, then ``advance(passes)`` any number of times;
``x``, ``intercept``, ``y`` give the current point, ``state()`` and ``restore()`` carry it from
one process to another.  A solver neither measures its gap nor decides when to stop: the monitor
does, so every solver gets tracing, time limits and interrupts for nothing.

``advance(a); advance(b)`` gives the bits of ``advance(a + b)``: whatever happens between two
steps (a flush of lazy variables, a new stage, a re-synchronisation) is tied to the count of
passes, never to the calls.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from ..problem import Problem
from ..problem.reduction import Reduction


class Point(Protocol):
    """What a run starts from: a result, a solver, or whatever else has these three."""

    @property
    def x(self) -> np.ndarray: ...

    @property
    def intercept(self) -> float | np.ndarray: ...

    @property
    def y(self) -> np.ndarray: ...


class Stepper(Point, Protocol):
    """What the monitor asks of a solver; :class:`Solver` says what each of these means."""

    @property
    def passes(self) -> int: ...

    @property
    def operations(self) -> int: ...

    @property
    def check_cost(self) -> float: ...

    @property
    def finished(self) -> str: ...

    @property
    def estimate(self) -> float: ...

    @property
    def patient(self) -> bool: ...

    @property
    def look_cost(self) -> float: ...

    @property
    def descends(self) -> bool: ...

    @property
    def uses_blas(self) -> bool: ...

    @property
    def steady(self) -> bool: ...

    @property
    def stuck(self) -> bool: ...

    @property
    def offers_slopes(self) -> bool: ...

    def advance(self, passes: int) -> None: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


class Solver:
    """A method that visits rows, on the rows worth visiting.

    Rows of zero weight and (without an intercept) rows of zeros are never visited.  The N rows
    that are left make the same problem with n replaced by N and weights W_i = w_i N/n, and a
    weighted row behaves as the row sqrt(W_i) a_i of weight 1 (in y_i sqrt(W_i)): gamma and the
    dual prox stay as they are, only |a_i|^2 W_i takes the place of |a_i|^2.
    """

    name: ClassVar[str]
    #: What one gap check costs, in passes of this solver: spaces the monitor's checks.
    check_cost: ClassVar[float] = 1.0
    #: The relative gap that a solver which looks at all of A anyway believes to have: the monitor
    #: checks as soon as this is small enough, instead of some passes later.
    estimate: float = math.inf
    #: Whether it is worth looking only when ``estimate`` says so, not at the start.
    patient: ClassVar[bool] = False
    #: What one look at a patient solver costs, in its passes, where a callback waits for looks.
    look_cost: ClassVar[float] = 0.2
    #: Whether it goes on from the x of a start, and P never rises from there (but for rounding).
    descends: bool = False
    #: Whether it works by BLAS, which the monitor then holds to one thread.
    uses_blas: ClassVar[bool] = False
    #: Whether each pass lowers P or raises D, while there is anything to gain.
    steady: ClassVar[bool] = False
    #: Whether it has nothing more to offer: another method may go on.
    stuck: bool = False
    #: Whether y is what the slopes of the losses are at (x, c), and nothing else: the monitor then
    #: makes it of the predictions that it needs anyway.
    offers_slopes: bool = False
    #: Attributes that make up ``state()``, beside the random generator.
    _state: ClassVar[tuple[str, ...]] = ()

    def __init__(self, problem: Problem, rng: np.random.Generator, start: Point | None = None):
        self.problem = problem
        self.rng = rng
        self.passes = 0
        self.operations = 0
        self.n_rows = max(problem.n_active, 1)
        x, c, self.y = start_point(problem, start)
        self._start = x.astype(problem.matrix.dtype), c

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows worth visiting; made for who visits rows."""
        return self.problem.active.astype(np.uint32)

    @cached_property
    def weight(self) -> np.ndarray:
        """W_i."""
        w = np.ones(self.problem.n) if self.problem.weights is None else self.problem.weights
        return w * (self.n_rows / self.problem.n)

    @property
    def finished(self) -> str:
        """The name of the published stopping rule that holds, for reproductions; "" for none."""
        return ""

    @property
    def x(self) -> np.ndarray:
        """The current primal point."""
        raise NotImplementedError

    @property
    def intercept(self) -> float | np.ndarray:
        """The current intercept (0 if the problem has none); one number a class for blocks."""
        raise NotImplementedError

    def advance(self, passes: int) -> None:
        """Make ``passes`` passes over the data."""
        for _ in range(passes):
            if self.finished:
                return
            if self.problem.n_active:
                self._pass()
            self.passes += 1

    def _pass(self) -> None:
        raise NotImplementedError

    def _count(self, order: np.ndarray) -> None:
        m = self.problem.matrix
        self.operations += order.size * m.shape[1] if m.is_dense else int(m.row_sizes[order].sum())

    def _average(self) -> np.ndarray:
        """u = (1/n) sum w_i y_i a_i from y itself: clears what running sums have rounded away."""
        return self.problem.average(self.y)

    def state(self) -> dict[str, Any]:
        """The whole state as plain arrays and numbers."""
        out: dict[str, Any] = {
            "passes": self.passes,
            "operations": self.operations,
            "estimate": self.estimate,
            "stuck": self.stuck,
            "y": self.y.copy(),
        }
        for name in self._state:
            value = getattr(self, name)
            out[name] = value.copy() if isinstance(value, np.ndarray) else value
        out["rng"] = pack_generator(self.rng)
        return out

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from ``state()`` of a solver made with the same problem and options."""
        for name, value in state.items():
            if name == "rng":
                unpack_generator(self.rng, value)
            else:
                setattr(self, name, value.copy() if isinstance(value, np.ndarray) else value)


class Restored:
    """A solver of a reduced problem, with the points of the problem asked."""

    def __init__(self, solver: Any, reduction: Reduction):
        self._solver, self._reduction = solver, reduction

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    @property
    def x(self) -> np.ndarray:
        return self._reduction.x(self._solver.x)

    @property
    def y(self) -> np.ndarray:
        return self._reduction.y(self._solver.y)


def start_point(
    problem: Problem, start: Point | None
) -> tuple[np.ndarray, float | np.ndarray, np.ndarray]:
    """(x, intercept, y) to start from: ``start``'s own, or zero and the loss's dual start."""
    if start is None:
        return problem.null_point, problem.no_intercept, problem.loss.start(problem.b)
    x, c = problem._check_x(start.x).copy(), problem.no_intercept
    if problem.intercept:
        c = problem._check_intercept(start.intercept)
    y = problem.into_domain(problem._check_y(start.y))
    if not (np.isfinite(x).all() and np.isfinite(c).all() and np.isfinite(y).all()):
        raise ValueError("start has values that are not finite: start from another result, or None")
    return x, c, y


def first_intercept(problem: Problem, start: Point | None) -> Any:
    """Where a primal method starts: for log links at the best c for x = 0.

    From c = 0 a first Newton step is as long as the targets are large, in the exponent.
    """
    if start is None and problem.intercept and problem.loss.log_link and problem._mean(problem.b):
        return problem.null_intercept
    if start is None or not problem.intercept:
        return problem.no_intercept
    return problem._check_intercept(start.intercept)


def pack_generator(rng: np.random.Generator) -> np.ndarray:
    """The state of a PCG64 generator as six 64-bit numbers."""
    s = rng.bit_generator.state
    words = [s["state"]["state"], s["state"]["inc"]]
    halves = [(v >> shift) & (2**64 - 1) for v in words for shift in (0, 64)]
    return np.array([*halves, s["has_uint32"], s["uinteger"]], dtype=np.uint64)


def unpack_generator(rng: np.random.Generator, packed: np.ndarray) -> None:
    """Undo :func:`pack_generator`."""
    v = [int(word) for word in packed]
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": v[0] | v[1] << 64, "inc": v[2] | v[3] << 64},
        "has_uint32": v[4],
        "uinteger": v[5],
    }
