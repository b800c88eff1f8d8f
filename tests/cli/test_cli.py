"""The command line: formats, models, attacks, sweeps, reports, help, and one sentence for what is wrong."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import parquet

import flipcert
from flipcert import cli
from tests.helpers.command_line import (
    IRIS_Y,
    MODEL,
    NAMES,
    X_TEST,
    X_TRAIN,
    Y_TEST,
    Y_TRAIN,
    python_certificates,
    refused,
    run,
    summary_of,
)


def test_all_formats_give_what_python_gives(data):
    expected = python_certificates()
    for kind in ("npz", "csv", "parquet"):
        summary_of("certify", f"train.{kind}", f"test.{kind}", *MODEL, "--out", kind)
        table = parquet.read_table(data / kind / "certificates.parquet").to_pandas()
        assert table["radius"].tolist() == expected.radius.tolist()
        assert table["radius_upper"].tolist() == expected.radius_upper.tolist()
        assert table["blackbox_radius"].tolist() == expected.blackbox_radius.tolist()
        assert table["prediction"].tolist() == expected.prediction.tolist()
        assert table["runner_up"].tolist() == expected.runner_up.tolist()
        assert table["exact"].tolist() == expected.exact.tolist()
        assert table["target"].tolist() == expected.target.tolist()
        assert table["label"].tolist() == Y_TEST.tolist()
    assert (
        summary_of("certify", "X_train.npy,y_train.npy", "X_test.npy,y_test.npy", *MODEL)["metrics"]
        == (summary_of("certify", "train.csv", "test.npz", *MODEL)["metrics"])
    )


def test_summary_and_table(data):
    expected = python_certificates()
    summary = summary_of("certify", "train.npz", "test.npz", *MODEL, "--out", "run")
    metrics = summary["metrics"]
    assert metrics["accuracy"] == pytest.approx(np.mean(expected.prediction == Y_TEST))
    assert metrics["median_radius"] == expected.median_certified_robustness(Y_TEST)
    assert metrics["certified_accuracy"]["2"] == pytest.approx(expected.certified_accuracy(Y_TEST, 2))
    stored = json.loads((data / "run" / "summary.json").read_text())
    assert stored["metrics"] == metrics
    assert stored["inputs"]["train"]["rows"] == 75
    assert stored["versions"]["flipcert"] == flipcert.__version__
    assert {"reading", "fitting", "certifying"} <= set(stored["timings"])
    again = run("certify", "train.npz", "test.npz", *MODEL, "--out", "run")
    assert again.exit_code == 0
    assert "holds this run already" in again.stderr
    assert f"medianradius{metrics['median_radius']}" in again.stdout.replace(" ", "")
    assert "48 of the 70 correct predictions withstand" in again.stdout


def test_without_labels_there_is_no_accuracy(data):
    metrics = summary_of("certify", "train.csv", "test-unlabelled.csv", *MODEL, "--out", "run")["metrics"]
    assert "accuracy" not in metrics
    assert metrics["median_radius"] >= 0
    assert "label" not in parquet.read_table(data / "run" / "certificates.parquet").column_names
    assert (
        "More than half of the predictions withstand"
        in run("certify", "train.csv", "test-unlabelled.csv", *MODEL).stdout
    )


def test_other_models_and_options(data):
    def radii(model, *options):
        summary_of("certify", "train.npz", "test.npz", *options, "--out", "run")
        found = parquet.read_table(data / "run" / "certificates.parquet")["radius"].to_numpy()
        assert found.tolist() == model.fit(X_TRAIN, Y_TRAIN).certify(X_TEST).radius.tolist()
        for file in (data / "run").iterdir():
            file.unlink()

    radii(flipcert.KernelSVM())
    radii(flipcert.KernelSVM("linear", C=1e-6), "--kernel", "linear", "--C", "1e-6")
    radii(
        flipcert.WeightedNeighbors(7, "distance"),
        "--model",
        "neighbors",
        "--neighbors",
        7,
        "--neighbor-weights",
        "distance",
    )
    radii(flipcert.LabelSpreading(4, alpha=0.8), "--model", "spreading", "--neighbors", 4, "--alpha", 0.8)
    relu = flipcert.kernels.NTK(depth=2, activation="relu", bias_std=0.1)
    radii(flipcert.KernelSVM(relu), "--depth", 2, "--activation", "relu", "--bias-std", 0.1)
    classes = [*NAMES.tolist(), "none"]
    radii(flipcert.KernelSVM(classes=classes), "--classes", ",".join(classes))


def test_trusted_labels(data):
    trusted = np.arange(75) % 2 == 0
    np.savez("trusted.npz", X=X_TRAIN, y=Y_TRAIN, mine=trusted)
    summary_of("certify", "trusted.npz", "test.npz", "--trusted", "mine", "--out", "run")
    model = flipcert.KernelSVM().fit(X_TRAIN, Y_TRAIN, trusted=trusted)
    radius = parquet.read_table(data / "run" / "certificates.parquet")["radius"].to_numpy()
    assert radius.tolist() == model.certify(X_TEST).radius.tolist()


@pytest.mark.parametrize("scale", ["centre", "standard"])
def test_scaling_never_sees_labels_and_is_the_same_for_both(data, scale):
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_std=scale == "standard").fit(X_TRAIN)
    model = flipcert.KernelSVM().fit(scaler.transform(X_TRAIN), Y_TRAIN)
    expected = model.certify(scaler.transform(X_TEST)).median_certified_robustness(Y_TEST)
    summary = summary_of("certify", "train.npz", "test.npz", "--scale", scale)
    assert summary["metrics"]["median_radius"] == expected
    assert ("with_std=False" in str(summary)) == (scale == "centre")


def test_wrong_options_are_refused(data):
    files = ("certify", "train.npz", "test.npz")
    assert "--model must be one of svm, ridge, neighbors" in refused(*files, "--model", "forest")
    assert "--kernel must be one of" in refused(*files, "--kernel", "cosine")
    assert "--reg does not apply to --model svm" in refused(*files, "--reg", 1)
    assert "--gamma does not apply to --model svm with --kernel linear" in refused(
        *files, "--gamma", 1, "--kernel", "linear"
    )
    assert "--neighbors does not apply" in refused(*files, "--neighbors", 3)
    assert "--alpha does not apply" in refused(*files, "--alpha", 0.5)
    assert "reg must be a positive number" in refused(*files, "--model", "ridge", "--reg", -1)
    assert "--C 1000 is above the small-C threshold 0.000" in refused(*files, "--C", 1000)
    assert "--partitions must be" in refused(*files, "--partitions", 500)
    assert "--partition-rule must be one of" in refused(*files, "--partitions", 3, "--partition-rule", "label")
    assert "--partition-rule must be one of" in refused(*files, "--partition-rule", "label")
    assert "--partition-rule hash is about partitions that vote" in refused(*files, "--partition-rule", "hash")
    assert "--image-shape 1,3,3 does not fit rows of 4 features" in refused(*files, "--image-shape", "3,3")
    assert "does not name" in refused(*files, "--classes", "setosa,versicolor")
    assert "depth must be" in refused(*files, "--depth", -1)
    assert "numbers with commas" in refused("sweep", *files[1:], "--partitions", "1;2")
    assert "names a number twice" in refused("sweep", *files[1:], "--partitions", "2,2")
    assert "--row must be below the 75 rows" in refused("attack", *files[1:], "--row", 75)
    assert "--format must be table, csv or json" in refused("attack", *files[1:], "--row", 0, "--format", "xml")


@pytest.mark.parametrize("wrong", ["nan", "inf", "-1", "0", "1e400"])
def test_numbers_that_are_none_are_refused_in_a_sentence(data, wrong):
    files = ("certify", "train.npz", "test.npz", "--quiet")
    for options in (
        ("--time-limit",), ("--model", "milp-svm", "--time-limit"), ("--model", "ridge", "--reg"), ("--C",),
        ("--model", "milp-svm", "--C"), ("--model", "logistic", "--C"),
        ("--kernel", "rbf", "--gamma"), ("--weight-std",),
        ("--model", "smoothed", "--flip-probability"), ("--model", "network", "--learning-rate"),
        ("--model", "network", "--clip"),
    ):  # fmt: skip
        finite = ", and finite" if wrong in ("inf", "1e400") else ""
        assert f"{options[-1]} must be a positive number{finite}; got " in refused(*files, *options, wrong)
    assert "--reg must be a positive number" in refused("sweep", *files[1:], "--model", "ridge", "--reg", wrong)


HUGE = 10**30


@pytest.mark.parametrize(
    "wrong",
    [
        ["--jobs", 0], ["--jobs", 100_000], ["--jobs", HUGE], ["--jobs", "nan"], ["--workers", 0], ["--workers", HUGE],
        ["--memory", 0], ["--memory", -1], ["--memory", "nan"], ["--partitions", 0], ["--partitions", HUGE],
        ["--partitions", "nan"], ["--copies", 0], ["--partitions", 2, "--copies", HUGE],
        ["--attacks", -1], ["--attacks", "nan"], ["--seed", -1], ["--seed", HUGE],
        ["--depth", -1], ["--depth", HUGE], ["--fail-under", -1], ["--model", "neighbors", "--neighbors", HUGE],
        ["--model", "network", "--epochs", HUGE], ["--model", "network", "--hidden", HUGE],
        ["--image-shape", f"{HUGE},{HUGE}"],
    ],
    ids=str,
)  # fmt: skip
def test_numbers_out_of_range_are_refused_by_their_option(data, wrong):
    result = run("certify", "train.npz", "test.npz", "--quiet", *wrong)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert wrong[-2] in " ".join(result.stderr.split()), result.stderr


def test_rows_out_of_range_are_refused(data):
    for row in (75, HUGE):
        assert "--row must be below the 75 rows" in refused("attack", "train.npz", "test.npz", "--row", row)
    for row in (-1, "nan"):
        assert run("attack", "train.npz", "test.npz", "--row", row).exit_code == 2


@pytest.mark.parametrize(
    "wrong", [["certify"], ["certify", "a", "b", "--nonsense"], ["certify", "a", "b", "--partitions", "0"]]
)
def test_wrong_usage_gets_the_usage_line(data, wrong):
    result = run(*wrong)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr


def test_wrong_data_is_refused(data):
    assert "nowhere.csv does not exist" in refused("certify", "nowhere.csv", "test.csv")
    assert "has no labels" in refused("certify", "train-unlabelled.csv", "test.csv")
    assert "or name another with --label" in refused("certify", "train.csv", "test.csv", "--label", "species")
    np.savez("one.npz", X=X_TRAIN, y=np.zeros(75))
    assert "one class only" in refused("certify", "one.npz", "test-unlabelled.csv")
    np.savez("numbers.npz", X=X_TEST, y=IRIS_Y[1::2])
    assert "none of the labels of numbers.npz (such as 0, 1, 2)" in refused("certify", "train.npz", "numbers.npz")
    np.savez("narrow.npz", X=X_TEST[:, :3])
    assert "has 3 features, but train.npz has 4" in refused("certify", "train.npz", "narrow.npz")


@pytest.mark.parametrize("model", [MODEL, ("--model", "ridge"), ("--model", "neighbors", "--neighbors", "9"), ()])
def test_attacks_work_when_they_are_carried_out(data, model):
    row = 3
    table = run("attack", "train.npz", "test.npz", "--row", row, *model, "--quiet")
    assert table.exit_code == 0, table.output
    found = json.loads(run("attack", "train.npz", "test.npz", "--row", row, *model, "--json", "--quiet").stdout)
    printed = run("attack", "train.npz", "test.npz", "--row", row, *model, "--format", "csv", "--quiet").stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [int(flip["training_row"]) for flip in rows] == [flip["training_row"] for flip in found["flips"]]
    assert len(rows) == found["radius"] + 1
    assert f"These {len(rows)} flips turn it into {found['target']}" in table.stdout
    flipped = Y_TRAIN.copy()
    for flip in found["flips"]:
        assert flipped[flip["training_row"]] == flip["old_label"]
        flipped[flip["training_row"]] = flip["new_label"]
    np.savez("flipped.npz", X=X_TRAIN, y=flipped)
    assert summary_of("certify", "flipped.npz", "test.npz", *model, "--out", "after")
    after = parquet.read_table(data / "after" / "certificates.parquet").to_pandas()
    assert after["prediction"][row] == found["target"] != found["prediction"]
    unit = "votes" if "--partitions" in model else "score"
    leads = [flip[f"{unit}_lead"] for flip in found["flips"]]
    assert found["lead_before"] >= leads[0] >= leads[-1]
    assert leads[-1] <= 1e-9


def test_no_attack_is_said_so(data):
    np.savez("all.npz", X=X_TRAIN, y=Y_TRAIN, mine=np.ones(75, bool))
    result = run("attack", "all.npz", "test.npz", "--row", 0, "--trusted", "mine", "--quiet")
    assert result.exit_code == 0
    assert "no label can be flipped, as all 75 training labels are trusted." in result.stdout
    np.savez("none.npz", X=np.zeros((3, 4)), y=Y_TRAIN[[0, 30, 60]])
    result = run("attack", "none.npz", "test.npz", "--row", 0, "--classes", ",".join(NAMES), "--quiet")
    assert "; no flips of the 3 training labels change that." in result.stdout


@pytest.mark.parametrize("model", [("--kernel", "rbf"), ("--activation", "relu"), ()])
def test_points_of_a_sweep_are_what_certify_gives(data, model):
    options = ("--model", "ridge", *model)
    swept = summary_of(
        "sweep", "train.npz", "test.npz", *options, "--partitions", "1,3", "--reg", "0.1,1", "--out", "swept"
    )
    assert [(p["settings"]["reg"], p["settings"]["partitions"]) for p in swept["points"]] == [
        (0.1, 1), (0.1, 3), (1.0, 1), (1.0, 3)
    ]  # fmt: skip
    for point in swept["points"]:
        settings = point["settings"]
        one = ("--reg", settings["reg"], "--partitions", settings["partitions"])
        assert summary_of("certify", "train.npz", "test.npz", *options, *one)["metrics"] == point["metrics"]
    assert not list((data / "swept").glob("**/*.npy"))
    result = run("sweep", "train.npz", "test.npz", *options, "--partitions", "1,3", "--reg", "0.1,1", "--out", "swept")
    assert result.exit_code == 0
    assert "holds this run already" in result.stderr
    assert len([line for line in result.stdout.splitlines() if line.strip().startswith(("0.1", "1 "))]) == 4


def test_reports_of_several_runs(data):
    summary_of("certify", "train.npz", "test.npz", "--out", "svm")
    summary_of("sweep", "train.npz", "test.npz", *MODEL[:-2], "--partitions", "1,3", "--out", "sweep")
    result = run("report", "svm", "sweep", "--out", "both.html", "--title", "Flowers & <more>")
    assert result.exit_code == 0, result.output
    page = (data / "both.html").read_text()
    assert "Flowers &amp; &lt;more&gt;" in page
    assert "svm: svm, one model" in page
    assert "sweep: ridge, reg 0.5, 3 partitions" in page
    assert "is a folder" in refused("report", "svm", "--out", "sweep")
    assert "does not exist" in refused("report", "svm", "--out", "no/where.html")


def test_a_median_can_be_demanded(data):
    assert run("certify", "train.npz", "test.npz", "--fail-under", 1, "--quiet").exit_code == 0
    result = run("certify", "train.npz", "test.npz", "--fail-under", 70, "--quiet")
    assert result.exit_code == 1
    assert "NOT met: median-radius>=70 (median-radius is " in result.stderr


def test_results_go_to_standard_output_and_progress_does_not(data):
    result = run("certify", "train.npz", "test.npz", "--json")
    assert json.loads(result.stdout)
    assert "Certifying" in result.stderr
    assert run("certify", "train.npz", "test.npz", "--json", "--quiet").stderr == ""


def test_help_is_quick_and_teaches():
    code = "import sys, flipcert.cli; print({'numba', 'sklearn', 'scipy', 'pyarrow'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "set()"
    for command in ("certify", "sweep", "attack", "report"):
        assert f"flipcert {command} " in run(command, "--help").stdout
    assert run("--version").stdout.strip() == f"flipcert {flipcert.__version__}"


@pytest.mark.parametrize("command", ["certify", "sweep", "attack", "report"])
def test_help_fits_the_terminal(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    prose = run(command, "--help").stdout.split("╭")[0].split("\n")
    for line, after in itertools.pairwise(line.strip() for line in prose):
        if line and after:  # of one paragraph, which goes to the next line only where it has to
            assert len(f"{line} {after.split()[0]}") > 78, (line, after)
            assert not line.startswith("flipcert "), "an example that needs a second line"


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (flipcert.SmoothedLinear(0.05, reg=0.5, method="kl"),
         "--model smoothed --flip-probability 0.05 --reg 0.5 --method kl"),
        (flipcert.BoundedNetwork((4,), learning_rate=0.3, epochs=3, max_flips=4),
         "--model network --hidden 4 --learning-rate 0.3 --epochs 3 --max-flips 4"),
        (flipcert.LogisticRegression(0.05), "--model logistic --C 0.05"),
        (flipcert.MilpSVM("rbf", C=0.05, time_limit=600), "--model milp-svm --kernel rbf --C 0.05 --time-limit 600"),
    ],
)  # fmt: skip
def test_peers(data, model, options):
    np.savez("few.npz", X=X_TEST[::5], y=Y_TEST[::5])
    for partitions in (1, 2):
        expected = (model if partitions == 1 else flipcert.PartitionEnsemble(model, 2)).fit(X_TRAIN, Y_TRAIN)
        summary_of("certify", "train.npz", "few.npz", *options.split(), "--partitions", partitions, "--out", partitions)
        radius = parquet.read_table(data / str(partitions) / "certificates.parquet")["radius"].to_numpy()
        assert radius.tolist() == expected.certify(X_TEST[::5]).radius.tolist()
    attack = run("attack", "train.npz", "few.npz", "--row", 0, *options.split(), "--quiet")
    assert attack.exit_code == 0, attack.output
    assert re.search(r"no (single flip changes|\d+ flips change) that", attack.stdout)


def test_kernels_of_convolutional_networks(data):
    assert "needs --image-shape" in refused("certify", "train.npz", "test.npz", "--kernel", "conv-ntk")
    assert "must be numbers such as" in refused("certify", "train.npz", "test.npz", "--image-shape", "2,a")
    kernel = flipcert.kernels.ConvNTK((1, 2, 2), activation="erf", pooling="average")
    expected = flipcert.KernelSVM(kernel).fit(X_TRAIN, Y_TRAIN).certify(X_TEST).median_certified_robustness(Y_TEST)
    options = "--kernel conv-ntk --image-shape 2,2 --activation erf --pooling average"
    metrics = summary_of("certify", "train.npz", "test.npz", *options.split())["metrics"]
    assert metrics["median_radius"] == expected


def test_an_interruption_before_any_command_is_told_too(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "\nInterrupted. Nothing was begun yet.\n"
