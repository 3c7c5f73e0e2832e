"""What ``auto`` takes where columns, rows and Newton's method could all do it."""

import numpy as np
import pytest
from scipy import sparse

import adacoord as ac
from adacoord.auto.rule import choose


def draw(loss, n, d, seed=0, density=1.0):
    rng = np.random.default_rng([seed, n, d])
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) * rng.random(d)
    if density < 1.0:
        A = sparse.csr_array(A * (rng.random((n, d)) < density))
    z = A @ (rng.standard_normal(d) * (rng.random(d) < 0.5))
    z /= z.std()
    if loss == "poisson":
        return A, rng.poisson(np.exp(0.5 * z)).astype(float)
    if loss == "squared":
        return A, z + 0.5 * rng.standard_normal(n)
    return A, np.where(z + 0.5 * rng.logistic(size=n) > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("density", [1.0, 0.1])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "huber"])
def test_a_sign_with_an_l2_is_for_the_columns(loss, density):
    """Rows were once visited there, a hundred times as long."""
    A, b = draw("squared" if loss == "huber" else loss, 7000, 40, density=density)
    problem = ac.Problem(A, b, loss, l2=1e-6, positive=True, intercept=True)
    result = ac.solve(problem, tol=1e-7)
    assert result.converged and result.solver == "acf" and (result.x >= 0.0).all()
    assert result.history.operations[-1] < 60 * problem.matrix.nnz
    # the conditions of optimality: slopes of what is positive are 0, of the rest not negative
    y = problem.loss.derivative(problem.predict(result.x, result.intercept), problem.b)
    slopes = problem.average(y) + 1e-6 * result.x
    scale = np.abs(problem.average(np.abs(y))).max()
    assert slopes.min() > -1e-3 * scale and np.abs(slopes[result.x > 1e-3]).max() < 1e-3 * scale
    assert 0 < np.count_nonzero(result.x) < 40


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber", "poisson"])
def test_an_l1_on_small_data_is_for_columns_where_these_are_many(loss):
    kind = "squared" if loss == "huber" else loss
    few, many = draw(kind, 300, 20), draw(kind, 500, 300)
    assert choose(ac.Problem(*few, loss, l1=1e-3, intercept=True)) == "newton"
    problem = ac.Problem(*many, loss, l1=1e-3, intercept=True)
    problem = problem.with_penalty(l1=0.05 * problem.l1_max())
    result = ac.solve(problem, tol=1e-8)
    assert result.converged and result.history.switched is None and result.solver == "acf"
    assert result.primal <= ac.solve(problem, "newton", tol=1e-10).primal * (1 + 1e-8)


def test_so_is_one_on_more_columns_than_newton_takes_at_once():
    problem = ac.Problem(*draw("logistic", 60, 1500), "logistic", l1=1e-2, intercept=True)
    assert choose(problem) == "acf"


def test_where_descent_crawls_newton_goes_on():
    """Half of the passes, then its active sets."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((500, 500))
    z = A @ (rng.standard_normal(500) * (rng.random(500) < 0.2))
    b = np.where(2.0 * z / z.std() + rng.logistic(size=500) > 0.0, 1.0, -1.0)
    problem = ac.Problem(A, b, "squared_hinge", l1=1.0, intercept=True)
    problem = problem.with_penalty(l1=problem.l1_max() / 300.0)
    result = ac.solve(problem, tol=1e-8, max_passes=300)
    assert result.converged and result.history.switched.after == "newton"


def classes(n, d, k, seed=0, storage=np.asarray):
    rng = np.random.default_rng([seed, n, d, k])
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) * rng.random(d)
    z = A @ (rng.standard_normal((d, k)) * (rng.random((d, 1)) < 0.3))
    b = np.argmax(2.0 * z / z.std() + rng.gumbel(size=z.shape), axis=1)
    problem = ac.Problem(storage(A), np.unique(b, return_inverse=True)[1], "multinomial", l1=1.0)
    return problem


@pytest.mark.parametrize("divisor", [5, 100])
@pytest.mark.parametrize("shape", [(2000, 20, 4), (1500, 90, 5)])
def test_few_coefficients_of_classes_with_an_l1_are_newtons(shape, divisor):
    problem = classes(*shape)
    problem = problem.with_penalty(l1=problem.l1_max() / divisor)
    result = ac.solve(problem, tol=1e-7)
    assert result.converged and result.solver == "lbfgs" and result.passes <= 20
    sets = ac.solve(problem, "acf", tol=1e-5, max_passes=2000)
    assert sets.converged and sets.dual <= result.primal <= sets.primal * (1 + 1e-9)


def test_the_classes_of_others_are_for_working_sets():
    assert choose(classes(2000, 20, 4, storage=sparse.csr_array)) == "acf"
    assert choose(classes(60, 200, 4)) == "acf"  # more columns than rows
    assert choose(classes(3000, 700, 4)) == "acf"  # too many coefficients


def test_where_newton_on_classes_is_stuck_working_sets_go_on(monkeypatch):
    from adacoord.solvers.newton.bounded_classes import BoundedClasses

    def stuck(self):
        self.stuck = True

    monkeypatch.setattr(BoundedClasses, "_pass", stuck)
    problem = classes(1000, 20, 4)
    problem = problem.with_penalty(l1=problem.l1_max() / 5)
    assert choose(problem) == "lbfgs"
    result = ac.solve(problem, tol=1e-6)
    assert result.converged and result.solver == "acf"
