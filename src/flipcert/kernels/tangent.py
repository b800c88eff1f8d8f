"""The tangent kernel of a network that one has: fine-tuning it, with parameters that stay close to where they are."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.blocks import in_job, map_threads, memory_budget
from flipcert.engine.extras import load_torch
from flipcert.engine.magnitude import smallest_whole
from flipcert.engine.rounding import Factor, row_norms
from flipcert.kernels.base import Kernel
from flipcert.kernels.gradients import Gradients, digest, told
from flipcert.kernels.sketch import Sketch
from flipcert.labels.validation import check_inputs, check_integers

# Gradients of at most so many numbers are handed out as features; longer ones only meet in inner products.
_MOST_FEATURES = 4096
# Rows whose features one thread works on at a time.
_ROWS = 256


class Tangent(Kernel):
    r"""Tangent kernel of your own network at its present weights: inner products of gradients in its parameters.

    For a network with one output f and parameters :math:`\theta_0`, :math:`k(x, z) = \langle \nabla f(x; \theta_0),
    \nabla f(z; \theta_0) \rangle`. With it, :class:`flipcert.KernelRidge` is *fine-tuning of that network in its linear
    regime*: one copy of the network for each class c, all from :math:`\theta_0`, whose parameters minimise
    :math:`\sum_i (g(x_i; \theta) - [y_i = c])^2 + \text{reg} \|\theta - \theta_0\|^2`, where g is the first-order
    expansion of :math:`f(x; \theta) - f(x; \theta_0)` around :math:`\theta_0`; gradient flow from :math:`\theta_0` ends
    there. :class:`flipcert.KernelSVM` is the same with the hinge loss and a small C. The certificate is for this
    machine; a network that is really fine-tuned obeys it as far as it stays in that regime.

    The kernel of a network with o outputs is the mean of the kernels of its outputs: that of :math:`\sum_j f_j(x;
    \theta_j) / \sqrt{o}`, with a copy of the parameters for each output. It is not that of o outputs that share their
    parameters while they are trained.

    **The network must not have been trained, selected or stopped with the help of the labels under attack**, or the
    certificate is void. Nobody can see that in its weights: self-supervision, other data and labels that you trust are
    fine.

    Parameters
    ----------
    module : torch.nn.Module
        The network, from a batch of inputs to a batch of outputs. Parameters that require no gradient are constants. A
        copy in evaluation mode and double precision is used, on the processor; models keep the weights of the time
        they were fitted. Needs PyTorch: ``pip install "flipcert[torch]"``.
    input_shape : sequence of int, optional
        Shape of one input, such as (1, 28, 28), if the network does not take rows as they are.
    projection : int, optional
        Number m of features that gradients are projected to, at random, so that they are short enough to be held: for
        large networks and many samples. The certificate is then exact for the projected kernel, which is that of
        training in a random subspace of m dimensions. It is the kernel on average over seeds; the standard deviation is
        at most :math:`\sqrt{2 / m}\, \sqrt{k(x, x)\, k(z, z)}`. Gradients with no more numbers stay as they are.
    projection_seed : int, default=0
        What settles the projection.

    See Also
    --------
    NTK : Of an infinitely wide network.

    References
    ----------
    Lee, Xiao, Schoenholz, Bahri, Novak, Sohl-Dickstein and Pennington, *Wide Neural Networks of Any Depth
    Evolve as Linear Models Under Gradient Descent*, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> import flipcert
    >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    >>> kernel = flipcert.kernels.Tangent(network)
    >>> kernel.features(np.ones((5, 2))).shape
    (5, 13)
    """

    def __init__(
        self,
        module: Any,
        input_shape: Sequence[int] | None = None,
        projection: int | None = None,
        projection_seed: int = 0,
    ) -> None:
        self.module = module
        self.input_shape = input_shape
        self.projection = projection
        self.projection_seed = projection_seed

    def __sklearn_clone__(self) -> Tangent:
        with told(type(self.module).__name__, "copied"):
            module = copy.deepcopy(self.module)
        return type(self)(module, self.input_shape, self.projection, self.projection_seed)

    def validate(self) -> None:
        """Check that there is a network, and the numbers."""
        torch = load_torch("Tangent needs")
        if not isinstance(self.module, torch.nn.Module):
            raise ValueError(f"module must be a torch.nn.Module; got {self.module!r}.")
        if self.input_shape is not None:
            check_integers(self.input_shape, "input_shape", minimum=1, ndim=1)
        if self.projection is not None:
            check_integers(self.projection, "projection", minimum=1, ndim=0)
        check_integers(self.projection_seed, "projection_seed", minimum=0, ndim=0)

    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> NDArray[Any]:
        """Kernel matrix of X with Z."""
        X = check_inputs(X)
        other = X if Z is None else check_inputs(Z).astype(X.dtype, copy=False)
        values = np.empty((X.shape[0], other.shape[0]), X.dtype)
        self.write(X, other, values)
        # Rounded the same way on both sides.
        return values if Z is not None else np.tril(values) + np.tril(values, -1).T

    def write(self, X: NDArray[Any], Z: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the kernel matrix of X with Z to ``out``."""
        network = self._network(X)
        if self._length(network) is not None:
            np.matmul(self._features(network, X), self._features(network, Z).T, out=out)
            return
        total = np.zeros(out.shape)
        budget = memory_budget() // (8 if in_job() else 2)
        height = max(1, budget // (8 * network.n_parameters * len(network.outputs[0]) * network.together))
        for outputs in network.outputs:
            for rows in _ranges(X.shape[0], height * network.together):
                left = np.concatenate([own for _, own in _batches(network, X[rows], outputs)])
                self._each_batch(network, Z, outputs, _multiplied(left, total[rows]))
        with np.errstate(over="ignore", under="ignore"):  # whoever uses the kernel refuses what is out of range
            out[:] = total / network.n_outputs

    def diag(self, X: NDArray[Any]) -> NDArray[Any]:
        """Kernel of each row with itself: squared norms of gradients."""
        X = check_inputs(X)
        network = self._network(X)
        if self._length(network) is not None:
            features = self._features(network, X)
            return np.einsum("ij,ij->i", features, features)
        with np.errstate(over="ignore", under="ignore"):  # as in the kernel itself
            return (self._norms(network, X) ** 2).astype(X.dtype)

    def n_features(self, n_inputs: int) -> int | None:
        """Length of projected gradients, or of gradients that are short; None if they are long."""
        self.validate()
        return self._length(Gradients(self.module, n_inputs, self.input_shape))

    def features(self, X: NDArray[Any]) -> NDArray[Any]:
        """Gradients of all outputs, as long as they are, or projected."""
        X = check_inputs(X)
        return self._features(self._network(X), X)

    def factor(self, Z: NDArray[Any]) -> Factor:
        """Sizes of the gradients for training inputs Z."""
        network = self._network(Z)
        norms = self._norms(network, Z)
        return Factor(
            frobenius=float(row_norms(norms[None])[0]),
            largest_norm=float(norms.max(initial=0.0)),
            columns=np.empty(0),
            quantum=-2000,  # no bits are known
            shape=(Z.shape[0], network.n_parameters * network.n_outputs),
            unit=float(np.finfo(np.float64).eps) / 2,
        )

    def rounding(self, X: NDArray[Any], train: Factor) -> NDArray[np.float64]:
        """Rounding of inner products of gradients, in double precision, and of the kernel in that of the inputs."""
        norms = self._norms(self._network(X), X)
        return (train.unit * np.sqrt(train.shape[1]) + float(np.finfo(X.dtype).eps) / 2) * norms * train.frobenius

    def lost(self, X: NDArray[Any], train: Factor, sizes: NDArray[Any]) -> NDArray[np.bool_]:
        """Rows whose gradients are so small beside all those of the training inputs that their products vanish."""
        norms = self._norms(self._network(X), X)
        is_small = norms * train.largest_norm < smallest_whole(X.dtype)
        return np.asarray(is_small & (norms > 0) & (train.largest_norm > 0))

    def why(self, X: NDArray[Any], Z: NDArray[Any], small: bool) -> str:
        """Gradients of the network."""
        return (
            f"inner products of the gradients of module are too {'small' if small else 'large'} for {X.dtype}; rescale "
            "the outputs of the network, or its inputs"
        )

    @property
    def network_name(self) -> str:
        """The network in words: its kind, how large it is, and a digest of its numbers."""
        size = sum(own.numel() for own in self.module.parameters() if own.requires_grad)
        return f"{type(self.module).__name__} of {size:,} parameters, digest {digest(self.module)}"

    def _network(self, X: NDArray[Any]) -> Gradients:
        """The network as it is now, ready for these inputs."""
        self.validate()
        network = Gradients(self.module, X.shape[1], self.input_shape)
        if X.shape[0] > 0:
            network.check(X)
        return network

    def _length(self, network: Gradients) -> int | None:
        whole = network.n_parameters * network.n_outputs
        if self.projection is None:
            return whole if whole <= _MOST_FEATURES else None
        return min(int(self.projection), whole)

    def _features(self, network: Gradients, X: NDArray[Any]) -> NDArray[Any]:
        whole = network.n_parameters * network.n_outputs
        length = whole if self.projection is None else min(int(self.projection), whole)
        features = np.empty((X.shape[0], length), X.dtype)

        def fill(rows: slice) -> None:
            inputs = X[rows]
            short = np.zeros((inputs.shape[0], length))
            for outputs in network.outputs:
                own = slice(outputs.start * network.n_parameters, outputs.stop * network.n_parameters)
                sketch = None if length == whole else self._sketch(network, outputs, length)
                for place, gradients in _batches(network, inputs, outputs):
                    if sketch is None:
                        short[place, own] = gradients
                    else:
                        short[place] += sketch(gradients)
            with np.errstate(over="ignore", under="ignore"):  # whoever uses the features refuses what is out of range
                features[rows] = short / np.sqrt(network.n_outputs)

        map_threads(fill, _ranges(X.shape[0], _ROWS), 1 if in_job() else None)
        return features

    def _sketch(self, network: Gradients, outputs: range, length: int) -> Sketch:
        """The projection of the gradients of some outputs, each with a seed of its own."""
        return Sketch(network.n_parameters, length, [(int(self.projection_seed), output) for output in outputs])

    def _norms(self, network: Gradients, X: NDArray[Any]) -> NDArray[np.float64]:
        """Norms of the gradients of all outputs for each row, over the root of their number."""
        norms = np.zeros(X.shape[0])

        def add(place: slice, gradients: NDArray[np.float64]) -> None:
            norms[place] = np.hypot(norms[place], row_norms(gradients))

        for outputs in network.outputs:
            self._each_batch(network, X, outputs, add)
        return norms / np.sqrt(network.n_outputs)

    def _each_batch(
        self,
        network: Gradients,
        X: NDArray[Any],
        outputs: range,
        use: Callable[[slice, NDArray[np.float64]], None],
    ) -> None:
        """Call ``use(place, gradients)`` for all rows of X, some at a time; on all cores, unless a job has them."""

        def one(place: slice) -> None:
            use(place, network.of(X[place], outputs))

        map_threads(one, _ranges(X.shape[0], network.together), 1 if in_job() else None)


def _multiplied(left: NDArray[np.float64], total: NDArray[np.float64]) -> Callable[[slice, NDArray[np.float64]], None]:
    """What adds inner products with gradients of some training inputs to their columns."""

    def add(place: slice, gradients: NDArray[np.float64]) -> None:
        total[:, place] += left @ gradients.T

    return add


def _batches(network: Gradients, X: NDArray[Any], outputs: range) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    for place in _ranges(X.shape[0], network.together):
        yield place, network.of(X[place], outputs)


def _ranges(n_rows: int, height: int) -> list[slice]:
    return [slice(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]
