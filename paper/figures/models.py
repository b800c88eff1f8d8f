"""The model of a cell, and what it is fitted on: features and kernels that other cells share are computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import flipcert
from flipcert.kernels import NTK, ConvNTK, Kernel, StoredKernel
from paper.figures.figure import Cell
from paper.figures.source import Source

MODELS: Mapping[str, Callable[..., Any]] = {
    "svm": flipcert.KernelSVM,
    "ridge": flipcert.KernelRidge,
    "smoothed": flipcert.SmoothedLinear,
    "network": flipcert.BoundedNetwork,
}
# How features are scaled; none of these looks at a label.
SCALES: Mapping[str, Callable[[], Any]] = {
    "none": FunctionTransformer,
    "centre": partial(StandardScaler, with_std=False),
    "standard": StandardScaler,
    "unit": Normalizer,
}
# A kernel with fewer finite features than this is a product that is cheaper than reading the kernel.
_MANY_FEATURES = 2048


def model_of(cell: Cell, image_shape: tuple[int, ...] | None, n_jobs: int | None = None) -> Any:
    """The model that a cell names, ready to be fitted on scaled features: an ensemble, or one model on everything."""
    options = dict(cell.options)
    if cell.model in ("svm", "ridge"):
        options["kernel"] = _kernel(options.pop("kernel", "ntk"), options.pop("activation", None), image_shape)
    base = MODELS[cell.model](**options, n_jobs=n_jobs)
    if cell.partitions == 1:
        return base
    return flipcert.PartitionEnsemble(base, n_partitions=cell.partitions, n_jobs=n_jobs)


def _kernel(name: str, activation: str | None, image_shape: Any) -> Kernel:
    """A kernel by name; a convolution takes its shape from the data."""
    if name == "ntk":
        return NTK(activation=activation or "linear")
    if name == "conv-ntk":
        return ConvNTK(image_shape, activation=activation or "relu")
    raise ValueError(f"kernel must be ntk or conv-ntk; got {name!r}.")


class ModelInputs:
    """What models on the same data are fitted on.

    Parameters
    ----------
    source : Source
        The data.
    folder : Path
        Where kernels are stored.
    n_jobs : int, optional
        Threads; all cores by default.
    """

    def __init__(self, source: Source, folder: Path, n_jobs: int | None = None) -> None:
        self._source = source
        self._folder = folder
        self._n_jobs = n_jobs
        self._scaled: tuple[str, NDArray[Any], NDArray[Any]] | None = None
        self._stored: dict[str, StoredKernel] = {}

    def prepare(self, cell: Cell, say: Callable[[str], None]) -> tuple[NDArray[Any], NDArray[Any], Any]:
        """Training and test inputs, and the model to fit on them."""
        X_train, X_test = self.scaled(cell.scale)
        model = model_of(cell, self._source.image_shape, self._n_jobs)
        base = getattr(model, "estimator", model)
        kernel = _worth_storing(base, X_train.shape[1], X_train.shape[0] // cell.partitions)
        # Row numbers say nothing about the content that partitions go by.
        if model is not base and (kernel is not None or self._source.partition_by is not None or cell.seed is not None):
            content = X_train if self._source.partition_by is None else self._source.partition_by
            rule = ("sorted", 0) if cell.seed is None else ("random", cell.seed)
            model.set_params(partition=flipcert.assign_partitions(content, cell.partitions, *rule))
        if kernel is None:
            return X_train, X_test, model
        key = f"{cell.scale} {kernel!r}"
        if key not in self._stored:
            say("computing the kernel, once for all models")
            path = self._folder / f"kernel-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
            self._stored[key] = StoredKernel(kernel, X_train, X_test, path, self._n_jobs)
            self._stored[key].load()
        stored = self._stored[key]
        base.set_params(kernel=stored)
        return stored.train_rows, stored.test_rows, model

    def scaled(self, scale: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Both sets of features, scaled by the first; only the last ones are held."""
        if self._scaled is None or self._scaled[0] != scale:
            scaler = SCALES[scale]().fit(self._source.X_train)
            train, test = (np.asarray(scaler.transform(X)) for X in (self._source.X_train, self._source.X_test))
            self._scaled = (scale, train, test)
        return self._scaled[1:]


def _worth_storing(base: Any, n_inputs: int, n_samples: int) -> Kernel | None:
    """The kernel of a model on so many samples, if it is dear enough."""
    kernel = getattr(base, "kernel", None)
    if not isinstance(kernel, Kernel):
        return None
    n_features = kernel.n_features(n_inputs)
    if n_features is None:
        return kernel
    # With fewer features than samples, ridge regression needs no kernel.
    needed = isinstance(base, flipcert.KernelSVM) or n_features >= n_samples
    return kernel if needed and n_features >= _MANY_FEATURES else None
