"""Models that tell no more than one answer for all are called that before any radius; others are chosen by one rule."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipcert
from flipcert.report import report_page
from flipcert.report.result import Result
from flipcert.report.worth import Standing, choose, lopsided, one_answer, why
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, run, summary_of
from tests.helpers.pages import Page


def result_of(predicted, labels, radius=3, n_labels=200, name="", **fields):
    """A result with given predictions and labels."""
    prediction, n = np.asarray(predicted), len(predicted)
    radii = np.broadcast_to(np.asarray(radius, np.int64), n).copy()
    nobody = np.ma.masked_array(prediction, mask=np.ones(n, bool))
    certificates = flipcert.Certificates(
        prediction, radii, radii, None, prediction, nobody, np.zeros(n, bool), n_labels, **fields
    )
    return Result(name, certificates, None if labels is None else np.asarray(labels))


@pytest.mark.parametrize(
    ("predicted", "labels", "said"),
    [
        ("aaaaaa", "aabbcc", "This model gives one answer for all: a, for each of 6 test points; it is right for 2"),
        ("aaaaaa", None, "This model gives one answer for all: a, for each of 6 test points"),
        ("aabbcc", "aabbbc", None),
        ("aabbcc", None, None),
        (
            "abbbca",
            "aabbbc",
            "By accuracy, this model is no better than one answer for all: 3 of 6 predictions are right, always "
            "answering b would be right for 3",
        ),
        (
            "abcbca",
            "aaabbc",
            "By accuracy, this model is no better than one answer for all: 2 of 6 predictions are right, always "
            "answering a would be right for 3",
        ),
        ("aaaa", "aabb", None),  # too few to tell
        ("aaaa", None, None),
        ("aaaaaa", "aaaaaa", None),  # a test set of one class tells nothing of the model
        ("aaaaab", "aaaaaa", None),
        ("aaaaab", "aaaaab", None),
    ],
)
def test_what_is_no_better_than_one_answer(predicted, labels, said):
    found = one_answer(result_of(list(predicted), None if labels is None else list(labels)))
    assert (None if found is None else str(found)) == said


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=5, max_size=30))
def test_a_model_is_doubted_if_and_only_if_a_constant_is_as_accurate(points):
    predicted, labels = (np.array(column) for column in zip(*points, strict=True))
    best = max(np.mean(labels == answer) for answer in range(3))
    doubted = one_answer(result_of(predicted, labels)) is not None
    assert doubted == (np.unique(labels).size > 1 and np.mean(predicted == labels) <= best)


# More irises of one kind: a kernel that is too wide, or too much regularisation, leaves nothing but that.
UNEVEN = np.r_[10:70]
CONSTANT = ("uneven.npz", "test.npz", "--model", "ridge", "--kernel", "rbf", "--gamma", "0.001", "--reg", "1e6")


@pytest.mark.parametrize("labelled", [True, False])
def test_a_page_says_it_before_any_radius(labelled):
    names = {"setosa": "<b>one", "versicolor": "<b>two", "virginica": "<b>three"}
    labels = np.array([names[label] for label in Y_TRAIN[UNEVEN]])
    model = flipcert.KernelRidge(flipcert.kernels.RBF(0.001), reg=1e6).fit(X_TRAIN[UNEVEN], labels)
    truth = np.array([names[label] for label in Y_TEST])
    page = Page(report_page([Result("", model.certify(X_TEST), truth if labelled else None)], title="Irises"))
    told = "This model gives one answer for all: <b>two, for each of 75 test points"
    told += "; it is right for 25." if labelled else "."
    assert {"name": "description", "content": told} in page.named("meta")
    mended, radius = page.text.index("usually mend this."), re.search("withstand|flipped|flips", page.text)
    assert page.text.index(told) < mended < radius.start()
    assert f"All {'25 correct' if labelled else '75'} predictions withstand 2 flipped labels" in page.text


def test_the_terminal_says_it_before_any_radius(data):
    np.savez("uneven.npz", X=X_TRAIN[UNEVEN], y=Y_TRAIN[UNEVEN])
    result = run("certify", *CONSTANT, "--quiet")
    told = "This model gives one answer for all: versicolor, for each of 75 test points; it is right for 25."
    assert result.stdout.startswith(told), result.stdout
    assert "Scaled features, another kernel or model, or another regularisation usually mend this." in result.stdout
    assert result.stdout.index("usually mend this.") < result.stdout.index("median radius")
    unlabelled = run("certify", "uneven.npz", "test-unlabelled.csv", *CONSTANT[2:], "--quiet").stdout
    assert unlabelled.startswith("This model gives one answer for all: versicolor, for each of 75 test points. Unless ")
    assert summary_of("certify", *CONSTANT)["metrics"]["warning"].startswith(told)
    assert "warning" not in summary_of("certify", "train.npz", "test.npz", "--model", "ridge")["metrics"]
    result = run("sweep", *CONSTANT[:-1], "0.01,1e6", "--partitions", "1,3", "--quiet")
    assert result.stdout.startswith("Models marked * are no better than one answer for all test points.")
    marked = [line.split()[:2] for line in result.stdout.splitlines() if re.match(r" *\S+ +\d+ \* ", line)]
    assert marked == [["1e+06", "1"], ["1e+06", "3"]]
    assert "The one to choose is ridge, reg 0.01, " in result.stdout
    assert "None of these" in run("sweep", *CONSTANT, "--partitions", "1,3", "--quiet").stdout


def test_of_several_results_one_that_says_nothing_is_never_the_headline():
    labels = np.arange(30) % 3
    constant = result_of(np.zeros(30, int), labels, radius=200, name="constant")
    weak = result_of(np.where(np.arange(30) < 20, labels, 0), labels, radius=0, name="weak")
    page = Page(report_page([constant, weak]))
    assert "This is weak, of the 2 results on this page the one to choose" in page.text
    assert "constant no better than one answer for all" in page.text
    assert "weak to choose" in page.text
    assert "among those that tell more than one answer for all" in page.text
    (chosen,) = [a["id"] for a in page.named("button") if a.get("aria-selected") == "true"]
    assert chosen == "tab-1"
    both = Page(report_page([constant, replace(constant, name="again")]))
    assert "None of these models tells more than one answer for all would" in both.text
    assert "to choose " not in both.text.replace("none to choose", "")


standings = st.lists(
    st.builds(
        lambda tells, shares, median: Standing("", tells, True, *shares, median, None),
        st.booleans(), st.tuples(*[st.sampled_from([0.2, 0.5, 0.9])] * 3), st.integers(0, 3),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(standings)
def test_the_rule(candidates):
    number = choose(candidates)
    chosen = candidates[number]
    assert chosen.tells == any(s.tells for s in candidates)
    peers = [s for s in candidates if s.tells == chosen.tells]
    assert chosen.average == max(s.average for s in peers)
    assert chosen.accuracy == max(s.accuracy for s in peers if s.average == chosen.average)
    assert candidates.index(chosen) == number or candidates[candidates.index(chosen)] == chosen


def test_the_average_is_that_of_certified_accuracy():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 100)
    result = result_of(np.where(rng.random(100) < 0.2, 0, labels), labels, rng.integers(0, 20, 100), n_labels=1250)
    c = result.certificates
    standing = Standing.of(result, "one")
    assert standing.average == pytest.approx(np.mean([c.certified_accuracy(labels, r) for r in range(13)]))
    assert standing.kept == c.certified_accuracy(labels, 12)
    assert standing.accuracy == c.certified_accuracy(labels, 0)
    other = Standing.of(replace(result, certificates=replace(c, n_attackable=30)), "two")
    assert other.average == pytest.approx(c.certified_accuracy(labels, [0, 1]).mean())
    assert "attacks of 0 to 1 flip (3.3 % of the labels that are not trusted)" in why([other])
    none = Standing.of(replace(result, certificates=replace(c, radius=np.full(100, 1250), n_attackable=0)), "three")
    assert why([none]) == "The one to choose is three: where no label can be flipped, accuracy is all."
    assert why([replace(none, labelled=False)]).startswith("Where no label can be flipped and accuracy is not known, ")


def test_terminal_and_page_choose_the_same(data):
    sweep = ("sweep", "train.npz", "test.npz", "--model", "ridge", "--reg", "0.01,1,100", "--partitions", "1,3")
    result = run(*sweep, "--quiet", "--out", "run")
    (name,) = re.findall(r"The one to choose is (ridge, reg \S+, .*?):", result.stdout)
    page = Page((data / "run" / "report.html").read_text()).text
    assert f"This is {name}, of the 6 results on this page the one to choose: " in page
    reason = result.stdout.split(f"The one to choose is {name}: ")[1].split("\n")[0]
    assert reason in page
    points = {point["name"]: point["metrics"] for point in summary_of(*sweep)["points"]}
    averages = {name: metrics["mean_certified_accuracy_to_1_percent"] for name, metrics in points.items()}
    assert averages[name] == max(averages.values())
    assert points[name]["certified_accuracy_at_1_percent"] == points[name]["certified_accuracy"]["1"]


def test_a_model_that_gives_nearly_one_answer_is_told():
    """It is right more often than one answer for all, and yet says the same of nearly all points."""
    labels = ["a"] * 50 + ["b"] * 50
    mostly = result_of(["a"] * 95 + ["b"] * 5, labels)
    assert one_answer(mostly) is None
    assert str(lopsided(mostly)).startswith("This model answers a for 95 of 100 test points; 50 are that.")
    assert "This model answers a for 95 of 100 test points" in report_page([mostly])
    # Not of fewer points, nor where most are of that class, nor where that is not known, nor a second time.
    assert lopsided(result_of(["a"] * 89 + ["b"] * 11, labels)) is None
    assert lopsided(result_of(["a"] * 95 + ["b"] * 5, ["a"] * 94 + ["b"] * 6)) is None
    assert lopsided(result_of(["a"] * 95 + ["b"] * 5, None)) is None
    assert lopsided(result_of(["a"] * 100, labels)) is None
