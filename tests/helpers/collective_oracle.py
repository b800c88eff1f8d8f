"""Slow, obvious answers about one attack on all points: every attack is made, through ``fit`` and ``predict``.

Shares no code with the package.
"""

from __future__ import annotations

import itertools

import numpy as np
from sklearn.base import clone


def most_changed(model, X, y, points, counted, budget, trusted=None, source=None):
    """The most counted predictions that one attack within a budget changes; fits that are refused are no attacks.

    The budget counts flips, or with ``source`` sources.
    """
    y = np.asarray(y)
    before = _predicted(model, X, y, points)
    free = np.ones(y.size, bool) if trusted is None else ~np.asarray(trusted)
    classes = np.unique(y) if model.get_params()["classes"] is None else np.asarray(model.get_params()["classes"])
    most = 0
    for labels in _attacks(y, classes, free, budget, source):
        try:
            after = _predicted(model, X, labels, points)
        except ValueError:
            continue
        most = max(most, int(np.count_nonzero(counted & (after != before))))
    return most


def _attacks(y, classes, free, budget, source):
    """Every labelling within the budget."""
    if source is None:
        sets = [list(own) for own in itertools.combinations(np.flatnonzero(free), min(budget, free.sum()))]
    else:
        ids = sorted(set(source))
        sets = [
            np.flatnonzero(free & np.isin(source, own)).tolist()
            for own in itertools.combinations(ids, min(budget, len(ids)))
        ]
    for chosen in sets:
        for labels in itertools.product(classes, repeat=len(chosen)):
            changed = y.copy()
            changed[chosen] = labels
            yield changed


def _predicted(model, X, labels, points):
    return clone(model).fit(X, labels).predict(points)


def naive_coefficients(weights, codes, first, to, sample, gaps, budget, theta, n_labels_of_first=None):
    """Coefficients of relabellings in one cut, straight from the definition of what they close of each gap."""
    out = []
    for i, new in zip(sample, to, strict=True):
        w, y = weights[i], codes[i]
        shares = [0.0]
        for c, gap in gaps.items():
            closes = w * (int(y == first) - int(y == c) - int(new == first) + int(new == c))
            shares.append(min(1.0, max(0.0, max(closes, 0.0) - theta * gap / budget) / (gap * (1 - theta))))
        if n_labels_of_first is not None and y == first:
            shares.append(
                min(1.0, max(0.0, 1.0 - theta * n_labels_of_first / budget) / (n_labels_of_first * (1 - theta)))
            )
        out.append(max(shares))
    return np.array(out)
