"""The finding in one sentence: true to the letter, and what one would say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipcert
from flipcert.report.words import headline

ASIDE = "of the 1,010 labels that are not trusted; 48,990 are trusted"


def certified(radius, upper=None, n_labels=50_000, **fields):
    """Certificates with given radii."""
    radii = np.asarray(radius, np.int64)
    uppers = radii if upper is None else np.asarray(upper, np.int64)
    labels, nobody = np.zeros(radii.size, int), np.ma.masked_all(radii.size, int)
    sensitive = np.zeros(radii.size, bool)
    return flipcert.Certificates(labels, radii, uppers, None, labels, nobody, sensitive, n_labels, **fields)


def said_of(certificates, n_wrong=0, labelled=True):
    """The headline where all predictions count, and some more are wrong."""
    everything = certified(
        np.r_[certificates.radius, np.zeros(n_wrong, int)],
        np.r_[certificates.radius_upper, np.zeros(n_wrong, int)],
        certificates.n_labels,
        n_attackable=certificates.n_attackable,
        model=certificates.model,
    )
    return str(headline(everything, np.arange(len(everything)) < len(certificates), labelled=labelled))


@pytest.mark.parametrize(
    ("radius", "upper", "wrong", "said"),
    [
        ([219, 219, 3, 3], None, 1,
         "Half of the correct predictions withstand 219 flipped labels, 0.4 % of the training set"),
        ([219, 219, 219, 9, 9], None, 1,
         "More than half of the correct predictions withstand 219 flipped labels, 0.4 % of the training set"),
        ([219, 219, 9], None, 1,
         "2 of the 3 correct predictions withstand 219 flipped labels, 0.4 % of the training set"),
        ([1, 1, 1], None, 1, "All 3 correct predictions withstand 1 flipped label, 0.002 % of the training set"),
        ([1, 7], None, 1, "Half of the correct predictions withstand 7 flipped labels, 0.01 % of the training set"),
        ([7, 9], None, 1, "Half of the correct predictions withstand 9 flipped labels, 0.02 % of the training set"),
        ([9, 9], None, 1, "Both correct predictions withstand 9 flipped labels, 0.02 % of the training set"),
        ([50_000] * 3, None, 1, "All 3 correct predictions withstand any flips of the 50,000 training labels"),
        ([50_000] * 19 + [4], None, 1,
         "19 of the 20 correct predictions withstand any flips of the 50,000 training labels"),
        ([7], None, 1, "The only correct prediction withstands 7 flipped labels, 0.01 % of the training set"),
        ([7], None, 0, "The prediction withstands 7 flipped labels, 0.01 % of the training set"),
        ([], None, 9, "No prediction is correct, so there is no robustness to measure"),
        ([], None, 1, "The prediction is wrong, so there is no robustness to measure"),
        # One flip is known that changes them, or nothing is.
        ([0], [0], 0, "A single flipped label changes the prediction"),
        ([0], [0], 1, "A single flipped label changes the only correct prediction"),
        ([0], [3], 0, "The prediction is not proven to withstand a single flipped label"),
        ([0], [50_000], 1, "The only correct prediction is not proven to withstand a single flipped label"),
        ([0] * 3, [0] * 3, 1, "All 3 correct predictions can each be changed by a single flipped label"),
        ([0, 0, 0, 8], [0, 0, 4, 8], 1,
         "Half of the correct predictions can each be changed by a single flipped label"),
        ([0, 0, 0, 8, 8], None, 1,
         "More than half of the correct predictions can each be changed by a single flipped label"),
        ([0, 0, 0, 8, 8], [0, 0, 1, 8, 8], 1,
         "Fewer than half of the correct predictions are proven to withstand a single flipped label"),
        ([0] * 3, [2, 2, 2], 1, "None of the 3 correct predictions is proven to withstand a single flipped label"),
    ],
)  # fmt: skip
def test_headlines(radius, upper, wrong, said):
    c = certified(radius, upper)
    assert said_of(c, wrong) == said
    if wrong == 0 or len(radius) > 1:
        unlabelled = str(headline(c, np.ones(len(c), bool), labelled=False))
        assert unlabelled == said.replace("correct ", "")


@pytest.mark.parametrize(
    ("radius", "n_labels", "attackable", "said"),
    [
        ([50_000] * 9, 50_000, 1010, f"All 9 correct predictions withstand any flips {ASIDE}"),
        ([1010] * 9, 50_000, 1010, f"All 9 correct predictions withstand any flips {ASIDE}"),
        ([1009, 0], 50_000, 1010,
         f"Half of the correct predictions withstand 1,009 flipped labels, 99.9 % {ASIDE}"),
        ([101, 0], 50_000, 1010, f"Half of the correct predictions withstand 101 flipped labels, 10.0 % {ASIDE}"),
        ([0] * 9, 50_000, 1010, f"All 9 correct predictions can each be changed by a single flipped label, {ASIDE}"),
        ([75, 0], 75, 1,
         "Half of the correct predictions withstand any flips of the one label that is not trusted; 74 are trusted"),
        ([75, 0], 75, 74,
         "Half of the correct predictions withstand any flips of the 74 labels that are not trusted; 1 is trusted"),
        ([75, 75], 75, 0, "No label can be flipped: all 75 training labels are trusted"),
        ([1, 1], 1, 0, "No label can be flipped: the only training label is trusted"),
        ([1, 1], 1, 1, "Both correct predictions withstand any flips of the one training label"),
    ],
)  # fmt: skip
def test_headlines_on_trusted_labels(radius, n_labels, attackable, said):
    assert said_of(certified(radius, None, n_labels, n_attackable=attackable), 1) == said


def test_a_formula_that_overstates_radii_is_named():
    c = certified([9, 9], [2, 2], model={"model": "smoothed", "method": "published"})
    told = "By the published formula, both correct predictions withstand 9 flipped labels, 0.02 % of the training set"
    assert said_of(c, 1) == told


points = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=2, max_size=40)


@given(points, st.integers(2, 6))
def test_what_is_said_can_be_counted(drawn, most):
    radius = np.array([min(low, most) for low, _ in drawn])
    upper = np.minimum(radius + [more for _, more in drawn], most)
    said = said_of(certified(radius, upper, most), 1)
    n = radius.size
    if found := re.search(r"withstand (\d+|any) ", said):
        holds = radius >= (most if found[1] == "any" else int(found[1]))
    else:
        assert "a single flipped label" in said
        holds = upper == 0 if "can each be changed" in said else radius >= 1
    count = int(holds.sum())
    shares = {
        "Half of": 2 * count == n,
        "More than half": n < 2 * count < 2 * n,
        "Fewer than half": 0 < 2 * count < n,
        "None": count == 0,
        "All": count == n > 2,
        "Both": count == n == 2,
    }
    if found := re.match(r"(\d+) of the (\d+) ", said):
        assert (int(found[1]), int(found[2])) == (count, n)
    else:
        assert [true for start, true in shares.items() if said.startswith(start)] == [True]
