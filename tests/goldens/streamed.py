"""Jobs larger than the memory they may take: weights in tiles, features in mapped files, small blocks, many points."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from sklearn import config_context
from sklearn.naive_bayes import GaussianNB

import flipcert
from flipcert.kernels import NTK
from tests.goldens.data import centred, jittered
from tests.goldens.record import columns_of, digest, facts, plain, witness_of

# More samples than one tile of weights has.
_MANY = 70_000


def many_samples(dtype):
    """Samples of whole numbers, and three classes that are hard to tell apart."""
    rng = np.random.RandomState(21)
    X = rng.randint(-1000, 1001, (_MANY + 3, 3)).astype(dtype)
    y = (X[:_MANY, 0] + rng.randint(-40_000, 40_001, _MANY) > 0).astype(int) + (rng.rand(_MANY) < 0.3)
    return X[:_MANY], y, X[_MANY:]


def in_tiles(model, dtype=np.float64, trusted=None, **noted):
    """A model whose weights do not fit the memory together."""
    X, y, X_test = many_samples(dtype)
    with config_context(working_memory=4):
        model.fit(X, y, trusted=None if trusted is None else np.arange(_MANY) % trusted != 0)
        return facts(model, X_test, threshold=False, **noted)


def mapped(model, data, rtol):
    """A model of features in a mapped file that is larger than the memory allowed."""
    X, y, X_test = data()
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        rows = np.load(Path(folder) / "X.npy", mmap_mode="r")
        with config_context(working_memory=0.1):
            found = facts(model.fit(rows, y), X_test, rtol=rtol)
        del model, rows
    return found


def small_blocks(model):
    """A model that is allowed few rows at a time."""
    X, y, X_test = centred(300, 40)
    with config_context(working_memory=0.02):
        return many_points(model, X, y, X_test)


def many_blocks(model):
    """A model that is asked about many points."""
    X, y, X_test = centred(300, 1100)
    return many_points(model, X, y, X_test)


def many_points(model, X, y, X_test):
    """The first points, and a digest of all; to be asked of data whose numbers are exact."""
    model.fit(X, y, trusted=y == 2)
    certificates = model.certify(X_test)
    columns = columns_of(certificates)
    columns["predict"] = plain(model.predict(X_test))
    columns["costs"] = plain(model.flip_costs(X_test))
    columns["scores"] = plain(model.decision_function(X_test))
    columns["witness"] = [witness_of(witness) for witness in model.worst_flips(X_test[:600])]
    told = {name: {"first": values[:3], "digest": digest(values)} for name, values in columns.items()}
    return {"told": told}


SVM, RIDGE = flipcert.KernelSVM, flipcert.KernelRidge
CASES = {
    "svm, linear": partial(in_tiles, SVM("linear"), rtol=0),
    "svm, linear, float32": partial(in_tiles, SVM("linear", classes=range(4), n_jobs=1), np.float32, rtol=0),
    "svm, linear, few not trusted": partial(in_tiles, SVM("linear"), trusted=100, rtol=0),
    "svm, linear, nearly all trusted": partial(in_tiles, SVM("linear"), trusted=_MANY // 3, rtol=0),
    "svm, relu": partial(in_tiles, SVM(NTK(1, "relu"))),
    "ridge": partial(in_tiles, RIDGE("linear", reg=8.0)),
    "small blocks, svm": partial(small_blocks, SVM("linear")),
    "small blocks, ensemble": partial(small_blocks, flipcert.PartitionEnsemble(SVM("linear"), 5)),
    "small blocks, neighbors": partial(small_blocks, flipcert.WeightedNeighbors(6)),
    "many points, svm": partial(many_blocks, SVM("linear")),
    "many points, ensemble": partial(many_blocks, flipcert.PartitionEnsemble(SVM("linear"), 5)),
    "many points, neighbors": partial(many_blocks, flipcert.WeightedNeighbors(6)),
    "mapped, svm": partial(mapped, SVM("linear"), centred, 0),
    "mapped, ridge": partial(mapped, RIDGE(), jittered, 1e-9),
    "mapped, ensemble": partial(mapped, flipcert.PartitionEnsemble(SVM("linear"), 7), centred, 0),
    "mapped, ensemble of ridge, hash": partial(mapped, flipcert.PartitionEnsemble(RIDGE(), 7, "hash"), jittered, 0),
    "mapped, votes": partial(mapped, flipcert.PartitionEnsemble(GaussianNB(var_smoothing=0.5), 5), centred, 0),
}
