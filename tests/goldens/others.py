"""Classifiers that are certified otherwise: smoothing, networks, machines with any C, verifiers of other people."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import flipcert
from flipcert.kernels import NTK
from tests.goldens.data import NAMES, blobs, jittered
from tests.goldens.single import ALL, fitted


def lead_of_neighbors(model, X, n_flips):
    """A flip closes the lead among nearest neighbours by two at most."""
    votes = np.sort(model.predict_proba(X) * model.n_neighbors, axis=1).round()
    return votes[:, -1] - votes[:, -2] > 2 * n_flips


def never(model, X, n_flips):
    """Proves nothing."""
    return np.zeros(len(X), bool)


def network(data=blobs, **settings):
    """A network; torch rounds a little more freely."""
    trusted = settings.pop("trusted", None)
    return fitted(flipcert.BoundedNetwork(**settings), data, trusted=trusted, rtol=1e-7, **ALL)


SMOOTHED, MILP, FIXED = flipcert.SmoothedLinear, flipcert.MilpSVM, flipcert.FixedBudget
three, two = partial(jittered, 150, 6, 3), partial(jittered, 150, 6, 2)
little, pair = partial(blobs, 21, 5, spread=0.5), partial(blobs, 18, 5, 2, spread=0.5)
NEAREST = KNeighborsClassifier(9)

CASES = {
    "smoothed, capped by small classes": partial(fitted, SMOOTHED(), partial(jittered, 60, 6)),
    "milp svm, small C": partial(fitted, MILP("linear", C=2.0**-8, classes=range(3)), little, **ALL),
    "milp svm, 3 classes": partial(
        fitted, MILP("rbf", C=0.5, classes=range(3)), little, exact=True, solver=True, **ALL
    ),
    "milp svm, 2 classes": partial(fitted, MILP("rbf", C=2.0, n_jobs=1), pair, exact=True, solver=True, **ALL),
    "milp svm, relu, strings": partial(
        fitted, MILP(NTK(1, "relu", bias_std=1.0), C=0.5), pair, names=NAMES, solver=True, **ALL
    ),
    "milp svm, some trusted": partial(fitted, MILP("rbf", C=0.25), pair, trusted="some", solver=True, **ALL),
    "milp svm, all trusted": partial(fitted, MILP("rbf", C=0.5), little, trusted="all", solver=True, **ALL),
    "fixed budget, neighbors": partial(fitted, FIXED(NEAREST, lead_of_neighbors), three, **ALL),
    "fixed budget, capped": partial(
        fitted, FIXED(NEAREST, lead_of_neighbors, max_flips=2, classes=range(4)), three, **ALL
    ),
    "fixed budget, strings": partial(fitted, FIXED(NEAREST, lead_of_neighbors), two, names=NAMES, **ALL),
    "fixed budget, trusted": partial(fitted, FIXED(NEAREST, lead_of_neighbors), three, trusted="all but one", **ALL),
    "fixed budget, all trusted": partial(fitted, FIXED(NEAREST, lead_of_neighbors), three, trusted="all", **ALL),
    "fixed budget, nothing proven": partial(fitted, FIXED(GaussianNB(), never), blobs, **ALL),
    "network, linear": partial(network, learning_rate=0.5),
    "network, linear, full label space": partial(network, learning_rate=1.0, epochs=1, classes=range(4)),
    "network, linear, batches": partial(network, learning_rate=0.25, batch_size=9, l2=0.01),
    "network, linear, clipped": partial(network, learning_rate=0.5, clip=0.25, epochs=3),
    "network, linear, intervals": partial(network, learning_rate=0.5, method="intervals"),
    "network, linear, published": partial(network, learning_rate=0.5, method="published"),
    "network, squared": partial(network, loss="squared", learning_rate=0.125, epochs=3, classes=range(3)),
    "network, squared, capped": partial(network, loss="squared", learning_rate=0.125, max_flips=3),
    "network, squared, 2 classes": partial(
        network, partial(blobs, 30, 6, 2), loss="squared", learning_rate=0.125, batch_size=10, trusted="some"
    ),
    "network, hidden": partial(network, hidden=(4,), learning_rate=0.25, classes=range(3)),
    "network, hidden, clipped": partial(
        network, hidden=(6, 5), learning_rate=0.25, clip=0.125, batch_size=12, epochs=1, max_flips=9
    ),
    "network, hidden, squared": partial(
        network, hidden=(4,), loss="squared", learning_rate=0.5, epochs=1, classes=range(3)
    ),
    "network, trusted": partial(network, learning_rate=0.5, trusted="some"),
    "network, all trusted": partial(network, learning_rate=0.5, trusted="all"),
    "network, 2 classes": partial(network, partial(blobs, 30, 6, 2), learning_rate=0.5, random_state=3),
}
for method in ("white-box", "neyman-pearson", "kl", "published"):
    CASES |= {
        f"smoothed, {method}": partial(fitted, SMOOTHED(method=method, classes=range(10)), jittered),
        f"smoothed, {method}, 3 classes": partial(fitted, SMOOTHED(0.1, 0.5, method, classes=range(3)), three, **ALL),
        f"smoothed, {method}, 2 classes": partial(fitted, SMOOTHED(0.05, 2.0, method, n_jobs=1), two, **ALL),
        f"smoothed, {method}, some trusted": partial(
            fitted, SMOOTHED(method=method), three, trusted="some", names=NAMES
        ),
        f"smoothed, {method}, all trusted": partial(fitted, SMOOTHED(method=method), three, trusted="all"),
    }
