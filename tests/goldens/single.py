"""One label-linear model: every kernel, every kind of weights, float32, labels of all kinds, trusted labels."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import RationalQuadratic

import flipcert
from flipcert.kernels import NTK, RBF, ConvNTK, Linear
from tests.goldens.data import FAMILIES, NAMES, blobs, centred, cloud, digits, grid, jittered, shares, weights_of
from tests.goldens.record import facts

IMAGES = (1, 8, 8)


def polynomial(X, Z):
    """A kernel of whole numbers."""
    return (X @ Z.T) ** 2


def fitted(model, data, *, names=None, trusted=None, dtype=np.float64, **noted):
    """Note all about a model on some data."""
    X, y, X_test = data()
    y = y if names is None else names[y]
    mask = None if trusted is None else shares(y)[trusted]
    model.fit(X.astype(dtype), y, trusted=mask)
    return facts(model, X_test.astype(dtype), **noted)


def given_weights(family, dtype=np.float64, trusted=None, **parameters):
    """A kernel that is given as numbers, those that rounding treats badly: scores are sums of them."""
    weights, labels, _ = weights_of(family)
    n = labels.size
    mask = None if trusted is None else shares(labels)[trusted]
    model = flipcert.KernelSVM("precomputed", **parameters).fit(np.eye(n, dtype=dtype), labels, trusted=mask)
    return facts(model, weights.astype(dtype), bounds=("lower", "upper", "exact"), rtol=0)


def precomputed(model, data):
    """A kernel matrix of whole numbers."""
    X, y, X_test = data()
    return facts(model.fit(polynomial(X, X), y), polynomial(X_test, X))


def odd_labels(y, **parameters):
    """Labels of some other kind than small whole numbers."""
    X, codes, X_test = blobs()
    model = flipcert.KernelSVM("linear", **parameters).fit(X, np.asarray(y)[codes])
    return facts(model, X_test, bounds=("lower", "upper", "exact"))


def tiny_classes(model, n_classes, counts):
    """A label space that is read from few labels, so that an attacker can empty a class."""
    X, _, X_test = blobs(sum(counts))
    return facts(model.fit(X, np.repeat(np.arange(n_classes), counts)), X_test)


SVM, RIDGE, NEIGHBORS = flipcert.KernelSVM, flipcert.KernelRidge, flipcert.WeightedNeighbors
SPREADING = flipcert.LabelSpreading
WHOLE = {"rtol": 0}
ALL = {"bounds": ("lower", "upper", "exact")}
three, two = partial(centred, 150, 6, 3), partial(centred, 150, 6, 2)
few_digits = partial(jittered, 60, 6)

CASES = {
    "svm, linear, whole numbers": partial(fitted, SVM("linear"), digits, **WHOLE, **ALL),
    "svm, linear, both signs": partial(fitted, SVM(Linear(), n_jobs=1), centred, **WHOLE),
    "svm, linear, 3 classes": partial(fitted, SVM("linear", classes=[2, 1, 0]), three, **WHOLE, **ALL),
    "svm, linear, 2 classes": partial(fitted, SVM("linear", classes=[0, 1]), two, **WHOLE, **ALL),
    "svm, linear, given C": partial(fitted, SVM("linear", C=2.0**-21), digits, **WHOLE),
    "svm, ntk": partial(fitted, SVM(), jittered),
    "svm, ntk with biases": partial(fitted, SVM(NTK(bias_std=0.5, depth=2), n_jobs=2), jittered),
    "svm, relu": partial(fitted, SVM(NTK(2, "relu", bias_std=0.25)), jittered),
    "svm, relu, given C": partial(fitted, SVM(NTK(1, "relu"), C=1e-3, classes=range(10)), jittered),
    "svm, leaky relu": partial(fitted, SVM(NTK(1, "leaky_relu", weight_std=[1.0, 1.5])), jittered),
    "svm, erf, nngp": partial(fitted, SVM(NTK(1, "erf", kind="nngp")), jittered),
    "svm, gelu": partial(fitted, SVM(NTK(1, "gelu")), jittered),
    "svm, rbf": partial(fitted, SVM("rbf", classes=range(10)), jittered),
    "svm, rbf, float32": partial(fitted, SVM(RBF(0.05)), jittered, dtype=np.float32, rtol=1e-4),
    "svm, linear, float32": partial(fitted, SVM("linear"), centred, dtype=np.float32, **WHOLE),
    "svm, relu, float32": partial(fitted, SVM(NTK(1, "relu")), jittered, dtype=np.float32, rtol=1e-4),
    "svm, convolutions": partial(fitted, SVM(ConvNTK(IMAGES)), few_digits),
    "svm, convolutions, pooled": partial(fitted, SVM(ConvNTK(IMAGES, depth=2, pooling="average")), few_digits),
    "svm, convolutions, linear": partial(fitted, SVM(ConvNTK(IMAGES, activation="linear", bias_std=0.5)), few_digits),
    "svm, precomputed": partial(precomputed, SVM("precomputed"), digits),
    "svm, callable": partial(fitted, SVM(polynomial), digits, **WHOLE),
    "svm, kernel of scikit-learn": partial(fitted, SVM(RationalQuadratic(2.0)), few_digits),
    "svm, many classes, both signs": partial(fitted, SVM("linear", classes=range(6)), cloud, **WHOLE, **ALL),
    "svm, ties": partial(fitted, SVM("linear", classes=range(3)), grid, **WHOLE, **ALL),
    "ridge, more samples than features": partial(fitted, RIDGE("linear", reg=1.0), jittered),
    "ridge, more features than samples": partial(fitted, RIDGE("linear", reg=10.0), few_digits),
    "ridge, 3 classes": partial(fitted, RIDGE(reg=0.125, classes=range(3)), partial(jittered, 150, 6, 3), **ALL),
    "ridge, 2 classes": partial(fitted, RIDGE(reg=0.125, classes=range(2)), partial(jittered, 150, 6, 2), **ALL),
    "ridge, ntk with biases": partial(fitted, RIDGE(NTK(bias_std=1.0), reg=0.1, n_jobs=1), jittered),
    "ridge, rbf": partial(fitted, RIDGE("rbf", reg=0.1), jittered),
    "ridge, relu": partial(fitted, RIDGE(NTK(3, "relu"), reg=0.01, classes=range(12)), jittered),
    "ridge, convolutions": partial(fitted, RIDGE(ConvNTK(IMAGES, pooling="average"), reg=0.01), few_digits),
    "ridge, precomputed": partial(precomputed, RIDGE("precomputed", reg=1e4), jittered),
    "ridge, callable": partial(fitted, RIDGE(polynomial, reg=1.0), jittered),
    "ridge, float32": partial(fitted, RIDGE(reg=1.0), jittered, dtype=np.float32, rtol=1e-4),
    "ridge, rbf, float32": partial(fitted, RIDGE("rbf", reg=1.0), jittered, dtype=np.float32, rtol=1e-4),
    "neighbors, 5": partial(fitted, NEIGHBORS(), digits, **WHOLE),
    "neighbors, ties": partial(fitted, NEIGHBORS(4, classes=range(3)), grid, **WHOLE, **ALL),
    "neighbors, ties, float32": partial(fitted, NEIGHBORS(7), grid, dtype=np.float32, rtol=1e-5),
    "neighbors, distance": partial(fitted, NEIGHBORS(15, "distance"), jittered),
    "neighbors, distance, zero distance": partial(fitted, NEIGHBORS(9, "distance"), grid),
    "neighbors, kernel": partial(fitted, NEIGHBORS(15, RBF(0.1)), jittered),
    "neighbors, callable": partial(fitted, NEIGHBORS(15, polynomial), digits, **WHOLE),
    "neighbors, all": partial(fitted, NEIGHBORS(None), blobs, **WHOLE),
    "neighbors, all, distance": partial(fitted, NEIGHBORS(None, "distance", classes=range(3)), blobs, **ALL),
    "neighbors, all, kernel": partial(fitted, NEIGHBORS(None, RBF(1.0)), blobs, **ALL),
    "spreading": partial(fitted, SPREADING(), jittered),
    "spreading, far": partial(fitted, SPREADING(4, 0.99, classes=range(12)), jittered),
    "spreading, float32": partial(fitted, SPREADING(alpha=0.5), jittered, dtype=np.float32, rtol=1e-5),
    "spreading, ties": partial(fitted, SPREADING(4, classes=range(3)), grid, **ALL),
    "strings": partial(fitted, SVM("linear", classes=NAMES), centred, names=NAMES, **WHOLE),
    "strings, ridge": partial(fitted, RIDGE(reg=0.5), partial(jittered, 120, 6, 3), names=NAMES, **ALL),
    "labels, booleans": partial(odd_labels, [False, True, True]),
    "labels, floats": partial(odd_labels, [2.0, -1.0, 7.0]),
    "labels, gaps": partial(odd_labels, [40, -7, 11], classes=[-7, 0, 11, 40, 1000]),
    "labels, objects": partial(odd_labels, np.array(["b", "a", "c"], dtype=object)),
    "labels, one class of three": partial(odd_labels, [1, 1, 1], classes=[0, 1, 2]),
    "tiny classes, svm": partial(tiny_classes, SVM("linear"), 4, [1, 2, 3, 14]),
    "tiny classes, rbf": partial(tiny_classes, SVM("rbf"), 3, [9, 2, 1]),
    "tiny classes, 2": partial(tiny_classes, RIDGE(reg=1.0), 2, [2, 10]),
    "tiny classes, ridge": partial(tiny_classes, RIDGE("rbf", reg=0.5), 5, [3, 3, 3, 3, 3]),
    "tiny classes, neighbors": partial(tiny_classes, NEIGHBORS(None, "distance"), 4, [2, 2, 2, 6]),
}
for share in ("some", "class", "all but one", "all"):
    CASES |= {
        f"trusted, {share}, svm": partial(fitted, SVM("linear"), centred, trusted=share, **WHOLE),
        f"trusted, {share}, ridge": partial(
            fitted, RIDGE(classes=range(4)), partial(jittered, 120, 6, 3), trusted=share, **ALL
        ),
        f"trusted, {share}, neighbors": partial(fitted, NEIGHBORS(6), grid, trusted=share, **WHOLE),
        f"trusted, {share}, 2 classes": partial(fitted, SVM("rbf"), partial(blobs, 30, 6, 2), trusted=share, **ALL),
    }
for family in FAMILIES:
    CASES[f"weights, {family}"] = partial(given_weights, family, classes=range(3))
    CASES[f"weights, {family}, some trusted"] = partial(given_weights, family, trusted="some")
CASES["weights, tenths, float32"] = partial(given_weights, "tenths", np.float32)
