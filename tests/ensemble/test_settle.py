"""Ensembles settle only the costs that decide; the result must be what all costs together give."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import flipcert
from flipcert.ensemble._jit.ballot import VoterColumns, new_ballots
from flipcert.ensemble._jit.outcome import N_COLUMNS, blackbox_rows
from flipcert.ensemble._jit.settle import survey
from flipcert.ensemble.votes.radius import change_costs
from flipcert.flips._jit.ladder import UNDECIDED, new_ladder
from tests.helpers.models import all_costs
from tests.helpers.oracles import dynamic_program_radius

FEATURES = {
    "mixed signs": lambda rng, shape: rng.normal(size=shape),
    "non-negative": lambda rng, shape: rng.random(shape),
    "single precision": lambda rng, shape: rng.normal(size=shape).astype(np.float32),
    "ties": lambda rng, shape: rng.integers(-2, 3, shape).astype(float),
    "non-negative ties": lambda rng, shape: rng.integers(0, 3, shape).astype(float),
    "tenths": lambda rng, shape: rng.integers(-3, 4, shape) * 0.1,
    "too large for doubles": lambda rng, shape: rng.integers(-3, 4, shape) * 2.0**508,
}


# Ridge regression rescales its weights, so none is too large there.
CASES = [(family, flipcert.KernelSVM("linear")) for family in FEATURES]
CASES += [(family, flipcert.KernelRidge("linear", reg=2.0)) for family in FEATURES if family != "too large for doubles"]


@pytest.mark.parametrize(("family", "base"), CASES, ids=str)
def test_radius_of_all_exact_costs(family, base):
    rng = np.random.default_rng(len(family))
    for n, n_partitions, n_classes in [(40, 3, 3), (60, 12, 4), (90, 30, 5), (50, 1, 3), (30, 30, 3)]:
        X = FEATURES[family](rng, (n, 6))
        y = rng.choice(n_classes, n, p=rng.dirichlet(np.ones(n_classes)))
        y[:n_classes] = np.arange(n_classes)
        X_test = FEATURES[family](rng, (6, 6))
        parts = rng.permutation(n) % n_partitions
        model = flipcert.PartitionEnsemble(base, n_partitions, partition=parts, classes=np.arange(n_classes)).fit(X, y)
        votes, exact = all_costs(model, X_test, "exact")
        truth = flipcert.ensemble_radius(votes, exact, n_labels=n)
        for own_votes, own_costs, radius in zip(votes.tolist(), exact.tolist(), truth, strict=True):
            assert radius == min(dynamic_program_radius(own_votes, own_costs, n_classes), n)

        certificates = model.certify(X_test)
        assert (certificates.radius <= truth).all()
        assert (truth <= certificates.radius_upper).all()
        lower = flipcert.ensemble_radius(votes, all_costs(model, X_test, "lower")[1], n_labels=n)
        upper = flipcert.ensemble_radius(votes, all_costs(model, X_test, "upper")[1], n_labels=n)
        assert (certificates.radius >= lower).all()
        assert (certificates.radius_upper <= upper).all()
        closed = model.certify(X_test, exact=True)
        assert closed.radius.tolist() == closed.radius_upper.tolist() == truth.tolist()

        for solve, result in ((False, certificates), (True, closed)):
            for t, witness in enumerate(model.worst_flips(X_test, exact=solve)):
                if result.radius_upper[t] == n:
                    assert witness is None
                    continue
                assert len(witness) == result.radius_upper[t] + 1
                flipped = clone(model).set_params(classes=range(n_classes)).fit(X, witness.apply(y))
                after = flipped.predict(X_test[t : t + 1])[0]
                assert after != result.prediction[t]
                if solve:
                    assert after == result.target[t]


def test_black_box_with_voters_that_cannot_turn():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n_classes, n_voters = int(rng.integers(2, 5)), int(rng.integers(1, 12))
        votes = rng.integers(0, n_classes, (1, n_voters))
        can_turn = rng.random(n_voters) < 0.6
        table = np.zeros((1, N_COLUMNS), np.int64)
        blackbox_rows(votes, can_turn, n_classes, 100, table)
        costs = np.broadcast_to(np.where(can_turn, 1, 100)[:, None], (1, n_voters, n_classes)).copy()
        _, cost, _ = change_costs(votes, costs)
        assert table[0, 1] == min(cost[0], 100)


def fewest_gains(weights, codes, movable, first, c):
    """Fewest flips that lift class c above the first: its largest gains, added up as fractions."""
    weights = [Fraction(float(w)) for w in weights]
    scores = {q: sum(w for w, y in zip(weights, codes, strict=True) if y == q) for q in (first, c)}
    gap, gains = scores[first] - scores[c], []
    for w, y, can_move in zip(weights, codes, movable, strict=True):
        gains.append({first: 2 * max(w, 0), c: 2 * max(-w, 0)}.get(int(y), abs(w)) if can_move else 0)
    for count, total in enumerate(accumulate(sorted(gains, reverse=True)), start=1):
        if total > gap or (total == gap and c < first):
            return count
    return None


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([1, 5, 31, 63, 64, 65, 200, 512, 513]),
    family=st.sampled_from(["mixed signs", "non-negative", "ties", "single precision"]),
    trusts=st.booleans(),
)
def test_a_survey_counts_the_largest_gains(seed, size, family, trusts):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 6))
    weights = FEATURES[family](rng, (3, size))
    codes = rng.choice(n_classes, size, p=rng.dirichlet(np.ones(n_classes))).astype(np.int32)
    movable = rng.random(size) < 0.7 if trusts else np.ones(size, np.bool_)
    columns = VoterColumns(
        codes=codes, movable=movable, bounds=np.array([0, size]), can_turn=np.ones(1, np.bool_),
        any_fixed=np.array([trusts]), n_classes=n_classes, limit=size + 1,
    )  # fmt: skip
    ballots = new_ballots(3, 1, n_classes)
    survey(weights, columns, np.zeros((3, 1)), new_ladder(size, n_classes), ballots)
    for t, row in enumerate(weights):
        first = int(ballots.votes[t, 0])
        if first == UNDECIDED:
            continue  # left to integers
        for c in range(n_classes):
            expected = 0 if c == first else fewest_gains(row, codes, movable, first, c)
            assert ballots.lower[t, c, 0] == (size + 1 if expected is None else expected)
