"""Bounds and attacks against every labelling of small training sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.base import clone

import flipcert
from flipcert.classifiers.logistic.bound import Bound
from tests.helpers.logistic_oracle import KINDS, all_labellings, inputs, minimisers


class World:
    """A training set, some test points, and the scores of these after every labelling."""

    def __init__(self, seed, kind, n_points=6):
        rng = self.rng = np.random.default_rng([seed, KINDS.index(kind)])
        self.K = K = int(rng.integers(2, 4))
        self.n = n = int(rng.integers(3, 9 if K == 2 else 7))
        d, self.intercept = int(rng.integers(1, 4)), bool(rng.random() < 0.5)
        self.penalty = float(rng.choice([0.05, 0.3, 1, 3, 10, 30]))
        self.X, self.T = (
            inputs(rng, kind, n, d),
            inputs(rng, kind, n_points, d) * rng.choice([0.1, 1, 3], (n_points, 1)),
        )
        self.labellings = all_labellings(n, K)
        X, T = (np.c_[Z, np.ones(len(Z))] if self.intercept else Z for Z in (self.X, self.T))
        W = minimisers(X, self.penalty, K, self.labellings)
        self.scores = np.einsum("lkd,td->ltk", W, T)
        self.place = {tuple(row): place for place, row in enumerate(self.labellings.tolist())}

    def fits(self, count, given):
        """Models of random labels, with trusted ones or not, and which labellings an attacker can reach."""
        whole = np.array([np.unique(row).size == self.K for row in self.labellings])
        candidates = np.flatnonzero(whole | given)
        for base in self.rng.choice(candidates, count).tolist():
            y = self.labellings[base]
            trusted = self.rng.random(self.n) < 0.3 if self.rng.random() < 0.4 else np.zeros(self.n, bool)
            classes = range(self.K) if given else None
            model = flipcert.LogisticRegression(
                1 / self.penalty, fit_intercept=self.intercept, classes=classes, n_jobs=1
            )
            open_to = (self.labellings == y)[:, trusted].all(axis=1)
            yield model.fit(self.X, y, trusted=trusted), base, trusted, open_to, open_to & (whole | given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_no_labelling_contradicts_a_certificate(seed, kind):
    world = World(seed, kind)
    given = bool(seed % 2)
    for model, base, trusted, _, reachable in world.fits(2, given):
        y, K, n = world.labellings[base], world.K, world.n
        flips = (world.labellings != y).sum(axis=1)
        lower, upper, prediction = model.flip_costs(world.T), model.flip_costs(world.T, "upper"), model.predict(world.T)
        certificates, attacks = model.certify(world.T), model.worst_flips(world.T)
        removable = [np.sum(y == c) if not given and K > 2 and not trusted[y == c].any() else n + 1 for c in range(K)]
        for t in range(len(world.T)):
            others = [c for c in range(K) if c != prediction[t]]
            costs = {}
            for c in others:
                wins = reachable & (flips > 0) & (world.scores[:, t, c] >= world.scores[:, t].max(axis=1))
                costs[c] = min([n + 1, *flips[wins].tolist()])
                assert lower[t, c] <= min(costs[c], *(removable[q] for q in range(K) if q != c))
                # The predicted class may be removed, if nobody has named the label space.
                assert upper[t, c] >= min(costs[c], removable[prediction[t]])
            assert certificates.radius[t] < min(*costs.values(), *removable)
            assert certificates.radius_upper[t] < removable[prediction[t]]
            if attacks[t] is not None:
                assert len(attacks[t]) == certificates.radius_upper[t] + 1
                after = attacks[t].apply(y)
                assert not trusted[after != y].any()
                refitted = flipcert.LogisticRegression(1 / world.penalty, world.intercept, model.classes).fit(
                    world.X, after
                )
                assert refitted.predict(world.T[t : t + 1])[0] != prediction[t]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [False, True])
def test_no_labelling_falls_below_the_bound(kind, single, monkeypatch):
    """The bound itself, for all budgets and mu, however far from deciding anything."""
    compared = 0
    falls: list = []
    computed = Bound._fall

    def noted(self, leverage, pair, r):
        falls.append((r, computed(self, leverage, pair, r)))
        return np.inf if len(falls) % 3 == 0 else 0.0  # so that many budgets are asked for

    monkeypatch.setattr(Bound, "_fall", noted)
    for seed in range(10, 13):
        world = World(seed, kind, n_points=4)
        for model, base, _, open_to, _ in world.fits(2, True):
            flips = (world.labellings != world.labellings[base]).sum(axis=1)
            if model.max_certifiable_ == 0:
                continue
            bound = Bound(model._model, model._preparation, single)
            monkeypatch.setattr(bound, "_raise_by_norms", lambda points, floor: None)
            rows = model._with_constant(world.T)
            scores, prediction = model._scores_of(rows)
            for t, c in itertools.product(range(4), range(world.K)):
                a = prediction[t]
                floor = np.full((1, world.K), world.n + 9)
                floor[0, c] = -1
                falls.clear()
                bound.raise_floor(rows[t : t + 1], scores[t : t + 1], prediction[t : t + 1], floor, False)
                gaps = world.scores[:, t, a] - world.scores[:, t, c]
                for r, fall in falls:
                    worst = gaps[open_to & (flips <= r)].min()
                    assert worst >= gaps[base] - fall - 1e-9 * (1 + abs(gaps[base]))
                    compared += np.isfinite(fall)
    assert compared > 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_labelling_contributes_more_than_caps(kind):
    """What entries contribute to the remainder, p xi(w), for every labelling."""
    compared = 0
    for seed in range(20, 26):
        world = World(seed, kind)
        X = np.c_[world.X, np.ones(world.n)] if world.intercept else world.X
        logits = minimisers(X, world.penalty, world.K, world.labellings) @ X.T
        logs = logits - np.log(np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))
        logs -= logits.max(axis=1, keepdims=True)
        for model, base, _, open_to, _ in world.fits(3, True):
            flips = (world.labellings != world.labellings[base]).sum(axis=1)
            change = logs - logs[base]
            contributed = np.exp(logs[base]) * (np.expm1(change) - change)
            for r, caps in model._preparation.caps.tables.items():
                assert (contributed[open_to & (flips <= r)].max(axis=0) <= caps + 1e-9).all()
                compared += caps.size
    assert compared > 100 or kind == "large"


@pytest.mark.parametrize("kind", KINDS)
def test_no_labelling_falls_below_what_norms_prove(kind):
    """Whatever the gap is said to be, no reachable labelling takes that much away."""
    proven = 0
    for seed in range(30, 36):
        world = World(seed, kind)
        for model, base, _, open_to, _ in world.fits(2, True):
            if model.max_certifiable_ == 0:
                continue
            bound, flips = model._bound, (world.labellings != world.labellings[base]).sum(axis=1)
            rows = model._with_constant(world.T)
            scores, prediction = model._scores_of(rows)
            points = bound._points(rows, scores, prediction)
            gaps = np.take_along_axis(world.scores, prediction[None, :, None], axis=2) - world.scores
            for gap in np.geomspace(1e-3, 30, 15):
                floor = np.zeros(scores.shape, np.int64)
                bound._raise_by_norms(points._replace(gaps=np.full(scores.shape, gap)), floor)
                for t, c in np.argwhere(floor > 0).tolist():
                    near = open_to & (flips <= floor[t, c])
                    assert gaps[base, t, c] - gaps[near, t, c].min() < gap
                    proven += c != prediction[t]
    assert proven > 0 or kind == "large"


@pytest.mark.parametrize(("K", "n"), [(2, 15), (3, 12)])
def test_ensembles_prove_more_than_votes_and_no_labelling_contradicts_them(K, n):
    """Every labelling of every part, fitted; then every election that these votes make."""
    more = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        # Few labels of other classes: some parts do not change their vote for a single flip.
        y = np.where(np.arange(n) % 4 == 0, 1 + np.arange(n) // 4 % (K - 1), 0)
        X, T = 0.3 * rng.normal(size=(n, K)) + 0.5 * np.eye(K)[y], rng.normal(size=(8, K))
        base = flipcert.LogisticRegression(C=0.1, classes=range(K), n_jobs=1)
        ensemble = flipcert.PartitionEnsemble(base, 3, classes=range(K), partition="sorted", n_jobs=1).fit(X, y)
        certificates = ensemble.certify(T)
        assert (certificates.radius >= certificates.blackbox_radius).all()
        more += int((certificates.radius > certificates.blackbox_radius).sum())
        # Flips that make a part (first) vote for a class (last).
        costs = np.full((3, len(T), K), n + 1)
        for part in range(3):
            members = np.flatnonzero(ensemble.partition_ == part)
            for labels in all_labellings(members.size, K):
                votes = base.fit(X[members], labels).predict(T)
                here = costs[part, np.arange(len(T)), votes]
                costs[part, np.arange(len(T)), votes] = np.minimum(here, (labels != y[members]).sum())
        fewest = np.full(len(T), n + 1)
        for election in itertools.product(range(K), repeat=3):
            changed = np.bincount(election, minlength=K).argmax() != certificates.prediction
            needed = sum(costs[part, :, vote] for part, vote in enumerate(election))
            fewest[changed] = np.minimum(fewest[changed], needed[changed])
        assert (fewest > 0).all()  # the labels as they are vote as the ensemble does
        assert (certificates.radius < fewest).all()
        assert (certificates.radius_upper + 1 >= fewest).all()
        for t, attack in enumerate(ensemble.worst_flips(T)):
            after = clone(ensemble).fit(X, attack.apply(y))
            assert len(attack) == certificates.radius_upper[t] + 1
            assert after.predict(T[t : t + 1])[0] != certificates.prediction[t]
    assert more > 0
