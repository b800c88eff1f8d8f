"""Models with the tangent kernel of a network: fine-tuning, all labellings, ensembles, files, scikit-learn."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn
from torch.func import functional_call

import flipcert
from flipcert.classifiers.description import describe
from flipcert.engine.question import Asked
from flipcert.kernels import Kernel, StoredKernel, Tangent, tangent
from tests.helpers.torch_modules import AnyWidth, centred, dense, image_network


def problem(n, n_classes, n_test=6, seed=0, n_inputs=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centres = rng.normal(size=(n_classes, n_inputs))
    return centres[y] + rng.normal(size=(n, n_inputs)), y, rng.normal(size=(n_test, n_inputs))


@parametrize_with_checks(
    [flipcert.KernelRidge(Tangent(AnyWidth())), flipcert.KernelSVM(Tangent(AnyWidth(), projection=50))]
)
def test_scikit_learn_manners(estimator, check):
    # The first is told apart in tests of all estimators; the second compares pickles, in which equal tensors differ.
    if getattr(check, "func", check).__name__ not in ("check_array_api_input", "check_estimators_overwrite_params"):
        check(estimator)


class Linearised:
    """A network of one output, replaced by its first-order expansion, without its initial output."""

    def __init__(self, module):
        self.module = copy.deepcopy(module).double()
        self.start = tuple(own.detach() for own in self.module.parameters())
        self.names = [name for name, _ in self.module.named_parameters()]

    def __call__(self, change, X):
        """What a change of the parameters adds to the output for each input, to first order."""

        def outputs(*parameters):
            return functional_call(self.module, dict(zip(self.names, parameters, strict=True)), (X,))[:, 0]

        return torch.autograd.functional.jvp(outputs, self.start, change, create_graph=True)[1]

    def trained(self, X, cost, steps, rate):
        """The change of the parameters that gradient descent on ``cost(outputs) + |change|^2 / 2`` ends at."""
        change = tuple(torch.zeros_like(own) for own in self.start)
        for _ in range(steps):
            there = tuple(own.clone().requires_grad_() for own in change)
            total = cost(self(there, X)) + sum((own**2).sum() for own in there) / 2
            slopes = torch.autograd.grad(total, there)
            change = tuple(own - rate * slope for own, slope in zip(change, slopes, strict=True))
        return change


def test_ridge_regression_is_fine_tuning_in_the_linear_regime():
    """Gradient descent on copies of the network, one a class, ends at the scores of the model."""
    X, y, X_test = problem(9, 3)
    module, reg = dense(2, 3), 0.7
    scores = flipcert.KernelRidge(Tangent(module), reg=reg).fit(X, y).decision_function(X_test)
    network, largest = Linearised(module), np.linalg.eigvalsh(Tangent(module)(X))[-1]
    inputs, test = torch.from_numpy(X), torch.from_numpy(X_test)
    with torch.no_grad():
        initial, initial_test = (network.module(rows)[:, 0] for rows in (inputs, test))
    with_initial = []
    for c in range(3):
        wanted = torch.from_numpy((y == c).astype(float))
        change = network.trained(
            inputs, lambda out, wanted=wanted: ((out - wanted) ** 2).sum() / (2 * reg), 400, 1 / (1 + largest / reg)
        )
        assert np.allclose(network(change, test).detach().numpy(), scores[:, c], atol=1e-4)
        change = network.trained(
            inputs,
            lambda out, wanted=wanted: ((out + initial - wanted) ** 2).sum() / (2 * reg),
            400,
            1 / (1 + largest / reg),
        )
        with_initial.append((network(change, test) + initial_test).detach().numpy())
    # Initial outputs that are left in are the same for all copies.
    difference = np.array(with_initial).T - scores
    assert np.allclose(difference, difference[:, :1], atol=1e-4)
    assert np.abs(difference).max() > 0.01


def test_machines_with_small_c_are_fine_tuning_on_the_hinge_loss():
    X, y, X_test = problem(9, 3)
    module = dense(2, 3)
    model = flipcert.KernelSVM(Tangent(module)).fit(X, y)
    network, C = Linearised(module), 0.9 * model.C_max_
    outputs = []
    for c in range(3):
        signs = torch.from_numpy(np.where(y == c, 1.0, -1.0))
        change = network.trained(
            torch.from_numpy(X), lambda out, s=signs: C * (1 - s * out).clamp(min=0).sum(), 200, 0.2
        )
        outputs.append(network(change, torch.from_numpy(X_test)).detach().numpy())
    scores = model.decision_function(X_test)
    # Up to what all classes have in common, and the unit.
    own, theirs = np.array(outputs).T, 2 * C * scores
    assert np.allclose(own - own.mean(axis=1, keepdims=True), theirs - theirs.mean(axis=1, keepdims=True), atol=1e-8)


def kernels(n_inputs):
    yield Tangent(dense(n_inputs, 3, 1, nn.ReLU))
    yield Tangent(dense(n_inputs, 3, 2), projection=5)


@pytest.mark.parametrize("model", [flipcert.KernelRidge, flipcert.KernelSVM])
@pytest.mark.parametrize(("n", "n_classes", "way"), [(4, 3, "features"), (6, 2, "blocks")])
def test_radii_are_those_of_all_labellings(model, n, n_classes, way, monkeypatch):
    """Every labelling of a small training set through fit and predict."""
    if way == "blocks":
        monkeypatch.setattr(tangent, "_MOST_FEATURES", 0)
    X, y, X_test = problem(n, n_classes)
    for kernel in kernels(2):
        fitted = model(kernel, classes=range(n_classes)).fit(X, y)
        certificates, before = fitted.certify(X_test), fitted.predict(X_test)
        fewest = np.full(len(X_test), n + 1)
        for labels in itertools.product(range(n_classes), repeat=n):
            changed = clone(fitted).fit(X, labels).predict(X_test) != before
            fewest[changed] = np.minimum(fewest[changed], np.sum(labels != y))
        assert certificates.exact.all()
        assert np.array_equal(certificates.radius, np.minimum(fewest - 1, n))


def test_witnesses_change_predictions_alone_and_in_ensembles(digits):
    X, y, X_test, _ = digits
    X, y, X_test = X[:200], y[:200], X_test[:8]
    for kernel in (Tangent(dense(64, 20)), Tangent(dense(64, 80)), Tangent(dense(64, 80), projection=100)):
        single = flipcert.KernelRidge(kernel, classes=range(10))
        for model in (single, flipcert.PartitionEnsemble(single, n_partitions=5, classes=range(10))):
            certificates = model.fit(X, y).certify(X_test)
            for t, witness in enumerate(model.worst_flips(X_test)):
                assert witness is not None
                assert len(witness) == certificates.radius_upper[t] + 1
                again = clone(model).fit(X, witness.apply(y))
                assert again.predict(X_test)[t] != certificates.prediction[t]


def test_a_fitted_model_keeps_the_weights_that_the_network_had(digits):
    X, y, X_test, _ = digits
    module = dense(64, 10)
    model = flipcert.KernelRidge(Tangent(module)).fit(X[:100], y[:100])
    before = model.certify(X_test[:20])
    with torch.no_grad():
        for own in module.parameters():
            own.normal_()
    assert np.array_equal(model.certify(X_test[:20]).radius, before.radius)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).certify(X_test[:20]).radius, before.radius)
    assert not np.array_equal(clone(model).fit(X[:100], y[:100]).certify(X_test[:20]).radius, before.radius)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("most", [0, 4096])
def test_the_threshold_of_small_c_counts_magnitudes(single, most, monkeypatch):
    """Gradients have both signs where inputs have one."""
    monkeypatch.setattr(tangent, "_MOST_FEATURES", most)
    X, y, _ = problem(40, 2)
    X = np.abs(X).astype(np.float32 if single else np.float64)
    for kernel in (Tangent(centred()), Tangent(centred(10), projection=9)):
        values = kernel(X)
        assert (values < 0).any()
        model = flipcert.KernelSVM(kernel).fit(X, y)
        assert pytest.approx(1 / np.abs(values).sum(axis=1).max(), rel=1e-5 if single else 1e-10) == model.C_max_


class Differences(Kernel):
    """A user's kernel with features of both signs."""

    def __call__(self, X, Z=None):
        return self.features(X) @ self.features(X if Z is None else Z).T

    def diag(self, X):
        return (self.features(X) ** 2).sum(axis=1)

    def n_features(self, n_inputs):
        return n_inputs - 1

    def features(self, X):
        return np.diff(X, axis=1)


def test_the_threshold_of_small_c_holds_for_features_of_both_signs():
    X, y, _ = problem(30, 2, n_inputs=4)
    model = flipcert.KernelSVM(Differences()).fit(np.abs(X), y)
    assert pytest.approx(1 / np.abs(Differences()(np.abs(X))).sum(axis=1).max()) == model.C_max_


def test_pipelines_neighbours_stored_kernels_and_images(digits, tmp_path):
    X, y, X_test, _ = digits
    X, y, X_test = X[:120], y[:120], X_test[:10]
    kernel = Tangent(dense(64, 80))
    pipeline = make_pipeline(StandardScaler(), flipcert.KernelRidge(kernel)).fit(X, y)
    assert len(flipcert.certify(pipeline, X_test)) == 10
    direct = flipcert.KernelRidge(kernel).fit(X, y).certify(X_test)
    stored = StoredKernel(kernel, X, X_test, tmp_path / "kernel.npy")
    again = flipcert.KernelRidge(stored).fit(stored.train_rows, y).certify(stored.test_rows)
    assert np.array_equal(again.radius, direct.radius)
    assert np.array_equal(again.rounding_sensitive, direct.rounding_sensitive)
    neighbors = flipcert.WeightedNeighbors(9, weights=kernel).fit(X, y)
    assert not neighbors.certify(X_test).rounding_sensitive.all()
    images = flipcert.KernelRidge(Tangent(image_network(), (1, 4, 4))).fit(X[:, 8:24], y)
    assert len(images.certify(X_test[:, 8:24])) == 10


def test_rows_that_come_are_refused_and_those_that_go_are_not(digits):
    X, y, X_test, _ = digits
    model = flipcert.KernelSVM(Tangent(dense(64, 5))).fit(X[:60], y[:60])
    assert len(model.certify(X_test[:3], threat="deletions")) == 3
    with pytest.raises(ValueError, match=r"no bound is known on what a new row may weigh with this kernel \(Tangent\)"):
        model.certify(X_test[:3], threat="insertions")


def test_answers_that_were_kept_are_known_by_the_weights_of_the_network():
    X, y, _ = problem(9, 3)

    def name(seed):
        model = flipcert.KernelSVM(Tangent(dense(2, seed=seed))).fit(X, y)
        return Asked(model.predict, 0).digest

    assert name(0) is not None
    assert name(0) == name(0) != name(1)


def test_models_tell_which_network_it_was():
    told = describe(flipcert.KernelRidge(Tangent(dense(3), projection=7)))
    assert told["kernel"] == "tangent"
    assert (told["projection"], told["projection_seed"]) == (7, 0)
    assert told["module"].startswith("Sequential of 21 parameters, digest ")
    assert told == describe(clone(flipcert.KernelRidge(Tangent(dense(3), projection=7))))
    assert told["module"] != describe(flipcert.KernelRidge(Tangent(dense(3, seed=1))))["module"]
    assert "projection_seed" not in describe(flipcert.KernelRidge(Tangent(dense(3))))


@pytest.mark.parametrize("model", [flipcert.KernelRidge, flipcert.KernelSVM])
def test_a_network_that_does_not_fit_the_inputs_is_refused_when_a_model_is_fitted(model):
    X, y, _ = problem(9, 3)
    with pytest.raises(ValueError, match="module Sequential cannot be evaluated in double precision"):
        model(Tangent(dense(3))).fit(X, y)
    with pytest.raises(ValueError, match=r"module must be a torch\.nn\.Module"):
        model(Tangent("resnet")).fit(X, y)


def test_pages_say_what_a_certificate_of_fine_tuning_promises(tmp_path):
    X, y, X_test = problem(30, 3)
    model = flipcert.KernelRidge(Tangent(dense(2))).fit(X, y)
    model.certify(X_test).report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Networks that are fine-tuned" in page
    assert "Sequential of 17 parameters, digest" in page
    flipcert.KernelRidge("rbf").fit(X, y).certify(X_test).report(tmp_path / "other.html")
    assert "fine-tuned" not in (tmp_path / "other.html").read_text()
