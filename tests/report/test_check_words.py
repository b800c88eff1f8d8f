"""What is said of a random check: every number in its grammar, and no more than is proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import flipcert
from flipcert.audit.record import RandomCheck
from flipcert.report.check_words import assumed, checked, confidence, how_sure, remains, same_as_right, stage
from flipcert.report.page import report_page
from flipcert.report.result import Result

CHECK = RandomCheck(
    n_labels=100,
    n_trusted=0,
    n_drawn=50,
    n_checked=50,
    n_wrong=0,
    n_batches=1,
    confidence=0.95,
    peeked=False,
    seed=7,
)


def result(radii, **changes):
    """Predictions with these radii, after a check."""
    radii = np.array(radii)
    X, y = np.arange(8.0)[:, None], np.array(list("aaaabbbb"))
    certificates = flipcert.WeightedNeighbors(3).fit(X, y).certify(np.full((radii.size, 1), 1.0))
    certificates = replace(certificates, radius=radii, radius_upper=np.maximum(radii, certificates.radius_upper))
    return Result("neighbors", certificates, check=replace(CHECK, **changes))


def told(radii, **changes):
    own = result(radii, **changes)
    return f"{same_as_right(own)}. {how_sure(own)}"


def test_the_bound_is_that_of_the_function():
    for peeked in (False, True):
        check = replace(CHECK, n_wrong=3, peeked=peeked)
        assert check.at_most == flipcert.wrong_labels_at_most(100, 50, 3, peeking=peeked)
        assert check.remaining == check.at_most - 3
        assert RandomCheck.of(check.described()) == check


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "50 of the 100 labels were checked, drawn at random with seed 7; none of them was wrong."),
        (
            {"n_wrong": 1},
            "50 of the 100 labels were checked, drawn at random with seed 7; 1 of them was wrong, and is corrected.",
        ),
        ({"n_checked": 1}, "1 of the 100 labels was checked, drawn at random with seed 7; it was right."),
        (
            {"n_trusted": 9, "n_checked": 100},
            "All 100 labels that were not trusted were checked; none of them was wrong.",
        ),
        ({"n_labels": 1, "n_checked": 1, "n_wrong": 1}, "The only label was checked; it was wrong, and is corrected."),
        (
            {"n_batches": 2, "n_wrong": 4},
            "50 of the 100 labels were checked, drawn at random in 2 goes with seed 7; 4 of them were wrong, and are "
            "corrected.",
        ),
    ],
)
def test_what_was_done_and_found(changes, said):
    assert checked(replace(CHECK, **changes)) == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "With confidence 95 %, at most 4 wrong labels remain among the 50 that were not checked"),
        (
            {"n_wrong": 1},
            "With confidence 95 %, at most 6 wrong labels remain among the 50 that were not checked (at most 7 in all, "
            "of which 1 was found)",
        ),
        ({"n_checked": 99, "n_drawn": 99}, "With confidence 95 %, no wrong label remains"),
        (
            {"n_checked": 99, "n_drawn": 99, "peeked": True, "confidence": 0.999},
            "With confidence 99.9 %, at most 1 wrong label remains among the one that was not checked",
        ),
        ({"n_checked": 100, "n_drawn": 100}, "So no wrong label remains"),
    ],
)
def test_what_remains(changes, said):
    assert str(remains(replace(CHECK, **changes))) == said


def test_which_predictions_right_labels_would_have_given():
    assert told([3, 4, 9]) == (
        "With confidence 95 %, 2 of the 3 predictions (66.7 %) are those that entirely right labels would have given. "
        "They withstand any 4 flips of labels that were not checked, and at that confidence at most 4 of these are "
        "wrong. The confidence is over the draw of the check, for all of them at once. Whether it holds for the other "
        "is open."
    )
    assert told([4, 3]).startswith("With confidence 95 %, 1 of the 2 predictions (50.0 %) is the one that")
    assert told([4, 5]).startswith("With confidence 95 %, both predictions are those that")
    assert told([4]).startswith("With confidence 95 %, the prediction is the one that")
    assert told([1, 2]) == (
        "No prediction is proven to withstand 4 flips: whether entirely right labels would have given the same is "
        "open. Check more labels, or choose a model that withstands more flips."
    )
    assert told([0, 0, 0], n_checked=100, n_drawn=100) == (
        "All 3 predictions are those that entirely right labels would have given. Every label was checked."
    )
    assert "at that confidence, none of the labels that were not checked is wrong" in told([0], n_checked=99).lower()


def test_the_stage_of_a_check():
    assert stage(CHECK) == (
        "This bound is for a check that ends here, whatever it says; if you may go on, use --peeked now."
    )
    for peeked in (False, True):
        assert stage(replace(CHECK, n_checked=100, n_drawn=100, peeked=peeked)) == ""
    assert stage(replace(CHECK, peeked=True)) == "The bound is the one that holds at every stage of a check at once."
    assert "as 10 of the 60 that were drawn are not filled in" in stage(replace(CHECK, n_drawn=60, peeked=True))
    assert "as 1 of the 51 that were drawn is not filled in" in stage(replace(CHECK, n_drawn=51, peeked=True))
    assert "when results were known" in stage(replace(CHECK, n_batches=2, peeked=True))


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.95, "95 %"), (0.5, "50 %"), (0.999, "99.9 %"), (0.99999999, "99.999999 %"), (1e-5, "0.001 %")],
)
def test_a_confidence_is_never_rounded(value, said):
    assert confidence(replace(CHECK, confidence=value)) == said


def test_what_is_taken_for_granted():
    assert "settled before the first" in assumed(CHECK)[1]
    assert "settled" not in assumed(replace(CHECK, peeked=True))[1]
    assert "trusted" not in assumed(CHECK)[1]
    assert "The 3 labels that were trusted before are taken to be right." in assumed(replace(CHECK, n_trusted=3))[1]


def test_the_page_says_it():
    page = report_page([result([3, 4, 9])])
    assert "What the check of labels proves" in page
    assert page.count("2 of the 3 predictions (") >= 2
    assert "The check" in page
