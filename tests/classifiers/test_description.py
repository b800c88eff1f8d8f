"""Certificates know what was certified: files keep it, and pages say the same however they were made."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF as GaussianRBF
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.classifiers.description import describe
from flipcert.kernels import NTK, RBF, ConvNTK
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, summary_of
from tests.helpers.pages import Page


def cosine(X, Z):
    return X @ Z.T


class Similarity:
    def __call__(self, X, Z):
        return X @ Z.T


class Wrapped(flipcert.KernelSVM):
    """A user's own subclass."""


NTK_OPTIONS = {"activation": "linear", "bias_std": 0.0, "depth": 1, "weight_std": 1.0}


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (flipcert.KernelSVM(), {"model": "svm", "kernel": "ntk", **NTK_OPTIONS, "C": "auto"}),
        (flipcert.KernelSVM(cosine), {"model": "svm", "kernel": "cosine", "C": "auto"}),
        (flipcert.KernelSVM(partial(cosine)), {"model": "svm", "kernel": "cosine", "C": "auto"}),
        (flipcert.KernelSVM(lambda X, Z: X @ Z.T), {"model": "svm", "kernel": "a lambda function", "C": "auto"}),
        (flipcert.KernelSVM(Similarity()), {"model": "svm", "kernel": "Similarity", "C": "auto"}),
        (flipcert.KernelSVM(GaussianRBF(3)), {"model": "svm", "kernel": "RBF(length_scale=3)", "C": "auto"}),
        (
            flipcert.KernelSVM("precomputed", C=0.1, classes=np.array([2, 0, 1])),
            {"model": "svm", "kernel": "precomputed", "C": 0.1, "classes": [0, 1, 2]},
        ),
        (
            flipcert.KernelRidge(NTK(kind="nngp", activation="leaky_relu"), reg=np.float64(3)),
            {"model": "ridge", "kernel": "nngp", **NTK_OPTIONS, "activation": "leaky_relu", "negative_slope": 0.1,
             "reg": 3.0},
        ),
        (
            flipcert.WeightedNeighbors(7, RBF(2.0)),
            {"model": "neighbors", "n_neighbors": 7, "weights": "RBF(gamma=2.0)"},
        ),
        (flipcert.LabelSpreading(), {"model": "spreading", "n_neighbors": 10, "alpha": 0.9}),
        (Wrapped("linear"), {"model": "Wrapped", "kernel": "linear", "C": "auto"}),
        (
            flipcert.FixedBudget(SVC(C=3), cosine),
            {"model": "fixed-budget", "estimator": "SVC(C=3)", "is_robust": "cosine", "max_flips": None},
        ),
        (
            flipcert.PartitionEnsemble(flipcert.KernelRidge("linear"), 5, "random", random_state=9),
            {"model": "ridge", "kernel": "linear", "reg": 1.0, "partitions": 5, "partition_rule": "random", "seed": 9},
        ),
        (
            flipcert.PartitionEnsemble(DecisionTreeClassifier(), 2, np.arange(4) % 2),
            {"model": "DecisionTreeClassifier", "partitions": 2, "partition_rule": "given"},
        ),
        (
            flipcert.PartitionEnsemble(make_pipeline(StandardScaler(), PCA(3), SVC(kernel=cosine, C=2)), 3),
            {"preprocessing": "StandardScaler, PCA(n_components=3)", "model": "SVC(C=2, kernel=cosine)",
             "partitions": 3, "partition_rule": "sorted"},
        ),
        (
            flipcert.PartitionEnsemble(GridSearchCV(SVC(), {"C": [1, 2]}), 3),
            {"model": "GridSearchCV(estimator=SVC, param_grid={'C': [1, 2]})", "partitions": 3,
             "partition_rule": "sorted"},
        ),
        (
            make_pipeline(FunctionTransformer(np.log1p), "passthrough", flipcert.SmoothedLinear()),
            {"preprocessing": "FunctionTransformer(func=log1p)", "model": "smoothed", "flip_probability": 0.01,
             "reg": 1.0, "method": "white-box"},
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else type(value).__name__,
)  # fmt: skip
def test_models_in_plain_values(model, told):
    described = describe(model)
    assert described == told
    assert json.loads(json.dumps(described)) == told


def test_every_estimator_describes_what_was_fitted():
    def is_robust(model, X, n_flips):
        return np.zeros(len(X), bool)

    models = [
        flipcert.KernelSVM(ConvNTK((1, 2, 2))),
        flipcert.KernelRidge(),
        flipcert.WeightedNeighbors(),
        flipcert.SmoothedLinear(),
        flipcert.BoundedNetwork(loss="squared"),
        flipcert.MilpSVM(C=1e-6),
        flipcert.FixedBudget(DecisionTreeClassifier(random_state=0), is_robust),
        flipcert.PartitionEnsemble(flipcert.KernelRidge(), 3),
        flipcert.PartitionEnsemble(DecisionTreeClassifier(), 3),
    ]
    for model in models:
        told = describe(model)
        assert told["model"]
        assert model.fit(X_TRAIN, Y_TRAIN).certify(X_TEST[:2]).model == told
    ridge = flipcert.KernelRidge(reg=2.0).fit(X_TRAIN, Y_TRAIN).set_params(reg=50.0)
    assert ridge.certify(X_TEST[:2]).model["reg"] == 2.0


def test_pipelines_tell_what_comes_first():
    model = make_pipeline(StandardScaler(), make_pipeline(PCA(2), flipcert.KernelRidge("linear")))
    told = flipcert.certify(model.fit(X_TRAIN, Y_TRAIN), X_TEST[:2]).model
    assert told == {
        "model": "ridge",
        "kernel": "linear",
        "reg": 1.0,
        "preprocessing": "StandardScaler, PCA(n_components=2)",
    }


def test_files_keep_the_model(tmp_path):
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge(NTK(weight_std=[1.0, 2.0])), 3, classes=sorted({*Y_TRAIN}))
    certificates = model.fit(X_TRAIN, Y_TRAIN).certify(X_TEST)
    path = tmp_path / "certificates.npz"
    certificates.save(path)
    assert flipcert.Certificates.load(path).model == certificates.model
    certificates.report(tmp_path / "a.html", Y_TEST)
    flipcert.Certificates.load(path).report(tmp_path / "b.html", Y_TEST)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    for wrong in ({"kernel": cosine}, {1: "one"}, {"partitions": "three"}, {"partitions": 0}, {"partitions": True}):
        with pytest.raises(ValueError, match="model must"):
            replace(certificates, model=wrong).save(path)
    replace(certificates, model={}).save(path)
    assert flipcert.Certificates.load(path).model == {}


@pytest.mark.parametrize("wrong", [[], "ridge", {"kernel": {"depth": 1}}, {"partitions": 2.5}, None])
def test_files_with_another_model_entry_are_refused(wrong, tmp_path):
    path = tmp_path / "certificates.npz"
    flipcert.KernelSVM().fit(X_TRAIN, Y_TRAIN).certify(X_TEST[:2]).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(str(arrays["header"]))
    arrays["header"] = np.array(json.dumps({**header, "model": wrong}))
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="is not a file of saved certificates"):
        flipcert.Certificates.load(path)


def told_by(page):
    """Settings and promises of a page."""
    source = page.read_text()
    table = re.search(r'<table class="settings">(.*?)</table>', source, flags=re.DOTALL)[1]
    promises = re.search(r'<section class="promise".*?</section>', source, flags=re.DOTALL)[0]
    return dict(re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', table)), Page(promises).text


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (flipcert.KernelSVM(), ""),
        (flipcert.KernelRidge(NTK(2, "relu")), "--model ridge --depth 2 --activation relu"),
        (flipcert.PartitionEnsemble(flipcert.KernelRidge("rbf", reg=0.5), 3),
         "--model ridge --kernel rbf --reg 0.5 --partitions 3"),
        (make_pipeline(StandardScaler(), flipcert.WeightedNeighbors(7)),
         "--model neighbors --neighbors 7 --scale standard"),
        (flipcert.LabelSpreading(alpha=0.5), "--model spreading --alpha 0.5"),
        (flipcert.SmoothedLinear(0.05), "--model smoothed --flip-probability 0.05"),
        (flipcert.BoundedNetwork(loss="squared"), "--model network --loss squared"),
        (flipcert.MilpSVM("linear", C=1e-5), "--model milp-svm --kernel linear --C 1e-5"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_pages_from_python_and_from_the_command_line_say_the_same(model, options, data):
    summary_of("certify", "train.npz", "test.npz", *options.split(), "--out", "run")
    flipcert.certify(model.fit(X_TRAIN, Y_TRAIN), X_TEST).report("python.html", Y_TEST)
    settings, promises = told_by(data / "run" / "report.html")
    # A command also says what it did to the features before a model saw them.
    assert ("features" in settings) == ("--scale" in options)
    settings.pop("features", None)
    assert (settings, promises) == told_by(data / "python.html")
    assert {"model", "training labels", "test points"} <= set(settings)
    assert ("Wide networks" in promises) == ("ntk" in settings.get("kernel", ""))


def test_models_on_a_stored_kernel_are_described_by_the_kernel_itself(data):
    points = summary_of("sweep", "train.npz", "test.npz", "--kernel", "rbf", "--partitions", "1,3")["points"]
    for point, model in zip(
        points, (flipcert.KernelSVM("rbf"), flipcert.PartitionEnsemble(flipcert.KernelSVM("rbf"), 3)), strict=True
    ):
        assert point["settings"] == {"partitions": 1, **describe(model)}


def test_a_formula_that_proves_too_much_is_not_called_a_proof(tmp_path):
    model = flipcert.SmoothedLinear(0.05, method="published").fit(X_TRAIN, Y_TRAIN)
    with pytest.warns(UserWarning, match="published"):
        certificates = model.certify(X_TEST)
    certificates.report(tmp_path / "page.html", Y_TEST)
    page = Page((tmp_path / "page.html").read_text()).text
    assert "Not proven" in page
    assert "follows a formula that over-states radii" in page
    model = flipcert.SmoothedLinear(0.05).fit(X_TRAIN, Y_TRAIN)
    model.certify(X_TEST).report(tmp_path / "page.html", Y_TEST)
    assert "formula that over-states" not in Page((tmp_path / "page.html").read_text()).text
