"""Results are ranked only among those that answer the same question; the page says what sets others apart."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from flipcert.report import report_page
from flipcert.report.cohorts import cohorts
from tests.helpers.command_line import X_TRAIN, Y_TRAIN, run
from tests.helpers.pages import Page
from tests.helpers.results import made_up, some_trusted

RIGHT = "test points that are right, and proven to stay so, when one in a hundred"
UNCHANGED = "test points that are proven to stay as they are when one in a hundred"


def named(name, seed=0, **fields):
    return made_up(seed=seed, name=name, **fields)


OTHER_POINTS = replace(named("other points"), labels=named("x").labels[::-1])


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (replace(named("unlabelled"), labels=None), "where true labels are known, they tell what stays right"),
        (some_trusted(named("mostly trusted"), 10), "an attacker cannot flip as many labels of one as of another"),
        (named("small", n_labels=4000), "their training sets are not of one size"),
        (named("fewer", n_points=150), "their test points are not the same"),
        (OTHER_POINTS, "their test points are not the same"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_what_cannot_be_compared_is_not_ranked(other, reason):
    first, second = named("first"), named("second", 1)
    source = report_page([first, other, second])
    page = Page(source)
    assert "These 3 results answer 2 different questions, and are not ranked together." in page.text
    assert f"They cannot be compared across tables: {reason}" in page.text.replace("; an attacker", ": an attacker")
    assert "results on this page the one to choose" not in page.text
    tables = re.findall(r'<table class="comparison">.*?</table>', source, re.S)
    assert ["first" in table and "second" in table for table in tables] == [True, False]
    assert [other.name in table for table in tables] == [False, True]
    # One to choose among those that can be compared, none where there is no other.
    assert [table.count("to choose") for table in tables] == [1, 0]
    assert len(re.findall("The one to choose is (?:first|second): on average", page.text)) == 1
    assert len([a for a in page.named("button") if a.get("role") == "tab"]) == 3


def test_right_and_unchanged_are_told_apart():
    unlabelled = [replace(named(f"without {i}", i), labels=None) for i in range(2)]
    source = report_page([named("with"), *unlabelled])
    first, second = re.split("<h2", source.split("Each result in detail")[0])[1:3]
    assert "200 test points with true labels, 5,000 training labels" in first
    assert "200 test points without true labels, 5,000 training labels" in second
    assert RIGHT in first
    assert UNCHANGED not in first
    assert UNCHANGED in second
    assert RIGHT not in second
    assert ">accuracy<" in first
    assert ">accuracy<" not in second
    assert "stay as they are, " in second
    assert "stay right" not in second


def test_the_same_question_is_one_cohort():
    results = [named("a"), named("b", 1), some_trusted(named("c"), 10), some_trusted(named("d", 1), 10)]
    assert list(cohorts(results).values()) == [[0, 1], [2, 3]]
    unlabelled = [
        replace(result, labels=None, digests={"test": name}) for result, name in zip(results, "xyxx", strict=True)
    ]
    assert list(cohorts(unlabelled).values()) == [[0], [1], [2, 3]]


def test_other_files_with_the_same_labels_are_compared_and_told():
    first = replace(named("a"), digests={"train": "1" * 64, "test": "2" * 64})
    second = replace(named("b", 1), digests={"train": "1" * 64, "test": "3" * 64})
    page = Page(report_page([first, second]))
    assert (
        "Their test files are not the same, but hold the same test labels in the same order, and are taken to be about "
        "the same test points."
    ) in page.text
    assert "SHA-256 of the test data" in page.text
    assert "SHA-256 of the training data" not in page.text
    again = Page(report_page([first, replace(second, digests=first.digests)]))
    assert "files are not the same" not in again.text
    assert "SHA-256" not in again.text


def test_runs_of_different_data_on_one_page(data):
    np.savez("trusted.npz", X=X_TRAIN, y=Y_TRAIN, mine=np.arange(75) % 13 > 0)
    ridge = ("--model", "ridge", "--quiet")
    for out, arguments in {
        "plain": ("train.npz", "test.npz", *ridge),
        "same": ("train.csv", "test.csv", *ridge, "--reg", "3"),
        "unlabelled": ("train.csv", "test-unlabelled.csv", *ridge),
        "trusted": ("trusted.npz", "test.npz", *ridge, "--trusted", "mine"),
    }.items():
        assert run("certify", *arguments, "--out", out).exit_code == 0
    assert run("report", "plain", "same", "unlabelled", "trusted", "--out", "page.html").exit_code == 0
    page = Page((data / "page.html").read_text())
    assert "These 4 results answer 3 different questions" in page.text
    assert "75 test points with true labels, 75 training labels of which 6 can be flipped" in page.text
    assert "Their training and test files are not the same, but hold the same test labels" in page.text


@pytest.mark.parametrize("labelled", [True, False])
def test_results_where_no_label_can_be_flipped(labelled):
    results = [some_trusted(named(f"model {i}", i, model={"partitions": 1 + 4 * i}), 0) for i in range(2)]
    results = results if labelled else [replace(result, labels=None) for result in results]
    source = report_page(results)
    page = Page(source)
    assert "No label can be flipped: all 5,000 training labels are trusted." in page.text
    for untrue in (
        "at 1 %",
        "to 1 %",
        "withstand",
        "exact radii",
        "radii known exactly",
        "one in a hundred",
        " flips (",
    ):
        assert untrue not in page.text.split("What is promised")[0].replace("what the predictions withstand", ""), (
            untrue
        )
    assert ("where no label can be flipped, accuracy is all." in page.text) == labelled
    assert ("nothing tells which to choose." in page.text) == (not labelled)
    assert source.count(">to choose<") == labelled
