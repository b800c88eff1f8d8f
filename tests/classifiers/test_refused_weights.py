"""What a label-linear classifier of one's own is refused: what could void its certificate, as far as can be seen."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

import flipcert
from flipcert.engine import tiles as grid
from tests.helpers.smoothers import Linear


class Watching(Linear):
    """Remembers all that it could see in each of its methods."""

    def __init__(self, seen=None, classes=None, n_jobs=1):
        self.seen = seen
        self.classes = classes
        self.n_jobs = n_jobs

    def fit_inputs(self, X):
        SEEN.append(dict(vars(self)))
        super().fit_inputs(X)

    def weights(self, X):
        SEEN.append(dict(vars(self)))
        return super().weights(X)


SEEN: list[dict[str, object]] = []


@pytest.mark.parametrize("classes", [None, [0, 1, 2, 3]])
@pytest.mark.parametrize("partitions", [None, 3])
def test_no_label_ever_reaches_a_method_that_a_user_writes(classes, partitions, blobs):
    """Nor which classes there are; whether it is the first fit, the second, or a question."""
    X, y, x, _ = blobs
    SEEN.clear()
    model = Watching(seen=7)
    if partitions is not None:
        model = flipcert.PartitionEnsemble(model, partitions, n_jobs=1)
    model.set_params(classes=classes)
    for labels in (y, (y + 1) % 3):
        model.fit(X, labels, source=y, trusted=y == 0)
        model.predict(x)
        model.certify(x, threat="sources")
        model.worst_flips(x)
    assert len(SEEN) > 10
    for own in SEEN:
        assert own.keys() <= {"seen", "classes", "n_jobs", "n_samples_fit_", "X_"}
        assert own["classes"] is None
        assert own["seen"] == 7


def test_what_a_parameter_was_fitted_to_is_forgotten_unless_it_is_frozen(blobs):
    """It could have been fitted to labels; whoever freezes it knows that it was not."""
    X, y, x, _ = blobs

    class Embedded(Linear):
        def __init__(self, encoder=None):
            self.encoder = encoder

        def weights(self, X):
            return self.encoder.transform(X) @ self.encoder.transform(self.X_).T

    encoder = StandardScaler().fit(X[:10])
    with pytest.raises(NotFittedError):
        Embedded(encoder).fit(X, y)
    model = Embedded(FrozenEstimator(encoder)).fit(X, y)
    expected = flipcert.KernelSVM("linear").fit(encoder.transform(X), y).certify(encoder.transform(x))
    assert np.array_equal(model.certify(x).radius, expected.radius)


def test_inputs_cannot_be_written_to(blobs):
    X, y, _, _ = blobs

    class Centred(Linear):
        def fit_inputs(self, X):
            X -= X.mean(axis=0)

    class Scaled(Linear):
        def weights(self, X):
            X *= 2
            return super().weights(X)

    for kind in (Centred, Scaled):
        with pytest.raises(ValueError, match="read-only"):
            kind().fit(X.copy(), y)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda X, n: np.ones((len(X), n + 1)),
            r"one column for each training row, shape \(8, 30\); got shape \(8, 31\)",
        ),
        (lambda X, n: np.ones((n, len(X))), r"shape \(8, 30\); got shape \(30, 8\)"),
        (lambda X, n: np.ones(n), r"got shape \(30,\)"),
        (lambda X, n: np.full((len(X), n), np.nan), "weights of Mine must be finite; got nan"),
        (lambda X, n: np.full((len(X), n), -np.inf), "weights of Mine must be finite; got -inf"),
        (lambda X, n: np.ones((len(X), n), complex), "must be real numbers; got an array of type complex128"),
        (lambda X, n: np.ones((len(X), n), str), "must be real numbers; got an array of type <U"),
        (lambda X, n: None, "must be real numbers; got an array of type object"),
        (lambda X, n: scipy.sparse.csr_array((len(X), n - 1)), r"got shape \(8, 29\)"),
        (lambda X, n: np.random.default_rng().random((len(X), n)), "weights of Mine changed when the same rows"),
        (lambda X, n: np.tile(X - X.mean(axis=0), n)[:, :n], "when the row was asked for without the others"),
        (
            lambda X, n: np.ones((len(X), n)) * np.arange(len(X))[:, None],
            "must depend on the training rows and that row",
        ),
    ],
)
def test_what_are_no_weights(answer, said, blobs):
    X, y, _, _ = blobs

    class Mine(Linear):
        def weights(self, X):
            return answer(X, self.n_samples_fit_)

    class MineInTiles(Linear):
        def weight_tile(self, X, start, stop):
            return answer(X, stop - start)

    with pytest.raises(ValueError, match=said):
        Mine().fit(X, y)
    with pytest.raises(ValueError, match=said.replace("weights of Mine", "weight.* of MineInTiles")):
        MineInTiles().fit(X, y)


@pytest.mark.parametrize("in_tiles", [False, True])
def test_weights_out_of_the_range_of_single_precision(in_tiles, blobs, monkeypatch):
    X, y, x, _ = blobs
    X[:15] += 1000
    monkeypatch.setattr(grid, "COLUMNS", 10)

    class Mine(Linear):
        def __init__(self, factor=1.0):
            self.factor = factor

        def weights(self, X):
            # Some tiles hold nothing but numbers that are too small, which is no loss as long as others hold more.
            return self.factor * np.exp(-cdist(X, self.X_))

    class MineInTiles(Mine):
        def weight_tile(self, X, start, stop):
            return self.weights(X)[:, start:stop]

    kind = MineInTiles if in_tiles else Mine
    single = X.astype(np.float32)
    assert not kind().fit(single, y).certify(x).rounding_sensitive.any()
    for factor in (1.0, 1e300, 1e-60, 1e-300):
        assert kind(factor).fit(X, y).certify(x).exact.all()
    with pytest.raises(ValueError, match=r"weights of Mine.* precision of the inputs, and .* is too large for float32"):
        kind(1e300).fit(single, y)
    for ask in ("predict", "certify", "worst_flips"):
        with pytest.raises(
            ValueError, match=r"the weights of 15 of 15 rows underflowed, or nearly so: weights of Mine.* float32; resc"
        ):
            getattr(kind(1e-60).fit(single, y), ask)(x)
    with pytest.raises(ValueError, match="rows underflowed"):
        flipcert.PartitionEnsemble(kind(1e-60), 2, classes=[0, 1, 2]).fit(single, y).certify(x)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (lambda X: np.zeros(len(X) + 1), r"one real number for each of 2 rows, or None; got an array of shape \(3,\)"),
        (lambda X: 0.0, r"got an array of shape \(\) and type float64"),
        (lambda X: np.array(["much"] * len(X)), r"type <U4"),
        (lambda X: np.full(len(X), -1.0), "must not be negative; got -1.0"),
        (lambda X: np.full(len(X), np.nan), "must not be negative; got nan"),
    ],
)
def test_what_is_no_rounding(told, said, blobs):
    X, y, _, _ = blobs

    class Mine(Linear):
        def weight_rounding(self, X):
            return told(X)

    with pytest.raises(ValueError, match=f"weight_rounding of Mine .*{said}"):
        Mine().fit(X, y)


class Unsteady(Linear):
    """Moves rows that come alone by a little."""

    def __init__(self, by=0.0, told=None, classes=None, n_jobs=1):
        self.by = by
        self.told = told
        self.classes = classes
        self.n_jobs = n_jobs

    def weights(self, X):
        return super().weights(X) * (1 + self.by * (len(X) == 1))

    def weight_rounding(self, X):
        return None if self.told is None else np.full(len(X), self.told)


def test_rounding_is_measured_or_held_against_what_is_told(blobs):
    X, y, x, _ = blobs
    share = [Unsteady(by).fit(X, y).certify(np.repeat(x, 40, axis=0)).rounding_sensitive.mean() for by in (0.0, 1e-9)]
    assert share[0] == 0
    tolerance = [Unsteady(by).fit(X, y).label_linear_.weights.rounding(x, x @ X.T) for by in (0.0, 1e-9)]
    assert np.all(tolerance[1] > 100 * tolerance[0])
    Unsteady(1e-6, told=1e-4).fit(X, y)
    with pytest.raises(ValueError, match="weight_rounding of Unsteady told 0 for a row whose weights moved by"):
        Unsteady(1e-6, told=0.0).fit(X, y)
    with pytest.raises(ValueError, match=r"weights of Unsteady of a row moved by .* tell how large it is by"):
        Unsteady(1e-6).fit(X, y)


def test_rows_of_zeros_are_flagged_unless_they_are_known_to_be_zeros(blobs):
    """They could be what is left of weights that underflowed."""
    X, y, x, _ = blobs

    class Far(Linear):
        def weights(self, X):
            return np.zeros((len(X), self.n_samples_fit_))

    class KnownToBeFar(Far):
        def weight_rounding(self, X):
            return np.zeros(len(X))

    assert Far().fit(X, y).certify(x).rounding_sensitive.all()
    assert not KnownToBeFar().fit(X, y).certify(x).rounding_sensitive.any()


class Drawing(Linear):
    """Weights that need random numbers, from wherever ``draw`` says."""

    def __init__(self, draw="seed", random_state=0, classes=None, n_jobs=1):
        self.draw = draw
        self.random_state = random_state
        self.classes = classes
        self.n_jobs = n_jobs

    def fit_inputs(self, X):
        super().fit_inputs(X)
        if self.draw == "kept":
            self.generator_ = np.random.default_rng(0)
        if self.draw == "forest":
            self.forest_ = RandomTreesEmbedding(3).fit(X)
        seed = self.random_state if self.draw == "seed" else None
        self.projection_ = np.random.default_rng(seed).normal(size=(X.shape[1], 3))

    def weights(self, X):
        return (X @ self.projection_) @ (self.X_ @ self.projection_).T


@pytest.mark.parametrize("n_rows", [10, 30, 45])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"random_state": None}, "random_state of Drawing is None, .*give Drawing"),
        ({"random_state": np.random.RandomState(0)}, "random_state of Drawing is a RandomState"),
        ({"draw": "kept"}, "fit_inputs of Drawing sets generator_ to a Generator"),
        ({"draw": "forest"}, "fit_inputs of Drawing sets forest_.random_state to None"),
        ({"draw": "unseeded"}, "led to other weights when the same .* rows were fitted again"),
    ],
)
def test_chance_needs_a_seed(given, said, n_rows, blobs):
    X, y = np.concatenate([blobs[0], blobs[2]])[:n_rows], np.concatenate([blobs[1], blobs[3]])[:n_rows]
    with pytest.raises(ValueError, match=said):
        Drawing(**given).fit(X, y)
    Drawing().fit(X, y)


def test_an_ensemble_seeds_its_voters(blobs):
    X, y, x, _ = blobs
    ensemble = flipcert.PartitionEnsemble(Drawing(random_state=None), 3, classes=[0, 1, 2]).fit(X, y)
    assert [voter.random_state for voter in ensemble.estimators_] == [0, 1, 2]
    assert (ensemble.certify(x).radius >= 0).all()


def test_a_fit_that_needs_more_rows_than_are_tried_twice(blobs):
    X, y = np.tile(blobs[0], (2, 1)), np.tile(blobs[1], 2)

    class Demanding(Linear):
        def fit_inputs(self, X):
            super().fit_inputs(X)
            if len(X) < 50:
                raise ValueError("at least 50 rows are needed")

    assert Demanding().fit(X, y).certify(blobs[2]).exact.all()
    with pytest.raises(ValueError, match="at least 50 rows"):
        Demanding().fit(X[:40], y[:40])


@pytest.mark.parametrize("name", ["fit", "predict"])
def test_a_fit_or_a_prediction_of_ones_own_is_not_what_is_proven(name, blobs):
    X, y, x, _ = blobs

    def own(self, *arguments):
        return getattr(Linear, name)(self, *arguments)

    model = type("Mine", (Linear,), {name: own})().fit(X, y)
    model.predict(x)
    for question in ("certify", "worst_flips", "flip_costs"):
        with pytest.raises(ValueError, match=f"Mine has a {name} of its own .* proves nothing about it"):
            getattr(model, question)(x)
    with pytest.raises(ValueError, match=f"Mine has a {name} of its own"):
        flipcert.PartitionEnsemble(type(model)(), 2).fit(X, y)


def test_names_that_are_taken(blobs):
    X, y, _, _ = blobs
    with pytest.raises(TypeError, match="Mine has a _scores of its own, a name that LabelLinearClassifier keeps"):
        type("Mine", (Linear,), {"_scores": None})
    mixin = type("Mixin", (), {"__sklearn_clone__": lambda self: self})
    with pytest.raises(TypeError, match="Mine has a __sklearn_clone__ of its own"):
        type("Mine", (mixin, Linear), {})
    for name in ("classes_", "weights", "_labels"):
        mine = type("Mine", (Linear,), {"fit_inputs": lambda self, X, name=name: setattr(self, name, 1)})
        with pytest.raises(ValueError, match=f"fit_inputs of Mine sets {name}, a name that"):
            mine().fit(X, y)

    class Named(Linear):
        def __init__(self, weights="uniform"):
            self.weights = weights

    with pytest.raises(TypeError, match="Named has a parameter weights, a name that LabelLinearClassifier keeps"):
        Named().fit(X, y)


@pytest.mark.parametrize("name", ["_labels", "classes_", "label_linear_", "_learned", "_description", "n_features_in_"])
def test_labels_do_not_come_in_as_parameters(name, blobs):
    """A parameter of the name of something that is fitted would be handed over with what was fitted."""
    X, y, _, _ = blobs
    scope = {}
    exec(f"def __init__(self, {name}=None):\n    self.{name} = {name}", scope)
    mine = type("Mine", (Linear,), {"__init__": scope["__init__"]})
    with pytest.raises(TypeError, match=f"Mine has a parameter {name}, a name that LabelLinearClassifier keeps"):
        mine().fit(X, y)


def test_nothing_stands_between_parameters_and_the_copy_that_is_asked(blobs):
    X, y, _, _ = blobs

    class Looking(Linear):
        def __init__(self, seen=None):
            self.seen = seen

        seen = property(lambda self: vars(self).get("_labels"), lambda self, value: None)

    with pytest.raises(TypeError, match="Looking has a property seen in place of a parameter"):
        Looking().fit(X, y)
    for name in ("get_params", "set_params", "__setattr__"):
        with pytest.raises(TypeError, match=f"Mine has a {name} of its own"):
            type("Mine", (Linear,), {name: lambda self, *_, **__: {}})

    class Learning(Linear):
        def __init__(self, seen=None):
            self.seen = seen

        def fit_inputs(self, X):
            super().fit_inputs(X)
            self.seen = X

    with pytest.raises(ValueError, match="fit_inputs of Learning changes its parameter seen"):
        Learning().fit(X, y)


def test_who_is_refused_is_not_fitted(blobs):
    X, y, x, _ = blobs
    model = Linear().fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    with pytest.raises(NotFittedError):
        model.predict(x)
    failing = type("Failing", (Linear,), {"fit_inputs": lambda self, X: 1 / 0})()
    with pytest.raises(ZeroDivisionError):
        failing.fit(X, y)
    for question in (failing.predict, failing.certify):
        with pytest.raises(NotFittedError):
            question(x)


def test_parameters_of_ones_own_are_told_by_their_names(blobs):
    X, y, x, _ = blobs

    class Kernel(Linear):
        def __init__(self, kernel="gaussian", n_partitions=3, model="mine", seed=1):
            self.kernel, self.n_partitions, self.model, self.seed = kernel, n_partitions, model, seed

    told = Kernel().fit(X, y).certify(x).model
    assert told == {"model": "Kernel", "kernel": "gaussian", "n_partitions": 3, "model_": "mine", "seed_": 1}
    assert Kernel(kernel=None).fit(X, y).certify(x).model["kernel"] is None


def test_the_base_class_says_what_to_write(blobs):
    X, y, x, _ = blobs
    for kind in (
        flipcert.LabelLinearClassifier,
        type("Half", (Linear,), {"weights": flipcert.LabelLinearClassifier.weights}),
    ):
        with pytest.raises(NotImplementedError, match=r"write fit_inputs\(self, X\) and weights\(self, X\)"):
            kind().fit(X, y)
    with pytest.raises(NotImplementedError, match="Linear weighs all training rows at once"):
        Linear().fit(X, y).weight_tile(x, 0, 1)


@pytest.mark.parametrize("threat", ["deletions", "insertions", "replacements", "edits"])
def test_rows_that_come_and_go_are_refused(threat, blobs):
    X, y, x, _ = blobs
    with pytest.raises(ValueError, match=f'threat="{threat}" is refused by Linear: weights of one.s own may change'):
        Linear().fit(X, y).certify(x, threat=threat)
