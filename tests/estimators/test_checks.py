"""scikit-learn's own checks of an estimator, all of them.

Every class is checked as ``check_estimator(cls())`` does, with its defaults, and some with other
parameters: a default of 5 folds is another thing than the 3 that keep a test fast.
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

import adacoord as ac
from adacoord.estimators import __all__ as NAMES
from adacoord.problem.losses import LOSSES

DEFAULTS = [getattr(ac, name)() for name in NAMES]
SEARCHES = [model for model in DEFAULTS if hasattr(model, "cv")]
ESTIMATORS = [
    *(model for model in DEFAULTS if not hasattr(model, "cv")),
    ac.LinearSVC(loss="hinge"),
    ac.LinearSVC(loss="smooth_hinge"),
    # weights of 1e3 and 1e-4 on two classes: of what takes l1 alone, only working sets cope
    ac.LinearSVC(penalty="l1"),
    ac.LogisticRegression(l1_ratio=1.0, multi_class="ovr"),
    ac.LinearSVC(penalty="elasticnet"),
    ac.LinearSVC(intercept_scaling=1.0),
    ac.LogisticRegression(multi_class="ovr"),
    ac.LinearSVR(loss="squared_epsilon_insensitive"),
    ac.Ridge(positive=True),
    ac.Ridge(alpha=0.0, positive=True),
    ac.Lasso(alpha=0.1),
    ac.ElasticNet(alpha=0.1),
    ac.GroupLasso(alpha=0.1, l1_ratio=0.5),
    ac.GroupLassoCV(alphas=5, cv=3),
    ac.MultiTaskElasticNet(alpha=0.1),
    ac.LogisticRegression(l1_ratio=1.0),
    ac.ERMClassifier(loss="multinomial"),
    ac.PoissonRegressor(l1_ratio=1.0),
    ac.GammaRegressor(l1_ratio=0.5),
    ac.TweedieRegressor(power=1.5),
    ac.QuantileRegressor(quantile=0.8, alpha=0.01),
    ac.LassoCV(alphas=10, cv=3),
    ac.ElasticNetCV(l1_ratio=[0.3, 0.8], alphas=5, cv=3),
    ac.RidgeCV(),
    ac.RidgeCV(cv=3),
    ac.LogisticRegressionCV(cv=3),
    ac.LogisticRegressionCV(Cs=3, cv=3, multi_class="ovr"),
    ac.LogisticRegressionCV(Cs=[0.1, 1.0], l1_ratios=[0.0, 0.5], cv=3, use_legacy_attributes=False),
    ac.LinearSVCCV(Cs=4, cv=3),
    ac.LinearSVCCV(loss="hinge", Cs=[0.1, 1.0], cv=3),
    *(
        ac.ERMRegressor(loss=name)
        for name, cls in LOSSES.items()
        if cls.task == "regression" and name != "squared"
    ),
]


# a check makes 3 folds of 5 rows, of which scikit-learn's own splitter warns
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The least populated class in y has only 2 members")
@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The least populated class in y has only")
@parametrize_with_checks(SEARCHES)
def test_default_search(estimator, check):
    check(estimator)


def test_every_class_is_checked():
    assert len(DEFAULTS) == len(NAMES) == 23


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_parameters_are_validated(estimator):
    check_param_validation(type(estimator).__name__, estimator)
