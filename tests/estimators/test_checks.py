"""scikit-learn's own checks of an estimator, all of them."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

import adacoord as ac
from adacoord.problem.losses import LOSSES

ESTIMATORS = [
    ac.LinearSVC(), ac.LinearSVC(loss="hinge"), ac.LinearSVC(loss="smooth_hinge"),
    # weights of 1e3 and 1e-4 on two classes: of what takes l1 alone, only working sets cope
    ac.LinearSVC(penalty="l1"), ac.LogisticRegression(l1_ratio=1.0, multi_class="ovr"),
    ac.LinearSVC(penalty="elasticnet"),
    ac.LinearSVC(intercept_scaling=1.0),
    ac.LogisticRegression(), ac.LogisticRegression(multi_class="ovr"),
    ac.LinearSVR(), ac.LinearSVR(loss="squared_epsilon_insensitive"),
    ac.Ridge(), ac.Ridge(positive=True), ac.Lasso(alpha=0.1), ac.Lasso(), ac.ElasticNet(alpha=0.1),
    ac.ERMClassifier(), ac.ERMClassifier(loss="multinomial"),
    ac.LassoCV(alphas=10, cv=3), ac.ElasticNetCV(l1_ratio=[0.3, 0.8], alphas=5, cv=3),
    ac.RidgeCV(), ac.RidgeCV(cv=3), ac.LogisticRegressionCV(cv=3),
    ac.LogisticRegressionCV(Cs=3, cv=3, multi_class="ovr"),
    ac.LogisticRegressionCV(Cs=[0.1, 1.0], l1_ratios=[0.0, 0.5], cv=3, use_legacy_attributes=False),
    ac.LinearSVCCV(Cs=4, cv=3), ac.LinearSVCCV(loss="hinge", Cs=[0.1, 1.0], cv=3),
    *(ac.ERMRegressor(loss=name) for name, cls in LOSSES.items() if cls.task == "regression"),
]


# a check makes 3 folds of 5 rows, of which scikit-learn's own splitter warns
@pytest.mark.filterwarnings("ignore:The least populated class in y has only 2 members")
@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_parameters_are_validated(estimator):
    check_param_validation(type(estimator).__name__, estimator)
