"""Bounded networks: no attack leaves the bounds, and what is exact is exact."""

from __future__ import annotations

import itertools
import pickle
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

import flipcert
from flipcert.classifiers.network._top import flips_below, sum_of_largest
from flipcert.classifiers.network.boxes import Boxes, cannot_win
from flipcert.classifiers.network.function_space import FunctionSpace
from flipcert.classifiers.network.intervals import Box, softmax, softmax_ahead
from flipcert.classifiers.network.search import raise_floor
from flipcert.classifiers.network.stability import Stability
from flipcert.classifiers.network.training import Samples, train
from models import votes_of
from oracles import brute_force_costs

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


def labellings(y, flips, n_classes=3):
    """All labellings with at most so many labels changed."""
    for count in range(flips + 1):
        for rows in itertools.combinations(range(len(y)), count):
            choices = [[c for c in range(n_classes) if c != y[i]] for i in rows]
            for labels in itertools.product(*choices):
                flipped = y.copy()
                flipped[list(rows)] = labels
                yield flipped


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
    for flipped in labellings(y, 3):
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
            options = [flipped for flipped in labellings(attack, 1) if (flipped != y).sum() <= flips]
            moved = [sign * plain_training(model, X, flipped, start)[-1][-1][0, 0] for flipped in options]
            attack = options[int(np.argmax(moved))]
        yield attack


def test_one_flip_can_reach_the_ends_of_the_box_after_one_step():
    X, y, _ = small_problem(3)
    model = fitted({"epochs": 1, "learning_rate": 1.0, "method": "intervals"}, X, y)
    box = model._bounds[0].after(1)[0]
    reached = np.stack([plain_training(model, X, flipped, start_of(model))[-1][0] for flipped in labellings(y, 1)])
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


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 7.0]), max_size=40), st.integers(0, 45))
def test_sum_of_largest(values, count):
    # Dyadic numbers: nothing rounds.
    assert sum_of_largest(np.array(values), len(values), count) == sum(sorted(values, reverse=True)[:count])


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-4, 1.0]))
def test_flips_below_a_limit(seed, small):
    # Dyadic numbers, many alike: nothing rounds. Some are far below the largest, where the search takes all at once.
    rng = np.random.default_rng(seed)
    n_classes, n = int(rng.integers(2, 5)), int(rng.integers(1, 25))
    weights = rng.integers(-9, 10, (3, n)) / 8 * np.where(rng.random(n) < 0.5, 1.0, np.round(small * 2**20) / 2**20)
    extra, scale = rng.integers(0, 9, n) / 8 * rng.integers(0, 2), np.array([1.0, 0.5, 2.0])
    codes, movable = rng.integers(0, n_classes, n), rng.random(n) < 0.8
    winners, limits = rng.integers(0, n_classes, 3), rng.integers(-1, 20, (3, n_classes)) / 2
    counts = np.empty(limits.shape, np.int64)
    flips_below(weights, extra, scale, codes, movable, winners, limits, counts)
    votes = np.eye(n_classes)
    for t, c in itertools.product(range(3), range(n_classes)):
        if c == winners[t] or limits[t, c] <= 0:
            assert counts[t, c] == -1
            continue
        lead = votes[winners[t]] - votes[c]
        gains = [
            max(weights[t, i] * (lead[codes[i]] - lead[new]) for new in range(n_classes) if new != codes[i])
            + scale[t] * extra[i]
            for i in np.flatnonzero(movable)
        ]
        sums = np.cumsum(np.sort(np.maximum(gains, 0.0))[::-1])
        assert counts[t, c] == (sums < limits[t, c]).sum()


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


def test_each_bound_proves_something(digits):
    X, y, X_test, y_test = digits
    centre = X.mean(axis=0)
    model = flipcert.BoundedNetwork().fit(X[:300] - centre, y[:300])
    assert [type(bound) for bound in model._bounds] == [Stability, FunctionSpace, Boxes]
    accuracies = []
    for bound in model._bounds:
        single = clone(model).fit(X[:300] - centre, y[:300])
        single._bounds = [bound]
        accuracies.append(single.certify(X_test - centre).certified_accuracy(y_test, 1))
    both = model.certify(X_test - centre).certified_accuracy(y_test, 1)
    assert max(accuracies) <= both
    assert both > 0.5
    assert min(accuracies) > 0.1


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


def test_linear_squared_has_witnesses(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(loss="squared", learning_rate=0.1, epochs=3, classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    assert certificates.exact.all()
    witnesses = model.worst_flips(X_test)
    assert sum(witness is not None for witness in witnesses) > 5
    for t, witness in enumerate(witnesses):
        if witness is None:
            assert certificates.radius[t] == 30
            continue
        assert len(witness) == certificates.radius[t] + 1
        after = clone(model).fit(X, witness.apply(y)).predict(X_test[t : t + 1])[0]
        assert after == certificates.target[t] != certificates.prediction[t]


def test_without_an_attack(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(learning_rate=1.0).fit(X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius_upper == 30).all()
    assert model.worst_flips(X_test) == [None] * 15
    upper = model.flip_costs(X_test, "upper")
    assert (np.sort(upper, axis=1) == [0, 31, 31]).all()
    with pytest.raises(flipcert.UnsolvedError, match="exact cost of class"):
        model.flip_costs(X_test, "exact")


def test_one_value_for_all_classes(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(learning_rate=0.5, method="intervals").fit(X, y)
    by_class = np.sort(model.flip_costs(X_test), axis=1)
    common = np.sort(model.set_params(method="published").fit(X, y).flip_costs(X_test), axis=1)
    assert np.array_equal(common[:, 1], by_class[:, 1])
    assert np.array_equal(common[:, 2], by_class[:, 1])
    assert (by_class[:, 2] > common[:, 2]).any()


@pytest.mark.parametrize("settings", [{}, {"method": "intervals"}, {"loss": "squared", "learning_rate": 0.1}], ids=str)
def test_max_flips_caps_the_search(settings, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(**{"learning_rate": 0.5, **settings}).fit(X, y)
    free = model.flip_costs(X_test)
    capped = clone(model).set_params(max_flips=2).fit(X, y)
    assert np.array_equal(capped.flip_costs(X_test), np.minimum(free, 3))
    assert capped.certify(X_test).radius.max() == 2
    assert np.array_equal(clone(model).set_params(max_flips=30).fit(X, y).flip_costs(X_test), free)
    assert (clone(model).set_params(max_flips=0).fit(X, y).certify(X_test).radius == 0).all()


def test_unstable_training_proves_nothing():
    # Steps so long that every change could grow by a factor of hundreds, hundreds of times: beyond all doubles.
    X, y, X_test = small_problem(6)
    model = fitted({"learning_rate": 300.0, "decay": 0.0, "epochs": 400}, X, y)
    assert len(model._bounds) == 2
    assert model.flip_costs(X_test).max() == 1
    assert not np.isfinite(model._bounds[0]._end.spread).any()


def test_points_that_hang_on_rounding(blobs):
    X, y, X_test, _ = blobs
    y = y % 2
    model = flipcert.BoundedNetwork(learning_rate=0.1)
    for trusted, radius in ((np.zeros(30, bool), 0), (np.ones(30, bool), 30)):
        model.fit(X, y, trusted=trusted)
        normal, offset = model.coefs_[0] @ [1, -1], model.intercepts_[0] @ [1, -1]
        border = -offset * normal / (normal @ normal)
        certificates = model.certify(np.vstack([border, X_test]))
        assert certificates.rounding_sensitive.tolist() == [True] + [False] * 15
        assert certificates.radius[0] == radius


def test_the_training_set_is_kept(blobs):
    X, y, X_test, _ = blobs
    own = X.copy()
    model = flipcert.BoundedNetwork(learning_rate=1.0).fit(own, y)
    own[:] = 0.0
    assert np.array_equal(
        model.flip_costs(X_test), flipcert.BoundedNetwork(learning_rate=1.0).fit(X, y).flip_costs(X_test)
    )


def test_what_no_labels_can_change():
    # A single tiny step: even all labels together move nothing.
    X, y, X_test = small_problem(5)
    model = fitted({"learning_rate": 1e-9, "min_learning_rate": 0.0, "epochs": 1}, X, y)
    certificates = model.certify(X_test)
    assert (certificates.radius == 8).all()
    assert certificates.exact.all()
    assert certificates.target.mask.all()
    assert set(np.unique(model.flip_costs(X_test))) == {0, 9}


def test_trusted_labels(blobs):
    X, y, X_test, _ = blobs
    for options in ({}, {"method": "intervals"}, {"hidden": (4,)}, {"loss": "squared", "learning_rate": 0.1}):
        model = flipcert.BoundedNetwork(**{"learning_rate": 0.5, **options})
        free = clone(model).fit(X, y).certify(X_test)
        some = clone(model).fit(X, y, trusted=np.arange(30) % 3 != 0).certify(X_test)
        assert (some.radius >= free.radius).all()
        assert (some.radius > free.radius).any()
        everything = clone(model).fit(X, y, trusted=np.ones(30, bool)).certify(X_test)
        assert (everything.radius == 30).all()
        assert everything.exact.all()


@pytest.mark.parametrize(
    "base",
    [
        flipcert.BoundedNetwork(learning_rate=1.0),
        flipcert.BoundedNetwork(learning_rate=1.0, method="published", random_state=None),
        flipcert.BoundedNetwork(hidden=(4,), learning_rate=0.3),
        flipcert.BoundedNetwork(loss="squared", learning_rate=0.1),
        make_pipeline(PCA(1), flipcert.BoundedNetwork(learning_rate=1.0)),
    ],
    ids=str,
)
def test_white_box_ensembles_are_never_below_black_box(base, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base, n_partitions=5).fit(X, y)
    certificates = model.certify(X_test)
    votes = votes_of(model, X_test)
    assert np.array_equal(certificates.blackbox_radius, flipcert.blackbox_radius(votes, 3))
    assert (certificates.radius >= certificates.blackbox_radius).all()
    costs = np.stack([flipcert.certify(e, X_test).radius + 1 for e in model.estimators_], axis=1)
    assert (costs >= 1).all()
    for witness, upper in zip(model.worst_flips(X_test), certificates.radius_upper, strict=True):
        assert (witness is None) == (upper == 30)


def test_a_model_survives_pickling(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.BoundedNetwork(learning_rate=1.0).fit(X, y)
    before = model.flip_costs(X_test)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).flip_costs(X_test), before)


def test_results_do_not_depend_on_threads_or_memory(digits):
    X, y, X_test, _ = digits
    model = flipcert.BoundedNetwork(hidden=(6,), learning_rate=0.2, max_flips=3, clip=0.1)
    expected = clone(model).fit(X[:150], y[:150]).flip_costs(X_test)
    assert expected.max() > 1
    before = torch.get_num_threads()
    for n_jobs, memory in ((1, 1024), (2, 1)):
        with config_context(working_memory=memory):
            costs = clone(model).set_params(n_jobs=n_jobs).fit(X[:150], y[:150]).flip_costs(X_test)
        assert np.array_equal(costs, expected)
    assert torch.get_num_threads() == before


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.sampled_from([1e-12, 0.1, 3.0, 800.0]))
def test_shares_stay_inside_their_bounds(seed, width):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 6))
    lower = rng.normal(size=(5, n_classes)) * rng.choice([1.0, 30.0])
    upper = lower + width * rng.random((5, n_classes))
    box = Box(torch.from_numpy(lower), torch.from_numpy(upper))
    shares = softmax(box)
    ahead = [softmax_ahead(box, a) for a in range(n_classes)]
    corners = [np.where(pick, upper, lower) for pick in itertools.product([False, True], repeat=n_classes)]
    inside = [lower + (upper - lower) * rng.random(lower.shape) for _ in range(5)]
    found = torch.softmax(torch.from_numpy(np.stack(corners + inside)), dim=2).numpy()
    gaps = found[..., :, None] - found[..., None, :]
    assert (shares.lower.numpy() <= found).all()
    assert (shares.upper.numpy() >= found).all()
    for a, box in enumerate(ahead):
        others = np.arange(n_classes) != a
        assert (box.lower.numpy()[:, others] <= gaps[:, :, a, others]).all()
        assert (box.upper.numpy()[:, others] >= gaps[:, :, a, others]).all()
    if width == 800.0:
        return  # too far apart for all digits
    # Sharp: some corner reaches every end.
    assert np.allclose(found.min(axis=0), shares.lower, atol=1e-9)
    assert np.allclose(found.max(axis=0), shares.upper, atol=1e-9)
    assert np.allclose(gaps.max(axis=0)[:, 0, 1:], ahead[0].upper[:, 1:], atol=1e-9)
    assert np.allclose(gaps.min(axis=0)[:, 0, 1:], ahead[0].lower[:, 1:], atol=1e-9)


@given(
    st.lists(st.tuples(st.integers(-1, 40), st.integers(-1, 40), st.integers(0, 5)), min_size=1, max_size=30),
    st.integers(0, 50),
)
def test_the_search_finds_the_last_proof(entries, limit):
    floor, truth, optimism = (np.array(column) for column in zip(*entries, strict=True))
    trials = []

    def hope(flips, which):
        trials.append(flips)
        return np.where(flips <= truth, truth + optimism, flips - 1)

    found = floor.copy()
    raise_floor(found, hope, limit)
    assert np.array_equal(found, np.maximum(floor, np.minimum(truth, limit)))
    assert all(0 <= flips <= limit for flips in trials)
    assert len(set(trials)) == len(trials)


def test_few_trials_for_equal_radii():
    trials = []
    floor = np.full((1000, 10), -1)
    raise_floor(floor, lambda flips, which: trials.append(flips) or np.where(which & (flips <= 700), 1000, -1), 1000)
    assert (floor == 700).all()
    assert len(trials) <= 22


def test_margins_are_sharper_than_scores():
    # One hidden unit of unknown size that all classes see alike: scores overlap, differences do not.
    last = torch.tensor([[1.0, 0.5], [1.0, 0.0], [1.0, -0.5]], dtype=torch.float64)
    layers = [
        Box(torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.tensor([[3.0, 0.0]], dtype=torch.float64)),
        Box(last - 1e-3, last + 1e-3),
    ]
    point = torch.tensor([[5.0]], dtype=torch.float64)
    assert cannot_win(layers, point, torch.tensor([0])).tolist() == [[False, True, True]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": (0,)}, "hidden must be at least 1; got 0"),
        ({"hidden": 5}, r"hidden must be one-dimensional; got shape \(\)"),
        ({"loss": "hinge"}, "loss must be one of 'cross-entropy', 'squared'; got 'hinge'"),
        ({"epochs": 0}, "epochs must be at least 1; got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"batch_size": 31}, "batch_size must be at most 30, the number of samples, .*; got 31"),
        ({"learning_rate": 0}, "learning_rate must be a positive number; got 0"),
        ({"decay": -1.0}, "decay must be a number that is not negative; got -1.0"),
        ({"min_learning_rate": "low"}, "min_learning_rate must be .*; got 'low'"),
        ({"l2": -0.1}, "l2 must be .*; got -0.1"),
        ({"clip": 0}, "clip, if not None, must be a positive number; got 0"),
        ({"method": "best"}, "method must be one of 'auto', 'intervals', 'published'; got 'best'"),
        ({"max_flips": 31}, "max_flips must be at most 30, the number of labels; got 31"),
        ({"max_flips": -1}, "max_flips must be at least 0; got -1"),
        ({"random_state": None}, "random_state must be a whole number, .*; got None"),
        ({"random_state": -1}, "random_state must be at least 0; got -1"),
        ({"loss": "squared", "learning_rate": 1e200}, r"training diverged: .* after step \d of 2; lower learning_rate"),
        ({"hidden": (3,), "learning_rate": 1e300, "epochs": 9}, "training diverged"),
    ],
    ids=str,
)
def test_bad_settings(settings, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.BoundedNetwork(**settings).fit(X, y)


def test_features_so_large_that_training_diverges(blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="training diverged"):
        flipcert.BoundedNetwork().fit(X * 1e200, y)


def test_without_torch(blobs, monkeypatch):
    X, y, _, _ = blobs
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'BoundedNetwork needs torch. Install with: pip install "flipcert\[torch\]"'):
        flipcert.BoundedNetwork().fit(X, y)
