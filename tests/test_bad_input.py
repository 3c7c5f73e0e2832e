"""Bad input gets a sentence that names the argument and the value; odd but good input works."""

from __future__ import annotations

import gzip
import math
import re
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord import losses as ls
from adacoord.io import load_svmlight

A = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5], [1.0, 1.0]])
B = np.array([1.0, -1.0, 1.0, -1.0])
NAN, INF = math.nan, math.inf


def changed(array, index, value):
    array = np.array(array, dtype=np.result_type(array, type(value)))
    array[index] = value
    return array


def csr(**attributes):
    """The data as CSR, with some of its arrays replaced behind SciPy's back."""
    out = sparse.csr_matrix(A)
    for name, value in attributes.items():
        setattr(out, name, np.asarray(value, dtype=getattr(out, name).dtype))
    return out


# --- Problem ------------------------------------------------------------------------------------

RAGGED = [[1.0, 2.0], [3.0], [4.0, 5.0], [6.0, 7.0]]
PROBLEMS = {
    # the data
    "nan": ({"A": changed(A, (2, 1), NAN)}, "A has the value nan in row 2: .*finite"),
    "inf": ({"A": changed(A, (1, 0), -INF)}, "A has the value -inf in row 1: .*finite"),
    "nan float32": ({"A": changed(A, (3, 0), NAN).astype(np.float32)}, "A .* nan in row 3"),
    "nan csr": ({"A": sparse.csr_matrix(changed(A, (2, 0), NAN))}, "A has the value nan in row 2"),
    "inf csc": ({"A": sparse.csc_matrix(changed(A, (0, 1), INF))}, "A has the value inf in row 0"),
    "square overflows": ({"A": changed(A, (0, 0), 1e200)}, r"A has the value 1e\+200 in row 0: "),
    "no rows": ({"A": np.empty((0, 2)), "b": []}, r"A has shape \(0, 2\): .*at least one row"),
    "no columns": ({"A": np.empty((4, 0))}, r"A has shape \(4, 0\): .*one column"),
    "no rows csr": ({"A": sparse.csr_matrix((0, 2)), "b": []}, r"A has shape \(0, 2\): "),
    "1-D": ({"A": A[:, 0]}, r"A has shape \(4,\): .*two dimensions.*reshape"),
    "3-D": ({"A": A[None]}, r"A has shape \(1, 4, 2\): .*two dimensions"),
    "1-D sparse": ({"A": sparse.coo_array(A[:, 0])}, r"A has shape \(4,\): .*two dimensions"),
    "None": ({"A": None}, r"A has shape \(\): "),
    "ragged": ({"A": RAGGED}, "A cannot be read as an array of numbers: .*inhomogeneous"),
    "strings": ({"A": A.astype(str)}, "A has dtype <U32: the data must be real numbers"),
    "objects": ({"A": np.array([["a", 1.0]] * 4, dtype=object)}, "A has dtype object: .*real"),
    "complex": ({"A": A + 1j}, "A has dtype complex128: .*real numbers"),
    "complex csr": ({"A": sparse.csr_matrix(A + 1j)}, "A has dtype complex128: .*real numbers"),
    "dates": ({"A": np.zeros((4, 2), dtype="M8[D]")}, r"A has dtype datetime64\[D\]: "),
    "masked": ({"A": np.ma.masked_less(A, 0)}, "A .*masked"),
    # broken CSR: the kernels would read foreign memory (CSC and COO: see test_matrix)
    "column too large": ({"A": csr(indices=[0, 1, 1, 0, 2, 0, 1])}, "A is not a valid CSR"),
    "column negative": ({"A": csr(indices=[0, 1, -1, 0, 1, 0, 1])}, "A is not a valid CSR matrix"),
    "indptr decreases": ({"A": csr(indptr=[0, 5, 3, 5, 7])}, "A is not a valid CSR .*rebuild it"),
    "indptr beyond": ({"A": csr(indptr=[0, 2, 3, 5, 9])}, "A is not a valid CSR matrix"),
    "indptr first": ({"A": csr(indptr=[1, 2, 3, 5, 7])}, "A is not a valid CSR matrix"),
    "indptr short": ({"A": csr(indptr=[0, 2, 7])}, r"not a valid CSR matrix of shape \(4, 2\)"),
    # the targets
    "b nan": ({"b": changed(B, 2, NAN)}, "b has the value nan at position 2: .*finite"),
    "b inf": ({"b": changed(B, 1, INF)}, "b has the value inf at position 1: .*finite"),
    "b short": ({"b": B[:3]}, r"b has shape \(3,\): A has 4 rows"),
    "b 2-D": ({"b": A}, r"b has shape \(4, 2\): A has 4 rows, so b must have shape \(4,\)"),
    "b None": ({"b": None}, "b=None: these data bring no targets"),
    "b strings": ({"b": list("abab")}, "b has dtype <U1: .*encode labels"),
    "b complex": ({"b": B + 1j}, "b has dtype complex128: "),
    "b ragged": ({"b": RAGGED}, "^b .*"),
    "labels 0 1": ({"b": (B > 0) * 1}, 'b has the labels 0, 1: loss="hinge" takes -1 and \\+1'),
    "labels bool": ({"b": B > 0}, "b has the labels 0, 1: .*numpy.where"),
    "labels 1 2 3": ({"b": [1, 2, 3, 1]}, "b has the labels 1, 2, 3: "),
    "labels real": ({"b": A[:, 1], "loss": "logistic"}, "b has the labels -1, 0.5, 1, 2: "),
    "single label": ({"b": np.ones(4)}, "b has the single label 1: .*both classes"),
    "negative counts": ({"b": B, "loss": "poisson"}, 'b has the value -1: loss="poisson"'),
    # the weights
    "weights short": ({"sample_weight": [1.0]}, r"sample_weight has shape \(1,\): A has 4 rows"),
    "weight nan": ({"sample_weight": changed(B, 3, NAN)}, "sample_weight has the value nan at pos"),
    "weight inf": ({"sample_weight": changed(B, 0, INF)}, "sample_weight has the value inf at pos"),
    "weight < 0": ({"sample_weight": B}, "sample_weight has the value -1 at position 1: "),
    "weights 0": ({"sample_weight": np.zeros(4)}, "sample_weight is zero for every row"),
    "weights strings": ({"sample_weight": list("abcd")}, "sample_weight has dtype <U1"),
    # the penalty
    "l1 < 0": ({"l1": -0.5}, "l1=-0.5: .*zero or more"),
    "l2 < 0": ({"l2": -1}, "l2=-1: .*zero or more"),
    "l1 nan": ({"l1": NAN}, "l1=nan: .*finite"),
    "l2 inf": ({"l2": INF}, "l2=inf: .*finite"),
    "l2 string": ({"l2": "a"}, "l2='a': .*number"),
    "l2 None": ({"l2": None}, "l2=None: .*number"),
    "l1 bool": ({"l1": True}, "l1=True: .*number"),
    "l2 too long": ({"l2": np.ones(3)}, r"l2 has shape \(3,\): A has 2 columns, .*shape \(2,\)"),
    "l2 2-D": ({"l2": np.ones((1, 2))}, r"l2 has shape \(1, 2\): A has 2 columns"),
    "l1 negative": ({"l1": [0.1, -2.0]}, "l1 has the value -2 at position 1: .*zero or more"),
    "l1 nan inside": ({"l1": [NAN, 0.1]}, "l1 has the value nan at position 0: .*finite"),
    "l1 strings": ({"l1": ["a", "b"]}, "l1 has dtype <U1: .*real numbers"),
    "l1 too small": ({"l1": [1.0, 1e-200]}, "l1=1e-200: a penalty must be 0 or between"),
    "lower > upper": ({"lower": 1.0, "upper": 0.0}, "lower=1 is above upper=0 at position 0: "),
    "lower nan": ({"lower": [0.0, NAN]}, "lower has the value nan at position 1: .*number"),
    "lower inf": ({"lower": INF}, "lower has the value inf at position 0: .*-inf for none"),
    "upper -inf": ({"upper": [-INF, 1.0]}, "upper has the value -inf at position 0: "),
    "upper short": ({"upper": [1.0]}, r"upper has shape \(1,\): A has 2 columns"),
    "upper string": ({"upper": "one"}, "upper='one': a bound must be a number"),
    "positive, upper": ({"upper": -1.0, "positive": True}, "upper has the value -1: .*positive"),
    # the offset
    "offset nan": ({"offset": changed(B, 2, NAN)}, "offset has the value nan at position 2: "),
    "offset inf": ({"offset": changed(B, 0, INF)}, "offset has the value inf at position 0: "),
    "offset short": ({"offset": [1.0]}, r"offset has shape \(1,\): A has 4 rows"),
    "offset strings": ({"offset": list("abcd")}, "offset has dtype <U1"),
    "offset huge": (
        {"offset": changed(B, 1, 1e200)},
        r"offset has the value 1e\+200 at position 1",
    ),
    # the loss
    "loss unknown": ({"loss": "hinges"}, "loss='hinges': not a loss; use one of absolute, "),
    "loss None": ({"loss": None}, "loss=None: not a loss"),
    "loss class": ({"loss": ls.Huber}, "loss=<class .*Huber'>: not a loss; .*object"),
    "loss list": ({"loss": ["hinge"]}, r"loss=\['hinge'\]: not a loss"),
}


@pytest.mark.parametrize("arguments, message", PROBLEMS.values(), ids=PROBLEMS)
def test_problem(arguments, message):
    with pytest.raises(ValueError, match=message):
        ac.Problem(**({"A": A, "b": B, "loss": "hinge", "l2": 0.1} | arguments))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda p: p.primal(np.zeros(3)), r"x has shape \(3,\): this problem has 2 columns"),
        (lambda p: p.primal(np.zeros((2, 1))), r"x has shape \(2, 1\): "),
        (lambda p: p.dual(np.zeros(2)), r"y has shape \(2,\): this problem has 4 rows"),
        (lambda p: p.gap(np.zeros(2), np.zeros(5)), r"y has shape \(5,\): "),
        (lambda p: p.feasible_dual(np.zeros(3)), r"y has shape \(3,\): "),
        (lambda p: p.gap(np.zeros(2), np.zeros(4), 1.0), "intercept=1.0: the problem has none"),
    ],
)
def test_points(make, message):
    with pytest.raises(ValueError, match=message):
        make(ac.Problem(A, B, "hinge", l2=0.1))


# --- solve --------------------------------------------------------------------------------------


def point(x=2, y=4, value=0.0):
    return SimpleNamespace(x=np.full(x, value), y=np.zeros(y), intercept=0.0)


SOLVES = {
    "problem": ({"problem": (A, B)}, r"problem=tuple: make one with adacoord.Problem\(A, b"),
    "solver": ({"solver": "adam"}, "solver='adam': not a solver; use one of auto, spdc"),
    "solver None": ({"solver": None}, "solver=None: not a solver"),
    "solver list": ({"solver": ["spdc"]}, r"solver=\['spdc'\]: not a solver"),
    "option": ({"solver": "dcd", "alpha": 0.5}, 'alpha=0.5: solver="dcd" has no such option'),
    "option spdc": (
        {"momentum": 0.9},
        "momentum=0.9: .*takes alpha, .*delta, delta_passes, .*sampling, steps, .*weights",
    ),
    "sampling": ({"sampling": "random"}, "sampling='random': .*\"weighted\""),
    "sampling None": ({"sampling": None}, 'sampling=None: .*"uniform"'),
    "steps": ({"steps": "big"}, "steps='big': .*\"theory\""),
    "batch_size 0": ({"batch_size": 0}, "batch_size=0: .*1 or more"),
    "batch_size 1.5": ({"batch_size": 1.5}, "batch_size=1.5: .*whole number"),
    "batch_size True": ({"batch_size": True}, "batch_size=True: "),
    "batch_size string": ({"batch_size": "a"}, "batch_size='a': .*whole number"),
    "batch_size None": ({"batch_size": None}, "batch_size=None: .*whole number"),
    "batch_size inf": ({"batch_size": INF}, "batch_size=inf: .*whole number"),
    "alpha 1": ({"alpha": 1.0, "sampling": "weighted"}, r"alpha=1.0: .*\[0, 1\)"),
    "alpha < 0": ({"alpha": -0.1, "sampling": "lipschitz"}, "alpha=-0.1: "),
    "alpha nan": ({"alpha": NAN, "sampling": "weighted"}, "alpha=nan: "),
    "alpha string": ({"alpha": "a", "sampling": "weighted"}, "alpha='a': "),
    "alpha uniform": ({"alpha": 0.5}, 'alpha=0.5: it is for sampling="weighted"'),
    "steps theory2": ({"steps": "theory2"}, "steps=\"theory2\" with sampling='uniform': .*theory"),
    "adaptive batch": ({"sampling": "adaptive", "batch_size": 2}, "batch_size=2 with sampling='ad"),
    "ideal batch": ({"sampling": "ideal", "batch_size": 2}, "batch_size=2 with sampling='ideal': "),
    "adaptive alpha": ({"sampling": "adaptive", "alpha": 0.5}, "alpha=0.5: it is for sampling="),
    "sampling list": ({"sampling": ["adaptive"]}, r"sampling=\['adaptive'\]: .*\"ideal\""),
    **{
        f"kappa {k}": ({"sampling": "adaptive", "kappa": k}, "kappa=.*: the power must be a finite")
        for k in ("a", None, -1, NAN, INF, True, [1, 2], 1j)
    },
    **{
        f"delta {v}": ({"sampling": "adaptive", "delta": v}, r"delta=.*two numbers in \[0, 1\)")
        for v in (
            "ab",
            0.5,
            (0.2, 1.0),
            (-0.1, 0.5),
            (0.2, NAN),
            (0.1, 0.2, 0.3),
            ("a", "b"),
            (None, 0.5),
            (False, 0.5),
        )
    },
    **{
        f"delta_passes {k}": (
            {"sampling": "adaptive", "delta_passes": k},
            "delta_passes=.*: it must be a whole number, 1 or more",
        )
        for k in ("a", 0, -1, 1.5, NAN, INF, True, [3])
    },
    **{
        f"rho {k}": (
            {"sampling": "adaptive", "steps": "theory2", "rho": k},
            "rho=.*: the constant of Assumption 1 must be a finite number, zero or more",
        )
        for k in ("a", -1, NAN, INF, True, [1])
    },
    "rho theory": (
        {"sampling": "adaptive", "steps": "theory", "rho": 1.0},
        "rho=1.0 with steps='theory': it is for steps=\"theory2\"",
    ),
    "kappa uniform": ({"kappa": 1.0}, "kappa=1.0 with sampling='uniform': .*\"adaptive\""),
    "delta weighted": ({"delta": (0.1, 0.5), "sampling": "weighted"}, r"delta=\(0.1, 0.5\).*weigh"),
    **{
        f"{s} kappa {k}": (
            {"solver": s, "sampling": k, "kappa": 1.0},
            f"kappa=1.0 with sampling='{k}': it is for sampling=\"adaptive\"",
        )
        for s in ("dspdc", "spd1-vr")
        for k in ("uniform", "lipschitz")
    },
    **{
        f"{s} delta": (
            {"solver": s, "delta": (0.1, 0.5)},
            r'delta=\(0.1, 0.5\), .*sampling="uniform": they are for',
        )
        for s in ("dspdc", "spd1-vr")
    },
    "spd1-vr delta_passes": ({"solver": "spd1-vr", "delta_passes": 3}, "delta_passes=3 with samp"),
    "eps without stop": ({"solver": "acf", "eps": 0.1}, 'eps=0.1: .*stop="liblinear".*use tol'),
    **{
        f"{s} batch_size 5": ({"solver": s, "batch_size": 5}, "batch_size=5: A has 4 rows; use")
        for s in ("spdc", "adaspdc")
    },
    "delta lipschitz batch": (
        {"delta": (0.2, 0.8), "sampling": "lipschitz", "batch_size": 2},
        r"batch_size=2 with delta=\(0.2, 0.8\): .*use batch_size=1, or alpha",
    ),
    "delta lipschitz alpha": (
        {"delta": (0.2, 0.8), "sampling": "lipschitz", "alpha": 0.5},
        r"alpha=0.5 and delta=\(0.2, 0.8\), .*: give the share that stays or the one that grows",
    ),
    "delta_passes lipschitz": (
        {"delta_passes": 3, "sampling": "lipschitz"},
        'delta_passes=3 with sampling="lipschitz": its share is constant unless delta is given',
    ),
    "kappa lipschitz": (
        {"kappa": 1.0, "sampling": "lipschitz", "delta": (0.2, 0.8)},
        "kappa=1.0 with sampling='lipschitz': .*\"adaptive\"",
    ),
    **{
        f"weights {v}": (
            {"sampling": "adaptive", "weights": v},
            r"weights=.*: spdc takes \"averaged\" or \"last\"",
        )
        for v in ("latest", None, True)
    },
    **{
        f"weights {s}": (
            {"sampling": s, "weights": "last"},
            f"weights='last' with sampling='{s}': it is for sampling=\"adaptive\"",
        )
        for s in ("uniform", "lipschitz", "weighted", "ideal")
    },
    "dspdc multiplier": (
        {"solver": "dspdc", "multiplier": 2.0},
        'multiplier=2.0 with steps=\'practical\': it is for steps="printed" or "constant"',
    ),
    "delta_passes uniform": ({"delta_passes": 3}, "delta_passes=3 with sampling='uniform'"),
    **{
        f"adaspdc batch_size {k}": (
            {"solver": "adaspdc", "batch_size": k},
            "batch_size=.*: it must be a whole number, 1 or more",
        )
        for k in (0, 1.5, True, "a", None, INF)
    },
    **{
        f"{s} groups {name}": ({"solver": s, "groups": g}, message)
        for s in ("spdc", "adaspdc")
        for name, g, message in (
            ("short", [0, 1], r"groups of shape \(2,\): .*each of the 4 rows"),
            ("2-D", np.zeros((4, 1)), r"groups of shape \(4, 1\): .*one label for each"),
            ("string", "abcd", r"groups of shape \(\): "),
            ("nan", [0, 0, 1, NAN], "groups has the label nan for row 3: give every row a label"),
            ("mixed", ["a", None, "b", "b"], "groups has labels that cannot be compared .*strings"),
        )
    },
    "adaspdc option": (
        {"solver": "adaspdc", "sampling": "uniform"},
        "sampling='uniform': solver=\"adaspdc\" .*takes batch_size, groups",
    ),
    **{
        f"direct {s}": (
            {"solver": "spdc", "kinks": "direct", "sampling": s},
            f'kinks="direct" with sampling=\'{s}\': .*use sampling="uniform"',
        )
        for s in ("adaptive", "ideal")
    },
    **{
        f"{s} kinks {k!r}": (
            {"solver": s, "kinks": k},
            r'kinks=.*: it must be "continuation" .* or "direct"',
        )
        for s in ("spdc", "adaspdc")
        for k in ("smooth", None, 1)
    },
    "tol < 0": ({"tol": -1e-6}, "tol=-1e-06: .*zero or more"),
    "tol nan": ({"tol": NAN}, "tol=nan: "),
    "tol string": ({"tol": "small"}, "tol='small': .*number"),
    "max_passes 0": ({"max_passes": 0}, "max_passes=0: .*1 or more"),
    "max_passes 1.5": ({"max_passes": 1.5}, "max_passes=1.5: .*whole number"),
    "max_passes True": ({"max_passes": True}, "max_passes=True: "),
    "max_seconds 0": ({"max_seconds": 0}, "max_seconds=0: .*positive"),
    "max_seconds -1": ({"max_seconds": -1}, "max_seconds=-1: .*positive"),
    "max_seconds nan": ({"max_seconds": NAN}, "max_seconds=nan: "),
    "max_seconds string": ({"max_seconds": "1"}, "max_seconds='1': "),
    "seed -1": ({"seed": -1}, "seed=-1: .*zero or more"),
    "seed None": ({"seed": None}, "seed=None: .*whole number"),
    "seed string": ({"seed": "a"}, "seed='a': "),
    "start type": ({"start": {"x": 0}}, "start=dict: it must be a Result"),
    "start array": ({"start": np.zeros(2)}, "start=ndarray: it must be a Result"),
    "start x": ({"start": point(x=3)}, r"x has shape \(3,\): this problem has 2 columns"),
    "start y": ({"start": point(y=5)}, r"y has shape \(5,\): this problem has 4 rows"),
    "start nan": ({"start": point(value=NAN)}, "start.*finite"),
    "callback": ({"callback": 3}, "callback=3: "),
}


@pytest.mark.parametrize("arguments, message", SOLVES.values(), ids=SOLVES)
def test_solve(arguments, message):
    call = {"problem": ac.Problem(A, B, "logistic", l2=0.1), "solver": "spdc", "max_passes": 50}
    with pytest.raises(ValueError, match=message):
        ac.solve(**(call | arguments))


@pytest.mark.parametrize(
    "name, options",
    [
        (
            "spdc",
            {
                "sampling": "adaptive",
                "kappa": np.float32(1),
                "delta": [0, 0.5],
                "delta_passes": 5.0,
            },
        ),
        (
            "spdc",
            {
                "sampling": "adaptive",
                "kappa": 0,
                "delta": np.array([0.8, 0.2]),
                "steps": "theory2",
                "rho": np.int64(0),
                "delta_passes": np.int64(1),
            },
        ),
        ("adaspdc", {"batch_size": np.int32(4)}),
        ("spdc", {"batch_size": 4}),
        ("dspdc", {"sampling": "lipschitz", "delta": [0.1, 0.5], "delta_passes": 3}),
        ("adaspdc", {"batch_size": 2, "groups": list("baab")}),
        ("adaspdc", {"groups": [True, False, True, True]}),
        ("adaspdc", {"groups": np.array([3, -1, 3, 3], dtype=object)}),
    ],
    ids=str,
)
def test_odd_options_work(name, options):
    result = ac.solve(ac.Problem(A, B, "logistic", l2=0.1), name, max_passes=3000, **options)
    assert result.converged


@pytest.mark.parametrize(
    ("solver", "loss", "message"),
    [
        ("spdc", "squared", r"l1=0.0 and l2=0.0: .*no duality gap.*l2=1e-8"),
        ("dcd", "squared", r"l1=0.0 and l2=0.0: .*no duality gap.*l2=1e-8"),
        ("apdc", "hinge", r'l1=0.0 and l2=0.0: solver="apdc" needs .*solver="newton".*l2=1e-8'),
    ],
)
def test_no_penalty(solver, loss, message):
    with pytest.raises(ValueError, match=message):
        ac.solve(ac.Problem(A, B, loss), solver)


@pytest.mark.parametrize("solver", ["dcd", "sdca"])
def test_l1_alone(solver):
    with pytest.raises(ValueError, match=f'l2=0.0: solver="{solver}" needs .*solver="apdc"'):
        ac.solve(ac.Problem(A, B, l1=0.1), solver)


@pytest.mark.parametrize("solver", ["dcd", "spdc", "acf", "cd"])
def test_not_converged_is_said(solver):
    problem = ac.Problem(A, B, "logistic", l2=1e-6)
    with pytest.warns(
        ac.ConvergenceWarning,
        match=f"{solver} stopped at max_passes=2 with a relative gap of .*tol=1e-12",
    ):
        r = ac.solve(problem, solver, tol=1e-12, max_passes=2)
    assert not r.converged and r.status == "max_passes" and r.relative_gap > 1e-12


@pytest.mark.parametrize("solver", ["dcd", "spdc", "acf", "cd"])
def test_a_start_with_an_intercept_where_there_is_none(solver):
    """Refused or ignored, but never carried along: P(x, c) - D(y) would certify nothing."""
    A, b = good(shift=1.0)
    start = ac.solve(ac.Problem(A, b, "logistic", l2=0.1, intercept=True), "dcd", tol=1e-10)
    plain = ac.Problem(A, b, "logistic", l2=0.1)
    assert abs(start.intercept) > 0.5
    try:
        r = ac.solve(plain, solver, tol=1e-8, start=start)
    except ValueError as error:
        assert re.search("start.*intercept", str(error))
    else:
        assert r.intercept == 0.0 and check_gap(r, A, b, "logistic", l2=0.1) <= 2e-8


# --- files --------------------------------------------------------------------------------------


def model_bytes(folder):
    A, b = good()
    ac.save_model(ac.Ridge().fit(A, b), folder / "whole")
    return (folder / "whole").read_bytes()


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.svm", b"", "a.svm: the file has no rows"),
        ("a.svm", b"1 1:2\n1 x:3\n", r"a.svm:2:3: a feature must read index:value.*'x:3'"),
        ("a.svm", b"1 1:nan\n", r"a.svm:1:3: a value must be a finite number, got '1:nan'"),
        ("a.svm", b"red 1:2\n", r"a.svm:1:1: a line must start with its label.*'red'"),
        ("a.svm", b"1 0:2\n", r"a.svm:1:3: indices start at 1; .*zero_based=True"),
        ("a.svm", b"1 2:2 2:3\n", "a.svm:1:7: an index must not appear twice in a row, got '2:3'"),
        ("a.svm.gz", gzip.compress(b"1 1:2\n" * 99)[:-9], "a.svm.gz: .*truncated or corrupt"),
        ("a.svm.gz", b"1 1:2\n", "a.svm.gz: the name ends in .gz but"),
    ],
)
def test_svmlight(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_svmlight(tmp_path / name)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda whole: b"", "m: this is not an adacoord model file"),
        (
            lambda whole: b"1 1:2\n",
            r"m: this is not an adacoord model file \(it starts with b'1 1:2",
        ),
        (lambda whole: whole[:-1], "m: this model file is damaged .*digest"),
        (lambda whole: whole[:-9] + b"x" + whole[-8:], "m: this model file is damaged .*digest"),
        (lambda whole: whole.replace(b"MODEL-3", b"MODEL-9"), "m: .*format 9, .*upgrade"),
    ],
)
def test_model(tmp_path, damage, message):
    (tmp_path / "m").write_bytes(damage(model_bytes(tmp_path)))
    with pytest.raises(ValueError, match=message):
        ac.load_model(tmp_path / "m")


def test_missing_files(tmp_path):
    for load in (load_svmlight, ac.load_model):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            load(tmp_path / "nowhere")


# --- odd input that must work -------------------------------------------------------------------


def check_gap(r, A, b, loss, l2):
    """The relative gap of a result, by the textbook."""
    A = A.toarray() if sparse.issparse(A) else np.asarray(A, dtype=np.float64)
    z, y, n = A @ r.x + r.intercept, r.y, b.size
    if loss == "squared":
        value, conjugate = (z - b) ** 2 / 2, y * y / 2 + b * y
    elif loss == "hinge":
        value, conjugate = np.maximum(0, 1 - b * z), b * y
        assert np.all((b * y <= 0) & (b * y >= -1))
    else:
        q = -b * y
        assert np.all((q > 0) & (q < 1))
        value, conjugate = np.logaddexp(0, -b * z), q * np.log(q) + (1 - q) * np.log1p(-q)
    u = A.T @ y / n
    primal, dual = np.mean(value) + l2 / 2 * r.x @ r.x, -np.mean(conjugate) - u @ u / (2 * l2)
    assert r.primal == pytest.approx(primal, rel=1e-10, abs=1e-300)
    assert r.dual == pytest.approx(dual, rel=1e-9, abs=1e-12 * abs(primal))
    return (primal - dual) / max(abs(primal), abs(dual), 1e-300)


def good(n=30, d=4, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    return A, np.where(A[:, 0] + rng.standard_normal(n) + shift > 0, 1.0, -1.0)


def odd_forms():
    A, b = good()
    yield "zero rows", changed(A, slice(3, 9), 0.0), b
    yield "constant column", np.hstack([A, np.full((30, 1), 7.0), np.zeros((30, 1))]), b
    yield "equal columns", np.hstack([A, A]), b
    yield "equal rows", np.repeat(A[:2], 15, axis=0), np.repeat([1.0, -1.0], 15)
    yield "all zero", np.zeros((6, 3)), b[:6] * [1, -1, 1, 1, 1, 1]
    yield "all zero csr", sparse.csr_matrix((6, 3)), b[:6] * [1, -1, 1, 1, 1, 1]
    yield "one column", A[:, :1], b
    yield "more columns than rows", good(4, 50, seed=1)[0], np.array([1.0, -1.0, 1.0, -1.0])
    yield "int64", A.round().astype(np.int64), b
    yield "b of shape (n, 1)", A, b[:, None]
    s = sparse.csr_matrix(changed(A, slice(3, 9), 0.0))
    wide = s.copy()
    wide.indices, wide.indptr = s.indices.astype(np.int64), s.indptr.astype(np.int64)
    yield "int64 indices", wide, b
    unsorted = s.copy()
    unsorted.indices = np.concatenate([r[::-1] for r in np.split(s.indices, s.indptr[1:-1])])
    unsorted.data = np.concatenate([r[::-1] for r in np.split(s.data, s.indptr[1:-1])])
    yield "unsorted", unsorted, b
    yield (
        "duplicates",
        sparse.csr_matrix(
            (np.repeat(s.data / 2, 2), np.repeat(s.indices, 2), 2 * s.indptr), shape=s.shape
        ),
        b,
    )


ODD = {name: (A, b) for name, A, b in odd_forms()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver, loss",
    [
        *product(["dcd", "spdc"], ["squared", "logistic", "hinge"]),
        *product(["acf", "cd"], ["squared", "logistic"]),
    ],
)
@pytest.mark.parametrize("name", ODD)
def test_odd_data_are_solved(name, solver, loss):
    A, b = ODD[name]
    r = ac.solve(ac.Problem(A, b, loss, l2=0.1), solver, tol=1e-8, max_passes=20_000)
    assert r.converged and check_gap(r, A, b.ravel(), loss, l2=0.1) <= 1.1e-8


@pytest.mark.parametrize("solver", ["dcd", "spdc", "acf", "cd"])
def test_one_row(solver):
    for A in (
        np.array([[2.0, -1.0]]),
        np.array([[3.0]]),
        np.zeros((1, 2)),
        sparse.csr_matrix([[0, 2]]),
    ):
        r = ac.solve(ac.Problem(A, [3.0], l2=0.5), solver, tol=1e-8)
        assert r.converged and check_gap(r, A, np.array([3.0]), "squared", l2=0.5) <= 1.1e-8


@pytest.mark.parametrize("solver", ["dcd", "spdc", "acf", "cd"])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_scales(solver, scale):
    """The same problem in other units; and, where it is not hopeless, with the old penalty."""
    A, b = good()
    cases = [
        (scale * A, b, "logistic", 0.1 * scale**2),
        (A, scale * b, "squared", 0.1),
        (scale * A, scale * b, "squared", 0.1 * scale**2),
    ]
    cases += [(scale * A, b, "logistic", 0.1)] if scale < 1 else []
    for data, target, loss, l2 in cases:
        r = ac.solve(ac.Problem(data, target, loss, l2=l2), solver, tol=1e-8)
        assert r.converged and check_gap(r, data, target, loss, l2) <= 1.1e-8


@pytest.mark.parametrize("solver", ["dcd", "spdc", "acf", "cd"])
def test_read_only_memory_map(solver, tmp_path):
    A, b = good()
    A.tofile(tmp_path / "A")
    b.tofile(tmp_path / "b")
    on_disk = np.memmap(tmp_path / "A", dtype=np.float64, mode="r", shape=A.shape)
    target = np.memmap(tmp_path / "b", dtype=np.float64, mode="r")
    problem = ac.Problem(on_disk, target, "logistic", l2=0.1)
    assert np.shares_memory(problem.matrix.data, on_disk)
    r = ac.solve(problem, solver, tol=1e-8)
    assert check_gap(r, A, b, "logistic", l2=0.1) <= 1.1e-8
    assert (tmp_path / "A").read_bytes() == A.tobytes()
