"""Sparse inputs have the certificates of their dense copies."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import flipcert
from flipcert.engine.rounding import SAFETY
from flipcert.kernels import NTK, RBF, ConvNTK, Linear
from tests.helpers.models import weights_of
from tests.helpers.oracles import labellings
from tests.helpers.sparse import FORMS, mostly_zeros

MODELS = {
    "linear": flipcert.KernelSVM("linear"),
    "ntk": flipcert.KernelSVM(),
    "rbf": flipcert.KernelSVM("rbf"),
    "relu": flipcert.KernelSVM(NTK(2, "relu")),
    "biased": flipcert.KernelSVM(NTK(bias_std=0.5)),
    "erf": flipcert.KernelSVM(NTK(activation="erf", bias_std=0.5)),
    "ridge": flipcert.KernelRidge("linear"),
    "biased ridge": flipcert.KernelRidge(NTK(bias_std=1.0), reg=0.5),
    "rbf ridge": flipcert.KernelRidge("rbf", reg=0.1),
    "neighbours": flipcert.WeightedNeighbors(2),
    "distances": flipcert.WeightedNeighbors(None, weights="distance"),
    "kernel of neighbours": flipcert.WeightedNeighbors(3, weights=RBF()),
}
# All that enters these weights is exact where inputs are whole numbers, or is computed from exact numbers alike.
EXACT = ("linear", "ntk", "rbf", "relu", "erf", "neighbours", "distances", "kernel of neighbours")
ENSEMBLES = {
    "linear": flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 2),
    "hashed": flipcert.PartitionEnsemble(flipcert.KernelSVM("rbf"), 2, partition="hash"),
    "neighbours": flipcert.PartitionEnsemble(flipcert.WeightedNeighbors(1), 2, partition="random"),
    "runoff": flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 2, vote="runoff", partition="random"),
}
COLUMNS = ("prediction", "radius", "radius_upper", "blackbox_radius", "runner_up", "target", "rounding_sensitive")


def problem(seed, dtype=np.float64, whole=True, least=4):
    rng = np.random.default_rng(seed)
    n_samples, n_features, n_classes = rng.integers(least, 14), rng.integers(1, 12), int(rng.integers(2, 4))
    X = mostly_zeros(rng, n_samples + 7, n_features, dtype, whole)
    y = rng.integers(0, n_classes, n_samples)
    y[:n_classes] = np.arange(n_classes)
    form = FORMS[rng.choice(list(FORMS))]
    return X[:n_samples], y, X[n_samples:], form, n_classes


def assert_same(one, other, rows=slice(None), columns=COLUMNS):
    for name in columns:
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None), name
        if left is not None:
            assert np.ma.allequal(left[rows], right[rows]), name
            assert np.array_equal(np.ma.getmaskarray(left)[rows], np.ma.getmaskarray(right)[rows]), name


def assert_same_attacks(one, other):
    for left, right in zip(one, other, strict=True):
        assert (left is None) == (right is None)
        if left is not None:
            for name in ("indices", "labels", "sources", "deleted", "inserted_labels", "inserted"):
                assert np.array_equal(getattr(left, name), getattr(right, name)), name


@pytest.mark.parametrize("name", EXACT)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float64, np.float32]), named=st.booleans())
@settings(max_examples=40, deadline=None)
def test_whole_numbers_have_the_same_weights_and_certificates(name, seed, dtype, named):
    X, y, X_test, form, n_classes = problem(seed, dtype)
    model = clone(MODELS[name]).set_params(classes=range(n_classes) if named else None)
    dense, thin = clone(model).fit(X, y), clone(model).fit(form(X), y)
    own, others = weights_of(thin, X_test), weights_of(dense, X_test)
    assert own.dtype == others.dtype == dtype
    assert np.array_equal(own, others)
    assert_same(thin.certify(form(X_test)), dense.certify(X_test))
    assert_same_attacks(thin.worst_flips(form(X_test)), dense.worst_flips(X_test))
    assert np.array_equal(thin.decision_function(form(X_test)), dense.decision_function(X_test))
    for bound in ("lower", "upper"):
        assert np.array_equal(thin.flip_costs(form(X_test), bound), dense.flip_costs(X_test, bound))
    # Either may be asked about rows of the other kind.
    assert_same(thin.certify(X_test), dense.certify(form(X_test)))


@pytest.mark.parametrize("name", ENSEMBLES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_ensembles_cut_and_vote_as_those_of_dense_copies(name, seed):
    X, y, X_test, form, _ = problem(seed)
    X[:2] = 0
    X[0, 0], X[1, 0] = 3, -3  # not all rows alike, or nothing can be cut
    dense, thin = clone(ENSEMBLES[name]).fit(X, y), clone(ENSEMBLES[name]).fit(form(X), y)
    assert np.array_equal(thin.partition_, dense.partition_)
    assert_same(thin.certify(form(X_test)), dense.certify(X_test))
    assert_same_attacks(thin.worst_flips(form(X_test)), dense.worst_flips(X_test))
    assert np.array_equal(thin.flip_costs(form(X_test)), dense.flip_costs(X_test))


@pytest.mark.parametrize("name", MODELS)
@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from([np.float64, np.float32]))
@settings(max_examples=20, deadline=None)
def test_any_numbers_have_the_same_certificates_but_where_rounding_decides(name, seed, dtype):
    X, y, X_test, form, _ = problem(seed, dtype, whole=False)
    dense, thin = clone(MODELS[name]).fit(X, y), clone(MODELS[name]).fit(form(X), y)
    own, others = weights_of(thin, X_test), weights_of(dense, X_test)
    weights = dense.label_linear_.weights
    allowed = SAFETY * weights.rounding(weights.features(X_test), others)
    assert np.all(np.abs(own.astype(float) - others).max(axis=1) <= allowed)
    one, other = thin.certify(form(X_test)), dense.certify(X_test)
    sure = np.flatnonzero(~one.rounding_sensitive & ~other.rounding_sensitive)
    assert_same(one, other, sure, ("prediction", "radius", "radius_upper"))
    if hasattr(dense, "C_max_"):
        assert np.isclose(thin.C_max_, dense.C_max_, rtol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", ["linear", "relu", "ridge", "biased ridge", "neighbours", "ensemble"])
def test_no_labelling_inside_the_radius_changes_a_prediction(name):
    """All labellings of tiny training sets, through fit and predict."""
    for seed in range(4):
        X, y, X_test, form, n_classes = problem(seed, whole=seed % 2 == 0)
        X, y = X[:5], y[:5]
        model = clone(MODELS[name] if name != "ensemble" else ENSEMBLES["hashed"]).set_params(classes=range(n_classes))
        model.fit(form(X), y)
        certificates, rows = model.certify(form(X_test)), form(X_test)
        assert np.array_equal(model.predict(rows), certificates.prediction)
        least = np.full(len(X_test), 6)
        for flips in range(3):
            for flipped in labellings(y, n_classes, flips):
                changed = clone(model).fit(form(X), flipped).predict(rows) != certificates.prediction
                least = np.where(changed, np.minimum(least, flips), least)
        assert np.all(certificates.radius < least)
        within = certificates.radius_upper < 2
        assert np.array_equal(
            least[within] - 1, certificates.radius[within] if name != "ensemble" else least[within] - 1
        )


@pytest.mark.parametrize("threat", ["deletions", "insertions", "replacements", "edits"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "relu", "votes"])
def test_rows_that_come_and_go(kernel, threat):
    kernels = {"relu": NTK(activation="relu"), "votes": "linear"}
    for seed in range(6):
        X, y, X_test, form, n_classes = problem(seed, least=7)
        model = flipcert.KernelSVM(kernels.get(kernel, kernel), classes=range(n_classes), max_norm=12.0)
        if kernel == "votes":
            model = flipcert.PartitionEnsemble(model, 2, partition="hash", classes=range(n_classes))
        dense, thin = clone(model).fit(X, y), clone(model).fit(form(X), y)
        certificates = thin.certify(form(X_test), threat=threat)
        assert_same(certificates, dense.certify(X_test, threat=threat))
        found = thin.worst_flips(form(X_test), threat=threat)
        assert_same_attacks(found, dense.worst_flips(X_test, threat=threat))
        for t, witness in enumerate(found):
            if witness is not None and len(witness.apply(y)):
                rows = witness.apply_inputs(form(X))
                assert sparse.issparse(rows)
                assert np.array_equal(rows.toarray(), witness.apply_inputs(X))
                if set(witness.apply(y)) <= set(range(n_classes)):
                    after = clone(model).fit(rows, witness.apply(y)).predict(form(X_test[t : t + 1]))
                    assert after[0] != certificates.prediction[t]


def test_sources_trust_annotations_and_one_attack_on_all_points():
    for seed in range(8):
        X, y, X_test, form, n_classes = problem(seed, least=8)
        rng = np.random.default_rng(seed)
        given = {"source": rng.integers(0, 4, y.size), "trusted": rng.random(y.size) < 0.3}
        for model in (flipcert.KernelSVM("linear"), ENSEMBLES["linear"]):
            dense, thin = clone(model).fit(X, y, **given), clone(model).fit(form(X), y, **given)
            for threat in ("flips", "sources"):
                assert_same(thin.certify(form(X_test), threat=threat), dense.certify(X_test, threat=threat))
            one, other = (m.certify_collectively(T, [1, 2]) for m, T in ((thin, form(X_test)), (dense, X_test)))
            assert np.array_equal(one.changed_at_most, other.changed_at_most)
            assert np.array_equal(one.changed_at_least, other.changed_at_least)
        assert np.array_equal(
            flipcert.KernelSVM("linear").fit(form(X), y, **given).source_powers(form(X_test))[2],
            flipcert.KernelSVM("linear").fit(X, y, **given).source_powers(X_test)[2],
        )
        row = np.append(np.arange(y.size), rng.integers(0, y.size, 5))
        several = flipcert.Annotations(row, np.append(y, rng.integers(0, n_classes, 5)))
        one, other = (flipcert.KernelSVM("linear").fit(own, several) for own in (form(X), X))
        assert_same(one.certify(form(X_test)), other.certify(X_test))


@pytest.mark.parametrize("name", [*MODELS, "votes"])
def test_audits(name):
    X, y, X_test, form, _ = problem(3, least=9)
    model = ENSEMBLES["linear"] if name == "votes" else MODELS[name]
    if name != "votes":
        ours, theirs = (flipcert.suspicious_labels(model, own, y) for own in (form(X), X))
        assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    one, other = (
        flipcert.plan_audit(clone(model).fit(own, y), T, 2, flips=1)
        for own, T in ((form(X), form(X_test)), (X, X_test))
    )
    assert np.array_equal(one.certified, other.certified)
    assert np.array_equal(one.indices, other.indices)


@pytest.mark.parametrize("rule", ["sorted", "hash", "random"])
def test_partitions_go_by_content(rule):
    rng = np.random.default_rng(0)
    for _ in range(60):
        X = mostly_zeros(rng, 40, int(rng.integers(1, 9)), filled=rng.random(), whole=rng.random() < 0.5)
        X[:2, 0] = 9, -9
        expected = flipcert.assign_partitions(X, 2, rule)
        for form in FORMS.values():
            assert np.array_equal(flipcert.assign_partitions(form(X), 2, rule), expected)


TEXTS = ["a good day", "a fine good day", "what a bad day", "bad weather again", "fine weather", "no day is bad"] * 3
SAID = np.array([1, 1, 0, 0, 1, 0] * 3)


@pytest.mark.parametrize(
    "classifier",
    [flipcert.KernelSVM("linear"), flipcert.KernelRidge("rbf"), flipcert.PartitionEnsemble(flipcert.KernelSVM(), 2)],
    ids=lambda own: type(own).__name__,
)
def test_words_in_a_pipeline(classifier):
    model = make_pipeline(TfidfVectorizer(), clone(classifier)).fit(TEXTS, SAID)
    asked = ["a bad day", "good weather", "nothing known"]
    certificates = flipcert.certify(model, asked)
    features = model[:-1].transform(TEXTS)
    assert sparse.issparse(features)
    plain = clone(classifier).fit(features.toarray(), SAID).certify(model[:-1].transform(asked).toarray())
    sure = np.flatnonzero(~certificates.rounding_sensitive & ~plain.rounding_sensitive)
    assert_same(certificates, plain, sure, ("prediction", "radius", "radius_upper"))
    for t, witness in enumerate(flipcert.worst_flips(model, asked)):
        if witness is not None:
            after = clone(model).fit(TEXTS, witness.apply(SAID)).predict(asked[t : t + 1])
            assert after[0] != certificates.prediction[t]
    assert len(flipcert.certify_collectively(model, asked, [1]).flips) == 1


def test_transformers_and_others_inside_an_ensemble_see_rows_as_they_were_fitted():
    counts = HashingVectorizer(n_features=2**10, alternate_sign=False, norm=None)
    X, asked = counts.transform(TEXTS), counts.transform(["a bad day", "good weather"])
    for base in (MultinomialNB(), make_pipeline(TfidfTransformer(), MaxAbsScaler(), flipcert.KernelSVM("linear"))):
        model = flipcert.PartitionEnsemble(base, 2, partition="random").fit(X, SAID)
        votes = [np.searchsorted(model.classes_, own.predict(asked)) for own in model.estimators_]
        assert np.array_equal(model.decision_function(asked), np.sum(votes, axis=0) * 2 - 2)
        assert np.array_equal(model.certify(asked).prediction, model.predict(asked))


REFUSED = [
    flipcert.KernelSVM("precomputed"),
    flipcert.KernelSVM(ConvNTK((1, 2, 3))),
    flipcert.KernelRidge(lambda X, Z: X @ Z.T),
    flipcert.WeightedNeighbors(1, weights=type("Own", (Linear,), {})()),
    flipcert.LabelSpreading(),
    flipcert.LogisticRegression(),
    flipcert.SmoothedLinear(),
    flipcert.MilpSVM(),
    flipcert.BoundedNetwork(),
    flipcert.PartitionEnsemble(flipcert.LogisticRegression(), 2),
]


@pytest.mark.parametrize("model", REFUSED, ids=lambda own: type(own).__name__)
def test_who_needs_dense_inputs_says_so(model):
    X, y = sparse.csr_array(np.eye(6)), np.array([0, 1, 0, 1, 0, 1])
    with pytest.raises(
        TypeError, match=r"X must be dense for .*; got a sparse csr_array of shape \(6, 6\)\. Pass X\.to"
    ):
        clone(model).fit(X, y)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_missing_and_infinite_entries(wrong):
    X = sparse.csr_array(np.eye(4))
    X.data[2] = wrong
    with pytest.raises(ValueError, match="Input X contains"):
        flipcert.KernelSVM("linear").fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="Input X contains"):
        flipcert.KernelSVM("linear").fit(np.eye(4), [0, 1, 0, 1]).predict(X)
    huge = sparse.coo_array((np.full(2, 1e308), ([0, 0], [0, 0])), shape=(2, 2))
    with pytest.raises(ValueError, match="Input X contains"):
        flipcert.KernelSVM("linear").fit(huge, [0, 1])


@pytest.mark.parametrize("model", [MODELS["linear"], MODELS["relu"], MODELS["ridge"], ENSEMBLES["linear"]], ids=str)
@pytest.mark.parametrize(("factor", "word"), [(1e-160, "underflow"), (1e155, "overflow|squares fit")])
def test_numbers_out_of_range_are_refused_alike(model, factor, word):
    X = np.eye(6) + 1.0
    y = np.array([0, 1] * 3)
    said = []
    for form in (np.asarray, sparse.csr_array):
        with pytest.raises(ValueError, match=word) as refusal:
            clone(model).fit(form(X * factor), y).certify(form(X * factor))
        said.append(str(refusal.value).split(":")[-1])
    assert said[0] == said[1]


def test_the_inputs_of_a_user_stay_as_they_are():
    X = FORMS["untidy"](mostly_zeros(np.random.default_rng(0), 9, 5))
    before = [own.copy() for own in (X.indptr, X.indices, X.data)]
    flipcert.KernelSVM("linear").fit(X, [0, 1, 2] * 3).certify(X)
    assert all(np.array_equal(*pair) for pair in zip(before, (X.indptr, X.indices, X.data), strict=True))


def test_weights_do_not_depend_on_the_block():
    rng = np.random.default_rng(0)
    X, X_test = (mostly_zeros(rng, size, 300, whole=False, filled=0.1) for size in (80, 70))
    model = flipcert.KernelSVM("linear").fit(sparse.csr_array(X), rng.integers(0, 3, 80))
    whole = model.label_linear_.formed(sparse.csr_array(X_test), np.arange(70))
    for row in range(70):
        alone = model.label_linear_.formed(sparse.csr_array(X_test[row : row + 1]), np.arange(1))
        assert np.array_equal(alone[0], whole[row])
    # A product with an input is the same number from both sides.
    turned = flipcert.KernelSVM("linear").fit(sparse.csr_array(X_test), np.arange(70) % 2)
    assert np.array_equal(turned.label_linear_.formed(sparse.csr_array(X), np.arange(80)), whole.T)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_that_are_never_held_whole(kernel):
    rng = np.random.default_rng(0)
    X, X_test = mostly_zeros(rng, 70_000, 6), mostly_zeros(rng, 3, 6)
    y = rng.integers(0, 3, len(X))
    with config_context(working_memory=16):
        dense, thin = flipcert.KernelSVM(kernel).fit(X, y), flipcert.KernelSVM(kernel).fit(sparse.csr_array(X), y)
        assert thin.label_linear_._streams
        assert_same(thin.certify(sparse.csr_array(X_test)), dense.certify(X_test))


@pytest.mark.parametrize("name", ["linear", "rbf", "relu", "ridge", "neighbours", "votes"])
def test_memory_is_that_of_the_entries_and_of_blocks(name):
    n_samples, n_features, n_test = 1_500, 60_000, 40
    rng = np.random.default_rng(0)
    X, X_test = (
        sparse.random_array((size, n_features), density=2e-4, format="csr", rng=rng) for size in (n_samples, n_test)
    )
    y = rng.integers(0, 3, n_samples)
    model = clone(MODELS[name] if name != "votes" else ENSEMBLES["linear"]).set_params(n_jobs=1)
    model.fit(X[:9], y[:9] % 2).certify(X_test[:2])  # compiled
    tracemalloc.start()
    try:
        model.fit(X, y).certify(X_test)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A system of all samples is held where one is solved; 32 rows of a block are dense, three times over.
    system = 2 * 8 * n_samples**2 if name == "ridge" else 0
    assert peak < 8 * n_samples * n_features / 8 + system
