"""Collective certificates of pipelines: the same checks as one point at a time, and attacks that were replayed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import flipcert


def scaled_ridge():
    return make_pipeline(StandardScaler(), flipcert.KernelRidge(classes=[0, 1, 2]))


def test_a_pipeline_is_certified_as_its_last_step_on_transformed_inputs(blobs):
    X, y, X_test, y_test = blobs
    pipeline = scaled_ridge().fit(X, y)
    certificate = flipcert.certify_collectively(pipeline, X_test, [1, 3, 30], y_test, time_limit=10.0)
    direct = pipeline[-1].certify_collectively(pipeline[:-1].transform(X_test), [1, 3, 30], y_test, time_limit=10.0)
    for name in ("changed_at_most", "changed_at_least", "changed_one_by_one", "prediction", "counted"):
        np.testing.assert_array_equal(getattr(certificate, name), getattr(direct, name))
    assert certificate.counts_correct
    assert "steps" in certificate.model or certificate.model != direct.model
    assert not flipcert.certify_collectively(pipeline, X_test, 3, time_limit=1.0).counts_correct
    for k, attack in enumerate(certificate.attacks):
        if attack is not None:
            after = scaled_ridge().fit(X, attack.apply(y)).predict(X_test)
            assert np.count_nonzero(certificate.counted & (after != certificate.prediction)) >= len(
                certificate.changed(k)
            )


def test_what_is_refused_point_by_point_is_refused_together(blobs):
    X, y, X_test, _ = blobs

    class Own(flipcert.KernelRidge):
        def fit(self, X, y, trusted=None, source=None):
            return super().fit(X * 2, y, trusted, source)

    with pytest.raises(ValueError, match="may use y"):
        flipcert.certify_collectively(make_pipeline(SelectKBest(k=1), flipcert.KernelSVM()).fit(X, y), X_test, 2)
    with pytest.raises(ValueError, match="give Own a certify_collectively of its own"):
        flipcert.certify_collectively(make_pipeline(StandardScaler(), Own()).fit(X, y), X_test, 2)
    with pytest.raises(
        TypeError, match=r"^model must be a fitted classifier, or a Pipeline that ends in one; got 'ridge'"
    ):
        flipcert.certify_collectively("ridge", np.zeros((1, 2)), 1)
    with pytest.raises(TypeError, match="LogisticRegression has no certificate"):
        flipcert.certify_collectively(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), X_test, 2)


def test_classifiers_of_others_may_certify_single_points_only(blobs):
    X, y, X_test, _ = blobs

    class Other(BaseEstimator):
        def fit(self, X, y):
            self.fitted_ = True
            return self

        def certify(self, X):
            raise AssertionError

    with pytest.raises(TypeError, match="Other has no collective certificate; use a flipcert estimator"):
        flipcert.certify_collectively(make_pipeline(StandardScaler(), Other()).fit(X, y), X_test, 2)


def test_rows_that_are_added_behind_a_transformer_are_no_known_attack(blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(Normalizer(), flipcert.KernelSVM(kernel=flipcert.kernels.RBF())).fit(X, y)
    added = flipcert.certify_collectively(pipeline, X_test, [2, 9], threat="insertions")
    assert added.attacks == [None, None]
    assert not added.changed_at_least.any()
    deleted = flipcert.certify_collectively(pipeline, X_test, 9, threat="deletions")
    assert deleted.threat == "deletions"
    with pytest.raises(ValueError, match="rows"):
        flipcert.certify_collectively(
            make_pipeline(StandardScaler(), flipcert.KernelSVM()).fit(X, y), X_test, 2, threat="deletions"
        )


@pytest.mark.parametrize(
    ("flips", "said"), [([], "flips is empty"), (-1, "flips must"), ("x", "flips must"), ([1.5], "flips must")]
)
def test_bad_budgets_are_one_sentence(blobs, flips, said):
    X, y, X_test, _ = blobs
    with pytest.raises((ValueError, TypeError), match=said) as caught:
        flipcert.certify_collectively(scaled_ridge().fit(X, y), X_test, flips)
    assert "\n" not in str(caught.value)
