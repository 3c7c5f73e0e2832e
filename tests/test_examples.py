"""Every example runs, and shows what its text says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_svm_on_text(clf):
    assert clf.relative_gap_ <= 1e-6


def check_elastic_net_svm(kept):
    assert kept["l2"] == (10, 190)
    assert kept["elasticnet"][0] == 10
    assert kept["elasticnet"][1] < 0.5 * 190
    assert kept["l1"][0] < 10


def check_pipeline_grid_search(search):
    assert search.best_score_ > 0.95


def check_certify_another_library(gaps):
    assert gaps[0] > gaps[-1]
    assert 0.0 <= gaps[-1] < 1e-4


def check_certified_lasso_path(path):
    assert len(path) == 60
    assert path.relative_gap.max() <= 1e-8
    assert not path.coefs[0].any()
    assert path.coefs[-1].all()


def check_the_certificate(points):
    gaps = [proof.gap for _, proof in points]
    assert gaps[0] > gaps[1] > 0.01 > 1e-9 > gaps[2]


def check_adaptive_lasso(found):
    (others, off), (fewer, closer) = found["lasso"], found["adaptive lasso"]
    assert fewer < 0.5 * others
    assert closer < off


def check_exposure_poisson(errors):
    assert errors["with the offset"] < 0.1 < errors["without"]


def check_bounds(result):
    errors, bounded = result
    assert errors["from 0 to 1"] < 0.5 * errors["least squares"]
    assert bounded.relative_gap <= 1e-10


def check_group_lasso(result):
    kept, model = result
    assert {0, 3, 5} <= set(kept["group lasso"]) and kept["group lasso"].size < 8
    assert kept["group lasso"].size <= kept["lasso"].size
    assert model.relative_gap_ <= 1e-8


@pytest.mark.parametrize("name", NAMES)
def test_example(name, capsys):
    result = load(name).main()
    globals()[f"check_{name}"](result)
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_every_example_draws(name, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    load(name).main(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
