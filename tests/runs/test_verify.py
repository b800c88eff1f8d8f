"""``flipcert verify``: it agrees with runs of all models, and finds what was changed in one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from flipcert.cli.console import results
from flipcert.runs.plain_metrics import metrics_of
from flipcert.runs.settings import MODELS, Settings
from flipcert.runs.stored_run import StoredRun
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, refused, run

RBF = ("--kernel", "rbf")
FEW = 15


@pytest.fixture
def files(data, monkeypatch):
    """Few test points, and training data of which some labels are trusted."""
    monkeypatch.setattr(results, "width", 200)
    rows = np.arange(0, 75, 75 // FEW)
    np.savez("few.npz", X=X_TEST[rows], y=Y_TEST[rows])
    np.savez("trusted.npz", X=X_TRAIN, y=Y_TRAIN, sure=np.arange(75) % 3 > 0)
    some = np.arange(0, 75, 5)
    np.savez("small.npz", X=X_TRAIN[some], y=Y_TRAIN[some])
    return data


def certified(*options, train="train.npz", test="few.npz", command="certify"):
    """A finished run in the folder ``run``."""
    result = run(command, train, test, *options, "--out", "run", "--quiet")
    assert result.exit_code == 0, result.output


def verified(*options, train="train.npz", test="few.npz", code=0):
    """What the command says about it."""
    result = run("verify", "run", train, test, "--quiet", *options)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.stdout.split())


def edited(name, **columns):
    """Change columns of a table of the run: functions of the old values."""
    table = parquet.read_table(f"run/{name}.parquet")
    for column, change in columns.items():
        values = pa.array(change(table[column].to_pylist()), table[column].type)
        table = table.set_column(table.column_names.index(column), column, values)
    parquet.write_table(table, f"run/{name}.parquet")


def resummarised(change=None):
    """Change the summary of the run; by default so that its metrics are those of its edited tables."""
    stored = StoredRun.read(Path("run"))
    summary = json.loads(Path("run/summary.json").read_text())
    if change is None:
        counted = metrics_of(stored.points[0], stored.n_labels, stored.n_attackable)
        metrics = {name: value for name, value in counted.items() if " " not in name}
        metrics["certified_accuracy"] = {
            name.split()[1]: value for name, value in counted.items() if name.startswith("certified_accuracy ")
        }
        summary["metrics"] = metrics
    else:
        change(summary)
    Path("run/summary.json").write_text(json.dumps(summary))


@pytest.mark.parametrize(
    ("options", "how"),
    [
        (("--model", "svm"), "one model: all gains sorted"),
        (("--model", "svm", *RBF, "-n", "5"), "ensembles: exact cost of every vote"),
        (("--model", "ridge", *RBF, "--reg", "0.1", "--scale", "standard"), "one model: all gains sorted"),
        (("--model", "ridge", "--reg", "0.01", "-n", "3"), "ensembles, weights of both signs"),
        (("--model", "ridge", "-n", "4", "--partition-rule", "random", "--seed", "3"), "ensembles"),
        (("--model", "neighbors",), "one model: all gains sorted"),
        (("--model", "neighbors", "--neighbor-weights", "distance", "-n", "3"), "ensembles: exact cost of every vote"),
        (("--model", "spreading",), "one model: all gains sorted"),
        (("--model", "spreading", "--alpha", "0.99", "--neighbors", "4", "-n", "3"), "ensembles: exact cost of every"),
        (("--model", "smoothed"), "smoothing: at most the exact radius"),
        (("--model", "smoothed", "-n", "3"), "votes counted"),
        (("--model", "network", "--max-flips", "5"), "predictions 15 0 fitted and asked again"),
        (("--model", "network", "--loss", "squared", "-n", "3"), "smaller than the replayed attack"),
    ],
    ids=lambda own: own if isinstance(own, str) else " ".join(own),
)  # fmt: skip
def test_agreement(files, options, how):
    certified(*options)
    said = verified("--points", FEW)
    assert how in said
    assert f"No difference at {FEW} test points." in said


def test_agreement_on_logistic_regression(files):
    certified("--model", "logistic", "--C", "0.05")
    assert "smaller than the replayed attack" in verified()


def test_agreement_on_an_svm_of_any_c(files):
    np.savez("three.npz", X=X_TEST[[0, 30, 60]], y=Y_TEST[[0, 30, 60]])
    certified("--model", "milp-svm", *RBF, "--C", "0.5", "--time-limit", "5", train="small.npz", test="three.npz")
    assert "smaller than the replayed attack" in verified(train="small.npz", test="three.npz")


@pytest.mark.parametrize(
    "model", [("svm", *RBF), ("ridge", "-n", "3"), ("neighbors", "-n", "3"), ("smoothed",)], ids=" ".join
)
@pytest.mark.parametrize("options", [("--trusted", "sure"), ("--classes", "setosa,virginica,versicolor,vulgaris")])
def test_agreement_with_trusted_labels_and_given_classes(files, model, options):
    certified("--model", *model, *options, train="trusted.npz" if "sure" in options else "train.npz")
    verified("--points", FEW, train="trusted.npz" if "sure" in options else "train.npz")


def test_agreement_where_all_is_tied(files):
    """Whole numbers, copies of rows and points between classes: many scores and distances are the same."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-1, 2, (60, 3)), rng.integers(0, 4, 60)
    np.savez("tied.npz", X=X, y=y)
    for model in (
        ("svm", "--kernel", "linear"), ("neighbors", "--neighbors", "8"), ("svm", "-n", "6", "-k", "linear"),
        ("spreading", "--neighbors", "3"),
    ):  # fmt: skip
        result = run(
            "certify", "tied.npz", "tied.npz", "--model", *model, "--classes", "0,1,2,3", "--out", "-".join(model), "-q"
        )
        assert result.exit_code == 0, result.output
        assert run("verify", "-".join(model), "tied.npz", "tied.npz", "--points", "60").exit_code == 0


def test_agreement_with_a_sweep(files):
    certified("--model", "ridge", *RBF, "--reg", "0.1,1", "-n", "1,3,5", command="sweep")
    said = verified("--points", 20)
    assert "No difference at 20 predictions (the run has 6 models)." in said
    for how in ("one model", "dynamic programming", "another prediction"):
        assert how in said
    edited("certificates", radius=lambda values: [values[0], *values[1:-FEW], *(value + 1 for value in values[-FEW:])])
    assert "ridge, reg 1, 5 partitions" in verified("--points", 20, code=1)


def test_points_are_drawn_by_seed(files):
    certified(*RBF)
    edited("certificates", radius=lambda values: [value + 1 for value in values])
    said = [verified("--points", 4, "--seed", seed, code=1) for seed in (0, 0, 1)]
    assert said[0] == said[1] != said[2]
    assert "radii 4 4 one model" in said[0]


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize(
    "options",
    [("--model", "svm", *RBF), ("--model", "svm", *RBF, "-n", "5"), ("--model", "ridge", "-n", "3")],
    ids=" ".join,
)
def test_a_changed_radius_is_found(files, by, options):
    certified(*options)
    row = int(np.argmax(parquet.read_table("run/certificates.parquet")["radius"]))
    changed = parquet.read_table("run/certificates.parquet")["radius"][row].as_py() + by
    edited("certificates", radius=lambda values: [*values[:row], changed, *values[row + 1 :]])
    edited("certificates", exact=lambda values: [*values[:row], False, *values[row + 1 :]])
    assert f"largest_radius {changed}" in verified("--points", FEW, code=1) or by < 0
    resummarised()
    said = verified("--points", FEW, code=1)
    assert f" {row} radii {changed} to {changed - by} {changed - by} " in said
    assert "1 difference between what the run says and what was found." in said


def test_a_radius_that_forgets_about_removed_classes_is_found(files):
    """The class of a label that is flipped away is gone, if the label space is read from the labels."""
    np.savez("train.npz", X=[[1.0], [2.0], [3.0]], y=[0, 1, 2])
    np.savez("few.npz", X=[[0.0]])
    certified("--model", "ridge", "--kernel", "linear", "--attacks", "0")
    edited("certificates", radius=lambda _: [3], radius_upper=lambda _: [3], exact=lambda _: [True])
    assert "0 radii 3 0 " in verified(code=1)


def test_a_radius_of_an_ensemble_that_forgets_about_removed_classes_is_found(files):
    rng = np.random.default_rng(1)
    np.savez("train.npz", X=rng.normal(size=(40, 3)), y=[2, *rng.integers(0, 2, 39)])
    np.savez("few.npz", X=rng.normal(size=(5, 3)))
    certified("--model", "ridge", "--kernel", "linear", "-n", "8", "--attacks", "0")
    edited("certificates", radius=lambda _: [1] * 5, radius_upper=lambda _: [40] * 5, exact=lambda _: [False] * 5)
    edited("certificates", blackbox_radius=lambda _: [0] * 5)
    assert "radii 5 5 ensembles" in verified(code=1)


METRICS = {
    "accuracy": 0.999, "median_radius": 7, "median_radius_upper": 70, "median_radius_over_all": 7, "largest_radius": 74,
    "share_exact": 0.5, "share_rounding_sensitive": 0.5, "test_points": 16, "training_labels": 76,
    "attackable_labels": 74, "median_blackbox_radius": 9, "certified_accuracy_at_1_percent": 0.98,
    "mean_certified_accuracy_to_1_percent": 0.98, "warning": "This model gives one answer for all.", "seed": 5,
}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
def test_a_changed_metric_is_found(files, metric):
    """What a reader sees first is in the summary, and must be what the tables give."""
    certified(*RBF, "-n", "5")
    resummarised(lambda summary: summary["metrics"].update({metric: METRICS[metric]}))
    said = verified("--points", "1", code=1)
    assert f"metrics {metric} {METRICS[metric]} " in said
    assert "1 difference between what the run says and what was found." in said
    assert "metrics " in said.split("how")[1].split("counted anew from all lines")[0]


@pytest.mark.parametrize("command", ["certify", "sweep"])
def test_changed_metrics_and_settings_are_found_in_each_model(files, command):
    certified("-n", "5" if command == "certify" else "1,3", *RBF, command=command)
    verified("--points", "1")

    def change(summary):
        last = summary.get("points", [summary])[-1]
        last["metrics"]["certified_accuracy"]["1"] += 0.01
        del last["metrics"]["accuracy"]
        last["settings"]["gamma"] = 3
        last["name"] = "the best one"

    resummarised(change)
    said = verified("--points", "1", code=1)
    assert "metrics certified_accuracy 1 " in said
    assert "metrics no accuracy accuracy 0." in said
    assert "settings gamma 3 gamma None" in said
    assert "settings name the best one name svm, " in said
    assert "4 differences" in said


@pytest.mark.parametrize(
    "kind", ["constant", "no-better", "unlabelled", "unlabelled-constant", "four", "trusted-all", "one-label"]
)
@pytest.mark.parametrize("partitions", [1, 3])
def test_metrics_agree_with_those_of_odd_runs(files, kind, partitions):
    rng = np.random.default_rng(0)
    X, y, t = rng.normal(size=(40, 2)), rng.integers(0, 3, 40), rng.integers(0, 3, 20)
    x, sure = rng.normal(size=(20, 2)), np.ones(40, bool)
    if "constant" in kind:
        y[:38] = 1
    own = {"X": x[:4] if kind == "four" else x}
    if "unlabelled" not in kind:
        own["y"] = t[: len(own["X"])] * (kind != "one-label")
    np.savez("train.npz", X=X, y=y, sure=sure)
    np.savez("few.npz", **own)
    trusted = ("--trusted", "sure") if kind == "trusted-all" else ()
    certified("--model", "neighbors", "-n", partitions, "--classes", "0,1,2,3", *trusted)
    assert "No difference" in verified("--points", "2")


def test_other_changed_columns_are_found(files):
    certified("--model", "svm", *RBF, "-n", "5")
    edited("certificates", blackbox_radius=lambda values: [values[0] + 1, *values[1:]])
    assert "radii by votes" in verified("--points", FEW, code=1).split("the run says")[1]
    edited("certificates", label=lambda values: [*values[:-1], "setosa"])
    assert "14 other columns label setosa, exact True label virginica, exact True" in verified("--points", FEW, code=1)
    edited("certificates", prediction=lambda values: [*values[:3], "virginica", *values[4:]])
    assert "3 predictions virginica setosa" in verified("--points", FEW, code=1)


def test_radii_without_weights_are_compared_with_attacks(files):
    certified("--model", "smoothed", "-n", "3")
    edited("certificates", radius=lambda values: [75] * len(values))
    assert "radii 75 another class after" in verified("--points", FEW, code=1)


def test_radii_that_cannot_be_are_found_without_weights(files):
    certified("--model", "network", "--max-flips", "5")
    said = verified("--points", FEW)
    assert "no weights, so not computed again: within radius_upper" in said
    edited("certificates", radius=lambda values: [4000] * len(values))
    assert "radii 4000 to " in verified("--points", FEW, code=1)


def flipped_once_more(values):
    return [values[0], values[0], *values[2:]]


@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("training_row", flipped_once_more, "a label is flipped twice"),
        ("training_row", lambda values: [75, *values[1:]], "there is no training row 75"),
        ("old_label", lambda values: ["virginica", *values[1:]], "is labelled setosa, not virginica"),
        ("new_label", lambda values: ["vulgaris", *values[1:]], "cannot be flipped to vulgaris"),
        ("row", lambda values: [values[-1], *values[1:]], "radius_upper speaks of"),
    ],
)
def test_a_damaged_attack_is_found(files, column, change, said):
    certified("--model", "neighbors")
    table = parquet.read_table("run/attacks.parquet")
    assert table["old_label"][0].as_py() == "setosa"
    edited("attacks", **{column: change})
    assert said in verified("--points", FEW, code=1)


def test_an_attack_that_does_not_work_is_found(files):
    """Flips of labels that do not matter to the point."""
    certified("--model", "neighbors")
    edited("attacks", training_row=lambda values: [74 - value for value in values])
    table = parquet.read_table("run/attacks.parquet")
    before = [str(Y_TRAIN[row]) for row in table["training_row"].to_pylist()]
    after = ["versicolor" if label != "versicolor" else "setosa" for label in before]
    edited("attacks", old_label=lambda _: before, new_label=lambda _: after)
    assert "it is setosa still" in verified("--points", FEW, code=1)


def test_an_attack_on_trusted_labels_is_found(files):
    certified("--model", "neighbors", train="train.npz")
    summary = json.loads((files / "run" / "summary.json").read_text())
    summary["data"]["trusted"] = "sure"
    summary["inputs"]["train"]["sha256"] = sha256("trusted.npz")
    (files / "run" / "summary.json").write_text(json.dumps(summary))
    assert 'run in run.json (data: trusted was null, is "sure")' in refused("verify", "run", "trusted.npz", "few.npz")
    identify(summary)
    said = verified("--points", FEW, train="trusted.npz", code=1)
    assert "is trusted" in said
    assert "75, 75 not trusted 75, 25 not trusted" in said


def test_another_label_space_and_sources_that_nobody_named_are_found(files):
    certified(*RBF)
    resummarised(lambda summary: summary.update(classes=["setosa", "virginica"], n_sources=3))
    said = verified("--points", FEW, code=1)
    assert "75, 75 not trusted, 3 sources 75, 75 not trusted, None sources" in said
    assert "classes ['setosa', 'virginica'] classes ['setosa', 'versicolor', 'virginica']" in said


def identify(summary):
    """Make the run one that was asked for what its changed summary says."""
    identity = json.loads(Path("run/run.json").read_text())
    Path("run/run.json").write_text(json.dumps({name: summary[name] for name in identity}))


def sha256(path):
    from flipcert.datasets.files import digest

    return digest(path)


def test_what_is_not_of_the_run_is_refused(files):
    certified(*RBF)
    assert "trusted.npz does not hold the training data of run" in refused("verify", "run", "trusted.npz", "few.npz")
    assert "test.npz does not hold the test data of run" in refused("verify", "run", "train.npz", "test.npz")
    assert "has no summary.json" in refused("verify", "nowhere", "train.npz", "few.npz")
    assert "other.npz does not exist" in refused("verify", "run", "other.npz", "few.npz")
    assert run("verify", "run", "train.npz", "few.npz", "--points", "0").exit_code == 2
    table = parquet.read_table("run/certificates.parquet")
    parquet.write_table(table.slice(1), "run/certificates.parquet")
    assert "must speak of the 15 test points" in refused("verify", "run", "train.npz", "few.npz")
    parquet.write_table(table.drop_columns("radius"), "run/certificates.parquet")
    assert "certificates.parquet has no column 'radius'" in refused("verify", "run", "train.npz", "few.npz")
    parquet.write_table(table, "run/certificates.parquet")
    summary = json.loads((files / "run" / "summary.json").read_text())
    summary["data"]["weather"] = "fine"
    (files / "run" / "summary.json").write_text(json.dumps(summary))
    identify(summary)
    assert "options for its data that this version does not know" in refused("verify", "run", "train.npz", "few.npz")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("certificates", lambda table: table.drop_columns("rounding_sensitive"), "no column 'rounding_sensitive'"),
        ("certificates", lambda table: table.set_column(0, "row", pa.array([None] * FEW, pa.int64())), "'row' of"),
        ("certificates", lambda table: table.set_column(0, "row", pa.array(["x"] * FEW)), "holds string, not whole"),
        ("certificates", lambda table: table.append_column("point", pa.array([7] * FEW)), "speaks of 8 models"),
        ("certificates", lambda table: table.append_column("point", pa.array([-1] * FEW)), "a model number -1"),
        ("certificates", lambda table: table.set_column(1, "prediction", pa.array([[1]] * FEW)), "not labels"),
        ("attacks", lambda table: table.drop_columns("new_label"), "attacks.parquet has no column 'new_label'"),
    ],
)  # fmt: skip
def test_tables_that_lack_something_are_named_without_words_of_python(files, name, change, said):
    certified(*RBF)
    parquet.write_table(change(parquet.read_table(f"run/{name}.parquet")), f"run/{name}.parquet")
    told = refused("verify", "run", "train.npz", "few.npz")
    assert "run does not hold a complete run: " in told
    assert said in told
    assert "Error:" not in told.removeprefix("Error:")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[]", "summary.json is not what was written"),
        (b"{", "summary.json is not what was written"),
        (b"\xff", "summary.json is not what was written"),
        (b"[" * 100_000, "summary.json is not what was written"),
        (b'{"models": []}', "summary.json is not what was written"),
    ],
    ids=range(5),
)
def test_summaries_of_nothing_are_told(files, content, said):
    certified(*RBF)
    Path("run/summary.json").write_bytes(content)
    assert said in refused("verify", "run", "train.npz", "few.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
@pytest.mark.parametrize("name", ["summary.json", "certificates.parquet", "attacks.parquet", "run.json"])
def test_named_pipes_in_a_folder_are_not_waited_for(files, name):
    certified(*RBF)
    Path("run", name).unlink()
    os.mkfifo(f"run/{name}")
    assert name in refused("verify", "run", "train.npz", "few.npz")
    assert name in refused("report", "run")
    said = refused("certify", "train.npz", "few.npz", *RBF, "--out", "run", "--quiet")
    assert ("run.json is damaged" if name == "run.json" else name) in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
def test_named_pipes_as_data_are_not_waited_for(files):
    certified(*RBF)
    os.mkfifo("pipe.npz")
    assert "pipe.npz is a named pipe, not a file" in refused("verify", "run", "pipe.npz", "few.npz")
    assert "pipe.npz is a named pipe, not a file" in refused("verify", "run", "train.npz", "pipe.npz")


def test_whatever_is_in_the_folder_is_told_in_a_sentence(files):
    certified(*RBF, "-n", "3")
    rng = np.random.default_rng(0)
    whole = {
        name: (files / "run" / name).read_bytes()
        for name in ("summary.json", "certificates.parquet", "attacks.parquet")
    }
    codes = set()
    for number in range(60):
        name = list(whole)[number % 3]
        damaged = bytearray(whole[name])
        place = int(rng.integers(len(damaged)))
        if number % 2:
            damaged[place] = int(rng.integers(256))
        else:
            del damaged[place : place + int(rng.integers(1, 20))]
        (files / "run" / name).write_bytes(damaged)
        result = run("verify", "run", "train.npz", "few.npz", "--points", "3", "--quiet")
        assert result.exit_code in (0, 1, 2), result.output
        assert "Traceback" not in result.output
        codes.add(result.exit_code)
        (files / "run" / name).write_bytes(whole[name])
    assert {0, 2} <= codes


def test_rounding_is_named_where_the_run_names_it(files):
    certified(*RBF)
    edited(
        "certificates",
        radius=lambda values: [value + 1 for value in values],
        rounding_sensitive=lambda values: [True] * FEW,
    )
    assert "* The run itself says that rounding could matter there" in verified(code=1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("partitions", [1, 7])
def test_settings_from_what_a_run_says_of_them(model, partitions):
    options = {"hidden": (3, 4)} if model == "network" else {}
    settings = Settings(model, options, partitions, "random", seed=5, scale="unit", classes=("a", "b"), time_limit=7.0)
    again = Settings.from_identity(json.loads(json.dumps(settings.identity())))
    assert again.identity() == settings.identity()
    assert repr(again.estimator()) == repr(Settings.from_identity(settings.identity()).estimator())
    assert again.classes == ("a", "b")
    image = Settings("svm", {"kernel": "conv-ntk", "image_shape": (1, 8, 8)})
    assert Settings.from_identity(json.loads(json.dumps(image.identity()))) == image


def test_a_run_is_read_as_it_is(files):
    certified(*RBF)
    run = StoredRun.read(files / "run")
    assert len(run.points[0]) == FEW
    assert run.n_labels == run.n_attackable == 75
