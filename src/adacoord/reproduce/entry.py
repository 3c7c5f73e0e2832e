"""An entry: one figure or table of a paper, its claim, and the rules that judge it.

The rules are written here, in the code, before anything runs: each compares one measured number
with a bound.  All of them met is "holds", some "holds in part", none "does not hold".  Where the
print is wrong, or leaves open what was run, rules come in two variants, and so does the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .lab import Lab

PRINTED, CORRECTED = "as printed", "corrected"
#: What rules may say, the best first.
VERDICTS = ("holds", "holds in part", "does not hold")


@dataclass(frozen=True)
class Rule:
    """A measured number and the bound it has to keep; a number that is NaN keeps none.

    ``key`` is its name in :attr:`Findings.measured`, ``text`` says what it is.
    """

    key: str
    text: str
    at_most: float = math.inf
    at_least: float = -math.inf
    variant: str = PRINTED

    def holds(self, value: float) -> bool:
        """Whether the number keeps the bound."""
        return bool(self.at_least <= value <= self.at_most)

    @property
    def bound(self) -> str:
        """The bound in words."""
        parts = [f"at least {self.at_least:g}"] * math.isfinite(self.at_least)
        parts += [f"at most {self.at_most:g}"] * math.isfinite(self.at_most)
        return " and ".join(parts)


@dataclass(frozen=True)
class Curve:
    """A line of a panel; its label, ``"method"`` or ``"method, variant"``, decides its style."""

    label: str
    x: np.ndarray | Sequence[float]
    y: np.ndarray | Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    curves: list[Curve]
    xlabel: str = "passes"
    ylabel: str = "P(x) - P*"
    xlog: bool = False
    ylog: bool = True
    markers: bool = False


@dataclass(frozen=True)
class Table:
    """A table of text; the first column holds the names of the rows."""

    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass
class Findings:
    """What a run found: numbers for the rules, panels in the paper's layout, tables, remarks."""

    measured: dict[str, float]
    panels: list[list[Panel]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """One figure or table: ``run`` measures what ``rules`` judge."""

    name: str
    title: str
    claim: str
    rules: tuple[Rule, ...]
    run: Callable[[Lab], Findings]

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.name.split("-")[0]

    @property
    def variants(self) -> list[str]:
        """The variants it is judged in."""
        return list(dict.fromkeys(rule.variant for rule in self.rules))

    def verdict(self, measured: dict[str, float], variant: str = PRINTED) -> str:
        """What the rules of a variant say."""
        kept = [r.holds(measured[r.key]) for r in self.rules if r.variant == variant]
        return VERDICTS[0] if all(kept) else VERDICTS[1] if any(kept) else VERDICTS[2]
