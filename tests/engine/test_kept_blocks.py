"""Kept blocks: an answer is given to its own question again, and to no other."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone

import flipcert
from flipcert.engine import blocks
from flipcert.engine.watch import Watcher, watched_by
from tests.helpers.torch_modules import dense


class Keeper(Watcher):
    """Keeps everything."""

    def __init__(self):
        self.kept, self.recalled, self.names = {}, 0, []

    def recall(self, question):
        self.names.append(question.name)
        found = self.kept.get(question.name)
        self.recalled += found is not None
        return found

    def keep(self, question, result):
        if question.name is not None:
            assert question.name not in self.kept, "computed though it was known"
            self.kept[question.name] = result


def data():
    rng = np.random.default_rng(7)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 2)) + np.array([[0.0, 0.0], [1.5, 0.5], [0.3, 1.7]])[y]
    return X[:40], y[:40], X[40:]


MODELS = {
    "svm": flipcert.KernelSVM(),
    "primal ridge": flipcert.KernelRidge(),
    "dual ridge": flipcert.KernelRidge(flipcert.kernels.RBF(gamma=0.5)),
    "tangent kernel": flipcert.KernelSVM(flipcert.kernels.Tangent(dense(2))),
    "neighbours": flipcert.WeightedNeighbors(3, weights="distance"),
    "smoothing": flipcert.SmoothedLinear(),
    "network": flipcert.BoundedNetwork(epochs=1, max_flips=2),
    "logistic": flipcert.LogisticRegression(),
    "milp": flipcert.MilpSVM("linear", C=0.1),
    "ensemble": flipcert.PartitionEnsemble(flipcert.KernelRidge(), 3),
    "grey ensemble": flipcert.PartitionEnsemble(flipcert.SmoothedLinear(), 3),
}


def same(first, second):
    return all(
        np.array_equal(np.ma.getdata(values), np.ma.getdata(getattr(second, name)))
        for name, values in vars(first).items()
        if isinstance(values, np.ndarray)
    )


@pytest.mark.parametrize("name", MODELS)
def test_the_same_question_is_answered_from_memory(name, monkeypatch):
    monkeypatch.setattr(blocks, "SMALLEST_BLOCK", 8)
    X, y, X_test = data()
    keeper = Keeper()
    with watched_by(keeper):
        first = clone(MODELS[name]).fit(X, y).certify(X_test)
        assert keeper.kept
        assert keeper.recalled == 0
        # Threads change nothing, and neither does a model that was asked other things meanwhile.
        again = clone(MODELS[name]).set_params(n_jobs=2).fit(X.copy(), y.copy())
        again.predict(X_test)
        again.worst_flips(X_test[:2])
        assert same(again.certify(X_test), first)
    assert keeper.recalled == len(keeper.kept)


def variants(name):
    """Other models and other questions, one by one."""
    X, y, _ = data()
    model = MODELS[name]
    flipped = np.where(np.arange(y.size) == 5, (y + 1) % 3, y)
    moved = X + np.where(np.arange(40)[:, None] == 39, 1e-9, 0.0)
    yield "a label", clone(model).fit(X, flipped), {}
    yield "an input", clone(model).fit(moved, y), {}
    yield "the label space", clone(model).set_params(classes=[0, 1, 2, 3]).fit(X, y), {}
    if not isinstance(model, flipcert.PartitionEnsemble):
        yield "a label space that cannot shrink", clone(model).set_params(classes=[0, 1, 2]).fit(X, y), {}
    yield "trust", clone(model).fit(X, y, trusted=np.arange(40) < 20), {}
    for parameter, value in {
        "reg": 3.0, "n_neighbors": 5, "weights": "uniform", "flip_probability": 0.1, "epochs": 2, "C": 1e-3,
        "n_partitions": 5, "estimator__reg": 5.0, "kernel": flipcert.kernels.RBF(gamma=0.7), "partition": "hash",
    }.items():  # fmt: skip
        # Any C that is small enough gives the same answers, which are kept once.
        if (parameter, type(model)) == ("C", flipcert.KernelSVM):
            continue
        if parameter in model.get_params() and value != model.get_params()[parameter]:
            yield parameter, clone(model).set_params(**{parameter: value}).fit(X, y), {}
    if isinstance(model, flipcert.PartitionEnsemble):
        yield "exact", clone(model).fit(X, y), {"exact": True}
        yield "time_limit", clone(model).fit(X, y), {"time_limit": 30.0}


@pytest.mark.parametrize("name", MODELS)
def test_another_question_is_not_answered_by_what_was_kept(name):
    X, y, X_test = data()
    keeper = Keeper()
    with watched_by(keeper):
        clone(MODELS[name]).fit(X, y).certify(X_test)
        asked = 0
        for what, model, arguments in variants(name):
            asked += 1
            model.certify(X_test, **arguments)
            assert keeper.recalled == 0, what
        model.certify(X_test[::-1])
        model.certify(X_test[1:])
        assert keeper.recalled == 0
    assert asked >= 5
    assert len(set(keeper.names)) == len(keeper.names)


def test_every_model_has_questions_of_its_own():
    X, y, X_test = data()
    keeper = Keeper()
    with watched_by(keeper):
        for model in MODELS.values():
            clone(model).fit(X, y).certify(X_test)
    assert keeper.recalled == 0


def test_inputs_that_were_changed_in_place_are_noticed():
    """This model refers to the user's own array: it is another model when that changes."""
    X, y, X_test = data()
    keeper = Keeper()
    model = flipcert.KernelSVM(flipcert.kernels.RBF(gamma=0.5)).fit(X, y)
    with watched_by(keeper):
        before = model.certify(X_test)
        X[:] = X[::-1].copy()
        after = model.certify(X_test)
    assert keeper.recalled == 0
    assert not same(after, before)
    assert same(after, flipcert.KernelSVM(flipcert.kernels.RBF(gamma=0.5)).fit(X, y).certify(X_test))


def test_kernels_of_a_user_are_known_by_what_they_do():
    def kernel(power):
        return lambda A, B: (1 + A @ B.T) ** power

    X, y, X_test = data()
    keeper = Keeper()
    with watched_by(keeper):
        for power in (1, 2, 3):
            flipcert.KernelSVM(kernel(power)).fit(X, y).certify(X_test)
        assert keeper.recalled == 0
        flipcert.KernelSVM(kernel(2)).fit(X, y).certify(X_test)
        assert keeper.recalled == 1


class WithLock:
    """A kernel that cannot be written down."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, A, B):
        return A @ B.T


def test_what_cannot_be_known_again_is_computed_each_time():
    X, y, X_test = data()
    keeper = Keeper()
    model = flipcert.KernelSVM(WithLock()).fit(X, y)
    with watched_by(keeper):
        assert same(model.certify(X_test), model.certify(X_test))
    assert set(keeper.names) == {None}
    assert not keeper.kept


def test_nobody_reads_a_model_that_is_not_kept(monkeypatch):
    def read(value):
        raise AssertionError("a digest nobody needs")

    monkeypatch.setattr("flipcert.engine.question._digest", read)
    X, y, X_test = data()
    with watched_by(Watcher()):
        assert len(flipcert.KernelSVM().fit(X, y).certify(X_test)) == 20


def names_of_all():
    X, y, X_test = data()
    for name, model in MODELS.items():
        keeper = Keeper()
        with watched_by(keeper):
            clone(model).fit(X, y).certify(X_test)
        print(name, *keeper.names)


def test_questions_have_the_same_names_in_every_process():
    """A run that was killed goes on in another process."""
    script = "from tests.engine.test_kept_blocks import names_of_all; names_of_all()"
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert len(said.pop().splitlines()) == len(MODELS)
