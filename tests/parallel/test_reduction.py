"""Sums in the order of the blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adacoord.parallel.reduction import Sum, fold


def naive(parts):
    """Neighbours first, level by level: the same tree, written down otherwise."""
    if len(parts) == 1:
        return parts[0]
    half = 1
    while 2 * half < len(parts):
        half *= 2
    return naive(parts[:half]) + naive(parts[half:])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=70))
def test_is_the_tree_of_the_number_of_parts(parts):
    assert fold(iter(parts)) == naive(parts)


@given(st.permutations(range(23)))
def test_parts_may_come_in_any_order(order):
    parts = [0.1 * k**3 for k in range(23)]
    total = Sum()
    for k in order:
        total.give(k, parts[k])
    assert total.total() == naive(parts)


def test_adds_tuples_of_arrays_and_numbers():
    parts = [(np.full(3, float(k)), k, (np.ones((2, 2)),)) for k in range(5)]
    total = fold(parts)
    assert total[0].tolist() == [10.0] * 3
    assert total[1] == 10
    assert total[2][0].tolist() == [[5.0, 5.0], [5.0, 5.0]]


def test_leaves_read_only_parts_as_they_are():
    parts = [np.ones(2) for _ in range(3)]
    for part in parts:
        part.flags.writeable = False
    assert fold(parts).tolist() == [3.0, 3.0]
    assert all(part.tolist() == [1.0, 1.0] for part in parts)


def test_does_not_change_views():
    whole = np.arange(6.0)
    assert fold([whole[:2], whole[2:4], whole[4:]]).tolist() == [6.0, 9.0]
    assert whole.tolist() == list(range(6))


def test_nothing_to_add():
    with pytest.raises(ValueError, match="no block"):
        fold([])
