"""Whoever looks on at a collective certificate sees what is proven and what was found close in."""

from __future__ import annotations

import numpy as np

import flipcert
from flipcert.collective import Targets
from flipcert.engine.watch import Watcher, watched_by


class Looker(Watcher):
    def __init__(self):
        self.seen = {}

    def narrowed(self, budget, at_most=None, at_least=None):
        most, least = self.seen.setdefault(budget, ([], []))
        most += [] if at_most is None else [at_most]
        least += [] if at_least is None else [at_least]


def test_bounds_close_in_and_end_at_the_certificate(blobs):
    X, y, X_test, y_test = blobs
    looker = Looker()
    model = flipcert.KernelRidge(classes=[0, 1, 2]).fit(X, y)
    with watched_by(looker.progress("points")):
        certificate = model.certify_collectively(X_test, [3, 0, 9], y_test, time_limit=2.0)
    assert sorted(looker.seen) == [0, 3, 9]
    for k, budget in enumerate(certificate.flips.tolist()):
        most, least = looker.seen[budget]
        assert most[0] == certificate.changed_one_by_one[k]
        assert least[0] == 0
        assert most == sorted(most, reverse=True)
        assert least == sorted(least)
        assert most[-1] == certificate.changed_at_most[k]
        assert least[-1] == certificate.changed_at_least[k]


def test_budgets_may_be_asked_about_one_after_the_other(blobs):
    X, y, X_test, y_test = blobs
    model = flipcert.KernelRidge(classes=[0, 1, 2]).fit(X, y)
    targets = Targets(model, X_test, y_test, model.certify(X_test))
    together = model.certify_collectively(X_test, [2, 5], y_test, time_limit=2.0)
    for k, budget in enumerate((2, 5)):
        alone = targets.certify(budget, 2.0)
        assert alone.flips.tolist() == [budget]
        assert alone.changed_one_by_one[0] == together.changed_one_by_one[k]
        np.testing.assert_array_equal(alone.prediction, together.prediction)
