"""A second opinion on runs under other threats than flips: it agrees, finds what was changed, and says what it left."""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import flipcert
from flipcert.cli.console import results
from flipcert.runs.plain_changes import changes_opinion
from flipcert.runs.plain_sources import source_opinion
from flipcert.runs.stored_run import StoredRun
from flipcert.verify.exact import Voter
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, refused, run

WHO = np.random.default_rng(0).integers(0, 12, 75)
FEW = 15


@pytest.fixture
def files(data, monkeypatch):
    monkeypatch.setattr(results, "width", 200)
    rows = np.arange(0, 75, 75 // FEW)
    np.savez("few.npz", X=X_TEST[rows], y=Y_TEST[rows])
    np.savez("crowd.npz", X=X_TRAIN, y=Y_TRAIN, who=WHO, sure=np.arange(75) % 3 > 1)
    return data


def certified(*options, command="certify"):
    asked = (command, "crowd.npz", "few.npz", "--source", "who", "--threat", "sources", *options, "--out", "run", "-q")
    result = run(*asked)
    assert result.exit_code == 0, result.output


def verified(code=0):
    result = run("verify", "run", "crowd.npz", "few.npz", "--points", FEW, "--quiet")
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.stdout.split())


def edited(name, **columns):
    table = parquet.read_table(f"run/{name}.parquet")
    for column, change in columns.items():
        values = pa.array(change(table[column].to_pylist()), table[column].type)
        table = table.set_column(table.column_names.index(column), column, values)
    parquet.write_table(table, f"run/{name}.parquet")


@pytest.mark.parametrize(
    "options",
    [
        ("--model", "svm", "--kernel", "rbf"),
        ("--model", "svm", "--kernel", "linear", "--classes", "setosa,versicolor,virginica"),
        ("--model", "ridge", "--reg", "0.1", "--trusted", "sure"),
        ("--model", "neighbors", "--neighbors", "20"),
    ],
    ids=" ".join,
)
def test_agreement(files, options):
    certified(*options)
    said = verified()
    assert "one model: all gains of a source added up" in said
    assert "radii in flips 15 0" in said
    assert "labels and rows changed, fitted and asked again" in said
    assert f"No difference at {FEW} test points." in said


@pytest.mark.parametrize("rule", ["source", "sorted"])
def test_what_is_not_computed_again_is_said(files, rule):
    certified("--model", "ridge", "-n", "3", "--partition", rule)
    said = verified()
    assert "in corrupt sources were not computed a second time, only compared with known attacks." in said
    assert "What votes alone prove in corrupt sources was not compared." in said
    assert "under this threat not computed again" in said
    assert "test points, in what was compared." in said


def test_agreement_with_a_sweep(files):
    certified("--model", "ridge", "--reg", "0.1,1", "-n", "1", command="sweep")
    assert f"No difference at {FEW} predictions (the run has 2 models)." in verified()
    # The second model is not fitted for one point.
    result = run("verify", "run", "crowd.npz", "few.npz", "--points", 1, "--quiet")
    assert "How many points a single source can change was not counted again." in result.stdout
    assert "No difference at 1 prediction (the run has 2 models), in what was compared." in result.stdout


@pytest.mark.parametrize("threat", ["deletions", "insertions", "replacements", "edits"])
def test_rows_that_come_and_go(files, threat):
    certified("--threat", threat, "--kernel", "rbf", "--trusted", "sure")
    said = verified()
    assert "one model: all gains of changed rows sorted" in said
    assert "labels and rows changed, fitted and asked again" in said
    assert f"No difference at {FEW} test points." in said
    edited("certificates", radius=raised, radius_upper=raised)
    assert "radii" in verified(code=1)


def test_changed_rows_of_an_attack_are_found(files):
    certified("--threat", "replacements", "--kernel", "rbf")
    edited("attacks", inserted=lambda values: [[value[0] + 9.0, *value[1:]] for value in values])
    assert "still" in verified(code=1)
    edited("attacks", operation=lambda values: ["insert"] * len(values))
    assert "is nothing that an attacker may do here" in verified(code=1)


def raised(values):
    return [value + 1 for value in values]


@pytest.mark.parametrize(
    ("table", "change", "found"),
    [
        ("certificates", {"radius": raised, "radius_upper": raised}, "radii"),
        ("certificates", {"radius_in_flips": raised}, "radii in flips"),
        ("attacks", {"source": lambda values: [(value + 1) % 12 for value in values]}, "is not from"),
        ("attacks", {"new_label": lambda values: ["setosa"] * len(values)}, "setosa"),
        ("attacks", {"training_row": lambda values: values[::-1]}, "attacks"),
    ],
    ids=lambda own: " ".join(own) if isinstance(own, dict) else str(own),
)
def test_changes_are_found(files, table, change, found):
    certified("--model", "ridge")
    edited(table, **change)
    assert found in verified(code=1)


def test_a_run_in_sources_that_says_that_it_is_one_in_flips(files):
    certified("--model", "ridge")
    summary = json.loads(Path("run/summary.json").read_text())
    identity = json.loads(Path("run/run.json").read_text())
    Path("run/summary.json").write_text(json.dumps(summary | {"threat": "flips"}))
    Path("run/run.json").write_text(json.dumps(identity | {"threat": "flips"}))
    assert "differences between what the run says and what was found" in verified(code=1)
    assert "does not hold a complete run" in refused("report", "run", "--out", "page.html")
    for wrong in ({"threat": "lies"}, {"threat": ["flips"]}, {"n_sources": None}, {"n_sources": "many"}):
        Path("run/summary.json").write_text(json.dumps(summary | wrong))
        assert "summary.json is not what was written" in refused("verify", "run", "crowd.npz", "few.npz")


def fewer_points(own):
    own["points_changed_alone"] -= 1


POWERS = {
    "no list": lambda summary: summary.pop("strongest_sources"),
    "an empty list": lambda summary: summary["strongest_sources"].clear(),
    "an entry less": lambda summary: summary["strongest_sources"].pop(),
    "without the first": lambda summary: summary["strongest_sources"].pop(0),
    "one twice": lambda summary: summary["strongest_sources"].__setitem__(1, summary["strongest_sources"][0]),
    "more labels": lambda summary: summary["strongest_sources"][0].update(labels=99),
    "text": lambda summary: summary["strongest_sources"][0].update(labels="many"),
    "nobody": lambda summary: summary["strongest_sources"][0].update(source=["x"]),
    "no count": lambda summary: summary["strongest_sources"][0].pop("points_changed_alone"),
    "fewer points": lambda summary: fewer_points(summary["strongest_sources"][0]),
    "other order": lambda summary: summary["strongest_sources"].reverse(),
}


def test_powers_are_counted_again(files):
    certified("--model", "ridge")
    said = verified()
    assert "points counted again that each can change alone" in said
    assert f"No difference at {FEW} test points." in said
    whole = Path("run/summary.json").read_text()
    assert json.loads(whole)["strongest_sources"][0]["points_changed_alone"] > 0
    for change in POWERS.values():
        summary = json.loads(whole)
        change(summary)
        Path("run/summary.json").write_text(json.dumps(summary))
        assert "single sources" in verified(code=1).split("the run says")[1]


def test_powers_of_ensembles_are_compared_as_far_as_they_can(files):
    certified("--model", "ridge", "-n", "3")
    assert "How many points a single source can change was not counted again." in verified()
    whole = Path("run/summary.json").read_text()
    for name, change in POWERS.items():
        summary = json.loads(whole)
        change(summary)
        Path("run/summary.json").write_text(json.dumps(summary))
        said = verified(code=0 if name in ("fewer points", "other order") else 1)
        assert "was not counted again" in said or name in ("no list", "an empty list")


def test_rows_that_cannot_be_inserted_are_told_in_one_line(files):
    certified("--threat", "insertions", "--kernel", "rbf")
    edited("attacks", inserted=lambda values: [[float("nan")] * 4 for _ in values])
    said = verified(code=1)
    assert "NaN" in said
    assert "http" not in said


def test_runs_from_before_are_in_flips(files):
    assert run("certify", "train.npz", "few.npz", "--out", "run", "--quiet").exit_code == 0
    summary = json.loads(Path("run/summary.json").read_text())
    del summary["threat"]
    Path("run/summary.json").write_text(json.dumps(summary))
    assert StoredRun.read(Path("run")).threat == "flips"


@pytest.mark.parametrize("seed", range(60))
def test_opinions_against_all_attacks(seed):
    """Whole numbers, ties, trusted labels; all sets of sources with all their labellings, and all deletions."""
    rng = np.random.default_rng(seed)
    n, n_classes, n_sources = 5, int(rng.integers(2, 4)), int(rng.integers(1, 4))
    w, y = rng.integers(-2, 4, n).tolist(), rng.integers(0, n_classes, n).tolist()
    free, who = (rng.random(n) < 0.8).tolist(), rng.integers(0, n_sources, n).tolist()
    open_space = bool(seed % 2)
    if open_space:
        # The label space is that of the labels.
        codes = np.unique(y, return_inverse=True)[1]
        y, n_classes = codes.tolist(), int(codes.max()) + 1
        if n_classes < 2:
            return
    voter = Voter(w, y, free, n_classes)

    def predicted(labels, kept=range(n)):
        scores = [sum(w[i] for i in kept if labels[i] == c) for c in range(n_classes)]
        present = {labels[i] for i in kept} if open_space else range(n_classes)
        return max(present, key=lambda c: (scores[c], -c))

    def changes(corrupt):
        mine = [i for i in range(n) if free[i] and who[i] in corrupt]
        for labels in product(range(n_classes), repeat=len(mine)):
            after = list(y)
            for i, label in zip(mine, labels, strict=True):
                after[i] = label
            if (not open_space or len(set(after)) > 1) and predicted(after) != voter.vote:
                return True
        return False

    if predicted(y) != voter.vote:
        return  # a class without labels is ahead
    sets = (set(own) for size in range(n_sources + 1) for own in combinations(range(n_sources), size))
    cost = next((len(own) for own in sets if changes(own)), n_sources + 1)
    radius, known = source_opinion(voter, who, n_sources, open_space)
    assert radius <= cost - 1
    assert radius == cost - 1 or not known
    if not open_space:
        assert known


@pytest.mark.parametrize("threat", ["deletions", "insertions", "replacements", "edits"])
@pytest.mark.parametrize("seed", range(40))
def test_opinions_against_all_changes_of_rows(seed, threat):
    """Weights are quarters up to 1, new rows weigh 1: all edits of a few labels, one after the other."""
    rng = np.random.default_rng(seed)
    n, n_classes, open_space = 4, int(rng.integers(2, 4)), bool(seed % 2)
    w, y = (rng.integers(-1 if threat != "edits" else 0, 5, n) / 4).tolist(), rng.integers(0, n_classes, n).tolist()
    free = (rng.random(n) < 0.8).tolist()
    if open_space:
        codes = np.unique(y, return_inverse=True)[1]
        y, n_classes = codes.tolist(), int(codes.max()) + 1
        if n_classes < 2:
            return

    def predicted(rows):
        scores = [sum(weight for weight, label, _ in rows if label == c) for c in range(n_classes)]
        present = {label for _, label, _ in rows} if open_space else range(n_classes)
        return max(present, key=lambda c: (scores[c], -c)) if not open_space or len(present) > 1 else None

    start = tuple(zip(w, y, free, strict=True))
    new = [(weight, c, False) for weight in (1.0, 0.0) for c in range(n_classes)]
    first = predicted(start)
    scores = [sum(weight for weight, label, _ in start if label == c) for c in range(n_classes)]
    if first != scores.index(max(scores)):
        return

    def after_one(rows):
        for i, (weight, label, own) in enumerate(rows):
            if own and threat in ("deletions", "edits"):
                yield rows[:i] + rows[i + 1 :]
            if own and threat == "replacements":
                yield from ((*rows[:i], other, *rows[i + 1 :]) for other in new)
            if own and threat == "edits":
                yield from ((*rows[:i], (weight, c, False), *rows[i + 1 :]) for c in range(n_classes) if c != label)
        if threat in ("insertions", "edits"):
            yield from ((*rows, other) for other in new)

    reached, cost = {start}, n + 1
    for size in range(1, n + 1):
        reached = {after for rows in reached for after in after_one(rows)}
        if any(predicted(rows) not in (first, None) for rows in reached):
            cost = size
            break
    radius, known = changes_opinion(threat, w, y, free, n_classes, open_space)
    assert radius <= cost - 1
    assert radius == cost - 1 or not known


def test_the_opinion_is_that_of_the_library():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y, who = rng.integers(-2, 3, (30, 3)), rng.integers(0, 3, 30), rng.integers(0, 8, 30)
        x = rng.integers(-2, 3, (4, 3)).astype(float)
        model = flipcert.KernelSVM("linear", classes=[0, 1, 2]).fit(X.astype(float), y, source=who)
        codes = np.unique(who, return_inverse=True)[1].tolist()
        found = [
            source_opinion(Voter((X @ own).astype(int).tolist(), y.tolist(), [True] * 30, 3), codes, 8, False)[0]
            for own in x
        ]
        assert found == model.certify(x, threat="sources").radius.tolist()
