"""Pipelines of label-free transformers, and those that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler, TargetEncoder

import flipcert


class Centre(TransformerMixin, BaseEstimator):
    """A user's transformer that takes y and leaves it alone."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


class CentreOnFirstClass(Centre):
    """A user's transformer that looks at the labels."""

    def fit(self, X, y=None):
        self.mean_ = X[y == 0].mean(axis=0)
        return self


class CentreUnderAnotherName(Centre):
    def fit(self, X, truth):
        self.mean_ = X[np.asarray(truth) == 0].mean(axis=0)
        return self


class CentreByKeywords(Centre):
    def fit(self, X, *args, **kwargs):
        return super().fit(X[args[0] == 0])


class ScaleByLabels(StandardScaler):
    """Overrides what scikit-learn's own fit calls."""

    def partial_fit(self, X, y=None, sample_weight=None):
        return super().partial_fit(X * (1 + y[:, None]))


class CentreWithOptions(Centre):
    def fit(self, X, y=None, **options):
        return super().fit(X)


LABEL_FREE = [
    StandardScaler(),
    PCA(2),
    VarianceThreshold(),
    FunctionTransformer(np.tanh),
    Centre(),
    CentreWithOptions(),
    "passthrough",
    make_pipeline(MinMaxScaler(), PCA(1)),
    FeatureUnion([("scaled", StandardScaler()), ("pca", PCA(1))]),
    ColumnTransformer([("first", StandardScaler(), [0])], remainder="passthrough"),
]
SUPERVISED = [
    SelectKBest(k=1),
    SelectFromModel(LogisticRegression()),
    LinearDiscriminantAnalysis(),
    NeighborhoodComponentsAnalysis(),
    TargetEncoder(),
    CentreOnFirstClass(),
    CentreUnderAnotherName(),
    CentreByKeywords(),
    ScaleByLabels(),
    make_pipeline(StandardScaler(), SelectKBest(k=1)),
    FeatureUnion([("scaled", StandardScaler()), ("best", SelectKBest(k=1))]),
    ColumnTransformer([("best", SelectKBest(k=1), [0, 1])]),
]


@pytest.mark.parametrize("transformer", LABEL_FREE, ids=str)
def test_label_free_transformers(transformer, blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(transformer, flipcert.KernelRidge()).fit(X, y)
    certificates = flipcert.certify(pipeline, X_test)
    direct = pipeline[-1].certify(pipeline[:-1].transform(X_test))
    assert np.array_equal(certificates.radius, direct.radius)
    assert np.array_equal(certificates.prediction, pipeline.predict(X_test))


@pytest.mark.parametrize("transformer", SUPERVISED, ids=str)
def test_transformers_that_use_labels_are_refused(transformer, blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(transformer, flipcert.KernelSVM()).fit(X, y)
    with pytest.raises(ValueError, match="uses y, so flipped labels would change the features"):
        flipcert.certify(pipeline, X_test)


def test_a_pipeline_at_the_end_of_a_pipeline(blobs):
    X, y, X_test, _ = blobs
    inner = make_pipeline(PCA(2), flipcert.KernelSVM())
    pipeline = make_pipeline(StandardScaler(), inner).fit(X, y)
    assert np.array_equal(flipcert.certify(pipeline, X_test).prediction, pipeline.predict(X_test))
    with pytest.raises(ValueError, match="uses y"):
        flipcert.certify(make_pipeline(StandardScaler(), make_pipeline(SelectKBest(k=2), inner)).fit(X, y), X_test)


def test_pipeline_with_an_ensemble_and_options(blobs):
    X, y, X_test, _ = blobs
    ensemble = flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=3)
    pipeline = make_pipeline(StandardScaler(), ensemble).fit(X, y)
    assert flipcert.certify(pipeline, X_test, exact=True).exact.all()


def test_trusted_labels_through_a_pipeline(blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(StandardScaler(), flipcert.KernelSVM())
    pipeline.fit(X, y, kernelsvm__trusted=np.ones(30, bool))
    assert (flipcert.certify(pipeline, X_test).radius == 30).all()


def test_bare_estimators(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.KernelSVM().fit(X, y)
    assert np.array_equal(flipcert.certify(model, X_test).radius, model.certify(X_test).radius)
    assert np.array_equal(flipcert.certify(make_pipeline(model), X_test).radius, model.certify(X_test).radius)
    with pytest.raises(TypeError, match=r"LogisticRegression has no certificate.*PartitionEnsemble"):
        flipcert.certify(LogisticRegression().fit(X, y), X_test)


def test_a_search_on_labels_is_refused(blobs):
    X, y, X_test, _ = blobs
    search = GridSearchCV(flipcert.KernelRidge(), {"reg": [0.1, 1.0]}, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="GridSearchCV chose hyper-parameters from labels"):
        flipcert.certify(search, X_test)
    assert len(flipcert.certify(search.best_estimator_, X_test)) == len(X_test)
