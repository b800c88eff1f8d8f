"""A witness shows itself: what it changes, and nothing that its threat leaves empty."""

from __future__ import annotations

import flipcert

X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]


def test_a_witness_shows_what_it_changes_and_no_empty_fields():
    (witness,) = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y).worst_flips([[0.5]])
    assert repr(witness) == "Witness(indices=array([0, 1]), labels=array([1, 1]), threat='flips', n_labels=6)"
    (witness,) = flipcert.KernelSVM("rbf", classes=[0, 1]).fit(X, y).worst_flips([[2.5]], threat="deletions")
    assert repr(witness) == "Witness(deleted=array([2, 3, 1]), threat='deletions', n_labels=6)"
    model = flipcert.KernelSVM("rbf", classes=[0, 1]).fit(X, y)
    (witness,) = model.worst_flips([[2.5]], threat="insertions")
    assert "inserted=array([[" in repr(witness)
    assert "deleted" not in repr(witness)
