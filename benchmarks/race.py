"""The race: ours against the peers, at equal accuracy by an outside judge.

    ADACOORD_DATA=... python benchmarks/race.py [--only TEXT] [--solver NAME] [--cap SECONDS]
                                                [--peers NAMES] [--json FILE] [--quick]
    python benchmarks/race.py --models [--seed N]    # the rest as above, but --quick

Every peer climbs its own ladder of tolerances, each rung a fit from scratch, and is timed by its
cheapest rung whose objective (`judge.py`, float64) is within 1e-6 of the best that anybody has
reached; peers within twice the fastest also try half a decade looser.  Ours has one rung:
``solve(Problem(...), tol=1e-6)``, from the raw arrays to the certificate.  The column "as peers"
is the ratio by the peers' own rule: our cheapest rung of 1e-2 to 1e-6, each with the certificate
it asks for, whose objective is within 1e-6.  All get the same arrays
(unit rows, or columns of mean 0 and deviation 1; no intercept) and one thread; each runs in a
process of its own, warmed up on 200 rows of the data.  Seconds are CPU seconds, which depend less
on what else the machine does (wall-clock seconds are in the JSON file); fits under two seconds
take the least of three, in turns.

A fit is stopped at the cap (after the fastest peer so far is known: at 5 times its seconds, but
not under 5 s); a ladder ends after 3 times as much.  What was stopped is written "> seconds", a
lower bound.  Peers that are not installed, cannot take a problem or do not get there are named,
with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import models
from contenders import OURS, PEERS, Peer
from judge import Task, largest_l1, unit_rows
from model_peers import MODEL_PEERS
from provenance import commit
from workers import ONE_THREAD, Failed, Late, Worker

EVERYBODY = (*PEERS, *MODEL_PEERS)
TOLERANCE = 1e-6
#: Our other rungs, for the ratio by the peers' rule.
LOOSER = (1e-2, 1e-3, 1e-4, 1e-5)
#: A peer this many times slower than the fastest cannot be the best: no need to know by how much.
SLOWER = 5.0
SHORTEST_CAP = 5.0
#: Fits under so many seconds are repeated: the first may have compiled what 200 rows did not need.
SHORT = 2.0
#: The whole ladder of a peer may take so many times the cap of one rung.
LADDER = 3.0

RCV1, NEWS20, W8A, COVTYPE, LEUKEMIA, COLON = (
    "rcv1.subset.binary",
    "news20.rebuilt.binary",
    "w8a",
    "covtype.binary.scale",
    "leukemia.golub",
    "colon-cancer",
)
#: (loss, data, C or the divisor of lambda_max, goal for ours/best peer, part of --quick)
CASES = (
    ("hinge", RCV1, 1, 0.4, True),
    ("hinge", RCV1, 10, 0.2, False),
    ("hinge", RCV1, 100, 0.15, False),
    ("hinge", RCV1, 1000, 0.1, False),
    ("hinge", NEWS20, 1, 1.0, False),
    ("hinge", NEWS20, 100, 0.2, False),
    ("hinge", W8A, 1, 1.0, True),
    ("hinge", W8A, 100, 0.3, False),
    ("hinge", COVTYPE, 1, 0.8, False),
    ("logistic", RCV1, 1, 0.9, True),
    ("logistic", RCV1, 100, 0.5, False),
    ("lasso", RCV1, 10, 1.0, True),
    ("lasso", RCV1, 30, 0.7, False),
    ("lasso", RCV1, 100, 0.6, False),
    ("lasso", RCV1, 300, 0.5, False),
    ("lasso", LEUKEMIA, 10, 1.0, True),
    ("lasso", LEUKEMIA, 100, 1.0, False),
    ("lasso", COLON, 10, 1.0, True),
    ("lasso", COLON, 100, 1.0, False),
    ("l1-logistic", RCV1, 10, 1.0, True),
    ("l1-logistic", RCV1, 30, 0.8, False),
    ("l1-logistic", RCV1, 100, 0.7, False),
    ("lasso", "cpuact", 100, 1.0, True),
    ("lasso", "gaussian 6000x350", 100, 1.0, False),
    ("lasso", "gaussian 40000x60", 30, 1.0, False),
    ("ridge", "gaussian 40000x8", 1, 1.0, True),
    ("ridge", "gaussian 6000x350", 1, 1.0, False),
    ("ridge", "gaussian 900x9000", 1, 1.0, False),
    ("ridge", "movielens100k_onehot", 1, 1.0, True),
    ("logistic", "gaussian 245057x3", 1, 1.0, True),
    ("logistic", "gaussian 20000x500", 1, 1.0, False),
    ("logistic", "magic04", 100, 1.0, False),
    ("hinge", "gaussian 6000x350", 1, 1.0, False),
    ("multinomial", "letter", 1, 1.0, False),
    ("multinomial", "usps", 1, 1.0, True),
    ("multinomial", "reuters_r8_tfidf", 1, 1.0, False),
)
#: Tables: dense, with columns of mean 0 and deviation 1 where the others have unit rows.
TABLES = ("cpuact", "magic04", "letter", "usps")


def title(kind: str, data: str, strength: int) -> str:
    short = data.removesuffix(".binary").removesuffix(".binary.scale")
    lasso = kind in ("lasso", "l1-logistic")
    letter = "alpha" if kind == "ridge" else "C"
    return f"{kind} {short} " + (f"lambda_max/{strength}" if lasso else f"{letter}={strength}")


@cache
def load(data: str) -> tuple[Any, np.ndarray]:
    if data.startswith("gaussian"):
        return gaussian(*map(int, data.split()[1].split("x")))
    from adacoord.io import load_svmlight

    A, b = load_svmlight(Path(os.environ["ADACOORD_DATA"], f"{data}.svm.xz"))
    if data in TABLES:
        A = A.toarray()
        return (A - A.mean(axis=0)) / np.where(A.std(axis=0) > 0.0, A.std(axis=0), 1.0), b
    return unit_rows(A.toarray() if data in (LEUKEMIA, COLON) else A), b


def gaussian(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """A table with a common factor, and targets that 30 of its columns explain in part."""
    rng = np.random.default_rng([n, d])
    A = np.sqrt(0.7) * rng.standard_normal((n, d)) + np.sqrt(0.3) * rng.standard_normal((n, 1))
    kept = min(d, 30)
    b = A[:, :kept] @ rng.standard_normal(kept) + np.sqrt(kept) * rng.standard_normal(n)
    return A, b - b.mean()


def make_task(kind: str, data: str, strength: int) -> Task:
    A, b = load(data)
    name = title(kind, data, strength)
    if kind == "ridge":
        return Task(name, A, b - b.mean(), "squared", l2=strength / b.size)
    if kind == "lasso":
        b = b - b.mean() if data in TABLES else b
        return Task(name, A, b, "squared", l1=largest_l1(A, b, "squared") / strength)
    if kind == "multinomial":
        codes = np.unique(b, return_inverse=True)[1]
        return Task(name, A, codes, kind, l2=1.0 / (b.size * strength))
    b = np.where(b > 0.0, 1.0, -1.0)
    if kind == "l1-logistic":
        return Task(name, A, b, "logistic", l1=largest_l1(A, b, "logistic") / strength)
    return Task(name, A, b, kind, l2=1.0 / (b.size * strength))


@dataclass
class Entry:
    """One contender on one task: its rungs so far, and why it stopped if it did."""

    peer: Peer
    rungs: list[dict[str, Any]] = field(default_factory=list)
    climbed: int = 0
    stopped: str = ""
    at_least: float = 0.0
    cold: float | None = None

    @property
    def best(self) -> float:
        return min((rung["objective"] for rung in self.rungs), default=np.inf)

    def winner(self, best: float) -> dict[str, Any] | None:
        """Its cheapest rung that is good enough."""
        good = [r for r in self.rungs if r["objective"] <= best + TOLERANCE * abs(best)]
        return min(good, key=lambda rung: rung["seconds"], default=None)


class Race:
    """All contenders on one task."""

    def __init__(
        self,
        task: Task,
        path: str,
        workers: dict,
        solver: str,
        cap: float,
        libraries: tuple[str, ...] = (),
    ):
        self.task, self.path, self.workers, self.cap = task, path, workers, cap
        self.options = {OURS.name: {"solver": solver}}
        self.ours, self.looser = Entry(OURS), Entry(OURS)
        self.peers = [Entry(peer) for peer in EVERYBODY if peer.kind == task.kind]
        for entry in self.peers:
            if libraries and entry.peer.library not in libraries:
                entry.stopped = "left out by --peers"

    @property
    def best(self) -> float:
        return min(entry.best for entry in (self.ours, *self.peers))

    def fastest(self) -> Entry | None:
        """The peer that got there in the least time, or None."""
        there = [entry for entry in self.peers if entry.winner(self.best)]
        return min(there, key=lambda e: e.winner(self.best)["seconds"], default=None)

    def run(self) -> None:
        self.climb(self.ours)
        while True:
            before = self.best
            for entry in self.peers:
                while not entry.stopped and not entry.winner(self.best):
                    self.climb(entry)
            # The best seen may be a poor one that nobody had reason to leave: one rung more.
            leader = self.fastest()
            if leader is not None and not leader.stopped:
                self.climb(leader)
            if not self.best < before - 0.1 * TOLERANCE * abs(before):
                break
        self.refine()
        for tol in LOOSER:
            self.attempt(self.looser, tol, self.limit())
        self.repeat()

    def limit(self) -> float:
        leader = self.fastest()
        if leader is None:
            return self.cap
        return min(self.cap, max(SHORTEST_CAP, SLOWER * leader.winner(self.best)["seconds"]))

    def climb(self, entry: Entry) -> None:
        """One more rung, or the reason why there is none."""
        reason = entry.peer.refuses(self.task)
        if reason:
            entry.stopped = reason
            return
        limit = self.cap if entry is self.ours else self.limit()
        self.attempt(entry, entry.peer.ladder[entry.climbed], limit)
        entry.climbed += 1
        if entry.stopped:
            return
        if entry.climbed == len(entry.peer.ladder):
            entry.stopped = "its ladder ends"
        elif sum(rung["seconds"] for rung in entry.rungs) > LADDER * limit:
            entry.stopped = f"ladder capped at {LADDER * limit:.0f} s"
            entry.at_least = entry.rungs[-1]["seconds"]

    def attempt(self, entry: Entry, tol: float, limit: float) -> None:
        """A fit from scratch, timed, and judged."""
        try:
            fit = self.fit(entry, tol, limit)
        except Late:
            entry.stopped, entry.at_least = f"capped at {limit:.0f} s", limit
            return
        except Failed as failure:
            entry.stopped = str(failure)
            return
        entry.rungs.append(
            {
                "tol": tol,
                "seconds": fit.seconds,
                "wall": fit.wall,
                "objective": self.task.objective(fit.x),
                **fit.told,
            }
        )

    def refine(self) -> None:
        """Half a rung back for the peers in front: a decade may have been more than they needed."""
        leader = self.fastest()
        if leader is None:
            return
        first = leader.winner(self.best)["seconds"]
        for entry in self.peers:
            rung = entry.winner(self.best)
            if rung and rung["seconds"] <= 2.0 * first:
                self.attempt(entry, rung["tol"] * 10.0**0.5, self.limit())

    def fit(self, entry: Entry, tol: float, limit: float):
        options = dict(self.options.get(entry.peer.name, {}))
        if entry.peer is OURS:  # it stops by itself, with the gap it has reached
            options["limit"] = limit
            limit = 2.0 * limit + 10.0
        return self.worker(entry).fit(tol, limit, options)

    def worker(self, entry: Entry) -> Worker:
        """The contender's process; a new one where it was stopped, or where the kind changed."""
        name = entry.peer.name
        if name not in self.workers or not self.workers[name].alive:
            try:
                self.workers[name] = Worker(entry.peer, self.path, self.options.get(name, {}))
            except Late:
                raise Failed("its warm-up did not end") from None
            entry.cold = self.workers[name].cold
        self.workers[name].load(self.path)
        return self.workers[name]

    def repeat(self) -> None:
        """Twice more for short fits, in turns."""
        best = self.best
        for _ in range(2):
            for entry in (self.ours, self.looser, *self.peers):
                rung = entry.winner(best)
                if rung and rung["seconds"] < SHORT:
                    with suppress(Late, Failed):  # what it has shown once stands
                        fit = self.fit(entry, rung["tol"], self.cap)
                        rung["seconds"] = min(rung["seconds"], fit.seconds)

    def report(self, goal: float) -> dict[str, Any]:
        """The figures of a row of the table."""
        best, leader = self.best, self.fastest()
        ours = self.ours.winner(best)
        last = self.ours.rungs[-1] if self.ours.rungs else {}
        done = bool(ours and ours["certified"])
        seconds = last.get("seconds", self.cap)
        row = {
            "problem": self.task.name,
            "commit": commit(),
            "goal": goal,
            "ours": seconds,
            "ours_done": done,
            "solver": last.get("solver", ""),
            "passes": last.get("passes"),
            "relative_gap": last.get("relative_gap"),
            "best_objective": best,
            "ours_stopped": "" if last else self.ours.stopped,
        }
        peer = (
            leader.winner(best)["seconds"]
            if leader
            else min(
                (entry.at_least for entry in self.peers if entry.at_least > 0.0), default=np.inf
            )
        )
        row |= {"best_peer": leader.peer.name if leader else "", "peer": peer}
        row["ratio"] = seconds / peer
        rungs = [r for r in (self.looser.winner(best), ours) if r]
        row["as_peers"] = min((r["seconds"] for r in rungs), default=np.inf) / peer
        # ">": ours was stopped; "<": all peers were; nothing can be said where both were.
        row["bound"] = {
            (True, True): "",
            (False, True): ">",
            (True, False): "<",
            (False, False): "?",
        }[done, leader is not None]
        row["met"] = done and row["ratio"] <= goal
        row["peers"] = [self.describe(entry, best) for entry in self.peers]
        row["cold"] = {e.peer.name: e.cold for e in (self.ours, *self.peers) if e.cold}
        return row

    def describe(self, entry: Entry, best: float) -> dict[str, Any]:
        rung = entry.winner(best)
        longest = max(entry.rungs, key=lambda r: r["wall"], default={"seconds": 0.0, "wall": 1.0})
        return {
            "name": entry.peer.name,
            "seconds": rung and rung["seconds"],
            "threads": longest["seconds"] / longest["wall"],
            "tol": rung and rung["tol"],
            "stopped": "" if rung else entry.stopped,
            "ran": bool(entry.rungs) or entry.at_least > 0.0,
            "reached": (entry.best - best) / abs(best) if entry.rungs else None,
            "rungs": entry.rungs,
        }


def sentence(peer: dict[str, Any]) -> str:
    """A peer's result in a few words."""
    if peer["seconds"] is not None:
        threads = ", on more than one thread" if peer["threads"] > 1.3 else ""
        return f"{peer['name']} {peer['seconds']:.3g} s (tol {peer['tol']:.1g}{threads})"
    if not peer["ran"]:
        return f"{peer['name']} did not run: {peer['stopped']}"
    reached = "" if peer["reached"] is None else f", best {peer['reached']:.1e} above"
    return f"{peer['name']} not reached: {peer['stopped']}{reached}"


HEAD = (
    f"{'problem':37s} {'goal':>5s} {'ratio':>8s} {'':4s} {'ours':>9s} {'passes':>7s} "
    f"{'solver':7s} {'as peers':>8s} {'best peer':>9s}"
)


def line(row: dict[str, Any]) -> str:
    undecided = row["bound"] in ("<", "?")
    mark = "met" if row["met"] else "open" if undecided else "MISS"
    ours = f"{'' if row['ours_done'] else '>'}{row['ours']:.3f}"
    return (
        f"{row['problem']:37s} {row['goal']:5.2f} {row['bound']}{row['ratio']:>7.2f} "
        f"{mark:4s} {ours:>9s} {row['passes'] or '-':>7} {row['solver']:7s} "
        f"{row['as_peers']:8.2f} {row['peer']:9.3f}  {row['best_peer'] or 'none got there'}"
    )


def show(row: dict[str, Any]) -> None:
    print(line(row))
    if row["ours_stopped"]:
        print(f"    ours: {row['ours_stopped']}")
    elif not row["ours_done"]:
        print(f"    ours: not certified, relative gap {row['relative_gap']:.1e}")
    for peer in sorted(row["peers"], key=lambda p: (p["seconds"] is None, p["seconds"] or 0.0)):
        print(f"    {sentence(peer)}")
    if row["cold"]:
        print(
            "    cold start, import and 200 rows: "
            + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in row["cold"].items())
        )
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="problems whose name has TEXT")
    parser.add_argument("--solver", default="auto", help="ours (default: auto)")
    parser.add_argument("--cap", type=float, default=60.0, help="seconds a fit (default: 60)")
    parser.add_argument(
        "--peers",
        default="",
        metavar="NAMES",
        help="only these libraries, such as sklearn,celer (default: all)",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write all figures there; problems that it has are not run"
    )
    parser.add_argument("--quick", action="store_true", help="12 of the 36 problems")
    parser.add_argument("--models", action="store_true", help="the problems of models.py")
    parser.add_argument("--seed", type=int, default=0, help="of the data of --models (default: 0)")
    args = parser.parse_args()
    if not os.environ.get("ADACOORD_DATA"):
        sys.exit("set ADACOORD_DATA to the folder of the data sets")
    os.environ.update(ONE_THREAD)
    cases = [(*case[:4], case[4] or not args.quick, title(*case[:3])) for case in CASES]
    if args.models:
        cases = [(*case, True, models.title(*case[:3])) for case in models.MODELS]
    names = [case[5] for case in cases]
    cases = [case for case in cases if args.only in case[5] and case[4]]
    if not cases:
        sys.exit(
            f"--only {args.only}: no problem has that in its name; there are {', '.join(names)}"
        )
    libraries = tuple(filter(None, args.peers.split(",")))
    unknown = sorted(set(libraries) - {peer.library for peer in EVERYBODY})
    if unknown:
        sys.exit(
            f"--peers {unknown[0]}: not a peer; use some of "
            + ", ".join(sorted({peer.library for peer in EVERYBODY}))
        )
    rows: list[dict[str, Any]] = kept(args.json)
    done = {row["problem"] for row in rows}
    cases = [case for case in cases if case[5] not in done]
    workers: dict[str, Worker] = {}
    group = None
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, (kind, data, strength, goal, *_) in enumerate(cases):
            if args.models:
                task = models.make_model(kind, data, strength, args.seed)
            else:
                task = make_task(kind, data, strength)
            if (kind, data) != group:  # other kernels, other formats: start and warm up anew
                close(workers)
                group = (kind, data)
            path = os.path.join(folder, f"{number}.pkl")
            with open(path, "wb") as file:
                pickle.dump(task, file, protocol=5)
            race = Race(task, path, workers, args.solver, args.cap, libraries)
            race.run()
            rows.append(race.report(goal))
            show(rows[-1])
            if args.json:
                Path(args.json).write_text(json.dumps(rows, indent=1))
        close(workers)
    print("\n" + HEAD)
    for row in rows:
        print(line(row))
    print(f"{sum(row['met'] for row in rows)} of {len(rows)} goals met; {summary(rows)}")


def kept(path: str | None) -> list[dict[str, Any]]:
    """The rows of a race that was cut short: it takes longer than some machines are up."""
    if path is None:
        return []
    print(f"finished problems are kept in {path}; remove it to run them again")
    return json.loads(Path(path).read_text()) if Path(path).exists() else []


def summary(rows: list[dict[str, Any]]) -> str:
    """Of the ratios, where one is known or bounded from above."""
    ratios = [row["ratio"] for row in rows if row["bound"] in ("", "<")]
    if not ratios:
        return "no ratio is known"
    return f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, worst {max(ratios):.2f}"


def close(workers: dict[str, Worker]) -> None:
    for worker in workers.values():
        worker.close()
    workers.clear()


if __name__ == "__main__":
    main()
