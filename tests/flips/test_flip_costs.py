"""Flip costs against brute force over all labellings, in exact fractions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flipcert
from flipcert.flips._jit import reach
from flipcert.flips.costs import cost_block, decided_costs, radius_block
from flipcert.flips.rows import DoubleRow, IntegerRow
from flipcert.labels.labels import Labels
from tests.helpers.oracles import brute_force_costs, exact_winner
from tests.helpers.strategies import FAMILIES, label_problems


def costs_of(problem, **options):
    weights, codes, n_classes, offset = problem
    offsets = None if offset is None else offset[None]
    return flipcert.flip_costs(weights[None], codes, n_classes, offset=offsets, **options)[0]


def check_bounds(problem):
    weights, codes, n_classes, offset = problem
    truth = brute_force_costs(weights, codes, n_classes, offset)
    lower = costs_of(problem, bound="lower")
    upper = costs_of(problem, bound="upper")
    exact = costs_of(problem, bound="exact")
    predicted = exact_winner(weights, codes, n_classes, offset)
    others = np.arange(n_classes) != predicted
    assert np.array_equal(exact, truth)
    assert (lower <= truth).all()
    assert (upper >= truth).all()
    assert lower[predicted] == upper[predicted] == 0
    assert lower[others].min() == upper[others].min() == truth[others].min()
    if (weights >= 0).all():
        assert np.array_equal(upper, truth)
    published = costs_of(problem, bound="lower", method="published")
    assert (published <= lower).all()
    assert (costs_of(problem, bound="upper", method="published") >= truth).all()
    labels = Labels.of(codes, n_classes)
    radii = radius_block(weights[None], labels, np.zeros((1, n_classes)) if offset is None else offset[None])
    assert radii.prediction[0] == predicted
    assert radii.cost[0] == truth[others].min()
    if radii.cost[0] <= len(weights):
        assert truth[radii.target[0]] == radii.cost[0]
    else:
        assert radii.target[0] == -1


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_brute_force(family):
    @settings(max_examples=250)
    @given(label_problems(family))
    def check(problem):
        check_bounds(problem)

    check()


@settings(max_examples=150)
@given(label_problems(), st.data())
def test_witnesses_replay(problem, data):
    weights, codes, n_classes, offset = problem
    target = data.draw(st.none() | st.integers(0, n_classes - 1))
    bound = data.draw(st.sampled_from(["upper", "exact"]))
    predicted = exact_winner(weights, codes, n_classes, offset)
    costs = costs_of(problem, bound=bound)
    (witness,) = flipcert.cheapest_flips(
        weights[None], codes, n_classes, target=target, bound=bound, offset=None if offset is None else offset[None]
    )
    cost = np.delete(costs, predicted).min() if target is None else costs[target]
    if witness is None:
        assert cost == len(weights) + 1
        return
    flipped = witness.apply(codes)
    assert len(witness) == cost == (flipped != codes).sum()
    winner = exact_winner(weights, flipped, n_classes, offset)
    assert winner != predicted if target is None else winner == target


def many_rows(seed, n_rows=40, n=60, n_classes=5):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(n_rows, n))
    weights[: n_rows // 3] = np.abs(weights[: n_rows // 3])
    weights[n_rows // 3 : n_rows // 2] = np.round(weights[n_rows // 3 : n_rows // 2])
    return weights, rng.integers(0, n_classes, n), n_classes


def test_integers_agree_with_doubles():
    """The interpreted algorithms on integers give the costs of the compiled ones on doubles."""
    weights, codes, n_classes = many_rows(0)
    labels = Labels.of(codes, n_classes)
    offset = np.zeros((weights.shape[0], n_classes))
    for kind in (reach.LOWER, reach.UPPER, reach.BEST, reach.PUBLISHED_LOWER, reach.PUBLISHED_UPPER):
        costs = cost_block(weights, labels, offset, kind)
        *_, leads, margins = decided_costs(weights, labels, offset, kind)
        for t in range(weights.shape[0]):
            row = IntegerRow(weights[t], labels, offset[t])
            lower, upper, margin = row.costs(kind)
            assert row.prediction == costs.prediction[t]
            assert row.lead == pytest.approx(leads[t], abs=1e-12)
            if kind in (reach.UPPER, reach.BEST) and row.has_negative:
                # Mixtures of rivals are for doubles only: they tighten bounds, they decide nothing.
                assert (lower <= costs.lower[t]).all()
                assert (upper >= costs.upper[t]).all()
                continue
            assert np.array_equal(lower, costs.lower[t])
            assert np.array_equal(upper, costs.upper[t])
            assert np.allclose(margin, margins[t], rtol=1e-6, atol=1e-12)


def test_compiled_code_agrees_with_its_python_source():
    weights, codes, n_classes = many_rows(1, n_rows=12)
    labels = Labels.of(codes, n_classes)
    offset = np.zeros(n_classes)
    for row in weights:
        double, integer = DoubleRow(row, labels, offset), IntegerRow(row, labels, offset)
        for target in range(n_classes):
            compiled, _ = double.run(reach.level_cost, target, double.slack, 99, 1, True)
            interpreted, _ = integer.run(reach.level_cost, target, 0, 99, 1, True)
            assert compiled == interpreted
            if compiled < 99:
                assert np.array_equal(double.recorded(compiled).indices, integer.recorded(compiled).indices)


@pytest.mark.parametrize("n", [70, 300, 3000])
@pytest.mark.parametrize("kind", ["normal", "positive", "heavy tail", "narrow", "few values", "shifted"])
def test_short_ladders_change_nothing(n, kind):
    """Costs from the few largest weights equal those from the whole row, whatever the weights look like."""
    rng = np.random.default_rng(n)
    n_classes = 5
    codes = rng.choice(n_classes, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    weights = {
        "normal": lambda: rng.normal(size=(20, n)),
        "positive": lambda: rng.random((20, n)),
        "heavy tail": lambda: np.exp(4 * rng.normal(size=(20, n))),
        "narrow": lambda: 1 + 0.01 * rng.random((20, n)),
        "few values": lambda: rng.integers(-2, 4, (20, n)).astype(float),
        "shifted": lambda: rng.normal(size=(20, n)) + 0.3 * (codes == 1),
    }[kind]()
    labels = Labels.of(codes, n_classes)
    offset = np.zeros((20, n_classes))
    costs = cost_block(weights, labels, offset)
    radii = radius_block(weights, labels, offset)
    for t in range(0, 20, 1 if n < 1000 else 4):
        row = IntegerRow(weights[t], labels, offset[t])  # always whole
        lower, upper, _ = row.costs(reach.BEST)
        assert (costs.lower[t] >= lower).all()
        assert (costs.upper[t] <= upper).all()
        if not row.has_negative:
            assert np.array_equal(costs.lower[t], lower)
            assert np.array_equal(costs.upper[t], upper)
        assert radii.cost[t] == row.cheapest_change()[0]


def test_upper_costs_are_real_on_larger_rows():
    weights, codes, n_classes = many_rows(2)
    upper = flipcert.flip_costs(weights, codes, n_classes, bound="upper")
    for target in range(n_classes):
        witnesses = flipcert.cheapest_flips(weights, codes, n_classes, target=target)
        for row, cost, witness in zip(weights, upper[:, target], witnesses, strict=True):
            if witness is None:
                assert cost == len(codes) + 1
            else:
                assert len(witness) == cost
                assert exact_winner(row, witness.apply(codes), n_classes) == target


def test_float32_weights_are_not_rounded_again():
    weights, codes, n_classes = many_rows(3)
    single = weights.astype(np.float32)
    for bound in ("lower", "upper"):
        assert np.array_equal(
            flipcert.flip_costs(single, codes, n_classes, bound=bound),
            flipcert.flip_costs(single.astype(np.float64), codes, n_classes, bound=bound),
        )


def test_new_labels_may_be_longer_strings():
    witness = flipcert.Witness(np.array([1]), np.array(["charlie"]))
    assert witness.apply(np.array(["a", "b"])).tolist() == ["a", "charlie"]


def test_witnesses_have_the_upper_cost_on_rows_full_of_ties():
    rng = np.random.default_rng(0)
    n_classes = 6
    for _ in range(60):
        n = int(rng.integers(20, 70))
        weights = rng.integers(-9, 10, (1, n)) * 0.1
        codes = rng.integers(0, n_classes, n)
        upper = flipcert.flip_costs(weights, codes, n_classes, bound="upper")[0]
        for target in range(n_classes):
            (witness,) = flipcert.cheapest_flips(weights, codes, n_classes, target=target)
            assert upper[target] == (n + 1 if witness is None else len(witness))


def test_a_tie_of_whole_numbers_is_one_though_rounding_could_have_broken_it():
    weights = [[1, 1, 2, -3, 1, -2, 3, -1, 0, -2, -3, -1, 2, -1, 2, -3, -2, -1]]
    codes = [2, 2, 2, 1, 0, 0, 1, 2, 2, 0, 0, 1, 1, 0, 2, 0, 2, 0]
    (witness,) = flipcert.cheapest_flips(weights, codes, 3, target=0)
    for bound in ("upper", "exact"):
        assert flipcert.flip_costs(weights, codes, 3, bound=bound).tolist() == [[len(witness), 1, 0]] == [[3, 1, 0]]


def test_unreachable_is_one_more_than_all_labels():
    # All-zero weights: the first class always wins.
    assert flipcert.flip_costs(np.zeros((1, 4)), [0, 1, 2, 2], 3).tolist() == [[0, 5, 5]]
    # One negative weight: the third class beats each rival alone, never both.
    assert flipcert.flip_costs([[-1.0]], [0], 3, bound="lower").tolist() == [[1, 0, 1]]
    assert flipcert.flip_costs([[-1.0]], [0], 3, bound="exact").tolist() == [[1, 0, 2]]
    assert flipcert.cheapest_flips([[-1.0]], [0], 3, target=2) == [None]


def test_duplicated_points_in_opposite_classes_tie_exactly():
    rng = np.random.default_rng(5)
    half = rng.normal(size=12)
    weights = np.concatenate([half, half, [0.0]])[None]
    codes = np.array([1] * 12 + [2] * 12 + [0])
    costs = flipcert.flip_costs(np.abs(weights), codes, 3, bound="exact")
    assert costs[0, 1] == 0  # equal scores: the smaller class
    assert costs[0, 2] == 1


def test_single_class_label_space_has_nothing_to_reach():
    assert flipcert.flip_costs([[1.0, -2.0]], [0, 0], 1, bound="exact").tolist() == [[0]]
    assert flipcert.cheapest_flips([[1.0]], [0], 1) == [None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [[np.nan, 1.0]]}, "weights must be finite; got nan"),
        ({"weights": [[np.inf, 1.0]]}, "weights must be finite; got inf"),
        ({"weights": [1.0, 2.0]}, "weights must have shape"),
        ({"weights": [[1.0]]}, "weights has 1 column, but labels has 2"),
        ({"weights": [["a", "b"]]}, "weights must be numbers"),
        ({"weights": np.array([[2**53 + 1, 1]])}, "weights must fit float64 exactly; got 9007199254740993"),
        ({"time_limit": -1}, "time_limit must be a positive number; got -1"),
        ({"labels": [0, 3]}, "labels must be at most 1; got 3"),
        ({"labels": [0, -1]}, "labels must be at least 0; got -1"),
        ({"labels": [0.5, 1.0]}, "labels must hold whole numbers; got 0.5"),
        ({"labels": []}, "labels is empty"),
        ({"n_classes": 0}, "n_classes must be at least 1; got 0"),
        ({"bound": "tight"}, "bound must be one of 'lower', 'upper', 'exact'; got 'tight'"),
        ({"method": "fast"}, "method must be one of 'best', 'published'; got 'fast'"),
        ({"bound": "exact", "method": "published"}, 'bound="exact" needs method="best"'),
        ({"offset": [[1.0]]}, r"offset must have shape \(n_test, n_classes\) = \(1, 2\); got \(1, 1\)"),
        ({"offset": [[1.0, np.nan]]}, "offset must be finite; got nan"),
    ],
)
def test_bad_input(arguments, message):
    good = {"weights": [[1.0, 2.0]], "labels": [0, 1], "n_classes": 2}
    with pytest.raises(ValueError, match=message):
        flipcert.flip_costs(**(good | arguments))


def test_bad_targets():
    with pytest.raises(ValueError, match="target must be at most 1; got 2"):
        flipcert.cheapest_flips([[1.0, 2.0]], [0, 1], 2, target=2)
    with pytest.raises(ValueError, match="target has 2 entries, but weights has 1 rows"):
        flipcert.cheapest_flips([[1.0, 2.0]], [0, 1], 2, target=[0, 1])


@settings(max_examples=400)
@given(label_problems("integers") | label_problems("counts"), st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]))
def test_what_a_coarse_error_bound_decides_is_right(problem, slack):
    """Widen the error bound far beyond rounding: comparisons may stay open, but what is decided must not change."""
    weights, codes, n_classes, offset = problem
    labels = Labels.of(codes, n_classes)
    row = DoubleRow(weights, labels, np.zeros(n_classes) if offset is None else offset)
    assert row.slack == 0
    first = row.prediction
    truth = brute_force_costs(weights, codes, n_classes, offset)
    for coarse in (0.0, slack):
        row.slack = coarse
        if row.prediction == -1:
            continue
        assert row.prediction == first
        cost, _, _, _ = row.run(reach.cheapest_change, coarse, labels.unreachable)
        if cost != -1:
            assert cost == np.delete(truth, first).min()
        lower, upper, margin = (np.zeros(n_classes, kind) for kind in (np.int64, np.int64, float))
        state = row.run(
            reach.row_costs,
            first,
            coarse,
            max(coarse, row.rounding),
            labels.unreachable,
            reach.BEST,
            row.has_negative,
            lower,
            upper,
            margin,
        )
        if state != 0:
            assert coarse > 0
            continue
        assert (lower <= truth).all()
        assert (upper >= truth).all()
        if not row.has_negative:
            assert np.array_equal(lower, truth)
        assert np.array_equal(lower == 0, np.arange(n_classes) == first)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-299, 1e299, 1e305])
def test_long_rows_of_tiny_and_huge_weights(size):
    """A histogram of weights needs bins that doubles can count."""
    weights = np.full((1, 100), size)
    assert flipcert.flip_costs(weights, [0] * 60 + [1] * 40, n_classes=2).tolist() == [[0, 11]]
