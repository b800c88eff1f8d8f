"""Label-linear classifiers that users write: what they prove, and all that they can do."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import flipcert
from examples.kernel_density import NadarayaWatson
from examples.random_forest import RandomForestSmoother
from flipcert.engine import tiles as grid
from flipcert.engine.cluster.packing import pack, unpack
from tests.helpers.smoothers import (
    Linear,
    LinearInTiles,
    Looked,
    LookedBare,
    LookedInTiles,
    fewest_units,
    is_refused,
    random_weights,
)

SINGLE = np.float32


def random_case(seed):
    """A model, its training set, test rows, and what is known of the labels."""
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 4))
    n_samples = int(rng.integers(1, 8 if n_classes == 2 else 6))
    n_rows = int(rng.integers(1, 4))
    table = np.zeros((n_rows + n_samples,) * 2)
    table[:] = random_weights(rng, *table.shape)
    single = rng.random() < 0.3 and np.abs(table).max() < 1e30 and np.abs(table[table != 0]).min(initial=1) > 1e-30
    table = table.astype(SINGLE) if single else table
    X = np.arange(n_rows + n_samples, dtype=SINGLE if single else float)[:, None]
    y = rng.integers(n_classes, size=n_samples)
    labels = np.array(["b", "a", "c"])[:n_classes] if rng.random() < 0.3 else np.arange(n_classes)
    labels = np.sort(labels)
    trusted = rng.random(n_samples) < 0.3 if rng.random() < 0.3 else None
    source = rng.integers(1 + n_samples // 2, size=n_samples) if rng.random() < 0.4 else None
    kind = (Looked, LookedInTiles, LookedBare)[rng.integers(3)]
    base = kind(table, str(rng.choice(["array", "sparse"])))
    n_partitions = int(rng.integers(1, 4)) if rng.random() < 0.4 else None
    model = base
    if n_partitions is not None:
        partition = rng.integers(n_partitions, size=n_samples)
        partition = np.unique(partition, return_inverse=True)[1]
        model = flipcert.PartitionEnsemble(base, int(partition.max()) + 1, partition=partition, n_jobs=1)
    y = labels[y]
    if rng.random() < 0.6 and "classes" in model.get_params():
        model.set_params(classes=labels)
    else:
        labels = np.unique(y)
    return model, X[n_rows:], y, X[:n_rows], labels, trusted, source


def check_case(seed):
    """Certificates, costs and attacks of one model against all labellings; the number of radii that were compared."""
    model, X, y, x, labels, trusted, source = random_case(seed)
    if is_refused(model, y):
        return 0
    model.fit(X, y, trusted=trusted, source=source)
    one_model, fixed = isinstance(model, Looked), model.classes is not None
    threats = ["flips"] if source is None else ["flips", "sources"]
    told = {
        threat: (
            model.certify(x, threat=threat, exact=True),
            model.worst_flips(x, threat=threat, exact=True),
            model.flip_costs(x, bound="exact", threat=threat) if one_model and fixed else None,
        )
        for threat in threats
    }
    for threat, (certificates, witnesses, costs) in told.items():
        fewest = fewest_units(model, X, y, x, labels, trusted, source, threat == "sources")
        limit = certificates.limit
        now = np.searchsorted(labels, certificates.prediction)
        assert np.array_equal(fewest[np.arange(len(x)), now], np.zeros(len(x)))
        others = np.ma.array(fewest, mask=np.eye(len(labels), dtype=bool)[now])
        radius = np.minimum(np.asarray(others.min(axis=1)) - 1, limit)
        if costs is not None:
            assert np.array_equal(costs, fewest)
        if one_model:
            assert np.array_equal(certificates.radius, radius)
        assert np.all(certificates.radius <= radius)
        assert np.all(radius <= certificates.radius_upper)
        for t, witness in enumerate(witnesses):
            assert (witness is None) == (certificates.radius_upper[t] >= limit)
            if witness is not None:
                assert len(witness) == certificates.radius_upper[t] + 1
                after = model.fit(X, witness.apply(y), trusted=trusted, source=source).predict(x)
                assert after[t] != certificates.prediction[t]
    return len(threats) * len(x)


@pytest.mark.parametrize("seed", range(30))
def test_all_labellings_through_fit_and_predict(seed):
    check_case(seed)


def test_what_a_fit_has_learned_is_found_on_the_model_until_the_next_one(blobs):
    X, y, x, _ = blobs

    class Odd(Linear):
        def fit_inputs(self, X):
            super().fit_inputs(X)
            setattr(self, f"width_{X.shape[1]}_", X.shape[1])

    model = Odd().fit(X, y)
    assert model.width_2_ == 2
    assert model.n_samples_fit_ == len(X)
    assert np.array_equal(model.weights(x), x @ X.T)
    model.fit(X[:, :1], y)
    assert model.width_1_ == 1
    assert not hasattr(model, "width_2_")


def test_a_fitted_model_keeps_its_parameters(blobs):
    X, y, _, _ = blobs
    table = np.random.default_rng(0).normal(size=(len(X), len(X)))
    places = np.arange(len(X), dtype=float)[:, None]
    model = Looked(table).fit(places, y)
    before = model.certify(places).radius
    table[:] = 0
    model.set_params(table=None)
    assert np.array_equal(model.certify(places).radius, before)


@pytest.mark.parametrize("form", [np.int8, np.uint64, np.float16, np.float32, np.longdouble, bool, list, "sparse"])
def test_weights_may_be_numbers_of_any_type(form, blobs):
    X, y, x, _ = blobs

    class Mine(Linear):
        def weights(self, X):
            whole = np.abs(np.round(X @ self.X_.T)) % 2
            if form == "sparse":
                return scipy.sparse.coo_matrix(whole)
            return whole.tolist() if form is list else whole.astype(form)

    class Usual(Linear):
        def weights(self, X):
            return np.abs(np.round(X @ self.X_.T)) % 2

    mine, usual = Mine().fit(X, y).certify(x), Usual().fit(X, y).certify(x)
    assert np.array_equal(mine.prediction, usual.prediction)
    assert np.array_equal(mine.radius, usual.radius)


def test_tiles_are_the_weights(blobs):
    X, y, x, _ = blobs

    class Different(LinearInTiles):
        def weights(self, X):
            return 2 * X @ self.X_.T

    with pytest.raises(ValueError, match="weight_tile of Different gives other weights than its method weights"):
        Different().fit(X, y)
    model = LinearInTiles().fit(X, y)
    assert np.array_equal(model.weights(x), x @ X.T)


@pytest.mark.parametrize("told", [True, False])
def test_rows_too_long_to_be_held_are_streamed(told, monkeypatch):
    monkeypatch.setattr(grid, "COLUMNS", 1000)
    rng = np.random.default_rng(0)
    X, x = rng.integers(-4, 5, (5000, 3)).astype(float), rng.integers(-4, 5, (40, 3)).astype(float)
    y, source = rng.integers(3, size=5000), rng.integers(50, size=5000)

    class Tiles(LinearInTiles):
        def weight_rounding(self, X):
            return np.zeros(len(X)) if told else None

    usual = Linear(classes=[0, 1, 2]).fit(X, y, source=source)
    model = Tiles(classes=[0, 1, 2]).fit(X, y, source=source)
    with config_context(working_memory=1):
        assert model.label_linear_._streams
        for threat in ("flips", "sources"):
            expected, certificates = usual.certify(x, threat=threat), model.certify(x, threat=threat)
            assert np.array_equal(certificates.prediction, expected.prediction)
            assert np.array_equal(certificates.radius, expected.radius)
            assert not (told and certificates.rounding_sensitive.any())
        (witness,) = model.worst_flips(x[:1])
        assert len(witness) == model.certify(x[:1]).radius_upper[0] + 1
        assert Linear(classes=[0, 1, 2]).fit(X, witness.apply(y)).predict(x[:1]) != model.predict(x[:1])


def test_it_is_what_a_kernel_would_be(blobs):
    """Costs, powers, annotations, collective certificates, pipelines, files and pages of a smoother and of an SVM."""
    X, y, x, _ = np.round(4 * blobs[0]), blobs[1], np.round(4 * blobs[2]), blobs[3]
    source = np.arange(len(y)) % 7
    svm, mine = (kind.fit(X, y, source=source) for kind in (flipcert.KernelSVM("linear"), Linear()))
    for threat in ("flips", "sources"):
        for one, two in zip(*(model.worst_flips(x, threat=threat) for model in (svm, mine)), strict=True):
            assert np.array_equal(one.indices, two.indices)
        assert np.array_equal(*(model.flip_costs(x, "exact", threat=threat) for model in (svm, mine)))
        together = [model.certify_collectively(x, [1, 3], threat=threat) for model in (svm, mine)]
        assert np.array_equal(*(own.changed_at_most for own in together))
    assert np.array_equal(*(model.source_powers(x)[2] for model in (svm, mine)))
    several = flipcert.Annotations(np.repeat(np.arange(len(y)), 2), np.repeat(y, 2), np.arange(2 * len(y)) % 5)
    assert np.array_equal(
        *(kind.fit(X, several).certify(x).radius for kind in (flipcert.KernelSVM("linear"), Linear()))
    )
    ensembles = [
        flipcert.PartitionEnsemble(own, 3, classes=[0, 1, 2]).fit(X, y)
        for own in (flipcert.KernelSVM("linear"), Linear())
    ]
    assert type(ensembles[1].electorate_) is type(ensembles[0].electorate_)
    assert np.array_equal(*(own.certify(x).radius for own in ensembles))


def test_a_pipeline_a_file_and_a_page(blobs, tmp_path):
    X, y, x, y_test = blobs
    model = make_pipeline(StandardScaler(), Linear()).fit(X, y)
    certificates = flipcert.certify(model, x)
    assert certificates.model == {"model": "Linear", "preprocessing": "StandardScaler"}
    certificates.save(tmp_path / "own.npz")
    assert np.array_equal(flipcert.Certificates.load(tmp_path / "own.npz").radius, certificates.radius)
    certificates.report(tmp_path / "page.html", y_test)
    assert "Linear" in (tmp_path / "page.html").read_text()
    search = GridSearchCV(NadarayaWatson(), {"bandwidth": [0.5, 1.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.certify(x).exact.all()
    with pytest.raises(ValueError, match="chose hyper-parameters from labels"):
        flipcert.certify(search, x)


def test_it_travels_to_other_processes(blobs):
    X, y, x, _ = blobs
    model = LinearInTiles().fit(X, y)
    for sent in (unpack(pack(model)), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(sent.certify(x).radius, model.certify(x).radius)


@parametrize_with_checks([RandomForestSmoother(n_trees=5), NadarayaWatson(), Linear(), LinearInTiles()])
def test_scikit_learn_manners(estimator, check):
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # needs SCIPY_ARRAY_API set before scipy is imported; these estimators do not declare array API support
    check(estimator)
