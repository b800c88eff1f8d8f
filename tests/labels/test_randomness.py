"""What makes each fit another one is found, however deep it is hidden."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import NMF, PCA, KernelPCA, TruncatedSVD
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, RandomTreesEmbedding, VotingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import Isomap, LocallyLinearEmbedding
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    ShuffleSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, QuantileTransformer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.tree import DecisionTreeClassifier, ExtraTreeRegressor

import flipcert
from flipcert.labels.randomness import chances


class Jitter(TransformerMixin, BaseEstimator):
    """A user's transformer with a source of random numbers under any name."""

    def __init__(self, noise=None):
        self.noise = noise

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Holder:
    """Any object that knows a source."""

    def __init__(self, source):
        self.source = source

    def kernel(self, X, Z):
        return X @ Z.T * self.source.random()


def multiplied(generator, X):
    return X * generator.random()


def closed_over(generator):
    return lambda X: multiplied(generator, X)


def kernel_over(generator):
    return lambda X, Z: X @ Z.T * generator.random()


RNG = np.random.default_rng(0)
UNSEEDED = {
    "kmeans__random_state": KMeans(2),
    "pipeline__kmeans__random_state": make_pipeline(StandardScaler(), KMeans(2)),
    "featureunion__b__random_state": FeatureUnion([("a", StandardScaler()), ("b", KMeans(2))]),
    "columntransformer__a__random_state": ColumnTransformer([("a", KMeans(2), [0, 1])]),
    "columntransformer__remainder__random_state": ColumnTransformer([("a", "drop", [0])], remainder=KMeans(2)),
    "labelfree__transformer__random_state": flipcert.LabelFree(KMeans(2)),
    "randomtreesembedding__random_state": RandomTreesEmbedding(2, sparse_output=False),
    "nystroem__random_state": Nystroem(n_components=5),
    "rbfsampler__random_state": RBFSampler(),
    "gaussianrandomprojection__random_state": GaussianRandomProjection(1),
    "truncatedsvd__random_state": TruncatedSVD(1),
    "pca__random_state": PCA(1, svd_solver="randomized"),
    "kernelpca__random_state": KernelPCA(2),
    "locallylinearembedding__random_state": LocallyLinearEmbedding(),
    "quantiletransformer__random_state": QuantileTransformer(n_quantiles=5),
    "isomap__eigen_solver": Isomap(),
    "iterativeimputer__sample_posterior": IterativeImputer(sample_posterior=True, random_state=0),
    "iterativeimputer__imputation_order": IterativeImputer(imputation_order="random", random_state=0),
    "iterativeimputer__n_nearest_features": IterativeImputer(n_nearest_features=1, random_state=0),
    "iterativeimputer__estimator__random_state": IterativeImputer(ExtraTreeRegressor(), random_state=0),
    "functiontransformer__func__args[0]": FunctionTransformer(partial(multiplied, RNG)),
    "functiontransformer__func__generator": FunctionTransformer(closed_over(random.Random(0))),
    "functiontransformer__func__self": FunctionTransformer(np.random.permutation),
    "functiontransformer__kw_args['of'][0]": FunctionTransformer(lambda X, of: X, kw_args={"of": [RNG]}),
    "labelfree__transformer__noise": flipcert.LabelFree(Jitter(np.random.RandomState(0))),
    "labelfree__transformer__noise__source": flipcert.LabelFree(Jitter(Holder(RNG))),
}
DETERMINISTIC = [
    KMeans(2, random_state=0),
    KMeans(2, random_state=np.int64(1)),
    PCA(),
    PCA(1, svd_solver="full"),
    FeatureUnion([("a", PCA(1))]),
    ColumnTransformer([("a", PCA(1), [0, 1])]),
    ColumnTransformer([("a", "drop", [])], remainder=PCA(1)),
    flipcert.LabelFree(PCA(1)),
    make_pipeline(flipcert.LabelFree(FeatureUnion([("a", PCA(1))]))),
    KernelPCA(),
    KernelPCA(12),
    KernelPCA(2, eigen_solver="dense"),
    Isomap(eigen_solver="dense"),
    QuantileTransformer(n_quantiles=5, subsample=None),
    IterativeImputer(),
    IterativeImputer(ExtraTreeRegressor(random_state=0)),
    FunctionTransformer(np.tanh),
    FunctionTransformer(partial(np.multiply, 2.0)),
]


@pytest.mark.parametrize("parameter", UNSEEDED)
def test_pipelines_need_seeds(parameter, blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(UNSEEDED[parameter], flipcert.KernelSVM()).fit(X, y)
    for question in (flipcert.certify, flipcert.worst_flips):
        with pytest.raises(ValueError, match="so every fit would lead to other features") as refusal:
            question(pipeline, X_test)
        assert str(refusal.value).startswith(f"{parameter} of the pipeline is ")


@pytest.mark.parametrize("transformer", DETERMINISTIC)
def test_pipelines_that_draw_nothing(transformer, blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(transformer, flipcert.KernelSVM(classes=[0, 1, 2])).fit(X, y)
    before = flipcert.certify(pipeline, X_test)
    features = pipeline[:-1].transform(X_test)
    # Not even the bits change, in a copy as in the pipeline itself.
    for again in (clone(pipeline), pipeline):
        assert np.array_equal(again.fit(X, y)[:-1].transform(X_test), features)
        assert np.array_equal(flipcert.certify(again, X_test).radius, before.radius)


def test_what_the_remedies_say_helps(blobs):
    X, y, X_test, _ = blobs
    for transformer in (KMeans(2), Isomap(), PCA(1, svd_solver="randomized")):
        inputs = np.abs(X)
        pipeline = make_pipeline(transformer, flipcert.KernelSVM()).fit(inputs, y)
        with pytest.raises(ValueError, match=rf"give {type(transformer).__name__}\(\.\.\., (\w+)=(.*)\)") as refusal:
            flipcert.certify(pipeline, np.abs(X_test))
        name, value = str(refusal.value).rstrip(").").split("(..., ")[1].split("=")
        pipeline[0].set_params(**{name: eval(value)})
        assert len(flipcert.certify(pipeline.fit(inputs, y), np.abs(X_test))) == 15


def test_the_solver_that_was_used_decides(digits):
    """Large inputs and few components: "auto" draws random numbers."""
    X, y, X_test, _ = digits
    X, X_test = np.tile(X, (1, 16)), np.tile(X_test, (1, 16))
    few, many = (make_pipeline(PCA(n), flipcert.KernelSVM()).fit(X[:1100], y[:1100]) for n in (5, 900))
    with pytest.raises(ValueError, match=r"pca__random_state .* is None.*give PCA\(\.\.\., random_state=0\)"):
        flipcert.certify(few, X_test[:2])
    assert len(flipcert.certify(many, X_test[:2])) == 2


def test_columns_that_are_drawn(blobs):
    X, y, X_test, _ = blobs

    def drawn(Z, source=RNG):
        return source.permutation(2)

    pipeline = make_pipeline(ColumnTransformer([("a", StandardScaler(), drawn)]), flipcert.KernelSVM()).fit(X, y)
    with pytest.raises(ValueError, match="is a Generator, so every fit would lead to other features"):
        flipcert.certify(pipeline, X_test)


def test_what_is_frozen_is_not_fitted_again(blobs):
    X, y, X_test, _ = blobs
    pipeline = make_pipeline(FrozenEstimator(KMeans(2).fit(X)), flipcert.KernelSVM()).fit(X, y)
    assert len(flipcert.certify(pipeline, X_test)) == 15


def searched(cv):
    return GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2]}, cv=cv)


TREES = [DecisionTreeClassifier(), GaussianNB()]
RANDOM_BASES = [
    ("cv__random_state", "None", searched(KFold(2, shuffle=True))),
    ("cv__random_state", "None", searched(ShuffleSplit(2))),
    ("cv__random_state", "None", searched(RepeatedStratifiedKFold(n_splits=2))),
    ("cv__random_state", "a RandomState", searched(KFold(2, shuffle=True, random_state=np.random.RandomState(0)))),
    ("estimator__cv__random_state", "None", BaggingClassifier(searched(KFold(2, shuffle=True)), 2)),
    ("a__cv__random_state", "None", VotingClassifier([("a", searched(KFold(shuffle=True))), ("b", GaussianNB())])),
    ("param_grid['a'][0]__random_state", "None", GridSearchCV(Pipeline([("a", TREES[0])]), {"a": TREES})),
    (
        "param_grid[1]['a'][0]__random_state",
        "None",
        GridSearchCV(Pipeline([("a", GaussianNB())]), [{"a": [GaussianNB()]}, {"a": np.array(TREES, object)}]),
    ),
    ("param_grid['random_state']", "None", GridSearchCV(DecisionTreeClassifier(), {"random_state": [0, None]}, cv=2)),
    ("random_state", "a RandomState", DecisionTreeClassifier(random_state=np.random.RandomState(0))),
    (
        "estimator__random_state",
        "a RandomState",
        flipcert.FixedBudget(RandomForestClassifier(random_state=np.random.RandomState(0)), multiplied),
    ),
    ("jitter__noise", "a Generator", make_pipeline(Jitter(RNG), GaussianNB())),
    ("isomap__eigen_solver", "'auto'", make_pipeline(Isomap(), flipcert.KernelSVM())),
    ("kernel__generator", "a Generator", flipcert.KernelSVM(kernel_over(RNG))),
    ("kernel__self__source", "a Generator", flipcert.KernelSVM(Holder(RNG).kernel)),
]


@pytest.mark.parametrize(("parameter", "value", "base"), RANDOM_BASES)
def test_bases_that_cannot_be_seeded_are_refused(parameter, value, base, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="so its votes would change from fit to fit; give ") as refusal:
        flipcert.PartitionEnsemble(base, 2).fit(X, y)
    assert str(refusal.value).startswith(f"{parameter} of the base estimator is {value}, ")


@pytest.mark.parametrize(
    "base",
    [
        searched(KFold(2)),
        searched(KFold(2, shuffle=True, random_state=0)),
        searched(ShuffleSplit(2, random_state=0)),
        searched(2),
        RandomizedSearchCV(LogisticRegression(), {"C": stats.uniform(1, 2)}, n_iter=2, cv=2),
        BaggingClassifier(DecisionTreeClassifier(), 2),
        VotingClassifier([("a", RandomForestClassifier(2)), ("b", GaussianNB())]),
        make_pipeline(KMeans(2), GaussianNB()),
        make_pipeline(SelectKBest(k=1), PCA(1, svd_solver="randomized"), flipcert.KernelSVM()),
        make_pipeline(KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), flipcert.KernelSVM()),
        make_pipeline(RBFSampler(n_components=5), flipcert.KernelRidge()),
        make_pipeline(flipcert.LabelFree(KMeans(2)), flipcert.KernelRidge()),
    ],
)
def test_bases_that_are_seeded_vote_alike(base, blobs):
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(base, 3, classes=[0, 1, 2])
    first, second = (clone(model).fit(X, y) for _ in range(2))
    assert np.array_equal(first.decision_function(X_test), second.decision_function(X_test))


def test_verifiers_may_draw(blobs):
    """A verifier has no part in a fit, so it may search for proofs as it likes."""
    X, y, X_test, _ = blobs
    base = flipcert.FixedBudget(GaussianNB(), lambda model, X, n_flips: RNG.random(len(X)) < 0, classes=None)
    assert list(chances(base)) == []
    assert list(chances(flipcert.FixedBudget(GaussianNB(), partial(multiplied, RNG)))) == []
    assert len(flipcert.PartitionEnsemble(base, 2).fit(X, y).certify(X_test)) == 15


def test_a_seed_is_not_idle_because_nothing_is_shuffled():
    """NMF has a parameter shuffle, and starts at random."""
    assert [chance.parameter for chance in chances(NMF(shuffle=False))] == ["random_state"]
    assert list(chances(KFold(shuffle=False))) == []


def test_circles_end():
    loop = Jitter()
    loop.noise = [loop, {"again": loop}]
    assert list(chances(loop)) == []
