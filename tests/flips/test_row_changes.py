"""Rows that come and go: radii, costs and attacks against every training set within reach, in exact numbers."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flipcert.flips.new_rows import NewRows
from flipcert.flips.row_change_costs import attack_by_rows, row_change_costs
from flipcert.flips.row_changes import RowChanges
from flipcert.flips.whole_rows import WholeRows
from flipcert.labels.labels import Labels
from flipcert.labels.threats import DELETIONS, EDITS, INSERTIONS, MOVES, REPLACEMENTS
from tests.helpers.row_oracle import Rows
from tests.helpers.strategies import FAMILIES

THREATS = {
    "deletions": DELETIONS,
    "insertions": INSERTIONS,
    "replacements": REPLACEMENTS,
    "edits": EDITS,
    "moves": MOVES,
}


@st.composite
def problems(draw, space=None):
    """Weights, labels, which of them are trusted, what a new row weighs, and a label space."""
    is_open = draw(st.booleans()) if space is None else space == "open"
    n_classes = draw(st.integers(2, 3))
    n = draw(st.integers(2, 4 if n_classes == 3 else 5))
    codes = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    if is_open:
        codes[:2] = [0, 1]
        codes = np.unique(codes, return_inverse=True)[1].tolist()
        n_classes = max(codes) + 1
    family = draw(st.sampled_from(sorted(FAMILIES)))
    weights = np.array(draw(st.lists(FAMILIES[family], min_size=n, max_size=n)))
    more = draw(st.sampled_from([0.0, 0.0, 1.0, 0.1]))
    trusted = draw(st.lists(st.booleans(), min_size=n, max_size=n)) if draw(st.booleans()) else [False] * n
    return weights, codes, n_classes, np.array(trusted), float(np.abs(weights).max() + more), is_open


def asked(problem, threat, real=None):
    """The rows as the package sees them, and every training set, as the oracle does."""
    weights, codes, n_classes, trusted, new, is_open = problem
    labels = Labels.of(np.array(codes, np.int64), n_classes, trusted, space_is_fixed=not is_open)
    most = 0.0 if threat is DELETIONS else new
    inputs = np.empty((0, 1)) if threat is DELETIONS else np.full((1, 1), most)
    reach = NewRows(np.array([most]), np.array([most if real is None else real]), inputs, len(codes))
    rows = WholeRows(weights[None], labels, np.zeros((1, n_classes)))
    return rows, reach, Rows(weights, codes, n_classes, trusted, new=(-new, 0, new), open_space=is_open)


@pytest.mark.parametrize("name", ["deletions", "insertions", "replacements", "edits"])
@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_radii_against_every_training_set(name, problem):
    threat = THREATS[name]
    rows, reach, oracle = asked(problem, threat)
    changes = RowChanges(rows, threat, reach)
    radii, truth = changes.radii(), oracle.cost_of_change(name)
    assert radii.prediction[0] == oracle.prediction
    assert radii.cost[0] <= truth <= radii.known[0]
    if not oracle.open_space or name in ("deletions", "insertions") or oracle.n_classes > 2:
        assert radii.cost[0] == radii.known[0] == truth
    (witness,) = changes.witnesses()
    assert (witness is None) == (radii.known[0] == oracle.n + 1)
    if witness is not None:
        assert len(witness) == radii.known[0]
        assert winner_after(oracle, witness, reach.real[0]) == radii.target[0] != oracle.prediction


@pytest.mark.parametrize("name", ["replacements", "edits"])
@settings(max_examples=60, deadline=None)
@given(problem=problems("open"))
def test_opposite_inputs_leave_the_class_that_loses(name, problem):
    threat = THREATS[name]
    rows, reach, oracle = asked(problem, threat)
    changes = RowChanges(rows, threat, dataclasses.replace(reach, odd=True))
    radii, truth = changes.radii(), oracle.cost_of_change(name)
    assert radii.cost[0] <= truth <= radii.known[0] <= RowChanges(rows, threat, reach).radii().known[0]
    if name == "replacements":
        assert radii.cost[0] == radii.known[0] == truth
    (witness,) = changes.witnesses()
    assert (witness is None) == (radii.known[0] == oracle.n + 1)
    if witness is not None:
        assert len(witness) == radii.known[0]
        assert winner_after(oracle, witness, witness.inserted.ravel()) == radii.target[0] != oracle.prediction


def winner_after(oracle, witness, new):
    """Relabel, drop, append, and see who wins."""
    weights = witness.apply_inputs(np.array([[float(w)] for w in oracle.weights]))[:, 0]
    kept = len(oracle.codes) - witness.deleted.size
    assert not np.any(np.array(oracle.trusted)[np.append(witness.deleted, witness.indices)])
    changed = Rows(
        np.append(weights[:kept], np.broadcast_to(new, witness.inserted_labels.shape)),
        witness.apply(np.array(oracle.codes)), oracle.n_classes, open_space=oracle.open_space,
    )  # fmt: skip
    return changed.prediction


@pytest.mark.parametrize("name", THREATS)
@settings(max_examples=50, deadline=None)
@given(problem=problems("fixed"))
def test_costs_of_classes_against_every_training_set(name, problem):
    threat = THREATS[name]
    rows, reach, oracle = asked(problem, threat)
    costs = row_change_costs(threat, rows.weights, rows.labels, rows.offset, reach, None)
    truth = np.array(oracle.costs(name))
    assert np.all(costs.lower[0] <= truth)
    assert np.all(truth <= costs.upper[0])
    mixed = any(w < 0 and not fixed for w, fixed in zip(oracle.weights, oracle.trusted, strict=True))
    if name != "edits" or not mixed or oracle.n_classes == 2:
        assert costs.lower[0].tolist() == costs.upper[0].tolist() == truth.tolist()
    # The cheapest class is exact in any case.
    others = np.arange(oracle.n_classes) != oracle.prediction
    assert costs.lower[0, others].min() == costs.upper[0, others].min() == truth[others].min()
    for c in np.flatnonzero((costs.upper[0] > 0) & (costs.upper[0] <= oracle.n)).tolist():
        cost = int(costs.upper[0, c])
        attack = attack_by_rows(threat, rows.weights[0], rows.labels, rows.offset[0], c, cost, reach)
        assert len(attack) == cost


@pytest.mark.parametrize("name", ["insertions", "replacements", "edits"])
@settings(max_examples=30, deadline=None)
@given(problem=problems("fixed"), share=st.sampled_from([0.0, 0.5, 0.999]))
def test_proofs_count_on_more_than_attacks_have(name, problem, share):
    threat = THREATS[name]
    real = share * problem[4]
    rows, reach, oracle = asked(problem, threat, real)
    radii = RowChanges(rows, threat, reach).radii()
    assert radii.cost[0] == oracle.cost_of_change(name)
    weaker = Rows(oracle.weights, oracle.codes, oracle.n_classes, oracle.trusted, new=(0, real))
    assert radii.known[0] >= weaker.cost_of_change(name)
    costs = row_change_costs(threat, rows.weights, rows.labels, rows.offset, reach, None)
    assert np.all(costs.lower[0] <= oracle.costs(name))
    assert np.all(costs.upper[0] >= weaker.costs(name))


@pytest.mark.parametrize("name", ["deletions", "insertions", "replacements", "edits"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_rows_follow_the_formula(name, dtype):
    """Ladders that are cut off, and sums that take the error bound, against full sorts of exact numbers."""
    rng = np.random.default_rng(0)
    n, n_classes = 3000, 4
    codes = rng.integers(0, n_classes, n)
    weights = rng.normal(0.1, 1.0, (6, n)).astype(dtype)
    weights[3:] = np.abs(weights[3:])
    weights[2] = np.round(4 * weights[2])
    trusted = rng.random(n) < 0.1
    labels = Labels.of(codes, n_classes, trusted)
    new = np.zeros(6) if name == "deletions" else np.abs(weights).max(axis=1).astype(np.float64)
    reach = NewRows(new, new, np.zeros((6, 1)), n)
    radii = RowChanges(WholeRows(weights, labels, np.zeros((6, n_classes))), THREATS[name], reach).radii()
    for t in range(6):
        assert radii.cost[t] == radii.known[t] == by_formula(name, weights[t], codes, trusted, n_classes, new[t])


def by_formula(name, weights, codes, trusted, n_classes, new):
    # In units of 2**-120, of which all of these are multiples.
    whole, (new,) = ([int(Fraction(float(w)) * 2**120) for w in own] for own in (weights, [new]))
    scores = [sum(w for w, y in zip(whole, codes, strict=True) if y == c) for c in range(n_classes)]
    a = scores.index(max(scores))
    best = len(codes) + 1
    for c in range(n_classes):
        if c == a:
            continue
        open_by = [
            w * (int(y == a) - int(y == c)) for w, y, fixed in zip(whole, codes, trusted, strict=True) if not fixed
        ]
        gains = {
            "deletions": [max(v, 0) for v in open_by],
            "insertions": [],
            "replacements": [max(v + new, 0) for v in open_by],
            "edits": [2 * v for v in open_by if 2 * v > new],
        }[name]
        gains = sorted(gains, reverse=True) + [new] * (len(codes) if name in ("insertions", "edits") else 0)
        need = scores[a] - scores[c] + (c > a)
        for cost, gain in enumerate(gains, 1):
            need -= gain
            if need <= 0:
                best = min(best, cost)
                break
    return best


@pytest.mark.parametrize("name", ["insertions", "replacements", "edits", "moves"])
def test_integers_that_no_machine_word_holds(name):
    """Whole numbers are those of Python, however many rows they are multiplied with."""
    problem = (np.array([0.0, 1.0, 2.0**63]), [0, 0, 0], 2, np.zeros(3, bool), 2.0**63, False)
    for real in (0.0, 2.0**62, 2.0**63):
        rows, reach, oracle = asked(problem, THREATS[name], real)
        costs = row_change_costs(THREATS[name], rows.weights, rows.labels, rows.offset, reach, None)
        assert costs.lower[0].tolist() == oracle.costs(name)


def test_nothing_is_proven_beyond_the_regime():
    labels = Labels.of(np.array([0, 0, 0, 0, 1]), 2)
    rows = WholeRows(np.ones((1, 5)), labels, np.zeros((1, 2)))
    for within, cost, known in ((5, 4, 4), (4, 4, 4), (3, 4, 6), (1, 2, 6), (0, 1, 6)):
        reach = NewRows(np.ones(1), np.ones(1), np.ones((1, 1)), within)
        changes = RowChanges(rows, INSERTIONS, reach)
        assert (changes.radii().cost[0], changes.radii().known[0]) == (cost, known)
        assert (changes.witnesses()[0] is None) == (known == 6)
        costs = row_change_costs(INSERTIONS, rows.weights, labels, rows.offset, reach, None)
        assert (costs.lower[0].tolist(), costs.upper[0].tolist()) == ([0, cost], [0, known])
