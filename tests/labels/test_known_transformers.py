"""Scikit-learn's transformers that count as label-free leave y alone, in the version that is installed."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.utils import get_tags

import flipcert
from flipcert.labels.known_transformers import _HOMES, is_label_free, known_name

COMPOSITES = {"Pipeline", "FeatureUnion", "ColumnTransformer"}
KNOWN = {
    name: getattr(import_module(home), name) for home, names in _HOMES.items() for name in names
    if name not in COMPOSITES
}  # fmt: skip
X = np.random.default_rng(0).random((20, 4)) + 0.1
TEXTS = ["one text", "one more", "two texts and more", "text"]
INPUTS = {
    "CountVectorizer": TEXTS,
    "HashingVectorizer": TEXTS,
    "TfidfVectorizer": TEXTS,
    "DictVectorizer": [{"a": 1.0}, {"b": 2.0}],
    "FeatureHasher": [{"a": 1.0}, {"b": 2.0}],
    "KernelCenterer": X @ X.T,
    "PatchExtractor": np.arange(200.0).reshape(2, 10, 10),
}
OPTIONS = {
    "BernoulliRBM": {"n_iter": 2},
    "DictionaryLearning": {"max_iter": 3},
    "FastICA": {"whiten_solver": "svd", "tol": 0.1, "max_iter": 1000},
    "FrozenEstimator": {"estimator": StandardScaler().fit(X)},
    "GaussianRandomProjection": {"n_components": 2},
    "IterativeImputer": {"tol": 1.0},
    "KBinsDiscretizer": {"quantile_method": "averaged_inverted_cdf"},
    "MiniBatchDictionaryLearning": {"max_iter": 3},
    "MiniBatchNMF": {"n_components": 2, "max_iter": 500, "tol": 0.1},
    "MiniBatchSparsePCA": {"max_iter": 3},
    "NMF": {"n_components": 2, "max_iter": 2000, "tol": 0.01},
    "Nystroem": {"n_components": 5},
    "PatchExtractor": {"patch_size": (2, 2)},
    "QuantileTransformer": {"n_quantiles": 5},
    "SparseCoder": {"dictionary": np.eye(4)},
    "SparsePCA": {"max_iter": 10},
    "SparseRandomProjection": {"n_components": 2},
    "TruncatedSVD": {"n_components": 2},
}


class Untouchable:
    """Labels that notice every look at them."""

    def __getattribute__(self, name):
        raise AssertionError(f"y.{name} was looked at")

    def _noticed(self, *args):
        raise AssertionError("y was looked at")

    __array__ = __bool__ = __eq__ = __getitem__ = __iter__ = __len__ = __lt__ = __repr__ = _noticed
    __hash__ = None


def made(name):
    options = OPTIONS.get(name, {})
    known = KNOWN[name]
    if name == "FrozenEstimator":
        return known(**options)
    # Some parameters are not there in all versions.
    names = known._get_param_names()
    seeds = {"random_state": 0} if "random_state" in names else {}
    return known(**{key: value for key, value in options.items() if key in names}, **seeds)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_labels_are_left_alone(name):
    transformer, inputs = made(name), INPUTS.get(name, X)
    assert known_name(transformer) == name
    transformer.fit(inputs, Untouchable())
    if name != "FrozenEstimator":
        transformer.fit_transform(inputs, Untouchable())
        assert not get_tags(transformer).target_tags.required
    # What a fit leaves behind is not taken for a method.
    assert is_label_free(make_pipeline(transformer, flipcert.KernelSVM()))


@pytest.mark.parametrize(
    "transformer", [SelectKBest(), TargetEncoder(), PLSRegression(), LinearDiscriminantAnalysis()], ids=str
)
def test_labels_that_are_used_are_noticed(transformer):
    """The test above can fail."""
    assert known_name(transformer) is None
    with pytest.raises(AssertionError, match="looked at"):
        transformer.fit_transform(X, Untouchable())


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_subclasses_are_not_known(name):
    known = KNOWN[name]
    borrowed = type(name, (known,), {"__module__": known.__module__})
    transformer = made(name)
    transformer.__class__ = borrowed
    assert known_name(transformer) is None
    assert not is_label_free(make_pipeline(transformer, flipcert.KernelSVM()))


def test_a_frozen_estimator_is_not_fitted_again():
    frozen = FrozenEstimator(StandardScaler().fit(X))
    pipeline = make_pipeline(frozen, flipcert.KernelSVM()).fit(2 * X, np.arange(20) % 2)
    assert np.array_equal(pipeline[0].mean_, X.mean(axis=0))
