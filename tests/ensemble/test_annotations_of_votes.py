"""Ensembles on rows with several labels: all labellings of small data are tried, in flips and in sources."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.engine.cluster.packing import pack, unpack
from flipcert.engine.mapped import is_large
from flipcert.ensemble.white_box import WhiteBox
from flipcert.kernels import RBF
from tests.helpers.threat_oracle import all_labellings, changed_sources, fewest_to_each_class, linear_votes

# The stored weights are whole numbers in this unit.
UNIT = 2**58


def weights_in_parts(of_rows, row, weight, parts):
    """Weights of the annotations as they are stored: shares of a row add up to 1 in each partition that it is in."""
    found = []
    for k in range(len(row)):
        alike = (row == row[k]) & (parts == parts[k])
        total = sum(int(own) for own in weight[alike])
        share = int(weight[k]) / total if total else 0.0
        exact = Fraction(float(of_rows[row[k]]) * share) * UNIT
        assert exact.denominator == 1
        found.append(int(exact))
    assert sum(abs(own) for own in found) < 2**63
    return np.array(found)


def random_case(rng, rule):
    n_classes = int(rng.integers(2, 4))
    n = int(rng.integers(4, 9 if n_classes == 2 else 8))
    n_rows = int(rng.integers(2, n))
    row = rng.permutation(np.append(np.arange(n_rows), rng.integers(0, n_rows, n - n_rows)))
    codes = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))
    source = rng.integers(0, rng.integers(1, n + 1), n)
    trusted = rng.random(n) < rng.choice([0.0, 0.25])
    weight = rng.integers(rng.integers(0, 2), 5, n) if rng.random() < 0.5 else np.ones(n, int)
    # Some label of every row, and of every source, has weight.
    weight[[np.flatnonzero(row == i)[0] for i in range(n_rows)]] = 1
    weight[np.unique(source, return_index=True)[1]] = 1
    n_partitions = int(rng.integers(1, min(3, np.unique(source).size if rule == "source" else n_rows) + 1))
    partition = rule
    if rule == "given":
        partition = rng.permutation(
            np.append(np.arange(n_partitions), rng.integers(0, n_partitions, n_rows - n_partitions))
        )
    return row, codes, n_classes, source, weight, trusted, n_partitions, partition


def check_votes(rng, rule, base=None):
    """Radii are never above the truth, and the truth where costs say all; returns how they are."""
    row, codes, n_classes, source, weight, trusted, n_partitions, partition = random_case(rng, rule)
    n_rows, n_sources = row.max() + 1, np.unique(source).size
    # The second feature keeps rows apart; at the test point it is 0.
    X = np.stack([rng.integers(rng.choice([-3, 0, 1]), 4, n_rows), rng.permutation(n_rows) + 1.0], axis=1)
    open_space = bool(rng.random() < 0.3)
    annotations = flipcert.Annotations(row, codes, source, weight, trusted)
    space = None if open_space else list(range(n_classes))
    model = flipcert.PartitionEnsemble(base or flipcert.KernelSVM("linear"), n_partitions, partition, space, n_jobs=1)
    model.fit(X, annotations)
    parts = model.partition_ if rule == "source" else model.partition_[row]
    point = np.array([[1.0, 0.0]])
    labellings = all_labellings(codes, n_classes, trusted)
    winners, lawful = linear_votes(
        weights_in_parts(X[:, 0], row, weight, parts), labellings, parts, n_classes, open_space
    )
    exact = []
    for threat, units, limit in (
        ("flips", (labellings != codes).sum(axis=1), codes.size),
        ("sources", changed_sources(labellings, codes, source), n_sources),
    ):
        truth = fewest_to_each_class(winners, units, lawful)
        found = model.certify(point, threat=threat, exact=True)
        assert (found.n_labels, found.limit) == (codes.size, limit)
        prediction = int(found.prediction[0])
        assert truth[prediction] == 0
        cost = min((own for c, own in truth.items() if c != prediction), default=limit + 1)
        radius, upper = int(found.radius[0]), int(found.radius_upper[0])
        assert found.blackbox_radius[0] <= radius <= cost - 1 <= upper
        assert model.certify(point, threat=threat).radius[0] <= radius
        lower, attacked = (model.flip_costs(point, bound, threat=threat)[0] for bound in ("lower", "upper"))
        for c in range(n_classes):
            assert lower[c] <= truth.get(c, limit + 1)
            if not open_space:
                assert attacked[c] >= truth.get(c, limit + 1)
        (witness,) = model.worst_flips(point, threat=threat, exact=True)
        assert (witness is None) == (upper == limit)
        if witness is not None:
            assert len(witness) == upper + 1
            assert not trusted[witness.indices].any()
            assert clone(model).fit(X, witness.apply(annotations)).predict(point) != prediction
        exact.append(radius == upper == cost - 1)
        if not open_space and (threat == "flips" or rule == "source"):
            assert exact[-1]
    return "open" if open_space else "tight" if all(exact) else "loose"


@pytest.mark.parametrize("rule", ["source", "given", "sorted"])
def test_votes_on_annotations(rule):
    rng = np.random.default_rng(len(rule))
    seen = [check_votes(rng, rule) for _ in range(40)]
    assert seen.count("tight") > 10


@pytest.mark.parametrize("rule", ["source", "sorted"])
def test_votes_of_pipelines_and_kernels_without_features(rule):
    """Weights that are formed voter by voter, and those of one product, are the same model."""
    rng = np.random.default_rng(3)
    X, test = rng.normal(size=(12, 3)), rng.normal(size=(10, 3))
    row = np.append(np.arange(12), rng.integers(0, 12, 20))
    annotations = flipcert.Annotations(
        row, rng.integers(0, 3, 32), rng.integers(0, 6, 32), rng.integers(0, 4, 32) + 0.5
    )
    linear = flipcert.KernelRidge("linear", reg=0.5)
    bases = [linear, make_pipeline("passthrough", linear), make_pipeline(StandardScaler(with_mean=False), linear)]
    models = [flipcert.PartitionEnsemble(base, 3, rule, [0, 1, 2]).fit(X, annotations) for base in bases]
    assert isinstance(models[0].electorate_, WhiteBox)
    assert models[0].electorate_.weights._product is not None
    assert models[2].electorate_.weights._product is None
    for threat in ("flips", "sources"):
        first, second = (model.certify(test, threat=threat) for model in models[:2])
        assert np.array_equal(first.prediction, second.prediction)
        assert np.array_equal(first.radius, second.radius)
    for base in (models[2].estimator, flipcert.KernelSVM(RBF(0.5)), flipcert.WeightedNeighbors(2)):
        model = flipcert.PartitionEnsemble(base, 3, rule, [0, 1, 2]).fit(X, annotations)
        for threat in ("flips", "sources"):
            certificates = model.certify(test, threat=threat)
            assert np.array_equal(certificates.prediction, model.predict(test))
            for t, witness in enumerate(model.worst_flips(test, threat=threat)):
                if witness is not None:
                    assert len(witness) == certificates.radius_upper[t] + 1
                    again = clone(model).fit(X, witness.apply(annotations))
                    assert again.predict(test[t : t + 1]) != certificates.prediction[t]


@pytest.mark.parametrize("rule", ["source", "sorted"])
def test_precomputed_kernels_are_cut_by_rows(rule):
    rng = np.random.default_rng(5)
    X, test = rng.normal(size=(9, 2)), rng.normal(size=(6, 2))
    row = np.append(np.arange(9), rng.integers(0, 9, 12))
    annotations = flipcert.Annotations(row, rng.integers(0, 2, 21), rng.integers(0, 4, 21))
    kernel = RBF(0.5)
    # Rows of a kernel matrix are sorted otherwise than those that it is made of.
    partition = rule if rule == "source" else flipcert.assign_partitions(X, 3)
    own = flipcert.PartitionEnsemble(flipcert.KernelRidge(kernel), 3, partition).fit(X, annotations)
    given = flipcert.PartitionEnsemble(flipcert.KernelRidge("precomputed"), 3, partition).fit(kernel(X), annotations)
    matrix = kernel(test, X)
    assert np.array_equal(own.predict(test), given.predict(matrix))
    for threat in ("flips", "sources"):
        assert np.array_equal(own.certify(test, threat=threat).radius, given.certify(matrix, threat=threat).radius)
    witness = next(found for found in given.worst_flips(matrix) if found is not None)
    assert given.replay(matrix[:1], witness).shape == (len(witness) + 1, 2)


@pytest.mark.parametrize(
    "base", [flipcert.KernelSVM(), flipcert.KernelRidge(RBF(0.5)), flipcert.WeightedNeighbors(3)], ids=str
)
def test_one_annotation_a_row_is_the_plain_ensemble(base, blobs):
    X, y, X_test, _ = blobs
    source, trusted = np.arange(30) % 7, np.arange(30) % 5 == 0
    annotations = flipcert.Annotations(np.arange(30), y, source, trusted=trusted)
    for rule in ("sorted", "source"):
        model = flipcert.PartitionEnsemble(base, 4, rule)
        plain = clone(model).fit(X, y, trusted=trusted, source=source)
        model.fit(X, annotations)
        assert np.array_equal(model.partition_, plain.partition_)
        for threat in ("flips", "sources"):
            one, other = model.certify(X_test, threat=threat), plain.certify(X_test, threat=threat)
            for name in ("prediction", "radius", "radius_upper", "blackbox_radius", "runner_up", "rounding_sensitive"):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert np.array_equal(model.decision_function(X_test), plain.decision_function(X_test))


def test_a_row_is_in_every_partition_that_has_a_label_of_it():
    X = np.arange(8.0).reshape(4, 2)
    annotations = flipcert.Annotations(
        [0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 1, 1, 0, 1], list("abababab"), weight=[1, 3, 1, 1, 0, 5, 2, 2]
    )
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 2, "source").fit(X, annotations)
    assert model.partition_.tolist() == [0, 1] * 4
    first, second = model.electorate_.voters
    # One of the labels of row 2 has no weight: it is there, and the row is not.
    assert first.members.tolist() == [0, 2, 4, 6]
    assert first.rows.tolist() == [0, 1, 3]
    assert second.rows.tolist() == [0, 1, 2, 3]
    for voter, rows in ((first, [0, 1, None, 3]), (second, [0, 1, 2, 3])):
        weights = voter.label_linear.formed(np.array([[1.0, 0.5]]), np.array([0]))[0]
        assert weights.tolist() == [0.0 if i is None else X[i] @ [1.0, 0.5] for i in rows]


def test_sources_without_weight_cannot_be_a_partition():
    X = np.arange(8.0).reshape(4, 2)
    annotations = flipcert.Annotations(
        [0, 1, 2, 3, 0, 1], [0, 1, 0, 1, 1, 1], list("aabbcc"), weight=[1, 1, 1, 1, 0, 0]
    )
    told = r"weight is 0 for all annotations of partition \d \(source 'c'\); leave their sources out, or merge them"
    with pytest.raises(ValueError, match=told):
        flipcert.PartitionEnsemble(flipcert.KernelSVM(), 3, "source").fit(X, annotations)


@pytest.mark.parametrize(
    "base",
    [
        DecisionTreeClassifier(random_state=0),
        flipcert.SmoothedLinear(),
        flipcert.MilpSVM(),
        make_pipeline(PCA(1), DecisionTreeClassifier(random_state=0)),
    ],
    ids=lambda base: type(base).__name__,
)
def test_other_bases_take_one_label_a_row(base):
    annotations = flipcert.Annotations([0, 1, 2, 3, 0], [0, 1, 0, 1, 1])
    with pytest.raises(
        ValueError, match=r"^y must hold one label for each row of X; got Annotations, but \w+ is fitted"
    ):
        flipcert.PartitionEnsemble(base, 2).fit(np.arange(8.0).reshape(4, 2), annotations)


def test_partition_by_source_needs_sources():
    annotations = flipcert.Annotations([0, 1, 2, 3, 0], [0, 1, 0, 1, 1])
    with pytest.raises(ValueError, match=r'partition="source" needs to know who gave the labels'):
        flipcert.PartitionEnsemble(flipcert.KernelRidge(), 2, "source").fit(np.arange(8.0).reshape(4, 2), annotations)


def test_rows_stay_where_they_have_several_labels():
    annotations = flipcert.Annotations([0, 1, 2, 3, 0], [0, 1, 0, 1, 1])
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), 2, "hash").fit(np.arange(8.0).reshape(4, 2), annotations)
    with pytest.raises(
        ValueError, match=r'^threat="deletions" is refused by PartitionEnsemble: rows have several labels'
    ):
        model.certify(np.zeros((1, 2)), threat="deletions")


def test_a_fitted_ensemble_travels(blobs):
    X, _, X_test, _ = blobs
    rng = np.random.default_rng(0)
    row = np.append(np.arange(30), rng.integers(0, 30, 60))
    annotations = flipcert.Annotations(row, rng.integers(0, 3, 90), rng.integers(0, 8, 90))
    for rule in ("source", "random"):
        model = flipcert.PartitionEnsemble(flipcert.KernelRidge(), 4, rule).fit(X, annotations)
        for threat in ("flips", "sources"):
            assert np.array_equal(
                unpack(pack(model)).certify(X_test, threat=threat).radius, model.certify(X_test, threat=threat).radius
            )


@pytest.mark.parametrize("rule", ["source", "sorted"])
def test_inputs_larger_than_memory(rule, digits, tmp_path):
    X, y, X_test, _ = digits
    rng = np.random.default_rng(0)
    row = rng.permutation(np.append(np.arange(len(X)), rng.integers(0, len(X), 1000)))
    label = np.where(rng.random(row.size) < 0.2, rng.integers(0, 10, row.size), y[row])
    annotations = flipcert.Annotations(row, label, rng.integers(0, 40, row.size))
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge(reg=10.0), 4, rule)
    held = clone(model).fit(X, annotations).certify(X_test[:20])
    with config_context(working_memory=0.25):
        assert is_large(on_disk)
        certificates = model.fit(on_disk, annotations).certify(X_test[:20])
    assert np.array_equal(certificates.prediction, held.prediction)
    assert np.array_equal(certificates.radius, held.radius)
