"""Weights that are met tile by tile give the answers of whole rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone

import flipcert
from flipcert.engine import tiles as grid
from flipcert.flips import streamed_rows
from flipcert.flips._jit.ladder import sums_are_exact
from flipcert.flips.chosen import as_fixed
from flipcert.flips.passes import add_exactly, survey
from flipcert.flips.streamed_rows import StreamedRows
from flipcert.flips.streamed_tiles import Tiles, TileSource
from flipcert.flips.whole_rows import WholeRows
from flipcert.kernels import NTK, RBF
from flipcert.labels.labels import Labels
from tests.helpers.oracles import brute_force_costs, exact_scores, exact_winner
from tests.helpers.strategies import FAMILIES, label_problems


def tiles_of(weights, labels, n_jobs=1):
    def tile_writer(features):
        def write(samples, out):
            out[: len(weights)] = weights[:, samples]

        return write

    source = TileSource(tile_writer, labels.coded, weights.dtype, n_jobs)
    return Tiles(source, np.empty((len(weights) + 1, 0)), len(weights))


def streamed(weights, labels, offset=None, n_jobs=1):
    offset = np.zeros((len(weights), labels.n_classes)) if offset is None else offset
    return StreamedRows(tiles_of(weights, labels, n_jobs), labels, offset)


def total_of(weights, offset):
    with np.errstate(over="ignore"):
        return float(np.abs(weights).sum(dtype=np.float64) + np.abs(offset).sum())


@pytest.fixture(autouse=True)
def narrow_tiles(monkeypatch):
    """Tiles of three samples, and ladders of few rungs."""
    monkeypatch.setattr(grid, "COLUMNS", 3)
    monkeypatch.setattr(streamed_rows, "_FEWEST", 1)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(label_problems(), st.data())
def test_radii_and_witnesses_against_brute_force(problem, data):
    weights, codes, n_classes, offset = problem
    trusted = np.array(data.draw(st.lists(st.booleans(), min_size=codes.size, max_size=codes.size)))
    labels = Labels.of(codes, n_classes, trusted)
    offsets = None if offset is None else offset[None]
    rows = streamed(weights[None], labels, offsets)
    costs = brute_force_costs(weights, codes, n_classes, offset, trusted)
    winner = exact_winner(weights, codes, n_classes, offset)
    fewest = min(np.delete(costs, winner))
    radii = rows.radii()
    assert radii.prediction[0] == rows.scores()[1][0] == winner
    assert radii.cost[0] == fewest
    (witness,) = rows.witnesses()
    assert (witness is None) == (fewest > codes.size)
    if witness is not None:
        assert len(witness) == fewest
        assert not trusted[witness.indices].any()
        assert exact_winner(weights, witness.apply(codes), n_classes, offset) == radii.target[0] != winner


@st.composite
def long_rows(draw):
    """Rows of many weights of one family, with few different values among them: ties, cancellation, subnormals."""
    family = draw(st.sampled_from(sorted(FAMILIES)))
    values = np.array(draw(st.lists(FAMILIES[family], min_size=1, max_size=12)))
    n, n_classes = draw(st.integers(20, 150)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.choice(values, (3, n)).astype(np.float32 if family == "float32" else np.float64)
    codes = np.minimum(rng.geometric(0.5, n) - 1, n_classes - 1)
    trusted = rng.random(n) < draw(st.sampled_from([0.0, 0.1, 0.9]))
    offset = rng.choice(values, (3, n_classes)).astype(np.float64) if draw(st.booleans()) else np.zeros((3, n_classes))
    return weights, Labels.of(codes, n_classes, trusted), offset


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(long_rows(), st.sampled_from([1e-4, 1024]))
def test_every_answer_is_that_of_a_whole_row(problem, megabytes):
    """A tiny budget makes many passes of one row each.

    Rounded scores may name another of several attacks of the same size; where they are exact, they do not.
    """
    weights, labels, offset = problem
    whole = WholeRows(weights, labels, offset)
    with config_context(working_memory=megabytes):
        rows = streamed(weights, labels, offset)
        radii, predictions, witnesses = rows.radii(), rows.scores()[1], rows.witnesses()
        some = np.array([labels.n_labels - 1, 0, 5])
        assert np.array_equal(rows.at(some), weights[:, some])
    expected = whole.radii()
    assert np.array_equal(radii.prediction, expected.prediction)
    assert np.array_equal(predictions, expected.prediction)
    assert np.array_equal(radii.cost, expected.cost)
    for t, (one, other) in enumerate(zip(witnesses, whole.witnesses(), strict=True)):
        assert (one is None) == (other is None)
        if one is not None:
            assert len(one) == expected.cost[t]
            assert labels.coded.movable[one.indices].all()
            after = exact_winner(weights[t], one.apply(labels.codes), labels.n_classes, offset[t])
            assert after == radii.target[t] != radii.prediction[t]
            if sums_are_exact(weights[t], offset[t], total_of(weights[t], offset[t])):
                assert radii.target[t] == expected.target[t]
                assert np.array_equal(one.indices, other.indices)
                assert np.array_equal(one.labels, other.labels)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(label_problems())
def test_exact_sums(problem):
    weights, codes, n_classes, offset = problem
    labels = Labels.of(codes, n_classes)
    offsets = np.zeros((1, n_classes)) if offset is None else offset[None]
    with np.errstate(over="ignore"):
        total = survey(tiles_of(weights[None], labels), offsets).total
    (sums,) = add_exactly(tiles_of(weights[None], labels), labels, offsets, total, [0])
    assert sums.scores == [score * 2**1126 for score in exact_scores(weights, codes, n_classes, offset)]
    if sums.fit_doubles:
        rounded = np.bincount(codes, weights, n_classes) + offsets[0]
        assert [as_fixed(float(score)) for score in rounded] == sums.scores


def test_a_short_ladder_is_made_longer(monkeypatch):
    """Sizes tell nothing about classes: where the large weights are the rival's own, the first guess is too short."""
    rng = np.random.default_rng(0)
    weights = np.concatenate([np.full(200, 100.0), rng.uniform(0.5, 1.0, 1000)])[None]
    codes = np.concatenate([np.repeat([0, 1], 100), rng.permutation(np.repeat([0, 2], [700, 300]))])
    labels = Labels.of(codes, 3)
    tried = []
    plan = StreamedRows._plan
    monkeypatch.setattr(StreamedRows, "_plan", lambda *a: tried.append(plan(*a)) or tried[-1])
    trusted = Labels.of(codes, 3, np.arange(1200) < 200)
    radii = streamed(weights, trusted).radii()
    assert len(tried) > 1
    assert tried[0].most < tried[-1].most
    whole = WholeRows(weights, trusted, np.zeros((1, 3))).radii()
    assert radii.cost == whole.cost
    tried.clear()
    radii = streamed(weights, labels).radii()
    assert len(tried) == 1
    assert tried[0].most < 1200
    assert radii.cost == WholeRows(weights, labels, np.zeros((1, 3))).radii().cost


def test_overflow_is_refused_and_huge_finite_weights_are_not():
    labels = Labels.of(np.array([0, 0, 1, 1, 0]), 2)
    weights = np.array([[1.5e308, 1e308, 1.7e308, 1e307, -1.0]])
    radii = streamed(weights, labels).radii()
    assert radii.prediction.tolist() == [0]
    assert radii.cost == WholeRows(weights, labels, np.zeros((1, 2))).radii().cost
    for wrong in (np.inf, np.nan):
        weights[0, 3] = wrong
        with pytest.raises(ValueError, match="overflowed"):
            streamed(weights, labels).radii()


MODELS = [
    flipcert.KernelSVM(),
    flipcert.KernelSVM(NTK(bias_std=1.0)),
    flipcert.KernelSVM(RBF(0.05)),
    flipcert.KernelSVM(NTK(activation="relu")),
    flipcert.KernelRidge(reg=1.0),
]


@pytest.mark.parametrize(
    ("model", "dtype"), [(m, (np.float32, np.float64)[i % 2]) for i, m in enumerate(MODELS)], ids=str
)
def test_models_answer_alike(model, dtype, digits, monkeypatch):
    """A small budget makes a model stream, from the same products."""
    monkeypatch.setattr(grid, "COLUMNS", 512)
    X, y, X_test, _ = digits
    X, X_test = X.astype(dtype), X_test[:40].astype(dtype)
    model = clone(model).fit(X, y, trusted=np.arange(len(y)) % 7 == 0)
    held, flips, scores = model.certify(X_test), model.worst_flips(X_test), model.decision_function(X_test)
    path = model.replay(X_test[:1], flips[0])
    asked = []
    monkeypatch.setattr(StreamedRows, "radii", lambda rows, radii=StreamedRows.radii: asked.append(rows) or radii(rows))
    budget = 4 * 32 * 512 * np.dtype(dtype).itemsize
    for n_jobs in (1, 2):
        model.set_params(n_jobs=n_jobs)
        with config_context(working_memory=budget / 2**20):
            certificates = model.certify(X_test)
            for one, other in zip(model.worst_flips(X_test), flips, strict=True):
                assert np.array_equal(one.indices, other.indices)
                assert np.array_equal(one.labels, other.labels)
            assert np.array_equal(model.predict(X_test), held.prediction)
            assert np.allclose(model.decision_function(X_test), scores, rtol=1e-12, atol=1e-12 * np.abs(scores).max())
            assert np.allclose(model.replay(X_test[:1], flips[0]), path, rtol=1e-5, atol=1e-5 * np.abs(path).max())
        for name in ("prediction", "radius", "radius_upper", "runner_up", "target", "rounding_sensitive"):
            assert np.array_equal(getattr(certificates, name), getattr(held, name)), name
    assert len(asked) == 4


def test_the_threshold_of_an_svm_does_not_need_whole_rows(digits, monkeypatch):
    X, y, _, _ = digits
    for inputs in (X, X + 0.5):
        whole = flipcert.KernelSVM().fit(inputs, y).C_max_
        monkeypatch.setattr(grid, "COLUMNS", 100)
        assert np.isclose(flipcert.KernelSVM().fit(inputs, y).C_max_, whole, rtol=1e-12)
        monkeypatch.setattr(grid, "COLUMNS", 2**16)
