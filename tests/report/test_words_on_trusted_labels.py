"""With trusted labels, every sentence, share and axis is about the others, and says how many are trusted."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert import plots
from flipcert.report import report_page
from flipcert.report.key_figures import summarise
from flipcert.report.result import Result
from flipcert.report.series import Curves, Medians
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, run, summary_of
from tests.helpers.pages import Page
from tests.helpers.results import made_up, some_trusted


def said_by(results):
    """Text of a page, with all that a pointer or a screen reader finds."""
    page = Page(report_page(results))
    return f"{page.text} {' '.join(value for value in page.values if value)}"


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("n_attackable", [0, 1, 2, 40, 1010, 4999])
def test_no_sentence_on_the_page_speaks_of_labels_that_cannot_be_flipped(n_attackable, labelled):
    result = some_trusted(made_up(beyond=0.1), n_attackable)
    result = result if labelled else replace(result, labels=None)
    said = said_by([result])
    trusted = 5000 - n_attackable
    told = f"{trusted:,} of the 5,000 training labels {'is' if trusted == 1 else 'are'} trusted"
    told = told if n_attackable else "All 5,000 training labels are trusted"
    assert f"{told}: an attacker cannot flip them{'.' if n_attackable else ', so no prediction changes.'}" in said
    assert f"trusted labels{trusted:,}" in said
    assert f"labels that can be flipped{n_attackable:,}" in said
    assert ("all of them trusted" if n_attackable == 0 else f"{trusted:,} of them trusted") in said
    for untrue in ("of the training set", "of all", "whichever labels an attacker", "Whichever labels", "5,000 flip"):
        assert untrue not in said, untrue
    # No attack is larger than what can be flipped.
    counts = [int(count.replace(",", "")) for count in re.findall(r"(?<![\d.,])([\d,]*\d) (?:flips|flipped)", said)]
    assert all(count <= max(n_attackable, 1) for count in counts)
    shares = [
        float(share) for piece in Page(report_page([result])).pieces for share in re.findall(r"([\d.]+) %", piece)
    ]
    assert max(shares, default=0) <= 100
    if n_attackable == 0:
        assert "No label can be flipped: all 5,000 training labels are trusted." in said
        assert "data-curves" not in said
        assert "How much accuracy survives" not in said
    else:
        assert f"{n_attackable:,} label" in said or "one label that is not trusted" in said
        assert "flipped labels, share of those not trusted" in said


def test_without_trusted_labels_nothing_is_said_of_them():
    said = said_by([made_up(beyond=0.1)])
    assert "not trusted" not in said
    assert "trusted labels" not in said
    assert "their share of all" in said


def test_results_that_trust_other_labels_are_told_apart():
    first, second = (some_trusted(made_up(seed=i, name=f"model {i}"), n) for i, n in enumerate((300, 400)))
    said = said_by([first, second])
    assert "Some training labels are trusted (the settings tell how many): an attacker cannot flip them." in said
    assert "model 04,700300" in said.replace(" ", "").replace("model0", "model 0")


def test_a_radius_between_what_can_be_flipped_and_the_limit_is_any():
    """Such certificates are not made here, but may come from elsewhere."""
    c = made_up(50, 5000).certificates
    odd = replace(c, radius=np.full(50, 100), radius_upper=np.full(50, 300), n_attackable=60)
    said = said_by([Result("", odd, None)])
    assert "withstand any flips of the 60 labels that are not trusted; 4,940 are trusted" in said
    assert "Withstands any flips of labels that are not trusted." in said
    assert "Proven to withstand any number of flips of labels that are not trusted: 50 predictions" in said
    assert Medians.of(odd, np.ones(50, bool)).proven == 60
    assert Curves.of(odd, np.ones(50, bool)).flips.max() <= 60


def test_summaries_tell_only_attacks_that_there_are():
    result = some_trusted(made_up(beyond=0.5), 30)
    summary = summarise(result)
    assert (summary["training_labels"], summary["attackable_labels"]) == (5000, 30)
    assert list(summary["certified_accuracy"]) == ["1", "2", "5", "10", "20"]
    assert summarise(some_trusted(made_up(), 0))["certified_accuracy"] == {}
    assert list(summarise(made_up(5, 40, beyond=1.0))["certified_accuracy"]) == ["1", "2", "5", "10", "20"]


def test_axes_of_plots():
    result = some_trusted(made_up(beyond=0.1), 40)
    c, y = result.certificates, result.labels
    for figure in (
        plots.plot_certified_accuracy(c, y),
        plots.plot_median_robustness({1: c, 10: c}, y),
        plots.plot_radii(c, y),
        plots.plot_radius_by_class(c, y),
    ):
        (axes,) = figure.axes
        assert "(of 40 labels that are not trusted; 4,960 are trusted)" in axes.get_xlabel() + axes.get_ylabel()
    (axes,) = plots.plot_certified_accuracy({"a": c, "b": replace(c, n_attackable=50)}, y).axes
    assert axes.get_xlabel() == "flipped training labels\n(of labels that are not trusted)"
    lines = plots.plot_median_robustness({1: replace(c, radius=np.full(200, 5000))}, y).axes[0].get_lines()
    assert lines[0].get_ydata().tolist() == [40]


@pytest.fixture
def mostly_trusted(data):
    """Training labels of which six can be flipped."""
    trusted = np.ones(75, bool)
    trusted[::13] = False
    np.savez("trusted.npz", X=X_TRAIN, y=Y_TRAIN, mine=trusted)
    np.savez("all.npz", X=X_TRAIN, y=Y_TRAIN, mine=np.ones(75, bool))
    return trusted


def test_the_terminal(mostly_trusted, data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ridge = ("--trusted", "mine", "--model", "ridge", "--quiet")
    result = run("certify", "trusted.npz", "test.npz", *ridge, "--out", "run")
    told = "54 of the 59 correct predictions withstand any flips of the 6 labels that are not trusted; 69 are trusted."
    assert told in result.stdout
    squeezed = re.sub(" +", " ", result.stdout)
    for row in ("training labels 75", "of them trusted 69", "median radius any", "largest radius any"):
        assert f"{row} " in squeezed
    assert "at 10 flips" not in squeezed
    assert told in Page((data / "run" / "report.html").read_text()).text
    summary = json.loads((data / "run" / "summary.json").read_text())
    assert summary["metrics"]["attackable_labels"] == summary["n_attackable"] == 6
    result = run("sweep", "trusted.npz", "test.npz", *ridge, "--partitions", "1,3")
    assert "An attacker can flip the 6 labels that are not trusted; 69 are trusted." in result.stdout
    assert "75" not in result.stdout
    result = run("attack", "trusted.npz", "test.npz", *ridge, "--row", 0)
    assert "; no flips of the 6 labels that are not trusted change that; 69 are trusted." in result.stdout
    assert "No attack is known" not in result.stdout
    result = run("attack", "trusted.npz", "test.npz", "--trusted", "mine", "--row", 0, "--quiet")
    assert "; no single flip changes that, of the 6 labels that are not trusted; 69 are trusted." in result.stdout
    result = run("certify", "all.npz", "test.npz", "--trusted", "mine", "--quiet")
    assert "No label can be flipped: all 75 training labels are trusted." in result.stdout
    assert "radius" not in result.stdout
    assert summary_of("certify", "all.npz", "test.npz", "--trusted", "mine")["metrics"]["certified_accuracy"] == {}
    result = run("sweep", "all.npz", "test.npz", *ridge, "--partitions", "1,3", "--out", "none")
    assert (
        "The one to choose is ridge, reg 1, 3 partitions: where no label can be flipped, accuracy is all."
        in result.stdout
    )
    assert "1 %" not in result.stdout
    result = run("attack", "all.npz", "test.npz", *ridge, "--row", 0)
    assert "; no label can be flipped, as all 75 training labels are trusted." in result.stdout
    assert run("report", "none", "--out", "none.html").exit_code == 0
    assert "No label can be flipped: all 75 training labels are trusted." in Page((data / "none.html").read_text()).text


class Costly(ClassifierMixin, BaseEstimator):
    """Says that every class costs as many flips as it has labels, whether they can be flipped or not."""

    def __init__(self, classes=None):
        self.classes = classes

    def fit(self, X, y):
        self.classes_, self.n_labels_ = np.unique(self.classes), len(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))

    def flip_costs(self, X, bound="lower"):
        return np.full((len(X), self.classes_.size), self.n_labels_) * (np.arange(self.classes_.size) > 0)


@pytest.mark.parametrize(
    "model",
    [
        flipcert.KernelSVM(),
        flipcert.KernelRidge(),
        flipcert.WeightedNeighbors(),
        flipcert.SmoothedLinear(1e-4),
        flipcert.BoundedNetwork(learning_rate=0.1),
        flipcert.MilpSVM("rbf", C=0.1),
        flipcert.LogisticRegression(C=0.1),
        flipcert.FixedBudget(DecisionTreeClassifier(random_state=0), lambda model, X, n_flips: np.ones(len(X), bool)),
        flipcert.PartitionEnsemble(flipcert.KernelRidge(), 3),
        flipcert.PartitionEnsemble(DecisionTreeClassifier(), 3),
        flipcert.PartitionEnsemble(Costly(), 3),
    ],
    ids=lambda model: f"{type(model).__name__} {type(getattr(model, 'estimator', model)).__name__}",
)
def test_who_withstands_all_that_can_be_flipped_withstands_any(model):
    for step in (13, 40, 75, 76):
        trusted = np.arange(75) % step != step - 1
        certificates = model.fit(X_TRAIN, Y_TRAIN, trusted=trusted).certify(X_TEST[::9])
        assert certificates.n_attackable == 75 // step
        for radii in (certificates.radius, certificates.radius_upper, certificates.blackbox_radius):
            if radii is not None:
                assert ((radii < certificates.n_attackable) | (radii == certificates.limit)).all()
        unreachable = certificates.radius == certificates.limit
        assert np.ma.getmaskarray(certificates.target)[unreachable].all()
    assert unreachable.all()
    said = said_by([Result("", certificates, Y_TEST[::9])])
    assert "No label can be flipped" in said
