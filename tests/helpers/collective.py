"""Collective certificates without a model behind them."""

from __future__ import annotations

import numpy as np

from flipcert import CollectiveCertificate, Witness
from flipcert.report.result import Collective

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


def collective_of(result, budgets=(10, 50, 100), *, at_most=0.5, at_least=0.25, known=True, **fields):
    """A plausible collective certificate of a result: shares of what falls point by point, and attacks to match."""
    c = result.certificates
    counted = np.ones(len(c), np.bool_) if result.labels is None else c.correct(result.labels)
    rng = np.random.default_rng(0)
    order = np.argsort(np.where(counted, c.radius, c.n_labels + 1), kind="stable")
    alone = np.array([np.count_nonzero(counted & (c.radius < min(budget, c.limit))) for budget in budgets])
    most = np.floor(at_most * alone).astype(np.int64)
    least = np.floor(at_least * alone).astype(np.int64) if known else np.zeros(len(budgets), np.int64)
    after = np.stack([c.prediction] * len(budgets))
    attacks = []
    for k, budget in enumerate(budgets):
        after[k][order[: least[k]]] = c.runner_up[order[: least[k]]]
        attacks.append(_attack_like(result, min(budget, c.n_attackable), rng) if least[k] else None)
    certificate = CollectiveCertificate(
        flips=np.array(budgets),
        changed_at_most=most,
        changed_at_least=least,
        changed_one_by_one=alone,
        attacks=attacks,
        prediction=c.prediction,
        prediction_after=after,
        counted=counted,
        counts_correct=result.labels is not None,
        n_labels=c.n_labels,
        n_attackable=c.n_attackable,
        threat=c.threat,
        n_sources=c.n_sources,
        model=c.model,
        classes=c.classes,
        **fields,
    )
    y = np.resize(c.classes, c.n_labels)
    givers = np.array([f"worker {i // 20}" for i in range(c.n_labels)])
    return Collective.of(certificate, y, givers)


def _attack_like(result, size, rng):
    """An attack of so many units on made-up training labels, the classes in turn."""
    c = result.certificates
    names = c.classes
    rows = rng.permutation(c.n_labels)[:size]
    to = names[(rows + 1 + rows % 2) % len(names)]
    parts = {"indices": rows, "labels": to}
    none = {"indices": rows[:0], "labels": to[:0]}
    if c.threat == "sources":
        taken = rng.permutation(c.n_labels // 20)[:size]
        rows = np.concatenate([np.arange(20 * i, 20 * i + 20) for i in taken])
        parts = {"indices": rows, "labels": names[(rows + 1) % len(names)]}
        parts["sources"] = np.array([f"worker {i}" for i in taken])
    elif c.threat == "deletions":
        parts = none | {"deleted": rows}
    elif c.threat in ("insertions", "replacements"):
        parts = none | {"inserted": np.zeros((size, 2)), "inserted_labels": to}
        parts |= {"deleted": rows} if c.threat == "replacements" else {}
    return Witness(**parts, threat=c.threat, n_labels=c.n_labels)
