"""
In a pipeline, under a grid search
==================================

These are scikit-learn estimators: pipelines, searches and scorers take them.

    python examples/pipeline_grid_search.py [picture.png]
"""

from __future__ import annotations

import sys

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adacoord import LogisticRegression


def draw(search, file):
    """The accuracy on the folds against C, with and without an l1."""
    import matplotlib.pyplot as plt

    found, figure = search.cv_results_, plt.figure(figsize=(7, 4), layout="constrained")
    ax = figure.subplots()
    for ratio in (0.0, 0.5):
        here = found["param_logisticregression__l1_ratio"] == ratio
        ax.errorbar(
            found["param_logisticregression__C"][here].astype(float),
            found["mean_test_score"][here],
            found["std_test_score"][here],
            marker="o",
            capsize=3,
            label=f"l1_ratio = {ratio}",
        )
    ax.set(xscale="log", xlabel="C", ylabel="accuracy on five folds")
    ax.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(file=None):
    X, y = load_breast_cancer(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.01, 0.1, 1.0], "logisticregression__l1_ratio": [0.0, 0.5]}
    search = GridSearchCV(pipe, grid, cv=5).fit(X, y)
    model = search.best_estimator_[-1]
    print(
        f"best {search.best_params_}: accuracy {search.best_score_:.3f}, "
        f"relative gap {model.relative_gap_:.0e}"
    )
    if file:
        draw(search, file)
    return search


if __name__ == "__main__":
    main(*sys.argv[1:])
