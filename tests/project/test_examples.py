"""The example with neural-tangents runs, with a stand-in for what is not installed here."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType, SimpleNamespace

import numpy as np

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
