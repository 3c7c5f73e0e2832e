"""What the targets of a file are taken for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from adacoord.io.posing import LEAST_ROWS, MOST_CLASSES, pose, shown


def taken(targets, **how):
    A = sparse.csr_matrix(np.random.default_rng(0).standard_normal((len(targets), 2)))
    return pose(A, np.asarray(targets, dtype=np.float64), **how)


@pytest.mark.parametrize(
    "targets, loss, classes, said",
    [
        ([3, 7, 7], "logistic", [3, 7], ""),
        ([0.5, 1.5, 1.5], "squared", None, ""),
        ([1, 2, 2.5], "squared", None, ""),
        ([4, 4, 4], "squared", None, ""),
        (
            [1, 2, 3] * LEAST_ROWS,
            "multinomial",
            [1, 2, 3],
            "3 whole-number targets (1, 2, 3), each on 5 rows or more: taken as classes; if "
            "they are "
            "quantities, say --loss squared",
        ),
        (
            [1, 2, 3] * LEAST_ROWS + [4],
            "squared",
            None,
            "4 whole-number targets (1, 2, 3, 4): taken as quantities, for a regression, "
            "because the "
            "value 4 is on 1 row only; if they are classes, say --loss multinomial",
        ),
        (
            [*range(MOST_CLASSES)] * LEAST_ROWS,
            "multinomial",
            range(MOST_CLASSES),
            "taken as classes",
        ),
        (
            [*range(MOST_CLASSES + 1)] * LEAST_ROWS,
            "squared",
            None,
            "because they are more than 100",
        ),
    ],
)
def test_without_a_loss(targets, loss, classes, said):
    posed = taken(targets)
    assert posed.problem.loss.name == loss and said in posed.assumed
    assert bool(said) == bool(posed.assumed)
    assert posed.classes is None if classes is None else posed.classes.tolist() == [*classes]
    assert posed.count == 1


def test_with_a_loss():
    several = [1, 2, 3] * 5
    posed = taken(several, loss="hinge")
    assert posed.count == 3 and set(posed.problem.b) == {-1.0, 1.0} and not posed.assumed
    assert taken(several, loss="multinomial").problem.b.tolist() == [0, 1, 2] * 5
    assert taken(several, loss="squared").classes is None
    assert taken([3, 7], loss="multinomial").problem.loss.name == "logistic"
    assert taken([3, 7], loss="hinge").problem.b.tolist() == [-1.0, 1.0]
    with pytest.raises(ValueError, match=r"the value 0\.5: loss='hinge' takes labels"):
        taken([0.5, 1.5], loss="hinge")
    with pytest.raises(ValueError, match="the single value 1: loss='multinomial' needs rows of"):
        taken([1, 1], loss="multinomial")


def of_words(words, **how):
    A = np.random.default_rng(0).standard_normal((len(words), 2))
    return pose(A, np.array(words, dtype=object), **how)


def test_words():
    posed = of_words(["b", "a", "b"])
    assert posed.problem.loss.name == "logistic" and posed.problem.b.tolist() == [1, -1, 1]
    assert posed.classes.tolist() == ["a", "b"] and posed.assumed == ""
    posed = of_words(["b", "a", "c"])  # each on one row only, and words all the same
    assert posed.problem.loss.name == "multinomial" and posed.problem.b.tolist() == [1, 0, 2]
    assert of_words(["b", "a", "c"], loss="hinge").count == 3
    with pytest.raises(ValueError, match=r"the targets are words \(a, b\): loss='huber' takes num"):
        of_words(["a", "b"], loss="huber")
    with pytest.raises(ValueError, match=r"101 different words .*is this the column"):
        of_words([f"{i}th" for i in range(101)])
    assert of_words([f"{i}th" for i in range(101)], loss="multinomial").classes.size == 101


@pytest.mark.parametrize(
    "targets, how, model",
    [
        ([3, 7, 7], {}, "logistic regression on 2 labels (3, 7)"),
        ([1, 2, 3] * 5, {}, "multinomial logistic regression on 3 labels (1, 2, 3)"),
        ([3, 7], {"loss": "hinge"}, "a linear support vector machine on 2 labels (3, 7)"),
        ([0.5, 1.5], {}, "ridge regression on targets that are quantities"),
        ([0.5, 1.5], {"l1": 0.1}, "the lasso on targets that are quantities"),
        ([0.5, 1.5], {"l1": 0.1, "l2": 0.1}, "an elastic net on targets that are quantities"),
        ([0.5, 1.5], {"l2": 0.0}, "least squares on targets that are quantities"),
        ([1, 2], {"loss": "huber"}, "a linear model with the huber loss on targets that are quant"),
    ],
)
def test_what_is_trained(targets, how, model):
    assert taken(targets, **how).model.startswith(model)


def test_weights_and_C():
    targets = [3, 7, 7, 7]
    assert taken(targets, C=2.0).problem.penalty.l2 == 1 / 8
    posed = taken(targets, C=2.0, class_weight="balanced")
    assert posed.problem.penalty.l2 == pytest.approx(1 / 8) and posed.class_weight == "balanced"
    np.testing.assert_allclose(posed.problem.weights, [2, 2 / 3, 2 / 3, 2 / 3])
    posed = taken(targets, C=2.0, class_weight="7: 5")
    assert posed.problem.penalty.l2 == 1 / 32 and posed.class_weight == {7.0: 5.0}
    np.testing.assert_allclose(posed.problem.weights, [0.25, 1.25, 1.25, 1.25])
    posed = of_words(["x:y", "b", "b"], class_weight="x:y:2")  # a label with a colon
    assert posed.class_weight == {"x:y": 2.0}
    big = taken([1234567, 1234568], class_weight="1234568:2")
    assert big.class_weight == {1234568.0: 2.0}


def test_penalties():
    assert taken([1, 2]).problem.penalty.l2 == 0.5
    assert taken([1, 2], l1=0.1).problem.penalty.l2 == 0.0
    assert taken([1, 2], l1=0.1, l2=0.3).problem.penalty.l2 == 0.3


def test_data_sets(data):
    for name, loss in (
        ("abalone", "squared"),
        ("cpuact", "squared"),
        ("letter", "multinomial"),
        ("usps", "multinomial"),
        ("a2a", "logistic"),
    ):
        posed = pose(*data(name))
        assert posed.problem.loss.name == loss, name
        assert (loss == "logistic") != ("whole-number targets" in posed.assumed)


def test_labels_as_text():
    assert shown(np.array([1.0, 2.5])) == "1, 2.5"
    assert shown(np.array(["a", "b"])) == "a, b" and shown(np.arange(6)) == "0, 1, 2, 3, 4, ..."
