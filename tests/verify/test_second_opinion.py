"""The arithmetic behind ``flipcert verify`` against all labellings, and what it may not use."""

from __future__ import annotations

import ast
import io
import itertools
import tokenize
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import flipcert
from flipcert import verify
from flipcert.ensemble.formed_weights import formed_weights
from flipcert.verify.exact import Voter
from flipcert.verify.opinion import opinion_on_ensemble, opinion_on_model, opinion_on_votes
from tests.helpers.oracles import brute_force_costs, vote_winner
from tests.helpers.strategies import FAMILIES, label_problems

SOURCES = sorted(Path(verify.__file__).parent.glob("*.py"))


@settings(max_examples=400)
@given(label_problems(), st.data())
def test_costs_are_those_of_all_labellings(problem, data):
    weights, codes, n_classes, _ = problem
    n = len(weights)
    trusted = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    voter = Voter.of(weights.tolist(), codes.tolist(), [not own for own in trusted], n_classes)
    truth = brute_force_costs(weights, codes, n_classes, trusted=trusted)
    assert truth[voter.vote] == 0
    others = np.delete(truth, voter.vote)
    assert min(voter.change_cost(open_space=False), n + 1) == others.min()
    lower, upper = (np.minimum(costs, n + 1) for costs in voter.class_costs())
    assert np.all(lower <= truth)
    assert np.all(truth <= upper)
    assert np.delete(upper, voter.vote).min() == others.min()
    if min(weights) >= 0 or n_classes == 2:
        assert np.array_equal(lower, upper)


def prediction(parts, labelling, n_classes, open_space):
    """Who wins the vote of models with these weights; None if the labels have one class only."""
    held = sorted(set(labelling)) if open_space else range(n_classes)
    if len(held) < 2:
        return None
    votes, begin = [], 0
    for weights in parts:
        own = labelling[begin : begin + len(weights)]
        begin += len(weights)
        scores = {c: sum(w for w, label in zip(weights, own, strict=True) if label == c) for c in held}
        votes.append(max(held, key=lambda c: (scores[c], -c)))
    return vote_winner(votes, n_classes)


@st.composite
def elections(draw):
    """Whole numbers as weights of one model or several, labels, trusted labels, classes; all classes have a label."""
    n_classes = draw(st.integers(2, 4))
    n = draw(st.integers(n_classes, {2: 8, 3: 7, 4: 6}[n_classes]))
    family = FAMILIES[draw(st.sampled_from(["integers", "counts", "zeros"]))]
    weights = [int(w) for w in draw(st.lists(family, min_size=n, max_size=n))]
    spare = draw(st.lists(st.integers(0, n_classes - 1), min_size=n - n_classes, max_size=n - n_classes))
    labels = draw(st.permutations([*range(n_classes), *spare]))
    free = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=n, max_size=n))
    cuts = draw(st.lists(st.integers(1, n - 1), max_size=2, unique=True).map(sorted)) if n > 2 else []
    return weights, list(labels), free, n_classes, [0, *cuts, n]


@settings(max_examples=600)
@given(elections(), st.booleans())
# One voter has nothing to say, and the only class left would be no attack.
@example(([0, 2, 1], [1, 0, 1], [True] * 3, 2, [0, 1, 2, 3]), True)
def test_opinions_hold_against_all_labellings(election, open_space):
    weights, labels, free, n_classes, ends = election
    n, places = len(labels), [slice(*pair) for pair in itertools.pairwise(ends)]
    parts = [weights[own] for own in places]
    now = prediction(parts, labels, n_classes, open_space)
    options = [range(n_classes) if own else [label] for label, own in zip(labels, free, strict=True)]
    cost = n + 1
    for labelling in itertools.product(*options):
        if prediction(parts, labelling, n_classes, open_space) not in (now, None):
            cost = min(cost, sum(map(int.__ne__, labels, labelling)))
    voters = [Voter(weights[own], labels[own], free[own], n_classes) for own in places]
    opinion = (opinion_on_model if len(parts) == 1 else opinion_on_ensemble)(voters, open_space)
    assert opinion.prediction == now
    assert opinion.at_least <= cost - 1
    # Classes that could be removed end what can be proven, not always the truth.
    sizes = [[own for label, own in zip(labels, free, strict=True) if label == c] for c in range(n_classes)]
    removal = min((len(own) for own in sizes if all(own)), default=n + 1)
    assert cost - 1 <= opinion.at_most or (open_space and n_classes > 2 and opinion.at_most == removal - 1)
    if len(parts) == 1:
        assert opinion.known
    if opinion.known:
        assert opinion.at_least == opinion.at_most
    if not open_space and (n_classes == 2 or min(weights) >= 0):
        assert opinion.known
    votes = [voter.vote for voter in voters]
    alone = opinion_on_votes(votes, [(voter.y, voter.free) for voter in voters], n_classes, open_space)
    assert alone.prediction == now
    assert alone.at_least <= cost - 1


@pytest.mark.parametrize("reg", [0.1, 1.0])
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_opinions_hold_for_fit_and_predict(reg, n_partitions):
    """Classes are read from the labels: whoever flips all labels of a class removes it."""
    rng = np.random.default_rng(int(10 * reg) + n_partitions)
    known = 0
    for _ in range(12):
        X, x = rng.integers(-2, 4, (6, 2)).astype(float), rng.integers(-2, 4, (1, 2)).astype(float)
        y = rng.permutation([0, 1, 2, 0, 1, rng.integers(3)])
        model = flipcert.KernelRidge("linear", reg=reg)
        if n_partitions > 1:
            model = flipcert.PartitionEnsemble(model, n_partitions=n_partitions)
        model.fit(X, y)
        now = model.predict(x)[0]
        voters = [
            Voter.of(own[0].tolist(), y[members].tolist(), [True] * len(members), 3)
            for members, own in formed_weights(model, x, np.array([0]))
        ]
        opinion = (opinion_on_model if n_partitions == 1 else opinion_on_ensemble)(voters, open_space=True)
        cost = 7
        for labelling in itertools.product(range(3), repeat=6):
            flips = np.count_nonzero(labelling != y)
            if flips < cost and len(set(labelling)) > 1 and model.fit(X, labelling).predict(x)[0] != now:
                cost = flips
        assert opinion.prediction == now
        assert opinion.at_least <= cost - 1
        assert cost - 1 <= opinion.at_most or opinion.at_most == np.unique(y, return_counts=True)[1].min() - 1
        known += opinion.known
    assert known == 12 or n_partitions > 1


def test_the_second_opinion_is_short_and_shares_no_algorithm():
    lines = 0
    for path in SOURCES:
        source = path.read_text()
        tree = ast.parse(source)
        code, words = set(), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                words.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
                assert all(not name.startswith("flipcert") or name.startswith("flipcert.verify") for name in names)
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.string.strip() and token.type != tokenize.COMMENT:
                code.update(range(token.start[0], token.end[0] + 1))
        lines += len(code - words)
    assert 100 < lines <= 200
