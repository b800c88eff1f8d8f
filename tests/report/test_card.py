"""Certificates as a prompt and a notebook show them."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipcert
from flipcert.results.certificates import Certificate


def made(radius, upper=None, prediction=None, n_labels=50, **more):
    """Certificates with these radii."""
    radius = np.asarray(radius, np.int64)
    upper = radius if upper is None else np.asarray(upper, np.int64)
    prediction = np.zeros(radius.size, int) if prediction is None else np.asarray(prediction)
    target = np.ma.masked_array(prediction.copy(), mask=upper >= n_labels)
    return flipcert.Certificates(
        prediction, radius, upper, None, prediction, target, np.zeros(radius.size, bool), n_labels, **more
    )


class Tags(HTMLParser):
    """Reads a page, and fails where what is opened is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.text = [], 0, ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.rows += tag == "tr"

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_three_lines_at_a_prompt(blobs):
    X, y, X_test, _ = blobs
    certificates = flipcert.KernelSVM().fit(X, y).certify(X_test)
    lines = repr(certificates).splitlines()
    assert lines[0] == f"Certificates of {len(certificates)} predictions"
    assert "withstand" in lines[1]
    low, high = certificates.radius.min(), certificates.radius.max()
    assert lines[2] == f"  radius in flips: {low} to {high}, exact for all of them"
    assert repr(certificates[:0]) == "Certificates of 0 predictions"


@pytest.mark.parametrize(
    ("certificates", "last"),
    [
        (made([3, 3]), "radius in flips: 3, exact for all of them"),
        (made([0, 50], [4, 50]), "radius in flips: 0 to any, exact for 1 of them, else proven from below"),
        (made([1], threat="sources", n_sources=4), "radius in corrupt sources: 1, exact for all of them"),
        (
            made([1], model={"model": "smoothed", "method": "published"}),
            "radius in flips: 1, by the published formula, which proves less",
        ),
    ],
)
def test_what_the_last_line_says_of_radii(certificates, last):
    assert repr(certificates).splitlines()[-1].strip() == last


def test_where_all_labels_are_trusted_nothing_is_said_of_radii():
    certificates = made([50, 50], n_attackable=0)
    assert "radius" not in repr(certificates)
    assert "all 50 training labels are trusted" in repr(certificates)
    assert "all 50 training labels are trusted" in Tags(certificates._repr_html_()).text


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=15))
def test_a_card_holds_together_and_shows_the_weakest(pairs):
    pairs = [tuple(sorted(pair)) for pair in pairs]
    certificates = made([low for low, _ in pairs], [high for _, high in pairs])
    page = Tags(certificates._repr_html_())
    if not pairs:
        assert page.text == "Certificates of 0 predictions"
        return
    assert page.rows == 1 + min(10, len(pairs))
    if len(pairs) > 10:
        assert f"the weakest 10 of {len(pairs)} predictions, in flips" in page.text
    assert repr(certificates).splitlines()[1].strip() + "." in page.text


def test_names_of_classes_are_data():
    page = made([1], prediction=["<script>alert(1)</script>"])._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_summary_is_what_the_command_line_prints(blobs):
    X, y, X_test, y_test = blobs
    certificates = flipcert.KernelSVM().fit(X, y).certify(X_test)
    told = certificates.summary(y_test)
    accuracy = float(re.search(r"^accuracy +([\d.]+)$", told, re.MULTILINE)[1])
    assert accuracy == pytest.approx(certificates.correct(y_test).mean(), abs=5e-4)
    at_five = float(re.search(r"^certified accuracy at 5 flips +([\d.]+)$", told, re.MULTILINE)[1])
    assert at_five == pytest.approx(certificates.certified_accuracy(y_test, 5), abs=5e-4)
    assert "accuracy" not in certificates.summary()
    assert certificates[:0].summary() == "There are no predictions."
    with pytest.raises(ValueError, match="y has shape"):
        certificates.summary(y_test[1:])


def test_a_model_that_gives_one_answer_for_all_is_told(blobs):
    certificates = made(np.full(30, 9), prediction=np.ones(30, int))
    assert "same" in certificates.summary() or "one answer" in certificates.summary()


def test_points_are_chosen_and_met_one_by_one(blobs):
    X, y, X_test, _ = blobs
    certificates = flipcert.PartitionEnsemble(flipcert.KernelRidge(), 5).fit(X, y).certify(X_test)
    some = certificates[certificates.radius > 0]
    assert isinstance(some, flipcert.Certificates)
    np.testing.assert_array_equal(some.prediction, certificates.prediction[certificates.radius > 0])
    assert some.n_labels == certificates.n_labels
    assert some.model == certificates.model
    assert certificates[::-1].radius.tolist() == certificates.radius.tolist()[::-1]
    points = list(certificates)
    assert len(points) == len(certificates)
    assert points[-1] == certificates[-1] == certificates[len(certificates) - 1]
    for point, radius in zip(points, certificates.radius, strict=True):
        assert isinstance(point, Certificate)
        assert type(point.radius) is int
        assert point.radius == radius
        assert point.exact == (point.radius == point.radius_upper)
    assert made([50])[0].target is None
    assert made([3])[0].blackbox_radius is None


@pytest.mark.parametrize("points", [99, [0, 99], np.zeros(3, bool), np.zeros((1, 1), int), "radius", 0.5])
def test_points_that_are_not_there_are_one_sentence(points):
    with pytest.raises(IndexError):
        made([1, 2])[points]


def test_a_plot_of_its_own(blobs):
    X, y, X_test, y_test = blobs
    certificates = flipcert.KernelSVM().fit(X, y).certify(X_test)
    assert certificates.plot(y_test).axes[0].get_ylabel() == "certified accuracy"
    assert certificates.plot().axes[0].get_ylabel() == "share of predictions"


def test_one_attack_on_all_points_is_a_card_too(blobs):
    X, y, X_test, y_test = blobs
    model = flipcert.KernelRidge("linear", reg=1.0, classes=[0, 1, 2]).fit(X, y)
    certificate = model.certify_collectively(X_test, [1, 3], y_test, time_limit=5.0)
    page = Tags(certificate._repr_html_())
    assert page.rows == 3
    assert f"of {certificate.n_counted} correct predictions" in page.text
    assert f"{certificate.certified_accuracy[1]:.3f}" in page.text


@pytest.fixture(scope="module")
def fitted():
    """A small model, and points to ask it about."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) + 1.5 * y[:, None]
    return flipcert.KernelRidge("linear", classes=[0, 1]).fit(X[:30], y[:30]), X[30:], y[30:]


def test_a_plan_of_checks_shows_what_it_proves(fitted):
    model, X, y = fitted
    plan = flipcert.plan_audit(model, X, 8, flips=2, y=y, held_out=True)
    page = Tags(plan._repr_html_())
    assert page.rows == 1 + 5  # a head; none, a quarter, a half, three quarters and all of the checks
    for own in (plan.certified, plan.held_out, plan.random):
        assert f"{own[-1]:.3f}" in page.text
        assert f"{own[4]:.3f}" in page.text
    said = plan.summary()
    assert said.startswith(repr(plan))
    assert f"Once 8 labels are checked, {100 * plan.certified[-1]:.1f} % of 10 points are correct and proven" in said
    assert "turns out right" in said
    one = flipcert.plan_audit(model, X, 1, flips=2)
    assert "Once 1 label is checked" in one.summary()
    assert "correct" not in one.summary()
    assert Tags(one._repr_html_()).rows == 1 + 2


def test_what_one_attack_does_is_told_in_words(fitted):
    model, X, y = fitted
    certificate = model.certify_collectively(X, [1, 3], y)
    said = certificate.summary()
    assert said.startswith(repr(certificate))
    assert "One attack of 3 flips" in said
    none = np.empty(0, np.int64)
    empty = replace(
        certificate, flips=none, changed_at_most=none, changed_at_least=none, changed_one_by_one=none, attacks=[],
        prediction_after=certificate.prediction_after[:0],
    )  # fmt: skip
    assert empty.summary() == repr(empty)
