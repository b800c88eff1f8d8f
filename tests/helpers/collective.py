"""Collective certificates without a model behind them."""

from __future__ import annotations

import numpy as np

from flipcert import CollectiveCertificate, Witness

NAMES = np.array(["cat", "gnu", "lynx"])


def made_up(labels=NAMES, threat="flips", n_points=12, counts_correct=True, **fields):
    """Three budgets; at 2 no attack is known, at 4 one changes two points, at 9 another changes three."""
    before = np.arange(n_points) % 3
    after = np.stack([before, before, before])
    after[1, [0, 3]] = 1
    after[2, [0, 3, 4]] = [1, 2, 2]
    counted = np.arange(n_points) != 1 if counts_correct else np.ones(n_points, np.bool_)
    given = {
        "flips": np.array([2, 4, 9]),
        "changed_at_most": np.array([1, 2, 5]),
        "changed_at_least": np.array([0, 2, 3]),
        "changed_one_by_one": np.array([2, 6, 9]),
        "attacks": [None, attack(labels, threat, 4), attack(labels, threat, 8)],
        "prediction": labels[before],
        "prediction_after": labels[after],
        "counted": counted,
        "counts_correct": counts_correct,
        "n_labels": 40,
        "n_attackable": 30,
        "threat": threat,
        "n_sources": 10 if threat == "sources" else None,
        "model": {"model": "ridge", "partitions": 1, "kernel": "rbf", "reg": 1.0},
        "classes": labels,
    }
    return CollectiveCertificate(**given | fields)


def attack(labels, threat, size):
    """An attack of so many units."""
    to = labels[np.arange(size) % 3]
    none = {"indices": np.empty(0, np.int64), "labels": labels[:0]}
    gone, come = {"deleted": np.arange(size)}, {"inserted": np.full((size, 2), 0.5), "inserted_labels": to}
    flips = {"indices": np.arange(size)[::-1].copy(), "labels": to}
    parts = {
        "flips": flips,
        "sources": {**flips, "sources": np.array([f"worker {i}" for i in range(size // 2)])},
        "deletions": {**none, **gone},
        "insertions": {**none, **come},
        "replacements": {**none, **gone, **come},
        "edits": flips,
    }
    return Witness(**parts[threat], threat=threat, n_labels=40)


def same(first, second):
    """Whether two collective certificates tell the same."""
    for name in ("flips", "changed_at_most", "changed_at_least", "changed_one_by_one", "prediction_after", "counted"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name in ("prediction", "classes"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()
    for name in ("counts_correct", "n_labels", "n_attackable", "threat", "n_sources", "why_one_by_one", "model"):
        assert getattr(first, name) == getattr(second, name)
    for one, other in zip(first.attacks, second.attacks, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert len(one) == len(other)
            for name in ("indices", "labels", "sources", "deleted", "inserted_labels"):
                assert getattr(one, name).tolist() == getattr(other, name).tolist()
            np.testing.assert_array_equal(one.inserted, other.inserted)
    return True
