"""Slow, obvious answers about votes under attack: every training set that an attacker can make is tried.

Shares no code with the package. Voters are label-linear with whole numbers as weights, or look their vote up.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


def all_labellings(codes, n_classes, trusted):
    """Every labelling that leaves trusted labels alone, one a row."""
    options = [[own] if kept else range(n_classes) for own, kept in zip(codes, trusted, strict=True)]
    return np.array(list(itertools.product(*options)))


def winner_of_votes(votes, n_classes):
    counts = [list(votes).count(c) for c in range(n_classes)]
    return counts.index(max(counts))


def fewest_to_each_class(winners, units, lawful):
    """Fewest units with which each class wins, among training sets that ``fit`` takes."""
    return {int(c): int(units[lawful & (winners == c)].min()) for c in np.unique(winners[lawful])}


def changed_sources(labellings, codes, source):
    """How many sources have changed a label in each labelling."""
    return sum(((labellings != codes) & (source == own)).any(axis=1).astype(int) for own in np.unique(source))


def linear_votes(weights, labellings, parts, n_classes, open_space):
    """Winner of each labelling, and whether ``fit`` takes it: voters are label-linear, ties to the smaller class."""
    there = np.stack([(labellings == c).any(axis=1) for c in range(n_classes)], axis=1)
    if not open_space:
        there[:] = True
    votes = np.zeros(there.shape, int)
    for part in np.unique(parts):
        own = parts == part
        scores = np.stack([((labellings[:, own] == c) * weights[own]).sum(axis=1) for c in range(n_classes)], axis=1)
        choice = np.where(there, scores, scores.min() - 1).argmax(axis=1)
        votes[np.arange(choice.size), choice] += 1
    return np.where(there, votes, -1).argmax(axis=1), there.sum(axis=1) > 1


def looked_up(rows, labels, options, salt=0):
    """The vote of a classifier that has learnt nothing: any function of its training set, in the order it was given."""
    content = repr((salt, np.asarray(rows, float).tolist(), [int(own) for own in labels])).encode()
    return options[int.from_bytes(hashlib.sha256(content).digest()[:8], "little") % len(options)]


class Lookup(ClassifierMixin, BaseEstimator):
    """A base classifier of which nothing can be known; ``space`` names what it may vote for, else its own labels."""

    def __init__(self, space=None, salt=0):
        self.space = space
        self.salt = salt

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        options = self.classes_.tolist() if self.space is None else list(self.space)
        self.vote_ = looked_up(X, y, options, self.salt)
        return self

    def predict(self, X):
        return np.full(len(X), self.vote_)


def looked_up_vote(rows, labels, space, salt=0, first=0):
    """What a partition with this training set votes, as an ensemble of ``Lookup`` has it."""
    own = sorted({int(label) for label in labels})
    if not own:
        return first
    return own[0] if len(own) == 1 else looked_up(rows, labels, own if space is None else list(space), salt)


def place_of_row(row, n_partitions):
    """Partition of a row under the rule "hash", from its definition."""
    content = (np.asarray(row, "<f8") + 0.0).tobytes()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") % n_partitions


def training_sets(rows, codes, trusted, pool, n_classes, threat, budget):
    """Training sets that exactly so many operations make, as lists of (row, label); new rows come from a pool."""
    n = len(codes)
    free = [i for i in range(n) if not trusted[i]]
    new = [(row, c) for row in pool for c in range(n_classes)]
    for n_flips, n_deleted, n_inserted in operations(threat, budget):
        for gone in itertools.combinations(free, n_deleted):
            left = [i for i in range(n) if i not in gone]
            for flipped in itertools.combinations([i for i in left if not trusted[i]], n_flips):
                for to in itertools.product(range(n_classes), repeat=n_flips):
                    labels = {i: codes[i] for i in left} | dict(zip(flipped, to, strict=True))
                    kept = [(rows[i], labels[i]) for i in left]
                    for added in itertools.combinations_with_replacement(new, n_inserted):
                        yield kept + list(added)


def operations(threat, budget):
    """How many flips, deletions and insertions an attack of so many operations may consist of."""
    if threat == "edits":
        return [(f, d, budget - f - d) for f in range(budget + 1) for d in range(budget + 1 - f)]
    return [
        {
            "deletions": (0, budget, 0),
            "insertions": (0, 0, budget),
            "replacements": (0, budget, budget),
            "flips": (budget, 0, 0),
        }[threat]
    ]
