"""Labels that are changed source by source: radii, costs, attacks and powers against all that sources can do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import flipcert
from flipcert.engine import tiles as grid
from flipcert.flips._jit.fewest import fewest, sum_of_largest
from flipcert.flips.rows import interpreted
from flipcert.flips.source_costs import attack_by_sources, source_cost_block
from flipcert.flips.source_rows import SourceRows
from flipcert.flips.streamed_rows import StreamedRows
from flipcert.flips.whole_rows import WholeRows
from flipcert.labels.labels import Labels
from flipcert.labels.sources import check_sources
from tests.flips.test_streamed_rows import tiles_of
from tests.helpers.oracles import exact_winner
from tests.helpers.source_oracle import fewest_sources
from tests.helpers.strategies import label_problems


@st.composite
def source_problems(draw, family=None):
    """A row of weights with labels, offsets, trusted labels and sources, few of them or one for each label."""
    weights, codes, n_classes, offset = draw(label_problems(family))
    # Each relabelling of each set of sources is tried.
    weights, codes = weights[:6], codes[:6]
    n = codes.size
    sources = np.array(draw(st.lists(st.integers(0, draw(st.integers(0, n - 1))), min_size=n, max_size=n)))
    trusted = np.zeros(n, bool)
    if draw(st.booleans()):
        trusted = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    return weights, codes, n_classes, offset, sources, trusted


def read(problem, fixed=True):
    """Labels as the package has them, and offsets."""
    _, codes, n_classes, offset, sources, trusted = problem
    labels = Labels.of(codes, n_classes, trusted, fixed, check_sources(sources, codes.size))
    return labels, np.zeros((1, n_classes)) if offset is None else offset[None]


def check_rows(rows, problem, fixed=True):
    """Compare radii and attacks of one row with the truth."""
    weights, codes, n_classes, offset, sources, trusted = problem
    first, costs = fewest_sources(weights, codes, n_classes, sources, offset=offset, trusted=trusted, fixed=fixed)
    cost = min(own for c, own in costs.items() if c != first)
    radii, (witness,) = rows.radii(), rows.witnesses()
    assert (radii.prediction[0], radii.cost[0]) == (first, cost)
    assert (witness is None) == (radii.target[0] < 0) == (cost > np.unique(sources).size)
    if witness is not None:
        ids = np.unique(sources)[witness.sources]
        assert len(witness) == np.unique(ids).size == cost
        assert not trusted[witness.indices].any()
        assert np.isin(sources[witness.indices], ids).all()
        after = witness.apply(codes)
        assert np.all(after[witness.indices] != codes[witness.indices])
        if fixed:
            assert exact_winner(weights, after, n_classes, offset) != first
        assert costs[int(radii.target[0])] == cost


@settings(max_examples=200, deadline=None)
@given(source_problems())
def test_radii_and_attacks(problem):
    labels, offset = read(problem)
    check_rows(SourceRows(WholeRows(problem[0][None], labels, offset), labels, offset), problem)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source_problems())
def test_radii_of_streamed_rows(monkeypatch, problem):
    monkeypatch.setattr(grid, "COLUMNS", 2)
    labels, offset = read(problem)
    check_rows(SourceRows(StreamedRows(tiles_of(problem[0][None], labels), labels, offset), labels, offset), problem)


@settings(max_examples=200, deadline=None)
@given(source_problems(), st.data())
def test_radii_in_a_label_space_that_is_read_from_the_labels(problem, data):
    weights, codes, _, offset, sources, trusted = problem
    there, codes = np.unique(codes, return_inverse=True)
    if there.size < 2:
        return
    problem = (weights, codes, there.size, None if offset is None else offset[there], sources, trusted)
    labels, offset = read(problem, fixed=False)
    check_rows(SourceRows(WholeRows(weights[None], labels, offset), labels, offset), problem, fixed=False)


@settings(max_examples=120, deadline=None)
@given(source_problems())
def test_costs_of_all_classes(problem):
    weights, codes, n_classes, offset, sources, trusted = problem
    labels, offsets = read(problem)
    first, costs = fewest_sources(weights, codes, n_classes, sources, offset=offset, trusted=trusted)
    truth = [costs[c] for c in range(n_classes)]
    bounds = source_cost_block(weights[None], labels, offsets)
    exact = source_cost_block(weights[None], labels, offsets, time_limit=60.0)
    assert bounds.prediction[0] == exact.prediction[0] == first
    assert np.all(bounds.lower[0] <= truth)
    assert np.all(bounds.upper[0] >= truth)
    assert exact.lower[0].tolist() == exact.upper[0].tolist() == truth
    # The cheapest class is exact either way.
    others = np.arange(n_classes) != first
    assert bounds.lower[0, others].min() == bounds.upper[0, others].min() == min(np.array(truth)[others])
    for known in (bounds, exact):
        for c in np.flatnonzero(others & (known.upper[0] <= np.unique(sources).size)).tolist():
            witness = attack_by_sources(weights, labels, offsets[0], c, int(known.upper[0, c]), 60.0)
            assert len(witness) == known.upper[0, c]
            assert not trusted[witness.indices].any()
            assert np.isin(sources[witness.indices], np.unique(sources)[witness.sources]).all()
            assert exact_winner(weights, witness.apply(codes), n_classes, offset) == c


@settings(max_examples=120, deadline=None)
@given(source_problems(), st.booleans())
def test_what_each_source_can_do_alone(problem, fixed):
    weights, codes, n_classes, offset, sources, trusted = problem
    if not fixed:
        there, codes = np.unique(codes, return_inverse=True)
        if there.size < 2:
            return
        n_classes, offset = there.size, None if offset is None else offset[there]
        problem = (weights, codes, n_classes, offset, sources, trusted)
    labels, offsets = read(problem, fixed)
    (powers,) = SourceRows(WholeRows(weights[None], labels, offsets), labels, offsets).powers()
    for j, source in enumerate(np.unique(sources)):
        alone = trusted | (sources != source)
        first, costs = fewest_sources(
            weights, codes, n_classes, np.zeros(codes.size), offset=offset, trusted=alone, fixed=fixed
        )
        assert powers[j] == any(cost == 1 for c, cost in costs.items() if c != first)


@given(st.lists(st.integers(-3, 9), min_size=1, max_size=30), st.integers(1, 60), st.booleans(), st.integers(0, 30))
@example([0, 0, 0, -2, -1, 2, -2], 1, False, 0)  # parted first around a gain that is negative
def test_the_fewest_that_pass_a_gap(gains, gap, wins_ties, count):
    order = sorted((own for own in gains if own > 0), reverse=True)
    passed = [k for k in range(1, len(order) + 1) if sum(order[:k]) > gap or (wins_ties and sum(order[:k]) == gap)]
    want = passed[0] if passed else 99
    assert fewest(np.array(gains, float), float(gap), wins_ties, 0.0, 99)[0] == want
    huge = np.array([own * 10**400 for own in gains], object)
    assert interpreted(fewest)(huge, gap * 10**400, wins_ties, 0, 99)[0] == want
    assert sum_of_largest(np.array(gains, float), count) == sum(order[:count])


def test_models(digits):
    """One source a label is one flip a source; one that holds everything does it alone; trusted ones do nothing."""
    X, y, X_test, _ = digits
    rng = np.random.default_rng(0)
    classes = np.unique(y)
    for model in (
        flipcert.KernelSVM(kernel="rbf", classes=classes),
        flipcert.KernelRidge(reg=1.0, classes=classes),
        flipcert.WeightedNeighbors(7, classes=classes),
        flipcert.LabelSpreading(7, classes=classes),
    ):
        flips = model.fit(X, y).certify(X_test)
        assert flips.n_sources is None
        single = model.fit(X, y, source=np.arange(y.size)).certify(X_test, threat="sources")
        assert np.array_equal(single.radius, flips.radius)
        assert (single.threat, single.n_sources, single.limit) == ("sources", y.size, y.size)
        everything = model.fit(X, y, source=["me"] * y.size)
        assert np.all(everything.certify(X_test, threat="sources").radius == 0)
        assert everything.certify(X_test, threat="sources").limit == 1
        assert everything.certify(X_test).threat == "flips"
        nobody = model.fit(X, y, trusted=np.ones(y.size, bool), source=rng.integers(0, 9, y.size))
        certificates = nobody.certify(X_test, threat="sources")
        assert np.all(certificates.radius == 9)
        assert certificates.exact.all()
        assert certificates.target.mask.all()
        assert nobody.worst_flips(X_test[:3], threat="sources") == [None] * 3


def test_attacks_are_replayed(digits):
    X, y, X_test, _ = digits
    names = np.array([f"annotator {k}" for k in np.random.default_rng(1).zipf(1.5, y.size) % 40])
    trusted = np.random.default_rng(2).random(y.size) < 0.1
    model = flipcert.KernelRidge(reg=1.0, classes=np.unique(y)).fit(X, y, trusted=trusted, source=names)
    flips, sources = model.certify(X_test), model.certify(X_test, threat="sources")
    assert np.all(sources.radius <= flips.radius)
    assert sources.exact.all()
    for t, witness in enumerate(model.worst_flips(X_test, threat="sources")):
        assert len(witness) == len(witness.sources) == sources.radius_upper[t] + 1
        assert np.isin(names[witness.indices], witness.sources).all()
        assert not trusted[witness.indices].any()
        after = flipcert.KernelRidge(reg=1.0, classes=np.unique(y)).fit(X, witness.apply(y), trusted=trusted)
        assert after.predict(X_test[t : t + 1]) == sources.target[t] != sources.prediction[t]
    ids, labels, points = model.source_powers(X_test)
    assert np.array_equal(ids, np.unique(names))
    assert np.array_equal(labels, [np.count_nonzero(names == name) for name in ids])
    assert (points > 0).any() == (sources.radius == 0).any()
    lower, upper = (model.flip_costs(X_test[:20], bound, threat="sources") for bound in ("lower", "upper"))
    for t in range(20):
        others = model.classes_ != sources.prediction[t]
        assert lower[t, others].min() == upper[t, others].min() == sources.radius[t] + 1


def test_models_that_know_flips_only(digits):
    """As many flips take at least the fewest sources that hold so many labels, and an attack takes those it touches."""
    X, y, X_test, _ = digits
    X, y, X_test = X[y < 3], y[y < 3], X_test[:4]
    sources = np.random.default_rng(0).permutation(y.size) % 12
    for model in (flipcert.SmoothedLinear(0.2, classes=[0, 1, 2]), flipcert.MilpSVM(C=0.001, classes=[0, 1, 2])):
        model.fit(X[:24], y[:24], source=sources[:24])
        flips, certificates = model.certify(X_test), model.certify(X_test, threat="sources")
        sizes = np.sort(np.bincount(sources[:24]))[::-1].cumsum()
        least = np.minimum(np.searchsorted(sizes, flips.radius + 1), certificates.limit)
        assert np.all(certificates.radius <= np.minimum(flips.radius, certificates.limit))
        assert np.all(certificates.radius >= np.where(flips.radius < flips.limit, np.minimum(least, 12), 12))
        assert np.all(certificates.radius <= certificates.radius_upper)
        for t, witness in enumerate(model.worst_flips(X_test, threat="sources")):
            assert (witness is None) == (certificates.radius_upper[t] == certificates.limit)
            if witness is not None:
                assert len(witness) == certificates.radius_upper[t] + 1


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ([1, 2], r"source has 2 entries for 4 labels"),
        (np.zeros((4, 2)), r"source must be one-dimensional.*\(4, 2\)"),
        ([0.0, np.nan, 1.0, 1.0], r"source must name the source of every label, and entry 1 is .*nan"),
        (["a", None, "b", "b"], r"entry 1 is None"),
        ([["a"], ["a", "b"], "b", "b"], r"source must hold ids that can be hashed"),
        (np.ma.array([1, 2, 3, 4], mask=[0, 0, 1, 0]), r"source has masked entries"),
    ],
)
def test_bad_sources_are_told_in_a_sentence(source, sentence):
    with pytest.raises(ValueError, match=sentence):
        flipcert.KernelSVM().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], source=source)


def test_ids_of_any_kind():
    X, y = np.eye(4), [0, 0, 1, 1]
    for ids in ([1, "1", 1, "1"], ["b", "a", "b", "a"], [2.5, 1.5, 2.5, 1.5], [(1, 2), 3, (1, 2), 3]):
        source = np.empty(4, object)
        source[:] = ids
        model = flipcert.KernelSVM(kernel="linear").fit(X, y, source=source)
        certificates = model.certify([[3.0, 0, 1, 0]], threat="sources")
        (witness,) = model.worst_flips([[3.0, 0, 1, 0]], threat="sources")
        assert certificates.n_sources == 2
        assert witness.sources.tolist() == [ids[0]]


@pytest.mark.parametrize(
    "ids",
    [
        [1, "1", 2, 2],
        [2**63 + 1, 2**63 + 2, 5, 5],
        [2**53, 2**53 + 1, 0.5, 0.5],
        [b"a", "a", "c", "c"],
        ["a", "a\x00", "c", "c"],
        [(1, 2), (1, 3), (2,), (2,)],
    ],
)
def test_ids_in_a_list_are_taken_as_they_are(ids):
    model = flipcert.KernelSVM(kernel="linear", classes=[0, 1]).fit(np.eye(4), [0, 0, 0, 0], source=ids)
    certificates = model.certify([[2.0, 2.0, 1.0, 1.0]], threat="sources")
    (witness,) = model.worst_flips([[2.0, 2.0, 1.0, 1.0]], threat="sources")
    assert (certificates.n_sources, certificates.radius[0]) == (3, 1)
    assert set(witness.sources.tolist()) <= set(ids)


def test_votes_know_the_attacks_that_are_found():
    """Labels that count against their class: the source that holds everything changes the vote, and is known to."""
    base = flipcert.KernelSVM("linear")
    ensemble = flipcert.PartitionEnsemble(base, 1, partition="source", classes=[0, 1, 2])
    ensemble.fit([[1.0, 0.0], [0.0, 1.0]], [2, 1], source=["a", "a"])
    assert ensemble.certify([[-1.0, 0.0]], threat="sources").radius_upper == [0]
    (witness,) = ensemble.worst_flips([[-1.0, 0.0]], threat="sources")
    assert witness.sources.tolist() == ["a"]


def test_sources_have_to_be_named():
    model = flipcert.KernelSVM().fit([[0.0], [1.0]], [0, 1])
    for question in (model.certify, model.worst_flips, model.flip_costs):
        with pytest.raises(ValueError, match=r'threat="sources" is refused by KernelSVM: nobody said.*source='):
            question([[0.0]], threat="sources")
