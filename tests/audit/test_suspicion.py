"""Labels that look wrong: leave-one-out without refits is what refits say."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

import flipcert
from flipcert import Annotations, KernelRidge, KernelSVM, PartitionEnsemble, WeightedNeighbors
from flipcert.audit.suspicion import suspicion_of
from flipcert.engine.watch import watched_by
from tests.audit.test_plan import Looker

EXACT = (
    KernelRidge(kernel="linear", reg=0.5, n_jobs=1),
    KernelRidge(kernel="rbf", reg=0.1, n_jobs=1),
    KernelRidge(reg=2.0, n_jobs=2),
    KernelSVM(n_jobs=1),
    KernelSVM(kernel="rbf", n_jobs=1),
    KernelSVM(kernel="linear", n_jobs=1),
    WeightedNeighbors(n_neighbors=4, n_jobs=1),
    WeightedNeighbors(n_neighbors=3, weights="distance", n_jobs=1),
    WeightedNeighbors(n_neighbors=None, weights=flipcert.kernels.RBF(gamma=0.5), n_jobs=1),
)


def margins(scores, codes):
    """Best other score minus the own one, row by row."""
    scores = np.array(scores, float)
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    return np.array([np.delete(own, code).max() - own[code] for own, code in zip(scores, codes, strict=True)])


def refitted(model, X, y, classes):
    """The margins, by a fit without each label."""
    rows = np.arange(len(y))
    scores = []
    for i in rows:
        own = clone(model).set_params(classes=classes)
        if isinstance(own, WeightedNeighbors) and own.n_neighbors is not None:
            own.set_params(n_neighbors=min(own.n_neighbors, len(y) - 1))
        scores.append(np.ravel(own.fit(X[rows != i], y[rows != i]).decision_function(X[i : i + 1])))
    return margins(scores, np.searchsorted(classes, y))


@pytest.mark.parametrize("model", EXACT, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("tied", [False, True])
def test_leaving_out_is_what_refits_say(model, n_classes, tied):
    rng = np.random.default_rng(n_classes)
    X = rng.integers(0, 3, (25, 2)) + 0.5 if tied else rng.normal(size=(25, 3))
    y = np.array(list("dacb"))[np.append(np.arange(n_classes), rng.integers(0, n_classes, 25 - n_classes))]
    # A class with one label only is gone when that is left out.
    y[y == "b"] = "a"
    y[7] = y[7] if n_classes == 2 else "b"
    found = flipcert.suspicious_labels(model, X, y)
    np.testing.assert_allclose(found, refitted(model, X, y, np.unique(y)), rtol=1e-9, atol=1e-9)


def test_single_precision_and_precomputed_kernels_are_left_out_as_well():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), rng.integers(0, 3, 40)
    model = KernelRidge(kernel="linear", reg=1.0, n_jobs=1)
    whole = flipcert.suspicious_labels(model, X, y)
    np.testing.assert_allclose(flipcert.suspicious_labels(model, X.astype(np.float32), y), whole, atol=1e-4)
    precomputed = flipcert.suspicious_labels(KernelRidge(kernel="precomputed", reg=1.0), X @ X.T, y)
    np.testing.assert_allclose(precomputed, whole, atol=1e-9)


def test_labels_of_one_row_are_left_out_together():
    rng = np.random.default_rng(1)
    X, row = rng.normal(size=(15, 3)), np.append(np.arange(15), rng.integers(0, 15, 12))
    label = np.append([0, 1, 2], rng.integers(0, 3, 24))
    weight = rng.integers(1, 4, 27)
    for model in (KernelRidge(kernel="rbf", reg=0.3, n_jobs=1), WeightedNeighbors(n_neighbors=4, n_jobs=1)):
        found = flipcert.suspicious_labels(model, X, Annotations(row, label, weight=weight))
        for i in range(15):
            left = row != i
            own = Annotations(row[left] - (row[left] > i), label[left], weight=weight[left])
            fitted = clone(model).set_params(classes=[0, 1, 2]).fit(np.delete(X, i, axis=0), own)
            (scores,) = fitted.decision_function(X[i : i + 1])
            for k in np.flatnonzero(row == i):
                assert found[k] == pytest.approx(np.delete(scores, label[k]).max() - scores[label[k]], abs=1e-9)


def test_label_free_pipelines_are_left_out_behind_their_transformers():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 4)), np.append([0, 1], rng.integers(0, 2, 28))
    found = flipcert.suspicious_labels(make_pipeline(Normalizer(), KernelSVM(kernel="rbf", n_jobs=1)), X, y)
    expected = flipcert.suspicious_labels(KernelSVM(kernel="rbf", n_jobs=1), Normalizer().transform(X), y)
    # The product of a matrix with itself has a routine of its own in BLAS, which may round in another way.
    np.testing.assert_allclose(found, expected, rtol=1e-12)


CROSSED = (
    PartitionEnsemble(KernelRidge(n_jobs=1), 2, n_jobs=1),
    make_pipeline(SelectKBest(k=2), KernelRidge(n_jobs=1)),
    make_pipeline(StandardScaler(), LogisticRegression()),
    RandomForestClassifier(5, random_state=0),
)


@pytest.mark.parametrize("model", CROSSED, ids=lambda model: type(model).__name__)
def test_others_are_fitted_without_one_fold(model):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(31, 4)), np.append([0, 1, 2], rng.integers(0, 3, 28))
    found = flipcert.suspicious_labels(model, X, y, cv=3, random_state=7)
    assert np.array_equal(found, flipcert.suspicious_labels(model, X, y, cv=3, random_state=7))
    assert not np.array_equal(found, flipcert.suspicious_labels(model, X, y, cv=3, random_state=8))
    from flipcert.audit.suspicion import _dealt

    fold = _dealt(y, 3, 7)
    for c in range(3):
        sizes = np.bincount(fold[y == c], minlength=3)
        assert sizes.max() - sizes.min() <= 1
    for number in range(3):
        own = clone(model).fit(X[fold != number], y[fold != number])
        scores = own.decision_function(X) if hasattr(own, "decision_function") else own.predict_proba(X)
        assert np.array_equal(found[fold == number], margins(scores, y)[fold == number])


def test_a_class_that_a_fold_lacks_is_the_last_of_all():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 3)), np.append(np.arange(20) % 3, [])
    y[5], y[y == 2] = 5, 1
    found = suspicion_of(LogisticRegression(), X, y.astype(int), cv=4)
    assert found.margin[5] >= 0
    assert found.preferred[5] in (0, 1)
    assert np.isfinite(found.margin).all()


def test_kernel_matrices_of_others_are_cut_on_both_sides():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(24, 3)), np.append([0, 1], rng.integers(0, 2, 22))
    found = flipcert.suspicious_labels(SVC(kernel="precomputed"), X @ X.T, y)
    np.testing.assert_allclose(found, flipcert.suspicious_labels(SVC(kernel="linear"), X, y), atol=1e-3)


def test_planted_mistakes_are_found():
    X, y = load_digits(return_X_y=True)
    wrong, rng = y.copy(), np.random.default_rng(0)
    planted = rng.choice(len(y), 100, replace=False)
    wrong[planted] = (y[planted] + rng.integers(1, 10, 100)) % 10
    found = suspicion_of(KernelRidge(reg=10.0, n_jobs=1), X / 16, wrong)
    first = np.argsort(-found.margin)[:100]
    # By chance there would be six.
    assert np.isin(first, planted).sum() > 80
    assert np.mean(found.preferred[planted] == y[planted]) > 0.8


def test_memory_is_bounded_and_progress_shown():
    import sklearn

    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 3, 500)
    for model in (KernelRidge(kernel="linear", n_jobs=1), KernelSVM(kernel="rbf", n_jobs=1), WeightedNeighbors()):
        whole = flipcert.suspicious_labels(model, X, y)
        looker = Looker()
        with sklearn.config_context(working_memory=0.1), watched_by(looker):
            np.testing.assert_allclose(flipcert.suspicious_labels(model, X, y), whole, atol=1e-9)
        assert looker.done["labels"] == [500, 500]


def test_bad_input_is_told_in_one_sentence():
    X, y = np.eye(6), [0, 1] * 3
    with pytest.raises(ValueError, match="y must hold one label for each of the 6 rows of X; got 5"):
        flipcert.suspicious_labels(KernelRidge(), X, y[:5])
    with pytest.raises(ValueError, match="cv must be at least 2; got 1"):
        flipcert.suspicious_labels(KernelRidge(), X, y, cv=1)
    with pytest.raises(ValueError, match="cv must be at most the 6 labels that there are; got 7"):
        flipcert.suspicious_labels(LogisticRegression(), X, y, cv=7)
    with pytest.raises(ValueError, match="y has one class only"):
        flipcert.suspicious_labels(KernelRidge(), X, [1] * 6)
    with pytest.raises(ValueError, match="estimator must be a classifier object"):
        flipcert.suspicious_labels(StandardScaler(), X, y)
    with pytest.raises(ValueError, match="got Annotations, but LogisticRegression has to be fitted again"):
        flipcert.suspicious_labels(LogisticRegression(), X, Annotations(np.arange(6), y))
    with pytest.raises(ValueError, match="model must have decision_function or predict_proba; OnlyPredicts has none"):
        flipcert.suspicious_labels(OnlyPredicts(), X, y)


class OnlyPredicts(Perceptron):
    decision_function = property()
