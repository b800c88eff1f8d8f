"""The bound of a random check as a second opinion has it."""

from __future__ import annotations

import pytest

import flipcert
from flipcert.runs.plain_check import is_largest


@pytest.mark.parametrize("peeked", [False, True])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_the_second_opinion_agrees_with_the_bound_and_with_no_other_number(confidence, peeked):
    for n, checked, found in [(9, 4, 0), (9, 4, 4), (9, 0, 0), (9, 9, 2), (60, 20, 1), (1437, 300, 2)]:
        bound = flipcert.wrong_labels_at_most(n, checked, found, confidence, peeking=peeked)
        near = range(bound - 2, bound + 3)
        held = [own for own in near if is_largest(n, checked, found, confidence, peeked, own)]
        assert held == [bound], (n, checked, found)
