"""One preamble of fit: whatever estimators have in common is read once, in one place."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.labels.training_set import read_training_set

ESTIMATORS = {
    "svm": flipcert.KernelSVM(),
    "ridge": flipcert.KernelRidge(),
    "neighbours": flipcert.WeightedNeighbors(),
    "smoothing": flipcert.SmoothedLinear(),
    "network": flipcert.BoundedNetwork(epochs=1, max_flips=1),
    "logistic": flipcert.LogisticRegression(),
    "milp": flipcert.MilpSVM("linear", C=0.1),
    "fixed budget": flipcert.FixedBudget(DecisionTreeClassifier(random_state=0), lambda model, X, flips: flips < 1),
    "ensemble": flipcert.PartitionEnsemble(flipcert.KernelRidge(), 2),
}
X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array(["cat", "gnu", "lynx"])[np.arange(12) % 3]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_fit_takes_what_is_read(name):
    """A new argument is read in one place, and missing nowhere."""
    read = [own for own in inspect.signature(read_training_set).parameters.values() if own.kind is not own.KEYWORD_ONLY]
    signature = inspect.signature(type(ESTIMATORS[name]).fit).parameters.values()
    # What is only taken to be refused in a sentence is not read.
    taken = [own for own in signature if own.kind is not own.VAR_KEYWORD]
    assert [(own.name, own.default) for own in taken][1:] == [(own.name, own.default) for own in read][1:]


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((np.full((12, 3), np.nan), Y), "Input X contains NaN"),
        ((X[:5], Y), "inconsistent numbers of samples"),
        ((X, np.linspace(0, 1, 12)), r"y must hold labels of classes.*Unknown label type: continuous"),
        ((X, np.full(12, "cat")), "y has one class only"),
        ((X, Y, np.arange(12)), "trusted must be a boolean mask with one entry for each of the 12 labels"),
        ((X, Y, np.ones(5, bool)), "trusted must be a boolean mask with one entry for each of the 12 labels"),
    ],
)
def test_every_fit_refuses_the_same(name, arguments, told):
    with pytest.raises(ValueError, match=told):
        ESTIMATORS[name].fit(*arguments)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "fixed budget"])
def test_every_fit_refuses_a_number_of_threads_that_is_none(name):
    model = type(ESTIMATORS[name])(**{**ESTIMATORS[name].get_params(deep=False), "n_jobs": 0})
    with pytest.raises(ValueError, match="n_jobs must be None or a whole number other than 0; got 0"):
        model.fit(X, Y)


def test_what_is_read():
    trusted = np.arange(12) < 4
    model = flipcert.KernelSVM(classes=["owl", "cat", "gnu", "lynx"])
    read = read_training_set(model, X, Y, trusted)
    assert np.shares_memory(read.inputs, X)
    assert read.targets.tolist() == Y.tolist()
    assert read.trusted.tolist() == trusted.tolist()
    assert read.classes.tolist() == ["cat", "gnu", "lynx", "owl"]
    assert read.labels.codes.tolist() == (np.arange(12) % 3).tolist()
    assert (read.labels.n_classes, read.labels.n_movable, read.labels.space_is_fixed) == (4, 8, True)
    assert model.n_features_in_ == 3
    of_labels = read_training_set(flipcert.KernelSVM(), X, Y)
    assert of_labels.trusted is None
    assert (of_labels.labels.n_classes, of_labels.labels.n_movable, of_labels.labels.space_is_fixed) == (3, 12, False)


def test_inputs_are_of_the_type_that_is_asked_for():
    single = X.astype(np.float32)
    assert read_training_set(flipcert.KernelSVM(), single, Y).inputs.dtype == np.float32
    assert read_training_set(flipcert.KernelSVM(), X.astype(int), Y).inputs.dtype == np.float64
    assert read_training_set(flipcert.KernelSVM(), single, Y, dtype=[np.float64]).inputs.dtype == np.float64
    copied = read_training_set(flipcert.KernelSVM(), X, Y, copy=True).inputs
    assert np.array_equal(copied, X)
    assert not np.shares_memory(copied, X)


def test_few_labels_of_many_classes_are_no_regression_where_the_classes_are_named():
    """scikit-learn warns where more than half of the labels differ, as they may in a partition, or in ``classes``."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), np.arange(300) % 40
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flipcert.KernelSVM("linear", classes=range(60)).fit(X, y)
        flipcert.KernelSVM("linear", classes=range(40)).fit(X[:45], y[:45])
        flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 6).fit(X, y).certify(X[:2])
    with pytest.warns(UserWarning, match="could represent a regression"):
        flipcert.KernelSVM("linear").fit(X[:45], y[:45])
