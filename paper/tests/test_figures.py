"""The paper's figures: their files, what is certified for them, and that a stopped run goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

import flipcert
from paper.figures import figure as figures
from paper.figures import small_c
from paper.figures.cells import Cells, describe
from paper.figures.drawing import draw, panels
from paper.figures.figure import Cell
from paper.figures.models import SCALES, model_of
from paper.figures.reproduction import reproduce, rows_of
from paper.figures.rules import RULES, THEOREM
from paper.figures.source import digits
from paper.figures.source import load as load_source
from paper.figures.table import read_table, write_table
from paper.figures.verdicts import judge

ALL = figures.all_figures()


def few_digits(name):
    return digits(name).first(240, 40)


def more_digits(name):
    return digits(name).first(600, 40)


@pytest.mark.parametrize("figure", ALL, ids=lambda figure: figure.name)
def test_files_of_figures_declare_what_can_be_run(figure):
    assert figure.title
    assert figure.paper
    assert figure.claims
    assert {claim.rule for claim in figure.claims} <= set(RULES)
    assert bool(figure.cells) != bool(figure.study)
    for cell in figure.cells:
        assert cell.scale in SCALES
        model = model_of(cell, (1, 8, 8))
        assert getattr(model, "n_partitions", 1) == cell.partitions
        assert all(cell[name] is not None or name in ("method", "activation", "reg") for name in figure.panels)


def test_lists_of_values_become_one_cell_each():
    text = """
    title = "t"
    paper = "Figure 2 (a)"
    form = "medians"
    panels = ["scale"]

    [[claims]]
    words = "w"
    where = "section 1"
    rule = "invariant"
    level = 1.25

    [[certify]]
    data = "cifar10"
    model = "ridge"
    scale = ["none", "standard"]
    reg = [0.1, 1.0]
    partitions = [10, 50]
    published = true

    [[certify]]
    data = "cifar10"
    model = "ridge"
    reg = 0.1
    partitions = 1
    """
    figure = figures.parse("f", text)
    assert len(figure.cells) == 9
    assert figure.cells[0] == Cell("cifar10", "ridge", 10, "none", (("reg", 0.1),), published=True)
    assert figure.cells[-1] == Cell("cifar10", "ridge", 1, "none", (("reg", 0.1),))
    assert figure.number == "2 (a)"
    assert figure.claims == (figures.Claim("w", "section 1", "invariant", {"level": 1.25}),)
    assert figure.data == ("cifar10",)
    small = figures.quick(figure, 300)
    assert {cell.partitions for cell in small.cells} == {1, 10, 20}


def test_a_wrong_form_is_refused():
    with pytest.raises(ValueError, match="form of f must be one of medians, trends, curves"):
        figures.parse("f", 'title=""\npaper=""\nform="pie"\n')


def test_unknown_figures_are_refused():
    with pytest.raises(ValueError, match="there is no figure 'figure-99'"):
        figures.load("figure-99")


@pytest.mark.parametrize(
    "cell",
    [
        Cell("cifar10", "svm", 1, "standard"),
        Cell("mnist", "ridge", 8, "none", (("activation", "relu"), ("kernel", "conv-ntk"), ("reg", 0.1)), True, True),
    ],
    ids=["one model", "ensemble"],
)
def test_rows_say_what_the_estimators_say(cell, tmp_path):
    """A cell that goes through shared, stored kernels against the plain estimator."""
    source = few_digits(cell.data)
    row = Cells(tmp_path, few_digits).row(cell)
    assert row["features"] == source.described
    if cell.partitions == 1:
        scaled = (source.X_train - source.X_train.mean(0)) / np.where(
            source.X_train.std(0) > 0, source.X_train.std(0), 1
        )
        model = flipcert.KernelSVM().fit(scaled, source.y_train)
        X_test = (source.X_test - source.X_train.mean(0)) / np.where(
            source.X_train.std(0) > 0, source.X_train.std(0), 1
        )
        certificates = model.certify(X_test.astype(np.float32))
    else:
        kernel = flipcert.kernels.ConvNTK((1, 8, 8), activation="relu")
        base = flipcert.KernelRidge(kernel, reg=0.1)
        model = flipcert.PartitionEnsemble(base, n_partitions=8).fit(source.X_train, source.y_train)
        certificates = model.certify(source.X_test)
        assert row["median_votes"] == flipcert.median_certified_robustness(
            certificates.correct(source.y_test), certificates.blackbox_radius
        )
        assert row["median_published"] <= row["median"] <= row["median_published_upper"]
        assert 0 < row["share_fragile"] <= 1
        parts = ("fit", "kernel", "certify", "weights", "aggregation")
        assert all(row[f"timed_{name}"] > 0 for name in parts)
        assert row["reg_over_diag"] == pytest.approx(0.1 / kernel.diag(source.X_train).mean(), rel=1e-5)
    correct = certificates.correct(source.y_test)
    assert row["accuracy"] == correct.mean()
    assert row["median"] == certificates.median_certified_robustness(source.y_test)
    assert row["median_all"] == certificates.median_certified_robustness(source.y_test, over="all")
    assert row["certified"] == certificates.certified_accuracy(source.y_test, row["flips"]).tolist()
    assert row["largest"] == certificates.radius[correct].max()
    assert row["certified"][-1] == 0 or certificates.radius.max() == source.y_train.size


class Interrupted(Exception):
    """Somebody pulled the plug."""


def test_a_run_that_is_stopped_goes_on_and_ends_with_the_same_tables(tmp_path):
    figure = figures.quick(figures.load("regularisation-cifar10"), 240)
    whole = reproduce([figure], tmp_path / "whole", few_digits)

    begun = []

    def pull_the_plug(line):
        begun.extend([line] if line.endswith("certifying") else [])
        if len(begun) == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        reproduce([figure], tmp_path / "stopped", few_digits, pull_the_plug)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "stopped" / "cells").iterdir()}
    assert len(kept) == 2
    resumed = reproduce([figure], tmp_path / "stopped", few_digits)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert without_times(whole) == without_times(resumed)
    assert whole.read_text() == resumed.read_text()
    assert not (tmp_path / "stopped" / "kernels").exists()


def without_times(page):
    rows = read_table(page.parent / "regularisation-cifar10.parquet")
    return [{name: value for name, value in row.items() if not name.startswith("seconds")} for row in rows]


def test_what_was_found_about_other_data_is_not_taken(tmp_path):
    cell = Cell("cifar10", "svm")
    assert Cells(tmp_path, few_digits).row(cell)["n_train"] == 240
    assert Cells(tmp_path, lambda name: digits(name).first(200, 40)).row(cell)["n_train"] == 200


def test_partitions_go_by_what_the_data_say(tmp_path):
    """Raw pixels decide, not the features."""
    source = few_digits("mnist")
    pixels = np.random.default_rng(0).permutation(240)[:, None].astype(np.float32)
    cell = Cell("mnist", "ridge", 6)
    by_pixels = Cells(tmp_path, lambda name: replace(source, partition_by=pixels)).row(cell)
    expected = flipcert.PartitionEnsemble(
        flipcert.KernelRidge(), n_partitions=6, partition=pixels[:, 0].astype(int) % 6
    )
    certificates = expected.fit(source.X_train, source.y_train).certify(source.X_test)
    curve = certificates.certified_accuracy(source.y_test, by_pixels["flips"]).tolist()
    assert by_pixels["certified"] == curve
    plain = Cells(tmp_path, few_digits).row(cell)
    assert plain["certified"] != certificates.certified_accuracy(source.y_test, plain["flips"]).tolist()


def test_what_a_figure_asks_beyond_certificates_is_computed_alone(tmp_path):
    """Another figure's certificates of the same cell are taken as they are."""
    cell = Cell("cifar10", "ridge", 4)
    row = Cells(tmp_path, few_digits).row(cell)
    said = []
    more = Cells(tmp_path, few_digits, said.append).row(replace(cell, published=True))
    assert {name: more[name] for name in row} == row
    assert more["median_published"] <= row["median"]
    assert not [line for line in said if line.endswith("certifying")]
    assert Cells(tmp_path, few_digits).row(replace(cell, published=True)) == more


def test_random_partitions_and_fewer_points_are_what_they_say(tmp_path):
    source, cell = few_digits("cifar10"), Cell("cifar10", "ridge", 6, "centre", seed=3, points=30)
    centred = source.X_train - source.X_train.mean(0)
    parts = flipcert.assign_partitions(centred, 6, "random", 3)
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=6, partition=parts)
    certificates = model.fit(centred, source.y_train).certify((source.X_test - source.X_train.mean(0))[:30])
    row = Cells(tmp_path, few_digits).row(cell)
    assert (row["n_test"], row["seed"], row["points"]) == (30, 3, 30)
    assert row["certified"] == certificates.certified_accuracy(source.y_test[:30], row["flips"]).tolist()
    largest = max(np.bincount(source.y_test[:30])) / 30
    assert row["most_frequent"] == largest
    assert "seed" not in Cell("cifar10", "ridge", 6).identity


def test_two_points_are_not_joined_and_bands_are_drawn(tmp_path):
    cells = Cells(tmp_path, few_digits)
    figure = figures.load("figure-1b")
    rows = [cells.row(Cell("cifar10", "ridge", n, "none", (("reg", 1.0),))) for n in (4, 8)]
    lines = draw(figure, rows).axes[0].get_lines()
    assert {line.get_linestyle() for line in lines} == {"None"}
    more = [cells.row(Cell("cifar10", "ridge", n, "none", (("reg", 1.0),), seed=s)) for n in (4, 8, 12) for s in (1, 2)]
    rows += [cells.row(Cell("cifar10", "ridge", 12, "none", (("reg", 1.0),)))]
    axes = draw(figure, rows + more).axes[0]
    assert "-" in {line.get_linestyle() for line in axes.get_lines()}
    assert "random partitions" in [band.get_label() for band in axes.collections]


def test_tables_keep_rows_that_know_different_things(tmp_path):
    rows = [{"a": 1, "seconds": 2.0, "flips": [0, 1]}, {"a": 2, "b": "x", "flips": [0]}]
    write_table(rows, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet") == [
        {"a": 1, "b": None, "flips": [0, 1], "seconds": 2.0},
        {"a": 2, "b": "x", "flips": [0], "seconds": None},
    ]


def hinge_predictions(X, y, X_test, C):
    (votes,) = small_c.predictions([small_c.hinge_machine(X, y, C)], X_test)
    return votes


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["cifar10", "mnist-1-vs-7"])
def test_small_c_is_what_the_certified_svm_predicts(name):
    """Below the threshold, liblinear and the label-linear SVM are one classifier, and C does not matter."""
    source = few_digits(name)
    X, y = flipcert.kernels.NTK().features(source.X_train.astype(float)), source.y_train
    X_test = flipcert.kernels.NTK().features(source.X_test.astype(float))
    model = flipcert.KernelSVM("linear").fit(X, y)
    for factor in (0.01, 0.99):
        assert np.array_equal(hinge_predictions(X, y, X_test, factor * model.C_max_), model.predict(X_test))
    if name == "cifar10":
        large = hinge_predictions(X, y, X_test, 1e4 * model.C_max_)
        assert not np.array_equal(large, model.predict(X_test))


def test_small_c_of_an_ensemble_is_the_certified_ensemble():
    source = few_digits("cifar10")
    unit = {"scale": "none", "partitions": 5, "folds": 3, "seed": 1}
    (row,) = small_c.accuracies(unit, [0.5], source)
    own, rest = list(KFold(3, shuffle=True, random_state=0).split(source.X_train))[1]
    features = flipcert.kernels.NTK().features(source.X_train)
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), n_partitions=5)
    model.fit(features[own], source.y_train[own])
    assert row["accuracy"] == model.score(features[rest], source.y_train[rest])
    assert row["C_max"] == pytest.approx(model.C_max_)
    assert row["size"] == own.size


def test_balanced_samples_have_as_many_of_each_class():
    y = np.repeat([0, 1, 2], [50, 20, 10])
    rows = small_c.balanced_sample(y, 20, seed=3)
    assert np.bincount(y[rows]).tolist() == [7, 7, 6]
    assert np.unique(rows).size == 20
    assert not np.array_equal(rows, small_c.balanced_sample(y, 20, seed=4))


def test_a_partition_of_one_class_votes_for_it():
    votes = hinge_predictions(np.ones((3, 2)), np.array([7, 7, 7]), np.zeros((4, 2)), 1.0)
    assert votes.tolist() == [7] * 4


def test_studies_of_c_are_drawn_and_judged(tmp_path):
    figure = figures.quick(figures.load("small-c"), 240)
    rows = rows_of(figure, Cells(tmp_path, more_digits))
    assert {row["size"] for row in rows} == {100, 200}
    assert {row["seed"] for row in rows} == {0, 1}
    assert {finding.verdict for finding in judge(figure, rows) if finding.claim.rule == "constant-below"} == {THEOREM}
    canvas = draw(figure, rows)
    assert len(canvas.axes) == len(list(panels(figure, rows))) == 2


def test_convolutions_take_the_shape_from_the_data():
    cell = Cell("mnist", "svm", 2, "none", (("kernel", "conv-ntk"),))
    assert model_of(cell, few_digits("mnist").image_shape).estimator.kernel.image_shape == (1, 8, 8)
    assert describe(cell) == "mnist svm kernel conv-ntk, 2 partitions"


@pytest.fixture
def data_folder(tmp_path):
    """A data folder with features of a few images of 4 x 4 pixels, and the images as MNIST publishes them."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    (folder / "mnist").mkdir(parents=True)
    y = {"train": np.arange(40) % 10, "test": np.arange(20) % 10}
    images = {part: rng.integers(0, 256, (labels.size, 28, 28)).astype(np.uint8) for part, labels in y.items()}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        shape = np.array(images[part].shape, ">i4").tobytes()
        (folder / "mnist" / f"{prefix}-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + shape + images[part].tobytes())
        shape = np.array(y[part].shape, ">i4").tobytes()
        labels = y[part].astype(np.uint8).tobytes()
        (folder / "mnist" / f"{prefix}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + shape + labels)
    arrays = {"y_train": y["train"], "y_test": y["test"]}
    maps = {f"x_{part}": rng.random((labels.size, 32)).astype(np.float32) for part, labels in y.items()}
    np.savez(folder / "mnist-rotnet.npz", image_shape=np.array([2, 4, 4]), **arrays, **maps)
    counts = {name: (values * 255).astype(np.uint8) for name, values in maps.items()}
    np.savez(folder / "cifar10-lite0-512.npz", scale=np.float32(0.5), **arrays, **counts)
    return folder


def test_the_data_of_figures_come_from_the_data_folder(data_folder):
    cifar10 = load_source("cifar10", data_folder)
    stored = np.load(data_folder / "cifar10-lite0-512.npz")
    assert cifar10.X_train.dtype == np.float32
    assert np.array_equal(cifar10.X_test, stored["x_test"] * np.float32(0.5))
    assert cifar10.partition_by is None
    two = load_source("mnist-1-vs-7", data_folder)
    assert two.image_shape == (2, 4, 4)
    assert set(two.y_train) == set(two.y_test) == {1, 7}
    assert two.X_train.shape == (8, 32)
    assert two.partition_by.shape == (8, 784)
    assert np.array_equal(
        two.partition_by, load_source("mnist", data_folder).partition_by[np.isin(np.arange(40) % 10, (1, 7))]
    )


@pytest.mark.parametrize("name", ["cifar10", "mnist"])
def test_missing_features_are_told_with_what_to_do(name, data_folder):
    file = {"cifar10": "cifar10-lite0-512", "mnist": "mnist-rotnet"}[name]
    (data_folder / f"{file}.npz").unlink()
    with pytest.raises(ValueError, match=rf"needs the features {file}.npz in .*; (put it there|make it: python)"):
        load_source(name, data_folder)


def test_a_published_formula_is_shown_without_a_warning(tmp_path):
    """Warnings are errors in these tests."""
    cell = Cell("cifar10", "smoothed", 3, "standard", (("method", "published"),))
    assert Cells(tmp_path, few_digits).row(cell)["n_test"] == 40


def test_accuracies_beyond_the_threshold_are_the_same_again():
    unit = {"scale": "none", "partitions": 10, "folds": 5, "seed": 0}
    first, *others = (small_c.accuracies(unit, [100, 1000, 10000], digits("digits")) for _ in range(4))
    assert all(other == first for other in others)
