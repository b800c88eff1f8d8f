"""Kernel machines whose training rows are deleted, inserted, replaced and edited: certified, attacked, fitted again."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, StandardScaler

import flipcert
from flipcert.engine.cluster.packing import pack, unpack
from flipcert.kernels import NTK, RBF, ConvNTK, Linear
from flipcert.labels.threats import MOVES, THREATS
from flipcert.linear.insertions import Insertions
from tests.helpers.models import weights_of
from tests.helpers.row_oracle import Rows

ROWS = ["deletions", "insertions", "replacements", "edits"]
KERNELS = {
    "linear": "linear",
    "rbf": RBF(0.5),
    "ntk": None,
    "biased": NTK(bias_std=0.5),
    "relu": NTK(2, "relu"),
    "leaky": NTK(activation="leaky_relu"),
    "biased relu": NTK(activation="relu", bias_std=0.3),
}


def largest_norm(X):
    return float(np.linalg.norm(X.astype(np.float64), axis=1).max())


@pytest.mark.parametrize("space", ["fixed", "open"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_against_every_training_set(kernel, space):
    """Integer inputs on a line, new ones on a grid that holds the worst."""
    rng = np.random.default_rng(0)
    for _ in range(25):
        n, n_classes = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        codes = rng.integers(0, n_classes, n)
        codes[:2] = [0, 1]
        codes = np.unique(codes, return_inverse=True)[1]
        X, test = rng.integers(-3, 4, (n, 1)).astype(float), np.array([[rng.choice([-2.0, 1.0, 3.0])]])
        trusted = rng.random(n) < 0.2
        given = {"classes": range(n_classes)} if space == "fixed" else {}
        model = flipcert.KernelSVM(KERNELS[kernel], max_norm=3.0 if kernel == "linear" else None, **given)
        model.fit(X, codes, trusted=trusted)
        weights = weights_of(model, test)[0]
        new = 3.0 * abs(test[0, 0]) if kernel == "linear" else 1.0
        grid = (-new, 0, new) if kernel == "linear" else (0, new)
        oracle = Rows(weights, codes, len(model.classes_), trusted, new=grid, open_space=space == "open")
        for threat in ROWS:
            certificate, truth = model.certify(test, threat=threat), oracle.cost_of_change(threat)
            assert certificate.radius[0] < truth <= certificate.radius_upper[0] + 1 or truth == n + 1
            closed = truth == n + 1 or certificate.radius[0] == certificate.radius_upper[0] == truth - 1
            # A norm may be rounded up a little: where new rows lead to a tie, they may also break it.
            ties = kernel == "linear" and threat != "deletions"
            assert closed or ties or (space == "open" and len(model.classes_) == 2)
            lower, upper = (model.flip_costs(test, bound, threat=threat)[0] for bound in ("lower", "upper"))
            costs = np.array(oracle.costs(threat, empty_votes=False))
            assert np.all(lower <= costs)
            assert np.all(costs <= upper)


@pytest.mark.parametrize("space", ["fixed", "open"])
def test_deletions_against_all_fits(space):
    """The literal meaning: fit on every subset of the rows, and look."""
    rng = np.random.default_rng(1)
    for _ in range(6):
        X, codes, test = rng.integers(-3, 4, (5, 2)).astype(float), np.array([0, 1, 2, 0, 1]), rng.normal(size=(3, 2))
        model = flipcert.KernelSVM("linear", classes=[0, 1, 2] if space == "fixed" else None).fit(X, codes)
        before, costs = model.predict(test), np.full(3, 6)
        for rows in itertools.product([True, False], repeat=5):
            kept = np.array(rows)
            if not kept.any() or (space == "open" and np.unique(codes[kept]).size < 2):
                continue
            changed = clone(model).fit(X[kept], codes[kept]).predict(test) != before
            costs[changed] = np.minimum(costs[changed], np.count_nonzero(~kept))
        certificates = model.certify(test, threat="deletions")
        assert (np.minimum(certificates.radius, 5) == np.minimum(costs - 1, 5)).all()
        assert certificates.exact.all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("threat", ROWS)
def test_attacks_are_fits_that_work(threat, kernel, dtype, blobs):
    X, y, test, _ = (np.asarray(part, dtype) if part.dtype.kind == "f" else part for part in blobs)
    trusted = np.arange(len(y)) % 5 == 0
    names = np.array(["ant", "bee", "cat"])[y]
    longest = None if kernel == "rbf" else 1.1 * largest_norm(X)
    model = flipcert.KernelSVM(KERNELS[kernel], max_norm=longest, classes=["ant", "bee", "cat"])
    model.fit(X, names, trusted=trusted)
    certificates, attacks = model.certify(test, threat=threat), model.worst_flips(test, threat=threat)
    assert certificates.threat == threat
    before = model.predict(test)
    for t, attack in enumerate(attacks):
        if attack is None:
            assert certificates.radius_upper[t] == certificates.limit
            continue
        assert len(attack) == certificates.radius_upper[t] + 1
        assert not trusted[np.append(attack.deleted, attack.indices)].any()
        sizes = (attack.indices.size, attack.deleted.size, attack.inserted_labels.size)
        used = {"deletions": (0, 1, 0), "insertions": (0, 0, 1), "replacements": (0, 1, 1), "edits": (1, 1, 1)}[threat]
        assert not any(size for size, may_be in zip(sizes, used, strict=True) if not may_be)
        after = clone(model).fit(attack.apply_inputs(X), attack.apply(names)).predict(test)[t]
        if not certificates.rounding_sensitive[t]:
            assert after == certificates.target[t] != before[t]
    if kernel != "biased relu":
        assert certificates.exact.mean() > 0.8  # what remains is the bound on rounding


def test_costs_for_ensembles_come_with_attacks(blobs):
    X, y, test, _ = blobs
    model = flipcert.KernelSVM("rbf", classes=[0, 1, 2]).fit(X, y)
    for threat in ROWS:
        costs = model.costs_and_attacks(test, threat=threat)
        others = np.arange(3) != costs.prediction[:, None]
        cheapest = np.where(others, costs.lower, 99).min(axis=1)
        assert (cheapest - 1 == model.certify(test, threat=threat).radius).all()
        assert (costs.lower == costs.upper).all()
        for t, c in itertools.product(range(len(test)), range(3)):
            if 0 < costs.upper[t, c] <= len(y):
                attack = costs.attack(t, c)
                assert len(attack) == costs.upper[t, c]
                assert clone(model).fit(attack.apply_inputs(X), attack.apply(y)).predict(test)[t] == c


def test_replay_makes_flips_only(blobs):
    X, y, test, _ = blobs
    model = flipcert.KernelSVM("rbf").fit(X, y)
    (attack,) = model.worst_flips(test[:1], threat="replacements")
    with pytest.raises(ValueError, match=r"witness deletes \d+ rows and inserts \d+, but replay makes flips only; fit"):
        model.replay(test[:1], attack)


def test_figures_of_the_digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    model = flipcert.KernelSVM(RBF(0.5)).fit(X[:1347], y[:1347])
    medians = {}
    for threat in ("flips", *ROWS):
        certificates = model.certify(X[1347:], threat=threat)
        assert certificates.exact.all()
        medians[threat] = certificates.median_certified_robustness(y[1347:])
    assert medians == {"flips": 14, "deletions": 45, "insertions": 11, "edits": 10, "replacements": 7}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [*KERNELS, "deep", "nngp"])
def test_no_input_weighs_more_than_is_said(kernel, dtype):
    rng = np.random.default_rng(0)
    more = {"deep": NTK(4, "leaky_relu", bias_std=0.1), "nngp": NTK(2, "relu", kind="nngp")}
    own = {"linear": Linear(), "ntk": NTK(), **more}.get(kernel, KERNELS.get(kernel))
    X = (rng.normal(size=(12, 6)) * rng.lognormal(size=(12, 1))).astype(dtype)
    X[0], X[1, 1:] = 0.0, 0.0
    for max_norm in (0.3, 2.0, 50.0, None)[: 4 if kernel == "rbf" else 3]:
        bound, alike = own.largest(X, max_norm), own.most_alike(X, max_norm)
        assert alike.dtype == dtype
        if max_norm is not None:
            assert largest_norm(alike) <= max_norm * (1 + 1e-15)
        reached = np.diagonal(own(X, alike)).astype(np.float64)
        assert (reached <= bound).all()
        if kernel != "biased relu" and kernel != "deep":
            assert reached == pytest.approx(bound, rel=1e-4)
        others = rng.normal(size=(300, 6))
        others *= (1.0 if max_norm is None else max_norm) / np.linalg.norm(others, axis=1, keepdims=True)
        near = alike[rng.integers(0, 12, 300)] * (1 - 10.0 ** -rng.integers(3, 9, (300, 1)))
        for inputs in (others, others * rng.random((300, 1)), near):
            assert (np.abs(own(X, inputs.astype(dtype))) <= bound[:, None]).all()


def test_regime_after_the_attack(blobs):
    X, y, test, _ = blobs
    n = len(y)
    free = flipcert.KernelSVM("rbf").fit(X, y)
    most = free.certify(test, threat="insertions")
    capped = flipcert.KernelSVM("rbf", C=1 / (n + 2.5)).fit(X, y)
    seen = capped.certify(test, threat="insertions")
    assert (seen.radius == np.minimum(most.radius, 2)).all()
    attacks = capped.worst_flips(test, threat="insertions")
    for t, attack in enumerate(attacks):
        # Where two new rows are enough, the attack is one; more would leave the regime.
        assert (attack is not None) == (most.radius_upper[t] + 1 <= 2)
        assert seen.radius_upper[t] == (most.radius_upper[t] if attack is not None else n)
    # Flips and deletions leave row sums as they are, or make them smaller; replacements leave n rows.
    tight = flipcert.KernelSVM("rbf", C=free.C_max_).fit(X, y)
    for threat in ("flips", "deletions"):
        assert (tight.certify(test, threat=threat).radius == free.certify(test, threat=threat).radius).all()
    assert (tight.certify(test, threat="insertions").radius == 0).all()
    some = flipcert.KernelSVM("rbf", C=0.999 / n).fit(X, y)
    assert (some.certify(test, threat="replacements").radius == free.certify(test, threat="replacements").radius).all()
    assert (some.certify(test, threat="edits").radius == 0).all()


def test_largest_row_sum_and_one_more_is_not_enough():
    """Between two points an inserted one has a larger row sum than either: the bound is over all inputs."""
    apart = np.sqrt(np.log(1 / 0.397))
    X = np.array([[0.0], [apart]])
    bound = Insertions(RBF(1.0), X, None, C=1 / 2.41)
    assert bound.within(THREATS["insertions"]) == 0
    assert Insertions(RBF(1.0), X, None, C=1 / 3.01).within(THREATS["insertions"]) == 1
    linear = Insertions(Linear(), np.array([[3.0, 4.0], [0.0, 1.0]]), 10.0, C=1 / 161)
    assert linear.within(THREATS["insertions"]) == 1  # 10 (5 + 1 + 10 r)
    assert linear.within(THREATS["replacements"]) == 1  # 10 (5 + 10), 10 (10 + 10)
    assert linear.within(THREATS["deletions"]) == 2


def test_long_training_inputs_are_refused(blobs):
    X, y, test, _ = blobs
    with pytest.raises(ValueError, match=r"max_norm=1 is smaller than the norm of a training input \([\d.]+\); take a"):
        flipcert.KernelSVM("linear", max_norm=1.0).fit(X, y)
    with pytest.raises(ValueError, match="max_norm must be"):
        flipcert.KernelSVM("linear", max_norm=-1.0).fit(X, y)
    for dtype in (np.float32, np.float64):
        scaled = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
        model = flipcert.KernelSVM("linear", max_norm=1.0).fit(scaled, y)  # however the norms are rounded
        assert model.certify(test.astype(dtype), threat="insertions").radius.min() >= 0


def test_inputs_longer_than_allowed_are_less_alike(blobs):
    """A new row next to a test input beyond all others is not to be had."""
    X, y, _, _ = blobs
    far = np.array([[20.0, 20.0]])
    bounded = flipcert.KernelSVM(RBF(0.01), max_norm=largest_norm(X)).fit(X, y)
    free = flipcert.KernelSVM(RBF(0.01)).fit(X, y)
    assert bounded.certify(far, threat="insertions").radius > free.certify(far, threat="insertions").radius


def test_other_models_say_why_rows_must_stay(blobs):
    X, y, test, _ = blobs
    models = {
        "weights of all samples change": flipcert.KernelRidge(),
        "nearest": flipcert.WeightedNeighbors(3),
        "graph of neighbours": flipcert.LabelSpreading(3),
        "noise": flipcert.SmoothedLinear(),
        "step of the training": flipcert.BoundedNetwork(epochs=2),
        "dual variables": flipcert.MilpSVM(),
        "asked about labels": flipcert.FixedBudget(KNeighborsClassifier(3), lambda model, X, flips: X[:, 0] < 0),
    }
    for reason, model in models.items():
        model.fit(X, y)
        for threat in ROWS:
            sentence = rf'threat="{threat}" is refused by {type(model).__name__}: .*{reason}.*\.$'
            for ask in (model.certify, model.worst_flips, model.flip_costs):
                with pytest.raises(ValueError, match=sentence):
                    ask(test, threat=threat)


def test_kernels_without_a_bound_know_deletions_only(blobs):
    X, y, test, _ = blobs

    class Other(RBF):
        def __call__(self, X, Z=None):
            return 2 * super().__call__(X, Z)

    kernels = [NTK(activation="erf"), NTK(activation="gelu"), ConvNTK((2, 1, 1), depth=1, filter_size=1), Other()]
    kernels.append(lambda A, B: A @ B.T)
    for kernel in kernels:
        model = flipcert.KernelSVM(kernel, max_norm=10.0).fit(X, y)
        assert model.certify(test, threat="deletions").exact.all()
        for threat in ROWS[1:]:
            with pytest.raises(ValueError, match=f'threat="{threat}" is refused by KernelSVM: no bound is known'):
                model.certify(test, threat=threat)
    model = flipcert.KernelSVM("precomputed", max_norm=1.0).fit(X @ X.T, y)
    assert (
        model.certify(test @ X.T, threat="deletions").radius
        == flipcert.KernelSVM("linear").fit(X, y).certify(test, threat="deletions").radius
    ).all()
    with pytest.raises(ValueError, match=r"\(precomputed\)"):
        model.certify(test @ X.T, threat="edits")
    with pytest.raises(ValueError, match=r'threat="insertions" .* bound the norm of inputs with max_norm=\.\.\.'):
        flipcert.KernelSVM().fit(X, y).worst_flips(test, threat="insertions")


def test_annotations_are_refused(blobs):
    X, y, test, _ = blobs
    model = flipcert.KernelSVM("rbf").fit(X, flipcert.Annotations(np.arange(len(y)), y))
    with pytest.raises(ValueError, match='threat="deletions"'):
        model.certify(test, threat="deletions")


def test_pipelines_treat_each_row_by_itself(blobs):
    X, y, test, _ = blobs

    def asked(*steps):
        model = make_pipeline(*steps, flipcert.KernelSVM("rbf")).fit(X, y)
        return flipcert.certify(model, test, threat="deletions")

    columns = ColumnTransformer([("one", Normalizer(), [0, 1]), ("none", "drop", [1])])
    for step in (
        Normalizer(), Binarizer(), FunctionTransformer(), FunctionTransformer(np.tanh), "passthrough",
        FrozenEstimator(StandardScaler().fit(X)), flipcert.LabelFree(Normalizer()), columns,
        FeatureUnion([("one", Normalizer()), ("two", Binarizer())]),
    ):  # fmt: skip
        assert asked(step).threat == "deletions"
    for step in (
        StandardScaler(), flipcert.LabelFree(StandardScaler()), FunctionTransformer(lambda A: A - A.mean(axis=0)),
        make_pipeline(Normalizer(), StandardScaler()), ColumnTransformer([("one", Normalizer(), lambda A: [0])]),
        FeatureUnion([("one", Normalizer()), ("two", StandardScaler())]),
    ):  # fmt: skip
        for ask in (flipcert.certify, flipcert.worst_flips):
            with pytest.raises(ValueError, match=r'threat="deletions" is refused for this pipeline: .* learn'):
                ask(make_pipeline(step, flipcert.KernelSVM("rbf")).fit(X, y), test, threat="deletions")
    # Behind a transformer, rows to insert are known as features only.
    model = make_pipeline(Normalizer(), flipcert.KernelSVM("rbf")).fit(X, y)
    alone = flipcert.KernelSVM("rbf").fit(Normalizer().transform(X), y)
    certificates = flipcert.certify(model, test, threat="insertions")
    assert (certificates.radius == alone.certify(Normalizer().transform(test), threat="insertions").radius).all()
    assert (certificates.radius_upper == certificates.limit).all()
    assert certificates.target.mask.all()
    assert flipcert.worst_flips(model, test, threat="insertions") == [None] * len(test)
    (witness, *_) = flipcert.worst_flips(model, test, threat="deletions")
    after = clone(model).fit(witness.apply_inputs(X), witness.apply(y)).predict(test)[0]
    assert after != model.predict(test)[0]


def test_all_rows_cannot_go():
    """With classes given, one class may be left; no row may not."""
    X, y, test = np.array([[1.0], [2.0]]), np.array([1, 1]), np.array([[1.0]])
    model = flipcert.KernelSVM("linear", classes=[0, 1], max_norm=2.0).fit(X, y)
    certificate = model.certify(test, threat="deletions")
    assert (certificate.radius[0], certificate.radius_upper[0]) == (2, 2)
    assert certificate.target.mask.all()
    assert model.worst_flips(test, threat="deletions") == [None]
    assert model.flip_costs(test, threat="deletions").tolist() == [[3, 0]]
    # The part of an ensemble that has no rows left votes for the first class.
    assert model.costs_and_attacks(test, threat="deletions").upper.tolist() == [[2, 0]]


def test_no_more_rows_than_there_are_count(blobs):
    """A radius of n reads "n or more"."""
    X = np.array([[1.0], [1.0], [1.0]])
    model = flipcert.KernelSVM(RBF(1.0), classes=[0, 1], max_norm=1.0).fit(X, [0, 0, 0])
    certificate = model.certify(np.array([[1.0]]), threat="insertions")
    assert certificate.radius.tolist() == certificate.radius_upper.tolist() == [3]
    assert model.worst_flips(np.array([[1.0]]), threat="insertions") == [None]


def test_rows_too_long_for_the_memory_are_held_one_by_one(blobs):
    rng = np.random.default_rng(0)
    X, y, test = rng.normal(size=(70_000, 2)), rng.integers(0, 3, 70_000), rng.normal(size=(5, 2))
    model = flipcert.KernelSVM("linear", max_norm=10.0).fit(X, y)
    for threat in ROWS:
        expected = model.certify(test, threat=threat)
        with config_context(working_memory=4):
            assert (model.certify(test, threat=threat).radius == expected.radius).all()


def test_threats_are_the_same_in_every_process():
    for threat in (*THREATS.values(), MOVES):
        assert pickle.loads(pickle.dumps(threat)) is threat
        assert unpack(pack(threat)) is threat


@pytest.mark.parametrize("threat", ["insertions", "replacements", "edits"])
@pytest.mark.parametrize("own", [Linear(), NTK(), NTK(2, "relu"), NTK(activation="leaky_relu")])
def test_a_kernel_of_zero_is_never_rounded_up(own, threat):
    zero, others = np.zeros((1, 2)), np.array([[3.0, 4.0], [-1.0, 0.0], [0.0, 0.0]])
    assert not own.largest(zero, 5.0).any()
    assert not own(zero, others).any()
    certificates = flipcert.KernelSVM(own, classes=[0, 1], max_norm=5.0).fit(others[:2], [1, 1]).certify(zero, threat)
    # Whatever is in the training set, both classes have a score of 0.
    assert (certificates.radius, certificates.radius_upper) == (2, 2)
    # A constant that all kernels have is what a new row weighs.
    biased = NTK(bias_std=0.5)
    assert biased.largest(zero, 5.0) >= biased(zero, zero)[0]


def test_a_row_is_replaced_by_its_opposite():
    X, y = np.array([[2.0], [1.0]]), np.array([0, 1])
    model = flipcert.KernelSVM("linear", max_norm=2.0).fit(X, y, trusted=[False, True])
    # Without a row of class 0 there is nothing to fit: it has to stay, and to lose.
    assert model.certify([[3.0]], threat="replacements").radius_upper == 0
    (witness,) = model.worst_flips([[3.0]], threat="replacements")
    assert (witness.inserted.tolist(), witness.inserted_labels.tolist()) == ([[-2.0]], [0])
    assert clone(model).fit(witness.apply_inputs(X), witness.apply(y)).predict([[3.0]]) == [1]
