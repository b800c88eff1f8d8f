"""Label-linear estimators: scikit-learn manners, the small-C theorem, the same answers as other implementations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge as SklearnRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import flipcert
from flipcert.kernels import NTK, RBF

MODELS = [
    flipcert.KernelSVM(),
    flipcert.KernelSVM(kernel=NTK(activation="relu")),
    flipcert.KernelRidge(),
    flipcert.KernelRidge(kernel="rbf", reg=0.1),
    flipcert.WeightedNeighbors(),
    flipcert.WeightedNeighbors(n_neighbors=None, weights=RBF()),
    flipcert.WeightedNeighbors(n_neighbors=3, weights="distance"),
]
ENSEMBLES = [
    flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=3),
    flipcert.PartitionEnsemble(flipcert.KernelRidge()),
    flipcert.PartitionEnsemble(DecisionTreeClassifier(), n_partitions=2, partition="random"),
]


@parametrize_with_checks([*MODELS, *ENSEMBLES])
def test_scikit_learn_manners(estimator, check):
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # needs SCIPY_ARRAY_API set before scipy is imported; these estimators do not declare array API support
    check(estimator)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize(
    "names", [np.array(["cat", "dog", "emu"]), np.array([30, -2, 7]), np.array(["b", "a", "c"], dtype=object)]
)
def test_labels_of_any_type(model, names, blobs):
    X, y, X_test, _ = blobs
    order = np.unique(names, return_inverse=True)[1]
    plain = clone(model).fit(X, order[y]).certify(X_test)
    named = clone(model).fit(X, names[y])
    certificates = named.certify(X_test)
    assert np.array_equal(named.classes_, np.unique(names))
    assert np.array_equal(certificates.prediction, named.classes_[plain.prediction])
    assert np.array_equal(certificates.radius, plain.radius)
    assert np.array_equal(named.predict(X_test), certificates.prediction)


def test_boolean_labels(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.KernelSVM().fit(X, y == 1)
    assert model.predict(X_test).dtype == bool
    assert model.decision_function(X_test).shape == (len(X_test),)
    assert np.array_equal(model.decision_function(X_test) > 0, model.predict(X_test))
    assert set(model.worst_flips(X_test)[0].labels.tolist()) <= {True, False}


@pytest.mark.parametrize("model", [*MODELS, ENSEMBLES[0], ENSEMBLES[1]], ids=str)
def test_witnesses_replay_and_attacks_inside_the_radius_fail(model, blobs):
    X, y, X_test, _ = blobs
    rng = np.random.default_rng(0)
    model = clone(model).set_params(classes=[0, 1, 2]).fit(X, y)
    certificates = model.certify(X_test)
    for t, witness in enumerate(model.worst_flips(X_test)):
        point = X_test[t : t + 1]
        before = certificates.prediction[t]
        assert len(witness) == certificates.radius_upper[t] + 1 == np.unique(witness.indices).size
        flipped = witness.apply(y)
        assert (flipped != y).sum() == len(witness)
        after = clone(model).fit(X, flipped).predict(point)[0]
        assert after != before
        assert after == certificates.target[t]
        # Inside the radius: all but one of the worst flips, and flips at random.
        radius = certificates.radius[t]
        inside = y.copy()
        inside[witness.indices[:radius]] = witness.labels[:radius]
        attacks = [inside]
        for _ in range(5):
            some = rng.choice(len(y), size=radius, replace=False)
            guess = y.copy()
            guess[some] = rng.integers(0, 3, radius)
            attacks.append(guess)
        for attack in attacks:
            assert clone(model).fit(X, attack).predict(point)[0] == before


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_costs_of_an_estimator_are_those_of_its_weights(model, blobs):
    X, y, X_test, _ = blobs
    model = clone(model).fit(X, y)
    weights = model._weights(X_test)
    for bound in ("lower", "upper", "exact"):
        costs = model.flip_costs(X_test, bound=bound)
        assert np.array_equal(costs, flipcert.flip_costs(weights, y, 3, bound=bound))
    certificates = model.certify(X_test)
    assert np.array_equal(certificates.radius, np.sort(costs, axis=1)[:, 1] - 1)
    assert certificates.exact.all()
    assert certificates.blackbox_radius is None
    assert np.array_equal(costs[np.arange(len(X_test)), certificates.prediction], np.zeros(len(X_test)))
    scores = model.decision_function(X_test)
    assert np.array_equal(scores.argmax(axis=1), certificates.prediction)
    assert np.array_equal(np.argsort(-scores, axis=1, kind="stable")[:, 1], certificates.runner_up)


# Kernel SVM


def dual_variables(Q, signs, C):
    """Dual of the soft-margin SVM without bias, by a bounded quasi-Newton solver from the middle of the box."""
    H = signs[:, None] * Q * signs

    def objective(a):
        return 0.5 * a @ H @ a - a.sum(), H @ a - 1

    return minimize(
        objective, np.full(len(signs), C / 2), jac=True, bounds=[(0, C)] * len(signs), method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000},
    ).x  # fmt: skip


@pytest.mark.parametrize("kernel", ["linear", "rbf", NTK(activation="relu", bias_std=0.3)])
def test_small_C_theorem(kernel, blobs):
    X, y, _, _ = blobs
    rng = np.random.default_rng(0)
    model = flipcert.KernelSVM(kernel=kernel).fit(X, y)
    Q = model._kernel(X)
    assert pytest.approx(1 / np.abs(Q).sum(axis=1).max()) == model.C_max_
    C = 0.999 * model.C_max_
    for _ in range(10):
        signs = rng.choice([-1.0, 1.0], len(y))
        assert np.allclose(dual_variables(Q, signs, C), C, rtol=1e-9)
    flipcert.KernelSVM(kernel=kernel, C=C).fit(X, y)
    flipcert.KernelSVM(kernel=kernel, C=1 / np.abs(Q).sum(axis=1).max()).fit(X, y)
    with pytest.raises(ValueError, match=rf"C_max_={model.C_max_:.6g}"):
        flipcert.KernelSVM(kernel=kernel, C=1.001 * model.C_max_).fit(X, y)


def test_C_above_the_threshold_is_not_always_harmless(blobs):
    """Far above it the dual variables do depend on the labels: the refusal is not pedantry."""
    X, y, _, _ = blobs
    model = flipcert.KernelSVM(kernel="linear").fit(X, y)
    C = 50 * model.C_max_
    assert not np.allclose(dual_variables(model._kernel(X), np.where(y == 0, 1.0, -1.0), C), C, rtol=1e-3)


def test_C_max_from_feature_sums_equals_that_from_the_kernel():
    X = np.random.default_rng(0).random((40, 5))
    y = np.arange(40) % 2
    streamed = flipcert.KernelSVM(kernel=lambda A, B: 2 * A @ B.T / 5).fit(X, y)
    assert flipcert.KernelSVM().fit(X, y).C_max_ == pytest.approx(streamed.C_max_)
    assert flipcert.KernelSVM().fit(np.zeros((4, 2)), [0, 1, 0, 1]).C_max_ == np.inf


def test_C_max_follows_a_new_fit(blobs):
    X, y, _, _ = blobs
    model = flipcert.KernelSVM().fit(X, y)
    before = model.C_max_
    assert model.fit(2 * X, y).C_max_ == pytest.approx(before / 4)


@pytest.mark.parametrize("C", [0, -1.0, "small", np.nan, True])
def test_bad_C(C, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match='C, if not "auto", must be a positive number; got'):
        flipcert.KernelSVM(C=C).fit(X, y)


# Kernel ridge


@pytest.mark.parametrize("reg", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ridge_predicts_as_scikit_learn(reg, dtype, digits):
    X, y, X_test, _ = (part.astype(dtype) if part.dtype.kind == "f" else part for part in digits)
    model = flipcert.KernelRidge(kernel="linear", reg=reg).fit(X, y)
    reference = SklearnRidge(alpha=reg, kernel="linear").fit(X.astype(float), np.eye(10)[y])
    scores = reference.predict(X_test.astype(float))
    assert model.solver_ == "primal"
    assert np.allclose(model.decision_function(X_test), scores, atol=1e-9 if dtype == np.float64 else 2e-2)
    assert (model.predict(X_test) == scores.argmax(axis=1)).mean() > (0.999 if dtype == np.float64 else 0.98)


def test_ridge_dual_and_primal_agree(digits):
    X, y, X_test, _ = digits
    for kernel in (NTK(), NTK(depth=2, bias_std=0.5), "linear"):
        primal = flipcert.KernelRidge(kernel=kernel, reg=0.5).fit(X, y)
        function = primal._kernel
        dual = flipcert.KernelRidge(kernel=lambda A, B, k=function: k(A, B), reg=0.5).fit(X, y)
        assert (primal.solver_, dual.solver_) == ("primal", "dual")
        assert np.allclose(primal._weights(X_test), dual._weights(X_test), atol=1e-9)
        assert np.array_equal(primal.predict(X_test), dual.predict(X_test))
        assert np.array_equal(primal.certify(X_test).radius, dual.certify(X_test).radius)


def test_ridge_takes_the_smaller_system(blobs):
    X, y, _, _ = blobs
    assert flipcert.KernelRidge(kernel="linear").fit(X, y).solver_ == "primal"
    assert flipcert.KernelRidge(kernel="linear").fit(np.tile(X, 20), y).solver_ == "dual"
    assert flipcert.KernelRidge(kernel="rbf").fit(X, y).solver_ == "dual"


@pytest.mark.parametrize("reg", [0, -1.0, "1", np.inf, np.nan])
def test_bad_reg(reg, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="reg must be a positive number; got"):
        flipcert.KernelRidge(reg=reg).fit(X, y)


def test_ridge_refuses_what_is_not_a_kernel(blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="not positive definite"):
        flipcert.KernelRidge(kernel=lambda A, B: -A @ B.T, reg=1e-3).fit(X, y)


# Precomputed kernels


@pytest.mark.parametrize("make", [flipcert.KernelSVM, flipcert.KernelRidge])
def test_precomputed_kernel(make, blobs):
    X, y, X_test, _ = blobs
    kernel = RBF(gamma=0.5)
    direct = make(kernel=kernel).fit(X, y)
    given = make(kernel="precomputed").fit(kernel(X), y)
    rows = kernel(X_test, X)
    assert np.array_equal(given.certify(rows).radius, direct.certify(X_test).radius)
    assert not given.certify(rows).rounding_sensitive.any() or make is flipcert.KernelRidge
    assert cross_val_score(given, kernel(X), y, cv=3).shape == (3,)
    with pytest.raises(ValueError, match=r"X must be square with kernel=.precomputed.*got shape \(30, 2\)"):
        make(kernel="precomputed").fit(X, y)


def test_ties_survive_the_scale_of_a_kernel():
    """Votes of -1 and 1 in seven features: two in seven is no round number, but ties are ties."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (60, 7)) * 2.0 - 1, rng.integers(0, 3, 60)
    model = flipcert.KernelSVM().fit(X, y)
    counts = np.stack([(X[:20] @ X[y == c].T).sum(axis=1) for c in range(3)], axis=1)
    assert np.array_equal(model.predict(X[:20]), counts.argmax(axis=1))
    assert np.allclose(model.decision_function(X[:20]), counts * 2 / 7)
    assert not model.certify(X[:20]).rounding_sensitive.any()


def test_grid_search_over_kernel_depth(blobs):
    X, y, _, _ = blobs
    search = GridSearchCV(
        flipcert.KernelRidge(kernel=NTK(activation="relu")), {"kernel__depth": [1, 2], "reg": [0.1, 1.0]}, cv=3
    ).fit(X, y)
    assert search.best_estimator_.certify(X).radius.shape == (30,)


# Neighbours


@pytest.mark.parametrize("n_neighbors", [1, 4, 7])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbors_predict_as_scikit_learn(n_neighbors, weights):
    rng = np.random.default_rng(0)
    X, y, X_test = rng.normal(size=(200, 5)), rng.integers(0, 4, 200), rng.normal(size=(100, 5))
    model = flipcert.WeightedNeighbors(n_neighbors, weights).fit(X, y)
    reference = KNeighborsClassifier(n_neighbors, weights=weights).fit(X, y)
    assert np.allclose(model.decision_function(X_test), reference.predict_proba(X_test))
    assert np.array_equal(model.predict(X_test), reference.predict(X_test))


def test_neighbors_that_tie_share_the_last_places():
    X = np.array([[0.0], [1.0], [-1.0], [1.0], [5.0]])
    model = flipcert.WeightedNeighbors(n_neighbors=3).fit(X, [0, 1, 1, 0, 0])
    weights = model._weights(np.array([[0.0]]))
    assert weights.tolist() == [[3.0, 2.0, 2.0, 2.0, 0.0]]
    assert model.decision_function(np.array([[0.0]]))[0] == pytest.approx(4 / 9 - 5 / 9)
    # Neither labels nor row order matter.
    order = np.array([3, 4, 1, 0, 2])
    shuffled = flipcert.WeightedNeighbors(n_neighbors=3).fit(X[order], [1, 1, 0, 1, 0])
    assert shuffled._weights(np.array([[0.0]]))[0].tolist() == weights[0][order].tolist()


def test_neighbors_at_distance_zero_outweigh_all_others():
    X = np.array([[0.0], [0.0], [1e-100], [1.0]])
    model = flipcert.WeightedNeighbors(n_neighbors=None, weights="distance").fit(X, [0, 1, 1, 1])
    assert model._weights(np.array([[0.0]])).tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert np.isfinite(model._weights(np.array([[1e-310]]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [2.0**-80, 1.0, 2.0**60])
def test_neighbors_do_not_depend_on_the_unit(scale, dtype, blobs):
    X, y, X_test, _ = (part.astype(dtype) if part.dtype.kind == "f" else part for part in blobs)
    for weights in ("uniform", "distance"):
        reference = flipcert.WeightedNeighbors(5, weights).fit(X, y).certify(X_test)
        scaled = flipcert.WeightedNeighbors(5, weights).fit(X * dtype(scale), y).certify(X_test * dtype(scale))
        assert np.array_equal(scaled.radius, reference.radius)


def test_neighbors_too_far_away(blobs):
    X, y, X_test, _ = blobs
    with pytest.raises(ValueError, match="distances overflow"), np.errstate(over="ignore"):
        flipcert.WeightedNeighbors().fit(X, y).predict(X_test * 1e200)


def test_neighbors_with_kernel_weights(blobs):
    X, y, X_test, _ = blobs
    model = flipcert.WeightedNeighbors(n_neighbors=None, weights=RBF(0.5)).fit(X, y)
    svm = flipcert.KernelSVM(kernel=RBF(0.5)).fit(X, y)
    assert np.array_equal(model.certify(X_test).radius, svm.certify(X_test).radius)
    near = flipcert.WeightedNeighbors(n_neighbors=4, weights=RBF(0.5)).fit(X, y)
    assert ((near._weights(X_test) > 0).sum(axis=1) == 4).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a positive whole number or None; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a positive whole number or None; got 2.5"),
        ({"n_neighbors": 31}, "n_neighbors=31 is more than the 30 training samples"),
        ({"weights": "inverse"}, 'weights must be "uniform", "distance" or a kernel object; got .inverse'),
        ({"weights": None}, 'weights must be "uniform", "distance" or a kernel object; got None'),
    ],
)
def test_bad_neighbors(options, message, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match=message):
        flipcert.WeightedNeighbors(**options).fit(X, y)


# Label spaces and bad input


@pytest.mark.parametrize("model", [*MODELS, *ENSEMBLES], ids=str)
def test_classes_may_be_missing_from_the_labels(model, blobs):
    X, y, X_test, _ = blobs
    model = clone(model).set_params(classes=["d", "a", "c", "b"])
    model.fit(X, np.array(["a", "b", "b"])[y])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    certificates = model.certify(X_test)
    assert (certificates.radius >= 0).all()
    assert model.flip_costs(X_test).shape == (len(X_test), 4)
    # One class only is fine as long as the label space has more.
    alone = clone(model).fit(X, np.repeat("b", len(y)))
    assert (alone.predict(X_test) == "b").mean() > 0.5


@pytest.mark.parametrize(
    "model", [flipcert.KernelSVM(), flipcert.KernelRidge(), flipcert.WeightedNeighbors(), ENSEMBLES[0]], ids=str
)
def test_bad_training_sets(model, blobs):
    X, y, X_test, _ = blobs
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(broken, y)
    broken[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        clone(model).fit(broken, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(model).fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"y has one class only \(.*1.*\).*classes="):
        clone(model).fit(X, np.ones(30, int))
    with pytest.raises(ValueError, match=r"y holds the label 2, which classes=.* does not name"):
        clone(model).set_params(classes=[0, 1]).fit(X, y)
    assert clone(model).set_params(classes={0, 1, 2, 3}).fit(X, y).classes_.tolist() == [0, 1, 2, 3]
    for classes in ([[0, 1], [2, 3]], [0, 1, None]):
        with pytest.raises(ValueError, match="classes must be a list of labels of one type"):
            clone(model).set_params(classes=classes).fit(X, y)
    with pytest.raises(ValueError, match="n_jobs must be None or a whole number other than 0; got 0"):
        clone(model).set_params(n_jobs=0).fit(X, y)
    with pytest.raises(ValueError, match="classes must name at least two classes"):
        clone(model).set_params(classes=[1]).fit(X, np.ones(30, int))
    with pytest.raises(ValueError, match="trusted must be a boolean mask"):
        clone(model).fit(X, y, trusted=np.ones(30))
    with pytest.raises(ValueError, match="trusted must be a boolean mask"):
        clone(model).fit(X, y, trusted=np.ones(29, bool))
    fitted = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2 features"):
        fitted.certify(np.ones((2, 3)))
    with pytest.raises(ValueError, match="bound must be one of 'lower', 'upper', 'exact'; got 'middle'"):
        fitted.flip_costs(X_test, bound="middle")


def test_features_too_large_for_the_kernel(blobs):
    X, y, X_test, _ = blobs
    with np.errstate(over="ignore", invalid="ignore"):
        with pytest.raises(ValueError, match="overflowed; rescale the features"):
            flipcert.KernelRidge().fit(X * 1e200, y)
        with pytest.raises(ValueError, match="overflowed; rescale the features"):
            flipcert.KernelSVM(C=1.0).fit(X * 1e200, y)
    with pytest.raises(ValueError, match="overflowed"), np.errstate(over="ignore"):
        flipcert.KernelSVM().fit(X * 1e160, y).predict(X_test * 1e160)
