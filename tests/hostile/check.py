"""One case, solved and judged: what is wrong with the result, in words."""

from __future__ import annotations

import math
import re
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import adacoord as ac
from adacoord.solvers.registry import admit
from hostile import judge
from hostile.cases import REGRESSION, Case, case
from hostile.judge import OWN, Real
from hostile.optimum import best_value, near_optimum

MAX_PASSES = 200
#: Entries of A that a pass may touch, in entries of A: ACF visits a row up to 20 times a pass,
#: Newton's method factorises.
PASS = 200.0
#: Further runs of the package that look for a better P.
OTHERS = ("newton", "cd", "dcd", "apdc")
#: A refusal names what the caller gave, and what was seen: not "intercept=nan", of our own making.
REFUSAL = re.compile(
    r"(A|b|sample_weight|l1|l2|loss|tol|the data|targets?|weights?)\b(?!=(np\.float64\()?(inf|nan))"
)
#: What is wrong when a certificate ignores the rounding of its own evaluation: counted apart.
STRICT = ("gap ignores rounding", "converged within rounding only")
KINDS = (
    "exception",
    "warning",
    "refused",
    "unclear refusal",
    "NaN",
    "P not as judged",
    "D not as judged",
    "D above P",
    "gap too small",
    "false converged",
    "worse than start",
    "no end at 0",
    "history",
    "too long",
    "hang",
    "judge",
    *STRICT,
)


@dataclass
class Verdict:
    """What :func:`examine` found: (kind, sentence) for each failure."""

    number: int
    text: str
    failures: list[tuple[str, str]] = field(default_factory=list)
    refused: bool = False
    converged: bool = False
    solver: str = ""
    seconds: float = 0.0

    def fail(self, kind: str, text: str) -> None:
        self.failures.append((kind, text))


def examine(number: int, stage: Callable[[str], None] = lambda name: None) -> Verdict:
    """Solve the case of this number and judge what comes back.

    ``stage`` hears what comes next: "solve", "other solvers", "judge".
    """
    started = time.perf_counter()
    one = case(number)
    verdict = Verdict(number, str(one))
    stage("solve")
    result = attempt(one, verdict)
    if result is not None:
        try:
            stage("other solvers")
            points = other_solvers(one) if one.l1 > 0 or one.l2 > 0 else []
            stage("judge")
            judge_result(one, result, verdict, points)
        except Exception as error:
            verdict.fail("judge", f"{type(error).__name__}: {error} ({_where(error)})")
    verdict.seconds = time.perf_counter() - started
    return verdict


def attempt(one: Case, verdict: Verdict):
    """The result, or None where there is none; exceptions and warnings go into the verdict."""
    arguments, keywords = one.arguments
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            problem = ac.Problem(*arguments, **keywords)
            solver = one.solver
            try:
                admit(problem, solver, {})
            except ValueError:
                solver = "auto"
            result = ac.solve(problem, solver, tol=one.tol, max_passes=MAX_PASSES)
            verdict.solver, verdict.converged = result.solver, bool(result.converged)
        except ValueError as error:
            result, verdict.refused = None, True
            if not one.extreme:
                verdict.fail("refused", f"ValueError: {error} ({_where(error)})")
            elif not REFUSAL.match(str(error)):
                verdict.fail("unclear refusal", f"ValueError: {error} ({_where(error)})")
        except Exception as error:
            result = None
            verdict.fail("exception", f"{type(error).__name__}: {error} ({_where(error)})")
    texts = Counter(
        f"{w.category.__name__}: {w.message} ({w.filename.rsplit('/', 1)[-1]}:{w.lineno})"
        for w in caught
        if not issubclass(w.category, ac.ConvergenceWarning)
    )
    for text, times in texts.items():
        verdict.fail("warning", f"{text}, {times} times")
    return result


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(
        f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno} {f.name}" for f in frames[::-1][:3]
    )


def judge_result(one: Case, result, verdict: Verdict, points=()) -> None:
    """All that must hold of a result; ``points`` may have a better P, as may SciPy's."""
    fail, problem = verdict.fail, one.instance()
    certified = one.l1 > 0 or one.l2 > 0
    named = {"x": result.x, "intercept": result.intercept, "y": result.y, "primal": result.primal}
    if certified:
        named |= {"dual": result.dual, "gap": result.gap, "relative_gap": result.relative_gap}
    for name, value in named.items():
        if np.isnan(value).any():
            fail("NaN", f"{name} has NaN")
    _judge_history(one, result, certified, fail)
    if not (np.isfinite(result.x).all() and np.isfinite(result.intercept).all()):
        if not any(kind == "NaN" for kind, _ in verdict.failures):
            fail("NaN", "x or intercept is infinite")
        return

    x, c = result.x, result.intercept
    P = judge.primal(problem, x, c)
    zero = np.zeros(problem.x_shape), problem.no_intercept
    P0, rounding0 = judge.primal(problem, *zero), judge.primal_rounding(problem, *zero)
    rounding = judge.primal_rounding(problem, x, c)
    largest = np.finfo(float).max
    if largest >= P and not abs(result.primal - P) <= rounding:
        fail("P not as judged", f"primal={result.primal!r}, judged {P:.17g} +- {rounding:.2g}")
    if not P0 + rounding0 + rounding >= P:
        fail("worse than start", f"P={P:.6g}, P(0)={P0:.6g}")
    constant = one.loss in REGRESSION and np.ptp(one.b) == 0
    if constant and certified and not result.converged and P <= rounding < np.inf:
        fail(
            "no end at 0",
            f"P={P:.3g} is 0 but for rounding, +- {rounding:.2g}, and "
            f"relative_gap={result.relative_gap:.3g} after {result.passes} passes",
        )
    if not certified or np.isnan(result.y).any() or math.isnan(result.dual):
        return

    D, D_rounding = judge.dual(problem, result.y), judge.dual_rounding(problem, result.y)
    if np.isfinite(result.dual) and not D.value >= result.dual - D_rounding:
        fail(
            "D not as judged",
            f"dual={result.dual!r}, judged {D.value:.17g} +- {D_rounding:.2g} (P={P:.17g}, outside"
            f" {D.outside:.1g}, imbalance {D.imbalance:.1g}, scaled by 1 - {1 - D.scaled:.1g})",
        )
    points = [(x, c), zero, *points]
    best, at = best_value(problem, points)
    if at is not None:
        best, _ = best_value(problem, [at, *near_optimum(problem, *at)])
    if not best <= largest:
        return
    # weak duality holds for the judge's own numbers, or the judge is wrong
    if not D.value <= best + OWN * (D_rounding + rounding):
        raise AssertionError(f"{one}: the judge's D {D.value!r} is above its P {best!r}")
    if not result.dual <= best + D_rounding:
        fail(
            "D above P",
            f"dual={result.dual!r}, best P={best:.17g}, by "
            f"{(result.dual - best) / max(abs(best), TINIEST):.1e} of it +- {D_rounding:.2g}",
        )
    short = P - best - result.gap
    if not short <= rounding + D_rounding:
        fail(
            "gap too small",
            f"gap={result.gap:.3g}, P - P* >= {P - best:.3g} +- {rounding + D_rounding:.2g}",
        )
    elif not short <= OWN * (rounding + D_rounding) + 4 * judge.EPS * abs(P):
        fail(STRICT[0], f"gap={result.gap:.3g}, P - P* >= {P - best:.3g}, P={P:.3g}")
    if result.converged:
        scale = max(abs(P), abs(Real(result.dual)), Real(1e-12) * abs(P0))
        if not P - best <= one.tol * scale + rounding + D_rounding:
            fail("false converged", f"tol={one.tol:g}, (P - P*)/P >= {(P - best) / scale:.3g}")
        elif not P - best <= one.tol * scale * 1.001 + OWN * (rounding + D_rounding):
            fail(STRICT[1], f"tol={one.tol:g}, (P - P*)/P >= {(P - best) / scale:.3g}")


TINIEST = Real(5e-324)


def _judge_history(one: Case, result, certified: bool, fail) -> None:
    h = result.history
    sizes = {len(getattr(h, name)) for name in h.columns}
    if len(sizes) != 1 or sizes == {0}:
        fail("history", f"columns of lengths {sizes}")
        return
    for name in ("passes", "seconds", "operations"):
        if np.any(np.diff(getattr(h, name)) < 0):
            fail("history", f"{name} go back")
    if certified:
        if np.isnan(h.gap).any() or np.isnan(h.relative_gap).any():
            fail("history", "gap or relative_gap has NaN")
        elif h.gap[-1] != result.gap and result.status != "interrupted":
            fail("history", f"ends with gap={h.gap[-1]!r}, the result has {result.gap!r}")
        if not result.gap >= (result.primal - result.dual) * (1 - 1e-12):
            fail("history", f"gap={result.gap!r} below primal - dual")
        if result.converged != bool(result.relative_gap <= one.tol):
            fail("history", f"converged={result.converged} with relative_gap={result.relative_gap}")
    if result.passes > MAX_PASSES or result.passes != h.passes[-1]:
        fail("too long", f"passes={result.passes}, max_passes={MAX_PASSES}")
    n, d = one.A.shape
    # Newton's systems: of one number per row on the smaller side, of classes on the columns
    side = min(n, d) + 1
    if one.loss == "multinomial":
        side = (d + 1) * (int(one.b.max()) + 1)
    allowed = (MAX_PASSES + 10) * (PASS * n * d + side**3)
    if h.operations[-1] > allowed:
        fail("too long", f"operations={h.operations[-1]}, {allowed:.0f} are plenty")


def other_solvers(one: Case) -> list:
    """Where other solvers get: their points may be better."""
    points = []
    arguments, keywords = one.arguments
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours = ac.Problem(*arguments, **keywords)
        for solver in OTHERS:
            try:
                other = ac.solve(ours, solver, tol=one.tol * 1e-3, max_passes=MAX_PASSES)
            except Exception:  # not the run that is on trial
                continue
            if np.isfinite(other.x).all() and np.isfinite(other.intercept).all():
                points.append((other.x, other.intercept))
            if len(points) == 2:
                break
    return points
