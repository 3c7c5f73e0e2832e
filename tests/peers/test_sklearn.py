"""scikit-learn's own tests of these classes, run on ours, where they test the optimum.

``SELECTED`` names each test taken; ``LEFT_OUT`` each that is not though it is about one of the
classes, and why.  Tests of kernels, of the classes for several tasks and of array API back ends are
about other things and named nowhere.
"""

from __future__ import annotations

import pytest

from .sklearn_modules import load

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SELECTED = {
    "sklearn.svm.tests.test_svm": """
        test_linearsvr test_linearsvr_fit_sampleweight test_linearsvc
        test_linearsvc_fit_sampleweight test_linearsvc_iris test_liblinear_set_coef
        test_immutable_coef_property test_lsvc_intercept_scaling_zero
        test_linearsvm_liblinear_sample_weight test_linearsvc_verbose
    """,
    "sklearn.linear_model.tests.test_ridge": """
        test_ridge_regression_hstacked_X test_ridge_regression_vstacked_X
        test_ridge_regression_sample_weights test_ridge_shapes_type test_ridge_intercept
        test_ridge_vs_lstsq test_ridge_individual_penalties test_solver_consistency
        test_regularization_limits_ridge test_raises_value_error_if_sample_weights_greater_than_1d
        test_sparse_design_with_sample_weights test_ridge_fit_intercept_sparse test_dtype_match
        test_dtype_match_cholesky test_ridge_sag_with_X_fortran
        test_ridge_positive_regression_test test_ridge_ground_truth_positive_test
        test_positive_ridge_loss test_lbfgs_solver_consistency test_ridge_sample_weight_consistency
        test_ridge_gcv_integer_arrays test_ridge_gcv_vs_ridge_loo_cv test_ridge_loo_cv_asym_scoring
        test_ridge_gcv_sample_weights test_ridge_gcv_cv_results_not_stored test_ridge_best_score
        test_ridge_cv_individual_penalties test_ridge_regression_custom_scoring
        test_ridgecv_store_cv_results test_ridgecv_alphas_conversion test_ridgecv_alphas_zero
        test_ridgecv_sample_weight test_ridgecv_int_alphas test_ridgecv_alphas_validation
        test_ridgecv_alphas_scalar test_ridge_cv_results_predictions
        test_ridge_cv_multioutput_sample_weight test_ridge_cv_custom_multioutput_scorer
        test_class_weights
    """,
    "sklearn.linear_model.tests.test_coordinate_descent": """
        test_lasso_zero test_lasso_toy test_enet_toy test_lasso_positive_constraint
        test_enet_positive_constraint test_lasso_readonly_data test_enet_multitarget
        test_random_descent test_enet_float_precision test_coef_shape_not_zero
        test_convergence_warnings test_sparse_input_convergence_warning
        test_enet_sample_weight_consistency test_enet_alpha_max test_enet_ridge_consistency
        test_enet_ols_consistency test_sample_weight_invariance
        test_elasticnet_precompute_gram test_elasticnet_precompute_gram_weighted_samples
        test_lasso_cv test_lasso_cv_with_some_model_selection test_lasso_cv_positive_constraint
        test_lassocv_alphas_validation test_enet_path test_enet_cv_positive_constraint
        test_uniform_targets test_multioutput_enetcv_error
        test_sparse_input_dtype_enet_and_lassocv test_enet_l1_ratio
        test_enet_cv_sample_weight_correctness test_enet_cv_grid_search
        test_enet_cv_sample_weight_consistency test_linear_models_cv_fit_with_loky
        test_cv_estimators_reject_params_with_no_routing_enabled
        test_lasso_path_return_models_vs_new_return_gives_same_coefficients
        test_enet_path_positive test_path_unknown_parameter
        test_enet_path_check_input_false
        test_multi_task_lasso_readonly_data
    """,
    "sklearn.linear_model.tests.test_logistic": """
        test_predict_2_classes test_predict_3_classes test_logistic_glmnet test_sparsify
        test_inconsistent_input test_write_parameters test_nan
        test_multinomial_logistic_regression_string_inputs test_logistic_regression_solvers
        test_logistic_regression_solvers_multiclass
        test_logistic_regression_solvers_multiclass_unpenalized
        test_logistic_regression_sample_weights test_logistic_regression_solver_class_weights
        test_sample_and_class_weight_equivalence_liblinear test_logistic_regression_class_weights
        test_liblinear_decision_function_zero test_logreg_l1 test_logreg_predict_proba_multinomial
        test_warm_start test_warm_start_newton_solver test_saga_vs_liblinear
        test_warm_start_converge_LR test_elastic_net_coeffs test_elastic_net_l1_l2_equivalence
        test_elastic_net_vs_l1_l2 test_LogisticRegression_elastic_net_objective
        test_elastic_net_versus_sgd test_c_inf_no_warning test_liblinear_not_stuck
        test_consistency_path test_logreg_intercept_scaling_zero
        test_logisticregression_liblinear_sample_weight test_multinomial_identifiability_on_iris
        test_sample_weight_not_modified test_single_feature_newton_cg
        test_logistic_regression_callback_fitted_estimator
        test_logistic_cv test_logistic_cv_refit_false_non_elasticnet test_logistic_cv_mock_scorer
        test_multinomial_cv_iris test_logistic_cv_folds_with_classes_missing
        test_logistic_cv_sparse test_logistic_regressioncv_class_weights
        test_logistic_regression_cv_refit test_LogisticRegressionCV_GridSearchCV_elastic_net
        test_LogisticRegressionCV_no_refit test_LogisticRegressionCV_elasticnet_attribute_shapes
        test_LogisticRegressionCV_on_folds test_scores_attribute_layout_elasticnet
        test_lr_cv_scores_differ_when_sample_weight_is_requested
        test_lr_cv_scores_without_enabling_metadata_routing
        test_passing_params_without_enabling_metadata_routing
    """,
    "sklearn.linear_model._glm.tests.test_glm": """
        test_glm_regression test_glm_regression_hstacked_X test_glm_regression_vstacked_X
        test_sample_weights_validation test_glm_sample_weight_consistency test_warm_start
        test_normal_ridge_comparison test_poisson_glmnet test_tags test_convergence_warning
    """,
    "sklearn.linear_model.tests.test_quantile": """
        test_quantile_equals_huber_for_low_epsilon test_quantile_sample_weight test_sparse_input
    """,
    "sklearn.linear_model.tests.test_huber": """
        test_huber_equals_lr_for_high_epsilon test_huber_max_iter test_huber_sample_weights
        test_huber_sparse test_huber_scaling_invariant test_huber_and_sgd_same_results
        test_huber_better_r2_score test_huber_bool
    """,
}

LEFT_OUT = {
    "sklearn.svm.tests.test_svm": {
        "test_linearsvc_parameters": "asks that pairs of loss and penalty be refused; we take all",
        "test_linearsvc_crammer_singer": "we have one class against the rest only",
        "test_crammer_singer_binary": "the same",
        "test_dense_liblinear_intercept_handling": "asks for the default intercept_scaling of 1",
        "test_linear_svm_convergence_warnings": "asks that 2 iterations fail; here they suffice",
    },
    "sklearn.linear_model.tests.test_ridge": {
        "test_ridge_regression": "ends by asking for the name of scikit-learn's method",
        "test_ridge_regression_unpenalized": "asks for the least of many solutions at alpha = 0",
        "test_ridge_regression_unpenalized_hstacked_X": "the same",
        "test_ridge_regression_unpenalized_vstacked_X": "the same",
        "test_n_iter": "counts the iterations of each of scikit-learn's methods",
        "test_sparse_cg_max_iter": "counts the iterations of a method",
        "test_ridge_fit_intercept_sparse_error": "asks for limits that we have not",
        "test_ridge_fit_intercept_sparse_sag": "asks for a warning about a method",
        "test_ridge_positive_error_test": "asks for limits that we have not",
        "test_lbfgs_solver_error": "the same",
        "test_regularization_limits_ridge_gcv": "asks for a warning about svd and sparse data",
        "test_check_gcv_mode_choice": "is about a private function",
    },
    "sklearn.linear_model.tests.test_coordinate_descent": {
        "test_multi_task_lasso_and_enet": "asks for the words of a warning",
        "test_multi_task_lasso_vs_skglm": "asks for 7 digits of x at a gap of 1e-10",
        "test_warm_start_multitask_lasso": "asks for the path of one iteration after the other",
        "test_lasso_dual_gap": "compares a gap of 0 with one of rounding",
        "test_enet_nonfinite_params": "asks for the message about an overflow",
        "test_warm_start": "counts iterations",
        "test_warm_start_convergence": "counts iterations",
        "test_warm_start_convergence_with_regularizer_decrement": "counts iterations",
        "test_lasso_alpha_warning": "asks for a warning at alpha = 0",
        "test_elasticnet_precompute_incorrect_gram": "Gram matrices are not taken",
        "test_overridden_gram_matrix": "the same",
        "test_enet_coordinate_descent_raises_convergence": "asks that few iterations fail",
        "test_enet_sample_weight_does_not_overwrite_sample_weight": "is about check_input",
        "test_check_input_false": "is about check_input",
        "test_enet_copy_X_True": "the same",
        "test_lassoCV_does_not_set_precompute": "is about Gram matrices, which are not taken",
        "test_1d_multioutput_enet_and_multitask_enet_cv": "asks for 7 digits of a loose solution",
        "test_1d_multioutput_lasso_and_multitask_lasso_cv": "the same",
        "test_enet_copy_X_False_check_input_False": "the same",
        "test_sparse_dense_descent_paths": "is about paths of several tasks",
        "test_path_function_deprecated_n_alphas": "asks for a deprecation",
    },
    "sklearn.linear_model.tests.test_logistic": {
        "test_check_solver_option": "is about the limits of scikit-learn's methods",
        "test_elasticnet_l1_ratio_err_helpful": "the same",
        "test_liblinear_multiclass_raises": "the same",
        "test_large_sparse_matrix": "asks that 64-bit indices be refused; we take them",
        "test_liblinear_with_large_values": "asks that values of 1e100 be refused",
        "test_liblinear_dual_random_state": "asks that seeds differ",
        "test_dtype_match": "asks that liblinear's float32 become float64",
        "test_max_iter": "asks that few iterations fail, per method",
        "test_n_iter": "counts iterations",
        "test_zero_max_iter": "max_iter=0",
        "test_penalty_none": "asks for a warning about C with no penalty",
        "test_penalty_deprecated": "asks for scikit-learn's deprecations",
        "test_l1_ratio_None_deprecated": "the same",
        "test_l1_ratio_non_elasticnet": "the same",
        "test_lr_penalty_l1ratio_incompatible": "the same",
        "test_logisticregression_warns_with_n_jobs": "the same",
        "test_newton_cholesky_fallback_to_lbfgs": "is about a method",
        "test_logistic_regression_callback_support": "counts the tasks of lbfgs",
        "test_logistic_cv_multinomial_score": "is about a private function",
        "test_logisticregressioncv_warns_with_use_legacy_attributes": "asks for a deprecation",
        "test_lr_scoring_warns": "the same",
        "test_get_default_scorer": "is about a private method",
        "test_logistic_regression_callback_support_warning": "is about a method",
    },
    "sklearn.linear_model._glm.tests.test_glm": {
        "test_glm_regression_unpenalized": "asks for the least of many solutions at alpha = 0",
        "test_glm_regression_unpenalized_hstacked_X": "the same",
        "test_glm_regression_unpenalized_vstacked_X": "the same",
        "test_glm_log_regression": "asks for 6 digits of x at alpha = 0, where tol is one of P",
        "test_glm_wrong_y_range": "asks for scikit-learn's words",
        "test_glm_identity_regression": "is about a private class",
        "test_tweedie_link_argument": "asks for links whose deviance is not convex",
        "test_tweedie_link_auto": "asks for powers whose deviance is not convex",
        "test_tweedie_score": "the same",
        "test_linalg_warning_with_newton_solver": "is about a method",
        "test_newton_solver_verbosity": "the same",
    },
    "sklearn.linear_model.tests.test_quantile": {
        "test_quantile_toy_example": "asks for alpha = 0",
        "test_quantile_estimates_calibration": "the same",
        "test_asymmetric_error": "the same",
        "test_equivariance": "the same",
        "test_incompatible_solver_for_sparse_input": "is about a method",
        "test_linprog_failure": "the same",
        "test_error_interior_point_future": "the same",
    },
    "sklearn.linear_model.tests.test_huber": {
        "test_huber_gradient": "is about a private function",
        "test_huber_warm_start": "counts iterations",
    },
}


@pytest.fixture
def global_random_seed():
    """scikit-learn's own fixture, with its default seed."""
    return 42


def with_lists(test):
    """The test with parametrised lists in the place of generators, which pytest is to refuse."""
    test.pytestmark = [
        pytest.mark.parametrize(mark.args[0], list(mark.args[1]), **mark.kwargs).mark
        if mark.name == "parametrize" and len(mark.args) == 2
        else mark
        for mark in getattr(test, "pytestmark", [])
    ]
    return test


for _name, _tests in SELECTED.items():
    _module = load(_name)
    for _fixture in ("ols_ridge_dataset", "glm_dataset", "regression_data", "X_y_data"):
        if hasattr(_module, _fixture):
            globals()[_fixture] = getattr(_module, _fixture)
    for _test in _tests.split():
        globals()[f"{_test}_of_{_name.rsplit('_', 1)[-1]}"] = with_lists(getattr(_module, _test))


def test_lists_name_tests_that_exist():
    for name, tests in SELECTED.items():
        module, left_out = load(name), LEFT_OUT[name]
        assert all(hasattr(module, test) for test in left_out)
        assert not set(tests.split()) & set(left_out)
