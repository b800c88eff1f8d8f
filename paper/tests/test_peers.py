"""``python -m paper peers``: all methods on digits, chosen by the rule, resumed, and told on a page."""

from __future__ import annotations

import json

import numpy as np
import pytest

import flipcert
from paper.figures.source import digits
from paper.figures.table import read_table
from paper.peers import study as peers
from paper.peers.methods import METHODS, SOUND, UNSOUND, Method
from paper.peers.page import PAGE, TABLE, render

FEW = ("SS-DPA", "Finite Aggregation", "Run-Off Election", "one ridge regression")


@pytest.fixture(scope="module")
def source():
    return digits("cifar10").first(700, 60)


@pytest.fixture
def few_methods(monkeypatch):
    monkeypatch.setattr(peers, "METHODS", tuple(method for method in METHODS if method.name in FEW))


PLAN = peers.Plan(("cifar10",), trusted=200, values=2, seconds=1.0)


def test_rows_say_what_the_estimators_say(few_methods, source, tmp_path):
    *_, rows = peers.study(PLAN, tmp_path, lambda name: source, lambda line: None)
    assert [row["method"] for row in rows] == [*FEW, FEW[-1]]
    assert {row["n_train"] for row in rows} == {500}
    for row in rows:
        settings = json.loads(row["settings"])
        mean = source.X_train[200:].mean(0, dtype=np.float64)
        deviation = source.X_train[200:].std(0, dtype=np.float64) if settings["scale"] == "standard" else 1.0
        deviation = np.where(np.equal(deviation, 0), 1.0, deviation)
        X, T = ((part - mean) / deviation for part in (source.X_train[200:], source.X_test))
        model = flipcert.KernelRidge(reg=settings["reg"])
        if "partitions" in settings:
            how = {"Finite Aggregation": {"copies": 4}, "Run-Off Election": {"vote": "runoff"}}.get(row["method"], {})
            model = flipcert.PartitionEnsemble(model, n_partitions=settings["partitions"], **how)
        found = model.fit(X, source.y_train[200:]).certify(T)
        correct = found.correct(source.y_test)
        radius = found.radius if found.blackbox_radius is None else found.blackbox_radius
        # Doubles here, single precision there: a radius may hang on rounding.
        assert row["accuracy"] == pytest.approx(correct.mean(), abs=1 / 60)
        if not row["together"]:
            expected = flipcert.certified_accuracy(correct, radius, peers.FLIPS)
            assert row["certified"] == pytest.approx(expected.tolist(), abs=2 / 60)
    one, together = rows[-2:]
    assert together["together"]
    assert all(more >= less for more, less in zip(together["certified"], one["certified"], strict=True))


def test_nothing_but_trusted_rows_decides_what_is_chosen(few_methods, source, tmp_path):
    """An attacker who rewrites every other label changes no setting."""
    choices = []
    for place, y in enumerate((source.y_train, np.roll(source.y_train, 1))):
        y = np.concatenate([source.y_train[:200], y[200:]])
        attacked = peers.replace(source, y_train=y)
        *_, rows = peers.study(PLAN, tmp_path / str(place), lambda name, found=attacked: found, lambda line: None)
        choices.append([(row["settings"], row["share_on_trusted"]) for row in rows])
    assert choices[0] == choices[1]


def test_a_stopped_comparison_goes_on(few_methods, source, tmp_path):
    said = []

    def stop(line):
        said.append(line)
        if len(said) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(peers.study(PLAN, tmp_path, lambda name: source, stop))
    again = []
    *_, rows = peers.study(PLAN, tmp_path, lambda name: source, again.append)
    assert said[:3] == ["reading cifar10", "cifar10: SS-DPA: choosing", "cifar10: SS-DPA: certifying"]
    assert again[:2] == ["reading cifar10", "cifar10: Finite Aggregation: choosing"]
    assert len(rows) == 5


def test_the_command_makes_table_and_page(few_methods, paper, tmp_path):
    said = paper("peers", "--quick", "--digits", "--only", "mnist", "--points", 40, "--out", tmp_path)
    assert f"Results: {tmp_path}/results/{PAGE}" in said.out
    rows = read_table(tmp_path / "results" / TABLE)
    page = (tmp_path / "results" / PAGE).read_text()
    assert page == render(rows)
    assert "| SS-DPA | sound |" in page
    assert "one ridge regression, all points together" in page
    assert "over 600" in page
    assert "1,200 training rows, 40 test points" in page


def test_one_data_set_leaves_what_the_table_says_of_the_other(few_methods, paper, tmp_path):
    command = ("peers", "--quick", "--digits", "--points", 20, "--out", tmp_path, "--only")
    paper(*command, "cifar10")
    first = read_table(tmp_path / "results" / TABLE)
    paper(*command, "mnist")
    rows = read_table(tmp_path / "results" / TABLE)
    assert [row["data"] for row in rows] == ["mnist"] * 5 + ["cifar10"] * 5
    assert rows[5:] == first
    assert (tmp_path / "results" / PAGE).read_text() == render(rows)


def test_one_method_leaves_what_the_table_says_of_the_others(few_methods, paper, tmp_path):
    command = ("peers", "--quick", "--digits", "--points", 20, "--only", "mnist", "--out")
    paper(*command, tmp_path / "all")
    for name in reversed(FEW):
        paper(*command, tmp_path / "one", "--method", name)
    tables = [read_table(tmp_path / out / "results" / TABLE) for out in ("one", "all")]
    # What is proven of all points together hangs on the time that there is.
    names, radii = (
        [[row[key] for row in rows if key == "method" or not row["together"]] for rows in tables]
        for key in ("method", "certified")
    )
    assert names[0] == names[1]
    assert radii[0] == radii[1]


def made_up(name, source, certified, proof=SOUND, **more):
    return {
        "data": "mnist", "method": name, "source": source, "proof": proof, "n_train": 100, "n_test": 10,
        "flips": list(peers.FLIPS), "certified": certified, "median_all": 1, "median_correct": 2, "together": False,
        "seconds_fit": 1.0, "seconds_certify": 1.0, "settings": "{}", "share_exact": None,
    } | more  # fmt: skip


def test_the_page_says_where_others_are_ahead():
    others = made_up("SS-DPA", "Levine and Feizi 2021", [0.9, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.0])
    unsound = made_up("smoothing", "somebody", [1.0] * 8, proof=UNSOUND)
    small = made_up("LabelCert", "somebody", [1.0] * 8, n_train=60)
    ours = made_up("one SVM", "ScaLabelCert", [0.95, 0.9, 0.8, 0.7, 0.6, 0.4, 0.5, 0.1])
    page = render([others, unsound, small, ours])
    assert "Others are ahead of all of ours at 100 (SS-DPA by 0.100 over one SVM)." in page
    assert "at r flips: 0: one SVM;" in page
    assert "300: one SVM; 1,000: one SVM." in page
    assert "LabelCert (60 rows, 10 points)" in page
    assert "Not run on these data, for want of time: SS-DPA" not in page
    assert "Not run on these data, for want of time: Finite Aggregation; Run-Off Election; " in page
    assert "gradient bounding, label-linear. What follows is of the others." in page
    assert "Others are ahead nowhere." in render([others | {"certified": [0.0] * 8}, ours])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_is_made_from_every_candidate(method: Method):
    candidates = list(method.candidates())
    assert candidates
    for settings in candidates:
        assert "scale" in settings
        method.make(settings, 1)
