"""What a page says of votes alone, of run-offs and copies too."""

from __future__ import annotations

import pytest

from flipcert import KernelRidge, PartitionEnsemble
from flipcert.report.page import report_page
from tests.helpers.results import real_result


@pytest.mark.parametrize(
    ("vote", "copies", "said"),
    [
        ("majority", 1, "from the votes of the ensemble if every flip could change one vote (black-box)"),
        ("majority", 3, "from the votes of the ensemble if every flip could change 3 votes (black-box)"),
        ("runoff", 1, "from the votes and preferences of the ensemble if every flip could change one vote (black-box)"),
        ("runoff", 2, "from the votes and preferences of the ensemble if every flip could change 2 votes (black-box)"),
    ],
)
def test_a_page_says_how_many_votes_a_flip_may_change(vote, copies, said):
    result = real_result(PartitionEnsemble(KernelRidge(reg=10.0), 5, vote=vote, copies=copies))
    page = report_page([result])
    assert said in page
    assert (f"in {5 * copies} buckets, each given to {copies} voters" in page) == (copies > 1)
    assert ("in 5 partitions" in page) == (copies == 1)
