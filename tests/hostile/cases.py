"""Hostile problems, one for each number: large offsets, wild weights, extreme scales, no content.

``case(number)`` depends on the number alone.  Each is a problem that must be solved, or, where
its numbers are at the ends of float64's range (``extreme``), may be refused with a ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from hostile.judge import Instance

MARGIN = ("hinge", "smooth_hinge", "squared_hinge", "logistic")
REGRESSION = (
    "squared",
    "huber",
    "absolute",
    "quantile",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
)
LOSSES = (*MARGIN, *REGRESSION, "poisson", "multinomial")
KINKED = ("hinge", "absolute", "quantile", "epsilon_insensitive")
#: The parameter of a loss that has one, as the package has it by default.
PARAMETER = {
    "huber": 1.35,
    "quantile": 0.5,
    "epsilon_insensitive": 0.1,
    "squared_epsilon_insensitive": 0.1,
    "smooth_hinge": 1.0,
}
SOLVERS = (
    "spdc",
    "adaspdc",
    "apdc",
    "dspdc",
    "spd1-vr",
    "dcd",
    "acf",
    "cd",
    "sdca",
    "newton",
    "newton-cg",
    "asdca",
    "sag",
    "afg",
    "lbfgs",
    "pdhg",
)


@dataclass
class Case:
    """A problem, how to solve it, and in what way it is hostile."""

    number: int
    A: object
    b: np.ndarray
    loss: str
    l1: float = 0.0
    l2: float = 0.0
    positive: bool = False
    weights: np.ndarray | None = None
    intercept: bool = False
    solver: str = "auto"
    tol: float = 1e-6
    traits: list[str] = field(default_factory=list)
    extreme: bool = False

    @property
    def parameter(self) -> float | None:
        return PARAMETER.get(self.loss)

    @property
    def arguments(self) -> tuple[tuple, dict]:
        """What ``Problem`` takes."""
        return (self.A, self.b, self.loss, self.l1, self.l2), {
            "positive": self.positive,
            "sample_weight": self.weights,
            "intercept": self.intercept,
        }

    def instance(self) -> Instance:
        return Instance.of(
            self.A,
            self.b,
            self.loss,
            self.parameter,
            self.l1,
            self.l2,
            self.positive,
            self.weights,
            self.intercept,
        )

    def __str__(self) -> str:
        n, d = self.A.shape
        words = [f"{n} x {d}", self.loss, f"l1={self.l1:.3g}", f"l2={self.l2:.3g}"]
        words += ["positive"] * self.positive + ["intercept"] * self.intercept
        return f"case {self.number}: {', '.join(words)}, {self.solver}, tol={self.tol:g}; " + (
            ", ".join(self.traits) or "plain"
        )


#: In what way a case may be hostile.  Half of the cases have one of these, so that nothing hides
#: behind the rounding of something else, the other half all that chance gives them.
HOSTILITIES = ("features", "targets", "weights", "range", "content")


def case(number: int) -> Case:
    """The problem of this number."""
    rng = np.random.default_rng([11, number])
    if number % 20 == 19:
        return SEEN[number // 20 % len(SEEN)](rng, number)
    loss = LOSSES[number % len(LOSSES)]  # all of them in every dozen
    n, d = _shape(rng)
    if loss in MARGIN or loss == "multinomial":
        n = max(n, 3)
    out = Case(number, rng.standard_normal((n, d)), np.zeros(n), loss)
    out.b = _targets(rng, out.A, loss)
    single = rng.random() < 0.5
    chosen = [HOSTILITIES[rng.integers(len(HOSTILITIES))]] if single else HOSTILITIES
    for name, change in (
        ("content", _content),
        ("features", _features),
        ("targets", _offset),
        ("range", _range),
        ("weights", _weights),
    ):
        # one alone always happens, of several each now and then
        if name in chosen and (single or rng.random() < 0.4):
            change(rng, out)
    out.intercept = bool(rng.random() < 0.6)
    out.tol = 10.0 ** -int(rng.integers(4, 10))
    _penalty(rng, out)
    if rng.random() < 0.25:
        out.solver = str(rng.choice(SOLVERS))
    _store(rng, out)
    return out


# ---- one in twenty is of a kind that went wrong once -----------------------------------------


def _null_lasso(rng, number) -> Case:
    """x = 0 is optimal, and the gap of large targets is below 0 by rounding: hung, one in 16."""
    n, d = int(rng.integers(60, 121)), int(rng.integers(2, 5))
    size = 10.0 ** rng.uniform(8.5, 9.5)
    return Case(
        number,
        rng.standard_normal((n, d)),
        rng.standard_normal(n) + size,
        "squared",
        l1=10.0 ** rng.uniform(-0.3, 1.3),
        intercept=True,
        tol=1e-8,
        traits=[f"targets + {size:.1e}", "null lasso"],
    )


def _far_clusters(rng, number) -> Case:
    """Separated classes far from the origin: small dual points lost their balance."""
    b = np.arange(60) % 3
    size = 10.0 ** rng.uniform(3, 7)
    A = 0.1 * rng.standard_normal((60, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[b] + size
    weights = rng.choice([None, 1e8, 1e12])
    if weights is not None:
        weights = np.where(rng.random(60) < 0.5, 1.0, weights)
    return Case(
        number,
        A,
        b.astype(float),
        "multinomial",
        l2=10.0 ** rng.uniform(-12, -4),
        weights=weights,
        intercept=True,
        tol=10.0 ** -int(rng.integers(4, 10)),
        traits=[f"features + {size:.1e}", "clusters"] + ["weights"] * (weights is not None),
    )


def _far_ridge(rng, number) -> Case:
    """Features so far from the origin that P and D differ by rounding alone."""
    n, d, size = int(rng.integers(40, 121)), int(rng.integers(1, 6)), 2.0 ** rng.integers(20, 40)
    A = rng.standard_normal((n, d)) + size
    b = (A - size) @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    return Case(
        number,
        A,
        b,
        str(rng.choice(["squared", "huber"])),
        l2=10.0 ** rng.uniform(-6, 0),
        intercept=True,
        tol=1e-9,
        traits=[f"features + {size:.1e}", "ridge"],
    )


def _thin_poisson(rng, number) -> Case:
    """Counts with a weak penalty: dual ascent came back with a point worse than x = 0."""
    n, d = int(rng.integers(20, 61)), int(rng.integers(5, 31))
    A = rng.standard_normal((n, d))
    return Case(
        number,
        A,
        _targets(rng, A, "poisson"),
        "poisson",
        l1=float(rng.choice([0.0, 1e-3])),
        l2=10.0 ** rng.uniform(-7, -3),
        intercept=bool(rng.random() < 0.5),
        solver=str(rng.choice(["auto", "dcd", "acf"])),
        traits=["counts"],
    )


#: Makers of such cases.
SEEN = (_null_lasso, _far_clusters, _far_ridge, _null_lasso, _thin_poisson)


# ---- all the others --------------------------------------------------------------------------


def _shape(rng) -> tuple[int, int]:
    kind = rng.integers(4)
    if kind == 0:
        return int(rng.integers(20, 121)), int(rng.integers(1, 11))
    if kind == 1:
        n = int(rng.integers(3, 41))
        return n, n
    if kind == 2:
        return int(rng.integers(3, 31)), int(rng.integers(20, 61))
    return int(rng.integers(1, 61)), int(rng.integers(1, 61))


def _targets(rng, A, loss) -> np.ndarray:
    n, d = A.shape
    noise = 10.0 ** rng.uniform(-3, 0)
    z = A @ rng.standard_normal(d) / d**0.5 + noise * rng.standard_normal(n)
    if loss in MARGIN:
        b = np.where(z > 0, 1.0, -1.0)
        b[:2] = 1.0, -1.0
        return b
    if loss == "multinomial":
        classes = int(rng.integers(2, min(n, 5) + 1))
        b = rng.permutation(np.arange(n) % classes)
        # clusters, more or less apart
        A += rng.choice([0.5, 2.0, 10.0]) * rng.standard_normal((classes, d))[b]
        return b.astype(float)
    if loss == "poisson":
        return np.floor(np.exp(np.clip(z, -3, 3)))
    return z


def _content(rng, case: Case) -> None:
    """Nothing where something is expected: zeros, repeats, constants."""
    A, (n, d) = case.A, case.A.shape
    kinds = ["zero columns", "zero rows", "duplicate rows", "duplicate columns", "A = 0"]
    if case.loss in REGRESSION or case.loss == "poisson":
        kinds += ["constant targets", "zero targets"] * 2
    kind = str(rng.choice(kinds))
    case.traits.append(kind)
    if kind == "zero columns":
        A[:, rng.random(d) < 0.4] = 0.0
    elif kind == "zero rows":
        A[rng.random(n) < 0.4] = 0.0
    elif kind == "duplicate rows":
        case.A = A[rng.integers(0, n, n)]
    elif kind == "duplicate columns":
        case.A = A[:, rng.integers(0, d, d)]
    elif kind == "A = 0":
        case.A = np.zeros_like(A)
    elif kind == "constant targets":
        case.b = np.full_like(case.b, case.b[0])
    else:
        case.b = np.zeros_like(case.b)


def _features(rng, case: Case) -> None:
    """Large offsets, or columns of unequal scale."""
    d, size = case.A.shape[1], 10.0 ** rng.uniform(4, 12)
    kind = rng.integers(3)
    if kind == 0:
        case.A = case.A + size
        case.traits.append(f"features + {size:.1e}")
    elif kind == 1:
        case.A = case.A + size * rng.standard_normal(d) * (rng.random(d) < 0.5)
        case.traits.append(f"some features + {size:.1e}")
    else:
        case.A = case.A * 10.0 ** rng.uniform(-6, 6, d)
        case.traits.append("columns of unequal scale")


def _offset(rng, case: Case) -> None:
    """A large offset of the targets; for classes, of the features."""
    size = 10.0 ** rng.uniform(4, 12)
    if case.loss in REGRESSION:
        case.b = case.b + size * rng.choice([-1.0, 1.0])
        case.traits.append(f"targets + {size:.1e}")
    elif case.loss == "poisson":
        case.b = np.floor(case.b + size)
        case.traits.append(f"targets + {size:.1e}")
    else:
        case.A = case.A + size
        case.traits.append(f"features + {size:.1e}")


def _range(rng, case: Case) -> None:
    """Powers of two at the ends of float64's range; products leave it."""
    case.extreme = True
    where = rng.integers(3)
    if where != 0:
        power = int(rng.choice([-1060, -540, -500, -300, 300, 500, 540]))
        if power < -1000 or np.abs(case.A).max() < 1e8:
            case.A = np.ldexp(case.A, power)
            case.traits.append(f"features * 2^{power}")
    if where != 1 and (case.loss in REGRESSION or case.loss == "poisson"):
        power = int(rng.choice([-1060, -500, -300, 300, 500]))
        if case.loss == "poisson":
            power = min(abs(power), 500)
        case.b = np.ldexp(case.b, power)
        case.traits.append(f"targets * 2^{power}")


def _weights(rng, case: Case) -> None:
    n, kind = len(case.b), rng.integers(5)
    if kind <= 1:
        case.traits.append("weights 10^U(-12, 12)")
        case.weights = 10.0 ** rng.uniform(-12, 12, n)
    elif kind <= 3:
        large = (1e8, 1e12)[kind - 2]
        case.traits.append(f"weights {{1, {large:g}}}")
        case.weights = np.where(rng.random(n) < 0.5, 1.0, large)
    else:
        case.traits.append("weights {0, 1}")
        case.weights = np.where(rng.random(n) < 0.4, 0.0, 1.0)
        case.weights[0] = 1.0


def _penalty(rng, case: Case) -> None:
    """l2 against |A|^2, of all of A or of what an intercept leaves of it; l1 against l1_max."""
    A, w = np.asarray(case.A, np.longdouble), case.weights
    w = np.ones(len(A)) if w is None else w
    centred = A - A.mean(axis=0)
    base = A if rng.random() < 0.5 or not centred.any() else centred
    square = float(min(max((w @ np.square(base)).sum() / len(A) or 1.0, 1e-300), 1e300))
    # half of them where most methods arrive: a certificate is put to the test near the optimum
    power = rng.uniform(-12, 3) if rng.random() < 0.5 else rng.uniform(-4, 1)
    l2 = min(max(square * 10.0**power, 1e-300), 1e300)
    y = _null_slopes(case).astype(np.longdouble)
    if case.intercept:
        y = y - (w @ y) / w.sum()
    largest = np.abs(A.T @ ((w * y.T).T)).max() / len(A) or 1.0
    # beyond l1_max x = 0 is the answer, and with large targets the gap is all rounding
    null = rng.random() < (0.5 if np.abs(case.b).max() > 1e3 else 0.15)
    fraction = 10.0 ** (rng.uniform(0, 3) if null else rng.uniform(-4, 0))
    l1 = float(min(max(largest * fraction, 1e-300), 1e300))
    draw = rng.random()
    if draw < 0.45:
        case.l2 = l2
    elif draw < 0.7:
        case.l1 = l1
    elif draw < 0.95 or case.loss in KINKED:
        case.l1, case.l2 = l1, l2
    case.positive = bool(rng.random() < 0.15 and case.loss != "multinomial" and draw < 0.95)


def _null_slopes(case: Case) -> np.ndarray:
    """About phi' at x = 0: only the size matters here."""
    b = case.b
    if case.loss in MARGIN:
        return -b
    if case.loss == "multinomial":
        return np.full((b.size, int(b.max()) + 1), 0.5) - np.eye(int(b.max()) + 1)[b.astype(int)]
    r = (np.average(b) if case.intercept else 0.0) - b
    if case.loss in ("squared", "squared_epsilon_insensitive", "poisson"):
        return r
    return np.sign(r)


def _store(rng, case: Case) -> None:
    A, draw = case.A, rng.random()
    if draw < 0.15 and np.abs(A).max() < 1e30 and np.abs(A[A != 0]).min(initial=1.0) > 1e-30:
        A = A.astype(np.float32)
        case.traits.append("float32")
    draw = rng.random()
    if draw < 0.25:
        A = sparse.csr_matrix(A)
    elif draw < 0.3:
        A = sparse.csc_matrix(A)
    elif draw < 0.35:
        A = np.asfortranarray(A)
    if draw < 0.35:
        case.traits.append("CSR" if draw < 0.25 else "CSC" if draw < 0.3 else "Fortran")
    case.A = A
