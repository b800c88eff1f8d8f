"""One attack on all points of a label-linear model, against all attacks there are."""

import numpy as np
import pytest

import flipcert
from tests.helpers.collective_oracle import most_changed

MODELS = {
    "ridge": lambda classes: flipcert.KernelRidge("linear", reg=1.0, classes=classes),
    "little ridge": lambda classes: flipcert.KernelRidge("linear", reg=0.01, classes=classes),
    "svm": lambda classes: flipcert.KernelSVM("rbf", classes=classes),
    "linear svm": lambda classes: flipcert.KernelSVM("linear", classes=classes),
    "neighbours": lambda classes: flipcert.WeightedNeighbors(n_neighbors=3, classes=classes),
    "spreading": lambda classes: flipcert.LabelSpreading(n_neighbors=3, classes=classes),
    "smoothed": lambda classes: flipcert.SmoothedLinear(classes=classes),
    "small C": lambda classes: flipcert.MilpSVM("linear", C=1e-4, classes=classes),
}


def drawn(seed):
    """A tiny problem: whole numbers, where ties are, or any."""
    rng = np.random.default_rng(seed)
    n, n_points = int(rng.integers(4, 6)), int(rng.integers(2, 6))
    X, points = rng.integers(-3, 4, (n, 2)).astype(float), rng.integers(-3, 4, (n_points, 2)).astype(float)
    if seed % 2:
        X, points = rng.normal(size=(n, 2)), rng.normal(size=(n_points, 2))
    y = np.concatenate([[0, 1, 2], rng.integers(0, 3, n - 3)])
    trusted = rng.random(n) < 0.3 if seed % 3 == 0 else None
    truth = rng.integers(0, 3, n_points) if seed % 4 < 2 else None
    return X, y, points, trusted, truth


@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
@pytest.mark.parametrize("name", MODELS)
def test_no_attack_changes_more_than_is_proven_and_the_one_found_does_what_is_said(name, classes):
    for seed in range(2):
        X, y, points, trusted, truth = drawn(7 * seed + len(name) + (classes is None))
        model = MODELS[name](classes)
        try:
            model.fit(X, y, trusted=trusted)
        except ValueError:
            continue  # inputs that are all zero, or so
        before = model.predict(points)
        counted = np.ones(before.size, bool) if truth is None else before == truth
        certificate = model.certify_collectively(points, [1, 2], truth, time_limit=5.0)
        for place, budget in enumerate((1, 2)):
            most = most_changed(model, X, y, points, counted, budget, trusted)
            least, proven, alone = (
                own[place]
                for own in (
                    certificate.changed_at_least,
                    certificate.changed_at_most,
                    certificate.changed_one_by_one,
                )
            )
            assert least <= most <= proven <= alone
            attack = certificate.attacks[place]
            if attack is None:
                assert least == 0
                continue
            assert len(attack) <= budget
            assert trusted is None or not trusted[attack.indices].any()
            after = MODELS[name](classes).fit(X, attack.apply(y)).predict(points)
            assert np.count_nonzero(counted & (after != before)) == least
            np.testing.assert_array_equal(after, certificate.prediction_after[place])


@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
def test_a_budget_beyond_all_labels_changes_no_trusted_ones(classes):
    rng = np.random.default_rng(0)
    for _ in range(10):
        X, points = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
        y, trusted = np.concatenate([[0, 1, 2], rng.integers(0, 3, 2)]), rng.random(5) < 0.5
        model = flipcert.KernelRidge("linear", reg=10.0, classes=classes).fit(X, y, trusted=trusted)
        certificate = model.certify_collectively(points, [4, 5, 6, 9], time_limit=5.0)
        most = most_changed(model, X, y, points, np.ones(4, bool), 5, trusted)
        assert np.all(certificate.changed_at_least[1:] <= most)
        assert np.all(most <= certificate.changed_at_most[1:])
        for attack in certificate.attacks:
            assert attack is None or not trusted[attack.indices].any()


class Weighing(flipcert.LabelLinearClassifier):
    """One row of weights for every test point; the input of a training row is its place there."""

    def __init__(self, row=(), classes=None, n_jobs=None):
        super().__init__(classes=classes, n_jobs=n_jobs)
        self.row = row

    def fit_inputs(self, X):
        self.places_ = X[:, 0].astype(int)

    def weights(self, X):
        return np.tile(np.asarray(self.row, float)[self.places_], (len(X), 1))


# Scores that all but tie, that overflow, and the smallest that there are.
STRANGE = [(1.0, 1.0, 1e-12, 0.0), (1.0, 1.0, 2.0**-52, 0.0), (1e308, 1e308, 1e308, 1.0), (1e-323, 1e-323, 1e-323, 0.0)]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("row", STRANGE)
@pytest.mark.filterwarnings("error")
def test_who_is_known_to_change_one_point_is_not_said_to_change_none(row, parts):
    X, y = np.arange(4.0)[:, None], [0, 0, 1, 1]
    model = Weighing(row, classes=[0, 1])
    if parts == 2:
        model = flipcert.PartitionEnsemble(model, 2, partition=[0, 1, 1, 0])
    model.fit(X, y)
    points = np.array([[9.0]])
    known = model.certify(points)
    certificate = model.certify_collectively(points, [1, 2, 3], time_limit=5.0)
    for k, budget in enumerate((1, 2, 3)):
        most = most_changed(model, X, y, points, np.ones(1, bool), budget)
        assert certificate.changed_at_least[k] <= most <= certificate.changed_at_most[k]
        assert certificate.changed_at_least[k] >= (known.radius_upper[0] < budget)


def test_budgets_beyond_all_numbers_take_no_time():
    X, points, y = np.eye(8), np.eye(8)[:3], np.arange(8) % 3
    model = flipcert.KernelSVM("linear", classes=[0, 1, 2]).fit(X, y)
    many, all_of_them = (model.certify_collectively(points, budget, time_limit=2.0) for budget in (10**9, 8))
    assert many.changed_at_least[0] == all_of_them.changed_at_least[0] == 3


def test_an_attack_that_was_made_for_one_point_says_so():
    rng = np.random.default_rng(1)
    X, points, y = rng.normal(size=(8, 2)), rng.normal(size=(5, 2)), np.arange(8) % 3
    model = flipcert.KernelSVM("rbf", classes=[0, 1, 2]).fit(X, y)
    alone = model.certify_collectively(points, 1, threat="edits")
    assert not alone.replayed
    assert alone.changed_at_least[0] == 1
    attack = alone.attacks[0]
    after = flipcert.KernelSVM("rbf", classes=[0, 1, 2]).fit(attack.apply_inputs(X), attack.apply(y)).predict(points)
    changed = alone.changed(0)
    assert np.all(after[changed] == alone.prediction_after[0][changed])
    assert model.certify_collectively(points, 1).replayed


def test_a_network_under_squared_loss_is_label_linear_with_offsets():
    rng = np.random.default_rng(3)
    X, points, y = rng.normal(size=(6, 2)), rng.normal(size=(5, 2)), np.array([0, 1, 2, 0, 1, 2])
    make = lambda: flipcert.BoundedNetwork(hidden=(), loss="squared", epochs=3, batch_size=3, classes=[0, 1, 2])  # noqa: E731
    certificate = make().fit(X, y).certify_collectively(points, 2)
    most = most_changed(make(), X, y, points, np.ones(5, bool), 2)
    assert certificate.why_one_by_one is None
    assert certificate.changed_at_least[0] <= most <= certificate.changed_at_most[0]


def test_one_budget_proves_far_more_than_point_by_point(digits_split):
    X, y, points, truth = digits_split
    model = flipcert.KernelRidge("linear", reg=10.0).fit(X, y)
    certificate = model.certify_collectively(points, [2, 8], truth, time_limit=60.0)
    lost = certificate.changed_one_by_one - certificate.changed_at_least
    recovered = certificate.changed_one_by_one - certificate.changed_at_most
    assert recovered[1] >= 0.8 * certificate.changed_one_by_one[1]
    assert np.all(recovered <= lost)


@pytest.fixture(scope="module")
def digits_split():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    train, test = order[:600], order[600:760]
    return X[train], y[train], X[test], y[test]


def test_budgets_are_answered_in_their_order_and_more_flips_never_do_less(digits_split):
    X, y, points, truth = digits_split
    model = flipcert.KernelRidge("linear", reg=10.0).fit(X, y)
    certificate = model.certify_collectively(points[:40], [6, 0, 2, 6, 700], truth[:40], time_limit=10.0)
    np.testing.assert_array_equal(certificate.flips, [6, 0, 2, 6, 700])
    assert certificate.changed_at_most[1] == certificate.changed_at_least[1] == 0
    assert certificate.attacks[1] is None
    order = np.argsort(certificate.flips, kind="stable")
    for values in (certificate.changed_at_most, certificate.changed_at_least, certificate.changed_one_by_one):
        assert np.all(np.diff(values[order]) >= 0)
    assert certificate.changed_at_most[0] == certificate.changed_at_most[3]


def test_no_time_at_all_still_proves_what_holds_point_by_point(digits_split):
    X, y, points, truth = digits_split
    model = flipcert.KernelRidge("linear", reg=10.0).fit(X, y)
    certificate = model.certify_collectively(points, 8, truth, time_limit=1e-9)
    assert certificate.changed_at_most[0] == certificate.changed_one_by_one[0]


@pytest.mark.parametrize(
    ("flips", "words"),
    [
        (-1, "flips must"),
        ([], "flips is empty"),
        (2.5, "flips must"),
        ([[1, 2]], "flips must"),
        ("many", "flips must"),
        (None, "flips must"),
    ],
)
def test_budgets_that_make_no_sense_are_refused(digits_split, flips, words):
    X, y, points, _ = digits_split
    with pytest.raises(ValueError, match=words):
        flipcert.KernelRidge("linear").fit(X, y).certify_collectively(points, flips)


def test_other_widths_other_lengths_and_models_without_a_fit_are_refused(digits_split):
    X, y, points, truth = digits_split
    model = flipcert.KernelRidge("linear").fit(X, y)
    with pytest.raises(ValueError, match="y has shape"):
        model.certify_collectively(points, 2, truth[:-1])
    with pytest.raises(ValueError, match="features"):
        model.certify_collectively(points[:, :-1], 2)
    with pytest.raises(ValueError, match="time_limit"):
        model.certify_collectively(points, 2, time_limit=-1.0)
    with pytest.raises(Exception, match="not fitted"):
        flipcert.KernelRidge("linear").certify_collectively(points, 2)


@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
@pytest.mark.parametrize("name", ["ridge", "svm", "neighbours", "smoothed"])
def test_no_sources_change_more_than_is_proven(name, classes):
    for seed in range(2):
        X, y, points, trusted, truth = drawn(11 * seed + len(name) + (classes is None))
        source = np.random.default_rng(seed).integers(0, 3, y.size)
        model = MODELS[name](classes)
        try:
            model.fit(X, y, trusted=trusted, source=source)
        except ValueError:
            continue
        before = model.predict(points)
        counted = np.ones(before.size, bool) if truth is None else before == truth
        certificate = model.certify_collectively(points, [1, 2], truth, threat="sources", time_limit=5.0)
        for place, budget in enumerate((1, 2)):
            most = most_changed(model, X, y, points, counted, budget, trusted, source)
            assert certificate.changed_at_least[place] <= most <= certificate.changed_at_most[place]
            attack = certificate.attacks[place]
            if attack is not None:
                assert len(attack) <= budget
                assert set(source[attack.indices]) == set(attack.sources)
                after = MODELS[name](classes).fit(X, attack.apply(y)).predict(points)
                assert np.count_nonzero(counted & (after != before)) == certificate.changed_at_least[place]


def test_too_many_sources_for_the_memory_are_met_point_by_point():
    import sklearn

    rng = np.random.default_rng(0)
    X, points, y = rng.normal(size=(300, 3)), rng.normal(size=(200, 3)), np.arange(300) % 3
    model = flipcert.KernelRidge("linear").fit(X, y, source=np.arange(300))
    with sklearn.config_context(working_memory=1):
        certificate = model.certify_collectively(points, 20, threat="sources", time_limit=5.0)
    assert "working_memory" in certificate.why_one_by_one
    assert certificate.changed_at_most[0] == certificate.changed_one_by_one[0]
    assert 0 < certificate.changed_at_least[0] <= certificate.changed_at_most[0]
