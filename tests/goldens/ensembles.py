"""Partition ensembles: bases that show their weights, their costs, or only their votes; rules of partition."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.kernels import NTK, RBF
from tests.goldens.data import NAMES, blobs, centred, cloud, digits, grid, hard_cloud, jittered, shares, weights_of
from tests.goldens.others import NEAREST, lead_of_neighbors
from tests.goldens.record import facts
from tests.goldens.single import ALL, fitted, polynomial


class Quoting(ClassifierMixin, BaseEstimator):
    """Somebody else's classifier, which tells lower bounds on its flip costs and no more."""

    def __init__(self, classes=None):
        self.classes = classes

    def fit(self, X, y, trusted=None):
        self.inner_ = flipcert.KernelSVM("linear", classes=self.classes).fit(X, y, trusted=trusted)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def flip_costs(self, X, bound="lower"):
        return self.inner_.flip_costs(X, bound="lower")


def ensemble(base, n_partitions, data=centred, *, trusted=None, names=None, dtype=np.float64, rule="sorted", **noted):
    """Note all about an ensemble; votes are whole numbers."""
    X, y, X_test = data()
    y = y if names is None else names[y]
    if isinstance(rule, str) and rule == "given":
        rule = np.arange(y.size) % 7 % n_partitions
    classes, n_jobs = noted.pop("classes", None), noted.pop("n_jobs", None)
    model = flipcert.PartitionEnsemble(base, n_partitions, rule, classes=classes, random_state=5, n_jobs=n_jobs)
    model.fit(X.astype(dtype), y, trusted=None if trusted is None else shares(y)[trusted])
    return facts(model, X_test.astype(dtype), rtol=0, **noted)


def precomputed(base, rule):
    """A kernel of whole numbers, cut on both axes."""
    X, y, X_test = digits()
    model = flipcert.PartitionEnsemble(base, 4, rule, classes=range(10)).fit(polynomial(X, X), y)
    return facts(model, polynomial(X_test, X), rtol=0)


def given_weights(family, **options):
    """Weights that rounding treats badly, in an ensemble."""
    weights, labels, _ = weights_of(family, n_train=24)
    rule = np.arange(24) % 5
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("precomputed"), 5, rule, classes=range(3))
    return facts(model.fit(np.eye(24), labels, **options), weights, exact=True, rtol=0)


def tiny_classes(base, n_partitions, counts):
    """A label space that is read from few labels."""
    X, _, X_test = blobs(sum(counts))
    y = np.repeat(np.arange(len(counts)), counts)
    return facts(flipcert.PartitionEnsemble(base, n_partitions).fit(X, y), X_test, rtol=0)


def lone_classes():
    """Partitions of one class each vote for it unfitted."""
    X, y, X_test = blobs()
    model = flipcert.PartitionEnsemble(
        DecisionTreeClassifier(max_depth=2), 4, np.where(y == 1, 3, np.arange(36) // 3 % 3)
    )
    return facts(model.fit(X, y), X_test, rtol=0)


def certified(model, X, n_flips):
    """A verifier that knows the radius."""
    return model.certify(X).radius >= n_flips


SVM, RIDGE, NEIGHBORS = flipcert.KernelSVM, flipcert.KernelRidge, flipcert.WeightedNeighbors
LINEAR = SVM("linear")
three, two = partial(centred, 150, 8, 3), partial(centred, 150, 8, 2)
noisy, few = partial(jittered, 150, 8, 3), partial(blobs, 27, 5, spread=0.75)

CASES = {
    "one sign": partial(ensemble, LINEAR, 6, digits),
    "one sign, exactly": partial(ensemble, LINEAR, 5, partial(digits, 300, 6), exact=True, classes=range(10)),
    "one sign, 3 classes, all costs": partial(ensemble, LINEAR, 5, partial(digits, 150, 6, 3), classes=range(3), **ALL),
    "both signs": partial(ensemble, LINEAR, 6, centred),
    "both signs, exactly": partial(ensemble, LINEAR, 5, partial(centred, 300, 6), exact=True),
    "both signs, 3 classes, all costs": partial(ensemble, LINEAR, 5, three, classes=range(3), **ALL),
    "both signs, 2 classes": partial(ensemble, LINEAR, 5, two, exact=True, n_jobs=1),
    "left open, then exactly": partial(ensemble, LINEAR, 5, hard_cloud, rule="random", exact=True),
    "many classes": partial(ensemble, LINEAR, 4, cloud, exact=True, classes=range(6), **ALL),
    "ties": partial(ensemble, LINEAR, 4, grid, rule="given", exact=True, classes=range(3)),
    "ties, 2 classes": partial(ensemble, LINEAR, 4, partial(grid, 50, 8, 2), rule="random"),
    "one partition": partial(ensemble, LINEAR, 1, centred),
    "float32": partial(ensemble, LINEAR, 6, centred, dtype=np.float32),
    "strings": partial(ensemble, LINEAR, 6, centred, names=NAMES, classes=NAMES),
    "ntk with biases": partial(ensemble, SVM(NTK(bias_std=0.5)), 8, jittered),
    "rbf": partial(ensemble, SVM("rbf"), 8, jittered, n_jobs=2),
    "ridge": partial(ensemble, RIDGE(reg=1.0), 8, jittered),
    "ridge, exactly": partial(ensemble, RIDGE(reg=0.5), 5, noisy, exact=True, classes=range(3)),
    "ridge, rbf": partial(ensemble, RIDGE("rbf", reg=0.1), 8, jittered, rule="random"),
    "ridge, float32": partial(ensemble, RIDGE(reg=4.0), 6, jittered, dtype=np.float32),
    "neighbors": partial(ensemble, NEIGHBORS(3), 6, digits),
    "neighbors, kernel": partial(ensemble, NEIGHBORS(None, RBF(0.1)), 6, jittered),
    "pipeline": partial(ensemble, make_pipeline(StandardScaler(), RIDGE(reg=2.0)), 5, noisy),
    "precomputed, given": partial(precomputed, SVM("precomputed"), np.arange(500) % 4),
    "precomputed, ridge, random": partial(precomputed, RIDGE("precomputed", reg=1e6), "random"),
    "tiny classes": partial(tiny_classes, LINEAR, 4, [2, 4, 18]),
    "tiny classes, one sign": partial(tiny_classes, SVM("rbf"), 3, [1, 5, 12]),
    "tiny classes, ridge": partial(tiny_classes, RIDGE(), 3, [3, 3, 3, 12]),
    "tiny classes, votes only": partial(tiny_classes, GaussianNB(var_smoothing=0.5), 3, [3, 6, 18]),
    "costs, smoothed": partial(ensemble, flipcert.SmoothedLinear(), 5, noisy, classes=range(3)),
    "costs, smoothed, kl": partial(ensemble, flipcert.SmoothedLinear(0.05, method="kl"), 4, jittered),
    "costs, milp svm": partial(ensemble, flipcert.MilpSVM("rbf", C=0.5), 3, few, classes=range(3), solver=True, **ALL),
    "costs, milp svm, small C": partial(ensemble, flipcert.MilpSVM("rbf", C=0.01), 3, few, exact=True),
    "costs, fixed budget": partial(ensemble, flipcert.FixedBudget(NEAREST, lead_of_neighbors), 5, noisy),
    "costs, network": partial(ensemble, flipcert.BoundedNetwork(learning_rate=0.5), 3, few),
    "costs, network, squared": partial(
        ensemble, flipcert.BoundedNetwork(loss="squared", learning_rate=0.125), 3, few, classes=range(3)
    ),
    "costs, network, hidden": partial(
        ensemble, flipcert.BoundedNetwork((3,), learning_rate=0.5, epochs=1), 3, few, classes=range(3)
    ),
    "costs, ensembles": partial(ensemble, flipcert.PartitionEnsemble(LINEAR, 3), 3, three, classes=range(3)),
    "costs, quoted": partial(ensemble, Quoting(), 5, three, classes=range(3), **ALL),
    "costs, quoted behind a scaler": partial(ensemble, make_pipeline(StandardScaler(), Quoting()), 4, noisy),
    "costs, quoted, some trusted": partial(ensemble, Quoting(), 5, three, trusted="some"),
    "votes, tree": partial(ensemble, DecisionTreeClassifier(max_depth=4, random_state=0), 7, digits),
    "votes, neighbors": partial(ensemble, KNeighborsClassifier(1), 9, digits, names=NAMES, rule="hash"),
    "votes, logistic regression": partial(
        ensemble, make_pipeline(StandardScaler(), LogisticRegression(C=0.125)), 5, noisy, classes=range(4)
    ),
    "votes, 2 classes": partial(ensemble, GaussianNB(var_smoothing=0.5), 6, two, rule="random"),
    "votes, some trusted": partial(ensemble, GaussianNB(var_smoothing=0.5), 6, three, trusted="some"),
    "votes, class trusted": partial(ensemble, KNeighborsClassifier(1), 9, digits, trusted="class"),
    "votes, partitions of one class": lone_classes,
    "inside a fixed budget": partial(
        fitted,
        flipcert.FixedBudget(flipcert.PartitionEnsemble(LINEAR, 3), lambda model, X, r: model.certify(X).radius >= r),
        three,
    ),
}
for rule in ("sorted", "hash", "random", "given"):
    CASES[f"rule, {rule}"] = partial(ensemble, LINEAR, 5, centred, rule=rule)
    CASES[f"rule, {rule}, equal rows"] = partial(ensemble, NEIGHBORS(2), 3, grid, rule=rule)
for share in ("some", "class", "all but one", "all"):
    CASES[f"trusted, {share}"] = partial(ensemble, LINEAR, 5, centred, trusted=share, classes=range(10))
    CASES[f"trusted, {share}, ridge"] = partial(ensemble, RIDGE(), 4, noisy, trusted=share, exact=True)
for family in ("integers", "counts", "tenths", "cancelling", "neighbours", "subnormal", "huge and small", "extreme"):
    CASES[f"weights, {family}"] = partial(given_weights, family)
CASES["weights, integers, some trusted"] = partial(given_weights, "integers", trusted=np.arange(24) % 4 == 0)
