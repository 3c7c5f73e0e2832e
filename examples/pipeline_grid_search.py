"""In a pipeline, under a grid search: these are scikit-learn estimators."""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adacoord import LogisticRegression


def main():
    X, y = load_breast_cancer(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.01, 0.1, 1.0], "logisticregression__l1_ratio": [0.0, 0.5]}
    search = GridSearchCV(pipe, grid, cv=5).fit(X, y)
    model = search.best_estimator_[-1]
    print(
        f"best {search.best_params_}: accuracy {search.best_score_:.3f}, "
        f"relative gap {model.relative_gap_:.0e}"
    )
    return search


if __name__ == "__main__":
    main()
