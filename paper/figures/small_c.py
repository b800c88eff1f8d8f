"""Accuracy of SVMs against C: the price of small C. Larger C are solved by liblinear, without a certificate."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from threading import Lock
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC

from flipcert import KernelSVM, assign_partitions
from flipcert.kernels import NTK
from paper.figures.models import SCALES
from paper.figures.source import Source

# Passes over the samples at most. Far beyond the threshold more would move accuracies by some thousandths.
_PASSES = 30
# The random numbers of liblinear belong to the process: those of one fit would depend on what other threads do.
_ONE_AT_A_TIME = Lock()

Row = dict[str, Any]
# Labels, and the coefficients of each.
Machine = tuple[NDArray[Any], NDArray[Any]]


def units(study: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is done at a time: one sample of the training set and one model of it, or one fold and one ensemble."""
    for scale in study["scale"]:
        if "sizes" in study:
            for size, seed in product(study["sizes"], range(study["seeds"])):
                yield {"scale": scale, "size": size, "partitions": 1, "seed": seed}
        else:
            for partitions, fold in product(study["partitions"], range(study["folds"])):
                yield {"scale": scale, "partitions": partitions, "folds": study["folds"], "seed": fold}


def accuracies(
    unit: Mapping[str, Any], factors: Sequence[float], source: Source, n_jobs: int | None = None
) -> list[Row]:
    """Accuracy for each multiple of the threshold of C, one row each."""
    X, y, X_test, y_test = _divided(unit, source)
    if unit["partitions"] == 1:
        parts = [np.arange(y.size)]
    else:
        numbers = assign_partitions(X, unit["partitions"])
        parts = [np.flatnonzero(numbers == i) for i in range(unit["partitions"])]
    threshold = min(float(KernelSVM("linear").fit(X[rows], y[rows]).C_max_) for rows in parts)
    given = {name: unit[name] for name in ("scale", "partitions", "seed")}
    asked = [(factor * threshold, rows) for factor in factors for rows in parts]
    # Threads would wait for each other.
    machines = joblib.Parallel(n_jobs=n_jobs or -1, backend="loky")(
        joblib.delayed(_trained)(X, y, C, rows) for C, rows in asked
    )
    out = []
    for place, factor in enumerate(factors):
        votes = predictions(machines[place * len(parts) : (place + 1) * len(parts)], X_test)
        accuracy = float(np.mean(_majority(votes) == y_test))
        out.append({**given, "size": int(y.size), "times_threshold": factor, "C_max": threshold, "accuracy": accuracy})
    return out


def _divided(unit: Mapping[str, Any], source: Source) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What to fit and what to score: a sample and the test set, or all folds but one and that one.

    The linear NTK is the inner product of its features.
    """
    scaler = SCALES[unit["scale"]]().fit(source.X_train)
    X, y = NTK().features(scaler.transform(source.X_train)), source.y_train
    if "folds" in unit:
        own, rest = list(KFold(unit["folds"], shuffle=True, random_state=0).split(X))[unit["seed"]]
        return X[own], y[own], X[rest], y[rest]
    own = balanced_sample(y, unit["size"], unit["seed"])
    return X[own], y[own], NTK().features(scaler.transform(source.X_test)), source.y_test


def _trained(X: NDArray[Any], y: NDArray[Any], C: float, rows: NDArray[np.int64]) -> Machine:
    return hinge_machine(X[rows], y[rows], C)


def predictions(machines: Sequence[Machine], X: NDArray[Any]) -> NDArray[Any]:
    """What each machine says about each row of X, from one product."""
    scores = X @ np.concatenate([rows for _, rows in machines]).T
    ends = np.cumsum([labels.size for labels, _ in machines])
    own = np.split(scores, ends[:-1], axis=1)
    return np.array([labels[part.argmax(axis=1)] for (labels, _), part in zip(machines, own, strict=True)])


def _majority(votes: NDArray[Any]) -> NDArray[Any]:
    """The label with most votes in each column, ties to the first."""
    labels = np.unique(votes)
    counts = np.stack([(votes == label).sum(axis=0) for label in labels])
    return np.asarray(labels[counts.argmax(axis=0)])


def balanced_sample(y: NDArray[Any], size: int, seed: int) -> NDArray[np.int64]:
    """Rows drawn at random, as many of each class (one more of the first classes where that does not divide)."""
    random = np.random.default_rng(seed)
    classes = np.unique(y)
    share = [size // classes.size + (place < size % classes.size) for place in range(classes.size)]
    rows = [
        random.choice(np.flatnonzero(y == label), own, replace=False) for label, own in zip(classes, share, strict=True)
    ]
    return np.sort(np.concatenate(rows))


def hinge_machine(X: NDArray[Any], y: NDArray[Any], C: float) -> Machine:
    """Labels and the coefficients of each, of one-against-rest SVMs with the hinge loss and no bias, for any C."""
    classes = np.unique(y)
    if classes.size == 1:
        return classes, np.zeros((1, X.shape[1]), X.dtype)
    model = LinearSVC(loss="hinge", C=C, fit_intercept=False, max_iter=_PASSES, random_state=0)
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    # Two classes share one row.
    rows = model.coef_ if classes.size > 2 else np.concatenate([-model.coef_, model.coef_])
    return classes, rows.astype(X.dtype)
