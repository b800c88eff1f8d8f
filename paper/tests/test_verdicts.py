"""Verdicts on made-up tables, where it is plain what they have to be."""

from __future__ import annotations

import pytest

from paper.figures.answers import answers
from paper.figures.figure import load
from paper.figures.page import render
from paper.figures.verdicts import IN_SHAPE, NOT, REPRODUCED, judge, meeting


def row(partitions, median, votes=None, **more):
    """A row of a table whose curve falls evenly to nothing at twice the median."""
    votes = (partitions - 1) // 2 if votes is None else votes
    last = 2 * median
    return {
        "data": "cifar10", "model": "svm", "scale": "none", "partitions": partitions, "n_train": 1000, "n_test": 100,
        "features": "made up", "accuracy": 0.9, "median": median, "median_upper": median, "median_votes": votes,
        "median_all": median, "largest": last, "largest_votes": 2 * votes, "share_exact": 1.0,
        "share_exact_published": 0.7, "share_fragile": 0.8, "flips": [0, last, last + 1], "certified": [0.9, 0.0, 0.0],
        "attacked": [0.9, 0.0, 0.0], "votes": [0.9, 0.0, 0.0], "median_published": median,
        "median_published_upper": median,
    } | more  # fmt: skip


def verdict(name, rows):
    (finding,) = judge(load(name), rows)
    return finding.verdict


@pytest.mark.parametrize(
    ("medians", "expected"), [((100, 95, 105), REPRODUCED), ((150, 100, 90), IN_SHAPE), ((100, 300, 90), NOT)]
)
def test_invariance(medians, expected):
    rows = [row(n, median) for n, median in zip((10, 50, 100), medians, strict=True)]
    assert verdict("figure-2a", rows) == expected


def test_what_follows_the_meeting_does_not_count_for_invariance():
    rows = [row(10, 100), row(50, 95), row(500, 249, votes=249), row(1000, 400, votes=400)]
    assert meeting(rows)["partitions"] == 500
    (finding,) = judge(load("figure-2a"), rows)
    assert finding.verdict == REPRODUCED
    assert "meets black-box at N = 500, where one flip turns 80% of the voters" in finding.text


@pytest.mark.parametrize(
    ("medians", "expected"),
    [((300, 200, 100, 95), REPRODUCED), ((300, 280, 250, 150), IN_SHAPE), ((100, 100, 100, 100), NOT)],
)
def test_decline_and_plateau(medians, expected):
    rows = [row(n, m, activation="relu") for n, m in zip((12, 30, 60, 120), medians, strict=True)]
    assert verdict("figure-2b", rows) == expected


@pytest.mark.parametrize(("last", "expected"), [(173, REPRODUCED), (219, NOT), (300, NOT)])
def test_falling(last, expected):
    (finding,) = judge(load("figure-1b"), [row(10, 219, reg=100.0), row(1000, last, votes=100, reg=100.0)])
    assert finding.verdict == expected
    if last == 173:
        assert "+26.6% with 100 times fewer partitions" in finding.text


def test_a_trend_that_turns():
    rows = [
        row(n, median, reg=reg, reg_over_diag=reg / 2)
        for reg, medians in ((0.1, (10, 300)), (1.0, (100, 120)), (10.0, (200, 100)))
        for n, median in zip((10, 1000), medians, strict=True)
    ]
    (finding,) = judge(load("regularisation-cifar10"), rows)
    assert finding.verdict == REPRODUCED
    assert "turns between reg 0.1 and 10; at reg 0.1 it grows from 10 at N = 10 as N^0.74." in finding.text
    assert "From N = 10 to 1000: reg 0.1 (0.05 of mean diag Q): from 10 to 300, N^+0.74" in finding.text
    (finding,) = judge(load("regularisation-cifar10"), rows[:4])
    assert finding.verdict == NOT


def test_a_trend_that_turns_elsewhere_is_so_in_shape_only():
    rows = [
        row(n, median, reg=reg, reg_over_diag=reg)
        for reg, medians in ((10.0, (100, 300)), (100.0, (300, 100)))
        for n, median in zip((10, 1000), medians, strict=True)
    ]
    assert verdict("regularisation-cifar10", rows) == IN_SHAPE
    assert verdict("regularisation-mnist", rows) == REPRODUCED


def test_a_median_that_falls_until_votes_take_over_falls():
    medians = {10: 232, 100: 182, 1000: 256}
    rows = [row(10, 55, reg=0.1, reg_over_diag=0.05), row(1000, 286, reg=0.1, reg_over_diag=0.05)]
    rows += [row(n, medians[n], votes=n // 4, reg=1000.0, reg_over_diag=500.0) for n in medians]
    (finding,) = judge(load("regularisation-cifar10"), rows)
    assert finding.verdict == REPRODUCED
    assert "turns between reg 0.1 and 1000" in finding.text
    assert "reg 1000 (5e+02 of mean diag Q): from 232 down to 182 at N = 100, then to 256, N^+0.02" in finding.text
    (finding,) = judge(load("figure-2c"), rows[2:])
    assert finding.verdict == IN_SHAPE
    assert "It falls at first, to 182 at N = 100" in finding.text


def test_trends_in_another_order_are_no_turn():
    rows = [
        row(n, median, reg=reg, reg_over_diag=reg)
        for reg, medians in ((0.1, (200, 100)), (1.0, (100, 200)))
        for n, median in zip((10, 1000), medians, strict=True)
    ]
    (finding,) = judge(load("regularisation-cifar10"), rows)
    assert (finding.verdict, finding.text[:18]) == (NOT, "Rising and falling")


@pytest.mark.parametrize(("alone", "expected"), [(300, REPRODUCED), (50, NOT)])
def test_one_model_against_ensembles(alone, expected):
    rows = [row(1, alone, largest_votes=None, votes=None), row(10, 100), row(100, 120)]
    (finding,) = judge(load("figure-3a"), rows)
    assert finding.verdict == expected
    assert "Best ensemble (N = 100): median 120, up to 240" in finding.text
    if alone == 300:
        # Its curve falls from 0.9 at 0 to 0 at 600.
        assert f"there one model still has {0.9 * (1 - 241 / 600):.0%}" in finding.text


@pytest.mark.parametrize(
    ("last", "votes", "expected"),
    [(300, 250, REPRODUCED), (700, 250, IN_SHAPE), (300, 10, NOT)],
    ids=["narrows", "narrows only as a ratio", "widens"],
)
def test_a_gap_that_narrows(last, votes, expected):
    rows = [row(10, 100, votes=4), row(500, last, votes=votes)]
    (finding,) = judge(load("grid-cifar10-svm"), rows)
    assert finding.verdict == expected
    apart = f"96 at N = 10 (100 against 4), {last - votes} at N = 500 ({last} against {votes})."
    assert finding.text.startswith(f"White-box is never below black-box. Medians are apart by {apart}")
    assert ("as a ratio only, from 25.0 to 2.8." in finding.text) == (expected == IN_SHAPE)


def test_white_box_below_black_box_is_told():
    rows = [row(10, 100, votes=4), row(500, 300, votes=250, certified=[0.9, 0.5, 0.0])]
    rows[1]["votes"] = [0.9, 0.6, 0.0]
    (finding,) = judge(load("grid-cifar10-svm"), rows)
    assert finding.verdict == NOT
    assert "White-box is below black-box at N = 500." in finding.text
    assert verdict("smoothing-ensembles", [rows[1] | {"flip_probability": 0.0001}]) == NOT


@pytest.mark.parametrize(("gains", "expected"), [((2, 3), REPRODUCED), ((1.2, 3), IN_SHAPE), ((1.2, 1.4), NOT)])
def test_white_box_far_ahead_of_black_box(gains, expected):
    # Two trapezia against one triangle, all 100 wide.
    rows = [
        row(10, 100, method=method, flips=[0, 100, 200], certified=[0.5, (gain - 1) / 4, 0.0])
        | {"votes": [0.5, 0.0, 0.0]}
        for method, gain in zip(("published", "auto"), gains, strict=True)
    ]
    (finding,) = judge(load("gradient-ensembles"), rows)
    assert finding.verdict == expected
    assert f"{gains[0]:.2f} times as many flips in the mean; auto: median 100" in finding.text


def test_the_first_model_against_the_others():
    svm, network = row(1, 300), row(1, 10, model="network", method="auto")
    (finding,) = judge(load("gradient"), [svm, network])
    assert finding.verdict == REPRODUCED
    assert "gradient bounding: accuracy 0.900, median 10" in finding.text
    assert verdict("gradient", [svm | row(1, 5), network]) == NOT


def test_time_beside_what_the_paper_states():
    timed = {f"timed_{name}": 0.001 for name in ("weights", "lower", "upper", "aggregation")} | {
        "timed_fit": 0.01,
        "timed_kernel": 0.004,
        "timed_certify": 0.006,
    }
    costly, aggregated = {"timed_upper": 0.002}, {"timed_aggregation": 0.004}
    assert verdict("time", [row(10, 100, **timed | costly), row(500, 100, **timed | aggregated)]) == REPRODUCED
    assert verdict("time", [row(10, 100, **timed | costly), row(500, 100, **timed | costly)]) == IN_SHAPE
    slow = timed | costly | {"timed_fit": 6.0}
    assert verdict("time", [row(10, 100, **slow), row(500, 100, **slow | aggregated)]) == NOT
    (finding,) = judge(load("time"), [row(n, 100, **timed) for n in (10, 500)])
    assert finding.verdict == NOT
    assert "20 to 20 ms a test point" in finding.text
    assert "250 to 6,000 times faster" in finding.text
    assert "25% / 25% / 25% / 25%" in finding.text


@pytest.mark.parametrize(("large", "wobble", "expected"), [(0.71, 0, REPRODUCED), (0.8, 0, IN_SHAPE), (0.71, 0.1, NOT)])
def test_the_price_of_small_c(large, wobble, expected):
    rows = [
        {"scale": "none", "size": 100, "partitions": 1, "seed": 0, "times_threshold": factor, "accuracy": accuracy}
        for factor, accuracy in ((0.01, 0.7), (0.1, 0.7 + wobble), (1, 0.7), (100, large))
    ]
    assert verdict("small-c", rows) == expected


def test_the_page_has_all_that_the_tables_have():
    rows = [row(1, 250, votes=None, median_votes=None), row(10, 219, reg=None), row(1000, 173, votes=170)]
    page = render([(load("figure-2a"), rows), (load("figure-1b"), [r | {"reg": 100.0} for r in rows[1:]])])
    for expected in (
        "| 10 | 0.900 | 219 | 219 | 4 |",
        "[CIFAR-10, kernel SVM: median certified robustness against the number of partitions](#figure-2a)",
        "![CIFAR-10, kernel SVM",
        "26.6%",
        "1,000 for training, 100 test points",
        "the paper's own bounds for 70.00% to 70.00%",
    ):
        assert expected in page
    assert answers({}) == ""
