"""Pipelines whose transformers never see a label, and those that are refused."""

from __future__ import annotations

import functools
from dataclasses import replace

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler, TargetEncoder

import flipcert
from flipcert.labels.known_transformers import is_label_free


class Centre(TransformerMixin, BaseEstimator):
    """A user's transformer that takes y and leaves it alone."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


def shifted(X, y):
    """Features that tell the labels."""
    return X + np.asarray(y)[:, None]


# Transformers that use labels, and hide it as well as they can.


class Keywords(Centre):
    def fit(self, X, *args, **kwargs):
        return super().fit(X[args[0] == 0])


class Locals(Centre):
    def fit(self, X, y=None):
        return super().fit(
            shifted(X, next(iter(v for k, v in locals().items() if k not in ("self", "X", "__class__"))))
        )


def quietly(method):
    @functools.wraps(Centre.fit)
    def fit(self, X, *rest):
        return method(self, X, *rest)

    return fit


class Wrapped(Centre):
    fit = quietly(lambda self, X, y: Centre.fit(self, shifted(X, y)))


class Scaler(StandardScaler):
    """Overrides what scikit-learn's own fit calls, under a borrowed name."""

    def partial_fit(self, X, y=None, sample_weight=None):
        return super().partial_fit(shifted(X, y))


Scaler.__name__ = Scaler.__qualname__ = "StandardScaler"
Scaler.__module__ = StandardScaler.__module__


class Columns(ColumnTransformer):
    def fit_transform(self, X, y=None, **params):
        return super().fit_transform(shifted(X, y), y)


class Union(FeatureUnion):
    def fit_transform(self, X, y=None, **params):
        return super().fit_transform(shifted(X, y), y)


class Text(TransformerMixin, BaseEstimator, str):
    """Looks like the word that skips a step."""

    def __eq__(self, other):
        return False

    def __ne__(self, other):
        return True

    __hash__ = str.__hash__

    def fit(self, X, y):
        self.shift_ = np.mean(y)
        return self

    def transform(self, X):
        return X + self.shift_


class Free(flipcert.LabelFree):
    def fit(self, X, y=None):
        return super().fit(shifted(X, y))

    fit_transform = TransformerMixin.fit_transform


class Piped(Pipeline):
    def fit(self, X, y=None, **params):
        return super().fit(shifted(X, y), y, **params)

    def fit_transform(self, X, y=None, **params):
        return super().fit_transform(shifted(X, y), y, **params)


def with_own(transformer, method):
    """A method of the instance, which sees y."""
    original = getattr(transformer, method)
    setattr(transformer, method, lambda X, y=None, **rest: original(shifted(X, y), **rest))
    return transformer


class Reader:
    """A cache that reads along."""

    def cache(self, function, **options):
        return lambda transformer, X, y, *rest, **more: function(transformer, shifted(X, y), y, *rest, **more)


LABEL_FREE = [
    StandardScaler(),
    PCA(2),
    VarianceThreshold(),
    FunctionTransformer(np.tanh),
    flipcert.LabelFree(Centre()),
    flipcert.LabelFree(PCA(1)),
    KMeans(2, random_state=0),
    "passthrough",
    None,
    make_pipeline(MinMaxScaler(), PCA(1)),
    Pipeline([("scaled", StandardScaler()), ("end", "passthrough")]),
    FeatureUnion([("scaled", StandardScaler()), ("pca", PCA(1)), ("as it is", "passthrough"), ("gone", "drop")]),
    FeatureUnion([("a", PCA(1)), ("b", flipcert.LabelFree(Centre()))], transformer_weights={"a": 2.0}),
    ColumnTransformer([("first", StandardScaler(), [0])], remainder="passthrough"),
    ColumnTransformer([("first", "drop", [0])], remainder=make_pipeline(StandardScaler(), PCA(1))),
]
SUPERVISED = {
    "selectkbest": SelectKBest(k=1),
    "selectfrommodel": SelectFromModel(LogisticRegression()),
    "lineardiscriminantanalysis": LinearDiscriminantAnalysis(),
    "neighborhoodcomponentsanalysis": NeighborhoodComponentsAnalysis(),
    "targetencoder": TargetEncoder(),
    "keywords": Keywords(),
    "locals": Locals(),
    "wrapped": Wrapped(),
    "standardscaler": Scaler(),
    "columns": Columns([("first", StandardScaler(), [0])]),
    "union": Union([("scaled", StandardScaler())]),
    "piped": Piped([("scaled", StandardScaler())]),
    "pipeline__text": Pipeline([("text", Text("passthrough"))]),
    "free": Free(StandardScaler()),
    "pipeline__selectkbest": make_pipeline(StandardScaler(), SelectKBest(k=1)),
    "featureunion__best": FeatureUnion([("scaled", StandardScaler()), ("best", SelectKBest(k=1))]),
    "columntransformer__best": ColumnTransformer([("best", SelectKBest(k=1), [0, 1])]),
    "columntransformer__remainder": ColumnTransformer([("first", "drop", [0])], remainder=SelectKBest(k=1)),
    "pipeline__union": make_pipeline(Union([("scaled", StandardScaler())])),
    "featureunion__free": FeatureUnion([("free", Free(StandardScaler()))]),
}


@pytest.mark.parametrize("transformer", LABEL_FREE, ids=str)
def test_label_free_transformers(transformer, blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(transformer, flipcert.KernelRidge(classes=[0, 1, 2])).fit(X, y)
    certificates = flipcert.certify(pipeline, X_test)
    direct = pipeline[-1].certify(pipeline[:-1].transform(X_test))
    assert np.array_equal(certificates.radius, direct.radius)
    assert np.array_equal(certificates.prediction, pipeline.predict(X_test))
    for t, witness in enumerate(flipcert.worst_flips(pipeline, X_test)):
        assert len(witness) == certificates.radius[t] + 1
        after = pipeline.fit(X, witness.apply(y)).predict(X_test[t : t + 1])
        assert after == certificates.target[t] != certificates.prediction[t]


@pytest.mark.parametrize("name", SUPERVISED)
def test_transformers_that_may_use_labels_are_refused(name, blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(SUPERVISED[name], flipcert.KernelSVM()).fit(X, y)
    inner = name.split("__")[-1]
    for question in (flipcert.certify, flipcert.worst_flips):
        with pytest.raises(
            ValueError, match=rf"the step '{name}' \((\w+)\) may use y.*: flipcert.LabelFree\(\1\("
        ) as e:
            question(pipeline, X_test)
        assert inner == "best" or inner in str(e.value).lower()


HIDDEN = ["keywords", "locals", "wrapped", "standardscaler", "columns", "union", "piped", "pipeline__text", "free"]


@pytest.mark.parametrize("name", HIDDEN)
def test_those_that_hide_it_do_use_labels(name, blobs):
    """Nobody would refuse in vain: other labels lead to other features."""
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(SUPERVISED[name], flipcert.KernelSVM())
    before, after = (pipeline.fit(X, labels)[:-1].transform(X_test) for labels in (y, np.arange(30) % 2))
    assert not np.allclose(before, after)


@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit", "_reset"])
def test_methods_of_an_instance_are_refused(method, blobs):
    _, _, X_test, _ = blobs
    pipeline = make_pipeline(with_own(StandardScaler(), method), flipcert.KernelSVM())
    with pytest.raises(ValueError, match=rf"'standardscaler' \(StandardScaler\) has a method {method} of its own"):
        flipcert.certify(pipeline, X_test)
    assert not is_label_free(pipeline)


def test_methods_of_an_instance_of_other_kinds(blobs):
    X, y, X_test, _ = blobs
    frozen = FrozenEstimator(StandardScaler().fit(X))
    frozen.fit_transform = lambda X, y=None: shifted(X, y)
    free = with_own(flipcert.LabelFree(StandardScaler()), "fit_transform")
    union = with_own(FeatureUnion([("s", StandardScaler())]), "fit_transform")
    columns = with_own(ColumnTransformer([("s", StandardScaler(), [0])]), "fit_transform")
    for transformer in (frozen, free, union, columns):
        pipeline = make_pipeline(transformer, flipcert.KernelSVM()).fit(X, y)
        with pytest.raises(ValueError, match="has a method fit_transform of its own, which may use y"):
            flipcert.certify(pipeline, X_test)
    pipeline = with_own(make_pipeline(StandardScaler(), flipcert.KernelSVM()).fit(X, y), "_fit")
    with pytest.raises(ValueError, match="the pipeline has a method _fit of its own"):
        flipcert.certify(pipeline, X_test)


def test_pipelines_of_another_kind_are_refused(blobs):
    X, y, X_test, _ = blobs
    pipeline = Piped([("scaled", StandardScaler()), ("svm", flipcert.KernelSVM())]).fit(X, y)
    with pytest.raises(ValueError, match=r"Piped is a pipeline of its own kind.*use sklearn\.pipeline\.Pipeline"):
        flipcert.certify(pipeline, X_test)
    with pytest.raises(ValueError, match="Piped is a pipeline of its own kind"):
        flipcert.certify(make_pipeline(StandardScaler(), pipeline), X_test)


def test_caches_that_read_along_are_refused(blobs, tmp_path):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(StandardScaler(), flipcert.KernelSVM())
    plain = flipcert.certify(pipeline.fit(X, y), X_test)
    for memory in (str(tmp_path), joblib.Memory(tmp_path, verbose=0)):
        cached = make_pipeline(StandardScaler(), flipcert.KernelSVM(), memory=memory).fit(X, y)
        assert np.array_equal(flipcert.certify(cached, X_test).radius, plain.radius)
    meddled = joblib.Memory(None)
    meddled.cache = lambda function, **_: function
    for memory in (Reader(), meddled):
        pipeline.set_params(memory=memory).fit(X, y)
        with pytest.raises(ValueError, match=r"the pipeline has memory=.*, which is given y"):
            flipcert.certify(pipeline, X_test)


class Meddler:
    """A callback that moves features by labels."""

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context, *, y=None):
        if isinstance(estimator, Pipeline):
            estimator.steps[0][1].mean_ = np.full(2, np.mean(y))


@pytest.mark.parametrize("owner", ["pipeline", "step"])
def test_callbacks_are_refused(owner, blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(StandardScaler(), flipcert.KernelSVM())
    # What set_callbacks does, in versions that have it.
    (pipeline if owner == "pipeline" else pipeline[0])._skl_callbacks = [Meddler()]
    pipeline.fit(X, y)
    with pytest.raises(ValueError, match="has the callback Meddler, which is given y; fit without callbacks"):
        flipcert.certify(pipeline, X_test)


def test_what_was_fitted_elsewhere_stays_as_it_is(blobs):
    X, y, X_test, y_test = blobs
    selection = SelectKBest(k=1).fit(X_test, y_test)
    pipeline = make_pipeline(FrozenEstimator(selection), flipcert.KernelRidge(classes=[0, 1, 2])).fit(X, y)
    certificates = flipcert.certify(pipeline, X_test)
    direct = flipcert.KernelRidge(classes=[0, 1, 2]).fit(selection.transform(X), y)
    assert np.array_equal(certificates.radius, direct.certify(selection.transform(X_test)).radius)
    for t, witness in enumerate(flipcert.worst_flips(pipeline, X_test)):
        assert pipeline.fit(X, witness.apply(y)).predict(X_test[t : t + 1]) != certificates.prediction[t]


def test_a_pipeline_that_was_changed_after_it_was_fitted(blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(StandardScaler(), ColumnTransformer([("a", MinMaxScaler(), [0, 1])]), flipcert.KernelSVM())
    pipeline.fit(X, y)
    pipeline.set_params(standardscaler="passthrough")
    assert np.array_equal(flipcert.certify(pipeline, X_test).prediction, pipeline.predict(X_test))
    # The fitted parts scale, and the next fit would select.
    pipeline.set_params(columntransformer__a=SelectKBest(k=1))
    with pytest.raises(ValueError, match=r"the step 'columntransformer__a' \(SelectKBest\) may use y"):
        flipcert.certify(pipeline, X_test)


def test_a_pipeline_at_the_end_of_a_pipeline(blobs):
    X, y, X_test, _ = blobs
    inner = make_pipeline(PCA(2), flipcert.KernelSVM())
    pipeline = make_pipeline(StandardScaler(), inner).fit(X, y)
    assert np.array_equal(flipcert.certify(pipeline, X_test).prediction, pipeline.predict(X_test))
    with pytest.raises(ValueError, match="'selectkbest'"):
        flipcert.certify(make_pipeline(StandardScaler(), make_pipeline(SelectKBest(k=2), inner)).fit(X, y), X_test)


def test_pipeline_with_an_ensemble_and_options(blobs):
    X, y, X_test, _ = blobs
    ensemble = flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=3)
    pipeline = make_pipeline(StandardScaler(), ensemble).fit(X, y)
    assert flipcert.certify(pipeline, X_test, exact=True).exact.all()
    assert len(flipcert.worst_flips(pipeline, X_test, exact=True)) == len(X_test)


def test_trusted_labels_through_a_pipeline(blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(StandardScaler(), flipcert.KernelSVM())
    pipeline.fit(X, y, kernelsvm__trusted=np.ones(30, bool))
    assert (flipcert.certify(pipeline, X_test).radius == 30).all()


def test_bare_estimators(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.KernelSVM().fit(X, y)
    assert np.array_equal(flipcert.certify(model, X_test).radius, model.certify(X_test).radius)
    assert np.array_equal(flipcert.certify(make_pipeline(model), X_test).radius, model.certify(X_test).radius)
    (found,), (direct,) = flipcert.worst_flips(model, X_test[:1]), model.worst_flips(X_test[:1])
    assert np.array_equal(found.indices, direct.indices)
    for question in (flipcert.certify, flipcert.worst_flips):
        with pytest.raises(TypeError, match=r"LogisticRegression has no certificate.*PartitionEnsemble"):
            question(LogisticRegression().fit(X, y), X_test)
        with pytest.raises(ValueError, match=r'threat must be "flips".*got \'bribes\''):
            question(model, X_test, threat="bribes")


def test_a_search_on_labels_is_refused(blobs):
    X, y, X_test, _ = blobs
    search = GridSearchCV(flipcert.KernelRidge(), {"reg": [0.1, 1.0]}, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="GridSearchCV chose hyper-parameters from labels"):
        flipcert.certify(search, X_test)
    assert len(flipcert.certify(search.best_estimator_, X_test)) == len(X_test)


class OwnFit(flipcert.KernelRidge):
    """Labels change the inputs, and nothing that is inherited knows of it."""

    def fit(self, X, y, trusted=None):
        return super().fit(X + np.asarray(y)[:, None], y, trusted)


class OwnLabels(flipcert.KernelRidge):
    """The same by the door inside."""

    def _fit(self, training):
        super()._fit(replace(training, inputs=training.inputs + training.labels.codes[:, None]))


class OwnPrediction(flipcert.WeightedNeighbors):
    def predict(self, X):
        return super().predict(X)[::-1]


class Aside:
    def fit(self, X, y, trusted=None):
        return super().fit(np.asarray(X) * np.mean(y), y, trusted)


class Mixed(Aside, flipcert.KernelSVM):
    """The fit of a class that comes before."""


class Hidden(flipcert.KernelSVM):
    def __getattribute__(self, name):
        return super().__getattribute__("_other_fit" if name == "fit" else name)

    def _other_fit(self, X, y, trusted=None):
        return flipcert.KernelSVM.fit(self, X + np.asarray(y)[:, None], y, trusted)


class OwnEnsemble(flipcert.PartitionEnsemble):
    def fit(self, X, y, trusted=None):
        return super().fit(X + np.asarray(y)[:, None], y, trusted)


Borrowed = type("KernelRidge", (OwnFit,), {"__module__": "flipcert.classifiers.ridge"})

ALTERED = {
    "fit": (OwnFit(), "OwnFit has a fit of its own"),
    "labels": (OwnLabels(), "OwnLabels has a _fit of its own"),
    "prediction": (OwnPrediction(), "OwnPrediction has a predict of its own"),
    "mixed": (Mixed(), r"Mixed has a fit of its own \(from Aside\), but \w+ comes from CertifiedClassifier"),
    "hidden": (Hidden(), "Hidden has a __getattribute__ of its own"),
    "borrowed name": (Borrowed(), "has a fit of its own"),
}


@pytest.mark.parametrize("name", [*ALTERED, "ensemble"])
def test_classifiers_whose_fit_is_not_the_one_that_is_proven_are_refused(name, blobs):
    X, y, X_test, _ = blobs
    told = "OwnEnsemble has a fit of its own"
    model, told = ALTERED.get(name, (OwnEnsemble(flipcert.KernelSVM(), 3), told))
    for fitted in (model.fit(X, y), make_pipeline(StandardScaler(), model).fit(X, y)):
        for ask in (flipcert.certify, flipcert.worst_flips):
            with pytest.raises(ValueError, match=told):
                ask(fitted, X_test)


@pytest.mark.parametrize("name", ALTERED)
def test_bases_whose_fit_is_not_the_one_that_is_proven_are_refused(name, blobs):
    X, y, _, _ = blobs
    model, told = ALTERED[name]
    for base in (model, make_pipeline(StandardScaler(), model)):
        with pytest.raises(ValueError, match=told):
            flipcert.PartitionEnsemble(base, 3).fit(X, y)


def test_objects_with_methods_of_their_own_are_refused(blobs):
    X, y, X_test, _ = blobs
    for name in ("fit", "predict", "certify", "_make_weights"):
        model = flipcert.KernelRidge().fit(X, y)
        setattr(model, name, lambda *arguments, **options: None)
        with pytest.raises(ValueError, match=f"this KernelRidge object has a {name} of its own"):
            flipcert.certify(model, X_test)


class Doubled(flipcert.KernelRidge):
    """Other weights, which never see a label, and all else as it is."""

    def __init__(self, kernel="rbf", reg=1.0, classes=None, n_jobs=None):
        super().__init__(kernel, reg, classes, n_jobs)

    def _make_weights(self, X):
        weights = super()._make_weights(X)
        form = weights.form

        def twice(rows, out):
            form(rows, out)
            out *= 2

        weights.form = twice
        return weights

    def score(self, X, y):
        return 1.0


class Vouched(OwnFit):
    """Someone who proves his own."""

    def certify(self, X, **options):
        return super().certify(X, **options)

    def worst_flips(self, X, **options):
        return [None] * len(X)


def test_subclasses_with_weights_or_proofs_of_their_own_are_welcome(blobs):
    X, y, X_test, _ = blobs
    usual = flipcert.KernelRidge("rbf").fit(X, y).certify(X_test)
    doubled = Doubled().fit(X, y)
    assert np.array_equal(flipcert.certify(doubled, X_test).radius, usual.radius)
    assert len(flipcert.worst_flips(doubled, X_test)) == len(X_test)
    assert flipcert.PartitionEnsemble(Doubled(), 3).fit(X, y).certify(X_test).radius.size == len(X_test)
    vouched = Vouched().fit(X, y)
    assert len(flipcert.certify(vouched, X_test)) == len(X_test)
    assert flipcert.worst_flips(vouched, X_test)[0] is None
