"""Labels are looked up in one place, and those that are not there are told in a sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import flipcert
from flipcert.labels.encoding import class_indices

LABELS = st.one_of(
    st.integers(-3, 3),
    st.floats(-3, 3),
    st.sampled_from([0.5, 1.0, float("nan"), float("inf")]),
    st.sampled_from(["a", "b", "1", ""]),
    st.booleans(),
    st.none(),
)
KINDS = [st.integers(-3, 3), st.sampled_from([-1.0, 0.5, 2.0]), st.sampled_from(["a", "b", "c", "1"]), st.booleans()]


@given(st.one_of(*(st.lists(kind, min_size=1, unique=True) for kind in KINDS)), st.lists(LABELS), st.booleans())
def test_a_label_is_found_or_told(classes, labels, as_objects):
    space = np.unique(np.array(classes))
    array = np.array(labels, dtype=object) if as_objects else np.array(labels)
    if array.ndim != 1:
        return
    listed = array.tolist()
    known = space.tolist()
    foreign = [label for label in listed if label not in known]
    if foreign:
        with pytest.raises(ValueError, match=r"^saw ") as refusal:
            class_indices(array, space, "saw {label} among {classes}")
        assert str(refusal.value).startswith(f"saw {foreign[0]!r} among [")
    else:
        assert class_indices(array, space, "").tolist() == [known.index(label) for label in listed]


def test_many_classes_are_not_all_listed():
    with pytest.raises(ValueError, match=r"^1000: \[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\.\]$"):
        class_indices(np.array([1000]), np.arange(1000), "{label}: {classes}")


class Says(ClassifierMixin, BaseEstimator):
    """Votes for whatever it was told to."""

    def __init__(self, answer=None):
        self.answer = answer

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.array([self.answer] * len(X))


class Costly(Says):
    """The same with flip costs."""

    def flip_costs(self, X, bound="lower"):
        return np.ones((len(X), len(self.classes_)), int)


class Backwards(Costly):
    """The same with classes in another order."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)[::-1]
        return self


QUESTIONS = ["predict", "decision_function", "certify", "flip_costs", "worst_flips"]


@pytest.mark.filterwarnings("ignore:Outlier label:UserWarning")
@pytest.mark.parametrize("question", QUESTIONS[:4])
def test_votes_for_outliers(question, blobs):
    X, y, _, _ = blobs
    far = np.full((3, 2), 1e3)
    for outlier in (99, -1):
        model = flipcert.PartitionEnsemble(RadiusNeighborsClassifier(1.0, outlier_label=outlier), 3).fit(X, y)
        told = rf"RadiusNeighborsClassifier predicts {outlier}, which is none of the classes \[0, 1, 2\]; .*classes of"
        with pytest.raises(ValueError, match=told):
            getattr(model, question)(far)
        named = model.set_params(classes=[0, 1, 2, outlier]).fit(X, y)
        assert (named.predict(far) == outlier).all()
        assert len(getattr(named, question)(far)) == 3


@pytest.mark.filterwarnings("ignore:Outlier label:UserWarning")
def test_padding_is_no_vote(blobs):
    """Blocks are filled up with rows that nobody asked about."""
    X, y, _, _ = blobs
    model = flipcert.PartitionEnsemble(RadiusNeighborsClassifier(3.0, outlier_label=99), 2).fit(X + 1000, y)
    assert set(model.predict(X[:2] + 1000)) <= {0, 1, 2}


@pytest.mark.parametrize("answer", [3, -1, 0.5, "0", float("nan"), None, b"1"], ids=repr)
@pytest.mark.parametrize("base", [Says, Costly, lambda answer: make_pipeline(StandardScaler(), Costly(answer))])
def test_votes_of_another_kind(base, answer, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base(answer), 3).fit(X, y)
    for question in QUESTIONS:
        if question == "worst_flips" and base is Says:
            continue  # no attack is known, whatever the votes are
        with pytest.raises(ValueError, match=r"(Says|Costly) predicts .*, which is none of the classes \[0, 1, 2\]; "):
            getattr(model, question)(X_test)


def test_numbers_instead_of_words(blobs):
    X, y, X_test, _ = blobs
    names = np.array(["a", "b", "c"])
    model = flipcert.PartitionEnsemble(Says(1), 3).fit(X, names[y])
    with pytest.raises(ValueError, match=r"Says predicts 1, which is none of the classes \['a', 'b', 'c'\]"):
        model.predict(X_test)
    assert set(flipcert.PartitionEnsemble(Says("b"), 3).fit(X, names[y]).predict(X_test)) == {"b"}
    as_objects = flipcert.PartitionEnsemble(KNeighborsClassifier(1), 3).fit(X, names[y].astype(object))
    assert set(as_objects.predict(X_test)) <= set(names)


@pytest.mark.parametrize("answer", [[0], [0, 1]], ids=repr)
@pytest.mark.parametrize("base", [Says, Costly])
def test_predictions_of_another_shape(base, answer, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base(answer), 3).fit(X, y)
    with pytest.raises(ValueError, match=rf"predict of {base.__name__} must return one label for each of the \d+ rows"):
        model.predict(X_test)


def test_costs_are_in_the_order_of_the_classes(blobs):
    X, y, _, _ = blobs
    with pytest.raises(
        ValueError, match=r"Backwards has classes_=\[2, 1, 0\], but its flip costs.*\[0, 1, 2\], in this"
    ):
        flipcert.PartitionEnsemble(Backwards(0), 2, partition=np.arange(30) // 15).fit(X, y)


def test_predictions_that_a_verifier_cannot_answer_for(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.FixedBudget(Says(7), lambda model, X, n_flips: np.zeros(len(X), bool)).fit(X, y)
    for question in ("predict", "certify", "flip_costs"):
        with pytest.raises(
            ValueError, match=r"Says predicts 7, which is none of the classes \[0, 1, 2\].* FixedBudget"
        ):
            getattr(model, question)(X_test)


def test_witnesses_of_another_label_space(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.KernelRidge().fit(X, y)
    for label in (3, "0"):
        with pytest.raises(
            ValueError, match=r"witness holds the label ('0'|3), which is none of the classes \[0, 1, 2\]"
        ):
            model.replay(X_test[:1], flipcert.Witness(np.array([0]), np.array([label])))


# A base's own label space


@pytest.mark.parametrize("classes", [[0, 1, 2, 3], [0, 1], ["0", "1", "2"], {0, 1, 5}], ids=repr)
@pytest.mark.parametrize(
    ("make", "owner"),
    [
        (lambda base: flipcert.PartitionEnsemble(base, 2), "PartitionEnsemble"),
        (lambda base: flipcert.PartitionEnsemble(make_pipeline(StandardScaler(), base), 2), "PartitionEnsemble"),
        (lambda base: flipcert.PartitionEnsemble(make_pipeline(make_pipeline(base)), 2), "PartitionEnsemble"),
        (lambda base: flipcert.PartitionEnsemble(make_pipeline(Moving(), base), 2), "PartitionEnsemble"),
        (lambda base: flipcert.FixedBudget(base, robust), "FixedBudget"),
        (lambda base: flipcert.FixedBudget(make_pipeline(StandardScaler(), base), robust), "FixedBudget"),
        (lambda base: flipcert.PartitionEnsemble(flipcert.FixedBudget(base, robust), 2), "FixedBudget"),
    ],
)
def test_other_classes_of_a_base_are_refused(make, owner, classes, blobs):
    X, y, X_test, _ = blobs
    with pytest.raises(
        ValueError, match=rf"KernelSVM has classes=\[.*\] of its own.*give classes to {owner}, and none to"
    ):
        make(flipcert.KernelSVM(classes=classes)).fit(X, y)
    # The same set is no other, whatever its order and form.
    for same in ([2, 0, 1], range(3), {0, 1, 2}, np.array([0.0, 1.0, 2.0])):
        found = make(flipcert.KernelSVM(classes=same)).fit(X, y).certify(X_test)
        assert np.array_equal(found.radius, make(flipcert.KernelSVM()).fit(X, y).certify(X_test).radius)


class Moving(StandardScaler):
    """Nobody knows what it does, so pipelines with it are black boxes."""


def robust(model, X, n_flips):
    return model.predict(X) == 0


def test_one_flip_would_break_the_overwritten_certificate():
    """Two labels, and a base that was told of three: no ensemble should speak for either."""
    X, y = np.arange(10.0)[:, None] - 4.5, np.arange(10) % 2
    with pytest.raises(ValueError, match=r"KernelSVM has classes=\[0, 1, 2\] of its own, but the label space of"):
        flipcert.PartitionEnsemble(flipcert.KernelSVM(classes=[0, 1, 2]), 2).fit(X, y)


def test_a_verifier_is_told_of_all_classes_at_the_end_of_a_pipeline(blobs):
    X, y, X_test, _ = blobs
    base = make_pipeline(StandardScaler(), flipcert.KernelSVM())
    model = flipcert.FixedBudget(base, lambda m, X, r: flipcert.certify(m, X).radius >= r, classes=[0, 1, 2, 3]).fit(
        X, y
    )
    assert model.estimator_.classes_.tolist() == [0, 1, 2, 3]
    assert np.array_equal(model.certify(X_test).radius, flipcert.certify(model.estimator_, X_test).radius)


def test_nested_pipelines_vote_white_box(blobs):
    X, y, X_test, _ = blobs
    flat = make_pipeline(StandardScaler(), flipcert.KernelSVM())
    nested = make_pipeline(make_pipeline(StandardScaler(), make_pipeline(flipcert.KernelSVM())))
    models = [flipcert.PartitionEnsemble(base, 3, classes=[0, 1, 2]).fit(X, y) for base in (flat, nested)]
    radii = [model.certify(X_test).radius for model in models]
    assert np.array_equal(*radii)
    assert (radii[0] > models[0].certify(X_test).blackbox_radius).any()
    witness = models[1].worst_flips(X_test[:1])[0]
    assert np.array_equal(*(model.replay(X_test[:1], witness) for model in models))
    # Votes of a black box are not replayed: the transformer would have to be fitted again.
    assert not hasattr(flipcert.PartitionEnsemble(make_pipeline(Moving(), flipcert.KernelSVM()), 3), "replay")
