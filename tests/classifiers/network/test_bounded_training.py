"""Training of bounded networks is what it says, and no attack leaves the bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone

import flipcert
from flipcert.classifiers.network.boxes import Boxes
from flipcert.classifiers.network.training import Samples, train
from tests.helpers.oracles import brute_force_costs, labellings

NETWORKS = {
    "linear": {"learning_rate": 2.0},
    "three steps": {"learning_rate": 1.0, "epochs": 3, "l2": 0.1},
    "batches": {"learning_rate": 0.5, "batch_size": 3, "epochs": 1},
    "too fast": {"learning_rate": 30.0},
    "decay past zero": {"learning_rate": 2.0, "l2": 1.0},
    "intervals": {"learning_rate": 2.0, "method": "intervals"},
    "published": {"learning_rate": 2.0, "method": "published"},
    "clipped": {"learning_rate": 1.0, "clip": 0.05, "epochs": 3},
    "hidden": {"hidden": (4,), "learning_rate": 0.5},
    "deep": {"hidden": (4, 3), "learning_rate": 0.3, "clip": 0.1, "batch_size": 4, "l2": 0.01},
    "deep and squared": {"hidden": (3, 3), "learning_rate": 0.05, "loss": "squared"},
    "squared": {"learning_rate": 0.2, "loss": "squared"},
    "squared intervals": {"learning_rate": 0.05, "loss": "squared", "method": "intervals"},
}


def small_problem(seed, n=8, n_classes=3):
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 1.2], [1.0, -0.6], [-1.0, -0.6]])[:n_classes]
    y = np.arange(n) % n_classes
    return centres[y] + 0.4 * rng.normal(size=(n, 2)), y, rng.normal(size=(12, 2))


def plain_training(model, X, y, layers):
    """Parameters after every step, in NumPy, sample by sample: shares no code with the package but the schedule."""
    n_classes = layers[-1].shape[0]
    history = [layers]
    for step in model._plan.steps:
        rows = np.arange(len(X))[step.rows]
        gradients = [np.zeros_like(layer) for layer in layers]
        for i in rows:
            outputs = [X[i]]
            for layer in layers[:-1]:
                outputs.append(np.maximum(layer @ np.append(outputs[-1], 1.0), 0.0))
            scores = layers[-1] @ np.append(outputs[-1], 1.0)
            back = scores.copy()
            if model.loss == "cross-entropy":
                back = np.exp(scores - scores.max())
                back /= back.sum()
            back -= np.eye(n_classes)[y[i]]
            if model.loss == "squared":
                back *= 2
            for k in reversed(range(len(layers))):
                gradient = np.outer(back, np.append(outputs[k], 1.0))
                gradients[k] += gradient if model.clip is None else np.clip(gradient, -model.clip, model.clip)
                back = (layers[k][:, :-1].T @ back) * (outputs[k] > 0)
        layers = [
            layer - step.rate * (gradient / len(rows) + model.l2 * layer)
            for layer, gradient in zip(layers, gradients, strict=True)
        ]
        history.append(layers)
    return history


def start_of(model):
    return [layer.numpy() for layer in next(train(model._plan, samples_of(model)))]


def samples_of(model):
    X, y = model._plain
    return Samples.of(X, y, np.ones(len(y), bool))


def fitted(settings, X, y, **options):
    model = flipcert.BoundedNetwork(classes=[0, 1, 2], **(settings | options)).fit(X, y)
    model._plain = (X, y)
    return model


def within(y, flips):
    """All labellings with at most so many flips."""
    return itertools.chain.from_iterable(labellings(y, 3, count) for count in range(flips + 1))


@pytest.mark.parametrize("name", NETWORKS)
def test_training_is_what_it_says(name):
    X, y, X_test = small_problem(0)
    model = fitted(NETWORKS[name], X, y)
    layers = plain_training(model, X, y, start_of(model))[-1]
    for layer, coefs, biases in zip(layers, model.coefs_, model.intercepts_, strict=True):
        assert np.allclose(layer, np.column_stack([coefs.T, biases]), rtol=1e-11, atol=1e-11)
    hidden = X_test
    for k, (coefs, biases) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        hidden = np.maximum(hidden, 0) if k else hidden
        hidden = hidden @ coefs + biases
    assert np.allclose(model.decision_function(X_test), hidden, rtol=1e-9, atol=1e-9)
    assert np.array_equal(model.predict(X_test), hidden.argmax(axis=1))


def test_initial_parameters_are_those_of_torch():
    X, y, _ = small_problem(0)
    model = fitted({"hidden": (5, 4), "random_state": 7}, X, y)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        layers = [torch.nn.Linear(*shape) for shape in ((2, 5), (5, 4), (4, 3))]
    before = torch.random.get_rng_state()
    for own, layer in zip(start_of(model), layers, strict=True):
        assert np.array_equal(own[:, :-1], layer.weight.detach().double().numpy())
        assert np.array_equal(own[:, -1], layer.bias.detach().double().numpy())
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("name", NETWORKS)
def test_no_attack_changes_a_certified_prediction(name):
    X, y, X_test = small_problem(1)
    model = fitted(NETWORKS[name], X, y)
    costs = model.flip_costs(X_test)
    certificates = model.certify(X_test)
    start = start_of(model)
    assert (costs[np.arange(12), certificates.prediction] == 0).all()
    assert (np.sort(costs, axis=1)[:, 1] - 1 == certificates.radius).all()
    fewest = np.full(costs.shape, 99)
    for flipped in within(y, 3):
        flips = (flipped != y).sum()
        layers = plain_training(model, X, flipped, start)[-1]
        scores = X_test
        for k, layer in enumerate(layers):
            scores = np.maximum(scores, 0) if k else scores
            scores = scores @ layer[:, :-1].T + layer[:, -1]
        winners = scores.argmax(axis=1)
        fewest[np.arange(12), winners] = np.minimum(fewest[np.arange(12), winners], flips)
    reached = fewest < 99
    assert (costs[reached] <= fewest[reached]).all()
    if name == "squared":
        assert certificates.exact.all()
        assert np.array_equal(model.flip_costs(X_test, "exact")[reached], fewest[reached])
    elif name not in ("too fast", "intervals", "published", "squared intervals", "deep and squared"):
        # Not vacuous: something is proven beyond what always holds.
        assert certificates.radius.max() >= 1


@pytest.mark.parametrize("name", [n for n in NETWORKS if n != "squared"])
def test_boxes_contain_every_attack_at_every_step(name):
    X, y, _ = small_problem(2)
    model = fitted(NETWORKS[name], X, y, method="intervals")
    (boxes,) = model._bounds
    rng = np.random.default_rng(0)
    for flips in (0, 1, 2, 8):
        steps = list(boxes.every_step(flips))
        assert len(steps) == len(model._plan.steps) + 1
        attacks = [y, *([(y + 1) % 3] if flips == 8 else greedy_attacks(model, X, y, flips))]
        for _ in range(6):
            attack = y.copy()
            rows = rng.choice(8, size=flips, replace=False)
            attack[rows] = rng.integers(0, 3, flips)
            attacks.append(attack)
        for attack in attacks:
            assert (attack != y).sum() <= flips
            history = plain_training(model, X, attack, start_of(model))
            for layers, step in zip(history, steps, strict=True):
                for layer, box in zip(layers, step, strict=True):
                    if box.finite():
                        assert (box.lower.numpy() <= layer + 1e-12 * (1 + abs(layer))).all()
                        assert (box.upper.numpy() >= layer - 1e-12 * (1 + abs(layer))).all()
            # The package's own training, to the last bit.
            own = train(model._plan, Samples.of(X, attack, np.ones(8, bool)))
            for layers, step in zip(own, steps, strict=True):
                assert all(box.holds(layer) or not box.finite() for layer, box in zip(layers, step, strict=True))


def greedy_attacks(model, X, y, flips):
    """Flips that move one parameter at a time as far as they can, one after the other."""
    start = start_of(model)
    for sign in (-1, 1):
        attack = y.copy()
        for _ in range(flips):
            options = [flipped for flipped in within(attack, 1) if (flipped != y).sum() <= flips]
            moved = [sign * plain_training(model, X, flipped, start)[-1][-1][0, 0] for flipped in options]
            attack = options[int(np.argmax(moved))]
        yield attack


def test_one_flip_can_reach_the_ends_of_the_box_after_one_step():
    X, y, _ = small_problem(3)
    model = fitted({"epochs": 1, "learning_rate": 1.0, "method": "intervals"}, X, y)
    box = model._bounds[0].after(1)[0]
    reached = np.stack([plain_training(model, X, flipped, start_of(model))[-1][0] for flipped in within(y, 1)])
    assert np.allclose(reached.min(axis=0), box.lower, atol=1e-12)
    assert np.allclose(reached.max(axis=0), box.upper, atol=1e-12)


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["cross-entropy", "squared"]),
    st.sampled_from([None, 0.05, 0.3, 1.0]),
    st.sampled_from([1024, 1e-3]),
)
def test_full_batches_are_quick_but_no_wider(seed, loss, clip, memory):
    # Rounded inputs: ties, zeros, entries that equal the clip. In little memory, gains are known for a few flips only.
    rng = np.random.default_rng(seed)
    n, n_classes, n_features = int(rng.integers(2, 30)), int(rng.integers(2, 5)), int(rng.integers(1, 20))
    X = np.round(rng.normal(size=(n, n_features)) * rng.choice([0.1, 1.0, 3.0]), int(rng.integers(0, 3)))
    y, trusted = rng.integers(0, n_classes, n), rng.random(n) < rng.choice([0.0, 0.3])
    model = flipcert.BoundedNetwork(
        loss=loss, clip=clip, method="intervals", learning_rate=0.2, epochs=3, l2=rng.choice([0.0, 0.1]),
        classes=range(n_classes),
    ).fit(X, y, trusted=trusted)  # fmt: skip
    (quick,) = model._bounds
    plan, samples = quick._plan, quick._samples
    slow = Boxes(plan, samples, 1)
    slow._full_batch = None
    movable = np.flatnonzero(~trusted)
    for flips in {0, 1, 2, n // 2, movable.size}:
        with config_context(working_memory=memory):
            boxes = list(quick.every_step(flips))
            quick._full_batch.release()
        for (box,), (other,) in zip(boxes, slow.every_step(flips), strict=True):
            tolerance = 1e-9 * float(other.magnitude.max())
            assert (box.lower <= other.lower + tolerance).all()
            assert (box.upper >= other.upper - tolerance).all()
            if memory > 1 or flips <= 1:
                assert (box.lower >= other.lower - tolerance).all()
                assert (box.upper <= other.upper + tolerance).all()
        j, c = int(rng.integers(n_features)), int(rng.integers(n_classes))
        largest = movable[np.argsort(-np.abs(X[movable, j]))][:flips]
        for rows in (largest, rng.permutation(movable)[:flips]):
            for labels in (c, rng.integers(0, n_classes, rows.size)):
                attack = y.copy()
                attack[rows] = labels
                for layers, step in zip(train(plan, Samples.of(X, attack, ~trusted)), boxes, strict=True):
                    assert step[0].holds(layers[0])


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 2.0, 8.0]), st.sampled_from([0.0, 0.3]), st.integers(1, 4))
def test_bounds_for_linear_models_hold_under_random_attacks(seed, rate, l2, epochs):
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(3, 14)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, 3)) * rng.choice([0.1, 1.0, 3.0])
    y = rng.integers(0, n_classes, n)
    trusted = rng.random(n) < 0.2
    batch_size = int(rng.integers(1, n + 1)) if rng.random() < 0.5 else None
    model = flipcert.BoundedNetwork(
        epochs=epochs, learning_rate=rate, l2=l2, batch_size=batch_size, classes=range(n_classes)
    ).fit(X, y, trusted=trusted)
    points = rng.normal(size=(6, 3))
    together = model.flip_costs(points)
    movable = np.flatnonzero(~trusted)
    every = model._bounds
    singles = []
    for bound in every:
        model._bounds = [bound]
        singles.append(model.flip_costs(points))
    assert np.array_equal(together, np.max(singles, axis=0))
    for _ in range(20):
        flips = int(rng.integers(0, movable.size + 1))
        flipped = y.copy()
        flipped[rng.permutation(movable)[:flips]] = rng.integers(0, n_classes, flips)
        now = clone(model).fit(X, flipped).predict(points)
        assert (together[np.arange(6), now] <= (flipped != y).sum()).all()


@pytest.mark.parametrize("batch_size", [None, 3])
@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_linear_squared_equals_the_recursion_of_label_weights(batch_size, l2):
    X, y, X_test = small_problem(4, n=7)
    model = fitted({"loss": "squared", "learning_rate": 0.2, "epochs": 4}, X, y, batch_size=batch_size, l2=l2)
    phi, points = np.column_stack([X, np.ones(7)]), np.column_stack([X_test, np.ones(12)])
    V, W = np.zeros((3, 7)), start_of(model)[0].T
    for step in model._plan.steps:
        rows = np.arange(7)[step.rows]
        batch, hits, rate = phi[rows], np.eye(7)[rows], 2 * step.rate / len(rows)
        V = (1 - step.rate * l2) * V - rate * batch.T @ (batch @ V - hits)
        W = (1 - step.rate * l2) * W - rate * batch.T @ (batch @ W)
    weights, offset = points @ V, points @ W
    assert np.allclose(model.decision_function(X_test), weights @ np.eye(3)[y] + offset, atol=1e-9)
    trained = points @ np.vstack([model.coefs_[0], model.intercepts_[0]])
    assert np.allclose(model.decision_function(X_test), trained, atol=1e-9)
    costs = model.flip_costs(X_test[:3], "exact")
    for t in range(3):
        assert np.array_equal(costs[t], brute_force_costs(weights[t], y, 3, offset[t]))


def test_unstable_training_proves_nothing():
    # Steps so long that every change could grow by a factor of hundreds, hundreds of times: beyond all doubles.
    X, y, X_test = small_problem(6)
    model = fitted({"learning_rate": 300.0, "decay": 0.0, "epochs": 400}, X, y)
    assert len(model._bounds) == 2
    assert model.flip_costs(X_test).max() == 1
    assert not np.isfinite(model._bounds[0]._end.spread).any()


def test_what_no_labels_can_change():
    # A single tiny step: even all labels together move nothing.
    X, y, X_test = small_problem(5)
    model = fitted({"learning_rate": 1e-9, "min_learning_rate": 0.0, "epochs": 1}, X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius == 8).all()
    assert certificates.exact.all()
    assert certificates.target.mask.all()
    assert set(np.unique(model.flip_costs(X_test))) == {0, 9}
