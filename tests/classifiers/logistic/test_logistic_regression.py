"""Logistic regression as users meet it: fits, predictions, certificates on real data, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression as ScikitLearns

import flipcert
from flipcert.classifiers.logistic import logistic_regression


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    return X[:400], y[:400], X[400:425], y[400:425]


@pytest.mark.parametrize("C", [0.001, 0.1, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_predictions_are_scikit_learns_at_the_same_penalty(digits, C, fit_intercept):
    X, y, X_test, _ = digits
    ours = flipcert.LogisticRegression(C, fit_intercept=fit_intercept).fit(X, y)
    wide, wide_test = (np.c_[Z, np.ones(len(Z))] if fit_intercept else Z for Z in (X, X_test))
    theirs = ScikitLearns(C=C, fit_intercept=False, tol=1e-9, max_iter=10_000).fit(wide, y)
    assert np.array_equal(ours.predict(X_test), theirs.predict(wide_test))
    assert np.allclose(ours.predict_proba(X_test), theirs.predict_proba(wide_test), atol=1e-5)
    assert np.allclose(ours.decision_function(X_test), X_test @ ours.coef_.T + ours.intercept_)
    assert ours.intercept_.any() == fit_intercept


def test_two_classes_are_binary_logistic_regression():
    X, y = make_blobs(60, centers=2, n_features=3, cluster_std=3.0, random_state=1)
    ours = flipcert.LogisticRegression(0.2, fit_intercept=False).fit(X, y)
    theirs = ScikitLearns(C=0.4, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    assert np.allclose(ours.coef_, [-theirs.coef_[0] / 2, theirs.coef_[0] / 2], atol=1e-6)
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_a_large_penalty_is_label_linear():
    rng = np.random.default_rng(3)
    X, y, T = rng.normal(size=(80, 4)), rng.integers(0, 3, 80), rng.normal(size=(30, 4))
    limit = flipcert.KernelSVM("linear", classes=range(3)).fit(X, y).certify(T)
    ours = flipcert.LogisticRegression(1e-7, fit_intercept=False, classes=range(3)).fit(X, y).certify(T)
    assert np.array_equal(ours.prediction, limit.prediction)
    assert np.array_equal(ours.radius, limit.radius)
    assert np.array_equal(ours.radius_upper, limit.radius_upper)


def test_digits_are_certified_below_attacks_that_work(digits):
    X, y, X_test, _ = digits
    model = flipcert.LogisticRegression(C=0.02, classes=range(10)).fit(X, y)
    certificates, attacks = model.certify(X_test), model.worst_flips(X_test)
    assert (certificates.radius <= certificates.radius_upper).all()
    assert np.median(certificates.radius) >= 3
    assert (certificates.radius_upper < len(y)).mean() > 0.9
    assert model.max_certifiable_ >= certificates.radius.max()
    assert np.array_equal(model.flip_costs(X_test).argsort(axis=1)[:, 0], certificates.prediction)
    for t in (0, 1, 2):
        refitted = flipcert.LogisticRegression(C=0.02, classes=range(10)).fit(X, attacks[t].apply(y))
        assert refitted.predict(X_test[t : t + 1])[0] == certificates.target[t] != certificates.prediction[t]


def test_pairs_prove_more_than_norms(digits, monkeypatch):
    X, y, X_test, _ = digits
    by_pairs = flipcert.LogisticRegression(0.02, classes=range(10)).fit(X, y)
    more = by_pairs.flip_costs(X_test)
    monkeypatch.setattr(logistic_regression, "_MOST_OPERATIONS", 0.0)
    by_norms = flipcert.LogisticRegression(0.02, classes=range(10)).fit(X, y)
    costs = by_norms.flip_costs(X_test)
    assert by_norms._bound.single
    assert not by_pairs._bound.single
    assert (more >= costs).mean() > 0.9
    assert more.sum() > costs.sum() > 10 * len(X_test)


def test_a_small_penalty_proves_nothing_and_says_so(digits):
    X, y, X_test, _ = digits
    model = flipcert.LogisticRegression(C=1e4, classes=range(10)).fit(X[:60], y[:60])
    assert model.max_certifiable_ == 0
    assert (model.certify(X_test).radius == 0).all()


def test_sources_are_proven_from_flips(digits):
    X, y, X_test, _ = digits
    alone = flipcert.LogisticRegression(0.02, classes=range(10)).fit(X, y, source=np.arange(len(y)))
    flips, sources = alone.certify(X_test), alone.certify(X_test, threat="sources")
    assert np.array_equal(flips.radius, sources.radius)
    grouped = flipcert.LogisticRegression(0.02, classes=range(10)).fit(X, y, source=np.arange(len(y)) // 4)
    assert (grouped.certify(X_test, threat="sources").radius <= (flips.radius + 3) // 4).all()
    with pytest.raises(ValueError, match="other labels of the same rows"):
        alone.certify(X_test, threat="deletions")


def test_trusted_labels_only_help(digits):
    X, y, X_test, _ = digits
    trusted = np.arange(len(y)) % 3 > 0
    radius = [
        flipcert.LogisticRegression(0.02, classes=range(10)).fit(X, y, trusted=mask).certify(X_test).radius
        for mask in (None, trusted, np.ones(len(y), bool))
    ]
    assert (radius[1] >= radius[0]).all()
    assert radius[1].sum() > radius[0].sum()
    assert (radius[2] == len(y)).all()


def test_results_do_not_depend_on_threads(digits):
    X, y, X_test, _ = digits
    one, two = (flipcert.LogisticRegression(0.02, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.certify(X_test).radius, two.certify(X_test).radius)


@pytest.mark.parametrize("C", [0, -1.0, np.inf, "1", True, None])
def test_C_must_be_positive(C):
    with pytest.raises(ValueError, match="C must be a positive number"):
        flipcert.LogisticRegression(C=C).fit([[0.0], [1.0]], [0, 1])


def test_bad_input_is_told_in_a_sentence(digits, monkeypatch):
    X, y, X_test, _ = digits
    with pytest.raises(ValueError, match=r"fit_intercept must be True or False; got 1\."):
        flipcert.LogisticRegression(fit_intercept=1).fit(X, y)
    with pytest.raises(TypeError, match=r"got sample_weight, which it does not take: .*; leave it out\."):
        flipcert.LogisticRegression().fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(ValueError, match="overflows; rescale the features"):
        flipcert.LogisticRegression().fit(X * 1e160, y)
    with pytest.raises(ValueError, match="test points overflowed; rescale the features"):
        flipcert.LogisticRegression().fit(X, y).predict(X_test * 1e200)
    with monkeypatch.context() as patch:
        patch.setattr(logistic_regression, "available_memory", lambda: 1e6)
        with pytest.raises(ValueError, match="10 classes times 65 features make 650 weights, whose Hessian takes"):
            flipcert.LogisticRegression().fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr("flipcert.classifiers.logistic.minimiser._STEPS", 1)
        with pytest.raises(ValueError, match=r"C=1 did not converge \(its gradient is .* take a smaller C\."):
            flipcert.LogisticRegression().fit(X, y)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5, 1e6])
def test_large_features_are_fitted_to_the_minimiser_too(scale):
    """What is proven there is next to nothing, but probabilities are those of anybody's minimiser."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 2)) * scale, np.arange(9) % 3
    model = flipcert.LogisticRegression(fit_intercept=False).fit(X, y)
    theirs = ScikitLearns(fit_intercept=False, solver="newton-cg", tol=1e-14, max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it can come no nearer
        theirs.fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("scale", [1e14, 1e30])
def test_features_beyond_all_proofs_are_no_crash(scale):
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.5, -1.0]]) * scale
    certificates = flipcert.LogisticRegression(fit_intercept=False).fit(X, [0, 1, 0, 1]).certify(X)
    assert (certificates.radius == 0).all()
