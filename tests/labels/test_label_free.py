"""``LabelFree``: a transformer that is fitted without labels, whatever it is handed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

import flipcert
from flipcert import LabelFree


class Nosy(TransformerMixin, BaseEstimator):
    """Notes all that it is handed."""

    def fit(self, X, *args, **kwargs):
        self.handed_ = (args, kwargs)
        return self

    def fit_transform(self, X, *args, **kwargs):
        return self.fit(X, *args, **kwargs).transform(X)

    def partial_fit(self, X, *args, **kwargs):
        raise AssertionError("nobody asked for this")

    def transform(self, X, *args, **kwargs):
        assert not args
        assert not kwargs
        return X


class Asking(Nosy):
    """Its signature asks for labels."""

    def fit(self, X, y):
        self.handed_ = ((y,), {})
        return self

    def fit_transform(self, X, labels):
        return self.fit(X, labels).transform(X)


class Shifting(Nosy):
    """Needs labels, and says so nowhere."""

    def fit(self, X, y=None):
        self.shift_ = sum(y)
        return self


class Plain:
    """No estimator of scikit-learn, and without a fit_transform."""

    def get_params(self, deep=False):
        return {}

    def fit(self, X):
        self.mean = X.mean()
        return self

    def transform(self, X):
        return X - self.mean


@parametrize_with_checks(
    [LabelFree(StandardScaler()), LabelFree(PCA(1)), LabelFree(OneHotEncoder(handle_unknown="ignore"))]
)
def test_scikit_learn_manners(estimator, check):
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # as in test_classifiers
    check(estimator)


@pytest.mark.parametrize("handed", [((), {}), (([0, 1],), {}), ((), {"y": [0, 1]})], ids=str)
@pytest.mark.parametrize("transformer", [Nosy(), Asking()], ids=str)
def test_labels_are_not_handed_on(transformer, handed):
    args, kwargs = handed
    X = np.eye(2)
    nothing = [((), {}), ((None,), {})]
    model = LabelFree(transformer)
    assert model.fit(X, *args, **kwargs).transformer_.handed_ in nothing
    model = LabelFree(transformer)
    assert np.array_equal(model.fit_transform(X, *args, **kwargs), X)
    assert model.transformer_.handed_ in nothing
    assert not hasattr(model, "partial_fit")
    assert not hasattr(transformer, "handed_")


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_weights_could_carry_labels_too(method):
    with pytest.raises(TypeError, match="sample_weight"):
        getattr(LabelFree(StandardScaler()), method)(np.eye(2), [0, 1], sample_weight=[0, 1])
    pipeline = make_pipeline(LabelFree(StandardScaler()), flipcert.KernelSVM())
    with pytest.raises(TypeError, match="sample_weight"):
        pipeline.fit(np.eye(2), [0, 1], labelfree__sample_weight=[0, 1])
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises((TypeError, ValueError)):
        pipeline.fit(np.eye(2), [0, 1], sample_weight=[0, 1])


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    "transformer", [SelectKBest(k=1), LinearDiscriminantAnalysis(), TargetEncoder(), Shifting()], ids=str
)
def test_transformers_that_need_labels_are_refused(transformer, method):
    name = type(transformer).__name__
    with pytest.raises((TypeError, ValueError), match=rf"LabelFree fits {name} without labels.*FrozenEstimator"):
        getattr(LabelFree(transformer), method)(np.eye(3), [0, 1, 0])


def test_only_transformers_are_wrapped():
    for wrong in (None, "passthrough", StandardScaler, flipcert.KernelSVM()):
        with pytest.raises(ValueError, match="transformer must be a transformer object, such as StandardScaler"):
            LabelFree(wrong).fit(np.eye(3))


def test_what_passes_through(blobs):
    X, y, _, _ = blobs
    frame = pd.DataFrame(X, columns=["width", "height"])
    model = LabelFree(StandardScaler())
    for name in ("n_features_in_", "feature_names_in_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.transform(X)
    assert model.get_params()["transformer__with_mean"] is True
    assert clone(model.set_params(transformer__with_mean=False)).transformer.with_mean is False
    model.set_params(transformer__with_mean=True).set_output(transform="pandas").fit(frame, y)
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == model.get_feature_names_out().tolist() == ["width", "height"]
    scaled = model.transform(frame)
    assert isinstance(scaled, pd.DataFrame)
    assert isinstance(clone(model).fit_transform(frame), pd.DataFrame)
    assert np.allclose(scaled, StandardScaler().fit_transform(X))
    assert isinstance(model.set_output(transform="default").transform(frame), np.ndarray)
    union = FeatureUnion([("a", model), ("b", LabelFree(PCA(1)))]).set_output(transform="pandas")
    assert union.fit_transform(frame, y).columns.tolist() == ["a__width", "a__height", "b__pca0"]
    columns = ColumnTransformer([("a", LabelFree(StandardScaler()), ["width"])], remainder=LabelFree(PCA(1)))
    assert columns.fit_transform(frame, y).shape == (30, 2)
    assert not hasattr(LabelFree(Nosy()), "get_feature_names_out")
    assert not hasattr(LabelFree(Nosy()), "set_output")


def test_transformers_of_all_sorts(blobs):
    X, y, X_test, _ = blobs
    assert sparse.issparse(LabelFree(OneHotEncoder()).fit_transform(X.round(), y))
    assert LabelFree(CountVectorizer()).fit_transform(["one text", "two texts"], [0, 1]).shape == (2, 4)
    assert np.array_equal(LabelFree(Plain()).fit_transform(X, y), X - X.mean())
    frozen = LabelFree(FrozenEstimator(StandardScaler().fit(X_test)))
    assert np.array_equal(frozen.fit_transform(X, y), frozen.transformer.transform(X))


def test_searches_reach_parameters(blobs):
    X, y, _, _ = blobs
    pipeline = make_pipeline(LabelFree(PCA()), flipcert.KernelRidge())
    search = GridSearchCV(pipeline, {"labelfree__transformer__n_components": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_["labelfree__transformer__n_components"] in (1, 2)


def test_in_ensembles(blobs):
    """A transformer of one's own leaves a base white-box, and the costs are those of its features."""
    X, y, X_test, _ = blobs
    bare = flipcert.PartitionEnsemble(flipcert.KernelRidge(), 3, classes=[0, 1, 2]).fit(X, y).certify(X_test)
    for wrapper, equal in ((LabelFree, True), (lambda nosy: nosy, False)):
        base = make_pipeline(wrapper(Nosy()), flipcert.KernelRidge())
        found = flipcert.PartitionEnsemble(base, 3, classes=[0, 1, 2]).fit(X, y).certify(X_test)
        assert np.array_equal(found.radius, bare.radius if equal else bare.blackbox_radius)
