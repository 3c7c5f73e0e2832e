"""The scoreboard says what the figures say: means, the worst, and every row that is lost."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import results

ROOT = Path(__file__).parents[1]
RACE = [
    {"problem": name, "ratio": ratio, "bound": bound, "best_peer": peer, "commit": "abc1234"}
    for name, ratio, bound, peer in (
        ("hinge", 0.25, "", "liblinear"),
        ("ridge", 4.0, "", "sklearn"),
        ("lasso", 0.125, "<", ""),
    )
]
RACE.append({"problem": "huge", "ratio": 1.0, "bound": "?", "best_peer": ""})
MODELS = [{**RACE[0], "problem": "nnls", "ratio": 0.5}]
USER = {"done": True, "worse": 0.0, "allowed": 1e-4, "our_warnings": [], "their_warnings": []}
USERS = {
    "Lasso": {**USER, "ours": 1.0, "theirs": 2.0},
    "Ridge": {**USER, "ours": 3.0, "theirs": 2.0},
}


@pytest.fixture
def figures(tmp_path):
    race, models, users = (tmp_path / f"{name}.json" for name in ("race", "models", "users"))
    race.write_text(json.dumps(RACE))
    models.write_text(json.dumps(MODELS))
    users.write_text(json.dumps(USERS))
    return race, models, users


def test_summaries(figures):
    race, models, users = (
        board(file)
        for board, file in zip(
            (results.race_board, results.models_board, results.users_board), figures, strict=True
        )
    )
    assert results.summary(race.rows) == [
        "geometric mean: 0.50",
        "worst: 4.00 (ridge)",
        "slower than the best of the others in 1 of 3 rows: ridge (4.00)",
        "without a ratio, as nobody finished: huge",
    ]
    assert results.summary(models.rows)[1] == "worst: 0.50 (nnls)"
    assert results.summary(users.rows) == [
        "geometric mean: 0.87",
        "worst: 1.50 (Ridge)",
        "slower than the best of the others in 1 of 2 rows: Ridge (1.50)",
    ]


def test_documents(figures, tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "benchmarks").mkdir()
    for name in ("README.md", "docs/choosing.md"):  # with the marks that they have
        (tmp_path / name).write_text((ROOT / name).read_text())
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(sys, "argv", ["results.py", *map(str, figures), "--quick"])
    for _ in range(2):  # what it has filled it fills again
        results.main()
    board = (tmp_path / "benchmarks" / "RESULTS.md").read_text().splitlines()
    assert [line for line in board if line.startswith("geometric mean: ")] == [
        "geometric mean: 0.50",
        "geometric mean: 0.50",
        "geometric mean: 0.87",
    ]
    assert "Rows by commit: 3 on abc1234, 1 on unknown." in board
    assert "Measured on commit abc1234." in board
    assert "worst: 4.00 (ridge)" in board and "worst: 1.50 (Ridge)" in board
    assert any("numba" in line for line in board) and any(
        li.endswith("race.py --json race.json --quick") for li in board
    )
    readme = (tmp_path / "README.md").read_text()
    assert "| slower in | 1: ridge (4.00) | none | 1: Ridge (1.50) |" in readme
    assert "](docs/race.svg)" in readme and len(readme.splitlines()) <= 120
    assert "](race.svg)" in (tmp_path / "docs" / "choosing.md").read_text()
    assert (tmp_path / "docs" / "race.svg").stat().st_size > 1000
