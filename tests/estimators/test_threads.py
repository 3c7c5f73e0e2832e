"""Several problems at a time: all is done, or all has ended."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import adacoord as ac
from adacoord.estimators import threads
from adacoord.estimators.threads import side_by_side


class Work:
    """Something that takes a while, ends when asked to, and knows whether it is under way."""

    def __init__(self, seconds=0.01):
        self.seconds, self.active, self.begun = seconds, set(), []

    def __call__(self, item, stop):
        self.active.add(item)
        self.begun.append(item)
        stopped = stop.wait(self.seconds)
        self.active.discard(item)
        return item, stopped


def test_all_of_them():
    work, stop = Work(), threading.Event()
    assert side_by_side(work, "abcdefg", 3, stop) == [(c, False) for c in "abcdefg"]
    assert not stop.is_set() and not work.active


def test_an_interrupt_at_any_moment(interrupted_at):
    """What comes back is whole; nothing runs on, whether it came back or was raised."""
    step, returned, raised, more = 0, 0, 0, True
    while more:
        work, stop, found = Work(), threading.Event(), []
        more = interrupted_at(
            step,
            threads.__file__,
            lambda w=work, s=stop, f=found: f.append(side_by_side(w, range(4), 2, s)),
        )
        begun = len(work.begun)
        assert not work.active, step
        if found:
            assert [item for item, _ in found[0]] == [0, 1, 2, 3]
            assert stop.is_set() == more, step
            returned += 1
        else:
            raised += 1
        time.sleep(0.002)
        assert len(work.begun) == begun, step  # none is begun later
        step += 1
    assert returned > 10 and raised < 25  # only before the first and after the last is it raised


def test_an_interrupt_of_the_threads_own_start(monkeypatch):
    """The thread runs, and its start is not over."""
    start = threading.Thread.start

    def interrupted(self):
        start(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    work, stop = Work(seconds=5.0), threading.Event()
    began = time.monotonic()
    found = side_by_side(work, range(4), 2, stop)
    assert time.monotonic() - began < 4.0
    assert [item for item, _ in found] == [0, 1, 2, 3] and stop.is_set() and not work.active


def test_two_interrupts(monkeypatch):
    """Waiting for the work to end is not given up."""

    class Slow(Work):
        def __call__(self, item, stop):
            self.active.add(item)
            stop.wait()
            time.sleep(0.3)
            self.active.discard(item)

    get, calls = threads.SimpleQueue, []

    class Queue:
        def __init__(self):
            self.queue = get()
            self.put = self.queue.put

        def get(self, **how):
            calls.append(1)
            if len(calls) <= 3:
                raise KeyboardInterrupt
            return self.queue.get(**how)

    monkeypatch.setattr(threads, "SimpleQueue", Queue)
    work = Slow()
    side_by_side(work, range(2), 2, threading.Event())
    assert not work.active


def test_the_first_error_is_raised():
    done = []

    def work(item, stop):
        if item == 1:
            raise MemoryError("no more of it")
        stop.wait(5.0)
        done.append(item)

    began = time.monotonic()
    with pytest.raises(MemoryError, match="no more of it"):
        side_by_side(work, range(6), 2, threading.Event())
    assert time.monotonic() - began < 4.0 and done == [0]


def test_an_interrupt_after_the_last_fold_is_not_lost(monkeypatch):
    """The folds are walked, the model is not yet fitted."""
    from adacoord.estimators import search

    def late(work, items, jobs, stop):
        walks = side_by_side(work, items, jobs, stop)
        stop.set()
        return walks

    monkeypatch.setattr(search, "side_by_side", late)
    X = np.random.default_rng(0).standard_normal((40, 3))
    with pytest.raises(KeyboardInterrupt):
        ac.LassoCV(alphas=3, n_jobs=2).fit(X, X[:, 0])
