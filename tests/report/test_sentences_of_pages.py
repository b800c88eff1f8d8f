"""Sentences that hold only for some models are said of these."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.report import report_page
from flipcert.report.result import Result
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, run
from tests.helpers.pages import Page
from tests.helpers.results import made_up, some_trusted


def page_of(result):
    return Page(report_page([result])).text


@pytest.mark.parametrize("model", [flipcert.KernelRidge(), DecisionTreeClassifier(random_state=0)])
def test_only_models_made_of_weights_are_said_to_have_them(model):
    ensemble = flipcert.PartitionEnsemble(model, 5).fit(X_TRAIN, Y_TRAIN)
    text = page_of(Result("", ensemble.certify(X_TEST), Y_TEST))
    has_weights = isinstance(model, flipcert.KernelRidge)
    assert ("Scores are compared exactly, for the weights as they were computed." in text) == has_weights
    assert ("Where a score is a sum of weights, it is compared exactly" in text) == (not has_weights)
    assert ("radii known exactly0 %all are lower bounds" in text) == (not has_weights)


def test_predictions_that_one_flip_changes_are_told_from_those_of_which_nothing_is_known():
    c = made_up(4, 50, 2, votes=False).certificates
    c = replace(c, radius=np.array([0, 0, 0, 5]), radius_upper=np.array([0, 0, 3, 5]))
    text = page_of(Result("", c, None))
    assert "2 predictions can each be changed by a single flip." in text
    assert "1 prediction is not proven to withstand even one flip, and no single flip is known that changes it." in text
    assert "Not proven to withstand a flip: 3 predictions" in text
    assert "proven to withstand none" not in text
    assert "half withstand" not in text


def test_predictions_that_are_all_alike_are_not_ranked():
    c = made_up(9, 50, 2, votes=False).certificates
    same = replace(c, radius=np.full(9, 4), radius_upper=np.full(9, 4))
    text = page_of(Result("", same, None))
    assert "All predictions have the same radius. Some of them" in text
    assert "Most robust" not in text
    assert "Most fragile" not in text
    assert "all 9 withstand 4" in text
    assert "Most robust" in page_of(Result("", c, None))


def test_where_no_flips_change_anything_no_attack_is_missed():
    """Attacks on wrong predictions are open, but these do not count."""
    result = made_up(6, 50, 2, votes=False)
    right = result.certificates.correct(result.labels)
    radius = np.where(right, 50, 2)
    c = replace(result.certificates, radius=radius, radius_upper=np.full(6, 50))
    text = page_of(replace(result, certificates=c, attacks=()))
    assert "Nothing an attacker flips changes any of them." in text
    assert "No attack is known" not in text


def test_one_label_that_can_be_flipped():
    text = page_of(some_trusted(made_up(beyond=1.0), 1))
    assert "To whichever of the classes it is flipped" in text
    assert "radii are exact" not in page_of(some_trusted(made_up(), 0))


def test_a_formula_that_overstates_is_not_called_a_proof(data):
    smoothed = ("train.npz", "test.npz", "--model", "smoothed", "--method", "published")
    with warnings.catch_warnings():
        # The command line makes notes of warnings.
        warnings.simplefilter("always")
        attack = run("attack", *smoothed, "--row", 0, "--quiet")
        certify = run("certify", *smoothed, "--quiet", "--out", "run")
    for result in (attack, certify):
        assert "not proven for more than two classes" in " ".join(result.stderr.split())
    assert "; by the published formula, no " in attack.stdout
    assert "would change that, which is not proven." in attack.stdout
    assert "By the published formula, " in certify.stdout
    text = Page((data / "run" / "report.html").read_text()).text
    assert "By the published formula, " in text
    assert "this is proven, not estimated" not in text


def test_a_single_flip_that_is_known_is_said_to_change_a_prediction(data):
    said = run(
        "attack", "train.npz", "test.npz", "--model", "neighbors", "--neighbors", "1", "--row", 0, "--quiet"
    ).stdout
    assert "Row 0 is predicted as setosa (right); a single flip changes that." in said
    assert "not proven" not in said
