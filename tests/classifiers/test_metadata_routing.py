"""Who is trusted and who gave a label goes through scikit-learn's metadata routing, where that is switched on."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import flipcert

MODELS = {
    "svm": flipcert.KernelSVM("rbf"),
    "ridge": flipcert.KernelRidge("rbf"),
    "neighbours": flipcert.WeightedNeighbors(),
    "ensemble": flipcert.PartitionEnsemble(flipcert.KernelRidge("rbf"), 3),
}


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def asked(blobs):
    X, y, _, _ = blobs
    return X, y, {"trusted": np.arange(y.size) % 3 == 0, "source": np.arange(y.size) % 7}


@pytest.mark.parametrize("name", MODELS)
def test_a_pipeline_hands_on_what_its_last_step_asks_for(routed, asked, name):
    X, y, metadata = asked
    model = sklearn.clone(MODELS[name]).set_fit_request(trusted=True, source=True)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y, **metadata)
    certificates = flipcert.certify(pipeline, X[:3])
    assert certificates.n_attackable == np.count_nonzero(~metadata["trusted"])
    assert certificates.n_sources == 7
    by_hand = sklearn.clone(MODELS[name]).fit(StandardScaler().fit_transform(X), y, **metadata)
    np.testing.assert_array_equal(certificates.radius, by_hand.certify(StandardScaler().fit_transform(X)[:3]).radius)


def test_what_is_not_asked_for_is_no_silent_loss(routed, asked):
    X, y, metadata = asked
    with pytest.raises(UnsetMetadataPassedError, match="trusted"):
        make_pipeline(StandardScaler(), flipcert.KernelRidge()).fit(X, y, trusted=metadata["trusted"])


def test_searches_and_folds_cut_it_as_they_cut_the_rows(routed, asked):
    X, y, metadata = asked
    model = flipcert.KernelRidge("rbf").set_fit_request(trusted=True, source=True)
    search = GridSearchCV(model, {"reg": [0.1, 1.0]}, cv=3).fit(X, y, **metadata)
    assert search.best_estimator_.certify(X[:2]).n_attackable == np.count_nonzero(~metadata["trusted"])
    folds = cross_validate(model, X, y, params=metadata, cv=3, return_estimator=True, return_indices=True)
    for fitted, rows in zip(folds["estimator"], folds["indices"]["train"], strict=True):
        assert fitted.certify(X[:2]).n_attackable == np.count_nonzero(~metadata["trusted"][rows])
