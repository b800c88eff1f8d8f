"""The tangent kernel of a network: against plain jacobians, wide limits, fine-tuning, and what is refused."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from torch import nn

from flipcert.engine.rounding import SAFETY, Factor
from flipcert.kernels import NTK, Tangent, gradients, tangent
from flipcert.kernels.sketch import Sketch
from tests.helpers.torch_modules import Copies, Odd, Tied, Wide, dense, image_network, settled


def plain_jacobians(module, X, shape=None):
    """Gradients of every output, one input and one output at a time: an array (n, outputs, parameters)."""
    network = copy.deepcopy(module).double().eval()
    trained = [own for own in network.parameters() if own.requires_grad]
    rows = []
    for x in torch.from_numpy(np.asarray(X, np.float64)):
        outputs = network(x.reshape(1, *(shape or x.shape))).reshape(-1)
        each = [torch.autograd.grad(own, trained, retain_graph=True, materialize_grads=True) for own in outputs]
        rows.append([torch.cat([part.reshape(-1) for part in parts]).numpy() for parts in each])
    return np.array(rows)


def plain_kernel(module, X, Z, shape=None):
    left, right = plain_jacobians(module, X, shape), plain_jacobians(module, Z, shape)
    return np.einsum("xop,zop->xz", left, right) / left.shape[1]


def frozen_first_layer():
    network = dense(3, 5, 2)
    network[0].requires_grad_(False)
    return network


NETWORKS = {
    "tanh": (dense(3), None),
    "relu": (dense(3, 7, 3, nn.ReLU), None),
    "images": (image_network(), (1, 4, 4)),
    "tied": (settled(Tied()), None),
    "frozen": (frozen_first_layer(), None),
    "single": (settled(nn.Linear(3, 1)), None),
}


def inputs_of(shape, n=9, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3 if shape is None else int(np.prod(shape))))


@pytest.fixture(params=["features", "blocks"])
def way(request, monkeypatch):
    """Short gradients are handed out as features; long ones meet block by block."""
    if request.param == "blocks":
        monkeypatch.setattr(tangent, "_MOST_FEATURES", 0)
        monkeypatch.setattr(gradients, "_MOST_TOGETHER", 4)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_kernel_is_that_of_plain_jacobians(name, way):
    module, shape = NETWORKS[name]
    X, Z = inputs_of(shape), inputs_of(shape, 5, 1)
    kernel = Tangent(module, input_shape=shape)
    expected = plain_kernel(module, X, Z, shape)
    size = np.abs(expected).max()
    assert np.allclose(kernel(X, Z), expected, rtol=0, atol=1e-13 * size)
    assert np.allclose(kernel.features(X) @ kernel.features(Z).T, expected, rtol=0, atol=1e-13 * size)
    assert np.allclose(kernel.diag(X), np.diag(plain_kernel(module, X, X, shape)), rtol=1e-12)
    own = kernel(X)
    assert np.array_equal(own, own.T)
    assert np.allclose(np.diag(own), kernel.diag(X), rtol=1e-12)
    assert np.linalg.eigvalsh(own)[0] >= -1e-12 * size
    single = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert single.dtype == kernel.diag(X.astype(np.float32)).dtype == np.float32
    assert np.allclose(single, expected, rtol=0, atol=1e-5 * size)
    assert kernel(X, Z[:0]).shape == (9, 0)


def test_the_module_is_left_as_it_is():
    module = image_network()
    before = copy.deepcopy(module.state_dict())
    Tangent(module, (1, 4, 4))(inputs_of((1, 4, 4)))
    assert module.training
    assert all(own.dtype in (torch.float32, torch.int64) for own in module.state_dict().values())
    assert all(torch.equal(own, before[name]) for name, own in module.state_dict().items())
    assert all(own.grad is None for own in module.parameters())


def test_blocks_are_the_whole_whatever_their_size(monkeypatch):
    module, X = dense(3, 6, 2), inputs_of(None, 37)
    kernel, whole = Tangent(module), plain_kernel(module, inputs_of(None, 37), inputs_of(None, 37))
    monkeypatch.setattr(tangent, "_MOST_FEATURES", 0)
    projected = Tangent(module, projection=9)(X)
    for together, numbers, memory in ((64, 2**24, 1024.0), (5, 2**24, 1024.0), (5, 200, 1e-3), (3, 1, 1e-6)):
        monkeypatch.setattr(gradients, "_MOST_TOGETHER", together)
        monkeypatch.setattr(gradients, "_NUMBERS", numbers)
        assert np.allclose(Tangent(module, projection=9)(X), projected, rtol=1e-12, atol=1e-13)
        with config_context(working_memory=memory):
            assert np.allclose(kernel(X), whole, rtol=1e-12, atol=1e-13)
            assert np.allclose(kernel(X[3:4], X), whole[3:4], rtol=1e-12, atol=1e-13)
    monkeypatch.setattr(tangent, "_ROWS", 7)
    assert np.allclose(kernel.features(X) @ kernel.features(X).T, whole, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("depth", "weight_std", "bias_std"), [(1, 1.3, 0.2), (2, 1.4, 0.1)])
def test_wide_networks_have_the_kernel_of_infinitely_wide_ones(depth, weight_std, bias_std):
    """The distance shrinks like one over the root of the width."""
    X = inputs_of(None, 5)
    limit = NTK(depth, "relu", weight_std, bias_std)(X)
    gaps = []
    for width in (16, 256):
        kernels = [Tangent(Wide(3, width, depth, weight_std, bias_std, seed))(X) for seed in range(24)]
        gaps.append(np.sqrt(np.mean((np.array(kernels) - limit) ** 2)) / np.sqrt(np.mean(limit**2)))
    assert gaps[1] < 0.25
    assert 0.15 < gaps[1] / gaps[0] < 0.4  # 0.25 at 16 times the width


def test_the_projection_is_as_good_as_it_says():
    """Right on average, and off by no more than the bound; over seeds, and for each pair of inputs."""
    module, X = dense(3, 20, 2), inputs_of(None, 4)
    kernel = Tangent(module)(X)
    size, n_seeds = np.sqrt(np.outer(np.diag(kernel), np.diag(kernel))), 150
    for m in (8, 60):
        drawn = [Tangent(module, projection=m, projection_seed=seed) for seed in range(n_seeds)]
        errors = np.array([(own(X) - kernel) / size for own in drawn])
        spread = np.sqrt((errors**2).mean(axis=0))
        assert (spread < 1.25 * np.sqrt(2 / m)).all()
        assert spread.max() > 0.5 * np.sqrt(2 / m)
        assert (np.abs(errors.mean(axis=0)) < 5 * spread / np.sqrt(n_seeds)).all()
        assert drawn[0].features(X).shape == (4, m)
        assert drawn[0].n_features(3) == m


def test_the_variance_of_a_sketch_is_what_its_docstring_says():
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 30))
    m = 5
    values = [np.vdot(*Sketch(30, m, [(seed,)])(np.stack([u, v]))) for seed in range(4000)]
    variance = (u @ u * (v @ v) + (u @ v) ** 2 - 2 * np.sum(u**2 * v**2)) / m
    assert np.var(values) == pytest.approx(variance, rel=0.1)


def test_a_projection_that_is_no_shorter_is_none():
    module, X = dense(3), inputs_of(None)
    assert np.array_equal(Tangent(module, projection=10_000)(X), Tangent(module)(X))
    assert Tangent(module, projection=10_000).n_features(3) == Tangent(module).n_features(3) == 21


def test_long_gradients_are_no_features_of_models_unless_they_are_projected():
    module = dense(3, 900)
    assert Tangent(module).n_features(3) is None
    assert Tangent(module).features(np.ones((2, 3))).shape == (2, 4501)
    assert Tangent(module, projection=64).n_features(3) == 64


def test_several_outputs_are_copies_that_are_added_up():
    module, X = dense(3, 4, 3), inputs_of(None)
    together = Copies([copy.deepcopy(module) for _ in range(3)])
    assert np.allclose(Tangent(module)(X), Tangent(together)(X), rtol=1e-12)


def test_weights_are_those_of_now_and_copies_keep_theirs():
    module, X = dense(3), inputs_of(None)
    kernel = Tangent(module)
    before, copied, packed = kernel(X), clone(kernel), pickle.dumps(kernel)
    with torch.no_grad():
        module[0].weight.mul_(2.0)
    assert not np.allclose(kernel(X), before)
    assert np.array_equal(copied(X), before)
    assert np.array_equal(pickle.loads(packed)(X), before)
    assert copied.module is not module
    assert clone(kernel).set_params(projection=3).get_params()["projection"] == 3


@pytest.mark.parametrize("name", ["tanh", "relu", "images"])
def test_rounding_is_estimated_from_above(name, way):
    """Rows in another batch, in another order and in single precision: none is further off than the estimate."""
    module, shape = NETWORKS[name]
    X, Z = inputs_of(shape, 70), inputs_of(shape, 33, 1)
    kernel = Tangent(module, input_shape=shape)
    estimate = SAFETY * kernel.rounding(X, kernel.factor(Z))
    order = np.random.default_rng(3).permutation(70)
    moved = np.linalg.norm(kernel(X[order], Z)[np.argsort(order)] - kernel(X, Z), axis=1)
    alone = np.linalg.norm(np.vstack([kernel(x[None], Z) for x in X[:9]]) - kernel(X, Z)[:9], axis=1)
    assert (moved <= estimate).all()
    assert (alone <= estimate[:9]).all()
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    off = np.linalg.norm(kernel(X, Z).astype(float) - kernel(X.astype(float), Z.astype(float)), axis=1)
    assert (off <= SAFETY * kernel.rounding(X, kernel.factor(Z))).all()
    assert (estimate < 1e-10 * np.linalg.norm(kernel(X, Z), axis=1)).all()


def test_gradients_that_vanish_are_lost_and_zeros_are_not():
    tiny = Odd(lambda x: 1e-200 * x.sum(dim=1))
    X = np.ones((2, 3))
    kernel = Tangent(tiny)
    factor = kernel.factor(X)
    assert isinstance(factor, Factor)
    assert kernel.lost(X, factor, np.zeros(2)).all()
    assert "too small for float64" in kernel.why(X, X, True)
    assert not kernel.lost(0 * X, factor, np.zeros(2)).any()
    assert not Tangent(dense(3)).lost(X, Tangent(dense(3)).factor(X), np.zeros(2)).any()


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Tangent(3), "module must be a torch.nn.Module; got 3"),
        (Tangent(dense(3), projection=0), "projection must be at least 1; got 0"),
        (Tangent(dense(3), projection=2.5), "projection must hold whole numbers; got 2.5"),
        (Tangent(dense(3), projection_seed=None), "projection_seed must hold whole numbers; got None"),
        (Tangent(dense(3), input_shape=(2, 2)), r"X has rows of 3 numbers, but input_shape=\(2, 2\) needs 2 x 2"),
        (Tangent(dense(3), input_shape=3), "input_shape must be one-dimensional"),
        (Tangent(dense(4)), "module Sequential cannot be evaluated in double precision: mat1 and mat2"),
        (Tangent(nn.Tanh()), "must have a parameter that requires a gradient; Tanh has 0 parameters"),
        (Tangent(nn.LazyLinear(2)), "LazyLinear has parameters without values yet; call it on a batch"),
        (Tangent(nn.Linear(3, 1, dtype=torch.complex64)), "Linear has complex numbers among its parameters"),
        (Tangent(Odd(lambda x: (x, x))), "must return a tensor of real numbers; Odd returned tuple"),
        (Tangent(Odd(lambda x: x.argmax(dim=1))), "must return a tensor of real numbers; Odd returned torch.int64"),
        (Tangent(Odd(lambda x: x.sum())), r"must return outputs of shape \(n, ...\) for n inputs; Odd returned \(\)"),
        (Tangent(Odd(lambda x: x - x.mean(dim=0))), "must treat each input by itself"),
        (Tangent(Odd(lambda x: x + torch.rand(1))), "cannot be evaluated for one input at a time: vmap: .*random"),
        (Tangent(Odd(lambda x: x if float(x[0, 0]) > 0 else -x)), "cannot be evaluated for one input at a time"),
        (Tangent(Odd(lambda x: (0 * x).sqrt())), "gradients of Odd must be finite; got nan for an input"),
        (Tangent(Odd(lambda x: x.float() @ torch.ones(3, 1, dtype=torch.float64))), "cannot be evaluated in double"),
    ],
)
def test_what_has_no_tangent_kernel_is_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(np.ones((3, 3)) + np.arange(3.0)[:, None])


def test_networks_that_cannot_be_copied_are_refused():
    module = dense(3)
    module.kept = module[0].weight * 2  # no leaf of the graph
    with pytest.raises(ValueError, match="module Sequential cannot be copied: Only Tensors created explicitly"):
        clone(Tangent(module))


def test_modes_of_the_caller_do_not_matter():
    module, X = dense(3), inputs_of(None)
    expected = Tangent(module)(X)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert np.array_equal(Tangent(module)(X), expected)
    threads = torch.get_num_threads()
    Tangent(module)(X)
    assert torch.get_num_threads() == threads


def test_torch_is_loaded_by_whoever_needs_it(monkeypatch):
    script = "import sys, flipcert; flipcert.kernels.Tangent; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'Tangent needs torch. Install with: pip install "flipcert\[torch\]"'):
        Tangent(None)(np.ones((2, 2)))
