"""Label spaces read from the labels: whoever flips away all labels of a class removes it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.engine import tiles


def fewest_flips(model, X, y, point, trusted=None):
    """Fewest flips to each label, over all labellings, through fit and predict; what fit refuses is no attack."""
    space = np.unique(y)
    fixed = np.zeros(y.size, bool) if trusted is None else trusted
    best = {}
    for labelling in itertools.product(*([own] if kept else space for own, kept in zip(y, fixed, strict=True))):
        flipped = np.array(labelling)
        flips = int((flipped != y).sum())
        try:
            (label,) = model.fit(X, flipped, trusted=trusted).predict(point)
        except ValueError:
            continue
        best[label] = min(flips, best.get(label, flips))
    return best


def fewest_flips_by_votes(weights, y, parts, trusted):
    """The same for votes of label-linear classifiers with whole numbers as weights, all labellings at once."""
    space = np.unique(y)
    options = [[own] if kept else space for own, kept in zip(y, trusted, strict=True)]
    labellings = np.array(list(itertools.product(*options)))
    there = np.stack([(labellings == c).any(axis=1) for c in space], axis=1)
    votes = np.zeros(there.shape, int)
    for part in np.unique(parts):
        own = parts == part
        scores = np.stack([((labellings[:, own] == c) * weights[own]).sum(axis=1) for c in space], axis=1)
        winner = np.where(there, scores, scores.min() - 1).argmax(axis=1)
        votes[np.arange(winner.size), winner] += 1
    winner = space[np.where(there, votes, -1).argmax(axis=1)]
    flips = (labellings != y).sum(axis=1)
    lawful = there.sum(axis=1) > 1
    return {c: int(flips[lawful & (winner == c)].min()) for c in space if (lawful & (winner == c)).any()}


def check(model, X, y, points, truth, trusted=None, *, exact=False):
    """Compare all that a model claims with the fewest flips to each label, one dictionary a point."""
    fitted = model.fit(X, y, trusted=trusted)
    certificates = fitted.certify(points)
    witnesses = fitted.worst_flips(points)
    lower, upper = (fitted.flip_costs(points, bound=bound) for bound in ("lower", "upper"))
    for t, costs in enumerate(truth):
        prediction = certificates.prediction[t]
        assert costs[prediction] == 0
        radius = min((cost for label, cost in costs.items() if label != prediction), default=y.size + 1) - 1
        assert certificates.radius[t] <= radius <= certificates.radius_upper[t]
        if certificates.blackbox_radius is not None:
            assert certificates.blackbox_radius[t] <= certificates.radius[t]
        if exact:
            assert certificates.exact[t]
        for c, label in enumerate(fitted.classes_):
            assert lower[t, c] <= costs.get(label, y.size + 1) <= upper[t, c]
        assert np.delete(lower[t], fitted.classes_ == prediction).min() - 1 == certificates.radius[t]
        if witnesses[t] is None:
            assert certificates.radius_upper[t] == y.size
            continue
        assert len(witnesses[t]) == certificates.radius_upper[t] + 1
        assert trusted is None or not trusted[witnesses[t].indices].any()
    for t, witness in enumerate(witnesses):
        if witness is not None:
            (label,) = model.fit(X, witness.apply(y), trusted=trusted).predict(points[t : t + 1])
            assert label != certificates.prediction[t]
            assert label == certificates.target[t]


@st.composite
def small_problems(draw, most):
    """Whole numbers, so that ties are real; every class has a label, some of them just one."""
    n_classes = draw(st.integers(2, 4))
    n = draw(st.integers(n_classes, most[n_classes]))
    y = np.array(
        draw(st.permutations([*range(n_classes), *(draw(st.integers(0, n_classes - 1)) for _ in range(n - n_classes))]))
    )
    entries = st.integers(draw(st.sampled_from([-3, 0])), 3)
    X = np.array(draw(st.lists(entries, min_size=n, max_size=n)), float)[:, None]
    points = np.array(draw(st.lists(st.integers(-2, 2), min_size=2, max_size=2)), float)[:, None]
    trusted = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))) if draw(st.booleans()) else None
    return X, y, points, trusted


def test_one_flip_that_removes_the_predicted_class():
    X, y = [[1.0], [2.0], [3.0]], [0, 1, 2]
    for model in (flipcert.KernelRidge("linear"), flipcert.KernelSVM("linear")):
        certificates = model.fit(X, y).certify([[0.0]])
        assert certificates.prediction.tolist() == [0]
        assert certificates.radius.tolist() == certificates.radius_upper.tolist() == [0]
        assert model.fit(X, [1, 1, 2]).predict([[0.0]]).tolist() != [0]
        # A label space that is given stays as it is.
        certificates = model.set_params(classes=[0, 1, 2]).fit(X, y).certify([[0.0]])
        assert certificates.radius.tolist() == certificates.radius_upper.tolist() == [3]


def test_two_classes_of_which_none_can_go():
    """Labels of one class only are no training set, so the heavy label is not enough: both have to be flipped."""
    model = flipcert.KernelSVM("linear").fit([[10.0], [1.0]], [0, 1])
    certificates = model.certify([[1.0]])
    assert certificates.radius.tolist() == certificates.radius_upper.tolist() == [1]
    (witness,) = model.worst_flips([[1.0]])
    assert sorted(zip(witness.indices.tolist(), witness.labels.tolist(), strict=True)) == [(0, 1), (1, 0)]
    assert model.flip_costs([[1.0]], bound="exact").tolist() == [[0, 2]]


@given(small_problems({2: 8, 3: 6, 4: 5}))
def test_one_model_is_exact_in_any_label_space(problem):
    X, y, points, trusted = problem
    held = np.zeros(y.size, bool) if trusted is None else trusted
    truth = [fewest_flips_by_votes(X @ point, y, np.zeros(y.size, int), held) for point in points]
    check(flipcert.KernelSVM("linear"), X, y, points, truth, trusted, exact=True)


@given(small_problems({2: 8, 3: 6, 4: 5}), st.integers(1, 3))
def test_ensembles_in_any_label_space(problem, n_partitions):
    X, y, points, trusted = problem
    parts = np.arange(y.size) % min(n_partitions, y.size)
    held = np.zeros(y.size, bool) if trusted is None else trusted
    truth = [fewest_flips_by_votes(X @ point, y, parts, held) for point in points]
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), parts.max() + 1, partition=parts)
    # Voters of weights that are not negative, and not all zero, cannot vote for a class that they do not hold; and as
    # long as flips cannot leave one class only, the label space then does not matter.
    steady = all((X @ point >= 0).all() and all((X[parts == i] @ point).any() for i in parts) for point in points)
    two_left = all(len(costs) > 1 and sorted(costs.values())[1] < y.size - np.bincount(y).max() for costs in truth)
    check(model, X, y, points, truth, trusted, exact=steady and two_left)


MODELS = {
    "ridge": flipcert.KernelRidge("linear"),
    "rbf": flipcert.KernelRidge("rbf", reg=0.1),
    "neighbours": flipcert.WeightedNeighbors(2),
    "spreading": flipcert.LabelSpreading(2),
    "smoothing": flipcert.SmoothedLinear(0.1),
    "logistic": flipcert.LogisticRegression(),
    "any C": flipcert.MilpSVM("linear", C=0.5, time_limit=5.0),
    "network": flipcert.BoundedNetwork(loss="squared", learning_rate=0.3),
    "network with bounds": flipcert.BoundedNetwork(learning_rate=0.3),
    "ridge ensemble": flipcert.PartitionEnsemble(flipcert.KernelRidge("linear"), 2, partition="random"),
    "smoothing ensemble": flipcert.PartitionEnsemble(flipcert.SmoothedLinear(0.1), 2, partition="random"),
    "trees": flipcert.PartitionEnsemble(DecisionTreeClassifier(), 3, partition="random"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(4))
def test_no_labelling_refutes_what_is_claimed(name, seed):
    """All labellings through fit and predict, with one label of some classes and points that are all zero."""
    rng = np.random.default_rng(seed)
    n_classes = 3 + seed % 2
    y = rng.permutation(np.append(np.arange(n_classes), rng.integers(0, n_classes, 5 - n_classes)))
    X = rng.integers(-2, 3, (5, 2)).astype(float) if seed < 2 else rng.normal(size=(5, 2))
    points = np.vstack([rng.normal(size=(1, 2)), np.zeros((1, 2))])
    trusted = rng.random(5) < 0.3 if seed % 2 else None
    truth = [fewest_flips(MODELS[name], X, y, points[t : t + 1], trusted) for t in range(2)]
    check(MODELS[name], X, y, points, truth, trusted)


def test_a_vote_of_untouched_voters_changes_with_the_label_space():
    """The one label of class 2 is all that makes voters with negative weights vote for it."""
    X, y = -np.ones((10, 1)), np.array([0, 0, 0, 0, 2, 1, 1, 1, 1, 0])
    parts = np.arange(10) % 5
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 5, partition=parts)
    certificates = model.fit(X, y).certify([[1.0]])
    assert certificates.prediction.tolist() == [2]
    (label,) = model.fit(X, np.where(y == 2, 1, y)).predict([[1.0]])
    assert label != 2
    assert certificates.radius.tolist() == certificates.radius_upper.tolist() == [0]
    fixed = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 5, partition=parts, classes=[0, 1, 2])
    assert fixed.fit(X, y).certify([[1.0]]).radius[0] > 0


def test_a_label_space_that_is_given_asks_for_nothing_more():
    """A class that no labelling reaches, in another row of the batch, once opened the costs of all rows."""
    W = np.array([[2, 2, 4, 3, 2], [4, 4, 4, -1, 1], [4, 3, -3, -3, 4.0]])
    trusted = np.array([False, False, True, True, False])
    model = flipcert.KernelSVM("precomputed", classes=[0, 1, 2]).fit(np.eye(5), [2, 2, 0, 0, 2], trusted=trusted)
    together = model.flip_costs(W, bound="exact")
    assert together.tolist() == [model.flip_costs(row[None], bound="exact")[0].tolist() for row in W]


def test_advice_names_the_label_space():
    X, y = [[3.0, 2.0], [-1.0, 2.0], [1.0, -2.0], [2.0, 2.0], [1.0, 0.0]], [0, 1, 2, 2, 2]
    model = flipcert.MilpSVM("linear", C=5.0).fit(X, y)
    with pytest.raises(flipcert.UnsolvedError, match=r"raise time_limit, or name the label space with classes="):
        model.flip_costs(X[:2], bound="exact")


def test_costs_that_stay_open_are_refused_as_exact():
    X, y = [[-3.0], [-1.0], [3.0], [0.0], [-3.0]], [0, 1, 2, 2, 2]
    model = flipcert.KernelSVM("linear").fit(X, y)
    lower, upper = (model.flip_costs([[1.0]], bound=bound) for bound in ("lower", "upper"))
    assert (lower < upper).any()
    with pytest.raises(flipcert.UnsolvedError, match=r"is not known .* name the label space with classes="):
        model.flip_costs([[1.0]], bound="exact")


def test_streamed_rows_in_the_label_space_of_their_labels(monkeypatch):
    """The rule is the same where weights come in tiles."""
    rng = np.random.default_rng(3)
    X, points = rng.normal(size=(500, 8)), rng.normal(size=(12, 8))
    y = np.append(rng.integers(0, 3, 497), [3, 4, 4])
    points[0] = 0
    model = flipcert.KernelSVM("linear").fit(X, y)
    held, flips = model.certify(points), model.worst_flips(points)
    assert held.prediction[0] == 0
    assert held.radius[0] == np.count_nonzero(y == 0) - 1
    monkeypatch.setattr(tiles, "COLUMNS", 64)
    with config_context(working_memory=4 * 32 * 64 * 8 / 2**20):
        streamed, again = model.certify(points), model.worst_flips(points)
    for name in ("prediction", "radius", "radius_upper", "target"):
        assert np.array_equal(getattr(streamed, name), getattr(held, name)), name
    assert [len(witness) for witness in again] == [len(witness) for witness in flips]
    for witness, prediction, point in zip(again, held.prediction, points, strict=True):
        assert model.fit(X, witness.apply(y)).predict(point[None]) != prediction
